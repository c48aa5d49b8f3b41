//! Effects, one function each.

use std::time::Duration;

use inference::{CompletionRequest, EngineState, Provider};
use policies::claim::{Cleared, Prompt};
use policies::diagnosis::{ExecutorFact, ParamValue};
use policies::machine::{
    ActionNote, Call, Effect, Input, JobNote, Machine, ModelReply, Step, ToolReply,
};
use policies::model::{IncidentId, Millis, RemediationClass};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::{Conductor, probe};
use crate::guard::{ActionView, ProposeRequest};
use crate::jobs::{ToolAnswer, ToolCall};
use crate::telemetry::{self, names};
use crate::{clock, failpoint};

/// A tool has this long unless its own limit is shorter.
const TOOL_DEADLINE: Duration = Duration::from_secs(15);
/// Pause before the guard is asked again.
const RETRY: Duration = Duration::from_secs(2);

/// Starts every effect of a step; answers come back as inputs.
pub(super) fn perform(
    conductor: &Conductor,
    id: &IncidentId,
    sender: &UnboundedSender<Input>,
    step: Step,
) {
    let tools = step.effects.iter().any(|e| matches!(e, Effect::RunTool(_)));
    for effect in step.effects {
        let (conductor, id, sender) = (conductor.clone(), id.clone(), sender.clone());
        match effect {
            Effect::Wake(at) => {
                tokio::spawn(async move {
                    let wait = u64::try_from(at.since(clock::now())).unwrap_or(0);
                    tokio::time::sleep(Duration::from_millis(wait)).await;
                    let _ = sender.send(Input::Woke);
                });
            }
            Effect::RunTool(call) => {
                tokio::spawn(async move { run_tool(&conductor, call, &sender).await });
            }
            Effect::AskModel {
                prompt,
                schema,
                max_tokens,
            } => {
                tokio::spawn(async move {
                    ask_model(&conductor, &id, prompt, schema, max_tokens, &sender).await;
                });
            }
            Effect::RequestApproval(cleared) => {
                tokio::spawn(async move { request_approval(&conductor, &cleared, &sender).await });
            }
            Effect::WatchAction(action) => {
                tokio::spawn(async move {
                    if let Some(view) = action_view(&conductor, &action).await {
                        let _ = sender.send(Input::Action(note(&view)));
                    }
                });
            }
            Effect::Execute {
                action,
                class,
                target,
            } => {
                tokio::spawn(
                    async move { execute(&conductor, &action, class, &target, &sender).await },
                );
            }
            Effect::Revoke { action, reason } => {
                tokio::spawn(async move { revoke(&conductor, &action, &reason, &sender).await });
            }
            Effect::Verify { class, target } => {
                tokio::spawn(
                    async move { probe::watch(&conductor, class, &target, &sender).await },
                );
            }
        }
    }
    if tools {
        failpoint::hit("tools_running");
    }
}

async fn run_tool(conductor: &Conductor, call: Call, sender: &UnboundedSender<Input>) {
    let args = if call.query.is_empty() {
        json!({})
    } else {
        json!({ "query": call.query })
    };
    let answer = conductor
        .shared
        .parts
        .scheduler
        .run_tool(ToolCall {
            tool: call.tool.clone(),
            source: call.source.clone(),
            args,
            window: call.window,
            deadline: TOOL_DEADLINE,
        })
        .await;
    let reply = match answer {
        ToolAnswer::Answered { raw, partial } => ToolReply::Raw { raw, partial },
        ToolAnswer::Failed { code, detail } => {
            tracing::warn!(
                tool = call.tool,
                source = call.source,
                code,
                detail,
                "a tool failed"
            );
            ToolReply::Failed {
                code: code.to_owned(),
            }
        }
    };
    let _ = sender.send(Input::Tool { id: call.id, reply });
}

/// Why no model can be asked; empty when one can.
pub(super) fn model_unavailable(conductor: &Conductor) -> &'static str {
    match conductor.shared.parts.engine.as_ref().map(|e| e.state()) {
        None => "no model is configured",
        Some(EngineState::Ready | EngineState::Loading | EngineState::Restarting) => "",
        Some(EngineState::Degraded) => "the engine crashed too often",
        Some(EngineState::Unavailable { code }) => code.as_str(),
        Some(EngineState::Stopped) => "the engine is stopped",
    }
}

async fn ask_model(
    conductor: &Conductor,
    id: &IncidentId,
    prompt: Prompt,
    schema: Value,
    max_tokens: u32,
    sender: &UnboundedSender<Input>,
) {
    failpoint::hit("model_asked");
    let Some(engine) = conductor.shared.parts.engine.clone() else {
        let _ = sender.send(Input::Model(Err("no model is configured".to_owned())));
        return;
    };
    let deadline = u64::try_from(
        conductor
            .shared
            .parts
            .config
            .investigation
            .model_deadline_ms,
    )
    .unwrap_or(0);
    let request = CompletionRequest {
        schema,
        max_tokens,
        deadline: Duration::from_millis(deadline),
        session: id.to_string(),
    };
    let begin = clock::now();
    let done = tokio::task::spawn_blocking(move || engine.complete(&prompt, &request)).await;
    let reply = match done {
        Ok(Ok(completion)) => {
            let (tokens_in, tokens_out) = (completion.usage.prompt, completion.usage.completion);
            telemetry::count(names::TOKENS_IN, &["text"], u64::from(tokens_in));
            telemetry::count(names::TOKENS_OUT, &["text"], u64::from(tokens_out));
            telemetry::count(names::DRAFTS, &["answered"], 1);
            Ok(ModelReply {
                text: completion.text,
                name: completion.model,
                tokens_in,
                tokens_out,
                ms: clock::now().since(begin),
            })
        }
        Ok(Err(e)) => {
            tracing::warn!(incident.id = %id, code = e.code.as_str(), detail = e.detail, "the model step failed");
            telemetry::count(names::DRAFTS, &["failed"], 1);
            Err(e.code.as_str().to_owned())
        }
        Err(e) => Err(format!("the step was cut off: {e}")),
    };
    let _ = sender.send(Input::Model(reply));
}

async fn request_approval(
    conductor: &Conductor,
    cleared: &Cleared,
    sender: &UnboundedSender<Input>,
) {
    let parts = &conductor.shared.parts;
    let document = cleared.proposal().document();
    let change = document
        .change
        .into_iter()
        .map(|(key, value)| (key, canonical(value)))
        .collect();
    let request = ProposeRequest {
        action: document.action.to_owned(),
        target: document.target,
        change,
        intent: format!("{} for {}", document.action, cleared.proposal().incident()),
        initiator: None,
    };
    loop {
        match parts.guard.propose(&parts.agent, request.clone()).await {
            Ok(reply) => {
                failpoint::hit("after_propose");
                parts.bus.publish("approval", reply.id.clone());
                if let Some(view) = action_view(conductor, &reply.id).await {
                    let _ = sender.send(Input::Action(note(&view)));
                }
                return;
            }
            Err(problem) if problem.code.status() == 503 => tokio::time::sleep(RETRY).await,
            Err(problem) => {
                tracing::warn!(
                    code = problem.code.as_str(),
                    detail = problem.detail,
                    "the guard refused a proposal"
                );
                let _ = sender.send(Input::ProposalRefused(problem.code.as_str().to_owned()));
                return;
            }
        }
    }
}

/// A parameter as the guard signs it.
fn canonical(value: ParamValue) -> policies::canon::Value {
    match value {
        ParamValue::Int(n) => policies::canon::Value::Int(n),
        ParamValue::Bool(b) => policies::canon::Value::Bool(b),
        ParamValue::Text(t) => policies::canon::Value::Text(t),
    }
}

/// The guard's record of an action; asked again while the guard does not answer.
pub(super) async fn action_view(conductor: &Conductor, id: &str) -> Option<ActionView> {
    loop {
        match conductor.shared.parts.guard.action(id).await {
            Ok(view) => return view,
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

/// All actions of the guard; asked again while it does not answer, because interlocks that do not
/// know what was done lately must not clear anything.
pub(super) async fn all_actions(conductor: &Conductor) -> Vec<ActionView> {
    loop {
        match conductor.shared.parts.guard.actions(None).await {
            Ok(actions) => return actions,
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}

/// The part of the guard's record that an investigation keeps.
pub(super) fn note(view: &ActionView) -> ActionNote {
    ActionNote {
        id: view.id.clone(),
        state: view.state.clone(),
        decided_by: view.decided_by().into_iter().collect(),
        jti: view.jti.clone(),
        code: view.outcome_code().map(str::to_owned),
    }
}

async fn execute(
    conductor: &Conductor,
    action: &str,
    class: RemediationClass,
    target: &str,
    sender: &UnboundedSender<Input>,
) {
    let parts = &conductor.shared.parts;
    let executor = parts
        .config
        .executors
        .iter()
        .find(|(_, e)| e.action == class && e.target == target)
        .map(|(name, _)| name.clone());
    let job = match (executor, action_view(conductor, action).await) {
        (Some(executor), Some(view)) => {
            let outcome = parts
                .scheduler
                .remediate(&parts.guard, &view, &executor)
                .await;
            failpoint::hit("job_ended");
            JobNote {
                outcome: outcome.outcome,
                code: outcome.code,
            }
        }
        (None, _) => JobNote {
            outcome: "failed".to_owned(),
            code: "no_executor".to_owned(),
        },
        (_, None) => JobNote {
            outcome: "failed".to_owned(),
            code: "no_action".to_owned(),
        },
    };
    if let Some(view) = action_view(conductor, action).await {
        let _ = sender.send(Input::Action(note(&view)));
    }
    let _ = sender.send(Input::Job(job));
}

async fn revoke(
    conductor: &Conductor,
    action: &str,
    reason: &str,
    sender: &UnboundedSender<Input>,
) {
    let parts = &conductor.shared.parts;
    for _ in 0..5 {
        match parts
            .guard
            .revoke_by_agent(&parts.agent, action, reason)
            .await
        {
            Ok(_) => break,
            Err(problem) if problem.code.status() == 503 => tokio::time::sleep(RETRY).await,
            Err(problem) => {
                tracing::warn!(code = problem.code.as_str(), "the guard refused to revoke");
                break;
            }
        }
    }
    if let Some(view) = action_view(conductor, action).await {
        let _ = sender.send(Input::Action(note(&view)));
    }
}

/// After a restart in the middle of an execution: what the guard knows decides.
pub(super) async fn recover(
    conductor: &Conductor,
    machine: &Machine,
    sender: &UnboundedSender<Input>,
) {
    let Some(action) = &machine.record().action else {
        return;
    };
    if let Some(view) = action_view(conductor, &action.id).await
        && view.state == "issued"
    {
        let _ = sender.send(Input::WorkerLost);
    }
}

/// Reads the present value of every configured setting, so that a proposal can name it.
pub(super) async fn look_up(conductor: &Conductor, facts: &[ExecutorFact]) -> Vec<ExecutorFact> {
    let mut out = facts.to_vec();
    for fact in out.iter_mut().filter(|f| f.key.is_some()) {
        if let Ok(preview) = conductor
            .shared
            .parts
            .scheduler
            .preview(&fact.name, None)
            .await
        {
            fact.current = preview.now.as_i64();
        }
    }
    out
}

/// Tells each incident when the guard's record of its action changes.
pub(super) async fn follow_guard(conductor: Conductor) {
    let mut changes = conductor.shared.parts.guard.subscribe();
    loop {
        let changed = match changes.recv().await {
            Ok(changed) => changed,
            Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => continue,
            Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
        };
        conductor
            .shared
            .parts
            .bus
            .publish("action", changed.id.clone());
        let Some(view) = action_view(&conductor, &changed.id).await else {
            continue;
        };
        let incident = view
            .change
            .get("incident")
            .and_then(Value::as_str)
            .and_then(|i| i.parse().ok());
        if let Some(incident) = incident {
            conductor.tell(&incident, Input::Action(note(&view)));
        }
    }
}

/// Hands the waiting leaves to the guard, in order; while it refuses, they wait.
pub(super) async fn pump_leaves(conductor: Conductor) {
    let parts = &conductor.shared.parts;
    loop {
        let rows = tokio::task::block_in_place(|| parts.db.outbox(64)).unwrap_or_default();
        for row in &rows {
            if parts.guard.append(&row.kind, &row.body).await.is_err() {
                break;
            }
            let _ = tokio::task::block_in_place(|| parts.db.outbox_done(row.seq));
        }
        if let Ok(health) = parts.guard.health().await {
            #[allow(
                clippy::cast_precision_loss,
                reason = "a log of 2^52 leaves is out of reach"
            )]
            telemetry::gauge(names::AUDIT_ENTRIES, &[], health.size as f64);
        }
        let pause = if rows.is_empty() { 500 } else { 10 };
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
}

/// When the window of a probe begins.
pub(super) fn window_start(now: Millis, window_ms: i64) -> Millis {
    now.plus(-window_ms)
}
