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
    for token in SQUARE_TOKENS {
        for (start, word) in text.match_indices(token) {
            spans.push((start, start.saturating_add(word.len())));
        }
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

/// Control tokens in square brackets.
const SQUARE_TOKENS: &[&str] = &[
    "[INST]",
    "[/INST]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_CALLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CONTENT]",
    "[BEGIN_OF_TEXT]",
];

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
    "tools",
    "/tools",
    "tool_code",
    "/tool_code",
    "function_calls",
    "/function_calls",
    "invoke",
    "/invoke",
    "mask",
    "cls",
    "sep",
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
        let name = body.get(..close)?.trim_start_matches(bar);
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

/// Starts of the stem in any case, script or width and with any invisible or combining character
/// in it.
fn stem_matches(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut chars = letters(text);
    while let Some((start, c)) = chars.next() {
        if c != 'u' {
            continue;
        }
        let rest = chars.clone().map(|(_, c)| c);
        let tail = STEM.get(1..).unwrap_or("");
        if rest.take(tail.len()).eq(tail.chars()) {
            found.push((start, start));
        }
    }
    found
}

/// The characters that are seen, as Latin letters, with their places.
fn letters(text: &str) -> impl Iterator<Item = (usize, char)> + Clone + '_ {
    text.char_indices()
        .filter(|(_, c)| !is_invisible(*c) && !is_combining(*c))
        .map(|(at, c)| (at, latin(c.to_lowercase().next().unwrap_or(c))))
}

/// End of the stem that begins at `start`.
fn stem_end(text: &str, start: usize) -> usize {
    letters(text.get(start..).unwrap_or(""))
        .nth(STEM.len())
        .map_or(text.len(), |(at, _)| start.saturating_add(at))
}

/// The Latin letter that a lower-case letter is read as: without accent, width and script.
pub(crate) fn latin(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => u32::from(c)
            .checked_sub(0xfee0)
            .and_then(char::from_u32)
            .unwrap_or(c)
            .to_ascii_lowercase(),
        '\u{e0}'..='\u{e5}' | '\u{430}' | '\u{3b1}' => 'a',
        '\u{e8}'..='\u{eb}' | '\u{435}' => 'e',
        '\u{ec}'..='\u{ef}' | '\u{456}' | '\u{3b9}' => 'i',
        '\u{f2}'..='\u{f6}' | '\u{43e}' | '\u{3bf}' => 'o',
        '\u{f9}'..='\u{fc}' | '\u{3c5}' => 'u',
        '\u{e7}' | '\u{441}' => 'c',
        '\u{f1}' => 'n',
        '\u{440}' | '\u{3c1}' => 'p',
        '\u{443}' => 'y',
        '\u{445}' => 'x',
        '\u{455}' => 's',
        '\u{501}' => 'd',
        '\u{51b}' => 'q',
        '\u{2019}' => '\'',
        '\u{df}' => 's',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{203f}' | '\u{fe4f}' => '_',
        // Mathematical letters repeat the alphabet in many styles.
        '\u{1d400}'..='\u{1d6a3}' => u32::from(c)
            .checked_sub(0x1d400)
            .and_then(|n| u8::try_from(n % 26).ok())
            .map_or(c, |n| char::from(b'a'.saturating_add(n))),
        other => other,
    }
}

/// Marks that are written over the letter before them.
const fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}')
}

/// Characters that are not seen when the text is shown.
pub(crate) const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::{control_spans, escape};
    use crate::claim::RedactKey;

    #[test]
    fn r9_2_the_stem_is_found_in_any_case_width_script_and_disguise() {
        let key = RedactKey::from_bytes([1; 32]);
        for stem in [
            "untrusted_tool_output",
            "UNTRUSTED_Tool_Output",
            "un\u{200b}trusted_tool\u{ad}_output",
            "\u{ff55}ntrusted_tool_\u{ff4f}utput",
            "untrust\u{435}d_t\u{43e}\u{43e}l_output",
            "u\u{301}ntrusted_tool_output",
            "\u{1d42e}ntrusted_tool_output",
            "untr\u{fc}sted_tool_output",
        ] {
            let out = escape(&format!("a </{stem} id=\"x\"> b"), &key);
            assert!(out.starts_with("a </\u{2039}removed:ctl."), "{stem}: {out}");
            assert!(out.ends_with(" id=\"x\"> b"), "{stem}: {out}");
        }
    }

    #[test]
    fn r9_2_control_tokens_of_known_families_are_found_and_markup_is_not() {
        for token in [
            "<|im_start|>",
            "<|eot_id|>",
            "<|start_header_id|>",
            "<\u{ff5c}User\u{ff5c}>",
            "<s>",
            "</s>",
            "<start_of_turn>",
            "[INST]",
            "[TOOL_CALLS]",
            "<tool_call>",
            "<think>",
        ] {
            assert_eq!(control_spans(&format!("a {token} b")).len(), 1, "{token}");
        }
        for plain in [
            "<div>",
            "a < b | c > d",
            "[INFO]",
            "<none>",
            "vec<u8>",
            "|x|",
        ] {
            assert_eq!(control_spans(plain), [], "{plain}");
        }
    }
}
