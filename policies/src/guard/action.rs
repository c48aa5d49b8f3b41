//! The guard's record of one action, as it stands in the database.
//!
//! Plain data: holding an [`Action`] permits nothing. What moves it is in [`super::judge`], and
//! what it is worth is judged anew from these members each time (guard 1.5).

use super::{ActionDoc, Assurance, Claims, State};
use crate::canon::Value;
use crate::model::Millis;

/// `approve` or `deny`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Approve,
    /// No; final.
    Deny,
}

impl Verdict {
    /// The word in leaves and replies.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }

    /// The verdict of a word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "approve" => Some(Self::Approve),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

/// One recorded decision of one person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Person id of the policy.
    pub person: String,
    /// Yes or no.
    pub verdict: Verdict,
    /// How sure the guard is that it was this person.
    pub assurance: Assurance,
    /// The delegate that brought it, if any.
    pub via: Option<String>,
    /// The nonce that it was given for.
    pub nonce: String,
    /// When.
    pub at: Millis,
    /// In the person's words.
    pub reason: String,
    /// Index of its leaf; the store fills it in.
    pub index: u64,
}

/// What is known once the capability was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// What was signed.
    pub claims: Claims,
    /// Identity of the executor.
    pub executor: String,
    /// The job.
    pub job: String,
    /// Its fence.
    pub fence: i64,
}

/// What is known once the capability was spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spend {
    /// When.
    pub at: Millis,
    /// Until when the effect must be over.
    pub effect_deadline: Millis,
    /// When the executor said that it starts.
    pub started: Option<Millis>,
    /// Index of the `spend.ok` leaf; the store fills it in.
    pub index: u64,
}

/// How the effect ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// `succeeded`, `failed` or `unknown`.
    pub outcome: String,
    /// Code of the executor or of the guard.
    pub code: String,
    /// SHA-256 of the evidence, base64url; `None` where nobody gave one.
    pub evidence_sha256: Option<String>,
}

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// `act_` and random characters.
    pub id: String,
    /// What is asked for.
    pub doc: ActionDoc,
    /// Its digest.
    pub digest: String,
    /// Display text of the proposer. Nothing is judged by it.
    pub intent: String,
    /// Identity of the proposer.
    pub requester: String,
    /// The person who chose the action or its parameters, if one did.
    pub initiator: Option<String>,
    /// State.
    pub state: State,
    /// Nonce of decisions.
    pub nonce: String,
    /// How many people must approve.
    pub need: i64,
    /// Decisions that count, in the order of their leaves.
    pub decisions: Vec<Decision>,
    /// When it was proposed.
    pub created_at: Millis,
    /// Until when it may be decided.
    pub expires_at: Millis,
    /// End of the approval window.
    pub approval_expires_at: Option<Millis>,
    /// The issue.
    pub issue: Option<Issue>,
    /// The spend.
    pub spend: Option<Spend>,
    /// The end of the effect.
    pub ending: Option<Ending>,
    /// Index of the leaf of the last change; the store fills it in.
    pub index: u64,
    /// Counts changes: the compare-and-set of the store.
    pub revision: i64,
}

impl Action {
    /// How many distinct people have approved.
    #[must_use]
    pub fn have(&self) -> i64 {
        let approvals = self
            .decisions
            .iter()
            .filter(|d| d.verdict == Verdict::Approve)
            .count();
        i64::try_from(approvals).unwrap_or(i64::MAX)
    }

    /// The outcome that is on record, in one word.
    #[must_use]
    pub fn recorded_outcome(&self) -> Option<String> {
        if let Some(ending) = &self.ending {
            return Some(ending.outcome.clone());
        }
        self.decisions.last().map(|d| d.verdict.as_str().to_owned())
    }

    /// Tenant, service and action name: what an unknown outcome blocks (guard 4.3).
    #[must_use]
    pub fn same_place(&self, doc: &ActionDoc) -> bool {
        self.doc.action() == doc.action() && self.doc.target() == doc.target()
    }
}

/// A canonical value as the general JSON type.
#[must_use]
pub fn json_of(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(truth) => serde_json::Value::Bool(*truth),
        Value::Int(number) => serde_json::Value::from(*number),
        Value::Text(text) => serde_json::Value::String(text.clone()),
        Value::List(items) => items.iter().map(json_of).collect(),
        Value::Map(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), json_of(value)))
            .collect(),
    }
}
