//! Whether what a model says stands in what it cites (guardrails 10.3 to 10.6).
//!
//! A claim is a sentence. Each typed value in it must occur in a cited range, after units and
//! times are brought to one form; facts that the analysis computed count as cited. A claim that
//! fails is kept, marked, and used by nothing.

use std::collections::BTreeSet;

use super::Evidence;
use crate::citations::{self, Citation};
use crate::event::{GuardrailEvent, Layer, Tally};
use crate::injection::slots::{self, Kind, Piece};
use crate::model::EvidenceId;

/// What stands behind a claim without support.
const MARK: &str = " (unsupported)";

/// What a checked summary rests on.
pub(crate) struct Support<'a> {
    /// The evidence of the run.
    pub(crate) evidence: &'a [Evidence],
    /// What the draft cites as a whole.
    pub(crate) cited: &'a [EvidenceId],
    /// Texts that the analysis computed.
    pub(crate) facts: &'a [&'a str],
    /// Names that must be true: services of the inventory.
    pub(crate) names: &'a [String],
}

/// Normalises citations, removes addresses that no evidence has and marks unsupported claims.
pub(crate) fn check(summary: &str, support: &Support<'_>) -> (String, Vec<GuardrailEvent>) {
    let mut tally = Tally::default();
    let linked = remove_links(summary, support, &mut tally);
    let (text, _, mut events) = citations::check(&linked, support.evidence);
    let mut out = String::with_capacity(text.len());
    for sentence in sentences(&text) {
        out.push_str(sentence.trim_end());
        if !is_supported(sentence, support) {
            tally.add(Layer::Claim, "claim.unsupported", "value", 1);
            out.push_str(MARK);
        }
        let body = sentence.trim_end().len();
        out.push_str(sentence.get(body..).unwrap_or(""));
    }
    events.extend(tally.events(None));
    (out, events)
}

fn remove_links(text: &str, support: &Support<'_>, tally: &mut Tally) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let head = rest.get(..at).unwrap_or("");
        let scheme = head
            .rfind(|c: char| !c.is_ascii_alphanumeric())
            .map_or(0, |n| {
                n.saturating_add(
                    head.get(n..)
                        .and_then(|t| t.chars().next())
                        .map_or(1, char::len_utf8),
                )
            });
        let tail = rest.get(scheme..).unwrap_or("");
        let end = tail
            .find(|c: char| c.is_whitespace() || matches!(c, ')' | ']' | '>' | '"' | '\''))
            .unwrap_or(tail.len());
        let url = tail
            .get(..end)
            .unwrap_or("")
            .trim_end_matches(['.', ',', ';']);
        out.push_str(rest.get(..scheme).unwrap_or(""));
        let known = support
            .evidence
            .iter()
            .flat_map(|e| e.lines())
            .any(|line| line.contains(url));
        if known {
            out.push_str(url);
        } else {
            tally.add(Layer::Schema, "out.url", "link", 1);
            out.push_str("(link removed)");
        }
        rest = tail.get(url.len()..).unwrap_or("");
    }
    out.push_str(rest);
    out
}

/// Sentences with the blanks behind them.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = matches!(c, '.' | '!' | '?' | '\n')
            && chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if ends {
            let mut end = at.saturating_add(c.len_utf8());
            while let Some((n, next)) = chars.next_if(|(_, next)| next.is_whitespace()) {
                end = n.saturating_add(next.len_utf8());
            }
            // A citation behind the full stop belongs to the sentence before it.
            while text.get(end..).is_some_and(|t| t.starts_with("[E")) {
                let close = text.get(end..).and_then(|t| t.find(']')).unwrap_or(0);
                end = end.saturating_add(close).saturating_add(1);
                while chars.next_if(|(n, _)| *n < end).is_some() {}
                while let Some((n, next)) = chars.next_if(|(_, next)| next.is_whitespace()) {
                    end = n.saturating_add(next.len_utf8());
                }
            }
            found.push(text.get(start..end).unwrap_or(""));
            start = end;
        }
    }
    if start < text.len() {
        found.push(text.get(start..).unwrap_or(""));
    }
    found.retain(|s| !s.is_empty());
    found
}

fn is_supported(sentence: &str, support: &Support<'_>) -> bool {
    let (plain, own) = without_citations(sentence);
    let cites: Vec<Citation> = if own.is_empty() {
        let whole = |id: &EvidenceId| Citation {
            evidence: *id,
            lines: None,
        };
        support.cited.iter().map(whole).collect()
    } else {
        own
    };
    let wanted = values(&plain, support.names);
    if plain.trim().len() < 3 {
        return true;
    }
    if cites.is_empty() {
        return false;
    }
    let mut known = BTreeSet::new();
    for fact in support.facts {
        known.extend(values(fact, support.names));
    }
    for cite in &cites {
        for evidence in support.evidence.iter().filter(|e| e.id() == cite.evidence) {
            for (number, line) in (1_u32..).zip(evidence.lines()) {
                let inside = cite.lines.is_none_or(|(a, b)| (a..=b).contains(&number));
                // What was removed supports nothing; its token has no value in it.
                if inside {
                    known.extend(values(line, support.names));
                }
            }
        }
    }
    wanted.is_subset(&known)
}

/// The sentence without its canonical citations, and these.
fn without_citations(sentence: &str) -> (String, Vec<Citation>) {
    let mut plain = String::new();
    let mut cites = Vec::new();
    let mut rest = sentence;
    while let Some(at) = rest.find("[E") {
        plain.push_str(rest.get(..at).unwrap_or(""));
        let tail = rest.get(at..).unwrap_or("");
        let end = tail.find(']').map_or(tail.len(), |n| n.saturating_add(1));
        cites.extend(citations::normalise_field(tail.get(..end).unwrap_or("")));
        rest = tail.get(end..).unwrap_or("");
    }
    plain.push_str(rest);
    (plain, cites)
}

/// The typed values of a text in one form.
fn values(text: &str, names: &[String]) -> BTreeSet<String> {
    let mut pieces: Vec<Piece> = Vec::new();
    slots::words(text, 0, text.len(), &mut pieces);
    let word = |piece: &Piece| text.get(piece.start..piece.end).unwrap_or("");
    let mut found = BTreeSet::new();
    for (n, piece) in pieces.iter().enumerate() {
        let unit = n.checked_add(1).and_then(|next| pieces.get(next)).map(word);
        let own = word(piece);
        match piece.kind {
            Kind::Word => {
                if names.iter().any(|name| name == own) {
                    found.insert(own.to_owned());
                }
            }
            Kind::Number | Kind::Duration => {
                found.extend(quantity(own, unit));
            }
            Kind::Time => {
                found.insert(time_of_day(own));
            }
            Kind::Version | Kind::Id | Kind::Ip | Kind::Path => {
                found.insert(own.trim_start_matches('v').to_owned());
            }
            Kind::Text => {}
        }
    }
    found
}

/// A number with its unit, in milliseconds or bytes where it has one. Numbers of one digit
/// without a unit count things and are no typed values.
fn quantity(word: &str, next: Option<&str>) -> Option<String> {
    let split = word
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(word.len());
    let number: f64 = word.get(..split)?.trim_end_matches('.').parse().ok()?;
    let unit = word.get(split..)?;
    let unit = if unit.is_empty() {
        next.unwrap_or("")
    } else {
        unit
    };
    let (factor, form) = match unit {
        "ns" => (1e-6, "ms"),
        "us" | "\u{b5}s" => (1e-3, "ms"),
        "ms" | "millisecond" | "milliseconds" => (1.0, "ms"),
        "s" | "sec" | "second" | "seconds" => (1e3, "ms"),
        "min" | "m" | "minute" | "minutes" => (6e4, "ms"),
        "h" | "hour" | "hours" => (3.6e6, "ms"),
        "KiB" => (1024.0, "b"),
        "kB" | "KB" => (1e3, "b"),
        "MiB" => (1_048_576.0, "b"),
        "MB" => (1e6, "b"),
        "GiB" => (1_073_741_824.0, "b"),
        "GB" => (1e9, "b"),
        "B" | "byte" | "bytes" => (1.0, "b"),
        "%" | "percent" => (1.0, "%"),
        _ => (1.0, ""),
    };
    if form.is_empty() && word.bytes().filter(u8::is_ascii_digit).count() < 2 {
        return None;
    }
    let value = number * factor;
    Some(format!("{:.3}{form}", value))
}

/// The time of day in UTC to the second, so that spellings and zones compare.
fn time_of_day(word: &str) -> String {
    let clock = word.rsplit('T').next().unwrap_or(word);
    let (clock, offset) = match clock.rfind(['+', '-']) {
        Some(at) => (
            clock.get(..at).unwrap_or(""),
            minutes(clock.get(at..).unwrap_or("")),
        ),
        None => (clock, 0),
    };
    let mut parts = clock.trim_end_matches('Z').split(':');
    let mut part = || {
        parts
            .next()
            .and_then(|p| p.split('.').next()?.parse::<i64>().ok())
    };
    let (Some(hour), Some(minute)) = (part(), part()) else {
        return word.to_owned();
    };
    let second = part().unwrap_or(0);
    let seconds = hour
        .saturating_mul(60)
        .saturating_add(minute)
        .saturating_sub(offset)
        .saturating_mul(60)
        .saturating_add(second)
        .rem_euclid(86_400);
    format!("time {seconds}")
}

/// `+02:00` in minutes.
fn minutes(offset: &str) -> i64 {
    let sign = if offset.starts_with('-') { -1 } else { 1 };
    let mut parts = offset.trim_start_matches(['+', '-']).split(':');
    let mut part = || {
        parts
            .next()
            .and_then(|p| p.parse::<i64>().ok())
            .unwrap_or(0)
    };
    sign * part().saturating_mul(60).saturating_add(part())
}

#[cfg(test)]
mod tests {
    use super::{Support, check};
    use crate::model::EvidenceId;

    fn run(summary: &str) -> (String, Vec<String>) {
        let evidence = [crate::admit::tests::logs(&[
            "2026-01-31T08:00:05Z ERROR checkout-1 till timed out after 3s, version 1.4.2",
            "see http://wiki.lan/till for code 503",
        ])];
        let support = Support {
            evidence: &evidence,
            cited: &[EvidenceId(1)],
            facts: &["the error rate rose to 42 %"],
            names: &["till".to_owned(), "bank".to_owned()],
        };
        let (text, events) = check(summary, &support);
        (text, events.into_iter().map(|e| e.code).collect())
    }

    #[test]
    fn r10_5_claims_whose_values_are_in_the_cited_range_stand() {
        for claim in [
            "The till timed out.",
            "It took 3000 ms with 1.4.2 [E1:1].",
            "At 10:00:05+02:00 it answered 503.",
            "The rate rose to 42%.",
            "It happened at 2026-01-31T08:00:05Z. It was over.",
        ] {
            let (text, codes) = run(claim);
            assert_eq!(text, claim);
            assert!(codes.is_empty(), "{claim}: {codes:?}");
        }
    }

    #[test]
    fn r10_5_a_claim_with_a_value_from_nowhere_is_marked_and_kept() {
        for (claim, want) in [
            ("The bank failed.", "The bank failed. (unsupported)"),
            ("It took 4 s.", "It took 4 s. (unsupported)"),
            (
                "Version 1.4.3 did it.",
                "Version 1.4.3 did it. (unsupported)",
            ),
            (
                "It answered 503 [E1:1].",
                "It answered 503 [E1:1]. (unsupported)",
            ),
            (
                "It began at 09:00:05Z. The till broke.",
                "It began at 09:00:05Z. (unsupported) The till broke.",
            ),
        ] {
            let (text, codes) = run(claim);
            assert_eq!(text, want);
            assert_eq!(codes, ["claim.unsupported"]);
        }
    }

    #[test]
    fn r10_6_a_link_that_no_evidence_has_is_removed() {
        let (text, codes) = run("Look at http://wiki.lan/till and at https://evil.example/x?d=1.");
        assert_eq!(text, "Look at http://wiki.lan/till and at (link removed).");
        assert_eq!(codes, ["out.url"]);
    }

    #[test]
    fn c41_a_change_that_was_never_read_supports_nothing() {
        let (text, codes) = run("Deploy deadbeef1234 broke it.");
        assert_eq!(text, "Deploy deadbeef1234 broke it. (unsupported)");
        assert_eq!(codes, ["claim.unsupported"]);
    }
}
