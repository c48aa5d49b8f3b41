//! A JSON array of bytes, which journals write for text that is not clean.

use super::basen::{Content, Run};
use super::scan::{byte, run_end, slice};

/// Shortest array that is decoded.
const MIN_BYTES: usize = 8;

/// Arrays of numbers below 256 that spell text.
pub(super) fn runs(text: &str, wanted: impl Fn(usize, usize) -> bool, found: &mut Vec<Run>) {
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'[', text.as_bytes().get(from..).unwrap_or(&[])) {
        let start = from + at;
        from = start + 1;
        let Some((bytes, end)) = read(text, start + 1) else {
            continue;
        };
        from = end;
        let content = String::from_utf8_lossy(&bytes);
        let good = content
            .chars()
            .filter(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r'))
            .filter(|&c| c != '\u{fffd}')
            .map(char::len_utf8)
            .sum::<usize>();
        if good * 10 >= bytes.len() * 9 && wanted(start, end) {
            found.push(Run {
                start,
                end,
                class: "bytes",
                decoded: bytes.len() as u64,
                content: Content::Text(content.into_owned()),
            });
        }
    }
}

/// The numbers from `at` to the closing bracket, and the end behind it.
fn read(text: &str, mut at: usize) -> Option<(Vec<u8>, usize)> {
    let mut bytes = Vec::new();
    loop {
        let start = run_end(text, at, |b| matches!(b, b' ' | b'\n' | b'\t' | b'\r'));
        let end = run_end(text, start, |b| b.is_ascii_digit());
        if end - start > 3 {
            return None;
        }
        bytes.push(slice(text, start, end).parse().ok()?);
        let next = run_end(text, end, |b| matches!(b, b' ' | b'\n' | b'\t' | b'\r'));
        match byte(text, next)? {
            b',' => at = next + 1,
            b']' if bytes.len() >= MIN_BYTES => return Some((bytes, next + 1)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::runs;
    use crate::redaction::basen::Content;

    #[test]
    fn an_array_of_bytes_is_text_and_an_array_of_numbers_is_not() {
        let spell = |text: &str| format!("{:?}", text.as_bytes());
        let find = |text: &str| {
            let mut found = Vec::new();
            runs(text, |_, _| true, &mut found);
            found
        };
        let text = format!("\"MESSAGE\":{},", spell("password=x1"));
        let found = find(&text);
        assert_eq!(found[0].content, Content::Text("password=x1".to_owned()));
        assert_eq!((found[0].start, found[0].end), (10, text.len() - 1));
        for text in [
            "[1,2,3,4,5,6,7,8,9]",
            "[300,301]",
            "[pid] [1]",
            "[12, 13",
            &spell("short"),
        ] {
            assert!(find(text).is_empty(), "{text}");
        }
    }
}
