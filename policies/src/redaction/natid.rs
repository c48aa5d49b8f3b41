//! National ids, one pack a country: a format, a check digit scheme, a whole token.

use super::context::{ends_with_segment, has_context, own_key};
use super::options::Pack;
use super::scan::{Hits, before, byte};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "natid",
    anchor: Anchor::Digits(scan),
};

const CONTEXT: &[&str] = &[
    "sin",
    "nas",
    "nhs",
    "nino",
    "national",
    "insurance",
    "ni",
    "social",
    "steuer",
    "idnr",
    "aadhaar",
    "pesel",
    "cpf",
    "cnpj",
    "nir",
    "dni",
    "nie",
    "nif",
    "taxid",
    "tin",
];
/// Last segments of keys whose digits are identifiers of machines or points in time.
const MACHINES: &[&str] = &[
    "id",
    "ts",
    "time",
    "timestamp",
    "at",
    "ms",
    "us",
    "ns",
    "offset",
    "size",
    "bytes",
    "count",
    "seq",
    "version",
    "pid",
    "port",
    "inode",
    "block",
    "stamp",
];

/// Letters and digits of a candidate without its separators.
struct Candidate {
    text: [u8; 20],
    length: usize,
    end: usize,
    /// Sizes of its groups.
    sizes: [u8; 8],
    /// Length and end without a last group of one letter, which can be a word that follows.
    short: Option<(usize, usize)>,
}

impl Candidate {
    /// Without that letter.
    fn shortened(&self) -> Option<Self> {
        self.short.map(|(length, end)| Self {
            length,
            end,
            short: None,
            sizes: self.without_last_group(),
            ..*self
        })
    }

    fn all(&self) -> &[u8] {
        self.text.get(..self.length).unwrap_or(&[])
    }

    fn without_last_group(&self) -> [u8; 8] {
        let mut sizes = self.sizes;
        if let Some(last) = sizes.iter_mut().rev().find(|size| **size > 0) {
            *last = 0;
        }
        sizes
    }

    fn is_grouped(&self) -> bool {
        self.sizes[1] > 0
    }

    /// True when it is in one piece or in customary groups.
    fn is_customary(&self, pack: Pack) -> bool {
        let count = self.sizes.iter().take_while(|&&size| size > 0).count();
        let sizes = self.sizes.get(..count).unwrap_or(&[]);
        count == 1 || groups(pack).contains(&sizes)
    }

    /// The digits, if there is nothing else.
    fn digits(&self) -> Option<&[u8]> {
        self.all()
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| self.all())
    }
}

/// How the numbers of a pack are customarily cut.
const fn groups(pack: Pack) -> &'static [&'static [u8]] {
    match pack {
        Pack::Nir => &[&[1, 2, 2, 2, 3, 3, 2], &[13, 2]],
        Pack::SteuerId => &[&[2, 3, 3, 3], &[3, 4, 4]],
        Pack::Dni => &[&[8, 1], &[2, 3, 3, 1], &[1, 7, 1]],
        Pack::CodiceFiscale => &[&[3, 3, 5, 5], &[6, 5, 5]],
        Pack::Pesel => &[],
        Pack::Cpf => &[
            &[3, 3, 3, 2],
            &[9, 2],
            &[2, 3, 3, 4, 2],
            &[12, 2],
            &[8, 4, 2],
        ],
        Pack::Aadhaar => &[&[4, 4, 4]],
        Pack::Sin => &[&[3, 3, 3]],
        Pack::Nhs => &[&[3, 3, 4]],
        Pack::Nino => &[&[2, 2, 2, 2, 1], &[2, 6, 1], &[8, 1]],
    }
}

fn scan(text: &str, digits: usize, digits_end: usize, hits: &mut Hits) {
    if !hits.rules.has_packs() || digits_end - digits > 15 {
        return;
    }
    let start = lone_digit(text, token_start(text, digits));
    // Behind `+1 ` it is a telephone number.
    if !before(text, start).is_none_or(apart) || super::phone::lone_code(text, start).is_some() {
        return;
    }
    let Some(found) = read(text, start) else {
        return;
    };
    let machine = ends_with_segment(own_key(text, start), MACHINES);
    let named = has_context(text, start, CONTEXT);
    let chosen = |candidate: &Candidate| {
        let rules = hits.rules;
        Pack::ALL
            .iter()
            .find(|&&pack| rules.has_pack(pack) && accepts(pack, candidate, named, machine))
            .map(|pack| (pack.name(), candidate.end))
    };
    let short = found.shortened();
    if let Some((pack, end)) = chosen(&found).or_else(|| short.as_ref().and_then(chosen)) {
        hits.add(Kind::Natid(pack), start, end);
    }
}

/// The first group of a French number is one digit and that of a British one two letters; neither
/// is a run of digits of its own.
fn lone_digit(text: &str, start: usize) -> usize {
    let letters = start.checked_sub(3).filter(|&at| {
        byte(text, at + 2) == Some(b' ')
            && byte(text, at).is_some_and(|b| b.is_ascii_uppercase())
            && byte(text, at + 1).is_some_and(|b| b.is_ascii_uppercase())
            && before(text, at).is_none_or(apart)
    });
    let lone = start.checked_sub(2).filter(|&at| {
        matches!(byte(text, at), Some(b'1' | b'2'))
            && byte(text, at + 1) == Some(b' ')
            && before(text, at).is_none_or(apart)
    });
    lone.or(letters).unwrap_or(start)
}

/// Letters may lead: six of a codice fiscale, two of a national insurance number, one of a NIE.
fn token_start(text: &str, digits: usize) -> usize {
    super::scan::run_start(text, digits, 7, |b| b.is_ascii_alphabetic())
}

const fn apart(b: u8) -> bool {
    b.is_ascii() && !b.is_ascii_alphanumeric() && !matches!(b, b'-' | b'_' | b'.' | b'+' | b'/')
}

/// Reads a token of letters and digits, or groups of them with single separators.
fn read(text: &str, start: usize) -> Option<Candidate> {
    let mut found = Candidate {
        text: [0; 20],
        length: 0,
        end: start,
        sizes: [0; 8],
        short: None,
    };
    let mut at = start;
    let mut group = 0;
    // With blanks, a following word must not be taken for a group: groups hold a digit.
    while let Some(b) = byte(text, at) {
        if b.is_ascii_alphanumeric() {
            *found.text.get_mut(found.length)? = b.to_ascii_uppercase();
            found.length += 1;
            *found.sizes.get_mut(group)? += 1;
            at += 1;
            found.end = at;
        } else if matches!(b, b' ' | b'.' | b'-' | b'/') && group_follows(text, at + 1) {
            let letter = !byte(text, at + 1).is_some_and(|b| b.is_ascii_digit());
            found.short = letter.then_some((found.length, found.end));
            group += 1;
            at += 1;
        } else {
            break;
        }
    }
    let after = byte(text, found.end);
    let sentence = after == Some(b'.')
        && !byte(text, found.end + 1).is_some_and(|b| b.is_ascii_alphanumeric());
    (after.is_none_or(apart) || sentence).then_some(found)
}

/// Digits, up to three letters and digits (`2A`), or one letter that ends the token.
fn group_follows(text: &str, at: usize) -> bool {
    let end = super::scan::run_end(text, at, |b| b.is_ascii_alphanumeric());
    let group = text.as_bytes().get(at..end).unwrap_or(&[]);
    let digits = group.iter().filter(|b| b.is_ascii_digit()).count();
    (digits > 0 && group.len() - digits <= 1)
        || (group.len() == 1 && byte(text, end) != Some(b'\''))
}

fn accepts(pack: Pack, found: &Candidate, named: bool, machine: bool) -> bool {
    // Where one digit is all the check, only the customary groups or a word tell it from a count.
    let sure = named || (found.is_grouped() && !machine);
    let bare = named || !machine;
    if !found.is_customary(pack) {
        return false;
    }
    match pack {
        Pack::Nir => nir(found.all()),
        Pack::SteuerId => bare && found.digits().is_some_and(steuer_id),
        Pack::Dni => dni(found.all()),
        Pack::CodiceFiscale => codice_fiscale(found.all()),
        Pack::Pesel => bare && found.digits().is_some_and(pesel),
        Pack::Cpf => bare && found.digits().is_some_and(|d| cpf(d) || cnpj(d)),
        Pack::Aadhaar => bare && found.digits().is_some_and(aadhaar),
        Pack::Sin => sure && found.digits().is_some_and(sin),
        Pack::Nhs => sure && found.digits().is_some_and(nhs),
        Pack::Nino => named && nino(found.all()),
    }
}

fn value(b: u8) -> u32 {
    u32::from(b.wrapping_sub(b'0'))
}

fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits
        .iter()
        .zip(weights)
        .map(|(&d, &w)| value(d) * w)
        .sum()
}

fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |n, &d| n * 10 + u64::from(value(d)))
}

/// France: sex, year, month, place, and 97 minus the rest as key; Corsica counts as 19 and 18.
fn nir(t: &[u8]) -> bool {
    let [head @ .., k1, k2] = t else { return false };
    if head.len() != 13 || !matches!(head.first(), Some(b'1' | b'2')) {
        return false;
    }
    let mut plain = [b'0'; 13];
    for (slot, &b) in plain.iter_mut().zip(head) {
        *slot = b;
    }
    let corsica = match (head.get(5), head.get(6)) {
        (Some(b'2'), Some(b'A')) => Some(b'9'),
        (Some(b'2'), Some(b'B')) => Some(b'8'),
        _ => None,
    };
    if let Some(second) = corsica {
        if let Some(slot) = plain.get_mut(5) {
            *slot = b'1';
        }
        if let Some(slot) = plain.get_mut(6) {
            *slot = second;
        }
    }
    if !plain.iter().all(u8::is_ascii_digit) || !k1.is_ascii_digit() || !k2.is_ascii_digit() {
        return false;
    }
    let month = number(plain.get(3..5).unwrap_or(&[]));
    let month_used = (1..=12).contains(&month) || (20..=42).contains(&month) || month >= 50;
    month_used && 97 - number(&plain) % 97 == number(&[*k1, *k2])
}

/// Germany: ISO 7064 MOD 11,10, and one digit of the first ten twice or three times.
fn steuer_id(d: &[u8]) -> bool {
    let [head @ .., check] = d else { return false };
    if head.len() != 10 || head.first() == Some(&b'0') {
        return false;
    }
    let most = (b'0'..=b'9')
        .map(|digit| head.iter().filter(|&&b| b == digit).count())
        .max();
    let product = head.iter().fold(10, |product, &b| {
        let sum = (value(b) + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    matches!(most, Some(2 | 3)) && (11 - product) % 10 == value(*check)
}

/// Spain: the rest of 23 chooses the letter; X, Y and Z of a foreigner count as 0, 1 and 2.
fn dni(t: &[u8]) -> bool {
    let [head @ .., letter] = t else { return false };
    let [first, rest @ ..] = head else {
        return false;
    };
    let lead = match first {
        b'X' => b'0',
        b'Y' => b'1',
        b'Z' => b'2',
        other => *other,
    };
    if head.len() != 8 || !lead.is_ascii_digit() || !rest.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let n = number(&[lead]) * 10_000_000 + number(rest);
    usize::try_from(n % 23)
        .ok()
        .and_then(|rest| b"TRWAGMYFPDXBNJZSQVHLCKE".get(rest))
        == Some(letter)
}

/// Italy: six letters, year, month letter, day, place, and a letter from two tables.
fn codice_fiscale(t: &[u8]) -> bool {
    let shape = b"LLLLLLNNLNNLNNNL";
    if t.len() != shape.len()
        || !t.iter().zip(shape).all(|(b, s)| match s {
            b'L' => b.is_ascii_uppercase(),
            _ => b.is_ascii_digit(),
        })
        || !t.get(8).is_some_and(|b| b"ABCDEHLMPRST".contains(b))
    {
        return false;
    }
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let sum: u32 = t
        .iter()
        .take(15)
        .enumerate()
        .map(|(n, &b)| {
            let v = if b.is_ascii_digit() {
                value(b)
            } else {
                u32::from(b - b'A')
            };
            if n % 2 == 0 {
                usize::try_from(v)
                    .ok()
                    .and_then(|v| ODD.get(v))
                    .copied()
                    .unwrap_or(0)
            } else {
                v
            }
        })
        .sum();
    t.last().is_some_and(|&b| u32::from(b - b'A') == sum % 26)
}

/// Poland: a date whose month carries the century, and a weighted sum.
fn pesel(d: &[u8]) -> bool {
    if d.len() != 11 {
        return false;
    }
    let month = number(d.get(2..4).unwrap_or(&[])) % 20;
    let day = number(d.get(4..6).unwrap_or(&[]));
    (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && weighted(d, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]).is_multiple_of(10)
}

/// Two check digits, each 11 minus the rest of a weighted sum.
fn two_checks(d: &[u8], first: &[u32], second: &[u32]) -> bool {
    let digit = |weights: &[u32]| match weighted(d, weights) % 11 {
        0 | 1 => 0,
        rest => 11 - rest,
    };
    let varied = d.iter().any(|b| Some(b) != d.first());
    varied
        && d.get(first.len())
            .is_some_and(|&b| value(b) == digit(first))
        && d.get(second.len())
            .is_some_and(|&b| value(b) == digit(second))
}

/// Brazil, persons.
fn cpf(d: &[u8]) -> bool {
    d.len() == 11
        && two_checks(
            d,
            &[10, 9, 8, 7, 6, 5, 4, 3, 2],
            &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2],
        )
}

/// Brazil, companies.
fn cnpj(d: &[u8]) -> bool {
    d.len() == 14
        && two_checks(
            d,
            &[5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2],
            &[6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2],
        )
}

/// India: Verhoeff over twelve digits, the first from 2.
fn aadhaar(d: &[u8]) -> bool {
    d.len() == 12 && d.first().is_some_and(|b| *b >= b'2') && verhoeff(d) == 0
}

/// The dihedral group of order ten, computed and not tabled.
pub(super) fn verhoeff(d: &[u8]) -> u32 {
    const ONCE: [u32; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let multiply = |a: u32, b: u32| match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => (a + b - 5) % 5 + 5,
        (false, true) => (a - 5 + 5 - b) % 5 + 5,
        (false, false) => (a + 5 - b) % 5,
    };
    d.iter().rev().enumerate().fold(0, |check, (n, &b)| {
        let turned = (0..n % 8).fold(value(b), |v, _| {
            usize::try_from(v)
                .ok()
                .and_then(|v| ONCE.get(v))
                .copied()
                .unwrap_or(0)
        });
        multiply(check, turned)
    })
}

/// Canada: Luhn over nine digits; none begins with 0 or 8.
fn sin(d: &[u8]) -> bool {
    let plain: Vec<u8> = d.iter().map(|b| b.wrapping_sub(b'0')).collect();
    d.len() == 9 && !matches!(d.first(), Some(b'0' | b'8')) && super::pan::luhn(&plain)
}

/// England and Wales: 11 minus a weighted sum.
fn nhs(d: &[u8]) -> bool {
    let check = 11 - weighted(d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    d.len() == 10 && d.last().is_some_and(|&b| value(b) == check % 11) && check != 10
}

/// United Kingdom: two letters, six digits, a letter from A to D.
fn nino(t: &[u8]) -> bool {
    let [a, b, digits @ .., suffix] = t else {
        return false;
    };
    digits.len() == 6
        && digits.iter().all(u8::is_ascii_digit)
        && a.is_ascii_uppercase()
        && b.is_ascii_uppercase()
        && !b"DFIQUV".contains(a)
        && !b"DFIQUVO".contains(b)
        && !matches!(
            &[*a, *b],
            b"BG" | b"GB" | b"KN" | b"NK" | b"NT" | b"TN" | b"ZZ"
        )
        && (b'A'..=b'D').contains(suffix)
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found_with, assert_survives, assert_survives_with};
    use crate::redaction::{Options, Pack, Rules};

    fn rules(packs: &[Pack]) -> Rules {
        Rules::new(Options {
            packs: packs.to_vec(),
            ..Options::default()
        })
        .unwrap()
    }

    /// Pack, head, tail and alphabet of the check characters: exactly one of them is right.
    const SCHEMES: &[(Pack, &str, &str)] = &[
        (Pack::SteuerId, "8609574271", "0123456789"),
        (Pack::Dni, "12345678", "TRWAGMYFPDXBNJZSQVHLCKE"),
        (Pack::Dni, "X1234567", "TRWAGMYFPDXBNJZSQVHLCKE"),
        (
            Pack::CodiceFiscale,
            "RSSMRA85T10A562",
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        ),
        (Pack::Pesel, "4405140135", "0123456789"),
        (Pack::Aadhaar, "23412341234", "0123456789"),
    ];

    #[test]
    fn exactly_one_check_character_of_each_scheme_is_right() {
        for &(pack, head, alphabet) in SCHEMES {
            let rules = rules(&[pack]);
            let found: Vec<char> = alphabet
                .chars()
                .filter(|c| {
                    let text = format!("value {head}{c} here");
                    crate::redaction::testing::redact_with(&rules, &text).0 != text
                })
                .collect();
            assert_eq!(found.len(), 1, "{pack:?} {found:?}");
            let value = format!("{head}{}", found[0]);
            assert_found_with(&rules, &format!("value {value}, x"), &value, "natid");
            assert_survives(&format!("value {value} here"));
            assert_survives_with(&rules, &format!("value a{value} here"));
            assert_survives_with(&rules, &format!("value {value}.5 here"));
        }
    }

    #[test]
    fn schemes_with_two_check_digits_and_groups_are_found() {
        let pair = |pack: Pack, head: &str, group: &dyn Fn(&str) -> String| {
            let rules = rules(&[pack]);
            let found: Vec<String> = (0..100)
                .map(|n| group(&format!("{head}{n:02}")))
                .filter(|text| crate::redaction::testing::redact_with(&rules, text).0 != *text)
                .collect();
            assert_eq!(found.len(), 1, "{found:?}");
            assert_found_with(&rules, &format!("x {} y", found[0]), &found[0], "natid");
        };
        pair(Pack::Nir, "1850578006084", &str::to_owned);
        pair(Pack::Nir, "1850578006084", &|v| {
            let cut = [
                &v[..1],
                &v[1..3],
                &v[3..5],
                &v[5..7],
                &v[7..10],
                &v[10..13],
                &v[13..],
            ];
            cut.join(" ")
        });
        pair(Pack::Cpf, "529982247", &|v| {
            format!("{}.{}.{}-{}", &v[..3], &v[3..6], &v[6..9], &v[9..])
        });
        pair(Pack::Cpf, "112223330001", &|v| {
            format!(
                "{}.{}.{}/{}-{}",
                &v[..2],
                &v[2..5],
                &v[5..8],
                &v[8..12],
                &v[12..]
            )
        });
    }

    #[test]
    fn weak_schemes_need_groups_or_a_word() {
        let sin = rules(&[Pack::Sin]);
        let number = ["046", "454", "286"];
        let spaced = ["130", "692", "544"].join(" ");
        assert_found_with(&sin, &format!("x {spaced} y"), &spaced, "natid");
        assert_survives_with(&sin, &format!("x {} y", number.join(" ")));
        assert_survives_with(&sin, "count 130692544");
        let nhs = rules(&[Pack::Nhs]);
        let value = ["943", "476", "5919"].join(" ");
        assert_found_with(&nhs, &format!("nhs {value}."), &value, "natid");
        assert_survives_with(&nhs, "ts=9434765919");
        let nino = rules(&[Pack::Nino]);
        let value = ["AB", "12", "34", "56", "C"].join(" ");
        assert_found_with(&nino, &format!("NINO: {value}"), &value, "natid");
        assert_survives_with(&nino, &format!("order {value}"));
    }
}
