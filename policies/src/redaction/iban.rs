//! International bank account numbers: length of the country, mod 97, compact or in fours.

use super::scan::{Hits, before, byte, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    anchor: Anchor::Digits(scan),
};

/// Length of the number by country (SWIFT IBAN registry, release 97).
const LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BG", 22),
    ("BH", 22),
    ("BI", 27),
    ("BR", 29),
    ("BY", 28),
    ("CH", 21),
    ("CR", 22),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DJ", 27),
    ("DK", 18),
    ("DO", 28),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FK", 18),
    ("FO", 18),
    ("FR", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GR", 27),
    ("GT", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LC", 32),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("LY", 25),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MK", 19),
    ("MN", 20),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("NI", 28),
    ("NL", 18),
    ("NO", 15),
    ("OM", 23),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("RU", 33),
    ("SA", 24),
    ("SC", 31),
    ("SD", 18),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("SO", 23),
    ("ST", 25),
    ("SV", 28),
    ("TL", 23),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("VG", 24),
    ("XK", 20),
];

fn scan(text: &str, digits_start: usize, _: usize, hits: &mut Hits) {
    let Some(start) = digits_start.checked_sub(2) else {
        return;
    };
    let country = slice(text, start, digits_start).to_ascii_uppercase();
    if country.len() != 2
        || before(text, start).is_some_and(|b| b.is_ascii_alphanumeric() || b >= 0x80)
    {
        return;
    }
    let Some(&(_, length)) = LENGTHS.iter().find(|(c, _)| *c == country) else {
        return;
    };
    if let Some((end, compact)) = read(text, start, length)
        && mod97(&compact)
    {
        hits.add(Kind::Iban, start, end);
    }
}

/// Reads `length` letters and digits, compact or with one space after each group of four.
fn read(text: &str, start: usize, length: usize) -> Option<(usize, String)> {
    let grouped = matches!(byte(text, start + 4), Some(b' ' | b'-'));
    let separator = byte(text, start + 4);
    let mut compact = String::with_capacity(length);
    let mut at = start;
    while compact.len() < length {
        if grouped && !compact.is_empty() && compact.len().is_multiple_of(4) {
            if byte(text, at) != separator {
                return None;
            }
            at += 1;
        }
        let b = byte(text, at).filter(u8::is_ascii_alphanumeric)?;
        compact.push(char::from(b.to_ascii_uppercase()));
        at += 1;
    }
    let glued = byte(text, at).is_some_and(|b| b.is_ascii_alphanumeric() || b >= 0x80);
    (!glued).then_some((at, compact))
}

fn mod97(compact: &str) -> bool {
    let (head, tail) = compact.split_at_checked(4).unwrap_or(("", ""));
    let mut rest = 0_u32;
    for c in tail.chars().chain(head.chars()) {
        let Some(value) = c.to_digit(36) else {
            return false;
        };
        rest = (rest * if value > 9 { 100 } else { 10 } + value) % 97;
    }
    rest == 1
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives, iban};

    #[test]
    fn account_numbers_are_found_compact_and_grouped_beside_words() {
        for (country, body) in [
            ("DE", "370400440532013000"),
            ("NL", "ABNA0417164300"),
            ("NO", "86011117947"),
        ] {
            let n = iban(country, body);
            assert_found(&format!("to {n} today"), &n, "iban");
            assert_found(&format!("iban={n};"), &n, "iban");
            let groups: Vec<&str> = n
                .as_bytes()
                .chunks(4)
                .map(|c| std::str::from_utf8(c).unwrap())
                .collect();
            let spaced = groups.join(" ");
            assert_found(&format!("to {spaced} today"), &spaced, "iban");
        }
    }

    #[test]
    fn a_wrong_check_number_or_length_is_no_account() {
        let n = iban("DE", "370400440532013000");
        let wrong = n.replace("0532", "0533");
        assert_survives(&wrong);
        assert_survives(&n[..20]);
        assert_survives(&format!("x{n}"));
    }
}
