//! The wrapping of untrusted text in a prompt (guardrails 9).
//!
//! This module covers the boundary mode. The tag stem and control tokens are removed from the text
//! before it is wrapped, so that nothing inside can end the wrapper or open a turn.

use std::borrow::Cow;

use crate::claim::{Provenance, RedactKey};
use crate::model::EvidenceId;
use crate::redaction::token;

/// Name of the tag.
const STEM: &str = "untrusted_tool_output";

/// Wraps `body`, whose lines end with line feeds.
pub(crate) fn wrap(
    boundary: &str,
    evidence: EvidenceId,
    source: &str,
    provenance: Provenance,
    body: &str,
) -> String {
    let source: String = source
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        .collect();
    let provenance = provenance.as_str();
    format!(
        "<{STEM} id=\"{boundary}\" evidence=\"{evidence}\" source=\"{source}\" \
         provenance=\"{provenance}\">\n{body}</{STEM} id=\"{boundary}\">"
    )
}

/// Removes the tag stem, in any letter case and behind any invisible characters, and control
/// tokens of known model families. What is removed leaves a placeholder.
pub(crate) fn escape(text: &str, key: &RedactKey) -> String {
    let mut out = Cow::Borrowed(text);
    let mark = token::placeholder(key, "removed:ctl");
    for (start, end) in control_spans(text).into_iter().rev() {
        out.to_mut().replace_range(start..end, &mark);
    }
    out.into_owned()
}

/// Like [`escape`] for a line that was escaped when it was admitted: only the stem is looked for,
/// because an evidence line can be put together from several fields.
pub(crate) fn defuse_tag(text: &str) -> Cow<'_, str> {
    let spans = control_spans(text);
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = text.to_owned();
    for (start, end) in spans.into_iter().rev() {
        out.replace_range(start..end, "(removed)");
    }
    Cow::Owned(out)
}

/// Spans of control tokens in `text`, in order, not overlapping.
pub(crate) fn control_spans(text: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    for (start, _) in text.match_indices('<') {
        if let Some(end) = tag_end(text, start) {
            spans.push((start, end));
        }
    }
    for (start, word) in text
        .match_indices("[INST]")
        .chain(text.match_indices("[/INST]"))
    {
        spans.push((start, start.saturating_add(word.len())));
    }
    for (start, _) in stem_matches(text) {
        spans.push((start, stem_end(text, start)));
    }
    spans.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (start, end) in spans {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// Names of angle-bracket control tokens that carry no bars.
const PLAIN_TOKENS: &[&str] = &[
    "s",
    "/s",
    "bos",
    "eos",
    "pad",
    "unk",
    "tool_call",
    "/tool_call",
    "tool_response",
    "/tool_response",
    "function_call",
    "/function_call",
    "start_of_turn",
    "end_of_turn",
    "think",
    "/think",
    "<sys>",
    "</sys>",
    "<SYS>",
];

/// If a control token begins at the `<` at `start`, its end.
fn tag_end(text: &str, start: usize) -> Option<usize> {
    let rest = text.get(start.saturating_add(1)..)?;
    let window: String = rest.chars().take(64).collect();
    let body: String = window
        .chars()
        .filter(|c| !is_invisible(*c))
        .collect::<String>()
        .to_ascii_lowercase();
    let bar = |c: char| c == '|' || c == '\u{ff5c}';
    let inner_end = if body.starts_with(bar) {
        let close = body.char_indices().skip(1).find(|&(_, c)| bar(c))?.0;
        let name = body.get(1..close)?.trim_start_matches(bar);
        let named = !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | ' ' | '\u{2581}' | '-' | '/'));
        if !named {
            return None;
        }
        window.find('>')?
    } else {
        let close = window.find('>')?;
        let name: String = body.chars().take_while(|&c| c != '>').collect();
        if !PLAIN_TOKENS.contains(&name.trim()) {
            return None;
        }
        close
    };
    Some(start.saturating_add(inner_end).saturating_add(2))
}

/// Starts of the stem, any case; invisible characters are skipped when the plain text has none.
fn stem_matches(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut chars = text.char_indices().filter(|(_, c)| !is_invisible(*c));
    while let Some((start, c)) = chars.next() {
        if !c.eq_ignore_ascii_case(&'u') {
            continue;
        }
        let rest = chars.clone().map(|(_, c)| c.to_ascii_lowercase());
        let tail = STEM.get(1..).unwrap_or("");
        if rest.take(tail.len()).eq(tail.chars()) {
            found.push((start, start));
        }
    }
    found
}

/// End of the stem that begins at `start`.
fn stem_end(text: &str, start: usize) -> usize {
    let mut seen = 0;
    for (at, c) in text.get(start..).unwrap_or("").char_indices() {
        if seen == STEM.len() {
            return start.saturating_add(at);
        }
        if !is_invisible(c) {
            seen += 1;
        }
    }
    text.len()
}

/// Characters that are not seen when the text is shown.
pub(crate) const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}
