//! Everything that is found in one text, in all its views (guardrails 2.2), within a budget.
//!
//! Views form a tree: escapes undone, look-alikes folded, runs of digits decoded, each inside the
//! other to a depth of three. A find in a view is led back to the source, view by view. A view of a
//! view is only asked for what is new in it, so a text without escapes costs one look.

use super::basen::{self, Content};
use super::map::View;
use super::options::Rules;
use super::scan::{Hit, Hits, scan, slice};
use super::{Kind, array, escapes, unicode};

/// Depth to which decoders compose.
const MAX_DEPTH: u8 = 3;
/// Work per byte that was read or decoded (guardrails 2.5.1).
const WORK_PER_BYTE: u64 = 16;
const FREE_WORK: u64 = 4096;
/// Decoded bytes per byte read.
const DECODED_PER_BYTE: u64 = 2;
const FREE_DECODED: u64 = 64 * 1024;

/// What stands at a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// A value of an entity.
    Value(Kind),
    /// A run that decodes to more than the budget allows.
    Budget,
}

/// A find, led back to the source.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) what: What,
    /// The value as its view spells it.
    pub(super) value: String,
    /// A check of the format was right, or the format has none.
    pub(super) verified: bool,
    /// The decoders that led to it, outermost first.
    pub(super) views: Vec<&'static str>,
}

/// A view and the way back from it.
struct Link<'a> {
    view: &'a View,
    /// The text that the view was made of.
    source: &'a str,
    /// Fixed name of the decoder; escapes name themselves by what stands in the source.
    class: Option<&'static str>,
    up: Option<&'a Link<'a>>,
}

/// A search with its counters.
pub(super) struct Search<'r> {
    rules: &'r Rules,
    bytes: u64,
    decoded: u64,
    /// Bytes that were decoded in vain: they were too many.
    refused: u64,
    /// Bytes visited.
    pub(super) work: u64,
    pub(super) found: Vec<Found>,
}

impl<'r> Search<'r> {
    /// Begins a search of a text of so many bytes.
    pub(super) const fn new(rules: &'r Rules, bytes: u64) -> Self {
        Self {
            rules,
            bytes,
            decoded: 0,
            refused: 0,
            work: 0,
            found: Vec::new(),
        }
    }

    /// True when the budget is spent: then nothing may be said about the text.
    pub(super) const fn is_over(&self) -> bool {
        self.work > self.limit()
            || self.decoded > self.decodable()
            || self.refused > 2 * FREE_DECODED
    }

    const fn limit(&self) -> u64 {
        let decoded = self.decoded.saturating_add(self.refused);
        let bytes = self.bytes.saturating_add(decoded);
        WORK_PER_BYTE
            .saturating_mul(bytes)
            .saturating_add(FREE_WORK)
    }

    const fn decodable(&self) -> u64 {
        DECODED_PER_BYTE
            .saturating_mul(self.bytes)
            .saturating_add(FREE_DECODED)
    }

    /// Looks at a text as it stands.
    pub(super) fn plain(&mut self, text: &str) {
        self.look(text, None);
    }

    /// Looks at a text and at all its views.
    pub(super) fn all(&mut self, text: &str) {
        self.look(text, None);
        self.descend(text, None, 0);
    }

    /// The same for the content view of `source`.
    pub(super) fn content(&mut self, source: &str, view: &View, guessed: bool) {
        let link = Link {
            view,
            source,
            class: Some(if guessed { GUESS } else { FRAME }),
            up: None,
        };
        self.look(&view.text, Some(&link));
        self.descend(&view.text, Some(&link), 0);
    }

    const fn spend(&mut self, bytes: usize) {
        self.work = self.work.saturating_add(bytes as u64);
    }

    /// One pass of the scanner.
    fn look(&mut self, text: &str, link: Option<&Link<'_>>) {
        self.spend(text.len());
        let mut hits = Hits::new(self.rules);
        hits.limit = self.limit().saturating_sub(self.work);
        scan(text, &mut hits);
        self.work = self.work.saturating_add(hits.work);
        for hit in hits.all {
            self.add(text, link, hit);
        }
    }

    /// Takes the finds of a scanner that looked at the source itself.
    pub(super) fn take(&mut self, text: &str, hits: Hits<'_>) {
        for hit in hits.all {
            self.add(text, None, hit);
        }
    }

    fn add(&mut self, text: &str, link: Option<&Link<'_>>, hit: Hit) {
        let value = slice(text, hit.start, hit.end).to_owned();
        // Text that was joined by guess, or whose `+` was taken for blanks, is not random for that.
        let joined = link.is_some_and(|l| match l.class {
            Some(GUESS) => l.view.is_new(hit.start, hit.end),
            class => class == Some(FORM),
        });
        if hit.kind == Kind::Entropy && joined {
            return;
        }
        self.push(link, (hit.start, hit.end), What::Value(hit.kind), value);
        if let Some(last) = self.found.last_mut() {
            last.verified = hit.verified;
        }
    }

    fn push(
        &mut self,
        mut link: Option<&Link<'_>>,
        (mut start, mut end): (usize, usize),
        what: What,
        value: String,
    ) {
        let mut views = Vec::new();
        while let Some(step) = link {
            (start, end) = step.view.source(start, end);
            let class = step
                .class
                .unwrap_or_else(|| escape_class(slice(step.source, start, end)));
            if class != FRAME && class != GUESS {
                views.push(class);
            }
            link = step.up;
        }
        views.reverse();
        self.found.push(Found {
            start,
            end,
            what,
            value,
            verified: true,
            views,
        });
    }

    /// All views of a text that `link` leads back from.
    fn descend(&mut self, text: &str, link: Option<&Link<'_>>, depth: u8) {
        if depth >= MAX_DEPTH || self.is_over() {
            return;
        }
        let folded = link.is_some_and(|l| l.class == Some(FOLD));
        let fresh =
            |test: fn(&str) -> bool| link.is_none_or(|l| is_frame(l) || l.view.decoded().any(test));
        self.spend(text.len());
        if fresh(escapes::may_have) {
            self.escapes(text, link, depth);
        }
        if !folded && text.bytes().any(unicode::is_special) {
            self.fold(text, link, depth);
        }
        self.runs(text, link, depth);
    }

    fn escapes(&mut self, text: &str, link: Option<&Link<'_>>, depth: u8) {
        if let Some(view) = escapes::peel(text) {
            self.enter(text, &view, None, link, depth);
        }
        if let Some(view) = escapes::form(text) {
            self.spend(text.len());
            let link = Link {
                view: &view,
                source: text,
                class: Some(FORM),
                up: link,
            };
            self.look(&view.text, Some(&link));
        }
    }

    fn fold(&mut self, text: &str, link: Option<&Link<'_>>, depth: u8) {
        self.spend(text.len());
        let Some(folded) = unicode::fold(text) else {
            return;
        };
        if let Some(view) = folded.apart {
            let link = Link {
                view: &view,
                source: text,
                class: Some(FOLD),
                up: link,
            };
            self.look(&view.text, Some(&link));
        }
        self.enter(text, &folded.glued, Some(FOLD), link, depth);
    }

    fn runs(&mut self, text: &str, link: Option<&Link<'_>>, depth: u8) {
        let whole = link.is_none_or(|l| is_frame(l));
        let wanted = |start, end| whole || link.is_some_and(|l| l.view.is_new(start, end));
        let mut runs = basen::runs(text, wanted);
        array::runs(text, wanted, &mut runs);
        for run in runs {
            self.work = self.work.saturating_add(run.decoded);
            let span = (run.start, run.end);
            let decoded = self.decoded.saturating_add(run.decoded);
            match run.content {
                Content::PrivateKey => {
                    let value = slice(text, run.start, run.end).to_owned();
                    self.push(link, span, What::Value(Kind::Privkey), value);
                }
                Content::Text(decoded_text) if decoded <= self.decodable() => {
                    self.decoded = decoded;
                    let view = View::whole(decoded_text, run.start, run.end);
                    self.enter(text, &view, Some(run.class), link, depth);
                }
                Content::Text(_) | Content::TooLarge => {
                    self.refused = self.refused.saturating_add(run.decoded);
                    self.push(link, span, What::Budget, String::new());
                }
            }
        }
    }

    /// Looks at a view of `text` and at its own views.
    fn enter(
        &mut self,
        text: &str,
        view: &View,
        class: Option<&'static str>,
        up: Option<&Link<'_>>,
        depth: u8,
    ) {
        let link = Link {
            view,
            source: text,
            class,
            up,
        };
        self.spend(text.len());
        self.look(&view.text, Some(&link));
        self.descend(&view.text, Some(&link), depth + 1);
    }
}

/// The content view has no name: it decodes nothing.
const FRAME: &str = "frame";
/// The same of lines of which one may be a record of its own.
const GUESS: &str = "guess";
const FOLD: &str = "unicode";
const FORM: &str = "form";

fn is_frame(link: &Link<'_>) -> bool {
    matches!(link.class, Some(FRAME | GUESS))
}

/// Class of the escapes in a source range.
fn escape_class(source: &str) -> &'static str {
    match memchr::memchr3(b'\\', b'%', b'&', source.as_bytes())
        .and_then(|at| source.as_bytes().get(at))
    {
        Some(b'\\') => "backslash",
        Some(b'%') => "percent",
        Some(b'&') => "entity",
        _ if source.contains('=') => "quoted-printable",
        // The find holds no escape itself: it came to light beside one.
        _ => "escape",
    }
}
