//! The canonical bytes of an action, read for a person (console 6.5).
//!
//! Verb, target and parameters on a page come from the bytes whose digest is decided upon, never
//! from a record beside them: what is shown is what is signed.

use policies::model::IncidentId;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::view::Param;
use super::words;

/// Why canonical bytes cannot be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The digest is not that of the bytes.
    #[error("the recorded digest is not that of the recorded bytes")]
    Digest,
    /// The bytes are no action document.
    #[error("the recorded bytes are no action document")]
    Malformed,
}

/// An action document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Action word.
    pub action: String,
    /// Tenant.
    pub target_namespace: String,
    /// Target.
    pub target_name: String,
    /// Every parameter, none left out.
    pub params: Vec<Param>,
    /// The incident it names, if the id is well formed.
    pub incident: Option<String>,
    /// The change as an executor gets it.
    pub change: Value,
}

impl Document {
    /// Reads the bytes and checks that `digest` is theirs.
    ///
    /// # Errors
    /// [`Error`] when they do not belong together or are no document.
    pub fn read(bytes: &str, digest: &str) -> Result<Self, Error> {
        let own = data_encoding::BASE64URL_NOPAD.encode(&Sha256::digest(bytes.as_bytes()));
        if own != digest {
            return Err(Error::Digest);
        }
        let value: Value = serde_json::from_str(bytes).map_err(|_| Error::Malformed)?;
        let text = |pointer: &str| {
            value
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let change = value
            .get("change")
            .and_then(Value::as_object)
            .ok_or(Error::Malformed)?;
        Ok(Self {
            action: text("/action").ok_or(Error::Malformed)?,
            target_namespace: text("/target/namespace").ok_or(Error::Malformed)?,
            target_name: text("/target/name").ok_or(Error::Malformed)?,
            params: params(change),
            incident: text("/change/incident").filter(|id| id.parse::<IncidentId>().is_ok()),
            change: Value::Object(change.clone()),
        })
    }

    /// The sentence with the verb, the target and the values that change.
    #[must_use]
    pub fn sentence(&self) -> String {
        self.sentence_with(self.change.get("from"), self.change.get("to"))
    }

    /// As [`Document::sentence`], with other values: those of the way back.
    #[must_use]
    pub fn sentence_with(&self, from: Option<&Value>, to: Option<&Value>) -> String {
        let verb = words::verb(&self.action);
        let target = &self.target_name;
        match (from.map(spelled), to.map(spelled)) {
            (Some(from), Some(to)) => format!("{verb} {target} from {from} to {to}"),
            (None, Some(to)) => format!("{verb} {target} to {to}"),
            _ => format!("{verb} {target}"),
        }
    }

    /// The undo plan that the document itself gives.
    #[must_use]
    pub fn undo(&self) -> String {
        let value = |name| self.change.get(name).map(spelled);
        match (value("from"), value("to")) {
            (Some(from), Some(to)) => {
                format!(
                    "The inverse action, from {to} back to {from}, with an approval of its own."
                )
            }
            _ => "It cannot be undone; it changes no setting.".to_owned(),
        }
    }
}

/// Every member of `change`; `from` and `to` become one row, now and after.
fn params(change: &Map<String, Value>) -> Vec<Param> {
    let pair = change.get("from").zip(change.get("to"));
    let mut rows = Vec::with_capacity(change.len());
    if let Some((from, to)) = pair {
        rows.push(Param {
            name: "from → to".to_owned(),
            now: Some(spelled(from)),
            after: spelled(to),
        });
    }
    rows.extend(
        change
            .iter()
            .filter(|(name, _)| pair.is_none() || !matches!(name.as_str(), "from" | "to"))
            .map(|(name, value)| Param {
                name: name.clone(),
                now: None,
                after: spelled(value),
            }),
    );
    rows
}

/// A value as a person reads it.
pub(super) fn spelled(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
impl Document {
    /// A document for a test that has no signed bytes.
    pub(super) fn of(action: &str, target: &str, change: Value) -> Self {
        let bytes = serde_json::json!({
            "action": action, "change": change,
            "target": {"name": target, "namespace": "default"}, "v": 1,
        })
        .to_string();
        let digest = data_encoding::BASE64URL_NOPAD.encode(&Sha256::digest(bytes.as_bytes()));
        Self::read(&bytes, &digest).expect("the bytes are a document")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: &str = r#"{"action":"rollback","change":{"deploy":"d-118","from":"1.8.0","incident":"inc_aaaaaaaaaaaaaaaa","to":"1.7.2"},"target":{"name":"checkout","namespace":"default"},"v":1}"#;

    fn digest(bytes: &str) -> String {
        data_encoding::BASE64URL_NOPAD.encode(&Sha256::digest(bytes.as_bytes()))
    }

    #[test]
    fn every_parameter_of_the_signed_bytes_is_a_row() {
        let document = Document::read(BYTES, &digest(BYTES)).unwrap();
        assert_eq!(
            document.sentence(),
            "Roll back checkout from 1.8.0 to 1.7.2"
        );
        let names: Vec<_> = document.params.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["from → to", "deploy", "incident"]);
        assert_eq!(document.params[0].now.as_deref(), Some("1.8.0"));
        assert_eq!(document.incident.as_deref(), Some("inc_aaaaaaaaaaaaaaaa"));
    }

    #[test]
    fn bytes_that_do_not_match_their_digest_are_not_shown() {
        let other = BYTES.replace("1.7.2", "1.7.3");
        assert_eq!(Document::read(&other, &digest(BYTES)), Err(Error::Digest));
        assert_eq!(Document::read("[]", &digest("[]")), Err(Error::Malformed));
    }
}
