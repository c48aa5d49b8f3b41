//! From the alert to the facts: which tools run, and what becomes of their answers.

use sha2::{Digest, Sha256};

use super::{Call, CallState, Effect, Env, Machine, Phase, Step, ToolReply};
use crate::admit;
use crate::claim::EvidenceMeta;
use crate::diagnosis::{Case, ParamValue, ToolFailure, diagnose};
use crate::model::{Alert, EvidenceId, Millis, Window};

/// Most tool calls of one investigation (inference.md 7.9).
const MAX_CALLS: usize = 10;

impl Machine {
    pub(super) fn woke(&mut self, env: &Env<'_>, step: &mut Step) {
        if self.record.phase != Phase::Settling {
            return;
        }
        let window = self.window(env);
        let query = self.record.alerts.first().map_or_else(String::new, |a| {
            format!("{} {} {}", a.name, a.service, a.summary)
        });
        for source in env.sources.iter().take(MAX_CALLS) {
            self.call(&source.tool, &source.name, &query, window, false);
        }
        self.enter(Phase::Collecting, env.now);
        step.effects
            .extend(self.record.calls.iter().cloned().map(Effect::RunTool));
        if self.record.calls.is_empty() {
            self.all_answered(env, step);
        }
    }

    /// From some time before the first alert until now.
    fn window(&self, env: &Env<'_>) -> Window {
        let first = self
            .record
            .alerts
            .iter()
            .map(|a| a.starts_at)
            .min()
            .unwrap_or(env.now);
        Window {
            from: Millis(first.0.min(env.now.0)).plus(-env.waits.lookback_ms),
            to: env.now.plus(1),
        }
    }

    fn call(
        &mut self,
        tool: &str,
        source: &str,
        query: &str,
        window: Window,
        second_look: bool,
    ) -> Call {
        let number = u32::try_from(self.record.calls.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        let call = Call {
            id: EvidenceId(number),
            tool: tool.to_owned(),
            source: source.to_owned(),
            query: if tool == "runbooks" {
                query.to_owned()
            } else {
                String::new()
            },
            window,
            state: CallState::Pending,
            second_look,
        };
        self.record.calls.push(call.clone());
        call
    }

    /// Fresh facts for the second look: the deploys, and every source that the proposal cites.
    pub(super) fn look_again(&mut self, env: &Env<'_>, step: &mut Step) {
        self.enter(Phase::Rechecking, env.now);
        let window = self.window(env);
        let cited: Vec<EvidenceId> = self
            .record
            .proposal
            .iter()
            .flat_map(|p| p.citations.iter().map(|c| c.evidence))
            .collect();
        let again: Vec<Call> = self
            .record
            .calls
            .iter()
            .filter(|c| !c.second_look && (c.tool == "deploys" || cited.contains(&c.id)))
            .cloned()
            .collect();
        for call in again {
            let call = self.call(&call.tool, &call.source, &call.query, window, true);
            step.effects.push(Effect::RunTool(call));
        }
        if step.effects.is_empty() {
            self.all_answered(env, step);
        }
    }

    pub(super) fn alerts_changed(&mut self, alerts: Vec<Alert>, env: &Env<'_>) {
        if alerts == self.record.alerts {
            return;
        }
        let firing = alerts
            .iter()
            .filter(|a| a.status == crate::model::AlertStatus::Firing)
            .count();
        self.note(
            env.now,
            "alert",
            format!("{} alerts, {firing} of them firing", alerts.len()),
        );
        self.record.alerts = alerts;
    }

    pub(super) fn tool_answered(
        &mut self,
        id: EvidenceId,
        reply: ToolReply,
        env: &Env<'_>,
        step: &mut Step,
    ) {
        let Some(index) = self
            .record
            .calls
            .iter()
            .position(|c| c.id == id && c.state == CallState::Pending)
        else {
            return;
        };
        let Some(call) = self.record.calls.get(index).cloned() else {
            return;
        };
        let failed = match reply {
            ToolReply::Failed { code } => Some(code),
            ToolReply::Raw { raw, partial } => {
                let meta = EvidenceMeta {
                    tool: call.tool.clone(),
                    args: if call.query.is_empty() {
                        "{}".to_owned()
                    } else {
                        serde_json::json!({"query": call.query}).to_string()
                    },
                    source: call.source.clone(),
                    window: call.window,
                    taken_at: env.now,
                    partial,
                };
                match admit::evidence(id, meta, raw, env.key) {
                    Ok(admitted) => {
                        step.events.extend(admitted.events);
                        self.took(&call, admitted.evidence, env, step);
                        None
                    }
                    Err(refused) => Some(refused.code.to_owned()),
                }
            }
        };
        let state = match failed {
            None => CallState::Answered,
            Some(code) => {
                self.note(
                    env.now,
                    "tool",
                    format!("{id} {} on {} failed: {code}", call.tool, call.source),
                );
                self.record.failed_tools.push(ToolFailure {
                    tool: call.tool,
                    source: call.source,
                    code: code.clone(),
                });
                CallState::Failed(code)
            }
        };
        if let Some(call) = self.record.calls.get_mut(index) {
            call.state = state;
        }
        if self
            .record
            .calls
            .iter()
            .all(|c| c.state != CallState::Pending)
        {
            self.all_answered(env, step);
        }
    }

    fn took(
        &mut self,
        call: &Call,
        evidence: crate::claim::Evidence,
        env: &Env<'_>,
        step: &mut Step,
    ) {
        let stats = evidence.stats();
        let partial = evidence.meta().partial.as_ref().map_or("", |_| ", partial");
        self.note(
            env.now,
            "tool",
            format!(
                "{} {} on {}: {} lines{partial}",
                call.id,
                call.tool,
                call.source,
                evidence.lines().len()
            ),
        );
        let stored = evidence.to_stored();
        let json = serde_json::to_vec(&stored).unwrap_or_default();
        let digest = data_encoding::BASE64URL_NOPAD.encode(&Sha256::digest(&json));
        self.leaf(
            step,
            "incident.evidence",
            [
                ("evidence", ParamValue::Text(call.id.to_string())),
                ("tool", ParamValue::Text(call.tool.clone())),
                ("sha256", ParamValue::Text(digest)),
                (
                    "redactions",
                    ParamValue::Int(i64::from(stats.redactions.values().copied().sum::<u32>())),
                ),
            ],
        );
        step.evidence.push(stored);
        self.evidence.push(evidence);
        self.evidence.sort_by_key(crate::claim::Evidence::id);
    }

    pub(super) fn all_answered(&mut self, env: &Env<'_>, step: &mut Step) {
        if self.record.phase == Phase::Rechecking {
            self.judge_again(env, step);
            return;
        }
        let diagnosis = diagnose(&self.case(env, &self.evidence));
        let verdict = &diagnosis.verdict;
        let text = format!(
            "rules: {}, confidence {}",
            verdict.cause_class,
            verdict.confidence.as_str()
        );
        self.leaf(
            step,
            "incident.diagnosed",
            [
                (
                    "cause",
                    ParamValue::Text(verdict.cause_class.as_str().to_owned()),
                ),
                ("rules", ParamValue::Int(i64::from(diagnosis.rules))),
                (
                    "confidence",
                    ParamValue::Text(verdict.confidence.as_str().to_owned()),
                ),
            ],
        );
        self.record.cause_class = Some(verdict.cause_class);
        self.record.diagnosis = Some(diagnosis);
        self.note(env.now, "diagnosis", text);
        self.enter(Phase::Explaining, env.now);
        self.ask_model(env, step);
    }

    /// What the diagnosis and the interlocks look at.
    pub(super) fn case<'a>(
        &'a self,
        env: &'a Env<'_>,
        evidence: &'a [crate::claim::Evidence],
    ) -> Case<'a> {
        Case {
            now: env.now,
            alerts: &self.record.alerts,
            evidence,
            inventory: env.inventory,
            capabilities: env.executors,
            failed_tools: &self.record.failed_tools,
        }
    }
}
