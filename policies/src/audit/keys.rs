//! P-256 keys and signatures in the spellings of guard 6.2.2.

use p256::ecdsa::signature::{Signer as _, Verifier as _};
use p256::ecdsa::{Signature, SigningKey, VerifyingKey};

use super::sha256;
use crate::canon::{b64std, unb64std};

/// The length of the SPKI DER of an uncompressed P-256 key.
pub const SPKI_BYTES: usize = 91;

/// SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING (66 bytes, 0 unused) }.
const SPKI_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The signature type of ECDSA in a vkey.
const TYPE_ECDSA: u8 = 0x02;

/// The SPKI DER of a key.
#[must_use]
pub fn spki_der(key: &VerifyingKey) -> Vec<u8> {
    let mut der = SPKI_HEAD.to_vec();
    der.extend_from_slice(key.to_sec1_point(false).as_bytes());
    der
}

/// The key that an SPKI DER spells: P-256, uncompressed, on the curve (audit-bundle 1.1).
#[must_use]
pub fn verifying_key(spki: &[u8]) -> Option<VerifyingKey> {
    let point = spki.strip_prefix(&SPKI_HEAD)?;
    if spki.len() != SPKI_BYTES || point.first() != Some(&4) {
        return None;
    }
    VerifyingKey::from_sec1_bytes(point).ok()
}

/// Signs a message: ECDSA P-256 over its SHA-256, deterministic (RFC 6979), low-S, strict DER.
#[must_use]
pub fn sign(key: &SigningKey, message: &[u8]) -> Vec<u8> {
    let signature: Signature = key.sign(message);
    signature.normalize_s().to_der().as_bytes().to_vec()
}

/// Whether `der` is a signature of `message`, in strict DER and low-S.
#[must_use]
pub fn verify(key: &VerifyingKey, message: &[u8], der: &[u8]) -> bool {
    let Ok(signature) = Signature::from_der(der) else {
        return false;
    };
    let strict = signature.to_der().as_bytes() == der && signature.normalize_s() == signature;
    strict && key.verify(message, &signature).is_ok()
}

/// A named verification key of a signed note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VKey {
    name: String,
    id: [u8; 4],
    key: VerifyingKey,
}

impl VKey {
    /// A key with its name; for a log key the name is the origin.
    #[must_use]
    pub fn new(name: &str, key: &VerifyingKey) -> Self {
        Self {
            name: name.to_owned(),
            id: key_id(&spki_der(key)),
            key: *key,
        }
    }

    /// Reads `<name>+<8 hex>+<base64(02 || SPKI DER)>`; `None` unless it is exactly that and the
    /// id is the one of the key.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '+');
        let (name, id, body) = (parts.next()?, parts.next()?, parts.next()?);
        let body = unb64std(body)?;
        let (kind, spki) = body.split_first()?;
        if *kind != TYPE_ECDSA || !super::note::is_name(name) {
            return None;
        }
        let vkey = Self::new(name, &verifying_key(spki)?);
        (vkey.id_text() == id).then_some(vkey)
    }

    /// The text that [`VKey::parse`] reads.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut body = vec![TYPE_ECDSA];
        body.extend_from_slice(&spki_der(&self.key));
        format!("{}+{}+{}", self.name, self.id_text(), b64std(&body))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key id: the first four bytes of SHA-256(SPKI DER).
    #[must_use]
    pub const fn id(&self) -> [u8; 4] {
        self.id
    }

    /// The key itself.
    #[must_use]
    pub const fn key(&self) -> &VerifyingKey {
        &self.key
    }

    fn id_text(&self) -> String {
        data_encoding::HEXLOWER.encode(&self.id)
    }
}

fn key_id(spki: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = sha256(spki);
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey::from_slice(&[7; 32]).unwrap()
    }

    #[test]
    fn a_vkey_reads_back_and_no_other_spelling_does() {
        let vkey = VKey::new("plant-7.example/sentinel/1", key().verifying_key());
        let text = vkey.to_text();
        assert_eq!(VKey::parse(&text), Some(vkey));
        for bad in [
            text.replacen('+', "++", 1),
            text.replacen("plant", "pl ant", 1),
            format!("{text}="),
            text.to_uppercase(),
            text.replacen("+AjBZ", "+AjBY", 1),
            String::new(),
        ] {
            assert_eq!(VKey::parse(&bad), None, "{bad}");
        }
    }

    #[test]
    fn the_spki_is_the_one_that_a_der_library_writes() {
        use p256::pkcs8::EncodePublicKey as _;
        let der = p256::PublicKey::from(key().verifying_key())
            .to_public_key_der()
            .unwrap();
        assert_eq!(spki_der(key().verifying_key()), der.as_bytes());
        assert_eq!(
            verifying_key(der.as_bytes()).as_ref(),
            Some(key().verifying_key())
        );
        let mut off_curve = der.as_bytes().to_vec();
        off_curve[90] ^= 1;
        assert!(verifying_key(&off_curve).is_none());
    }

    #[test]
    fn signatures_are_deterministic_strict_and_low_s() {
        let der = sign(&key(), b"text");
        assert_eq!(der, sign(&key(), b"text"));
        assert!(verify(key().verifying_key(), b"text", &der));
        assert!(!verify(key().verifying_key(), b"tex", &der));
        let low = Signature::from_der(&der).unwrap();
        let high = Signature::from_scalars(low.r().to_bytes(), (-*low.s()).to_bytes()).unwrap();
        assert!(key().verifying_key().verify(b"text", &high).is_ok());
        assert!(!verify(
            key().verifying_key(),
            b"text",
            high.to_der().as_bytes()
        ));
        let mut long = der.clone();
        long.push(0);
        assert!(!verify(key().verifying_key(), b"text", &long));
        for i in 0..der.len() * 8 {
            let mut flipped = der.clone();
            flipped[i / 8] ^= 1 << (i % 8);
            assert!(!verify(key().verifying_key(), b"text", &flipped));
        }
    }
}
