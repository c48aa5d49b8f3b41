//! Payment card numbers: Luhn, a brand's prefix and length, brand grouping, a whole token.

use std::sync::LazyLock;

use super::context::{has_context, own_key};
use super::scan::{Hits, before, byte, run_end};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "pan",
    anchor: Anchor::Digits(scan),
};

const CONTEXT: &[&str] = &[
    "card",
    "cardnumber",
    "cardno",
    "cc",
    "ccnumber",
    "ccnum",
    "pan",
    "visa",
    "master",
    "mastercard",
    "amex",
    "maestro",
    "discover",
    "diners",
    "jcb",
    "unionpay",
    "rupay",
    "mir",
    "credit",
    "debit",
    "creditcard",
    "karte",
    "kreditkarte",
    "carte",
    "tarjeta",
    "carta",
];

/// Segments of keys whose long decimal value is an identifier of machines, never a card.
const IDS: &[&str] = &[
    "trace",
    "traceid",
    "span",
    "spanid",
    "parent",
    "request",
    "requestid",
    "session",
    "sessionid",
    "correlation",
    "inode",
    "block",
    "blk",
    "offset",
    "resourceversion",
    "revision",
    "generation",
    "seq",
    "sequence",
    "lsn",
    "zxid",
    "xid",
    "cursor",
    "ts",
    "timestamp",
    "epoch",
    "nanos",
    "hash",
];

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
    // The sum is cheaper than the table and refuses nine numbers of ten.
    if !luhn(digits) {
        return;
    }
    let Some((brand, free)) = brand(digits) else {
        return;
    };
    if (end - start == length || is_customary(brand, length, text, start))
        && (free || has_context(text, start, CONTEXT))
        && !names_id(text, start)
    {
        hits.add(Kind::Pan(brand), start, end);
    }
}

/// True when the key right before the value names an identifier of machines.
fn names_id(text: &str, start: usize) -> bool {
    let key = own_key(text, start);
    !key.is_empty() && has_context(key, key.len(), IDS)
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
    for groups in [&[4, 4, 4, 3][..], &[4, 4, 4], &[6, 5], &[6, 4]] {
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

/// American Express cuts into 4, 6 and 5, Diners into 4, 6 and 4, all others into fours.
fn is_customary(brand: &str, length: usize, text: &str, start: usize) -> bool {
    let six = run_end(text, start + 5, |b| b.is_ascii_digit()) == start + 11;
    six == (brand == "amex" || (brand == "diners" && length == 14))
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

/// Prefixes of one brand at the lengths of a mask.
struct Range {
    brand: &'static str,
    first: u32,
    last: u32,
    digits: usize,
    lengths: u32,
    free: bool,
}

static RANGES: LazyLock<Vec<Range>> = LazyLock::new(|| {
    include_str!("data/iin.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut fields = line.split(' ');
            let (brand, first, last) = (fields.next()?, fields.next()?, fields.next()?);
            let mut lengths = 0;
            for part in fields.next()?.split(',') {
                let (low, high) = part.split_once('-').unwrap_or((part, part));
                for n in low.parse::<u32>().ok()?..=high.parse().ok()? {
                    lengths |= 1_u32.checked_shl(n).unwrap_or(0);
                }
            }
            Some(Range {
                brand,
                first: first.parse().ok()?,
                last: last.parse().ok()?,
                digits: first.len(),
                lengths,
                free: fields.next()? == "free",
            })
        })
        .collect()
});

/// Brand by prefix and length, and whether that is enough without a word of context.
fn brand(digits: &[u8]) -> Option<(&'static str, bool)> {
    let length = u32::try_from(digits.len()).ok()?;
    let fits = |range: &&Range| {
        let head = digits
            .iter()
            .take(range.digits)
            .fold(0_u32, |value, &d| value * 10 + u32::from(d));
        range.lengths >> length & 1 == 1 && (range.first..=range.last).contains(&head)
    };
    let mut found = RANGES.iter().filter(fits);
    let first = found.next()?;
    Some((first.brand, first.free))
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
