//! What a model may say: one hypothesis out of a list, a summary, citations.
//!
//! The list is made per call, decoding is constrained to it, and the values are checked again here
//! whatever the provider claims (guardrails 10.1 and 10.2).

use serde::Deserialize;
use serde_json::{Value, json};

use crate::citations;
use crate::claim::{RedactKey, Refused};
use crate::model::EvidenceId;

/// Longest summary in characters.
const MAX_SUMMARY: usize = 400;
/// Most citations.
const MAX_CITATIONS: usize = 4;
/// Longest answer in bytes that is looked at.
const MAX_ANSWER: usize = 16 * 1024;

/// What one call may choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftSchema {
    /// Ids of hypotheses, `H1` and on.
    pub hypotheses: Vec<String>,
    /// Evidence that may be cited.
    pub citations: Vec<EvidenceId>,
}

/// A checked answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    hypothesis: String,
    summary: String,
    citations: Vec<EvidenceId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    hypothesis: String,
    summary: String,
    citations: Vec<String>,
}

impl Draft {
    /// The JSON schema of an answer, for constrained decoding.
    #[must_use]
    pub fn json_schema(schema: &DraftSchema) -> Value {
        let cites: Vec<String> = schema.citations.iter().map(ToString::to_string).collect();
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["hypothesis", "summary", "citations"],
            "properties": {
                "hypothesis": { "type": "string", "enum": schema.hypotheses },
                "summary": { "type": "string", "maxLength": MAX_SUMMARY },
                "citations": {
                    "type": "array",
                    "items": { "type": "string", "enum": cites },
                    "minItems": 1,
                    "maxItems": MAX_CITATIONS,
                },
            },
        })
    }

    /// Reads an answer strictly: unknown, duplicate and missing members, values outside the lists
    /// and over-long texts are refused. The summary is redacted and freed of control characters,
    /// because a model can repeat or invent what must not be shown.
    ///
    /// # Errors
    /// Refuses with `out.schema`.
    pub fn parse(text: &str, schema: &DraftSchema, key: &RedactKey) -> Result<Self, Refused> {
        let refuse = |reason: String| Refused::new("out.schema", reason);
        if text.len() > MAX_ANSWER {
            return Err(refuse(format!(
                "the answer is longer than {MAX_ANSWER} bytes"
            )));
        }
        // The message of serde_json can quote a member name but never a value of the answer.
        let wire: Wire = serde_json::from_str(text)
            .map_err(|e| refuse(format!("the answer is no draft ({:?})", e.classify())))?;
        if !schema.hypotheses.contains(&wire.hypothesis) {
            return Err(refuse("the hypothesis is none of those offered".into()));
        }
        if wire.summary.chars().count() > MAX_SUMMARY {
            return Err(refuse(format!(
                "the summary is longer than {MAX_SUMMARY} characters"
            )));
        }
        if wire.citations.is_empty() || wire.citations.len() > MAX_CITATIONS {
            return Err(refuse(format!(
                "the answer needs 1 to {MAX_CITATIONS} citations"
            )));
        }
        let mut cited = Vec::new();
        for text in &wire.citations {
            for cite in citations::normalise_field(text) {
                if schema.citations.contains(&cite.evidence) && !cited.contains(&cite.evidence) {
                    cited.push(cite.evidence);
                }
            }
        }
        if cited.is_empty() {
            return Err(refuse("no citation names evidence of this run".into()));
        }
        let (summary, _) = crate::admit::own_output(&wire.summary, key);
        Ok(Self {
            hypothesis: wire.hypothesis,
            summary,
            citations: cited,
        })
    }

    /// Id of the chosen hypothesis.
    #[must_use]
    pub fn hypothesis(&self) -> &str {
        &self.hypothesis
    }

    /// Summary in one paragraph.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Evidence cited, each once.
    #[must_use]
    pub fn citations(&self) -> &[EvidenceId] {
        &self.citations
    }
}

#[cfg(test)]
mod tests {
    use super::{Draft, DraftSchema};
    use crate::claim::RedactKey;
    use crate::model::EvidenceId;

    fn schema() -> DraftSchema {
        DraftSchema {
            hypotheses: vec!["H1".into(), "H2".into()],
            citations: vec![EvidenceId(1), EvidenceId(3)],
        }
    }

    fn parse(text: &str) -> Result<Draft, crate::claim::Refused> {
        Draft::parse(text, &schema(), &RedactKey::from_bytes([3; 32]))
    }

    #[test]
    fn a_draft_within_the_lists_is_taken_and_its_citations_are_normalised() {
        let draft =
            parse(r#"{"hypothesis":"H2","summary":"It broke.","citations":["E3","[e1:4]","E9"]}"#)
                .unwrap();
        assert_eq!(draft.hypothesis(), "H2");
        assert_eq!(draft.citations(), [EvidenceId(3), EvidenceId(1)]);
    }

    #[test]
    fn anything_outside_the_schema_is_refused() {
        for bad in [
            "",
            "not json",
            r#"{"hypothesis":"H3","summary":"","citations":["E1"]}"#,
            r#"{"hypothesis":"H1","summary":"","citations":[]}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E9"]}"#,
            r#"{"hypothesis":"H1","citations":["E1"]}"#,
            r#"{"hypothesis":"H1","hypothesis":"H2","summary":"","citations":["E1"]}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E1"],"action":"restart"}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E1"]} and more"#,
        ] {
            assert_eq!(parse(bad).unwrap_err().code, "out.schema", "{bad}");
        }
        let long = format!(
            r#"{{"hypothesis":"H1","summary":"{}","citations":["E1"]}}"#,
            "x".repeat(401)
        );
        assert!(parse(&long).is_err());
    }

    #[test]
    fn a_summary_is_redacted() {
        let mail = ["ann", "@", "example.com"].concat();
        let text = format!(r#"{{"hypothesis":"H1","summary":"ask {mail}","citations":["E1"]}}"#);
        let draft = parse(&text).unwrap();
        assert!(
            !draft.summary().contains("example.com"),
            "{}",
            draft.summary()
        );
    }
}
