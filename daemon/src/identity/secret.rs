//! Random values, keyed digests and the two secrets of an account.

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system gave no random bytes: {0}")]
pub struct NoRandom(String);

/// Random bytes of the system.
///
/// # Errors
/// [`NoRandom`] when the system has none.
pub fn random<const N: usize>() -> Result<[u8; N], NoRandom> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| NoRandom(error.to_string()))?;
    Ok(bytes)
}

/// A random value of 256 bits as text for a cookie.
///
/// # Errors
/// [`NoRandom`] when the system has none.
pub fn token() -> Result<String, NoRandom> {
    Ok(BASE64URL_NOPAD.encode(&random::<32>()?))
}

/// The only form in which such a value is stored.
#[must_use]
pub fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The key of form tokens. It lives as long as the process: a form older than that is refused
/// and shown again.
pub struct FormKey([u8; 64]);

impl std::fmt::Debug for FormKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FormKey")
    }
}

impl FormKey {
    /// A new key.
    ///
    /// # Errors
    /// [`NoRandom`] when the system has none.
    pub fn generate() -> Result<Self, NoRandom> {
        random().map(Self)
    }

    /// A key of given bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// The token of one form: a nonce, and its digest bound to login and path (console 3.6).
    ///
    /// # Errors
    /// [`NoRandom`] when the system has none.
    pub fn seal(&self, login: &str, path: &str) -> Result<String, NoRandom> {
        let nonce = BASE64URL_NOPAD.encode(&random::<12>()?);
        let tag = BASE64URL_NOPAD.encode(&self.tag(&nonce, login, path));
        Ok(format!("{nonce}.{tag}"))
    }

    /// The nonce of a token that belongs to this login and path.
    #[must_use]
    pub fn open(&self, token: &str, login: &str, path: &str) -> Option<String> {
        let (nonce, tag) = token.split_once('.')?;
        let tag = BASE64URL_NOPAD.decode(tag.as_bytes()).ok()?;
        let right = self.tag(nonce, login, path);
        bool::from(right.as_slice().ct_eq(tag.as_slice())).then(|| nonce.to_owned())
    }

    fn tag(&self, nonce: &str, login: &str, path: &str) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new(&self.0.into());
        for part in ["sentinel-form/1", nonce, login, path] {
            mac.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.finalize().into_bytes().into()
    }
}

/// A new TOTP secret of 160 bits.
///
/// # Errors
/// [`NoRandom`] when the system has none.
pub fn totp_secret() -> Result<[u8; 20], NoRandom> {
    random()
}

/// A TOTP secret as a person types it into an authenticator.
#[must_use]
pub fn totp_text(secret: &[u8; 20]) -> String {
    BASE32_NOPAD.encode(secret)
}

/// The address that authenticators read from a QR code.
#[must_use]
pub fn totp_url(site: &str, name: &str, secret: &[u8; 20]) -> String {
    let site = percent(site);
    format!(
        "otpauth://totp/{site}:{}?secret={}&issuer={site}&algorithm=SHA1&digits=6&period=30",
        percent(name),
        totp_text(secret)
    )
}

/// Percent-encodes everything but unreserved characters.
#[must_use]
pub fn percent(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_token_opens_for_its_login_and_path_only() {
        let key = FormKey::from_bytes([7; 64]);
        let token = key.seal("login-a", "/approvals/act_1/approve").unwrap();
        let nonce = key.open(&token, "login-a", "/approvals/act_1/approve");
        assert_eq!(nonce.as_deref(), token.split('.').next());
        for (login, path) in [
            ("login-b", "/approvals/act_1/approve"),
            ("login-a", "/approvals/act_2/approve"),
            ("login-a", "/approvals/act_1/deny"),
        ] {
            assert_eq!(key.open(&token, login, path), None);
        }
        assert_eq!(key.open("", "login-a", ""), None);
        assert_eq!(key.open("x.y", "login-a", ""), None);
        let other = FormKey::from_bytes([8; 64]);
        assert_eq!(
            other.open(&token, "login-a", "/approvals/act_1/approve"),
            None
        );
    }

    #[test]
    fn an_authenticator_gets_the_secret_as_text_and_as_an_address() {
        let secret = *b"12345678901234567890";
        assert_eq!(totp_text(&secret), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(
            totp_url("plant 7", "alice", &secret),
            "otpauth://totp/plant%207:alice?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\
             &issuer=plant%207&algorithm=SHA1&digits=6&period=30"
        );
    }
}
