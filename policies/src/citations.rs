//! Citations: accepted spellings, one canonical form, and the check against the evidence
//! (guardrails 10.3 and 10.4).

use std::collections::BTreeSet;
use std::fmt;

use crate::claim::Evidence;
use crate::event::{GuardrailEvent, Layer, Tally};
use crate::model::EvidenceId;

/// One citation: `[E12]`, `[E12:34]` or `[E12:34-40]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Citation {
    /// The evidence.
    pub evidence: EvidenceId,
    /// First and last line, if lines are named.
    pub lines: Option<(u32, u32)>,
}

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines {
            None => write!(f, "[{}]", self.evidence),
            Some((a, b)) if a == b => write!(f, "[{}:{a}]", self.evidence),
            Some((a, b)) => write!(f, "[{}:{a}-{b}]", self.evidence),
        }
    }
}

/// Most citations that a range of ids may stand for.
const MAX_RANGE: u32 = 8;

/// Reads the citations of a citation field. Here a bare number counts as an id.
#[must_use]
pub fn normalise_field(text: &str) -> Vec<Citation> {
    let text = fold(text);
    split_list(&text)
        .into_iter()
        .flat_map(|part| parse_part(part, true))
        .collect()
}

/// Rewrites the bracketed citations of a text to the canonical form, checks them against the
/// evidence of the run and returns the text, the citations that stand, and what was done.
/// Citations of unknown evidence are dropped; an unknown line keeps the id only.
#[must_use]
pub fn check(text: &str, evidence: &[Evidence]) -> (String, Vec<Citation>, Vec<GuardrailEvent>) {
    let mut tally = Tally::default();
    let mut cites = BTreeSet::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inner, original, after)) = next_group(rest) {
        out.push_str(before);
        rest = after;
        let folded = fold(inner);
        let parsed: Vec<Vec<Citation>> = split_list(&folded)
            .into_iter()
            .map(|part| parse_part(part, false))
            .collect();
        if parsed.is_empty() || parsed.iter().any(Vec::is_empty) {
            if looks_like_citation(&folded) {
                tally.add(Layer::Cite, "cite.malformed", "group", 1);
            } else {
                out.push_str(original);
            }
            continue;
        }
        let whole: Vec<Vec<Citation>> = parsed
            .into_iter()
            .filter(|part| all_exist(part, evidence, &mut tally))
            .collect();
        let kept: Vec<Citation> = whole
            .into_iter()
            .flatten()
            .filter_map(|cite| resolve(cite, evidence, &mut tally))
            .collect();
        let canonical: String = kept.iter().map(ToString::to_string).collect();
        if canonical != original && !kept.is_empty() {
            tally.add(Layer::Cite, "cite.normalised", "group", 1);
        }
        out.push_str(&canonical);
        cites.extend(kept);
    }
    out.push_str(rest);
    (out, cites.into_iter().collect(), tally.events(None))
}

/// A range of ids stands only when all of them exist.
fn all_exist(part: &[Citation], evidence: &[Evidence], tally: &mut Tally) -> bool {
    let exists = |cite: &Citation| evidence.iter().any(|e| e.id() == cite.evidence);
    if part.len() < 2 || part.iter().all(exists) {
        return true;
    }
    tally.add(Layer::Cite, "cite.unknown", "range", 1);
    false
}

/// Keeps what exists.
fn resolve(cite: Citation, evidence: &[Evidence], tally: &mut Tally) -> Option<Citation> {
    let Some(found) = evidence.iter().find(|e| e.id() == cite.evidence) else {
        tally.add(Layer::Cite, "cite.unknown", "id", 1);
        return None;
    };
    let Some((first, last)) = cite.lines else {
        return Some(cite);
    };
    if first <= last && found.line(first).is_some() && found.line(last).is_some() {
        return Some(cite);
    }
    tally.add(Layer::Cite, "cite.line", "line", 1);
    Some(Citation {
        lines: None,
        ..cite
    })
}

const OPENERS: &[char] = &['[', '(', '\u{3010}', '\u{27e6}', '\u{ff3b}', '\u{ff08}'];
const CLOSERS: &[char] = &[']', ')', '\u{3011}', '\u{27e7}', '\u{ff3d}', '\u{ff09}'];

/// The next bracketed group: text before, inside, the whole group, text after.
fn next_group(text: &str) -> Option<(&str, &str, &str, &str)> {
    let mut from = 0;
    loop {
        let open = text.get(from..)?.find(OPENERS)?.saturating_add(from);
        let tail = text.get(open..)?;
        let inner_at = tail.find(|c| !OPENERS.contains(&c) && c != '^')?;
        let inner_len = tail.get(inner_at..)?.find(CLOSERS)?;
        let close_at = inner_at.saturating_add(inner_len);
        let inner = tail.get(inner_at..close_at)?;
        if let Some(nested) = inner.find(OPENERS) {
            from = open.saturating_add(inner_at).saturating_add(nested);
            continue;
        }
        let closing = tail.get(close_at..)?;
        let close_len = closing
            .find(|c| !CLOSERS.contains(&c))
            .unwrap_or(closing.len());
        let opened = tail.get(..inner_at)?.chars().filter(|&c| c != '^').count();
        // Only as many closing brackets as were opened belong to the group.
        let closed: usize = closing
            .get(..close_len)?
            .chars()
            .take(opened)
            .map(char::len_utf8)
            .sum();
        let end = close_at.saturating_add(closed);
        return Some((text.get(..open)?, inner, tail.get(..end)?, tail.get(end..)?));
    }
}

/// Lower case, full-width forms to ASCII, one space between words.
fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let c = match c {
            '\u{ff01}'..='\u{ff5e}' => u32::from(c)
                .checked_sub(0xfee0)
                .and_then(char::from_u32)
                .unwrap_or(c),
            '\u{2010}'..='\u{2015}' => '-',
            '\u{a0}' => ' ',
            _ => c,
        };
        if !(OPENERS.contains(&c) || CLOSERS.contains(&c) || c == '^') {
            out.push(c.to_ascii_lowercase());
        }
    }
    out
}

fn split_list(text: &str) -> Vec<&str> {
    text.split([',', ';'])
        .flat_map(|part| part.split(" and "))
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

fn looks_like_citation(folded: &str) -> bool {
    let rest = folded
        .trim_start()
        .trim_start_matches("evidence")
        .trim_start_matches("ev")
        .trim_start_matches('e');
    rest.len() < folded.trim_start().len()
        && rest
            .trim_start_matches([' ', '-', '_', '#'])
            .starts_with(|c: char| c.is_ascii_digit())
}

/// One citation or a range of ids.
fn parse_part(part: &str, bare: bool) -> Vec<Citation> {
    if let Some((first, rest)) = take_id(part, bare) {
        let rest = rest.trim_start();
        if rest.is_empty() {
            return vec![whole(first)];
        }
        if let Some(last) = rest
            .strip_prefix('-')
            .map(str::trim)
            .and_then(|r| take_id(r, true))
            .filter(|(_, tail)| tail.is_empty())
            .map(|(id, _)| id)
        {
            let span = last.checked_sub(first);
            return match span {
                Some(n) if n < MAX_RANGE => (first..=last).map(whole).collect(),
                _ => Vec::new(),
            };
        }
        if let Some(lines) = take_lines(rest) {
            return vec![Citation {
                evidence: EvidenceId(first),
                lines: Some(lines),
            }];
        }
    }
    Vec::new()
}

const fn whole(id: u32) -> Citation {
    Citation {
        evidence: EvidenceId(id),
        lines: None,
    }
}

/// `e12`, `e-12`, `ev_12`, `evidence #12`; a bare number where that is allowed.
fn take_id(text: &str, bare: bool) -> Option<(u32, &str)> {
    let stem = ["evidence", "ev", "e"]
        .iter()
        .find_map(|stem| text.strip_prefix(stem));
    let rest = match stem {
        Some(rest) => rest
            .trim_start_matches([' ', '-', '_'])
            .trim_start_matches('#'),
        None if bare => text,
        None => return None,
    };
    take_number(rest)
}

/// `:34`, `:34-40`, `#l34`, ` l34-l40`.
fn take_lines(text: &str) -> Option<(u32, u32)> {
    let rest = text
        .trim_start_matches([':', '#', ' '])
        .trim_start_matches("lines");
    let rest = rest
        .trim_start_matches("line")
        .trim_start()
        .trim_start_matches('l');
    let (first, rest) = take_number(rest)?;
    let rest = rest.trim_start();
    if rest.is_empty() {
        return Some((first, first));
    }
    let rest = rest.strip_prefix('-')?.trim_start().trim_start_matches('l');
    let (last, rest) = take_number(rest)?;
    (rest.trim().is_empty() && first <= last).then_some((first, last))
}

fn take_number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number = text.get(..end)?.parse().ok()?;
    Some((number, text.get(end..)?))
}

#[cfg(test)]
mod tests {
    use super::{check, normalise_field};

    fn canonical(text: &str) -> String {
        normalise_field(text)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn r10_3_every_accepted_spelling_has_one_canonical_form() {
        for (text, want) in [
            ("E12", "[E12]"),
            ("[e12]", "[E12]"),
            ("(E-12)", "[E12]"),
            ("[[E 12]]", "[E12]"),
            ("\u{3010}ev_12\u{3011}", "[E12]"),
            ("[^evidence #12]", "[E12]"),
            ("E\u{ff11}\u{ff12}", "[E12]"),
            ("12", "[E12]"),
            ("E12:34", "[E12:34]"),
            ("E12#L34", "[E12:34]"),
            ("E12 L34-L40", "[E12:34-40]"),
            ("E1, E2; E3 and E4", "[E1][E2][E3][E4]"),
            ("E1-E3", "[E1][E2][E3]"),
            ("E1-E30", ""),
            ("ev12", "[E12]"),
            ("Evidence 12", "[E12]"),
            ("\u{ff3b}\u{ff25}12\u{ff3d}", "[E12]"),
            ("\u{27e6}E12\u{27e7}", "[E12]"),
            ("E12:34-40", "[E12:34-40]"),
            ("E12 L34", "[E12:34]"),
            ("E12:lines 34-40", "[E12:34-40]"),
            ("1; 2 and 3", "[E1][E2][E3]"),
            ("E1-E8", "[E1][E2][E3][E4][E5][E6][E7][E8]"),
            ("E1-E9", ""),
            ("K3", ""),
            ("nothing", ""),
        ] {
            assert_eq!(canonical(text), want, "{text}");
        }
    }

    #[test]
    fn r10_4_unknown_evidence_is_dropped_and_an_unknown_line_keeps_the_id() {
        let evidence = [crate::admit::tests::logs(&["one", "two"])];
        let (text, cites, events) = check(
            "It broke (E-1:2), see [E1:9] and [E7]. Not (a note) or [x].",
            &evidence,
        );
        assert_eq!(text, "It broke [E1:2], see [E1] and . Not (a note) or [x].");
        assert_eq!(cites.len(), 2);
        let codes: Vec<&str> = events.iter().map(|e| e.code.as_str()).collect();
        assert_eq!(codes, ["cite.line", "cite.normalised", "cite.unknown"]);
        let (text, cites, events) = check("Both [E1-E2], and [E1:x9].", &evidence);
        assert_eq!((text.as_str(), cites.len()), ("Both , and .", 0));
        let codes: Vec<&str> = events.iter().map(|e| e.code.as_str()).collect();
        assert_eq!(codes, ["cite.malformed", "cite.unknown"]);
    }
}
