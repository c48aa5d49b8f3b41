//! Pseudonyms and placeholders: keyed, checkable, impossible to write into a log (guardrails 4).
//!
//! A token is `<kind:IIIIIIII.CCCC>` between the angle quotes U+2039 and U+203A. `I` are 40 bits
//! of an HMAC over the class and the canonical value, so that one value has one name; `C` are 20
//! bits of an HMAC over the text before the last dot, so that a token can be told from a forgery.

use std::borrow::Cow;
use std::sync::LazyLock;

use data_encoding::{Encoding, Specification};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::claim::RedactKey;

/// Opening bracket of a token.
pub(crate) const OPEN: char = '\u{2039}';
/// Closing bracket of a token.
pub(crate) const CLOSE: char = '\u{203a}';
/// Longest text between the brackets.
const MAX_BODY: usize = 96;

/// Makes and checks tokens under one key.
pub(crate) struct Minter {
    mac: Hmac<Sha256>,
}

impl std::fmt::Debug for Minter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Minter(secret)")
    }
}

impl Minter {
    pub(crate) fn new(key: &RedactKey) -> Self {
        // The key of an HMAC is padded with zeros to the block, so this cannot fail.
        let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
        for (slot, byte) in block.iter_mut().zip(key.bytes()) {
            *slot = *byte;
        }
        Self {
            mac: Hmac::new(&block),
        }
    }

    /// The token of a value. `hint` is appended to the id and must hold no personal data.
    pub(crate) fn pseudonym(&self, kind: &str, hint: &str, class: &str, canonical: &str) -> String {
        let mut mac = self.mac.clone();
        for part in [b"id/1\0", class.as_bytes(), b"\0", canonical.as_bytes()] {
            mac.update(part);
        }
        let id = digits(mac, 8);
        let hint = if hint.is_empty() {
            String::new()
        } else {
            format!(";{hint}")
        };
        self.close(&format!("{kind}:{id}{hint}"))
    }

    /// Adds check digits and brackets to a body.
    pub(crate) fn close(&self, body: &str) -> String {
        format!("{OPEN}{body}.{}{CLOSE}", self.check(body))
    }

    /// Four letters for what several values share.
    pub(super) fn short(&self, shared: &str) -> String {
        let mut mac = self.mac.clone();
        mac.update(b"sub/1\0");
        mac.update(shared.as_bytes());
        digits(mac, 4)
    }

    fn check(&self, body: &str) -> String {
        let mut mac = self.mac.clone();
        mac.update(b"chk/1\0");
        mac.update(body.as_bytes());
        digits(mac, 4)
    }

    /// Length of the genuine token that `text` begins with.
    pub(crate) fn genuine(&self, text: &str) -> Option<usize> {
        let rest = text.strip_prefix(OPEN)?;
        let close = rest
            .char_indices()
            .take(MAX_BODY)
            .find(|&(_, c)| c == CLOSE)?
            .0;
        let (body, check) = rest.get(..close)?.rsplit_once('.')?;
        (has_form(body) && self.check(body) == check)
            .then(|| close.saturating_add(OPEN.len_utf8() + CLOSE.len_utf8()))
    }

    /// Turns brackets that belong to no genuine token into `<` and `>`. Says how many of them had
    /// the form of a token.
    pub(crate) fn defuse<'a>(&self, text: &'a str) -> (Cow<'a, str>, u32) {
        // Both brackets share their first two bytes; a text without them is the common case.
        if memchr::memmem::find(text.as_bytes(), b"\xe2\x80").is_none()
            || !text.contains([OPEN, CLOSE])
        {
            return (Cow::Borrowed(text), 0);
        }
        let mut out = String::with_capacity(text.len());
        let mut forged = 0_u32;
        let mut rest = text;
        while let Some(at) = rest.find([OPEN, CLOSE]) {
            out.push_str(rest.get(..at).unwrap_or(""));
            rest = rest.get(at..).unwrap_or("");
            if let Some(len) = self.genuine(rest) {
                out.push_str(rest.get(..len).unwrap_or(""));
                rest = rest.get(len..).unwrap_or("");
                continue;
            }
            if rest.starts_with(OPEN) {
                forged = forged.saturating_add(u32::from(looks_like_token(rest)));
                out.push('<');
            } else {
                out.push('>');
            }
            rest = rest.get(OPEN.len_utf8()..).unwrap_or("");
        }
        out.push_str(rest);
        if out == text {
            return (Cow::Borrowed(text), 0);
        }
        (Cow::Owned(out), forged)
    }
}

fn digits(mac: Hmac<Sha256>, count: usize) -> String {
    let bits = mac.finalize().into_bytes();
    let mut text = LOWER_BASE32.encode(&bits);
    text.truncate(count);
    text
}

/// A placeholder without an id, for example `removed:instr`.
pub(crate) fn placeholder(key: &RedactKey, body: &str) -> String {
    Minter::new(key).close(body)
}

fn has_form(body: &str) -> bool {
    body.contains(':')
        && body.bytes().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'.' | b':' | b';' | b'=' | b',' | b'_' | b'-')
        })
}

fn looks_like_token(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(OPEN) else {
        return false;
    };
    rest.char_indices()
        .take(MAX_BODY)
        .find(|&(_, c)| c == CLOSE)
        .and_then(|(close, _)| rest.get(..close))
        .and_then(|inner| inner.rsplit_once('.'))
        .is_some_and(|(body, check)| has_form(body) && check.len() == 4)
}

/// RFC 4648 in lower case, without padding.
static LOWER_BASE32: LazyLock<Encoding> = LazyLock::new(|| {
    let mut spec = Specification::new();
    spec.symbols.push_str("abcdefghijklmnopqrstuvwxyz234567");
    // The alphabet is fixed and valid; the other one would only spell ids differently.
    spec.encoding().unwrap_or(data_encoding::BASE32_DNSCURVE)
});

#[cfg(test)]
mod tests {
    use super::Minter;
    use crate::claim::RedactKey;

    fn minter(seed: u8) -> Minter {
        Minter::new(&RedactKey::from_bytes([seed; 32]))
    }

    #[test]
    fn one_value_has_one_name_under_one_key_and_another_under_another() {
        let a = minter(1).pseudonym("email", "", "email", "a@example.com");
        assert_eq!(
            a,
            minter(1).pseudonym("email", "", "email", "a@example.com")
        );
        assert_ne!(
            a,
            minter(2).pseudonym("email", "", "email", "a@example.com")
        );
        assert_ne!(
            a,
            minter(1).pseudonym("email", "", "email", "b@example.com")
        );
        assert_eq!(a.chars().count(), "<email:IIIIIIII.CCCC>".len());
    }

    #[test]
    fn genuine_tokens_stay_and_forged_brackets_become_angle_signs() {
        let m = minter(1);
        let token = m.pseudonym("pan", "brand=visa", "pan", "4");
        let foreign = minter(2).pseudonym("pan", "", "pan", "4");
        let (out, forged) = m.defuse(&token);
        assert_eq!((out.as_ref(), forged), (token.as_str(), 0));
        let text = format!("a {token} b {foreign} \u{2039}quoted\u{203a}");
        let (out, forged) = m.defuse(&text);
        assert!(out.contains(&token), "{out}");
        assert!(out.ends_with("<quoted>"), "{out}");
        assert_eq!(forged, 1);
        assert_eq!(out.matches('\u{2039}').count(), 1);
    }
}
