//! One message: defuse, search in all views, unite, replace, search again.

use std::borrow::Cow;

use super::frame::Frame;
use super::json;
use super::options::Rules;
use super::prefix;
use super::scan::{Hits, run_end, run_start, slice};
use super::search::{Found, Search, What};
use super::token::{CLOSE, Minter, OPEN};
use super::{Finding, Report, cut};

/// A logical message.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    /// Its lines, with prefixes and line ends.
    pub(super) text: &'a str,
    pub(super) frame: &'a Frame,
    /// Number of its first line.
    pub(super) line: u64,
}

/// What became of a message; `None` in place of the text when it stays as it is.
pub(super) struct Done {
    pub(super) text: Option<String>,
    /// Finds, with offsets into the text of the message.
    pub(super) findings: Vec<Finding>,
}

/// Redacts one message.
pub(super) fn redact(
    message: Message<'_>,
    minter: &Minter,
    rules: &Rules,
    report: &mut Report,
) -> Done {
    if is_binary(message.text) {
        return drop_whole(message, minter, report, "binary");
    }
    let original = message.text;
    let (clean, forged) = minter.defuse(original);
    report.forged = report.forged.saturating_add(u64::from(forged));
    // A bracket and what replaces it differ in length, so the lines are measured again.
    let moved;
    let message = match &clean {
        Cow::Borrowed(_) => message,
        Cow::Owned(text) => {
            moved = message.frame.moved(text);
            Message {
                text,
                frame: &moved,
                ..message
            }
        }
    };
    let Some((spans, allowed)) = find(message, rules, report) else {
        return drop_whole(message, minter, report, "budget");
    };
    report.allowed = report.allowed.saturating_add(allowed);
    if spans.is_empty() {
        let text = matches!(clean, Cow::Owned(_)).then(|| message.text.to_owned());
        return Done {
            text,
            findings: Vec::new(),
        };
    }
    let mut findings = Vec::new();
    let out = replace(message, &spans, minter, &mut findings);
    let frame = message.frame.moved(&out);
    // The second search is the post-condition: a find in the result means that the first one cut a
    // value short, and then nothing of the message may leave.
    let again = Message {
        text: &out,
        frame: &frame,
        line: message.line,
    };
    match find(again, rules, report) {
        Some((left, _)) if left.is_empty() && records_hold(message, again) => {}
        _ => return drop_whole(message, minter, report, "postcheck"),
    }
    for one in &mut findings {
        if let Cow::Owned(text) = &clean {
            // Defusing changes characters one by one.
            for at in [&mut one.start, &mut one.end] {
                let count = slice(text, 0, usize::try_from(*at).unwrap_or(0))
                    .chars()
                    .count();
                let back = original.char_indices().nth(count);
                *at = back.map_or(original.len(), |(at, _)| at) as u64;
            }
        }
        if one.kind == "dropped" {
            report.drop_for("budget");
        } else {
            report.count(one.kind);
        }
    }
    Done {
        text: Some(out),
        findings,
    }
}

/// More than three of ten characters are control characters or stand for invalid bytes.
fn is_binary(text: &str) -> bool {
    if !text.bytes().any(super::unicode::is_special) {
        return false;
    }
    let (mut bad, mut all) = (0_usize, 0_usize);
    for c in text.chars() {
        all += 1;
        bad += usize::from(
            c == '\u{fffd}' || (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{1b}')),
        );
    }
    bad >= 4 && bad * 10 > all * 3
}

/// A placeholder in place of a message; its line ends stay, and a record stays a record.
fn drop_whole(
    message: Message<'_>,
    minter: &Minter,
    report: &mut Report,
    reason: &'static str,
) -> Done {
    report.drop_for(reason);
    let text = message.text;
    let mark = minter.close(&format!("dropped:{reason}"));
    let content = prefix::of(text).length;
    let record = (message.frame.parts.len() == 1)
        .then(|| json::record(text, content))
        .flatten();
    let mut out = match record {
        Some(_) => format!("\"{mark}\""),
        None => mark,
    };
    out.extend(text.chars().filter(|c| matches!(c, '\n' | '\r')));
    Done {
        text: Some(out),
        findings: Vec::new(),
    }
}

/// A united span: what it covers, and the find that names it.
#[derive(Clone, Debug)]
struct Span {
    start: usize,
    end: usize,
    best: Found,
}

/// All spans of a message in all views, united where they overlap, in order, without those that
/// the site allows, and the number of these. `None` when the budget did not reach.
fn find(message: Message<'_>, rules: &Rules, report: &mut Report) -> Option<(Vec<Span>, u64)> {
    let masked = mask_tokens(message.text);
    let mut search = Search::new(rules, message.text.len() as u64);
    match message.frame.content_view(&masked) {
        Some(view) => {
            // Of equal finds the first names the span, and its value has no prefixes inside.
            search.content(&masked, &view, message.frame.is_guessed());
            search.plain(&masked);
        }
        None => search.all(&masked),
    }
    let mut hits = Hits::new(rules);
    cut::scan(&masked, &mut hits);
    search.take(&masked, hits);
    report.work_units = report.work_units.saturating_add(search.work);
    if search.is_over() {
        return None;
    }
    if search.found.is_empty() {
        return Some((Vec::new(), 0));
    }
    let mut spans = unite(search.found);
    for span in &mut spans {
        widen_over_tokens(message.text, span);
    }
    let found = spans.len();
    spans.retain(|span| {
        let alone = (span.start, span.end) == (span.best.start, span.best.end);
        let What::Value(kind) = span.best.what else {
            return true;
        };
        !(alone && rules.allows(kind, &span.best.value))
    });
    let allowed = found.saturating_sub(spans.len()) as u64;
    Some((spans, allowed))
}

/// Unites what overlaps. The strongest kind names the span; among equals the longest, then the one
/// that the fewest decoders led to.
fn unite(mut found: Vec<Found>) -> Vec<Span> {
    found.sort_by_key(|hit| (hit.start, hit.end));
    let mut spans: Vec<Span> = Vec::new();
    for hit in found.into_iter().filter(|hit| hit.start < hit.end) {
        match spans.last_mut() {
            Some(last) if hit.start < last.end => {
                last.end = last.end.max(hit.end);
                let rank = |f: &Found| (f.what, usize::MAX - (f.end - f.start), f.views.len());
                if rank(&hit) < rank(&last.best) {
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
    spans
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
        let Some(length) = text.get(inside..).and_then(|t| t.find(CLOSE)) else {
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
    if covered.matches(OPEN).count() > covered.matches(CLOSE).count()
        && let Some(at) = text.get(span.end..).and_then(|t| t.find(CLOSE))
    {
        span.end += at + CLOSE.len_utf8();
    }
}

/// What goes and what comes in its place.
struct Piece<'a> {
    start: usize,
    end: usize,
    /// The span that begins here; none for the later lines of one.
    span: Option<(&'a Span, u64)>,
    /// The token needs quotes.
    quote: bool,
}

/// Cuts spans at the ends of lines and at the prefixes of the lines that they go on over.
fn pieces<'a>(message: Message<'_>, spans: &'a [Span]) -> Vec<Piece<'a>> {
    let (text, parts) = (message.text, &message.frame.parts);
    let mut pieces = Vec::new();
    let mut index = 0;
    for span in spans {
        while parts
            .get(index + 1)
            .is_some_and(|next| next.start <= span.start)
        {
            index += 1;
        }
        let mut begun = false;
        let mut line = message.line.saturating_add(index as u64);
        let lines = parts
            .iter()
            .skip(index)
            .take_while(|part| part.start < span.end);
        for (n, part) in lines.enumerate() {
            let from = if n == 0 {
                span.start
            } else {
                part.from.max(span.start)
            };
            let end = run_end(text, part.start, |b| b != b'\n');
            let content = part.start + slice(text, part.start, end).trim_end_matches('\r').len();
            let to = span.end.min(content);
            if from < to {
                let span = (!begun).then_some((span, line));
                begun = true;
                pieces.push(Piece {
                    start: from,
                    end: to,
                    span,
                    quote: false,
                });
            }
            line = line.saturating_add(1);
        }
    }
    pieces
}

/// In a JSON record a token outside of a string needs quotes and takes the whole bare value or
/// array.
fn fit_record(message: Message<'_>, pieces: &mut [Piece<'_>]) {
    let (text, [part]) = (message.text, message.frame.parts.as_slice()) else {
        return;
    };
    let Some((start, end)) = json::record(text, part.from) else {
        return;
    };
    let mut walk = json::Walk::new(text, start);
    for piece in pieces
        .iter_mut()
        .filter(|p| p.start >= start && p.end <= end)
    {
        if !walk.is_inside(piece.start) {
            piece.quote = true;
            piece.start = run_start(text, piece.start, piece.start - start, json::is_bare);
            piece.end = run_end(text, piece.end, json::is_bare);
        }
    }
}

/// The text with its spans replaced.
fn replace(
    message: Message<'_>,
    spans: &[Span],
    minter: &Minter,
    findings: &mut Vec<Finding>,
) -> String {
    let text = message.text;
    let mut pieces = pieces(message, spans);
    fit_record(message, &mut pieces);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for piece in &pieces {
        out.push_str(slice(text, at, piece.start.max(at)));
        at = at.max(piece.end);
        if let Some((span, line)) = piece.span {
            let finding = name(span, line, minter);
            if piece.quote {
                out.push('"');
            }
            out.push_str(&finding.token);
            if piece.quote {
                out.push('"');
            }
            findings.push(finding);
        }
    }
    out.push_str(slice(text, at, text.len()));
    out
}

/// The token of a span, and what is told about it.
fn name(span: &Span, line: u64, minter: &Minter) -> Finding {
    let best = &span.best;
    let (kind, token) = match best.what {
        What::Value(kind) => {
            let canonical = kind.canonical(&best.value);
            let hint = kind.hint(&best.value, minter);
            let token = minter.pseudonym(kind.name(), &hint, kind.class(), &canonical);
            (kind.name(), token)
        }
        What::Budget => ("dropped", minter.close("dropped:budget")),
    };
    Finding {
        line,
        start: span.start as u64,
        end: span.end as u64,
        kind,
        rule: kind,
        views: best.views.clone(),
        verified: best.verified,
        token,
    }
}

/// True when every line that was a JSON record is one still.
fn records_hold(before: Message<'_>, after: Message<'_>) -> bool {
    let (Some(old), Some(new)) = (before.frame.parts.first(), after.frame.parts.first()) else {
        return true;
    };
    before.frame.parts.len() > 1
        || json::record(before.text, old.from).is_none()
        || json::record(after.text, new.from).is_some()
}
