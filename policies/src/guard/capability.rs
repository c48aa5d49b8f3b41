//! The single-use capability: claims, minting, strict verification (guard 5.2, 5.3 rules 1 to 4, 6).

use std::collections::BTreeMap;
use std::fmt;

use p256::ecdsa::{SigningKey, VerifyingKey};
use zeroize::Zeroizing;

use super::{Code, IssueGrant, Problem, digest_of, jws};
use crate::canon::{self, Value, b64url, unb64url};
use crate::model::{Millis, Target};

/// Longest life in seconds.
pub const MAX_LIFE_S: i64 = 600;

const ISS: &str = "sentinel-guard";
const AUD: &str = "sentinel-action";
const CLAIMS: [&str; 15] = [
    "act", "aid", "aud", "chk", "cnf", "dig", "epoch", "exp", "iat", "inc", "iss", "jti", "nbf",
    "pol", "tgt",
];

/// The claims of a capability, but for the constants. They are stored so that a re-delivery signs
/// the same ones again; they are no secret and grant nothing without the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Identity of the capability.
    pub jti: String,
    /// The action it is for.
    pub aid: String,
    /// Name of the action.
    pub act: String,
    /// Target of the action.
    pub tgt: Target,
    /// Digest of the action document.
    pub dig: String,
    /// Issue, in whole seconds; `nbf` is the same.
    pub iat: i64,
    /// End, in whole seconds.
    pub exp: i64,
    /// Epoch of the signing key.
    pub epoch: i64,
    /// Incarnation of the log.
    pub inc: i64,
    /// Hash of the policy in force.
    pub pol: String,
    /// Size of the log including the leaf of the issue.
    pub chk: i64,
    /// Thumbprint of the holder's key.
    pub jkt: String,
}

impl Claims {
    /// The payload: JCS of all claims.
    #[must_use]
    pub fn to_jcs(&self) -> String {
        let text = |t: &str| Value::from(t);
        Value::map([
            ("act", text(&self.act)),
            ("aid", text(&self.aid)),
            ("aud", text(AUD)),
            ("chk", Value::Int(self.chk)),
            ("cnf", Value::map([("jkt", text(&self.jkt))])),
            ("dig", text(&self.dig)),
            ("epoch", Value::Int(self.epoch)),
            ("exp", Value::Int(self.exp)),
            ("iat", Value::Int(self.iat)),
            ("inc", Value::Int(self.inc)),
            ("iss", text(ISS)),
            ("jti", text(&self.jti)),
            ("nbf", Value::Int(self.iat)),
            ("pol", text(&self.pol)),
            (
                "tgt",
                Value::map([
                    ("name", text(&self.tgt.name)),
                    ("namespace", text(&self.tgt.namespace)),
                ]),
            ),
        ])
        .to_jcs()
    }

    /// Rule 4: the payload re-serialises to itself and has exactly these claims, each of its type
    /// and length, the constants and the order of the times included.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let limits = canon::Limits {
            max_bytes: jws::MAX_BYTES,
            max_depth: 4,
        };
        let value = canon::parse(payload, limits).ok()?;
        if value.to_jcs().as_bytes() != payload {
            return None;
        }
        let members = value.exactly(&CLAIMS)?;
        let text = |key: &str| members.get(key).and_then(Value::as_text);
        let int = |key: &str| members.get(key).and_then(Value::as_int);
        let bits = |key: &str, bytes: usize| {
            text(key).filter(|t| unb64url(t).is_some_and(|b| b.len() == bytes))
        };
        let target = members.get("tgt")?.exactly(&["name", "namespace"])?;
        let part = |key: &str| target.get(key).and_then(Value::as_text);
        let cnf = members.get("cnf")?.exactly(&["jkt"])?;
        let jkt = cnf.get("jkt").and_then(Value::as_text)?;
        let claims = Self {
            jti: bits("jti", 16)?.to_owned(),
            aid: text("aid")?.to_owned(),
            act: text("act")?.to_owned(),
            tgt: Target {
                namespace: part("namespace")?.to_owned(),
                name: part("name")?.to_owned(),
            },
            dig: bits("dig", 32)?.to_owned(),
            iat: int("iat")?,
            exp: int("exp")?,
            epoch: int("epoch")?,
            inc: int("inc")?,
            pol: bits("pol", 32)?.to_owned(),
            chk: int("chk")?,
            jkt: unb64url(jkt)
                .filter(|b| b.len() == 32)
                .map(|_| jkt.to_owned())?,
        };
        let times = 0 <= claims.iat
            && int("nbf") == Some(claims.iat)
            && claims.iat < claims.exp
            && claims.exp <= claims.iat.saturating_add(MAX_LIFE_S);
        (times && text("iss") == Some(ISS) && text("aud") == Some(AUD)).then_some(claims)
    }
}

/// A key that capabilities are checked with, and the one header that it signs under.
#[derive(Clone, Debug)]
pub struct TrustedKey {
    header: String,
    key: VerifyingKey,
}

impl TrustedKey {
    /// Precomputes the header segment of a key.
    #[must_use]
    pub fn new(key: VerifyingKey) -> Self {
        Self {
            header: header_segment(&key),
            key,
        }
    }

    /// The keys of a JWKS text (the guard's own `guard-jwks.json`); `None` when it is not one.
    #[must_use]
    pub fn from_jwks(text: &[u8]) -> Option<Vec<Self>> {
        let limits = canon::Limits {
            max_bytes: 1 << 16,
            max_depth: 4,
        };
        let value = canon::parse(text, limits).ok()?;
        let keys = value.exactly(&["keys"])?.get("keys")?.as_list()?;
        keys.iter()
            .map(|jwk| {
                let members = jwk.exactly(&["alg", "crv", "kid", "kty", "use", "x", "y"])?;
                let mut public = members.clone();
                public.retain(|key, _| matches!(key.as_str(), "crv" | "kty" | "x" | "y"));
                jws::key_of_jwk(&Value::Map(public)).map(Self::new)
            })
            .collect()
    }
}

/// The header byte for byte (guard 5.2), as a segment.
fn header_segment(key: &VerifyingKey) -> String {
    let kid = jws::thumbprint(key);
    b64url(format!(r#"{{"alg":"ES256","kid":"{kid}","typ":"sentinel-cap+jwt"}}"#).as_bytes())
}

/// Rules 1 to 4 of guard 5.3, in order.
///
/// # Errors
/// The number of the first rule that fails.
pub fn verify(token: &str, keys: &[TrustedKey]) -> Result<Claims, u8> {
    let segments = jws::split(token).ok_or(1)?;
    let trusted = keys.iter().find(|k| k.header == segments.header).ok_or(2)?;
    if !segments.verifies(&trusted.key) {
        return Err(3);
    }
    Claims::parse(&segments.payload).ok_or(4)
}

/// `capability_invalid` with the number of a rule.
#[must_use]
pub(super) fn invalid(rule: u8) -> Problem {
    Problem::new(
        Code::CapabilityInvalid,
        format!("the capability fails rule {rule}"),
    )
    .rule(rule)
}

/// Rule 6 of guard 5.3 but for the holder: the time without leeway, then the parameters.
///
/// # Errors
/// `expired` or `params_mismatch`.
pub fn judge_use(
    claims: &Claims,
    now: Millis,
    action: &str,
    target: &Target,
    change: &BTreeMap<String, Value>,
) -> Result<(), Problem> {
    let begun = now.0 >= claims.iat.saturating_mul(1000);
    let over = now.0 >= claims.exp.saturating_mul(1000);
    if !begun || over {
        return Err(Problem::new(
            Code::Expired,
            "the capability is not valid now",
        ));
    }
    let same = claims.act == action
        && claims.tgt == *target
        && claims.dig == digest_of(action, target, change);
    if same {
        Ok(())
    } else {
        Err(Problem::new(
            Code::ParamsMismatch,
            "the capability is for other parameters",
        ))
    }
}

/// What a worker checks before it spends: everything of 5.3 that needs no guard, against the
/// worker's *own* arguments and its own key (guard 7.2).
///
/// # Errors
/// `capability_invalid` with its rule, `expired`, `params_mismatch` or `holder_mismatch`.
pub fn verify_for(
    token: &str,
    keys: &[TrustedKey],
    now: Millis,
    own: (&str, &Target, &BTreeMap<String, Value>),
    jkt: &str,
) -> Result<Claims, Problem> {
    let claims = verify(token, keys).map_err(invalid)?;
    judge_use(&claims, now, own.0, own.1, own.2)?;
    if claims.jkt == jkt {
        Ok(claims)
    } else {
        Err(Problem::new(
            Code::HolderMismatch,
            "the capability is bound to another key",
        ))
    }
}

/// A signed capability on its way to its holder.
///
/// It has no `Clone`, no `Serialize` and an opaque `Debug`, so it cannot be checkpointed, logged or
/// stored (guard 1.5, 1.6). Its bytes leave once, by value.
pub struct Capability {
    token: Zeroizing<String>,
    exp: Millis,
}

impl Capability {
    /// Signs what the guard granted. Only [`super::judge`] makes an [`IssueGrant`].
    #[must_use]
    pub fn mint(grant: IssueGrant, key: &SigningKey) -> Self {
        let claims = grant.into_claims();
        let header = header_segment(key.verifying_key());
        Self {
            token: Zeroizing::new(jws::sign(&header, &claims.to_jcs(), key)),
            exp: Millis(claims.exp.saturating_mul(1000)),
        }
    }

    /// When it ends.
    #[must_use]
    pub fn expires_at(&self) -> Millis {
        self.exp
    }

    /// The one way out: to the channel of the executor that collects it.
    #[must_use]
    pub fn into_token(self) -> Zeroizing<String> {
        self.token
    }
}

impl fmt::Debug for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capability(..)")
    }
}

#[cfg(test)]
#[path = "capability_tests.rs"]
mod tests;
