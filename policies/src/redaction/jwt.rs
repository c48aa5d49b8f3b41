//! JSON web tokens: three or five segments, the first decodes to an object with `alg` or `enc`.

use std::sync::LazyLock;

use data_encoding::Encoding;

use super::keys::is_glued;
use super::scan::{Hits, before, byte, run_end, run_within, slice};
use super::{Anchor, Entity, Kind};

/// How a header begins in base64url: a brace and a quote, a blank, a line end or a tab, also behind
/// one blank or two. The automaton folds letter case; what is decoded decides.
pub(crate) const ENTITY: Entity = Entity {
    name: "jwt",
    anchor: Anchor::Literals(
        &[
            "eyA", "eyB", "eyC", "eyD", "eyI", "eyJ", "eyK", "eyL", "ewo", "ewp", "ewq", "ewr",
            "ew0", "ew1", "ew2", "ew3", "ewk", "ewl", "ewm", "ewn", "IHsi", "IHsg", "IHsK", "ICB7",
        ],
        scan,
    ),
};

/// Longest header that is decoded.
const MAX_HEADER: usize = 4096;

fn scan(text: &str, start: usize, _: &'static str, hits: &mut Hits) {
    if is_glued(text, start) || before(text, start) == Some(b'.') {
        return;
    }
    let header_end = run_within(text, start, MAX_HEADER + 1, is_segment);
    hits.spend(header_end - start);
    if header_end - start > MAX_HEADER
        || byte(text, header_end) != Some(b'.')
        || !is_header(slice(text, start, header_end))
    {
        return;
    }
    let mut end = header_end;
    let mut segments = 1;
    while segments < 5 && byte(text, end) == Some(b'.') {
        let next = run_end(text, end + 1, is_segment);
        let empty_allowed = segments >= 1 && byte(text, next) == Some(b'.') || segments == 2;
        if next == end + 1 && !empty_allowed {
            break;
        }
        end = next;
        segments += 1;
    }
    if segments >= 3 {
        hits.add(Kind::Jwt, start, end);
    }
}

const fn is_segment(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'=')
}

/// Base64url without padding; a cut segment may leave bits over.
static LENIENT: LazyLock<Option<Encoding>> = LazyLock::new(|| {
    let mut spec = data_encoding::BASE64URL_NOPAD.specification();
    spec.check_trailing_bits = false;
    spec.encoding().ok()
});

fn header(segment: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    let mut bits = segment.trim_end_matches('=').as_bytes();
    // One letter more than a whole group is not decodable; the rest is still a header.
    if bits.len() % 4 == 1 {
        bits = bits.get(..bits.len() - 1).unwrap_or(&[]);
    }
    let bytes = LENIENT.as_ref()?.decode(bits).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn is_header(segment: &str) -> bool {
    header(segment).is_some_and(|map| map.contains_key("alg") || map.contains_key("enc"))
}

/// The algorithm, if it is one of those that are registered: another text could be anything.
pub(super) fn algorithm(token: &str) -> Option<&'static str> {
    const KNOWN: &[&str] = &[
        "none",
        "HS256",
        "HS384",
        "HS512",
        "RS256",
        "RS384",
        "RS512",
        "ES256",
        "ES384",
        "ES512",
        "PS256",
        "PS384",
        "PS512",
        "EdDSA",
        "dir",
        "RSA-OAEP",
        "RSA-OAEP-256",
        "ECDH-ES",
    ];
    let map = header(token.split('.').next()?)?;
    let alg = map.get("alg")?.as_str()?;
    KNOWN.iter().copied().find(|known| *known == alg)
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives, jwt};

    #[test]
    fn c33_signed_and_encrypted_tokens_are_found_whatever_the_spelling_of_their_header() {
        for header in [
            r#"{"alg":"HS256"}"#,
            r#"{ "typ":"JWT","alg":"none" }"#,
            "{\n\"enc\":\"A128GCM\"}",
            "{\t\"alg\":\"ES256\"}",
            "{\r\n\"alg\":\"ES256\"}",
            " {\"alg\":\"ES256\"}",
            "  {\"alg\":\"ES256\"}",
        ] {
            let token = jwt(header);
            assert_found(&format!("got {token} back"), &token, "jwt");
        }
    }

    #[test]
    fn dotted_words_that_begin_alike_are_no_tokens() {
        for text in [
            "eyes.wide.shut",
            "example.com.au",
            "ew.ew.ew",
            "keyboard.layout.us",
            "eyJhIjoxfQ.eyJhIjoxfQ.x",
        ] {
            assert_survives(text);
        }
    }
}
