//! The task of one incident.

use policies::claim::{RedactKey, StoredEvidence};
use policies::diagnosis::ExecutorFact;
use policies::interlocks::RecentAction;
use policies::machine::{Env, Input, Machine, Phase, Step, Waits, postmortem};
use policies::model::IncidentId;
use serde_json::Value;
use store::sentinel::{NewState, Postmortem};
use tokio::sync::mpsc;

use super::{Conductor, Error, current_alerts, effects};
use crate::telemetry::{self, names};
use crate::{clock, failpoint};

/// Runs until the incident is closed.
pub(super) async fn run(
    conductor: &Conductor,
    id: &IncidentId,
    sender: mpsc::UnboundedSender<Input>,
    mut inbox: mpsc::UnboundedReceiver<Input>,
) -> Result<(), Error> {
    let parts = &conductor.shared.parts;
    let key = conductor.key(id)?;
    let mut executors = conductor.shared.site.executors.clone();
    let (mut machine, step, fresh) = take_up(conductor, id, &key, &executors)?;
    if fresh {
        save(conductor, None, &machine, &step)?;
        failpoint::hit("incident_saved");
    }
    effects::perform(conductor, id, &sender, step);
    if machine.record().phase == Phase::Executing {
        effects::recover(conductor, &machine, &sender).await;
    }
    while machine.record().phase != Phase::Closed {
        let Some(input) = inbox.recv().await else {
            break;
        };
        if matches!(input, Input::Woke | Input::Action(_)) {
            executors = effects::look_up(conductor, &executors).await;
        }
        let recent = recent_actions(conductor, &machine).await;
        let before = machine.record().phase;
        let step = {
            let env = env(conductor, &key, &executors, &recent);
            machine.handle(input, &env)
        };
        border(machine.record().phase, false);
        save(conductor, Some(before), &machine, &step)?;
        border(machine.record().phase, true);
        effects::perform(conductor, id, &sender, step);
    }
    tracing::info!(
        incident.id = %id,
        outcome = machine.record().outcome.map_or("", policies::machine::Outcome::as_str),
        "incident closed"
    );
    parts.bus.publish("incident", id.to_string());
    Ok(())
}

/// Points where tests kill core, before and after a step is saved.
fn border(phase: Phase, saved: bool) {
    let point = match (phase, saved) {
        (Phase::Collecting, true) => "evidence_saved",
        (Phase::Explaining, true) => "diagnosed",
        (Phase::Proposing, true) => "before_propose",
        (Phase::AwaitingApproval, true) => "awaiting_approval",
        (Phase::Rechecking, true) => "approval_seen",
        (Phase::Executing, true) => "rechecked",
        (Phase::Verifying, true) => "verifying",
        (Phase::Closed, false) => "before_close",
        (
            Phase::Settling
            | Phase::Collecting
            | Phase::Explaining
            | Phase::Proposing
            | Phase::AwaitingApproval
            | Phase::Rechecking
            | Phase::Executing
            | Phase::InDoubt
            | Phase::Verifying
            | Phase::Closed,
            _,
        ) => return,
    };
    failpoint::hit(point);
}

fn env<'a>(
    conductor: &'a Conductor,
    key: &'a RedactKey,
    executors: &'a [ExecutorFact],
    recent: &'a [RecentAction],
) -> Env<'a> {
    let shared = &conductor.shared;
    Env {
        now: clock::now(),
        key,
        inventory: &shared.site.inventory,
        executors,
        sources: &shared.site.sources,
        recent,
        system_prompt: inference::prompts::RCA_SYSTEM,
        question: inference::prompts::RCA_QUESTION,
        model_unavailable: effects::model_unavailable(conductor),
        waits: Waits {
            settle_ms: shared.parts.config.investigation.settle_ms,
            lookback_ms: shared.parts.config.investigation.lookback_ms,
        },
    }
}

fn take_up(
    conductor: &Conductor,
    id: &IncidentId,
    key: &RedactKey,
    executors: &[ExecutorFact],
) -> Result<(Machine, Step, bool), Error> {
    let db = &conductor.shared.parts.db;
    let env = env(conductor, key, executors, &[]);
    let alerts = current_alerts(db.alerts(id)?);
    let Some(record) = db.state(id)? else {
        let row = db.incident(id)?.ok_or_else(|| Error::Key(id.clone()))?;
        let (machine, step) = Machine::start(id.clone(), &row.tenant, &row.kind, alerts, &env);
        tracing::info!(incident.id = %id, service = row.service, "incident opened");
        return Ok((machine, step, true));
    };
    let evidence: Vec<StoredEvidence> = db
        .evidence(id)?
        .iter()
        .filter_map(|(_, body)| serde_json::from_str(body).ok())
        .collect();
    let mut machine =
        Machine::rehydrate(id, &record, evidence, key).map_err(|source| Error::Record {
            id: id.clone(),
            source,
        })?;
    let _ = machine.handle(Input::Alerts(alerts), &env);
    let step = machine.resume(&env);
    let saved = !step.leaves.is_empty() || step.closed || !step.evidence.is_empty();
    Ok((machine, step, saved))
}

/// What was done lately in any incident, this one's own open action excepted.
async fn recent_actions(conductor: &Conductor, machine: &Machine) -> Vec<RecentAction> {
    let own = machine.record().action.as_ref().map(|a| a.id.clone());
    let actions = effects::all_actions(conductor).await;
    actions
        .into_iter()
        .filter(|a| Some(&a.id) != own.as_ref())
        .filter_map(|a| {
            let in_progress = matches!(
                a.state.as_str(),
                "approved" | "issued" | "spent" | "in_doubt"
            );
            let done = matches!(
                a.state.as_str(),
                "succeeded" | "failed" | "reconciled_succeeded" | "reconciled_failed"
            );
            (in_progress || done).then_some(())?;
            Some(RecentAction {
                incident: a
                    .change
                    .get("incident")
                    .and_then(Value::as_str)?
                    .parse()
                    .ok()?,
                class: a.action.parse().ok()?,
                target: a.target.name,
                at: policies::model::Millis::parse_rfc3339(&a.created_at)?,
                in_progress,
            })
        })
        .collect()
}

/// Saves a step that began in phase `before`: record, evidence, leaves, notifications and, at the
/// end, the postmortem.
fn save(
    conductor: &Conductor,
    before: Option<Phase>,
    machine: &Machine,
    step: &Step,
) -> Result<(), Error> {
    let parts = &conductor.shared.parts;
    let record = machine.record();
    let now = clock::now();
    let state = json(record);
    let evidence: Vec<(u32, String)> = step.evidence.iter().map(|e| (e.id.0, json(e))).collect();
    let leaves: Vec<(String, String)> = step
        .leaves
        .iter()
        .map(|l| (l.kind.clone(), json(&l.data)))
        .collect();
    let end = step.closed.then(|| {
        let (markdown, body) = postmortem(record, machine.evidence(), now);
        Postmortem {
            markdown,
            json: body.to_string(),
        }
    });
    let notices = parts.notifier.of_step(before, record, now);
    tokio::task::block_in_place(|| {
        parts.db.save_state(
            &record.id,
            now,
            &NewState {
                phase: record.phase.as_str(),
                outcome: record.outcome.map(policies::machine::Outcome::as_str),
                cause_class: record.cause_class.map(policies::model::CauseClass::as_str),
                action_id: record.action.as_ref().map(|a| a.id.as_str()),
                state: &state,
                evidence: &evidence,
                leaves: &leaves,
                postmortem: end.as_ref(),
                notices: &notices,
            },
        )
    })?;
    for event in &step.events {
        telemetry::guardrail(Some(record.id.as_str()), event);
    }
    if let (true, Some(outcome)) = (step.closed, record.outcome) {
        telemetry::count(names::INCIDENTS, &[&record.tenant, outcome.as_str()], 1);
        for (phase, seconds) in record.seconds(now) {
            telemetry::observe(names::INCIDENT_SECONDS, &[&phase], seconds);
        }
    }
    parts.bus.publish("incident", record.id.to_string());
    Ok(())
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
