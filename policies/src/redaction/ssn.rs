//! Social security numbers of the United States: dashed, or bare with a word of context.

use super::context::has_context;
use super::scan::{Hits, before, byte, run_end, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "ssn",
    anchor: Anchor::Digits(scan),
};

const CONTEXT: &[&str] = &[
    "ssn",
    "social",
    "socialsecurity",
    "socialsecuritynumber",
    "ssnumber",
];

fn scan(text: &str, start: usize, end: usize, hits: &mut Hits) {
    let apart = |b: Option<u8>| {
        b.is_none_or(|b| {
            b.is_ascii() && !b.is_ascii_alphanumeric() && !matches!(b, b'-' | b'_' | b'.' | b'+')
        })
    };
    if !apart(before(text, start)) {
        return;
    }
    let whole_end = match end - start {
        3 => {
            let group = end + 1;
            let serial = group + 3;
            let digit = |b: u8| b.is_ascii_digit();
            let dashed = byte(text, end) == Some(b'-')
                && run_end(text, group, digit) == group + 2
                && byte(text, group + 2) == Some(b'-')
                && run_end(text, serial, digit) == serial + 4;
            if !dashed {
                return;
            }
            serial + 4
        }
        9 if has_context(text, start, CONTEXT) => end,
        _ => return,
    };
    let next = byte(text, whole_end);
    let sentence_end =
        next == Some(b'.') && !byte(text, whole_end + 1).is_some_and(|b| b.is_ascii_alphanumeric());
    if !apart(next) && !sentence_end {
        return;
    }
    let digits: String = slice(text, start, whole_end)
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    let area = slice(&digits, 0, 3);
    let issued = area != "000"
        && area != "666"
        && !area.starts_with('9')
        && slice(&digits, 3, 5) != "00"
        && slice(&digits, 5, 9) != "0000";
    if issued {
        hits.add(Kind::Ssn, start, whole_end);
    }
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives};

    #[test]
    fn dashed_numbers_are_found_and_bare_ones_with_context() {
        let dashed = ["123", "45", "6789"].join("-");
        assert_found(&format!("ssn {dashed}."), &dashed, "ssn");
        assert_found(&format!("({dashed})"), &dashed, "ssn");
        let bare = ["123", "45", "6789"].concat();
        assert_found(&format!("ssn={bare}"), &bare, "ssn");
        assert_survives(&format!("bytes={bare}"));
    }

    #[test]
    fn numbers_that_were_never_issued_and_parts_of_longer_ones_stay() {
        for parts in [
            ["000", "45", "6789"],
            ["666", "45", "6789"],
            ["912", "45", "6789"],
            ["123", "00", "6789"],
            ["123", "45", "0000"],
        ] {
            assert_survives(&parts.join("-"));
        }
        assert_survives(&format!("{}-5", ["123", "45", "6789"].join("-")));
        assert_survives(&format!("a-{}", ["123", "45", "6789"].join("-")));
    }
}
