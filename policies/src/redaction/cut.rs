//! Where the source itself cut the text (guardrails 2.1.6): the head of a key is a secret too.

use super::keys;
use super::scan::{Hits, before, is_word, slice};

/// Lengths at which loggers and collectors cut.
const CAPS: &[usize] = &[
    255, 256, 500, 512, 1000, 1023, 1024, 2000, 2047, 2048, 4000, 4095, 4096, 8000, 8191, 8192,
    10000, 16000, 16383, 16384, 32000, 32767, 32768, 65535, 65536,
];
/// What they put where they cut.
const MARKS: &[&str] = &[
    "...",
    "\u{2026}",
    "[truncated]",
    "(truncated)",
    "<truncated>",
    "[...]",
    "[cut]",
    "truncated)",
    "[snip]",
];

/// End of the text before the mark of a cut; `None` when nothing says that it was cut.
fn end(text: &str) -> Option<usize> {
    let whole = text.trim_end();
    let quotes = whole.trim_end_matches(['"', '\'', '}', ']']);
    for text in [whole, quotes] {
        if let Some(mark) = MARKS.iter().find(|m| text.ends_with(**m)) {
            let text = slice(text, 0, text.len() - mark.len());
            return Some(text.trim_end_matches(['.', ' ', '[', '(', '<']).len());
        }
    }
    CAPS.contains(&whole.len()).then_some(whole.len())
}

/// Adds the unfinished last token of a text that was cut, when a key could begin like it.
pub(super) fn scan(text: &str, hits: &mut Hits) {
    let Some(end) = end(text) else { return };
    let head = slice(text, 0, end);
    let start = head
        .rfind(|c: char| {
            c.is_whitespace()
                || matches!(
                    c,
                    '"' | '\'' | '=' | ':' | ',' | ';' | '(' | '<' | '>' | '[' | '{' | '/' | '@'
                )
        })
        .map_or(0, |n| {
            n + head
                .get(n..)
                .and_then(|t| t.chars().next())
                .map_or(1, char::len_utf8)
        });
    if before(text, start).is_some_and(is_word) {
        return;
    }
    if let Some(kind) = keys::begins_like(slice(text, start, end)) {
        hits.add(
            kind,
            start,
            text.trim_end().len().max(end).min(whole_end(text, end)),
        );
    }
}

/// The mark of the cut goes with the token only when it is glued to it.
fn whole_end(text: &str, end: usize) -> usize {
    super::scan::run_end(text, end, |b| {
        !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'}' | b']')
    })
}

#[cfg(test)]
mod tests {
    use super::end;

    #[test]
    fn marks_and_known_lengths_say_that_a_text_was_cut() {
        assert_eq!(end("abc..."), Some(3));
        assert_eq!(end("abc\u{2026}\n"), Some(3));
        assert_eq!(end("abc [truncated]"), Some(3));
        assert_eq!(end("{\"a\":\"abc...\"}"), Some(9));
        assert_eq!(end(&"x".repeat(1024)), Some(1024));
        assert_eq!(end("abc"), None);
    }
}
