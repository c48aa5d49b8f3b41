//! The small types of the policy file.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::canon::Value;

/// One role per identity (guard 2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Proposes.
    Agent,
    /// Hands in decisions of people.
    Delegate,
    /// Collects and spends capabilities.
    Executor,
    /// Reads the log.
    Auditor,
}

/// How well a decision is known to be that person's (guard 2.2.2), ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assurance {
    /// A delegate names the person.
    Delegated,
    /// A TOTP code of the person's local account, checked by the guard itself.
    Local,
    /// An id_token over the challenge, verified by the guard itself.
    IdToken,
}

impl Assurance {
    /// The word in leaves and texts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delegated => "delegated",
            Self::Local => "local",
            Self::IdToken => "id_token",
        }
    }
}

impl FromStr for Assurance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "delegated" => Ok(Self::Delegated),
            "local" => Ok(Self::Local),
            "id_token" => Ok(Self::IdToken),
            other => Err(format!("`{other}` is no assurance")),
        }
    }
}

/// Who speaks, as the transport knows it (guard 2.1.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Peer {
    /// A part of core, by an in-process handle.
    Internal(String),
    /// A local user, by `SO_PEERCRED`.
    Uid(u32),
    /// A principal of the API.
    Api(String),
}

impl TryFrom<String> for Peer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no peer (`internal:NAME`, `uid:N` or `api:NAME`)");
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        match kind {
            "internal" if is_name(rest) => Ok(Self::Internal(rest.to_owned())),
            "api" if is_id(rest) => Ok(Self::Api(rest.to_owned())),
            "uid" if rest == "0" || !rest.starts_with(['0', '+']) => {
                rest.parse().map(Self::Uid).map_err(|_| wrong())
            }
            _ => Err(wrong()),
        }
    }
}

impl From<Peer> for String {
    fn from(peer: Peer) -> Self {
        peer.to_string()
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internal(name) => write!(f, "internal:{name}"),
            Self::Uid(uid) => write!(f, "uid:{uid}"),
            Self::Api(name) => write!(f, "api:{name}"),
        }
    }
}

/// Type of one parameter (guard 2.4.3). There is no free text, float, null, list or optional key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Kind {
    /// `[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?`
    Name {},
    /// `[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}`
    Id {},
    /// An integer within bounds.
    Int {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// One of a list of words.
    Enum {
        /// The words.
        values: Vec<String>,
    },
    /// True or false.
    Bool {},
    /// 64 lower-case hexadecimal digits.
    Sha256 {},
}

impl Kind {
    /// True where `value` is of this type. Patterns match in full and byte by byte; nothing is
    /// normalised, folded or converted (guard 5.1.1, 5.1.3).
    #[must_use]
    pub fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Name {}, Value::Text(text)) => is_name(text),
            (Self::Id {}, Value::Text(text)) => is_id(text),
            (Self::Int { min, max }, Value::Int(n)) => (min..=max).contains(&n),
            (Self::Enum { values }, Value::Text(text)) => values.contains(text),
            (Self::Bool {}, Value::Bool(_)) => true,
            (Self::Sha256 {}, Value::Text(text)) => is_sha256(text),
            (_, _) => false,
        }
    }
}

/// True for a `name` of guard 2.4.3.
#[must_use]
pub(super) fn is_name(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first().copied())
        && edge(bytes.last().copied())
        && bytes
            .iter()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
}

/// True for an `id` of guard 2.4.3.
#[must_use]
pub fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 128
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-'))
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
