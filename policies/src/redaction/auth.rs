//! Credentials in headers: `Authorization`, API key headers, cookies. Scheme and names stay.

use super::scan::{Hits, before, byte, run_end, slice};
use super::secret::{is_placeholder, random_like};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "auth",
    anchor: Anchor::Literals(
        &[
            "authorization",
            "x-api-key",
            "x-auth-token",
            "x-access-token",
            "api-key:",
            "x-goog-api-key",
            "x-vault-token",
            "x-amz-security-token",
            "subscription-key",
            "private-token",
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

/// Skips the end of the key, the separator and an opening quote. Between a quoted name and its
/// value, tuples have a comma and messages of gRPC the word `value`.
fn value_start(text: &str, at: usize) -> Option<(usize, Option<u8>)> {
    let key_end = run_end(text, at, |b| {
        matches!(b, b'"' | b'\'' | b'\\' | b' ' | b']')
    });
    let quoted = slice(text, at, key_end).contains(['"', '\'']);
    let comma = quoted && byte(text, key_end) == Some(b',');
    let worded = quoted && slice(text, key_end, key_end + 6) == "value:";
    let separator = if comma {
        key_end + 1
    } else if worded {
        key_end + 6
    } else {
        run_end(text, key_end, |b| matches!(b, b':' | b'=' | b'>'))
    };
    if separator == key_end || (!worded && separator > key_end + 2) || key_end > at + 4 {
        return None;
    }
    let from = run_end(text, separator, |b| {
        matches!(b, b' ' | b'\t' | b'\\' | b'[')
    });
    match byte(text, from)? {
        q @ (b'"' | b'\'' | b'`') => Some((from + 1, Some(q))),
        _ if comma => None,
        _ => Some((from, None)),
    }
}

fn value_end(text: &str, from: usize, quote: Option<u8>) -> usize {
    match quote {
        Some(q) => run_end(text, from, |b| b != q && b != b'\n' && b != b'\\'),
        None => {
            let end = run_end(text, from, |b| !matches!(b, b'"' | b'\'' | b'\n' | b'\r'));
            // The backslashes of an escaped quote or line end belong to what is around the value.
            let escaped = slice(text, from, end).trim_end_matches('\\').len();
            let broken = ["\\n", "\\r"]
                .iter()
                .filter_map(|sign| slice(text, from, end).find(sign))
                .min();
            from + broken.map_or(escaped, |at| at.min(escaped))
        }
    }
}

/// Basic credentials are named by what they decode to, so that their spelling does not matter.
pub(super) fn canonical(text: &str) -> String {
    data_encoding::BASE64
        .decode(text.as_bytes())
        .ok()
        .filter(|pair| pair.contains(&b':'))
        .and_then(|pair| String::from_utf8(pair).ok())
        .unwrap_or_else(|| text.to_owned())
}

fn header(text: &str, from: usize, end: usize, quoted: bool, hits: &mut Hits) {
    let value = slice(text, from, end);
    let (first, rest) = value.split_once(' ').unwrap_or((value, ""));
    let rest = rest.trim_start();
    let named = |list: &[&str]| list.iter().any(|name| first.eq_ignore_ascii_case(name));
    let known = named(SCHEMES);
    // Any other word of letters is a scheme too, if one thing stands behind it that is no word.
    let letters = first.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-');
    let one = word_end(rest);
    let unknown = letters
        && !first.is_empty()
        && (random_like(slice(rest, 0, one)) || (quoted && one == rest.len() && one > 0));
    let (start, credential) = if known || unknown {
        (end - rest.len(), rest)
    } else {
        (from, value)
    };
    let many = named(&["digest", "aws4-hmac-sha256", "signature", "hawk", "mac"]);
    let length = if quoted || (known && many) {
        credential.trim_end().len()
    } else {
        word_end(credential)
    };
    let found = slice(credential, 0, length);
    // Prose goes on behind `authorization: `; a header has one word there, or one like a key.
    let more = length < credential.trim_end().len();
    let prose = !quoted && !known && more && !random_like(found);
    if length > 1
        && !prose
        && !is_placeholder(found)
        && !SCHEMES
            .iter()
            .any(|scheme| found.eq_ignore_ascii_case(scheme))
    {
        hits.add(Kind::Auth, start, start + length);
    }
}

/// End of the first word of a credential.
fn word_end(text: &str) -> usize {
    text.find(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '}' | ')' | ']'))
        .unwrap_or(text.len())
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
            format!("Authorization: Custom {secret}"),
            format!("('authorization', 'Bearer {secret}')"),
            format!("headers {{key:\"authorization\" value:\"Bearer {secret}\"}}"),
            format!("map[Authorization:[Bearer {secret}] Accept:[*/*]]"),
            format!("X-Vault-Token: {secret}"),
            format!("curl -H 'Authorization: Basic {secret}' http://x"),
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
    fn an_escaped_quote_behind_a_value_stays() {
        let secret = ["8d6c69656f", "7649f86e4d20"].concat();
        let text = format!("{{\"r\":\"{{\\\"msg\\\":\\\"Cookie: sid={secret}\\\"}}\"}}");
        assert_found(&text, &secret, "cookie");
        assert_found(
            &format!("Authorization: {secret}\\nHost: x"),
            &secret,
            "auth",
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
            "authorization: access denied by policy",
        ] {
            assert_survives(text);
        }
    }
}
