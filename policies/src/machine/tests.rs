//! Whole investigations in virtual time.

use proptest::prelude::*;

use super::{
    ActionNote, CallState, Effect, Env, Event, Input, JobNote, Machine, ModelReply, Outcome, Phase,
    SourceFact, Step, ToolReply, VerificationNote, Waits,
};
use crate::claim::{RawOutput, RedactKey, StoredEvidence};
use crate::diagnosis::scenarios::{Site, dependency_down};
use crate::model::{CauseClass, IncidentId, Millis, Payload, RemediationClass};

struct Lab {
    site: Site,
    key: RedactKey,
    sources: Vec<SourceFact>,
    inventory: Vec<String>,
    model_unavailable: &'static str,
}

impl Lab {
    fn new(model_unavailable: &'static str) -> Self {
        let site = dependency_down();
        let sources = site
            .answers
            .iter()
            .map(|(tool, _)| SourceFact {
                name: (*tool).to_owned(),
                tool: (*tool).to_owned(),
            })
            .collect();
        Self {
            site,
            key: RedactKey::from_bytes([5; 32]),
            sources,
            inventory: ["depot", "ledger", "till"].map(str::to_owned).to_vec(),
            model_unavailable,
        }
    }

    fn env(&self) -> Env<'_> {
        Env {
            now: self.site.now,
            key: &self.key,
            inventory: &self.inventory,
            executors: &self.site.executors,
            sources: &self.sources,
            recent: &[],
            system_prompt: "Judge.",
            question: "Choose.",
            model_unavailable: self.model_unavailable,
            waits: Waits {
                settle_ms: 0,
                lookback_ms: 1_800_000,
            },
        }
    }

    fn start(&self) -> (Machine, Step) {
        let id = IncidentId::from_random([3; 10]);
        Machine::start(
            id,
            "default",
            "alert",
            self.site.alerts.clone(),
            &self.env(),
        )
    }

    /// The input that a perfect world gives for an effect; `None` where a person has to act.
    fn answer(&self, effect: &Effect) -> Option<Input> {
        match effect {
            Effect::Wake(_) => Some(Input::Woke),
            Effect::RunTool(call) => {
                let payload: &Payload = self
                    .site
                    .answers
                    .iter()
                    .find(|(tool, _)| *tool == call.tool)
                    .map(|(_, p)| p)?;
                let raw = RawOutput::new(serde_json::to_vec(payload).unwrap());
                Some(Input::Tool {
                    id: call.id,
                    reply: ToolReply::Raw { raw, partial: None },
                })
            }
            Effect::RequestApproval(_) => Some(Input::Action(action("pending"))),
            Effect::Execute { .. } => Some(Input::Job(JobNote {
                outcome: "succeeded".to_owned(),
                code: String::new(),
            })),
            Effect::Verify { .. } => Some(Input::Probe(VerificationNote {
                recovered: Some(true),
                metric: "failures".to_owned(),
                before: Some(0.5),
                after: Some(0.0),
            })),
            Effect::Revoke { .. } => Some(Input::Action(action("revoked"))),
            Effect::AskModel { .. } | Effect::WatchAction(_) => None,
        }
    }

    /// Answers every effect until only a person can go on. Gives back all effects, by kind.
    fn run(
        &self,
        machine: &mut Machine,
        mut step: Step,
        kept: &mut Vec<StoredEvidence>,
    ) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            kept.append(&mut step.evidence);
            let mut next = Vec::new();
            for effect in step.effects.drain(..) {
                seen.push(
                    format!("{effect:?}")
                        .split(['(', ' '])
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                );
                next.extend(self.answer(&effect));
            }
            if next.is_empty() {
                return seen;
            }
            step = Step::default();
            for input in next {
                let mut one = machine.handle(input, &self.env());
                step.effects.append(&mut one.effects);
                step.evidence.append(&mut one.evidence);
            }
        }
    }
}

fn action(state: &str) -> ActionNote {
    ActionNote {
        id: "act_1".to_owned(),
        state: state.to_owned(),
        decided_by: Vec::new(),
        jti: None,
        code: None,
    }
}

const NO_MODEL: &str = "no model is configured";

/// An investigation that waits for a person.
fn waiting(lab: &Lab) -> (Machine, Vec<StoredEvidence>) {
    let (mut machine, step) = lab.start();
    let mut kept = Vec::new();
    lab.run(&mut machine, step, &mut kept);
    assert_eq!(
        machine.record().phase,
        Phase::AwaitingApproval,
        "{:#?}",
        machine.record().timeline
    );
    (machine, kept)
}

#[test]
fn an_alert_becomes_a_proposal_an_approval_an_action_and_a_measured_recovery() {
    let lab = Lab::new(NO_MODEL);
    let (mut machine, mut kept) = waiting(&lab);
    let proposal = machine.record().proposal.clone().unwrap();
    assert_eq!(
        (proposal.class, proposal.target.as_str()),
        (RemediationClass::Restart, "ledger")
    );
    let step = machine.handle(Input::Action(action("approved")), &lab.env());
    let seen = lab.run(&mut machine, step, &mut kept);
    assert!(
        seen.contains(&"Execute".to_owned()) && seen.contains(&"Verify".to_owned()),
        "{seen:?}"
    );
    assert_eq!(machine.record().outcome, Some(Outcome::Recovered));
    assert_eq!(machine.cause_class(), CauseClass::ResourceExhaustion);
    assert_eq!(
        machine.record().clearances.len(),
        2,
        "the interlocks looked twice"
    );
    let (markdown, json) = super::postmortem(machine.record(), machine.evidence(), lab.site.now);
    assert!(markdown.contains("Outcome: **recovered**"), "{markdown}");
    assert_eq!(
        json.pointer("/model/unavailable").and_then(|v| v.as_str()),
        Some(NO_MODEL)
    );
}

#[test]
fn the_timeline_credits_a_decision_to_its_person_and_nothing_else() {
    let lab = Lab::new(NO_MODEL);
    let (mut machine, _) = waiting(&lab);
    let by_ann = |state: &str| {
        let decided_by = vec!["ann".to_owned()];
        Input::Action(ActionNote {
            decided_by,
            ..action(state)
        })
    };
    machine.handle(by_ann("approved"), &lab.env());
    machine.handle(by_ann("spent"), &lab.env());
    let texts: Vec<&str> = machine
        .record()
        .timeline
        .iter()
        .map(|e| e.text.as_str())
        .filter(|t| t.starts_with("action "))
        .collect();
    assert_eq!(
        texts,
        [
            "action act_1 is pending",
            "action act_1 is approved by ann",
            "action act_1 is spent"
        ]
    );
}

#[test]
fn a_denial_ends_the_incident_and_nothing_is_executed() {
    let lab = Lab::new(NO_MODEL);
    let (mut machine, mut kept) = waiting(&lab);
    let step = machine.handle(Input::Action(action("denied")), &lab.env());
    assert!(lab.run(&mut machine, step, &mut kept).is_empty());
    assert_eq!(machine.record().outcome, Some(Outcome::Denied));
    let step = machine.handle(Input::Action(action("approved")), &lab.env());
    assert!(
        step.effects.is_empty(),
        "a closed incident takes no approval"
    );
}

#[test]
fn an_action_in_doubt_stays_open_until_a_person_reconciles_and_is_never_run_again() {
    let lab = Lab::new(NO_MODEL);
    let (mut machine, mut kept) = waiting(&lab);
    let step = machine.handle(Input::Action(action("in_doubt")), &lab.env());
    assert!(lab.run(&mut machine, step, &mut kept).is_empty());
    assert_eq!(machine.record().phase, Phase::InDoubt);
    let step = machine.handle(Input::Action(action("reconciled_failed")), &lab.env());
    assert!(step.effects.is_empty());
    assert_eq!(machine.record().outcome, Some(Outcome::Reconciled));
}

#[test]
fn a_worker_that_was_lost_before_it_spent_leads_to_a_new_proposal_and_a_new_approval() {
    let lab = Lab::new(NO_MODEL);
    let (mut machine, _) = waiting(&lab);
    let mut step = machine.handle(Input::Action(action("approved")), &lab.env());
    while machine.record().phase == Phase::Rechecking {
        let inputs: Vec<Input> = step.effects.iter().filter_map(|e| lab.answer(e)).collect();
        for input in inputs {
            step = machine.handle(input, &lab.env());
        }
    }
    assert_eq!(machine.record().phase, Phase::Executing);
    let step = machine.handle(Input::WorkerLost, &lab.env());
    assert!(
        matches!(step.effects.as_slice(), [Effect::Revoke { .. }]),
        "{:?}",
        step.effects
    );
    let step = machine.handle(Input::Action(action("revoked")), &lab.env());
    assert!(
        matches!(step.effects.as_slice(), [Effect::RequestApproval(_)]),
        "{:?}",
        step.effects
    );
}

/// An investigation whose approved action is being performed.
fn executing(lab: &Lab) -> Machine {
    let (mut machine, _) = waiting(lab);
    let mut step = machine.handle(Input::Action(action("approved")), &lab.env());
    while machine.record().phase == Phase::Rechecking {
        let inputs: Vec<Input> = step.effects.iter().filter_map(|e| lab.answer(e)).collect();
        for input in inputs {
            step = machine.handle(input, &lab.env());
        }
    }
    assert_eq!(machine.record().phase, Phase::Executing);
    machine
}

fn lost(outcome: &str) -> Input {
    Input::Job(JobNote {
        outcome: outcome.to_owned(),
        code: "worker_lost".to_owned(),
    })
}

/// guard 7.6
#[test]
fn a_worker_lost_after_its_spend_leaves_the_incident_in_doubt_until_a_person_reconciles() {
    let lab = Lab::new(NO_MODEL);
    let mut machine = executing(&lab);
    machine.handle(Input::Action(action("spent")), &lab.env());
    let step = machine.handle(lost("unknown"), &lab.env());
    assert_eq!(machine.record().phase, Phase::InDoubt);
    assert!(
        matches!(step.effects.as_slice(), [Effect::WatchAction(_)]),
        "{:?}",
        step.effects
    );
    machine.handle(Input::Action(action("in_doubt")), &lab.env());
    machine.handle(Input::Action(action("reconciled_failed")), &lab.env());
    assert_eq!(machine.record().outcome, Some(Outcome::Reconciled));
}

/// guard 7.6: the spend of a dead worker may still be on its way when its record is read.
#[test]
fn a_lost_worker_that_seems_not_to_have_spent_closes_nothing_until_the_guard_took_the_approval_back()
 {
    let lab = Lab::new(NO_MODEL);
    for (recorded, phase) in [
        ("spent", Phase::InDoubt),
        ("in_doubt", Phase::InDoubt),
        ("revoked", Phase::Proposing),
    ] {
        let mut machine = executing(&lab);
        machine.handle(Input::Action(action("issued")), &lab.env());
        let step = machine.handle(lost("failed"), &lab.env());
        assert!(
            matches!(step.effects.as_slice(), [Effect::Revoke { .. }]),
            "{:?}",
            step.effects
        );
        machine.handle(Input::Action(action(recorded)), &lab.env());
        assert_eq!(machine.record().phase, phase, "{recorded}");
        assert_eq!(machine.record().outcome, None, "{recorded}");
    }
}

#[test]
fn the_second_look_takes_the_approval_back_when_the_alert_is_over() {
    let lab = Lab::new(NO_MODEL);
    let (mut machine, mut kept) = waiting(&lab);
    let mut alerts = lab.site.alerts.clone();
    for alert in &mut alerts {
        alert.status = crate::model::AlertStatus::Resolved;
    }
    machine.handle(Input::Alerts(alerts), &lab.env());
    let step = machine.handle(Input::Action(action("approved")), &lab.env());
    let seen = lab.run(&mut machine, step, &mut kept);
    assert!(
        seen.contains(&"Revoke".to_owned()) && !seen.contains(&"Execute".to_owned()),
        "{seen:?}"
    );
    assert_eq!(machine.record().outcome, Some(Outcome::Revoked));
    let codes = &machine.record().clearances.last().unwrap().codes;
    assert!(codes.contains(&"IL-08".to_owned()), "{codes:?}");
}

#[test]
fn the_second_look_takes_the_approval_back_when_a_cited_source_no_longer_answers() {
    let lab = Lab::new(NO_MODEL);
    let (mut machine, mut kept) = waiting(&lab);
    let step = machine.handle(Input::Action(action("approved")), &lab.env());
    let mut last = Step::default();
    for effect in step.effects {
        if let Effect::RunTool(call) = effect {
            let code = "not_found".to_owned();
            let reply = ToolReply::Failed { code };
            last = machine.handle(Input::Tool { id: call.id, reply }, &lab.env());
        }
    }
    let seen = lab.run(&mut machine, last, &mut kept);
    assert!(seen.contains(&"Revoke".to_owned()), "{seen:?}");
    assert!(!seen.contains(&"Execute".to_owned()), "{seen:?}");
    assert_eq!(machine.record().outcome, Some(Outcome::Revoked));
}

#[test]
fn a_failed_model_step_ends_with_the_diagnosis_of_the_rules_and_says_so() {
    let lab = Lab::new("");
    for reply in [
        Err("engine_crashed".to_owned()),
        Ok(draft("{\"hypothesis\":\"H99\"}")),
    ] {
        let (mut machine, step) = lab.start();
        lab.run(&mut machine, step, &mut Vec::new());
        assert_eq!(machine.record().phase, Phase::Explaining);
        let step = machine.handle(Input::Model(reply), &lab.env());
        lab.run(&mut machine, step, &mut Vec::new());
        assert_eq!(machine.record().phase, Phase::AwaitingApproval);
        assert!(
            !machine
                .record()
                .model
                .as_ref()
                .unwrap()
                .unavailable
                .is_empty()
        );
    }
}

fn draft(text: &str) -> ModelReply {
    ModelReply {
        text: text.to_owned(),
        name: "small".to_owned(),
        tokens_in: 9,
        tokens_out: 3,
        ms: 5,
    }
}

#[test]
fn the_model_chooses_within_what_the_evidence_allows() {
    let lab = Lab::new("");
    let (mut machine, step) = lab.start();
    lab.run(&mut machine, step, &mut Vec::new());
    let allowed = machine.record().diagnosis.as_ref().unwrap().allowed.clone();
    let cited = machine
        .record()
        .hypothesis()
        .unwrap()
        .supporting
        .first()
        .unwrap()
        .evidence;
    let text = serde_json::json!({
        "hypothesis": allowed.first().unwrap(), "summary": "The ledger was killed.", "citations": [cited.to_string()],
    });
    let step = machine.handle(Input::Model(Ok(draft(&text.to_string()))), &lab.env());
    lab.run(&mut machine, step, &mut Vec::new());
    let model = machine.record().model.clone().unwrap();
    assert_eq!(
        (model.name.as_str(), model.citations.as_slice()),
        ("small", [cited].as_slice())
    );
    assert_eq!(machine.record().phase, Phase::AwaitingApproval);
}

#[test]
fn every_tool_may_fail_and_the_incident_still_ends() {
    let lab = Lab::new(NO_MODEL);
    let (mut machine, _) = lab.start();
    let step = machine.handle(Input::Woke, &lab.env());
    for effect in step.effects {
        if let Effect::RunTool(call) = effect {
            machine.handle(
                Input::Tool {
                    id: call.id,
                    reply: ToolReply::Failed {
                        code: "timeout".to_owned(),
                    },
                },
                &lab.env(),
            );
        }
    }
    assert_eq!(machine.record().outcome, Some(Outcome::Escalated));
    assert_eq!(machine.cause_class(), CauseClass::Inconclusive);
    assert!(
        machine
            .record()
            .calls
            .iter()
            .all(|c| c.state == CallState::Failed("timeout".to_owned()))
    );
}

#[test]
fn an_investigation_brought_back_at_any_step_ends_the_same_way() {
    let lab = Lab::new(NO_MODEL);
    let straight = {
        let (mut machine, mut kept) = waiting(&lab);
        let step = machine.handle(Input::Action(action("approved")), &lab.env());
        lab.run(&mut machine, step, &mut kept);
        machine
    };
    for stop_after in 0..24 {
        let (mut machine, first) = lab.start();
        let mut kept = Vec::new();
        let mut effects = first.effects;
        let mut done = 0;
        // One input at a time; at `stop_after` everything but record and evidence is lost.
        while done < stop_after && !effects.is_empty() {
            let effect = effects.remove(0);
            if let Some(input) = lab.answer(&effect) {
                let mut step = machine.handle(input, &lab.env());
                kept.append(&mut step.evidence);
                effects.append(&mut step.effects);
            }
            done += 1;
        }
        let saved = serde_json::to_string(machine.record()).unwrap();
        let id = machine.record().id.clone();
        let mut machine = Machine::rehydrate(&id, &saved, kept.clone(), &lab.key).unwrap();
        let step = machine.resume(&lab.env());
        lab.run(&mut machine, step, &mut kept);
        if machine.record().phase == Phase::AwaitingApproval {
            let step = machine.handle(Input::Action(action("approved")), &lab.env());
            lab.run(&mut machine, step, &mut kept);
        }
        assert_eq!(
            machine.record().outcome,
            straight.record().outcome,
            "stopped after {stop_after}"
        );
        assert_eq!(
            machine.record().proposal,
            straight.record().proposal,
            "stopped after {stop_after}"
        );
    }
}

#[test]
fn a_record_of_another_incident_is_not_brought_back() {
    let lab = Lab::new(NO_MODEL);
    let (machine, _) = lab.start();
    let saved = serde_json::to_string(machine.record()).unwrap();
    let other = IncidentId::from_random([9; 10]);
    assert!(Machine::rehydrate(&other, &saved, Vec::new(), &lab.key).is_err());
    assert!(Machine::rehydrate(&other, "{}", Vec::new(), &lab.key).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever comes in and in whatever order: a job is started only after the guard said
    /// `approved`, and only from a proposal that cleared the interlocks twice.
    #[test]
    fn no_path_reaches_a_job_without_an_approval(inputs in prop::collection::vec(0_u8..12, 1..40)) {
        let lab = Lab::new(NO_MODEL);
        let (mut machine, _) = waiting(&lab);
        let mut approved = false;
        for input in inputs {
            let state = ["pending", "approved", "issued", "spent", "succeeded", "failed", "denied", "expired", "in_doubt"];
            let input = match state.get(usize::from(input)) {
                Some(word) => {
                    approved |= *word == "approved";
                    Input::Action(action(word))
                }
                None if input == 9 => Input::Woke,
                None if input == 10 => Input::WorkerLost,
                None => Input::Model(Err("late".to_owned())),
            };
            let mut effects = machine.handle(input, &lab.env()).effects;
            while let Some(effect) = effects.pop() {
                if let Effect::Execute { .. } = effect {
                    prop_assert!(approved);
                    prop_assert!(machine.record().clearances.iter().filter(|c| c.cleared).count() >= 2);
                } else if let Effect::RunTool(_) = effect
                    && let Some(input) = lab.answer(&effect)
                {
                    effects.extend(machine.handle(input, &lab.env()).effects);
                }
            }
        }
    }
}

/// Time stands still in these tests.
#[test]
fn seconds_of_a_stage_are_never_negative() {
    let lab = Lab::new(NO_MODEL);
    let (machine, _) = lab.start();
    let seconds = machine.record().seconds(Millis(0));
    assert!(seconds.values().all(|s| *s >= 0.0), "{seconds:?}");
}

#[test]
fn a_decision_is_told_with_its_person_and_an_escalation_with_its_reason() {
    let lab = Lab::new(NO_MODEL);
    let (mut machine, _) = waiting(&lab);
    let told = |before: Option<Phase>, machine: &Machine| -> Vec<(Event, String)> {
        super::news(before, machine.record())
    };
    assert_eq!(
        told(Some(Phase::Proposing), &machine),
        [(
            Event::ApprovalWaiting,
            "restart of ledger waits for a person".to_owned()
        )]
    );
    assert_eq!(told(Some(Phase::AwaitingApproval), &machine), []);
    let denied = ActionNote {
        decided_by: vec!["ben".to_owned()],
        ..action("denied")
    };
    machine.handle(Input::Action(denied), &lab.env());
    assert_eq!(
        told(Some(Phase::AwaitingApproval), &machine),
        [
            (
                Event::Decided,
                "restart of ledger was denied by ben".to_owned()
            ),
            (
                Event::Outcome,
                "denied: cause resource_exhaustion (ledger), restart of ledger".to_owned()
            )
        ]
    );

    // Without an executor nothing can be proposed: it stays with the people, with an advice.
    let mut lab = Lab::new(NO_MODEL);
    lab.site.executors.clear();
    let (mut machine, step) = lab.start();
    lab.run(&mut machine, step, &mut Vec::new());
    assert_eq!(machine.record().outcome, Some(Outcome::Escalated));
    let (event, line) = told(Some(Phase::Explaining), &machine).remove(0);
    assert_eq!(event, Event::Escalated);
    assert!(
        line.starts_with("escalated: cause resource_exhaustion (ledger)"),
        "{line}"
    );
}
