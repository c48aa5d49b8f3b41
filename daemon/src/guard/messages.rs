//! What is asked of the writer thread, and what it answers.

use std::collections::BTreeMap;

use policies::audit::EventType;
use policies::canon::Value;
use policies::guard::judge::{Channel, Decider};
use policies::guard::{Capability, Peer, Problem, State, Verdict};
use policies::model::{Millis, Target};
use serde::Serialize;
use tokio::sync::oneshot;

use super::view::{ActionView, Approvals};

/// Where an answer goes.
pub(super) type ReplyTo<T> = oneshot::Sender<Result<T, Problem>>;

/// A proposal.
#[derive(Clone, Debug)]
pub struct ProposeRequest {
    /// Name of the action in the policy.
    pub action: String,
    /// What it works on.
    pub target: Target,
    /// Parameters.
    pub change: BTreeMap<String, Value>,
    /// Display text, at most 2,000 bytes. Nothing is judged by it.
    pub intent: String,
    /// Subject of the person who chose the action or its parameters.
    pub initiator: Option<String>,
}

/// A decision of a person, as a delegate hands it in.
#[derive(Clone)]
pub struct DecisionRequest {
    /// The action.
    pub action_id: String,
    /// Digest that the person saw.
    pub digest: String,
    /// Nonce of the action.
    pub decision_nonce: String,
    /// Subject of the person, for example `local:alice`.
    pub approver: String,
    /// In the person's words; required for a denial.
    pub reason: String,
    /// One-time code, where the person gave one.
    pub totp: Option<String>,
}

/// A revocation by a person.
#[derive(Clone, Debug)]
pub struct RevokeRequest {
    /// The action.
    pub action_id: String,
    /// Subject of the person; `None` for the requester itself.
    pub approver: Option<String>,
    /// In the person's words.
    pub reason: String,
}

/// What a person found out about an action in doubt.
#[derive(Clone)]
pub struct ReconcileRequest {
    /// The action.
    pub action_id: String,
    /// True where the effect happened.
    pub succeeded: bool,
    /// Subject of the person.
    pub approver: String,
    /// In the person's words.
    pub reason: String,
    /// SHA-256 of what a read-only probe saw, base64url.
    pub evidence_sha256: Option<String>,
    /// One-time code, where the person gave one.
    pub totp: Option<String>,
}

/// Setting or releasing the hold.
#[derive(Clone)]
pub struct HoldRequest {
    /// Subject of the person.
    pub approver: String,
    /// In the person's words.
    pub reason: String,
    /// One-time code; a release asks one.
    pub totp: Option<String>,
}

/// A range of the log to export.
#[derive(Clone, Copy, Debug, Default)]
pub struct Export {
    /// First index.
    pub from: u64,
    /// One past the last; `None` for all.
    pub to: Option<u64>,
    /// With the personal data.
    pub with_pii: bool,
    /// Size of the head that the reader remembers.
    pub since: Option<u64>,
}

/// The answer to a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reply {
    /// The action.
    pub id: String,
    /// Its state.
    pub state: State,
    /// Its digest.
    pub digest: String,
    /// How many have approved, how many must.
    pub approvals: Approvals,
    /// Until when it may be decided.
    pub expires_at: String,
    /// The recorded decision, in an answer to one.
    pub decision: Option<RecordedDecision>,
    /// Index of the leaf.
    pub audit_index: u64,
    /// `.tlog-proof` of the leaf.
    pub proof: String,
}

/// A decision as it is on record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedDecision {
    /// `approve` or `deny`.
    pub outcome: String,
    /// Person id of the policy.
    pub person: String,
    /// `delegated` or `local`.
    pub assurance: String,
    /// The delegate.
    pub via: Option<String>,
}

/// An action has another state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionChanged {
    /// The action.
    pub id: String,
    /// Its state now.
    pub state: State,
}

/// One state that holds (guard 3.1, `/v1/guard/health`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthState {
    /// Its word.
    pub state: String,
    /// The file or the reason.
    pub cause: String,
}

/// How the guard is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// True where no state holds.
    pub ok: bool,
    /// States that hold.
    pub states: Vec<HealthState>,
    /// Incarnation of the log.
    pub inc: u64,
    /// Epoch of the keys.
    pub epoch: u64,
    /// Leaves in the log.
    pub size: u64,
}

/// A capability on its way to the channel.
pub(super) struct Collected {
    pub(super) capability: Capability,
    pub(super) index: u64,
    pub(super) proof: String,
}

/// The receipt of a spend.
pub(super) struct SpendReceipt {
    pub(super) jti: String,
    pub(super) effect_deadline: Millis,
    pub(super) event: String,
    pub(super) index: u64,
    pub(super) proof: String,
}

/// One request to the writer.
pub(super) enum Request {
    Propose {
        peer: Peer,
        request: ProposeRequest,
        reply: ReplyTo<Reply>,
    },
    Decide {
        decider: Decider,
        verdict: Verdict,
        request: DecisionRequest,
        reply: ReplyTo<Reply>,
    },
    Cancel {
        peer: Peer,
        action: String,
        reply: ReplyTo<Reply>,
    },
    Revoke {
        decider: Decider,
        request: RevokeRequest,
        reply: ReplyTo<Reply>,
    },
    Reconcile {
        decider: Decider,
        request: ReconcileRequest,
        reply: ReplyTo<Reply>,
    },
    Hold {
        decider: Decider,
        set: bool,
        request: HoldRequest,
        reply: ReplyTo<()>,
    },
    Collect {
        channel: Channel,
        action: String,
        body: Vec<u8>,
        reply: ReplyTo<Collected>,
    },
    Spend {
        channel: Channel,
        body: Vec<u8>,
        reply: ReplyTo<SpendReceipt>,
    },
    Started {
        channel: Channel,
        jti: String,
        body: Vec<u8>,
        reply: ReplyTo<Reply>,
    },
    Outcome {
        channel: Channel,
        jti: String,
        body: Vec<u8>,
        reply: ReplyTo<Reply>,
    },
    Append {
        kind: EventType,
        body: String,
        reply: ReplyTo<u64>,
    },
    ReloadPolicy {
        reply: ReplyTo<()>,
    },
    Export {
        wanted: Export,
        reply: ReplyTo<String>,
    },
    Action {
        id: String,
        reply: ReplyTo<Option<ActionView>>,
    },
    Actions {
        state: Option<State>,
        reply: ReplyTo<Vec<ActionView>>,
    },
    PersonOf {
        subject: String,
        reply: ReplyTo<Option<String>>,
    },
    CheckTotp {
        subject: String,
        code: String,
        reply: ReplyTo<bool>,
    },
    CodesLocked {
        subject: String,
        reply: ReplyTo<Option<Millis>>,
    },
    EnrollTotp {
        subject: String,
        secret: Vec<u8>,
        reply: ReplyTo<()>,
    },
    NextFence {
        job: String,
        reply: ReplyTo<i64>,
    },
    Entry {
        index: u64,
        reply: ReplyTo<(String, String)>,
    },
    Health {
        reply: ReplyTo<Health>,
    },
}

impl Request {
    /// What only takes away comes first in a batch (guard 6.3.2).
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Decide {
                verdict: Verdict::Deny,
                ..
            }
            | Self::Cancel { .. }
            | Self::Revoke { .. }
            | Self::Started { .. }
            | Self::Outcome { .. } => 0,
            _ => 1,
        }
    }
}

impl Request {
    /// A change goes into a batch; everything else is answered from the records.
    pub(super) fn is_change(&self) -> bool {
        match self {
            Self::Propose { .. }
            | Self::Decide { .. }
            | Self::Cancel { .. }
            | Self::Revoke { .. }
            | Self::Reconcile { .. }
            | Self::Hold { .. }
            | Self::Collect { .. }
            | Self::Spend { .. }
            | Self::Started { .. }
            | Self::Outcome { .. }
            | Self::Append { .. }
            | Self::ReloadPolicy { .. } => true,
            Self::Export { .. }
            | Self::Action { .. }
            | Self::Actions { .. }
            | Self::PersonOf { .. }
            | Self::CheckTotp { .. }
            | Self::CodesLocked { .. }
            | Self::EnrollTotp { .. }
            | Self::NextFence { .. }
            | Self::Entry { .. }
            | Self::Health { .. } => false,
        }
    }

    /// A new policy is a batch of its own.
    pub(super) fn is_reload(&self) -> bool {
        matches!(self, Self::ReloadPolicy { .. })
    }

    /// Answers with a refusal. A caller that has gone away is no failure.
    pub(super) fn refuse(self, problem: &Problem) {
        fn no<T>(reply: ReplyTo<T>, problem: &Problem) {
            let _ = reply.send(Err(problem.clone()));
        }
        match self {
            Self::Propose { reply, .. }
            | Self::Decide { reply, .. }
            | Self::Cancel { reply, .. }
            | Self::Revoke { reply, .. }
            | Self::Reconcile { reply, .. }
            | Self::Started { reply, .. }
            | Self::Outcome { reply, .. } => no(reply, problem),
            Self::Hold { reply, .. }
            | Self::ReloadPolicy { reply }
            | Self::EnrollTotp { reply, .. } => no(reply, problem),
            Self::Collect { reply, .. } => no(reply, problem),
            Self::Spend { reply, .. } => no(reply, problem),
            Self::Append { reply, .. } => no(reply, problem),
            Self::Export { reply, .. } => no(reply, problem),
            Self::Action { reply, .. } => no(reply, problem),
            Self::Actions { reply, .. } => no(reply, problem),
            Self::PersonOf { reply, .. } => no(reply, problem),
            Self::CheckTotp { reply, .. } => no(reply, problem),
            Self::CodesLocked { reply, .. } => no(reply, problem),
            Self::NextFence { reply, .. } => no(reply, problem),
            Self::Entry { reply, .. } => no(reply, problem),
            Self::Health { reply } => no(reply, problem),
        }
    }
}
