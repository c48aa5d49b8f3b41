//! The audit log as arithmetic: events, the RFC 6962 tree, signed heads, bundles and their
//! verifier (guard 6, audit-bundle).
//!
//! Pure: keys, salts and times are arguments; files and tables are the business of `store`.
//! A second verifier is written from the same text in another language, so nothing here may be
//! more lenient or stricter than the text.

pub mod bundle;
mod event;
mod keys;
mod kinds;
mod note;
mod proof;
mod tree;
mod trust;
pub mod verify;

use crate::canon::{b64url, unb64url};

pub use event::{
    Actor, Event, MAX_EVENT_BYTES, NewEvent, PII_FIELDS, Place, document_digest, pii_commitment,
    seal,
};
pub use keys::{SPKI_BYTES, VKey, sign, spki_der, verify, verifying_key};
pub use kinds::EventType;
pub use note::{Checkpoint, Note, certificate_text, sign_note};
pub use proof::EntryProof;
pub use tree::{
    Frontier, Tree, consistency_root, empty_root, inclusion_root, leaf_hash, node_hash,
    range_hashes, root_of_range,
};
pub use trust::{PinnedEpoch, TrustFile};

/// A SHA-256 value.
pub type Hash = [u8; 32];

/// Why bytes of the audit log are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A text is not strict JSON.
    #[error("audit text is not strict JSON")]
    Json(#[source] crate::canon::Error),
    /// A text does not re-serialise to itself.
    #[error("audit text is not in its canonical spelling")]
    NotCanonical,
    /// A member is missing, unknown, of another type or out of its range.
    #[error("member `{0}` is not as the format demands")]
    Member(&'static str),
    /// An event is longer than 16 KiB.
    #[error("event of {0} bytes is longer than 16384")]
    TooLarge(usize),
    /// A note, a checkpoint, a certificate or a proof is malformed.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A signature of a known key fails.
    #[error("signature of `{0}` does not verify")]
    Signature(String),
    /// A position lies outside the tree.
    #[error("position {index} lies outside a tree of {size}")]
    Range {
        /// The position.
        index: u64,
        /// The size.
        size: u64,
    },
}

/// The hash that an unpadded base64url text of 32 bytes spells (audit-bundle 1.1).
#[must_use]
pub fn hash_from_text(text: &str) -> Option<Hash> {
    unb64url(text)?.try_into().ok()
}

/// The base64url text of a hash.
#[must_use]
pub fn hash_text(hash: &Hash) -> String {
    b64url(hash)
}

/// SHA-256 of bytes.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Hash {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).into()
}
