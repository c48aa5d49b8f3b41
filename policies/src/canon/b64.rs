//! base64 in the two spellings that the formats use; a decoder accepts the canonical text only.

use data_encoding::{BASE64, BASE64URL_NOPAD};

/// base64url, unpadded (audit-bundle 1.1).
#[must_use]
pub fn b64url(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

/// Decodes unpadded base64url; `None` unless the text re-encodes to itself.
#[must_use]
pub fn unb64url(text: &str) -> Option<Vec<u8>> {
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok()?;
    (b64url(&bytes) == text).then_some(bytes)
}

/// Standard base64, padded: the spelling inside C2SP texts.
#[must_use]
pub fn b64std(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Decodes padded standard base64; `None` unless the text re-encodes to itself.
#[must_use]
pub fn unb64std(text: &str) -> Option<Vec<u8>> {
    let bytes = BASE64.decode(text.as_bytes()).ok()?;
    (b64std(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_spelling_decodes() {
        assert_eq!(unb64url("AQ").as_deref(), Some(&[1][..]));
        for bad in ["AR", "AQ==", "A", "A+", "AQ\n", "é"] {
            assert_eq!(unb64url(bad), None, "{bad}");
        }
        assert_eq!(unb64std("AQ==").as_deref(), Some(&[1][..]));
        for bad in ["AR==", "AQ", "AQ=", "-w==", "AQ==AQ=="] {
            assert_eq!(unb64std(bad), None, "{bad}");
        }
    }
}
