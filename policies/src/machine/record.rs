//! What is known about one investigation: plain data that is saved after each step and shown.
//!
//! A record grants nothing. The claims that it speaks of (evidence, proposal, clearance) are made
//! anew by their constructors when a [`super::Machine`] is rehydrated from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::diagnosis::{Diagnosis, ToolFailure};
use crate::event::GuardrailEvent;
use crate::model::{Alert, CauseClass, EvidenceId, IncidentId, Millis, RemediationClass, Window};

/// Where an investigation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waits until the first failing seconds are in the evidence.
    Settling,
    /// Tools run.
    Collecting,
    /// The model explains and chooses.
    Explaining,
    /// The proposal is on its way to the guard.
    Proposing,
    /// A person has to decide.
    AwaitingApproval,
    /// Approved; the interlocks look again at fresh facts.
    Rechecking,
    /// The guard has an approval for it and the job may run.
    Executing,
    /// The effect may or may not have happened; a person has to reconcile.
    InDoubt,
    /// The probe watches.
    Verifying,
    /// Over.
    Closed,
}

impl Phase {
    /// The word in lists and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settling => "settling",
            Self::Collecting => "collecting",
            Self::Explaining => "explaining",
            Self::Proposing => "proposing",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Rechecking => "rechecking",
            Self::Executing => "executing",
            Self::InDoubt => "in_doubt",
            Self::Verifying => "verifying",
            Self::Closed => "closed",
        }
    }
}

/// How an investigation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The action was done and the probe saw the recovery.
    Recovered,
    /// The action was done and the probe saw no recovery.
    NotRecovered,
    /// The action was done and the probe could not tell.
    Unverified,
    /// Handed over to the people.
    Escalated,
    /// Nothing is wrong now.
    NoAction,
    /// A person said no.
    Denied,
    /// Nobody decided in time, or the approval was not used in time.
    Expired,
    /// Taken back, by a person or because the interlocks refused at the second look.
    Revoked,
    /// The job ended without its effect.
    Failed,
    /// A person found out what an action in doubt had done.
    Reconciled,
}

impl Outcome {
    /// The word in lists and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recovered => "recovered",
            Self::NotRecovered => "not_recovered",
            Self::Unverified => "unverified",
            Self::Escalated => "escalated",
            Self::NoAction => "no_action",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Failed => "failed",
            Self::Reconciled => "reconciled",
        }
    }
}

/// How far a tool call is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// Not answered yet.
    Pending,
    /// Evidence of the call's number is there.
    Answered,
    /// No evidence; the code says why.
    Failed(String),
}

/// One tool call of the investigation. Its number is that of the evidence it brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Number of the evidence.
    pub id: EvidenceId,
    /// Tool name.
    pub tool: String,
    /// Configured source.
    pub source: String,
    /// Text to search for; empty for tools that take none.
    pub query: String,
    /// Time window.
    pub window: Window,
    /// How far.
    pub state: CallState,
    /// True for a call of the second look, after the approval.
    pub second_look: bool,
}

/// What the model did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelNote {
    /// Model name; empty when none answered.
    pub name: String,
    /// Prompt tokens.
    pub tokens_in: u32,
    /// Answer tokens.
    pub tokens_out: u32,
    /// Milliseconds.
    pub ms: i64,
    /// Why there is no answer of a model; empty when there is one.
    pub unavailable: String,
    /// The hypothesis it chose, within what the evidence allows.
    pub hypothesis: Option<String>,
    /// Its summary, redacted.
    pub summary: String,
    /// Evidence it cited, checked.
    pub citations: Vec<EvidenceId>,
}

/// What the interlocks said, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClearanceNote {
    /// When.
    pub at: Millis,
    /// True when a person may be asked.
    pub cleared: bool,
    /// Codes of the interlocks that refused.
    pub codes: Vec<String>,
    /// One sentence for each code.
    pub reasons: Vec<String>,
}

/// What was proposed, for people to read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposalNote {
    /// Class.
    pub class: RemediationClass,
    /// What is advised where the class is `escalate`.
    pub advice: Option<RemediationClass>,
    /// Service.
    pub target: String,
    /// Parameters as they would be signed.
    pub change: BTreeMap<String, crate::diagnosis::ParamValue>,
    /// Evidence cited for it.
    pub citations: Vec<crate::diagnosis::Cite>,
}

/// The guard's action as last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionNote {
    /// Its id.
    pub id: String,
    /// Its state word.
    pub state: String,
    /// Who decided, as the guard recorded it.
    pub decided_by: Vec<String>,
    /// Id of the capability, once issued.
    pub jti: Option<String>,
    /// Code of the executor, once there is an outcome.
    pub code: Option<String>,
}

/// How the job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobNote {
    /// `succeeded`, `failed`, `unknown` or `not_started`.
    pub outcome: String,
    /// Code of the executor.
    pub code: String,
}

/// What the probe measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerificationNote {
    /// Whether the metric recovered; `None` when it could not be read.
    pub recovered: Option<bool>,
    /// What was measured, in words.
    pub metric: String,
    /// Ratio right before the action.
    pub before: Option<f64>,
    /// Ratio at the end.
    pub after: Option<f64>,
}

/// One line of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimelineEntry {
    /// When.
    pub at: Millis,
    /// `alert`, `tool`, `diagnosis`, `model`, `policy`, `approval`, `action`, `probe`, `end`.
    pub kind: String,
    /// Sentence of our own; ids and enum words only, or admitted text.
    pub text: String,
}

/// The whole record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Incident.
    pub id: IncidentId,
    /// Tenant.
    pub tenant: String,
    /// `alert` or `storm`.
    pub kind: String,
    /// Where it stands.
    pub phase: Phase,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// When the machine was started.
    pub opened_at: Millis,
    /// When settling ends.
    pub settle_until: Millis,
    /// Alerts, redacted.
    pub alerts: Vec<Alert>,
    /// Tool calls by number.
    pub calls: Vec<Call>,
    /// Tools that failed.
    pub failed_tools: Vec<ToolFailure>,
    /// The deterministic diagnosis.
    pub diagnosis: Option<Diagnosis>,
    /// What the model did.
    pub model: Option<ModelNote>,
    /// Diagnosed cause class: that of the chosen hypothesis.
    pub cause_class: Option<CauseClass>,
    /// The proposal.
    pub proposal: Option<ProposalNote>,
    /// Interlocks, first look and second look.
    pub clearances: Vec<ClearanceNote>,
    /// The guard's action.
    pub action: Option<ActionNote>,
    /// Earlier actions whose worker was lost; what the guard still says of them is past.
    #[serde(default)]
    pub lost_actions: Vec<String>,
    /// The job.
    pub job: Option<JobNote>,
    /// The probe.
    pub verification: Option<VerificationNote>,
    /// Guardrail interventions.
    pub events: Vec<GuardrailEvent>,
    /// What happened, in order.
    pub timeline: Vec<TimelineEntry>,
    /// When each stage began.
    pub stages: Vec<(String, Millis)>,
}

impl Record {
    /// Seconds of each stage; a stage that was entered twice is summed. The last one ends at `now`
    /// unless the record is closed.
    #[must_use]
    pub fn seconds(&self, now: Millis) -> BTreeMap<String, f64> {
        let mut out = BTreeMap::new();
        let ends = self.stages.iter().skip(1).map(|(_, at)| *at).chain([now]);
        for ((name, from), to) in self.stages.iter().zip(ends) {
            if name == Phase::Closed.as_str() {
                continue;
            }
            #[allow(clippy::cast_precision_loss, reason = "stages last minutes")]
            let seconds = to.since(*from).max(0) as f64 / 1000.0;
            *out.entry(name.clone()).or_insert(0.0) += seconds;
        }
        out
    }

    /// The hypothesis that stands: the model's choice within what the evidence allows, else the
    /// verdict of the rules.
    #[must_use]
    pub fn hypothesis(&self) -> Option<&crate::diagnosis::Hypothesis> {
        let diagnosis = self.diagnosis.as_ref()?;
        let id = self
            .model
            .as_ref()
            .and_then(|m| m.hypothesis.as_deref())
            .or(diagnosis.verdict.hypothesis.as_deref())?;
        diagnosis.hypothesis(id)
    }
}
