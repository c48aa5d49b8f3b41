//! Credentials in headers: `Authorization`, API key headers, cookies. Scheme and names stay.

use super::scan::{Hits, before, byte, run_end, slice};
use super::secret::{is_placeholder, random_like};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    anchor: Anchor::Literals(
        &[
            "authorization",
            "x-api-key",
            "x-auth-token",
            "x-access-token",
            "cookie",
            "bearer ",
        ],
        scan,
    ),
};

const SCHEMES: &[&str] = &[
    "bearer",
    "basic",
    "digest",
    "token",
    "apikey",
    "api-key",
    "negotiate",
    "ntlm",
    "hawk",
    "aws4-hmac-sha256",
    "signature",
    "mac",
    "key",
];

fn scan(text: &str, start: usize, word: &'static str, hits: &mut Hits) {
    if before(text, start).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return;
    }
    let at = start + word.len();
    if word == "bearer " {
        bearer(text, at, hits);
        return;
    }
    let Some((from, quote)) = value_start(text, at) else {
        return;
    };
    let end = value_end(text, from, quote);
    hits.spend(end - from);
    if word == "cookie" {
        let set = slice(text, start.saturating_sub(4), start).eq_ignore_ascii_case("set-");
        cookies(text, from, end, set, hits);
    } else {
        header(text, from, end, quote.is_some(), hits);
    }
}

/// Skips the end of the key, the separator and an opening quote.
fn value_start(text: &str, at: usize) -> Option<(usize, Option<u8>)> {
    let key_end = run_end(text, at, |b| {
        matches!(b, b'"' | b'\'' | b'\\' | b' ' | b']')
    });
    let separator = run_end(text, key_end, |b| matches!(b, b':' | b'=' | b'>'));
    if separator == key_end || separator > key_end + 2 || key_end > at + 4 {
        return None;
    }
    let from = run_end(text, separator, |b| {
        matches!(b, b' ' | b'\t' | b'\\' | b'[')
    });
    match byte(text, from)? {
        q @ (b'"' | b'\'') => Some((from + 1, Some(q))),
        _ => Some((from, None)),
    }
}

fn value_end(text: &str, from: usize, quote: Option<u8>) -> usize {
    match quote {
        Some(q) => run_end(text, from, |b| b != q && b != b'\n' && b != b'\\'),
        None => run_end(text, from, |b| !matches!(b, b'"' | b'\'' | b'\n' | b'\r')),
    }
}

fn header(text: &str, from: usize, end: usize, quoted: bool, hits: &mut Hits) {
    let value = slice(text, from, end);
    let (scheme, rest) = value.split_once(' ').unwrap_or(("", value));
    let known = SCHEMES.contains(&scheme.to_ascii_lowercase().as_str());
    let (from, rest) = if known {
        let rest = rest.trim_start();
        (end - rest.len(), rest)
    } else {
        (from, value)
    };
    let many = ["digest", "aws4-hmac-sha256", "signature", "hawk", "mac"]
        .contains(&scheme.to_ascii_lowercase().as_str());
    let length = if quoted || (known && many) {
        rest.trim_end().len()
    } else {
        rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '}' | ')' | ']'))
            .unwrap_or(rest.len())
    };
    let credential = slice(rest, 0, length);
    // Prose goes on behind `authorization: `; a header has one word there, or one like a key.
    let prose = !quoted && !known && length < rest.trim_end().len() && !random_like(credential);
    if length > 1
        && !prose
        && !is_placeholder(credential)
        && !SCHEMES.contains(&credential.to_ascii_lowercase().as_str())
    {
        hits.add(Kind::Auth, from, from + length);
    }
}

/// A credential after `Bearer ` without a header in front.
fn bearer(text: &str, from: usize, hits: &mut Hits) {
    let end = run_end(text, from, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
    });
    let token = slice(text, from, end).trim_end_matches('.');
    if token.len() >= 16 && token.bytes().any(|b| b.is_ascii_digit()) {
        hits.add(Kind::Auth, from, from + token.len());
    }
}

/// `a=1; b=2`; of a `Set-Cookie` the first pair only, the others are attributes.
fn cookies(text: &str, from: usize, end: usize, set: bool, hits: &mut Hits) {
    let mut at = from;
    for (i, pair) in slice(text, from, end).split(';').enumerate() {
        if set && i > 0 {
            break;
        }
        if let Some((name, value)) = pair.split_once('=') {
            let named = name.trim();
            let plain = !named.is_empty() && !named.contains(char::is_whitespace);
            let start = at + name.len() + 1;
            let value = value.split(char::is_whitespace).next().unwrap_or("");
            if plain && value.len() > 1 && !is_placeholder(value) {
                hits.add(Kind::Cookie, start, start + value.len());
            }
        }
        at += pair.len() + 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives};

    #[test]
    fn credentials_of_headers_are_found_and_scheme_and_names_stay() {
        let secret = ["Zm9v", "OmJhcjEy", "MzQ1Njc4"].concat();
        for text in [
            format!("Authorization: Basic {secret}"),
            format!("authorization=\"Bearer {secret}\" status=401"),
            format!("{{\"Authorization\":\"Token {secret}\"}}"),
            format!("proxy-authorization: {secret} x"),
            format!("> X-Api-Key: {secret}"),
            format!("sent Bearer {secret} to peer"),
        ] {
            assert_found(&text, &secret, "auth");
        }
        assert_found(&format!("Cookie: sid={secret}; theme=d"), &secret, "cookie");
        assert_found(
            &format!("Set-Cookie: sid={secret}; Path=/x; HttpOnly"),
            &secret,
            "cookie",
        );
    }

    #[test]
    fn words_that_only_contain_a_header_name_stay() {
        for text in [
            "authorization_status=granted",
            "authorization: Bearer",
            "authorization failed for user 7",
            "cookie jar is full",
            "the bearer of bad news",
            "reauthorization: done",
            "Authorization: ***",
            "may require authorization: server message: insufficient_scope",
            "cookie_count=12",
        ] {
            assert_survives(text);
        }
    }
}
