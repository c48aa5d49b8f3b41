//! One message: defuse, scan in all views, unite, replace, scan again.

use std::borrow::Cow;

use super::options::Rules;
use super::scan::{Hit, Hits, scan, slice};
use super::token::Minter;
use super::{Finding, Kind, Report, view};

/// What became of a message.
pub(super) struct Done {
    /// The text to write, with the line ends of the message.
    pub(super) text: Option<String>,
}

/// Redacts one message. `None` in the answer means that it stays as it is.
pub(super) fn redact(text: &str, minter: &Minter, rules: &Rules, report: &mut Report) -> Done {
    let (clean, forged) = minter.defuse(text);
    report.forged = report.forged.saturating_add(u64::from(forged));
    let (spans, allowed) = find(&clean, rules, report);
    report.allowed = report.allowed.saturating_add(allowed);
    if spans.is_empty() {
        let changed = matches!(clean, Cow::Owned(_));
        return Done {
            text: changed.then(|| clean.into_owned()),
        };
    }
    let mut found = Vec::new();
    let out = replace(&clean, &spans, minter, report.lines, &mut found);
    // The second scan is the post-condition: a find in the result means that the first scan cut a
    // value short, and then nothing of the message may leave.
    if !find(&out, rules, report).0.is_empty() {
        report.drop_for("postcheck");
        return Done {
            text: Some(dropped(text, minter, "dropped:postcheck")),
        };
    }
    for one in &found {
        report.count(one.kind);
    }
    report.findings.extend(found);
    Done { text: Some(out) }
}

/// A placeholder in place of a message; its line ends stay.
pub(super) fn dropped(text: &str, minter: &Minter, body: &str) -> String {
    let mut out = minter.close(body);
    out.extend(text.chars().filter(|c| matches!(c, '\n' | '\r')));
    out
}

/// A united span: what it covers, and the find that names it.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
    best: Hit,
}

/// All spans of a message in all views, united where they overlap, in order, without those that
/// the site allows, and the number of these.
fn find(text: &str, rules: &Rules, report: &mut Report) -> (Vec<Span>, u64) {
    let masked = mask_tokens(text);
    let mut hits = Hits::new(rules);
    scan(&masked, &mut hits);
    report.work_units = report.work_units.saturating_add(text.len() as u64);
    view::scan_views(&masked, &mut hits, &mut report.work_units);
    if hits.all.is_empty() {
        return (Vec::new(), 0);
    }
    hits.all.sort_by_key(|hit| (hit.start, hit.end));
    let mut spans: Vec<Span> = Vec::new();
    for hit in hits.all {
        match spans.last_mut() {
            Some(last) if hit.start < last.end => {
                last.end = last.end.max(hit.end);
                let (old, new) = ((last.best.rest, last.best.kind), (hit.rest, hit.kind));
                if new < old {
                    last.best = hit;
                }
            }
            _ => spans.push(Span {
                start: hit.start,
                end: hit.end,
                best: hit,
            }),
        }
    }
    for span in &mut spans {
        widen_over_tokens(text, span);
    }
    let found = spans.len();
    spans.retain(|span| {
        let alone = (span.start, span.end) == (span.best.start, span.best.end);
        !(alone && rules.allows(span.best.kind, slice(text, span.start, span.end)))
    });
    let allowed = found.saturating_sub(spans.len());
    (spans, allowed as u64)
}

/// Blots out the inside of tokens of earlier passes, byte for byte, so that their kind is not read
/// as a key. Forged ones were defused before: every bracket that is left is of a genuine one.
fn mask_tokens(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    let mut at = 0;
    while let Some(found) = text
        .get(at..)
        .and_then(|t| memchr::memmem::find(t.as_bytes(), OPEN_BYTES))
    {
        let inside = at + found + OPEN_BYTES.len();
        let Some(length) = text.get(inside..).and_then(|t| t.find(super::token::CLOSE)) else {
            break;
        };
        at = inside + length;
        masked
            .to_mut()
            .replace_range(inside..at, &"_".repeat(length));
    }
    masked
}

/// UTF-8 of the opening bracket.
const OPEN_BYTES: &[u8] = "\u{2039}".as_bytes();

/// A span that ends inside a token of an earlier pass takes the whole of it.
fn widen_over_tokens(text: &str, span: &mut Span) {
    let covered = slice(text, span.start, span.end);
    if covered.matches(super::token::OPEN).count() > covered.matches(super::token::CLOSE).count()
        && let Some(at) = text
            .get(span.end..)
            .and_then(|t| t.find(super::token::CLOSE))
    {
        span.end += at + super::token::CLOSE.len_utf8();
    }
}

fn replace(
    text: &str,
    spans: &[Span],
    minter: &Minter,
    lines_before: u64,
    found: &mut Vec<Finding>,
) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut line = lines_before.saturating_add(1);
    for span in spans {
        let gap = slice(text, at, span.start);
        line = line.saturating_add(gap.matches('\n').count() as u64);
        out.push_str(gap);
        at = at.max(span.end);
        if span.best.rest {
            continue;
        }
        let kind = span.best.kind;
        let value = value_of(text, spans, span);
        let token = minter.pseudonym(
            kind.name(),
            &kind.hint(),
            kind.class(),
            &kind.canonical(&value),
        );
        if span.best.quote {
            out.push('"');
            out.push_str(&token);
            out.push('"');
        } else {
            out.push_str(&token);
        }
        found.push(Finding {
            line,
            kind: kind.name(),
            token,
            verified: span.best.verified,
        });
    }
    out.push_str(slice(text, at, text.len()));
    out
}

/// The value that names a span: its own text, and the later lines of a block.
fn value_of(text: &str, spans: &[Span], span: &Span) -> String {
    let own = slice(text, span.best.start, span.best.end);
    if span.best.kind != Kind::Privkey {
        return own.to_owned();
    }
    let mut value = own.to_owned();
    for rest in spans.iter().filter(|s| s.best.rest && s.start > span.start) {
        value.push_str(slice(text, rest.start, rest.end));
    }
    value
}
