//! International bank account numbers: structure of the country, mod 97, compact or in fours.

use std::sync::LazyLock;

use super::scan::{Hits, before, byte};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "iban",
    anchor: Anchor::Digits(scan),
};

/// Longest number of any country.
const MAX: usize = 34;

/// Country and the classes of its account part, one letter each: `n`, `a` or `c`.
pub(super) static COUNTRIES: LazyLock<Vec<([u8; 2], Vec<u8>)>> = LazyLock::new(|| {
    include_str!("data/iban.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (country, structure) = line.split_once(' ')?;
            let mut classes = Vec::new();
            let mut count = 0_usize;
            for b in structure.bytes() {
                if b.is_ascii_digit() {
                    count = count * 10 + usize::from(b - b'0');
                } else {
                    classes.resize(classes.len() + count, b);
                    count = 0;
                }
            }
            Some((country.as_bytes().try_into().ok()?, classes))
        })
        .collect()
});

fn scan(text: &str, digits: usize, digits_end: usize, hits: &mut Hits) {
    // Two letters of one case stand before the check digits, and nothing before them.
    let Some(start) = digits.checked_sub(2) else {
        return;
    };
    let (Some(a), Some(b)) = (byte(text, start), byte(text, start + 1)) else {
        return;
    };
    if !a.is_ascii_alphabetic()
        || !b.is_ascii_alphabetic()
        || a.is_ascii_lowercase() != b.is_ascii_lowercase()
        || digits_end - digits < 2
        || before(text, start).is_some_and(|b| b.is_ascii_alphanumeric() || b >= 0x80)
    {
        return;
    }
    let country = [a.to_ascii_uppercase(), b.to_ascii_uppercase()];
    let Some((_, classes)) = COUNTRIES.iter().find(|(c, _)| *c == country) else {
        return;
    };
    if let Some(end) = read(text, start, classes, a.is_ascii_lowercase()) {
        hits.add(Kind::Iban, start, end);
    }
}

/// Reads letters and digits of the country's classes, compact or with one separator after each
/// group of four, and checks them.
fn read(text: &str, start: usize, classes: &[u8], lower: bool) -> Option<usize> {
    let separator = byte(text, start + 4).filter(|b| matches!(b, b' ' | b'-'));
    let mut compact = [0_u8; MAX];
    let mut at = start;
    let whole = b"aann".iter().chain(classes);
    for (n, (&class, slot)) in whole.zip(compact.iter_mut()).enumerate() {
        if n > 0 && n % 4 == 0 && separator.is_some() {
            if byte(text, at) != separator {
                return None;
            }
            at += 1;
        }
        let b = byte(text, at)?;
        let fits = match class {
            b'n' => b.is_ascii_digit(),
            b'a' => b.is_ascii_alphabetic(),
            _ => b.is_ascii_alphanumeric(),
        };
        if !fits || (b.is_ascii_alphabetic() && b.is_ascii_lowercase() != lower) {
            return None;
        }
        *slot = b.to_ascii_uppercase();
        at += 1;
    }
    let glued = byte(text, at).is_some_and(|b| b.is_ascii_alphanumeric() || b >= 0x80);
    let length = classes.len() + 4;
    (!glued && remainder(compact.get(..length)?) == 1).then_some(at)
}

/// The number with its first four letters last, letters as 10 to 35, modulo 97.
pub(super) fn remainder(compact: &[u8]) -> u32 {
    let (head, tail) = compact.split_at_checked(4).unwrap_or((compact, &[]));
    tail.iter().chain(head).fold(0, |rest, &b| {
        let value = char::from(b).to_digit(36).unwrap_or(0);
        (rest * if value > 9 { 100 } else { 10 } + value) % 97
    })
}

#[cfg(test)]
mod tests {
    use super::{COUNTRIES, MAX};
    use crate::redaction::testing::{assert_found, assert_survives, iban};

    #[test]
    fn every_country_has_a_structure_that_fits() {
        assert!(COUNTRIES.len() > 85);
        for (country, classes) in COUNTRIES.iter() {
            assert!((11..=MAX - 4).contains(&classes.len()), "{country:?}");
        }
    }

    #[test]
    fn c21_account_numbers_are_found_compact_and_grouped_beside_words() {
        for (country, body) in [
            ("DE", "370400440532013000"),
            ("NL", "ABNA0417164300"),
            ("NO", "86011117947"),
        ] {
            let n = iban(country, body);
            assert_found(&format!("to {n} today"), &n, "iban");
            assert_found(&format!("IBAN {n} BIC"), &n, "iban");
            assert_found(&format!("iban={n};"), &n, "iban");
            let groups: Vec<&str> = n
                .as_bytes()
                .chunks(4)
                .map(|c| std::str::from_utf8(c).unwrap())
                .collect();
            let spaced = groups.join(" ");
            assert_found(&format!("to {spaced} today"), &spaced, "iban");
            let lower = n.to_lowercase();
            assert_found(&format!("to {lower}."), &lower, "iban");
        }
    }

    #[test]
    fn a_wrong_check_number_structure_or_length_is_no_account() {
        let n = iban("DE", "370400440532013000");
        assert_survives(&n.replace("0532", "0533"));
        assert_survives(&n[..20]);
        assert_survives(&format!("x{n}"));
        assert_survives(&iban("DE", "37040044053201300A"));
        assert_survives(&n.replacen("DE", "dE", 1));
    }
}
