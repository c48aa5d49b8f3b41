//! Encodings in which a value may stand, one for each way of writing that the redactor decodes
//! (guardrails 2.2). A view encodes the whole value.

use data_encoding::{BASE32, BASE64, BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};

use super::super::checksum::crc32;
use super::Rng;

/// One encoding.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Class of guardrails 2.2.
    pub class: &'static str,
    /// Name in reports.
    pub name: &'static str,
    encode: fn(&str, &mut Rng) -> String,
}

impl View {
    /// The text in this encoding.
    #[must_use]
    pub fn encode(&self, text: &str, rng: &mut Rng) -> String {
        (self.encode)(text, rng)
    }
}

const fn view(
    class: &'static str,
    name: &'static str,
    encode: fn(&str, &mut Rng) -> String,
) -> View {
    View {
        class,
        name,
        encode,
    }
}

/// Every encoding.
pub const VIEWS: &[View] = &[
    view("V1", "json_unicode", |t, _| {
        each(t, |c| format!("\\u{c:04x}"))
    }),
    view("V1", "json_unicode_twice", |t, _| {
        each(t, |c| format!("\\\\u{c:04x}"))
    }),
    view("V1", "braced", |t, _| each(t, |c| format!("\\u{{{c:x}}}"))),
    view("V1", "python_long", |t, _| {
        each(t, |c| format!("\\U{c:08x}"))
    }),
    view("V1", "hex_escape", |t, _| {
        each(t, |c| format!("\\x{c:02x}"))
    }),
    view("V1", "octal_escape", |t, _| {
        each(t, |c| format!("\\{c:03o}"))
    }),
    view("V2", "percent", |t, _| each(t, |c| format!("%{c:02X}"))),
    view("V2", "percent_twice", |t, _| {
        each(t, |c| format!("%25{c:02x}"))
    }),
    view("V3", "entity_decimal", |t, _| {
        each(t, |c| format!("&#{c};"))
    }),
    view("V3", "entity_hex", |t, _| each(t, |c| format!("&#x{c:X};"))),
    view("V4", "hex_lower", |t, _| {
        HEXLOWER.encode(padded(t).as_bytes())
    }),
    view("V4", "hex_upper", |t, _| {
        HEXUPPER.encode(padded(t).as_bytes())
    }),
    view("V4", "base32", |t, _| BASE32.encode(padded(t).as_bytes())),
    view("V4", "base64", |t, _| BASE64.encode(padded(t).as_bytes())),
    view("V4", "base64_no_pad", |t, _| {
        BASE64_NOPAD.encode(padded(t).as_bytes())
    }),
    view("V4", "base64_url", |t, _| {
        BASE64URL_NOPAD.encode(padded(t).as_bytes())
    }),
    view("V4", "base64_behind_letters", |t, rng| {
        let lead = rng.between(1, 3);
        format!(
            "{}{}",
            rng.text(super::LOWER, lead),
            BASE64.encode(padded(t).as_bytes())
        )
    }),
    view("V4", "quoted_printable", |t, _| {
        each(t, |c| format!("={c:02X}"))
    }),
    view("V5", "gzip_base64", |t, _| {
        BASE64.encode(&gzip(padded(t).as_bytes()))
    }),
    view("V5", "json_in_base64", |t, _| {
        let quoted = serde_json::Value::from(t).to_string();
        BASE64.encode(format!("{{\"body\":{quoted}}}").as_bytes())
    }),
    view("V5", "base64_twice", |t, _| {
        BASE64.encode(BASE64.encode(padded(t).as_bytes()).as_bytes())
    }),
    view("V5", "percent_in_base64", |t, _| {
        BASE64.encode(each(t, |c| format!("%{c:02X}")).as_bytes())
    }),
    view("V6", "zero_width", |t, _| between(t, '\u{200b}')),
    view("V6", "soft_hyphen", |t, _| between(t, '\u{ad}')),
    view("V6", "word_joiner", |t, _| between(t, '\u{2060}')),
    view("V6", "variation_selector", |t, _| between(t, '\u{fe0f}')),
    view("V6", "tag_characters", |t, _| {
        t.chars()
            .map(|c| match u32::from(c) {
                n @ 0x20..0x7f => char::from_u32(0xe_0000 + n).unwrap_or(c),
                _ => c,
            })
            .collect()
    }),
    view("V6", "full_width", |t, _| {
        t.chars()
            .map(|c| match u32::from(c) {
                n @ 0x21..0x7f => char::from_u32(0xfee0 + n).unwrap_or(c),
                _ => c,
            })
            .collect()
    }),
    view("V6", "mathematical", |t, _| {
        t.chars().map(mathematical).collect()
    }),
    view("V6", "look_alikes", look_alikes),
];

/// Every ASCII character written by `write`; others stay.
fn each(text: &str, write: impl Fn(u32) -> String) -> String {
    text.chars()
        .map(|c| {
            if c.is_ascii() && c != '\n' {
                write(u32::from(c))
            } else {
                c.to_string()
            }
        })
        .collect()
}

/// Words around a short value: runs below the length that is decoded hide nothing new.
fn padded(text: &str) -> String {
    format!("value is {text} here")
}

fn between(text: &str, sign: char) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if !out.is_empty() && c != '\n' {
            out.push(sign);
        }
        out.push(c);
    }
    out
}

fn mathematical(c: char) -> char {
    let at = |zero: u32, first: char| char::from_u32(zero + u32::from(c) - u32::from(first));
    match c {
        'A'..='Z' => at(0x1d400, 'A'),
        'a'..='z' => at(0x1d41a, 'a'),
        '0'..='9' => at(0x1d7ce, '0'),
        _ => None,
    }
    .unwrap_or(c)
}

/// Cyrillic letters that look Latin; a text without any gets a zero-width space instead.
fn look_alikes(text: &str, rng: &mut Rng) -> String {
    let mut changed = false;
    let out: String = text
        .chars()
        .map(|c| {
            let twin = match c {
                'a' => 'а',
                'c' => 'с',
                'e' => 'е',
                'o' => 'о',
                'p' => 'р',
                'x' => 'х',
                'y' => 'у',
                'A' => 'А',
                'B' => 'В',
                'E' => 'Е',
                'H' => 'Н',
                'K' => 'К',
                'M' => 'М',
                'O' => 'О',
                'P' => 'Р',
                'T' => 'Т',
                'X' => 'Х',
                other => other,
            };
            // Half of them at the most, so that a mixed word is met too.
            let swap = twin != c && rng.below(2) == 0;
            changed |= swap;
            if swap { twin } else { c }
        })
        .collect();
    if changed {
        out
    } else {
        between(text, '\u{200b}')
    }
}

/// A gzip member (RFC 1952) of one stored block (RFC 1951).
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    let kept = bytes.get(..usize::from(length)).unwrap_or(bytes);
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(kept);
    out.extend_from_slice(&crc32(kept).to_le_bytes());
    out.extend_from_slice(&u32::from(length).to_le_bytes());
    out
}
