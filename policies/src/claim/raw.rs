//! What a tool returned, before anything has looked at it, and the key that redaction needs.

use std::fmt;

use zeroize::Zeroizing;

/// The bytes of one tool answer. They can be admitted and nothing else: there is no `Display`,
/// no `Serialize`, and `Debug` shows a length. The memory is overwritten when it is dropped.
///
/// ```compile_fail
/// let raw = sentinel_policies::claim::RawOutput::new(vec![1]);
/// println!("{raw}");
/// ```
pub struct RawOutput(Zeroizing<Vec<u8>>);

impl RawOutput {
    /// Takes the bytes of a tool answer.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when the tool answered nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for RawOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawOutput({} bytes)", self.len())
    }
}

/// The key of all pseudonyms of one incident: 256 random bits (guardrails 4.4).
#[derive(Clone)]
pub struct RedactKey(Zeroizing<[u8; 32]>);

impl RedactKey {
    /// Makes a key from random bits that the caller drew.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RedactKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedactKey(secret)")
    }
}

#[cfg(test)]
mod tests {
    use static_assertions::assert_not_impl_any;

    use super::{RawOutput, RedactKey};

    assert_not_impl_any!(RawOutput: std::fmt::Display, serde::Serialize, Clone, AsRef<[u8]>);
    assert_not_impl_any!(RedactKey: std::fmt::Display, serde::Serialize, AsRef<[u8]>);

    #[test]
    fn debug_shows_a_length_and_no_content() {
        let raw = RawOutput::new(b"hunter".to_vec());
        assert_eq!(format!("{raw:?}"), "RawOutput(6 bytes)");
        assert_eq!(
            format!("{:?}", RedactKey::from_bytes([7; 32])),
            "RedactKey(secret)"
        );
    }
}
