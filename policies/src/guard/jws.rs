//! Compact JWS with ES256, as strict as guard 5.3 rules 1 and 3 ask. Own code on purpose:
//! no library decides here which key or algorithm a token is checked with.

use p256::ecdsa::signature::{Signer, Verifier};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

use crate::canon::{Value, b64url, unb64url};

/// Longest token (guard 5.3 rule 1).
pub(super) const MAX_BYTES: usize = 2048;

/// The three segments of a token, as text and decoded.
pub(super) struct Segments<'a> {
    pub(super) header: &'a str,
    pub(super) payload: Vec<u8>,
    signature: Vec<u8>,
    signed: &'a str,
}

/// Rule 1: length, exactly two dots, each segment re-encodes to itself.
pub(super) fn split(token: &str) -> Option<Segments<'_>> {
    if token.len() > MAX_BYTES {
        return None;
    }
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, payload) = signed.split_once('.')?;
    if payload.contains('.') {
        return None;
    }
    unb64url(header)?;
    Some(Segments {
        header,
        payload: unb64url(payload)?,
        signature: unb64url(signature)?,
        signed,
    })
}

impl Segments<'_> {
    /// Rule 3: 64 raw bytes, `1 <= r < n`, `1 <= s <= n/2`, and it verifies.
    pub(super) fn verifies(&self, key: &VerifyingKey) -> bool {
        if self.signature.len() != 64 {
            return false;
        }
        // `from_slice` refuses r and s that are zero or not below n.
        let Ok(signature) = Signature::from_slice(&self.signature) else {
            return false;
        };
        signature.normalize_s() == signature
            && key.verify(self.signed.as_bytes(), &signature).is_ok()
    }
}

/// A token from its header segment and payload. Signatures are deterministic (RFC 6979), low-S.
pub(super) fn sign(header: &str, payload: &str, key: &SigningKey) -> String {
    let signed = format!("{header}.{}", b64url(payload.as_bytes()));
    let signature: Signature = key.sign(signed.as_bytes());
    let signature = signature.normalize_s();
    format!("{signed}.{}", b64url(&signature.to_bytes()))
}

/// The public members `crv`, `kty`, `x`, `y` of a key.
#[must_use]
pub fn public_jwk(key: &VerifyingKey) -> Value {
    let point = key.to_sec1_point(false);
    let coordinate = |bytes: Option<&p256::FieldBytes>| {
        Value::Text(bytes.map(|b| b64url(b)).unwrap_or_default())
    };
    Value::map([
        ("crv", Value::from("P-256")),
        ("kty", Value::from("EC")),
        ("x", coordinate(point.x())),
        ("y", coordinate(point.y())),
    ])
}

/// RFC 7638 thumbprint: SHA-256 of the JCS of exactly the required members, which JCS orders
/// as the RFC does.
#[must_use]
pub fn thumbprint(key: &VerifyingKey) -> String {
    b64url(&Sha256::digest(public_jwk(key).to_jcs().as_bytes()))
}

/// The key of the members `crv`, `kty`, `x`, `y`; nothing else may stand beside them.
pub(super) fn key_of_jwk(jwk: &Value) -> Option<VerifyingKey> {
    let members = jwk.exactly(&["crv", "kty", "x", "y"])?;
    let text = |key: &str| members.get(key).and_then(Value::as_text);
    if text("crv") != Some("P-256") || text("kty") != Some("EC") {
        return None;
    }
    let (x, y) = (unb64url(text("x")?)?, unb64url(text("y")?)?);
    if x.len() != 32 || y.len() != 32 {
        return None;
    }
    let sec1: Vec<u8> = [&[4_u8][..], &x, &y].concat();
    VerifyingKey::from_sec1_bytes(&sec1).ok()
}

/// The JWKS text of capability keys: `{"keys":[...]}` (guard 3.1).
#[must_use]
pub fn jwks(keys: &[VerifyingKey]) -> String {
    let keys = keys
        .iter()
        .map(|key| {
            let mut members = public_jwk(key).as_map().cloned().unwrap_or_default();
            members.insert("alg".to_owned(), Value::from("ES256"));
            members.insert("kid".to_owned(), Value::Text(thumbprint(key)));
            members.insert("use".to_owned(), Value::from("sig"));
            Value::Map(members)
        })
        .collect();
    Value::map([("keys", Value::List(keys))]).to_jcs()
}
