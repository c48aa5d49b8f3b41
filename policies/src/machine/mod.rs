//! The investigation of one incident as a sans-IO state machine (design.md 4).
//!
//! `handle(input, env)` changes the record and answers with effects; it never waits, reads a clock
//! or touches a file. The conductor saves the record before it performs an effect, so every effect
//! may be performed again after a crash: [`Machine::resume`] says which. None of them is harmful
//! twice: tools only read, a proposal is deduplicated by the guard, and a capability is spent once.

mod collect;
mod decide;
#[cfg(test)]
mod emit_tests;
mod explain;
mod news;
mod postmortem;
mod record;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::admit;
use crate::claim::{Cleared, Evidence, Prompt, RawOutput, RedactKey, StoredEvidence};
use crate::diagnosis::{ExecutorFact, ParamValue};
use crate::event::GuardrailEvent;
use crate::interlocks::RecentAction;
use crate::model::{Alert, EvidenceId, IncidentId, Millis, RemediationClass};

pub use news::{Event, news};
pub use postmortem::render as postmortem;
pub use record::{
    ActionNote, Call, CallState, ClearanceNote, JobNote, ModelNote, Outcome, Phase, ProposalNote,
    Record, TimelineEntry, VerificationNote,
};

/// What is fixed for an investigation from outside: configuration and the moment.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The moment.
    pub now: Millis,
    /// Redaction key of the incident.
    pub key: &'a RedactKey,
    /// Services that exist by configuration.
    pub inventory: &'a [String],
    /// Configured executors.
    pub executors: &'a [ExecutorFact],
    /// Configured sources: name and tool.
    pub sources: &'a [SourceFact],
    /// What was done lately, in any incident.
    pub recent: &'a [RecentAction],
    /// The system prompt of the explanation.
    pub system_prompt: &'static str,
    /// What the explanation is asked for; the last part of its prompt.
    pub question: &'static str,
    /// Why no model can be asked; empty when one can.
    pub model_unavailable: &'a str,
    /// Waits.
    pub waits: Waits,
}

/// Waits and windows, in ms.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Between the alert and the first tool.
    pub settle_ms: i64,
    /// How far before the first alert evidence is read.
    pub lookback_ms: i64,
}

/// A configured source and the tool that reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFact {
    /// Name in the configuration.
    pub name: String,
    /// Tool.
    pub tool: String,
}

/// The answer of a tool.
#[derive(Debug)]
pub enum ToolReply {
    /// It answered; `partial` says what is missing.
    Raw {
        /// The bytes.
        raw: RawOutput,
        /// What is missing, if anything.
        partial: Option<String>,
    },
    /// It did not.
    Failed {
        /// Why, as a stable word.
        code: String,
    },
}

/// The answer of the model.
#[derive(Clone, Debug)]
pub struct ModelReply {
    /// The draft as text.
    pub text: String,
    /// Model name.
    pub name: String,
    /// Prompt tokens.
    pub tokens_in: u32,
    /// Answer tokens.
    pub tokens_out: u32,
    /// Milliseconds.
    pub ms: i64,
}

/// What can happen to an investigation.
#[derive(Debug)]
pub enum Input {
    /// The wait that an [`Effect::Wake`] asked for is over.
    Woke,
    /// The alerts of the incident as they stand now.
    Alerts(Vec<Alert>),
    /// A tool answered.
    Tool {
        /// Number of the call.
        id: EvidenceId,
        /// What it said.
        reply: ToolReply,
    },
    /// The model answered, or a code says why not.
    Model(Result<ModelReply, String>),
    /// The guard's view of the action.
    Action(ActionNote),
    /// The guard refused the proposal for good, with its code.
    ProposalRefused(String),
    /// The job ended.
    Job(JobNote),
    /// A capability was collected by a worker that is no longer there, and was not spent.
    WorkerLost,
    /// The probe ended.
    Probe(VerificationNote),
}

/// What has to be done.
#[derive(Debug)]
pub enum Effect {
    /// Give [`Input::Woke`] at this time.
    Wake(Millis),
    /// Run a tool.
    RunTool(Call),
    /// Ask the model.
    AskModel {
        /// The prompt.
        prompt: Prompt,
        /// JSON Schema of the answer.
        schema: Value,
        /// Most tokens of the answer.
        max_tokens: u32,
    },
    /// Ask the guard for an approval of exactly this.
    RequestApproval(Box<Cleared>),
    /// Follow the action until it changes.
    WatchAction(String),
    /// Have the approved action done.
    Execute {
        /// The guard's action.
        action: String,
        /// Class.
        class: RemediationClass,
        /// Service.
        target: String,
    },
    /// Take the approved action back.
    Revoke {
        /// The guard's action.
        action: String,
        /// Why, as a stable word.
        reason: String,
    },
    /// Watch the probe of the executor.
    Verify {
        /// Class of what was done.
        class: RemediationClass,
        /// Service.
        target: String,
    },
}

/// What a step left behind besides its effects; saved in one transaction with the record.
#[derive(Debug, Default)]
pub struct Step {
    /// Effects, to be performed after the record is saved.
    pub effects: Vec<Effect>,
    /// Evidence that is new.
    pub evidence: Vec<StoredEvidence>,
    /// Guardrail events that are new.
    pub events: Vec<GuardrailEvent>,
    /// Audit leaves: type and data.
    pub leaves: Vec<Leaf>,
    /// Set when the step closed the incident.
    pub closed: bool,
}

/// An audit leaf: ids, codes and hashes, never text from outside.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Leaf {
    /// Type of guard 6.1.2.
    pub kind: String,
    /// Members of `data`.
    pub data: std::collections::BTreeMap<String, ParamValue>,
}

/// One investigation.
#[derive(Debug)]
pub struct Machine {
    record: Record,
    evidence: Vec<Evidence>,
    /// What newer rules found in the stored evidence, until the next step takes note of it.
    rechecked: Vec<GuardrailEvent>,
}

/// A record that cannot be brought back.
#[derive(Debug, thiserror::Error)]
pub enum RehydrateError {
    /// The saved record does not parse.
    #[error("the saved record of the investigation does not parse")]
    Record(#[source] serde_json::Error),
    /// The record is of another incident.
    #[error("the saved record is that of `{0}`")]
    Mixed(IncidentId),
}

impl Machine {
    /// Opens an investigation.
    #[must_use]
    pub fn start(
        id: IncidentId,
        tenant: &str,
        kind: &str,
        alerts: Vec<Alert>,
        env: &Env<'_>,
    ) -> (Self, Step) {
        let record = Record {
            id,
            tenant: tenant.to_owned(),
            kind: kind.to_owned(),
            phase: Phase::Settling,
            outcome: None,
            opened_at: env.now,
            settle_until: env.now.plus(env.waits.settle_ms),
            alerts,
            calls: Vec::new(),
            failed_tools: Vec::new(),
            diagnosis: None,
            model: None,
            cause_class: None,
            proposal: None,
            clearances: Vec::new(),
            action: None,
            lost_actions: Vec::new(),
            job: None,
            verification: None,
            events: Vec::new(),
            timeline: Vec::new(),
            stages: vec![(Phase::Settling.as_str().to_owned(), env.now)],
        };
        let mut machine = Self {
            record,
            evidence: Vec::new(),
            rechecked: Vec::new(),
        };
        let mut step = Step::default();
        for alert in machine.record.alerts.clone() {
            machine.note(
                alert.received_at,
                "alert",
                format!(
                    "alert {} came in for {}",
                    alert.name,
                    or_unknown(&alert.service)
                ),
            );
        }
        let alerts = i64::try_from(machine.record.alerts.len()).unwrap_or(i64::MAX);
        machine.leaf(
            &mut step,
            "incident.opened",
            [("alerts", ParamValue::Int(alerts))],
        );
        step.effects.push(Effect::Wake(machine.record.settle_until));
        (machine, step)
    }

    /// Brings an investigation back: evidence passes the redactor again, claims are made anew.
    ///
    /// # Errors
    /// [`RehydrateError`]; evidence that no longer passes is dropped and counted as a failed call.
    pub fn rehydrate(
        id: &IncidentId,
        record: &str,
        evidence: Vec<StoredEvidence>,
        key: &RedactKey,
    ) -> Result<Self, RehydrateError> {
        let mut record: Record = serde_json::from_str(record).map_err(RehydrateError::Record)?;
        if record.id != *id {
            return Err(RehydrateError::Mixed(record.id));
        }
        let mut kept = Vec::new();
        let mut rechecked = Vec::new();
        for stored in evidence {
            let number = stored.id;
            match admit::rehydrate_evidence(stored, key) {
                Ok(admitted) => {
                    rechecked.extend(admitted.events);
                    kept.push(admitted.evidence);
                }
                Err(refused) => {
                    if let Some(call) = record.calls.iter_mut().find(|c| c.id == number) {
                        call.state = CallState::Failed(refused.code.to_owned());
                    }
                }
            }
        }
        Ok(Self {
            record,
            evidence: kept,
            rechecked,
        })
    }

    /// The record, for saving and showing.
    #[must_use]
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// The evidence so far.
    #[must_use]
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Takes one input. An input that does not belong to the phase changes nothing.
    pub fn handle(&mut self, input: Input, env: &Env<'_>) -> Step {
        let mut step = Step::default();
        match input {
            Input::Woke => self.woke(env, &mut step),
            Input::Alerts(alerts) => self.alerts_changed(alerts, env),
            Input::Tool { id, reply } => self.tool_answered(id, reply, env, &mut step),
            Input::Model(reply) => self.model_answered(reply, env, &mut step),
            Input::Action(action) => self.action_changed(action, env, &mut step),
            Input::ProposalRefused(code) => self.proposal_refused(&code, env, &mut step),
            Input::Job(job) => self.job_ended(job, env, &mut step),
            Input::WorkerLost => self.worker_lost(env, &mut step),
            Input::Probe(probe) => self.probe_ended(probe, env, &mut step),
        }
        self.emit(&mut step, env.now);
        step
    }

    /// The effects that are outstanding, after a restart.
    pub fn resume(&mut self, env: &Env<'_>) -> Step {
        let mut step = Step::default();
        match self.record.phase {
            Phase::Settling => step.effects.push(Effect::Wake(self.record.settle_until)),
            Phase::Collecting | Phase::Rechecking => {
                let pending = self
                    .record
                    .calls
                    .iter()
                    .filter(|c| c.state == CallState::Pending);
                step.effects.extend(pending.cloned().map(Effect::RunTool));
                if step.effects.is_empty() {
                    self.all_answered(env, &mut step);
                }
            }
            Phase::Explaining => self.ask_model(env, &mut step),
            Phase::Proposing => self.propose(env, &mut step),
            Phase::AwaitingApproval | Phase::Executing | Phase::InDoubt => {
                if let Some(action) = &self.record.action {
                    step.effects.push(Effect::WatchAction(action.id.clone()));
                }
            }
            Phase::Verifying => self.verify(&mut step),
            Phase::Closed => {}
        }
        self.emit(&mut step, env.now);
        step
    }

    /// The one way of an intervention: it is numbered, kept in the record, from which the
    /// postmortem lists it, and handed to the conductor, which counts it and writes its span event.
    fn emit(&mut self, step: &mut Step, now: Millis) {
        let mut events = std::mem::take(&mut self.rechecked);
        events.append(&mut step.events);
        for event in &mut events {
            let next = u32::try_from(self.record.events.len()).unwrap_or(u32::MAX);
            event.seq = next.saturating_add(1);
            event.at = Some(now);
            self.record.phase.as_str().clone_into(&mut event.step);
            self.record.events.push(event.clone());
        }
        step.events = events;
    }

    fn enter(&mut self, phase: Phase, now: Millis) {
        self.record.phase = phase;
        self.record.stages.push((phase.as_str().to_owned(), now));
    }

    fn note(&mut self, at: Millis, kind: &str, text: String) {
        self.record.timeline.push(TimelineEntry {
            at,
            kind: kind.to_owned(),
            text,
        });
    }

    fn leaf<const N: usize>(&self, step: &mut Step, kind: &str, data: [(&str, ParamValue); N]) {
        let incident = self.record.id.as_str().to_owned();
        let mut members: std::collections::BTreeMap<_, _> =
            data.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        members.insert("incident".to_owned(), ParamValue::Text(incident));
        step.leaves.push(Leaf {
            kind: kind.to_owned(),
            data: members,
        });
    }

    fn close(&mut self, outcome: Outcome, env: &Env<'_>, step: &mut Step) {
        self.record.outcome = Some(outcome);
        self.enter(Phase::Closed, env.now);
        self.note(env.now, "end", format!("closed: {}", outcome.as_str()));
        self.leaf(
            step,
            "incident.closed",
            [("outcome", ParamValue::Text(outcome.as_str().to_owned()))],
        );
        step.closed = true;
    }
}

fn or_unknown(service: &str) -> &str {
    if service.is_empty() {
        "an unknown service"
    } else {
        service
    }
}
