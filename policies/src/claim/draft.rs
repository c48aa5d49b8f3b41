//! What a model may say: one hypothesis out of a list, a summary, citations.
//!
//! The list is made per call, decoding is constrained to it, and the values are checked again here
//! whatever the provider claims (guardrails 10.1 and 10.2).

use serde::Deserialize;
use serde_json::{Value, json};

use super::support::{self, Support};
use crate::citations;
use crate::claim::{Evidence, RedactKey, Refused};
use crate::event::GuardrailEvent;
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
    events: Vec<GuardrailEvent>,
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
        Self::read(text, schema, key, MAX_SUMMARY)
    }

    /// Reads a draft that was taken before. Its summary may be longer than an answer's, because
    /// what was redacted and marked stands in it.
    ///
    /// # Errors
    /// Refuses like [`Draft::parse`].
    pub fn restore(text: &str, schema: &DraftSchema, key: &RedactKey) -> Result<Self, Refused> {
        Self::read(text, schema, key, MAX_ANSWER)
    }

    fn read(
        text: &str,
        schema: &DraftSchema,
        key: &RedactKey,
        longest: usize,
    ) -> Result<Self, Refused> {
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
            return Err(Refused::new(
                "out.target",
                "the hypothesis is none of those offered",
            ));
        }
        if wire.summary.chars().count() > longest {
            return Err(refuse(format!(
                "the summary is longer than {longest} characters"
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
        let (summary, events) = crate::admit::own_output(&wire.summary, key);
        Ok(Self {
            events,
            hypothesis: wire.hypothesis,
            summary,
            citations: cited,
        })
    }

    /// Checks the summary against what it cites: citations get their one form, links that no
    /// evidence has go, and claims whose values the cited ranges do not hold are marked
    /// (guardrails 10.3 to 10.6). `facts` are texts of the analysis, `names` services that exist.
    #[must_use]
    pub fn supported_by(mut self, evidence: &[Evidence], facts: &[&str], names: &[String]) -> Self {
        let support = Support {
            evidence,
            cited: &self.citations,
            facts,
            names,
        };
        let (summary, events) = support::check(&self.summary, &support);
        self.summary = summary;
        self.events.extend(events);
        self
    }

    /// What the guardrails did to it.
    #[must_use]
    pub fn events(&self) -> &[GuardrailEvent] {
        &self.events
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
    fn r10_1_anything_outside_the_schema_is_refused() {
        for bad in [
            "",
            "not json",
            r#"{"hypothesis":"H1","summary":"","citations":[]}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E9"]}"#,
            r#"{"hypothesis":"H1","citations":["E1"]}"#,
            r#"{"hypothesis":"H1","hypothesis":"H2","summary":"","citations":["E1"]}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E1"],"action":"restart"}"#,
            r#"{"hypothesis":"H1","summary":"","citations":["E1"]} and more"#,
        ] {
            assert_eq!(parse(bad).unwrap_err().code, "out.schema", "{bad}");
        }
        // C42: a parameter or a target that nobody offered.
        let invented = r#"{"hypothesis":"H3","summary":"","citations":["E1"]}"#;
        assert_eq!(parse(invented).unwrap_err().code, "out.target");
        let long = format!(
            r#"{{"hypothesis":"H1","summary":"{}","citations":["E1"]}}"#,
            "x".repeat(401)
        );
        assert!(parse(&long).is_err());
    }

    #[test]
    fn c42_a_tool_call_printed_as_text_is_no_draft() {
        for bad in [
            r#"<tool_call>{"name":"restart","arguments":{"service":"till"}}</tool_call>"#,
            r#"{"name":"restart","arguments":{"service":"till"}}"#,
            "restart(service=till)",
        ] {
            assert_eq!(parse(bad).unwrap_err().code, "out.schema", "{bad}");
        }
    }

    #[test]
    fn r10_2_an_empty_list_leaves_nothing_to_choose() {
        let empty = DraftSchema {
            hypotheses: vec![],
            citations: vec![EvidenceId(1)],
        };
        let key = RedactKey::from_bytes([3; 32]);
        let text = r#"{"hypothesis":"H1","summary":"","citations":["E1"]}"#;
        assert!(Draft::parse(text, &empty, &key).is_err());
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
