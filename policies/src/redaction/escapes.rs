//! Textual escapes: backslash (V1), percent and form (V2), entities (V3), quoted-printable (V4).
//!
//! One pass undoes every escape it meets once, whatever its class; escapes of escapes are undone
//! by the next pass.

use super::map::View;
use super::scan::{byte, slice};

/// Longest named or numeric entity.
const MAX_ENTITY: usize = 12;

/// Entities by name that can hide a part of a value.
const NAMED: &[(&str, char)] = &[
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dash", '-'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("grave", '`'),
    ("gt", '>'),
    ("hyphen", '-'),
    ("lbrace", '{'),
    ("lbrack", '['),
    ("lcub", '{'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("nbsp", ' '),
    ("newline", '\n'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rbrace", '}'),
    ("rbrack", ']'),
    ("rcub", '}'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("semi", ';'),
    ("shy", '\u{ad}'),
    ("sol", '/'),
    ("tab", '\t'),
    ("underbar", '_'),
    ("verbar", '|'),
    ("vert", '|'),
    ("zwj", '\u{200d}'),
    ("zwnj", '\u{200c}'),
];

/// True when `text` holds a byte that can begin an escape.
pub(super) fn may_have(text: &str) -> bool {
    memchr::memchr3(b'\\', b'%', b'&', text.as_bytes()).is_some() || quoted_printable(text)
}

/// `text` with every escape undone once; `None` when there is none.
pub(super) fn peel(text: &str) -> Option<View> {
    let percent = percents(text) >= 2;
    let printable = quoted_printable(text);
    let mut view = View::with_capacity(text.len());
    let (mut done, mut at, mut changed) = (0, 0, false);
    while let Some(next) = find(text, at, printable) {
        let decoded = match byte(text, next) {
            Some(b'\\') => backslash(text, next),
            Some(b'%') if percent => hex_run(text, next, b'%'),
            Some(b'&') => entity(text, next),
            Some(b'=') => hex_run(text, next, b'=').or_else(|| soft_break(text, next)),
            _ => None,
        };
        at = next + 1;
        if let Some(pieces) = decoded {
            view.copy(text, done, next);
            for (decoded, from, to) in pieces {
                if let Some(c) = decoded {
                    view.put_char(c, from, to);
                }
                done = to;
            }
            at = done;
            changed = true;
        }
    }
    view.copy(text, done, text.len());
    changed.then_some(view)
}

/// Characters with their source ranges; `None` in place of a character removes the range.
type Pieces = Vec<(Option<char>, usize, usize)>;

fn find(text: &str, at: usize, printable: bool) -> Option<usize> {
    let rest = text.as_bytes().get(at..)?;
    let mark = memchr::memchr3(b'\\', b'%', b'&', rest);
    let equals = if printable {
        memchr::memchr(b'=', rest)
    } else {
        None
    };
    let nearest = match (mark, equals) {
        (Some(a), Some(b)) => a.min(b),
        (a, b) => a.or(b)?,
    };
    Some(at + nearest)
}

/// Number of percent escapes, at most two are counted.
fn percents(text: &str) -> usize {
    memchr::memchr_iter(b'%', text.as_bytes())
        .filter(|&at| hex_pair(text, at + 1).is_some())
        .take(2)
        .count()
}

/// True when `text` has two escapes like `=4F` in one word, or one before a soft line end.
fn quoted_printable(text: &str) -> bool {
    let mut last: Option<usize> = None;
    for at in memchr::memchr_iter(b'=', text.as_bytes()) {
        let upper = slice(text, at + 1, at + 3)
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
        if !upper || hex_pair(text, at + 1).is_none() {
            continue;
        }
        let one_word = last.is_some_and(|before| {
            at - before < 76 && !slice(text, before, at).contains([' ', '\t', '\n', '&', ';', ','])
        });
        if one_word {
            return true;
        }
        last = Some(at);
    }
    false
}

fn hex_pair(text: &str, at: usize) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16);
    let value = digit(byte(text, at)?)? * 16 + digit(byte(text, at + 1)?)?;
    u8::try_from(value).ok()
}

/// `%41%C3%A9` or `=41=C3=A9`: neighbours are one piece of UTF-8.
fn hex_run(text: &str, start: usize, mark: u8) -> Option<Pieces> {
    let mut bytes = Vec::new();
    let mut at = start;
    while byte(text, at) == Some(mark)
        && let Some(value) = hex_pair(text, at + 1)
    {
        bytes.push(value);
        at += 3;
    }
    if bytes.is_empty() {
        return None;
    }
    let mut pieces = Vec::new();
    let mut from = start;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            pieces.push((Some(c), from, from + 3 * c.len_utf8()));
            from += 3 * c.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            let to = from + 3 * chunk.invalid().len();
            pieces.push((Some('\u{fffd}'), from, to));
            from = to;
        }
    }
    Some(pieces)
}

/// A line end that quoted-printable put into a value.
fn soft_break(text: &str, at: usize) -> Option<Pieces> {
    let end = match (byte(text, at + 1), byte(text, at + 2)) {
        (Some(b'\r'), Some(b'\n')) => at + 3,
        (Some(b'\n'), _) => at + 2,
        _ => return None,
    };
    Some(vec![(None, at, end)])
}

/// `&lt;`, `&#64;`, `&#x40;`, with or without the semicolon for numbers.
fn entity(text: &str, at: usize) -> Option<Pieces> {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'#';
    let length = text
        .as_bytes()
        .get(at + 1..)?
        .iter()
        .take(MAX_ENTITY)
        .take_while(|b| is_part(b))
        .count();
    let end = at + 1 + length;
    let name = slice(text, at + 1, end);
    let closed = byte(text, end) == Some(b';');
    let value = if let Some(number) = name.strip_prefix('#') {
        let (digits, radix) = match number.strip_prefix(['x', 'X']) {
            Some(hex) => (hex, 16),
            None => (number, 10),
        };
        char::from_u32(u32::from_str_radix(digits, radix).ok()?)?
    } else if closed {
        let lower = name.to_ascii_lowercase();
        NAMED.iter().find(|(n, _)| *n == lower)?.1
    } else {
        return None;
    };
    Some(vec![(Some(value), at, end + usize::from(closed))])
}

/// The escapes of JSON, C, JavaScript and Python.
fn backslash(text: &str, at: usize) -> Option<Pieces> {
    let one = |c: char, length: usize| Some(vec![(Some(c), at, at + length)]);
    match byte(text, at + 1)? {
        b'n' => one('\n', 2),
        b'r' => one('\r', 2),
        b't' => one('\t', 2),
        b'f' | b'b' | b'v' | b'a' => one(' ', 2),
        b'e' => one('\u{1b}', 2),
        // A backslash before a line end continues the line.
        b'\n' => Some(vec![(None, at, at + 2)]),
        b @ (b'"' | b'\'' | b'\\' | b'/' | b'@' | b'.' | b'-' | b':' | b'=' | b'+' | b'_'
        | b' ' | b'&' | b'%' | b'$' | b'#' | b'!' | b';' | b',' | b'?' | b'(' | b')'
        | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b'|' | b'`' | b'~' | b'*' | b'^') => {
            one(char::from(b), 2)
        }
        b'x' => braced(text, at, 2)
            .or_else(|| number(text, at + 2, 2, 16).map(|value| (value, at + 4)))
            .and_then(|(value, end)| Some(vec![(Some(char::from_u32(value)?), at, end)])),
        b'u' => unicode(text, at),
        b'U' => {
            let value = number(text, at + 2, 8, 16)?;
            one(char::from_u32(value)?, 10)
        }
        b'0'..=b'7' => octal(text, at),
        _ => None,
    }
}

/// `count` digits at `at`.
fn number(text: &str, at: usize, count: usize, radix: u32) -> Option<u32> {
    let digits = text.get(at..at + count)?;
    (!digits.starts_with(['+', '-']))
        .then(|| u32::from_str_radix(digits, radix).ok())
        .flatten()
}

/// `{41}` behind the letter at `at + skip - 1`: the value and the end.
fn braced(text: &str, at: usize, skip: usize) -> Option<(u32, usize)> {
    if byte(text, at + skip) != Some(b'{') {
        return None;
    }
    let length = slice(text, at + skip + 1, text.len())
        .bytes()
        .take(7)
        .position(|b| b == b'}')?;
    let value = number(text, at + skip + 1, length, 16)?;
    Some((value, at + skip + 1 + length + 1))
}

/// `\u0041`, `\u{41}`, a pair of surrogates.
fn unicode(text: &str, at: usize) -> Option<Pieces> {
    if let Some((value, end)) = braced(text, at, 2) {
        return Some(vec![(Some(char::from_u32(value)?), at, end)]);
    }
    let first = number(text, at + 2, 4, 16)?;
    if (0xd800..0xdc00).contains(&first) && slice(text, at + 6, at + 8) == "\\u" {
        let second = number(text, at + 8, 4, 16)?;
        if (0xdc00..0xe000).contains(&second) {
            let value = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Some(vec![(char::from_u32(value), at, at + 12)]);
        }
    }
    let value = char::from_u32(first).unwrap_or('\u{fffd}');
    Some(vec![(Some(value), at, at + 6)])
}

/// `\101`; neighbours are one piece of UTF-8.
fn octal(text: &str, start: usize) -> Option<Pieces> {
    let mut bytes = Vec::new();
    let mut spans = Vec::new();
    let mut at = start;
    while byte(text, at) == Some(b'\\') {
        let length = text
            .as_bytes()
            .get(at + 1..)
            .unwrap_or(&[])
            .iter()
            .take(3)
            .take_while(|b| (b'0'..=b'7').contains(*b))
            .count();
        let value = number(text, at + 1, length, 8).and_then(|v| u8::try_from(v).ok());
        // One or two digits are a reference in a pattern rather than a character, but for NUL.
        match value {
            Some(value) if length == 3 || value == 0 => bytes.push(value),
            _ => break,
        }
        spans.push((at, at + 1 + length));
        at += 1 + length;
    }
    let (first, last) = (spans.first()?.0, spans.last()?.1);
    match std::str::from_utf8(&bytes) {
        Ok(decoded) => {
            let mut pieces = Vec::new();
            let mut used = 0;
            for c in decoded.chars() {
                let from = spans.get(used).map_or(first, |s| s.0);
                used += c.len_utf8();
                let to = spans.get(used - 1).map_or(last, |s| s.1);
                pieces.push((Some(c), from, to));
            }
            Some(pieces)
        }
        Err(_) => Some(vec![(Some('\u{fffd}'), first, last)]),
    }
}

/// `+` between letters and digits as the blank of a form, when `text` looks like one.
pub(super) fn form(text: &str) -> Option<View> {
    memchr::memchr(b'+', text.as_bytes())?;
    memchr::memchr2(b'=', b'%', text.as_bytes())?;
    let mut view = View::with_capacity(text.len());
    let mut done = 0;
    for at in memchr::memchr_iter(b'+', text.as_bytes()) {
        let beside = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'-');
        if beside(super::scan::before(text, at)) && beside(byte(text, at + 1)) {
            view.copy(text, done, at);
            view.put(" ", at, at + 1);
            done = at + 1;
        }
    }
    if done == 0 {
        return None;
    }
    view.copy(text, done, text.len());
    Some(view)
}

#[cfg(test)]
mod tests {
    use super::{form, peel};

    fn text(source: &str) -> String {
        peel(source).map_or_else(|| source.to_owned(), |view| view.text)
    }

    #[test]
    fn every_spelling_of_a_backslash_escape_is_undone() {
        for spelling in [
            "\\x40",
            "\\u0040",
            "\\u{40}",
            "\\x{40}",
            "\\U00000040",
            "\\100",
            "\\@",
        ] {
            assert_eq!(text(&format!("a{spelling}b")), "a@b", "{spelling}");
        }
        assert_eq!(text("\\ud83d\\ude00"), "\u{1f600}");
        assert_eq!(text("\\303\\251"), "\u{e9}");
        assert_eq!(text("a\\nb\\\"c\\/d"), "a\nb\"c/d");
        assert_eq!(text("\\\\u0040"), "\\u0040");
        assert_eq!(text("C:\\w\\1"), "C:\\w\\1");
    }

    #[test]
    fn percent_entities_and_quoted_printable_are_undone() {
        assert_eq!(text("a%40b%2Ecom"), "a@b.com");
        assert_eq!(text("100%25"), "100%25");
        assert_eq!(text("%C3%A9%FFx"), "\u{e9}\u{fffd}x");
        assert_eq!(text("a&#64;b&#x2e;c&commat;&lt;&amp"), "a@b.c@<&amp");
        assert_eq!(text("ann=2Elee=40example=2Ecom"), "ann.lee@example.com");
        assert_eq!(text("pass=41=42=\nword=43=44"), "passABwordCD");
        assert_eq!(text("a=40 b=41"), "a=40 b=41");
    }

    #[test]
    fn the_blanks_of_a_form_are_undone_between_letters_only() {
        assert_eq!(
            form("q=a+b&t=+33").map(|v| v.text).as_deref(),
            Some("q=a b&t=+33")
        );
        assert!(form("a+b").is_none());
    }
}
