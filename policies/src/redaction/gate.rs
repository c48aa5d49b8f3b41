//! The first look at a line: can anything in it be found at all?
//!
//! Most lines of a log hold no anchor, no escape, no run that decodes and no long number. One pass
//! over the bytes tells them, and they are copied as they are. The gate may let through what the
//! validators then refuse; it must never hold back what they would accept.

use std::sync::LazyLock;

use super::options::Rules;
use super::scan::{is_base64, run_end};
use super::{Anchor, ENTITIES, basen, escapes, phone, secret, unicode};

/// Digits of the shortest number that needs no other anchor.
const MIN_DIGITS: u32 = 9;
/// Shortest row of letters and digits that can be an account number or the head of a token.
const MIN_ROW: u32 = 12;
/// Letters of the shortest random string.
const MIN_RANDOM: usize = 32;
/// Letters of a literal that are compared.
const DEPTH: usize = 4;
/// Literals share as many rows of bits.
const ROWS: usize = 16;

/// Signs of which one is enough.
const SIGN: u8 = 1;
const DIGIT: u8 = 2;
/// Stands between the groups of a number.
const BETWEEN: u8 = 4;
const ROW: u8 = 8;

struct Tables {
    /// For every byte the rows of literals that have it at each of the first letters; a cleared
    /// bit is a match.
    literals: [u64; 256],
    classes: [u8; 256],
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let mut words: Vec<&str> = Vec::new();
    for entity in ENTITIES {
        if let Anchor::Literals(literals, _) = &entity.anchor {
            words.extend(literals.iter());
        }
    }
    // How the header of a token begins is too common in words: `has_run` looks for it.
    words.retain(|word| word.len() > 2 || word.bytes().any(|b| !b.is_ascii_lowercase()));
    words.extend(secret::stems());
    words.extend(phone::CONTEXT);
    words.sort_by_key(|word| word.to_ascii_lowercase());
    let mut literals = [u64::MAX; 256];
    for (index, word) in words.iter().enumerate() {
        let row = index * ROWS / words.len().max(1);
        for place in 0..DEPTH {
            let bit = 1_u64 << (place * ROWS + row);
            let letter = word.as_bytes().get(place);
            for (byte, slot) in (0..=255_u8).zip(literals.iter_mut()) {
                // Behind the end of a short literal any byte may stand.
                if letter.is_none_or(|l| l.eq_ignore_ascii_case(&byte)) {
                    *slot &= !bit;
                }
            }
        }
    }
    let mut classes = [0; 256];
    for (byte, slot) in (0..=255_u8).zip(classes.iter_mut()) {
        let sign = unicode::is_special(byte) || matches!(byte, b'@' | b'\\' | b'%' | b'&' | b'+');
        let bits = [
            (sign, SIGN),
            (byte.is_ascii_digit(), DIGIT),
            (matches!(byte, b' ' | b'-'), BETWEEN),
            (is_base64(byte), ROW),
        ];
        *slot = bits.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum();
    }
    Tables { literals, classes }
});

/// True when something can be found in `line`.
pub(super) fn is_flagged(line: &str, rules: &Rules) -> bool {
    if rules.is_strict() || rules.has_packs() || rules.terms().is_some() {
        return true;
    }
    let tables = &*TABLES;
    let bytes = line.as_bytes();
    // The time in front of most lines is no number.
    let stamped = matches!(
        bytes,
        [
            b'0'..=b'9',
            _,
            _,
            _,
            b'-',
            _,
            _,
            b'-',
            _,
            _,
            b'T' | b' ',
            ..
        ]
    );
    let skipped = if stamped { 11 } else { 0 };
    let mut state = u64::MAX;
    let mut matched = u64::MAX;
    let mut classes = 0;
    let (mut digits, mut most_digits) = (0_u32, 0_u32);
    let (mut row, mut longest) = (0_u32, 0_u32);
    for &byte in bytes.get(skipped..).unwrap_or(&[]) {
        let at = usize::from(byte);
        let class = tables.classes.get(at).copied().unwrap_or(SIGN);
        state = (state << ROWS) | tables.literals.get(at).copied().unwrap_or(0);
        matched &= state | NOT_LAST;
        classes |= class;
        // A number goes on over its separators and ends at any other byte.
        digits = if class & DIGIT != 0 {
            digits + 1
        } else if class & BETWEEN != 0 {
            digits
        } else {
            0
        };
        most_digits = most_digits.max(digits);
        row = if class & ROW != 0 { row + 1 } else { 0 };
        longest = longest.max(row);
    }
    classes & SIGN != 0
        || matched | NOT_LAST != u64::MAX
        || most_digits >= MIN_DIGITS
        || (longest >= MIN_ROW && has_run(line))
        || has_array(bytes)
        || escapes::may_have(line)
}

/// Bits of the states in which a literal is not complete.
const NOT_LAST: u64 = (1 << (ROWS * (DEPTH - 1))) - 1;

/// A row that an account number or a random string could be, or that decodes to text.
fn has_run(line: &str) -> bool {
    let mut at = 0;
    while at < line.len() {
        let end = run_end(line, at, is_base64);
        let row = line.as_bytes().get(at..end).unwrap_or(&[]);
        let account = matches!(row, [a, b, b'0'..=b'9', b'0'..=b'9', ..]
            if a.is_ascii_alphabetic() && b.is_ascii_alphabetic());
        let mixed = row.len() >= MIN_RANDOM
            && row.iter().any(u8::is_ascii_uppercase)
            && row
                .iter()
                .any(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let token = line.as_bytes().get(end) == Some(&b'.')
            && row
                .windows(2)
                .any(|pair| matches!(pair, [b'e', b'w'..=b'z']));
        if account || mixed || token {
            return true;
        }
        at = end + 1;
    }
    !basen::runs(line, |_, _| true).is_empty()
}

/// Numbers in brackets with commas between.
fn has_array(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'[', bytes).any(|at| {
        let rest = bytes.get(at + 1..).unwrap_or(&[]);
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        (1..=3).contains(&digits) && rest.get(digits) == Some(&b',')
    })
}

#[cfg(test)]
mod tests {
    use super::is_flagged;
    use crate::redaction::generate::{FRAMES, KINDS, Rng, VIEWS, plant};
    use crate::redaction::options::Rules;
    use crate::redaction::redact;
    use crate::redaction::testing::key;

    #[test]
    fn every_line_in_which_something_is_found_is_let_through() {
        let rules = Rules::default();
        let mut rng = Rng::new(31);
        for kind in KINDS {
            for frame in FRAMES.iter().filter(|f| !f.cuts) {
                for view in VIEWS.iter().map(Some).chain([None; 8]) {
                    let planted = plant(kind, &mut rng);
                    let line = match view {
                        Some(view) => format!("see {} now", view.encode(&planted.line(), &mut rng)),
                        None => planted.line(),
                    };
                    for line in frame.wrap(&line, &mut rng).split_inclusive('\n') {
                        let found = redact(line, &key()).1.total() > 0;
                        assert!(!found || is_flagged(line, &rules), "{line}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_line_of_words_is_not_let_through() {
        assert!(!is_flagged("a b c d", &Rules::default()));
        assert!(!is_flagged("", &Rules::default()));
    }
}
