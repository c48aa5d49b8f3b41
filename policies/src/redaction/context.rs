//! What stands before a value: its own key, and words within 32 bytes.

use super::scan::{run_start, slice};

/// Furthest a word of context may stand before its value.
const REACH: usize = 32;
/// Last byte of the closing bracket of a token.
const CLOSING: u8 = 0xba;

/// True when one of `words` is a word, or a segment of a key, within 32 bytes before `at` on the
/// same line. Segments are split at signs and at a lower-case letter before a capital one, so that
/// `customerPhone` holds `phone` and `telemetry` does not hold `tel`. `words` are in lower case.
pub(super) fn has_context(text: &str, at: usize, words: &[&str]) -> bool {
    let bytes = text.as_bytes();
    let from = at.saturating_sub(REACH);
    let window = bytes.get(from..at).unwrap_or(&[]);
    // A token ends the window: what it replaced was longer or shorter, and a word before it must
    // not come within reach by that.
    let stop = |b: &u8| matches!(*b, b'\n' | CLOSING);
    let window = match window.iter().rposition(stop) {
        Some(end) => window.get(end + 1..).unwrap_or(&[]),
        None => window,
    };
    let mut start = 0;
    let mut previous = b' ';
    for (n, &b) in window.iter().chain(b" ").enumerate() {
        let cut = !b.is_ascii_alphanumeric() && b < 0x80;
        let hump = b.is_ascii_uppercase() && previous.is_ascii_lowercase();
        if cut || hump {
            let segment = window.get(start..n).unwrap_or(&[]);
            if is_one_of(segment, words) {
                return true;
            }
            start = n + usize::from(cut);
        }
        previous = b;
    }
    false
}

/// True for a word of the list, also with a plural `s` or a number behind it.
fn is_one_of(segment: &[u8], words: &[&str]) -> bool {
    let digits = segment
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let segment = segment.get(..segment.len() - digits).unwrap_or(&[]);
    segment.len() >= 2
        && words.iter().any(|word| {
            segment.eq_ignore_ascii_case(word.as_bytes())
                || (segment.len() == word.len() + 1
                    && segment.last().is_some_and(|b| matches!(b, b's' | b'S'))
                    && segment
                        .get(..word.len())
                        .is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes())))
        })
}

/// The key right before the value at `at`: `key=`, `key: `, `"key": "`. Empty without one.
pub(super) fn own_key(text: &str, at: usize) -> &str {
    let value = run_start(text, at, 4, |b| matches!(b, b' ' | b'"' | b'\'' | b'\\'));
    let separator = run_start(text, value, 2, |b| matches!(b, b'=' | b':' | b'>'));
    if separator == value {
        return "";
    }
    let end = run_start(text, separator, 4, |b| {
        matches!(b, b' ' | b'"' | b'\'' | b'\\' | b'`')
    });
    let start = run_start(text, end, 48, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
    });
    slice(text, start, end)
}

/// True when the last segment of a key is one of `words`, which are in lower case.
pub(super) fn ends_with_segment(key: &str, words: &[&str]) -> bool {
    words.iter().any(|word| {
        let Some(head) = key.len().checked_sub(word.len()) else {
            return false;
        };
        let tail = key.as_bytes().get(head..).unwrap_or(&[]);
        if !tail.eq_ignore_ascii_case(word.as_bytes()) {
            return false;
        }
        let before = head.checked_sub(1).and_then(|p| key.as_bytes().get(p));
        before.is_none_or(|&b| {
            !b.is_ascii_alphanumeric()
                || (b.is_ascii_lowercase() && tail.first().is_some_and(u8::is_ascii_uppercase))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{ends_with_segment, has_context, own_key};

    #[test]
    fn a_word_of_context_is_a_whole_word_or_a_segment_of_a_key() {
        let found = |text: &str| has_context(text, text.len(), &["tel", "phone"]);
        for text in [
            "tel ",
            "customerPhone=",
            "phone_no: ",
            "PHONES: ",
            "(tel.) ",
            "tel2=",
        ] {
            assert!(found(text), "{text}");
        }
        for text in ["telemetry=", "hotel ", "tel\n", "phonetic ", "0tel "] {
            assert!(!found(text), "{text}");
        }
        assert!(!found(&format!("tel{}", " ".repeat(40))));
    }

    #[test]
    fn the_own_key_of_a_value_is_read_in_every_notation() {
        for text in [
            "a.key=",
            "x a.key: ",
            "{\"a.key\": \"",
            "\\\"a.key\\\":\\\"",
            "a.key => ",
        ] {
            assert_eq!(own_key(text, text.len()), "a.key", "{text}");
        }
        assert_eq!(own_key("some key ", 9), "");
        assert!(ends_with_segment("traceId", &["id"]));
        assert!(ends_with_segment("trace_id", &["id"]));
        assert!(!ends_with_segment("paid", &["id"]));
    }
}
