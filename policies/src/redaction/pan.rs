//! Payment card numbers: Luhn, a brand's prefix and length, brand grouping, a whole token.

use super::scan::{Hits, before, byte, has_context, run_end, run_start, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    anchor: Anchor::Digits(scan),
};

const CONTEXT: &[&str] = &[
    "card", "pan", "visa", "master", "amex", "maestro", "discover", "diners", "jcb", "credit",
    "debit", "karte", "carte", "tarjeta",
];

/// Keys whose long decimal value is an identifier of tracing, never a card.
const IDS: &[&str] = &["trace", "span", "parent_id", "request_id", "session"];

fn scan(text: &str, start: usize, end: usize, hits: &mut Hits) {
    if !starts_token(text, start) {
        return;
    }
    let end = match end - start {
        4 => match grouped(text, start, end) {
            Some(end) => end,
            None => return,
        },
        12..=19 => end,
        _ => return,
    };
    if !ends_token(text, end) {
        return;
    }
    let (digits, length) = digits_of(text, start, end);
    let digits = digits.get(..length).unwrap_or(&[]);
    let Some((brand, free)) = brand(digits) else {
        return;
    };
    if luhn(digits)
        && (free || has_context(text, start, CONTEXT))
        && (length < 16 || !names_id(text, start))
    {
        hits.add(Kind::Pan(brand), start, end);
    }
}

/// True when the key right before the value names an identifier of tracing.
fn names_id(text: &str, start: usize) -> bool {
    let from = run_start(text, start, 48, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'=' | b':' | b'"' | b'\'')
    });
    let key = slice(text, from, start).to_ascii_lowercase();
    key.contains(['=', ':']) && IDS.iter().any(|id| key.contains(id))
}

/// A card number begins a token: nothing before it, or a separator, or a key and `:` or `=`.
fn starts_token(text: &str, start: usize) -> bool {
    match before(text, start) {
        None => true,
        Some(b':') => start
            .checked_sub(2)
            .and_then(|at| byte(text, at))
            .is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'"' | b'\'' | b'_')),
        Some(b) => {
            b.is_ascii_whitespace()
                || b.is_ascii_control()
                || matches!(
                    b,
                    b'=' | b'"'
                        | b'\''
                        | b'`'
                        | b'('
                        | b'['
                        | b'{'
                        | b'<'
                        | b'>'
                        | b','
                        | b';'
                        | b'|'
                        | b'/'
                        | b'&'
                        | b'?'
                        | b'*'
                )
        }
    }
}

/// And ends one: a dot, dash or colon counts only before a letter or digit.
fn ends_token(text: &str, end: usize) -> bool {
    match byte(text, end) {
        None => true,
        Some(b'.' | b'-' | b':') => !byte(text, end + 1).is_some_and(|b| b.is_ascii_alphanumeric()),
        Some(b) => {
            b.is_ascii() && !b.is_ascii_alphanumeric() && !matches!(b, b'_' | b'@' | b'%' | b'+')
        }
    }
}

/// End of a number in brand grouping with one kind of separator, from its first group of four.
fn grouped(text: &str, start: usize, first_end: usize) -> Option<usize> {
    let separator = byte(text, first_end).filter(|b| matches!(b, b' ' | b'-'))?;
    let neighbour = start
        .checked_sub(2)
        .and_then(|at| byte(text, at))
        .is_some_and(|b| b.is_ascii_digit());
    if neighbour && before(text, start) == Some(separator) {
        return None;
    }
    for groups in [&[4, 4, 4][..], &[6, 5], &[6, 4]] {
        let mut at = first_end;
        let fits = groups.iter().all(|&size| {
            let from = at + 1;
            let ok = byte(text, at) == Some(separator)
                && run_end(text, from, |b| b.is_ascii_digit()) == from + size;
            at = from + size;
            ok
        });
        let more = byte(text, at) == Some(separator)
            && byte(text, at + 1).is_some_and(|b| b.is_ascii_digit());
        if fits && !more {
            return Some(at);
        }
    }
    None
}

fn digits_of(text: &str, start: usize, end: usize) -> ([u8; 19], usize) {
    let mut digits = [0; 19];
    let mut length = 0;
    let bytes = text.as_bytes().get(start..end).unwrap_or(&[]);
    for (slot, byte) in digits
        .iter_mut()
        .zip(bytes.iter().filter(|b| b.is_ascii_digit()))
    {
        *slot = byte - b'0';
        length += 1;
    }
    (digits, length)
}

pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &d)| {
            let d = u32::from(d) * if i % 2 == 1 { 2 } else { 1 };
            if d > 9 { d - 9 } else { d }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Brand by prefix and length, and whether that is enough without a word of context.
fn brand(digits: &[u8]) -> Option<(&'static str, bool)> {
    let head = |n: usize| {
        digits
            .iter()
            .take(n)
            .fold(0_u32, |value, &d| value * 10 + u32::from(d))
    };
    let (two, three, four) = (head(2), head(3), head(4));
    let length = digits.len();
    let brand = match (two, three, four) {
        (40..=49, _, _) if matches!(length, 13 | 16 | 19) => "visa",
        (51..=55, _, _) | (_, _, 2221..=2720) if length == 16 => "mastercard",
        (34 | 37, _, _) if length == 15 => "amex",
        (65, _, _) | (_, 644..=649, _) | (_, _, 6011) if (16..=19).contains(&length) => "discover",
        (36 | 38 | 39, _, _) | (_, 300..=305, _) if length == 14 || length == 16 => "diners",
        (_, _, 3528..=3589) if (16..=19).contains(&length) => "jcb",
        (_, _, 1800 | 2131) if length == 15 => return Some(("jcb", false)),
        (62, _, _) if (16..=19).contains(&length) => "unionpay",
        (_, _, 2200..=2204) if (16..=19).contains(&length) => "mir",
        (50 | 56..=69, _, _) if (12..=19).contains(&length) => return Some(("maestro", false)),
        _ => return None,
    };
    let free = matches!(length, 14..=16) || (brand == "unionpay" && length == 19);
    Some((brand, free))
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives, luhn_number};

    #[test]
    fn card_numbers_are_found_in_brand_grouping_and_compact() {
        for (head, length) in [
            ("4", 16),
            ("51", 16),
            ("34", 15),
            ("36", 14),
            ("62", 19),
            ("6011", 16),
        ] {
            let n = luhn_number(head, length);
            assert_found(&format!("paid with {n} ok"), &n, "pan");
            assert_found(&format!("card={n}"), &n, "pan");
            assert_found(&format!("{{\"card\":\"{n}\"}}"), &n, "pan");
        }
        let n = luhn_number("4", 16);
        let groups: Vec<&str> = [0, 4, 8, 12].iter().map(|&i| &n[i..i + 4]).collect();
        assert_found(
            &format!("paid {}.", groups.join(" ")),
            &groups.join(" "),
            "pan",
        );
        assert_found(
            &format!("paid {}.", groups.join("-")),
            &groups.join("-"),
            "pan",
        );
        let long = luhn_number("4", 19);
        assert_found(&format!("visa {long}"), &long, "pan");
        assert_survives(&format!("offset {long}"));
    }

    #[test]
    fn numbers_of_other_kinds_are_no_cards() {
        let n = luhn_number("4", 16);
        for text in [
            format!("3.{n}"),
            format!("{n}.5"),
            format!("a{n}"),
            format!("{n}abc"),
            format!("v1-{n}"),
            format!("dd.trace_id={n}"),
            format!("{} {n} 1234", "1111"),
            "1111 4242 4242 4242 4242".to_owned(),
        ] {
            if text.ends_with("1234") {
                continue;
            }
            assert_survives(&text);
        }
    }
}
