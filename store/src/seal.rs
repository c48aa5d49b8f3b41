//! Small secrets at rest: AES-256-GCM under a key that lies elsewhere.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};

/// Wraps `secret`: 12 bytes of nonce, then the ciphertext with its tag. `context` must be the same
/// at unwrapping, so a blob of one row does not open in another. `nonce` must be fresh random bits.
///
/// # Errors
/// `None` when the cipher refuses, which it does for no input of a sane length.
#[must_use]
pub fn wrap(key: &[u8; 32], nonce: [u8; 12], context: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
    let cipher = Aes256Gcm::new(&(*key).into());
    let body = cipher
        .encrypt(
            &Nonce::from(nonce),
            Payload {
                msg: secret,
                aad: context,
            },
        )
        .ok()?;
    Some([nonce.as_slice(), &body].concat())
}

/// Unwraps what [`wrap`] made; `None` when key, context or bytes are not those.
#[must_use]
pub fn unwrap(key: &[u8; 32], context: &[u8], blob: &[u8]) -> Option<Vec<u8>> {
    let (nonce, body) = blob.split_at_checked(12)?;
    let nonce: [u8; 12] = nonce.try_into().ok()?;
    let cipher = Aes256Gcm::new(&(*key).into());
    cipher
        .decrypt(
            &Nonce::from(nonce),
            Payload {
                msg: body,
                aad: context,
            },
        )
        .ok()
}

#[cfg(test)]
mod tests {
    use super::{unwrap, wrap};

    #[test]
    fn a_blob_opens_only_with_its_key_its_context_and_all_its_bits() {
        let blob = wrap(&[1; 32], [2; 12], b"a", b"secret").unwrap();
        assert_eq!(
            unwrap(&[1; 32], b"a", &blob).as_deref(),
            Some(&b"secret"[..])
        );
        assert_eq!(unwrap(&[9; 32], b"a", &blob), None);
        assert_eq!(unwrap(&[1; 32], b"b", &blob), None);
        for i in 0..blob.len() {
            let mut bad = blob.clone();
            bad[i] ^= 1;
            assert_eq!(unwrap(&[1; 32], b"a", &bad), None, "byte {i}");
        }
        assert_eq!(unwrap(&[1; 32], b"a", &blob[..5]), None);
    }
}
