//! The holder proof: only who holds the key that a capability is bound to may use it (guard 5.3.7).

use std::fmt;

use p256::ecdsa::{SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};

use super::jws;
use crate::canon::{self, Value, b64url, unb64url};

const TYP: &str = "sentinel-hp+jwt";

/// What a proof is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose<'a> {
    /// Collecting the capability of an action.
    Collect {
        /// The action.
        aid: &'a str,
    },
    /// Spending a capability.
    Spend {
        /// Identity of the capability.
        jti: &'a str,
        /// The capability itself.
        token: &'a str,
    },
}

impl Purpose<'_> {
    fn claims(self, job: &str, fence: i64) -> Value {
        let mut members = vec![("job", Value::from(job)), ("fence", Value::Int(fence))];
        match self {
            Self::Collect { aid } => {
                members.push(("op", Value::from("collect")));
                members.push(("aid", Value::from(aid)));
            }
            Self::Spend { jti, token } => {
                members.push(("op", Value::from("spend")));
                members.push(("jti", Value::from(jti)));
                members.push((
                    "ath",
                    Value::Text(b64url(&Sha256::digest(token.as_bytes()))),
                ));
            }
        }
        Value::map(members)
    }
}

/// The key of one holder. It lives in the memory of one worker and dies with it.
pub struct HolderKey(SigningKey);

impl HolderKey {
    /// A key from 32 random bytes; `None` for the few values that are no scalar (draw again).
    #[must_use]
    pub fn from_random(bytes: &[u8; 32]) -> Option<Self> {
        SigningKey::from_slice(bytes).ok().map(Self)
    }

    /// Thumbprint, as in `cnf.jkt`.
    #[must_use]
    pub fn jkt(&self) -> String {
        jws::thumbprint(self.0.verifying_key())
    }

    /// A proof for one purpose.
    #[must_use]
    pub fn prove(&self, purpose: Purpose<'_>, job: &str, fence: i64) -> String {
        let header = Value::map([
            ("alg", Value::from("ES256")),
            ("jwk", jws::public_jwk(self.0.verifying_key())),
            ("typ", Value::from(TYP)),
        ]);
        let header = b64url(header.to_jcs().as_bytes());
        jws::sign(&header, &purpose.claims(job, fence).to_jcs(), &self.0)
    }
}

impl fmt::Debug for HolderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HolderKey(..)")
    }
}

/// Checks a proof and gives the thumbprint of its key; `None` for any defect at all.
#[must_use]
pub fn check_proof(proof: &str, purpose: Purpose<'_>, job: &str, fence: i64) -> Option<String> {
    let segments = jws::split(proof)?;
    let key = header_key(segments.header)?;
    if !segments.verifies(&key) {
        return None;
    }
    // The claims are compared as bytes: JCS has one spelling for them.
    let wanted = purpose.claims(job, fence).to_jcs();
    (segments.payload == wanted.as_bytes()).then(|| jws::thumbprint(&key))
}

fn header_key(segment: &str) -> Option<VerifyingKey> {
    let limits = canon::Limits {
        max_bytes: jws::MAX_BYTES,
        max_depth: 4,
    };
    let bytes = unb64url(segment)?;
    let header = canon::parse(&bytes, limits).ok()?;
    if header.to_jcs().as_bytes() != bytes {
        return None;
    }
    let members = header.exactly(&["alg", "jwk", "typ"])?;
    let text = |key: &str| members.get(key).and_then(Value::as_text);
    if text("alg") != Some("ES256") || text("typ") != Some(TYP) {
        return None;
    }
    jws::key_of_jwk(members.get("jwk")?)
}

#[cfg(test)]
mod tests {
    use super::{HolderKey, Purpose, check_proof};

    fn key(seed: u8) -> HolderKey {
        HolderKey::from_random(&[seed; 32]).unwrap()
    }

    /// guard 5.3.7
    #[test]
    fn a_proof_holds_for_its_own_purpose_job_and_fence_only() {
        let purpose = Purpose::Collect { aid: "act_1" };
        let proof = key(1).prove(purpose, "job-1", 7);
        assert_eq!(check_proof(&proof, purpose, "job-1", 7), Some(key(1).jkt()));
        assert_ne!(key(1).jkt(), key(2).jkt());
        assert_eq!(check_proof(&proof, purpose, "job-2", 7), None);
        assert_eq!(check_proof(&proof, purpose, "job-1", 8), None);
        let other = Purpose::Collect { aid: "act_2" };
        assert_eq!(check_proof(&proof, other, "job-1", 7), None);
        let spend = Purpose::Spend {
            jti: "act_1",
            token: "t",
        };
        assert_eq!(check_proof(&proof, spend, "job-1", 7), None);
    }

    /// guard 5.3.7: `ath` binds the proof to the capability.
    #[test]
    fn a_spend_proof_is_bound_to_the_bytes_of_the_capability() {
        let purpose = Purpose::Spend {
            jti: "j",
            token: "a.b.c",
        };
        let proof = key(1).prove(purpose, "job-1", 7);
        assert!(check_proof(&proof, purpose, "job-1", 7).is_some());
        let other = Purpose::Spend {
            jti: "j",
            token: "a.b.d",
        };
        assert_eq!(check_proof(&proof, other, "job-1", 7), None);
    }

    /// guard 5.3.7
    #[test]
    fn a_proof_with_any_byte_changed_is_refused() {
        let purpose = Purpose::Collect { aid: "act_1" };
        let proof = key(1).prove(purpose, "job-1", 7);
        for at in 0..proof.len() {
            let mut bytes = proof.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(
                check_proof(&changed, purpose, "job-1", 7),
                None,
                "byte {at}"
            );
        }
    }
}
