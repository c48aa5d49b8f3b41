//! A line that is a JSON record is one after redaction too (guardrails 2.3.4).

use serde::de::IgnoredAny;

/// Range of the record of a line: from its first bracket to its end.
pub(super) fn record(line: &str, content: usize) -> Option<(usize, usize)> {
    let end = line.trim_end().len();
    let start = [0, content].into_iter().find(|&at| {
        line.get(at..)
            .is_some_and(|rest| rest.starts_with(['{', '[']))
    })?;
    let text = line.get(start..end)?;
    parses(text).then_some((start, end))
}

/// True for one whole JSON value.
pub(super) fn parses(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Walks a record and says of rising offsets whether they stand inside a string.
pub(super) struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    inside: bool,
    escaped: bool,
}

impl<'a> Walk<'a> {
    pub(super) const fn new(text: &'a str, start: usize) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: start,
            inside: false,
            escaped: false,
        }
    }

    /// True when the byte at `at` stands inside a string.
    pub(super) fn is_inside(&mut self, at: usize) -> bool {
        while self.at < at {
            match self.bytes.get(self.at) {
                Some(b'"') if !self.escaped => self.inside = !self.inside,
                Some(b'\\') if self.inside && !self.escaped => {
                    self.escaped = true;
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            self.escaped = false;
            self.at += 1;
        }
        self.inside
    }
}

/// A bare value holds the bytes of numbers and words.
pub(super) const fn is_bare(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use super::{Walk, record};

    #[test]
    fn a_record_is_found_behind_a_prefix_and_only_when_it_parses() {
        assert_eq!(record("{\"a\":1}\n", 0), Some((0, 7)));
        assert_eq!(record("x F {\"a\":1}", 4), Some((4, 11)));
        assert_eq!(record("{\"a\":1", 0), None);
        assert_eq!(record("[main] up", 0), None);
    }

    #[test]
    fn offsets_inside_strings_are_told_from_bare_ones() {
        let text = "{\"a\\\"\":12,\"b\":\"x\"}";
        let mut walk = Walk::new(text, 0);
        assert!(walk.is_inside(2));
        assert!(!walk.is_inside(text.find("12").unwrap()));
        assert!(walk.is_inside(text.find("x\"").unwrap()));
    }
}
