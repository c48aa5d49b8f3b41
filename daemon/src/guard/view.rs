//! An action as it is shown (guard 3.6).

use policies::canon::Value;
use policies::guard::{Action, Verdict, json_of};
use policies::model::{Millis, Target};
use serde::Serialize;

use super::shown;

/// One recorded approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approval {
    /// Person id of the policy.
    pub person: String,
    /// How sure the guard is of the person.
    pub assurance: String,
    /// The delegate.
    pub via: Option<String>,
    /// When.
    pub at: String,
    /// In the person's words.
    pub reason: String,
}

/// How many have approved, how many must, and who did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Approvals {
    /// Distinct people so far.
    pub have: i64,
    /// Distinct people that must.
    pub need: i64,
    /// Who.
    pub by: Vec<Approval>,
}

/// The members of `GET /v1/actions/{id}`, for a decider. Texts of others (`intent`, `reason`) are
/// plain and are escaped by who shows them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActionView {
    /// Id.
    pub id: String,
    /// Name of the action.
    pub action: String,
    /// What it works on.
    pub target: Target,
    /// Parameters.
    pub change: serde_json::Value,
    /// Display text of the proposer.
    pub intent: String,
    /// Digest of the document.
    pub digest: String,
    /// The canonical bytes that are decided about.
    pub document: String,
    /// State, as its word.
    pub state: String,
    /// Identity of the proposer.
    pub requester: String,
    /// The person who chose it.
    pub initiator: Option<String>,
    /// Nonce of decisions.
    pub decision_nonce: String,
    /// Approvals.
    pub approvals: Approvals,
    /// When it was proposed.
    pub created_at: String,
    /// Until when it may be decided.
    pub expires_at: String,
    /// End of the approval window.
    pub approval_expires_at: Option<String>,
    /// Until when the effect must be over.
    pub effect_deadline: Option<String>,
    /// The capability.
    pub jti: Option<String>,
    /// The job.
    pub job: Option<String>,
    /// Its fence.
    pub fence: Option<i64>,
    /// When the executor said that it starts.
    pub started: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// Index of the leaf of the last change.
    pub audit_index: u64,
    /// The last decision: who, and which.
    #[serde(skip)]
    code: Option<String>,
    #[serde(skip)]
    decided: Option<(String, Verdict)>,
}

impl ActionView {
    /// Everything that is on record about an action.
    #[must_use]
    pub(super) fn of(action: &Action) -> Self {
        let issue = action.issue.as_ref();
        let spend = action.spend.as_ref();
        Self {
            id: action.id.clone(),
            action: action.doc.action().to_owned(),
            target: action.doc.target().clone(),
            change: json_of(&Value::Map(action.doc.change().clone())),
            intent: action.intent.clone(),
            digest: action.digest.clone(),
            document: action.doc.jcs(),
            state: action.state.as_str().to_owned(),
            requester: action.requester.clone(),
            initiator: action.initiator.clone(),
            decision_nonce: action.nonce.clone(),
            approvals: approvals(action),
            created_at: shown(action.created_at),
            expires_at: shown(action.expires_at),
            approval_expires_at: action.approval_expires_at.map(shown),
            effect_deadline: spend.map(|s| shown(s.effect_deadline)),
            jti: issue.map(|i| i.claims.jti.clone()),
            job: issue.map(|i| i.job.clone()),
            fence: issue.map(|i| i.fence),
            started: spend.and_then(|s| s.started).map(Millis::rfc3339),
            outcome: action.ending.as_ref().map(|e| e.outcome.clone()),
            audit_index: action.index,
            code: action.ending.as_ref().map(|e| e.code.clone()),
            decided: action
                .decisions
                .last()
                .map(|d| (d.person.clone(), d.verdict)),
        }
    }

    /// Code of the executor, once the action has an outcome.
    #[must_use]
    pub fn outcome_code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Person id of the last recorded decision, an approval or a denial.
    #[must_use]
    pub fn decided_by(&self) -> Option<String> {
        self.decided.as_ref().map(|(person, _)| person.clone())
    }
}

/// The approvals of an action.
pub(super) fn approvals(action: &Action) -> Approvals {
    Approvals {
        have: action.have(),
        need: action.need,
        by: action
            .decisions
            .iter()
            .filter(|d| d.verdict == Verdict::Approve)
            .map(|d| Approval {
                person: d.person.clone(),
                assurance: d.assurance.as_str().to_owned(),
                via: d.via.clone(),
                at: shown(d.at),
                reason: d.reason.clone(),
            })
            .collect(),
    }
}
