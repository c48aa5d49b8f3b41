//! What a diagnosis says.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{CauseClass, EvidenceId, Millis, RemediationClass};

/// The version of the rule set; every report prints it (benchmark.md 8.4).
pub const RULES_VERSION: u32 = 2;

/// A place in the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cite {
    /// The piece.
    pub evidence: EvidenceId,
    /// The line in it, counted from 1; `None` cites the piece as a whole.
    pub line: Option<u32>,
}

impl std::fmt::Display for Cite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "[{}:{line}]", self.evidence),
            None => write!(f, "[{}]", self.evidence),
        }
    }
}

/// When the incident began, by measurement and never by the time of the alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Onset {
    /// The moment.
    pub at: Millis,
    /// The signal that changed first, in words.
    pub signal: String,
    /// How exactly the signal can tell time.
    pub resolution_ms: i64,
    /// Where it was measured.
    pub evidence: EvidenceId,
}

/// One deterministic finding, a line of the facts card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// A sentence.
    pub text: String,
    /// What it rests on.
    pub cites: Vec<Cite>,
}

/// What kind of thing is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CulpritKind {
    /// A commit.
    Commit,
    /// A deploy record.
    Deploy,
    /// A service.
    Service,
    /// A node.
    Node,
    /// An object: a record, a certificate, a host outside.
    Object,
    /// Nothing.
    None,
}

/// What is to blame.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Culprit {
    /// Kind.
    pub kind: CulpritKind,
    /// Its id; empty for [`CulpritKind::None`].
    pub id: String,
}

impl Culprit {
    /// Nobody is to blame.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            kind: CulpritKind::None,
            id: String::new(),
        }
    }

    /// A service is to blame.
    #[must_use]
    pub fn service(name: &str) -> Self {
        Self {
            kind: CulpritKind::Service,
            id: name.to_owned(),
        }
    }

    /// A deploy is to blame.
    #[must_use]
    pub fn deploy(id: &str) -> Self {
        Self {
            kind: CulpritKind::Deploy,
            id: id.to_owned(),
        }
    }
}

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParamValue {
    /// A number.
    Int(i64),
    /// Yes or no.
    Bool(bool),
    /// A text of type `id`.
    Text(String),
}

/// What would be done about a hypothesis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// The class of action.
    pub class: RemediationClass,
    /// The service that it is done to; empty for `no_action` without a service.
    pub target: String,
    /// Parameters, without `incident`.
    pub change: BTreeMap<String, ParamValue>,
    /// The class that would be right if this site had an executor for it.
    pub advice: Option<RemediationClass>,
}

/// One explanation of the incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hypothesis {
    /// `H1` for the best one.
    pub id: String,
    /// Class of the cause.
    pub cause_class: CauseClass,
    /// The service where the cause sits.
    pub service: String,
    /// What is to blame.
    pub culprit: Culprit,
    /// Sum of the named weights.
    pub score: i32,
    /// The named weights that were summed, largest first.
    pub weights: Vec<(String, i32)>,
    /// Evidence for it.
    pub supporting: Vec<Cite>,
    /// Evidence against it.
    pub refuting: Vec<Cite>,
    /// What would decide and was not there.
    pub missing: Vec<String>,
    /// Why it was set aside; `None` while it stands.
    pub rejected: Option<String>,
    /// In words.
    pub explanation: String,
    /// True when two independent observations, one of them by a machine, are of the blamed
    /// component itself (guard rails 8.2).
    pub corroborated: bool,
    /// The cited change that explains the failing path; empty when there is none (guard rails 11.2.4).
    pub change_evidence: Vec<Cite>,
    /// What would be done.
    pub remediation: Remedy,
}

/// How sure the rules are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Guessing.
    Low,
    /// The best explanation, with something open.
    Medium,
    /// Decided.
    High,
}

impl Confidence {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// The conclusion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The hypothesis that won; `None` for `inconclusive`.
    pub hypothesis: Option<String>,
    /// Its class, `none` or `inconclusive`.
    pub cause_class: CauseClass,
    /// What is to blame.
    pub culprit: Culprit,
    /// How sure.
    pub confidence: Confidence,
}

/// What an external check found (benchmark.md D12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// Looked, and found nothing.
    Clear,
    /// Found something.
    Signal,
    /// Could not look.
    Unknown,
}

/// One look at a cause outside the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalCheck {
    /// Name from the fixed list.
    pub name: String,
    /// Result.
    pub state: CheckState,
    /// When the signal began.
    pub onset: Option<Millis>,
    /// Evidence.
    pub cites: Vec<Cite>,
    /// True when a tool of this site could answer it.
    pub answerable: bool,
    /// In words.
    pub note: String,
}

/// The whole of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnosis {
    /// Version of the rules that made it.
    pub rules: u32,
    /// When it was made.
    pub at: Millis,
    /// Begin of the incident.
    pub onset: Option<Onset>,
    /// The facts card.
    pub facts: Vec<Fact>,
    /// Best first; rejected ones last.
    pub hypotheses: Vec<Hypothesis>,
    /// The conclusion.
    pub verdict: Verdict,
    /// What would decide and is missing.
    pub missing: Vec<String>,
    /// Causes outside the code.
    pub checks: Vec<ExternalCheck>,
    /// Ids of the hypotheses that a model may choose among.
    pub allowed: Vec<String>,
    /// Newest deploy of each service that this diagnosis knew of.
    pub seen_deploys: BTreeMap<String, String>,
}

impl Diagnosis {
    /// The hypothesis with this id.
    #[must_use]
    pub fn hypothesis(&self, id: &str) -> Option<&Hypothesis> {
        self.hypotheses.iter().find(|h| h.id == id)
    }

    /// The hypothesis that won.
    #[must_use]
    pub fn winner(&self) -> Option<&Hypothesis> {
        self.hypothesis(self.verdict.hypothesis.as_deref()?)
    }
}
