//! Identifiers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text that is no identifier of the wanted form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct InvalidId {
    /// What was given.
    pub text: String,
    /// The form that was wanted, with its article.
    pub wanted: &'static str,
}

/// The id of an incident: `inc_` and 16 characters of `[a-z2-7]` (80 random bits, base32).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IncidentId(String);

impl IncidentId {
    /// Makes an id from 80 random bits.
    #[must_use]
    pub fn from_random(bits: [u8; 10]) -> Self {
        let text = data_encoding::BASE32_NOPAD.encode(&bits).to_lowercase();
        Self(format!("inc_{text}"))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IncidentId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let good = text.strip_prefix("inc_").is_some_and(|rest| {
            rest.len() == 16 && rest.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'))
        });
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId {
                text: text.to_owned(),
                wanted: "an incident id (`inc_` and 16 characters of a-z2-7)",
            })
        }
    }
}

impl TryFrom<String> for IncidentId {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<IncidentId> for String {
    fn from(id: IncidentId) -> Self {
        id.0
    }
}

impl fmt::Display for IncidentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The number of a piece of evidence inside its incident, written `E12`. The first is `E1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EvidenceId(pub u32);

impl fmt::Display for EvidenceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E{}", self.0)
    }
}

/// What an action works on. `namespace` is the tenant (design.md 10), `name` a service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The tenant; a box ships with one, `default`.
    pub namespace: String,
    /// The service.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::IncidentId;

    #[test]
    fn an_incident_id_survives_its_text_and_nothing_else_is_taken() {
        let id = IncidentId::from_random([7; 10]);
        assert_eq!(id.as_str().parse::<IncidentId>().as_ref(), Ok(&id));
        for bad in [
            "",
            "inc_",
            "inc_short",
            "INC_aaaaaaaaaaaaaaaa",
            "inc_aaaaaaaaaaaaaaa1",
        ] {
            assert!(bad.parse::<IncidentId>().is_err(), "{bad} was taken");
        }
    }
}
