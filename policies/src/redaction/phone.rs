//! Telephone numbers: `+` and a country code, `tel:`, or a national form beside a word of context.
//!
//! Digits alone are never a number here: without the sign, the scheme or the word they are a count.

use std::sync::LazyLock;

use super::context::{ends_with_segment, has_context, own_key};
use super::scan::{Hits, before, byte, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "phone",
    anchor: Anchor::Digits(scan),
};

pub(super) const CONTEXT: &[&str] = &[
    "phone",
    "telephone",
    "tel",
    "mobile",
    "cell",
    "cellphone",
    "msisdn",
    "fax",
    "telefon",
    "handy",
    "mobil",
    "mobilfunk",
    "telefono",
    "celular",
    "movil",
    "portable",
    "whatsapp",
    "sms",
    "gsm",
    "rufnummer",
    "callback",
    "caller",
    "callee",
    "ani",
];
/// Last segments of keys whose digits count something.
const COUNTS: &[&str] = &[
    "id",
    "ids",
    "count",
    "size",
    "ttl",
    "status",
    "state",
    "code",
    "port",
    "pid",
    "offset",
    "ms",
    "us",
    "ns",
    "seconds",
    "bytes",
    "len",
    "length",
    "time",
    "timestamp",
    "ts",
    "version",
    "at",
    "seq",
    "total",
    "hash",
    "limit",
    "max",
    "min",
];
/// Words behind a number that make it a quantity.
const UNITS: &[&str] = &[
    "bytes", "byte", "kb", "mb", "gb", "kib", "mib", "gib", "b", "ms", "us", "ns", "s", "sec",
    "seconds", "rows", "lines", "requests", "records", "messages", "blocks", "pages", "ops",
];

/// National lengths by country code: the entry of a code is a mask of lengths.
static PLANS: LazyLock<Vec<u16>> = LazyLock::new(|| {
    let mut plans = vec![0_u16; 1000];
    for line in include_str!("data/phone.txt").lines() {
        let Some((code, lengths)) = line.split_once(' ') else {
            continue;
        };
        let (low, high) = lengths.split_once('-').unwrap_or((lengths, lengths));
        if let (Ok(code), Ok(low), Ok(high)) = (
            code.parse::<usize>(),
            low.parse::<u32>(),
            high.parse::<u32>(),
        ) && let Some(slot) = plans.get_mut(code)
        {
            *slot = (low..=high.min(15)).fold(0, |mask, n| mask | 1 << n);
        }
    }
    plans
});

/// Digits of a number with what stands between them.
struct Number {
    digits: [u8; 16],
    count: usize,
    groups: usize,
    dots: usize,
    end: usize,
}

fn scan(text: &str, start: usize, end: usize, hits: &mut Hits) {
    match before(text, start) {
        Some(b'+') => international(text, start, hits),
        Some(b':') if ends_with_tel(text, start) => {
            if let Some(number) = read(text, start)
                && (3..=15).contains(&number.count)
            {
                hits.add(Kind::Phone, start, number.end);
            }
        }
        b => {
            if let Some(code) = lone_code(text, start) {
                international(text, code, hits);
            }
            // Two digits can begin a national number; longer runs than the longest cannot.
            if end - start <= 15 && begins(b) {
                national(text, start, hits);
            }
        }
    }
}

/// A country code of one digit is no run of its own: its place, for the run that follows it.
pub(super) fn lone_code(text: &str, start: usize) -> Option<usize> {
    let gap = super::scan::run_start(text, start, 2, |b| matches!(b, b' ' | b'-' | b'.' | b'('));
    let code = gap.checked_sub(1).filter(|_| gap < start)?;
    let sign = code.checked_sub(1)?;
    (byte(text, sign) == Some(b'+') && byte(text, code)?.is_ascii_digit()).then_some(code)
}

fn ends_with_tel(text: &str, start: usize) -> bool {
    let scheme = start
        .checked_sub(4)
        .map_or("", |from| slice(text, from, start));
    scheme.eq_ignore_ascii_case("tel:") || scheme.eq_ignore_ascii_case("sms:")
}

/// What may stand before a number.
fn begins(b: Option<u8>) -> bool {
    b.is_none_or(|b| {
        b.is_ascii_whitespace()
            || matches!(
                b,
                b'=' | b':'
                    | b'"'
                    | b'\''
                    | b'('
                    | b'['
                    | b'{'
                    | b'<'
                    | b'>'
                    | b','
                    | b';'
                    | b'|'
                    | b'/'
                    | b'`'
            )
    })
}

/// `+` and a country code.
fn international(text: &str, start: usize, hits: &mut Hits) {
    let sign = start - 1;
    let country = byte(text, start).unwrap_or(b'0');
    if country == b'0' || !begins(before(text, sign)) {
        return;
    }
    let Some(number) = read(text, start) else {
        return;
    };
    // A fraction has one dot; a number that is written with dots has more.
    if number.dots == 1 || !ends(text, number.end) || !planned(&number) {
        return;
    }
    let own = own_key(text, sign);
    if ends_with_segment(own, COUNTS) && !has_context(text, sign, CONTEXT) {
        return;
    }
    hits.add(Kind::Phone, sign, number.end);
}

/// True when the digits are a country code and a national number of a length used there.
fn planned(number: &Number) -> bool {
    let digits = number.digits.get(..number.count).unwrap_or(&[]);
    let mut code = 0;
    for (n, &d) in digits.iter().take(3).enumerate() {
        code = code * 10 + usize::from(d);
        let mask = PLANS.get(code).copied().unwrap_or(0);
        if mask != 0 {
            // A zero in brackets or by habit stands before the national number.
            let rest = digits.get(n + 1..).unwrap_or(&[]);
            let trunk = usize::from(code != 39 && rest.first() == Some(&0));
            let fits = mask & (1_u16.checked_shl((rest.len() - trunk) as u32).unwrap_or(0)) != 0;
            return fits && (code != 1 || is_north_american(rest));
        }
    }
    false
}

/// Area and exchange begin with 2 to 9.
fn is_north_american(national: &[u8]) -> bool {
    let led = |at: usize| national.get(at).is_some_and(|&d| d >= 2);
    led(0) && led(3)
}

/// A national form with a word of context.
fn national(text: &str, start: usize, hits: &mut Hits) {
    let from = if before(text, start) == Some(b'(') {
        start - 1
    } else {
        start
    };
    // What costs least refuses first: digit runs are everywhere in a log.
    let Some(number) = read(text, from) else {
        return;
    };
    if !(7..=15).contains(&number.count) || number.dots == 1 || !ends(text, number.end) {
        return;
    }
    let own = own_key(text, from);
    if ends_with_segment(own, COUNTS) || !has_context(text, from, CONTEXT) {
        return;
    }
    // In prose a bare run of digits beside `mobile` can be anything; a key says what it is.
    if !own.is_empty() || number.groups > 1 || number.digits.first() == Some(&0) {
        hits.add(Kind::Phone, from, number.end);
    }
}

/// Reads digits, single separators and one pair of brackets.
fn read(text: &str, from: usize) -> Option<Number> {
    let mut number = Number {
        digits: [0; 16],
        count: 0,
        groups: 0,
        dots: 0,
        end: from,
    };
    let mut at = from;
    let mut open = false;
    let mut fresh = true;
    while let Some(b) = byte(text, at) {
        if b.is_ascii_digit() {
            *number.digits.get_mut(number.count)? = b - b'0';
            number.count += 1;
            number.groups += usize::from(fresh);
            fresh = false;
            at += 1;
            number.end = at;
            continue;
        }
        let next = byte(text, at + 1);
        let goes_on = next.is_some_and(|n| n.is_ascii_digit());
        match b {
            b'(' if !open && goes_on => open = true,
            b')' if open => {
                open = false;
                if number.end == at {
                    number.end = at + 1;
                }
                // A blank or a dash may follow the closing bracket.
                if !goes_on
                    && matches!(next, Some(b' ' | b'-'))
                    && byte(text, at + 2).is_some_and(|n| n.is_ascii_digit())
                {
                    at += 1;
                } else if !goes_on {
                    break;
                }
            }
            b' ' if next == Some(b'(') && !open => {}
            b' ' | b'-' | b'.' | b'/' if goes_on => number.dots += usize::from(b == b'.'),
            _ => break,
        }
        fresh = true;
        at += 1;
    }
    (number.count > 0 && !open).then_some(number)
}

/// True when nothing follows that makes the digits part of something else.
fn ends(text: &str, end: usize) -> bool {
    match byte(text, end) {
        None => true,
        Some(b'.' | b':' | b'-' | b',' | b'/') => {
            !byte(text, end + 1).is_some_and(|b| b.is_ascii_alphanumeric())
        }
        Some(b' ') => {
            let word = slice(text, end + 1, text.len().min(end + 12));
            let word = word
                .split(|c: char| !c.is_ascii_alphanumeric())
                .next()
                .unwrap_or("");
            !UNITS.iter().any(|unit| word.eq_ignore_ascii_case(unit))
        }
        Some(b) => {
            b.is_ascii() && !b.is_ascii_alphanumeric() && !matches!(b, b'_' | b'%' | b'+' | b'@')
        }
    }
}

/// Digits with their country code as far as it is known (guardrails 4.2).
pub(super) fn canonical(text: &str) -> String {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let international = text.trim_start().starts_with('+');
    let code = (1..=3).find(|&n| {
        digits
            .get(..n)
            .and_then(|code| code.parse::<usize>().ok())
            .and_then(|code| PLANS.get(code))
            .is_some_and(|&mask| mask != 0)
    });
    match (international, code) {
        // `+49 (0)151` and `+49 151` are one number.
        (true, Some(n)) if text.contains("(0)") => {
            let (head, tail) = digits.split_at_checked(n).unwrap_or((&digits, ""));
            format!("+{head}{}", tail.strip_prefix('0').unwrap_or(tail))
        }
        (true, _) => format!("+{digits}"),
        (false, _) => digits
            .strip_prefix("00")
            .map_or_else(|| digits.clone(), |rest| format!("+{rest}")),
    }
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives};

    #[test]
    fn numbers_with_a_country_code_are_found_in_every_writing() {
        for value in [
            ["+1", "415", "555", "2671"].join(" "),
            ["+1", "415", "555", "2671"].join("."),
            ["+1", "415", "555", "2671"].concat(),
            format!("+1 ({}) {}-{}", 415, 555, 2671),
            ["+49", "151", "23456789"].join(" "),
            format!("+49 (0)151 {}", 23_456_789),
            ["+44", "20", "7946", "0958"].join("-"),
        ] {
            assert_found(&format!("call {value} now"), &value, "phone");
            assert_found(&format!("n=\"{value}\""), &value, "phone");
        }
        let number = ["0151", "23456789"].concat();
        assert_found(&format!("tel:{number}"), &number, "phone");
        assert_found(&format!("mobile: {number}"), &number, "phone");
        assert_found(&format!("phone={number} ok"), &number, "phone");
        let number = format!("(415) {}-{}", 555, 2671);
        assert_found(&format!("phone {number}."), &number, "phone");
    }

    #[test]
    fn counts_zones_versions_and_coordinates_are_no_numbers() {
        for text in [
            "31/Jan/2026:08:00:00 +0200",
            "2026-01-31T08:00:00+10:00",
            "at +1000 offset",
            "grew by +1048576 and +5368709120 bytes",
            "lat +52.520008 lon +13.404954",
            "phone_id=4155552671",
            "telemetry 4155552671",
            "version 1.415.555.2671",
            "4155552671",
            "mobile app 12.3.4",
            "sms sent in 1234567 ms",
            "kernel+12345678901",
            "x=+4155552671.5",
        ] {
            assert_survives(text);
        }
    }
}
