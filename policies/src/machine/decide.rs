//! From the cause to the end: proposal, interlocks, approval, job and probe.

use super::{
    ActionNote, ClearanceNote, Effect, Env, JobNote, Machine, Outcome, Phase, ProposalNote, Step,
    VerificationNote,
};
use crate::claim::{Evidence, Proposal};
use crate::diagnosis::ParamValue;
use crate::event::{GuardrailEvent, Layer};
use crate::interlocks::{Clearance, Facts, judge};
use crate::model::{CauseClass, RemediationClass};

/// Code of a job whose worker is gone without an answer.
const WORKER_LOST: &str = "worker_lost";

impl Machine {
    /// Makes the proposal, has it judged, and asks for an approval or ends.
    pub(super) fn propose(&mut self, env: &Env<'_>, step: &mut Step) {
        if self.record.phase != Phase::Proposing {
            self.enter(Phase::Proposing, env.now);
        }
        let Some((proposal, clearance)) = self.judge(env, &self.evidence) else {
            self.close(Outcome::Escalated, env, step);
            return;
        };
        self.record.proposal = Some(note(&proposal));
        match clearance {
            Clearance::Cleared(cleared) => {
                self.record.clearances.push(ClearanceNote {
                    at: env.now,
                    cleared: true,
                    codes: vec![],
                    reasons: vec![],
                });
                self.note(
                    env.now,
                    "policy",
                    format!(
                        "{} of {} cleared the interlocks",
                        proposal.class(),
                        proposal.target().name
                    ),
                );
                step.effects
                    .push(Effect::RequestApproval(Box::new(cleared)));
            }
            Clearance::Escalate(escalation) => {
                let healthy = proposal.class() == RemediationClass::NoAction;
                if proposal.class().is_mutating() {
                    self.refused_by_interlocks(&escalation.codes, escalation.reasons, env, step);
                }
                let what = if healthy {
                    "nothing is proposed"
                } else {
                    "handed over to the people"
                };
                self.note(env.now, "policy", what.to_owned());
                self.close(
                    if healthy {
                        Outcome::NoAction
                    } else {
                        Outcome::Escalated
                    },
                    env,
                    step,
                );
            }
        }
    }

    fn judge(&self, env: &Env<'_>, evidence: &[Evidence]) -> Option<(Proposal, Clearance)> {
        let rca = self.rca(env)?;
        let proposal = rca.proposal(&self.record.id, &self.record.tenant);
        let case = self.case(env, evidence);
        let facts = Facts::new(&case, rca.diagnosis(), env.recent);
        let clearance = judge(&proposal, &facts, env.now);
        Some((proposal, clearance))
    }

    pub(super) fn refused_by_interlocks(
        &mut self,
        codes: &[String],
        reasons: Vec<String>,
        env: &Env<'_>,
        step: &mut Step,
    ) {
        let mut refused = |layer, code: &str| {
            step.events.push(GuardrailEvent::once(layer, code));
        };
        for code in codes {
            refused(Layer::Interlock, code);
            // The two that stand against telemetry that lies count as that too.
            match code.as_str() {
                "IL-04" => refused(Layer::Poison, "poison.taint"),
                "IL-05" => refused(Layer::Poison, "poison.uncorroborated"),
                _ => {}
            }
        }
        self.note(
            env.now,
            "policy",
            format!("interlocks refused: {}", codes.join(", ")),
        );
        self.record.clearances.push(ClearanceNote {
            at: env.now,
            cleared: false,
            codes: codes.to_vec(),
            reasons,
        });
    }

    /// The second look, after the approval: the same proposal against fresh facts. A violation
    /// takes the approval back; it never changes the proposal.
    pub(super) fn judge_again(&mut self, env: &Env<'_>, step: &mut Step) {
        let Some(action) = self.record.action.clone() else {
            return;
        };
        let evidence = self.refreshed();
        match self.judge(env, &evidence) {
            Some((proposal, Clearance::Cleared(_))) if self.same(&proposal) => {
                self.record.clearances.push(ClearanceNote {
                    at: env.now,
                    cleared: true,
                    codes: vec![],
                    reasons: vec![],
                });
                self.enter(Phase::Executing, env.now);
                self.note(
                    env.now,
                    "policy",
                    "the interlocks cleared it again".to_owned(),
                );
                step.effects.push(Effect::Execute {
                    action: action.id,
                    class: proposal.class(),
                    target: proposal.target().name.clone(),
                });
            }
            Some((_, Clearance::Escalate(escalation))) => {
                self.refused_by_interlocks(&escalation.codes, escalation.reasons, env, step);
                step.effects.push(Effect::Revoke {
                    action: action.id,
                    reason: "interlock".to_owned(),
                });
            }
            Some((_, Clearance::Cleared(_))) | None => {
                self.note(
                    env.now,
                    "policy",
                    "the proposal is no longer what was approved".to_owned(),
                );
                step.effects.push(Effect::Revoke {
                    action: action.id,
                    reason: "changed".to_owned(),
                });
            }
        }
    }

    /// The evidence as the second look sees it: a fresh answer of a source stands under the number
    /// of the first one, so that the citations of the proposal are judged on fresh facts. A source
    /// that was asked again and did not answer is gone: what it said before proves nothing now.
    fn refreshed(&self) -> Vec<Evidence> {
        let second = |e: &&Evidence| {
            self.record
                .calls
                .iter()
                .any(|c| c.second_look && c.id == e.id())
        };
        self.evidence
            .iter()
            .filter(|e| !second(e))
            .filter_map(|first| {
                let (tool, source) = (&first.meta().tool, &first.meta().source);
                let same = |e: &&Evidence| e.meta().tool == *tool && e.meta().source == *source;
                let asked =
                    |c: &super::Call| c.second_look && c.tool == *tool && c.source == *source;
                match self.evidence.iter().filter(second).find(same) {
                    Some(fresh) => Some(fresh.standing_for(first.id())),
                    None if self.record.calls.iter().any(asked) => None,
                    None => Some(first.clone()),
                }
            })
            .collect()
    }

    fn same(&self, proposal: &Proposal) -> bool {
        self.record.proposal.as_ref() == Some(&note(proposal))
    }

    pub(super) fn proposal_refused(&mut self, code: &str, env: &Env<'_>, step: &mut Step) {
        if self.record.phase != Phase::Proposing {
            return;
        }
        self.note(
            env.now,
            "policy",
            format!("the guard refused the proposal: {code}"),
        );
        self.close(Outcome::Escalated, env, step);
    }

    /// The guard says how the action stands. The decision is recorded there before this is called.
    pub(super) fn action_changed(&mut self, action: ActionNote, env: &Env<'_>, step: &mut Step) {
        let phase = self.record.phase;
        if matches!(
            phase,
            Phase::Closed | Phase::Settling | Phase::Collecting | Phase::Explaining
        ) || self.record.lost_actions.contains(&action.id)
        {
            return;
        }
        let changed = self.record.action.as_ref() != Some(&action);
        if changed {
            self.note_action(&action, env);
        }
        self.record.action = Some(action.clone());
        let ended = |outcome: &str, code: String| JobNote {
            outcome: outcome.to_owned(),
            code,
        };
        match action.state.as_str() {
            "pending" => {
                if phase == Phase::Proposing {
                    self.enter(Phase::AwaitingApproval, env.now);
                }
                if phase != Phase::AwaitingApproval || changed {
                    step.effects.push(Effect::WatchAction(action.id));
                }
            }
            "approved" if matches!(phase, Phase::Proposing | Phase::AwaitingApproval) => {
                self.look_again(env, step)
            }
            "approved" if phase == Phase::Executing => self.execute_again(&action.id, step),
            "denied" => self.close(Outcome::Denied, env, step),
            "expired" | "lapsed" | "cancelled" | "superseded" => {
                self.close(Outcome::Expired, env, step)
            }
            "revoked" | "epoch_void" => self.revoked(env, step),
            "in_doubt" => self.in_doubt(env),
            "succeeded" if matches!(phase, Phase::Executing | Phase::InDoubt) => {
                let code = action.code.unwrap_or_default();
                self.job_ended(ended("succeeded", code), env, step);
            }
            "spent" if phase == Phase::Executing && self.worker_is_lost() => {
                self.in_doubt(env);
                step.effects.push(Effect::WatchAction(action.id));
            }
            "failed" if matches!(phase, Phase::Executing | Phase::InDoubt) => {
                let code = action.code.unwrap_or_default();
                self.job_ended(ended("failed", code), env, step);
            }
            "reconciled_succeeded" => {
                self.record.job = Some(ended("succeeded", "reconciled".to_owned()));
                self.enter(Phase::Verifying, env.now);
                self.verify(step);
            }
            "reconciled_failed" => {
                self.record.job = Some(ended("failed", "reconciled".to_owned()));
                self.close(Outcome::Reconciled, env, step);
            }
            _ => {}
        }
    }

    fn note_action(&mut self, action: &ActionNote, env: &Env<'_>) {
        // Who decided did not do what follows from it: the worker spends and ends the action.
        let decision = matches!(action.state.as_str(), "approved" | "denied");
        let by = if decision && !action.decided_by.is_empty() {
            format!(" by {}", action.decided_by.join(", "))
        } else {
            String::new()
        };
        let text = format!("action {} is {}{by}", action.id, action.state);
        self.note(env.now, "approval", text);
    }

    /// The worker that collected the capability is gone and nothing ran, since nobody else holds its
    /// key. The approval is taken back and the same action is proposed anew.
    pub(super) fn worker_lost(&mut self, env: &Env<'_>, step: &mut Step) {
        if self.record.phase != Phase::Executing {
            return;
        }
        let Some(action) = self.record.action.clone() else {
            return;
        };
        self.note(
            env.now,
            "action",
            "the worker was lost before it spent its capability".to_owned(),
        );
        step.effects.push(Effect::Revoke {
            action: action.id,
            reason: WORKER_LOST.to_owned(),
        });
    }

    fn worker_is_lost(&self) -> bool {
        self.record
            .job
            .as_ref()
            .is_some_and(|job| job.code == WORKER_LOST)
    }

    fn execute_again(&self, action: &str, step: &mut Step) {
        if let Some(proposal) = &self.record.proposal {
            step.effects.push(Effect::Execute {
                action: action.to_owned(),
                class: proposal.class,
                target: proposal.target.clone(),
            });
        }
    }

    fn revoked(&mut self, env: &Env<'_>, step: &mut Step) {
        let interlock = self.record.clearances.last().is_some_and(|c| !c.cleared);
        if self.record.phase == Phase::Executing && !interlock {
            let lost = self.record.action.take();
            self.record.job = None;
            self.record
                .lost_actions
                .extend(lost.map(|action| action.id));
            self.propose(env, step);
        } else {
            self.close(Outcome::Revoked, env, step);
        }
    }

    fn in_doubt(&mut self, env: &Env<'_>) {
        if self.record.phase == Phase::InDoubt {
            return;
        }
        self.enter(Phase::InDoubt, env.now);
        self.note(
                env.now,
                "action",
                "the action may or may not have happened; it is never run again; a person has to reconcile".to_owned(),
            );
    }

    pub(super) fn job_ended(&mut self, job: JobNote, env: &Env<'_>, step: &mut Step) {
        if !matches!(self.record.phase, Phase::Executing | Phase::InDoubt) {
            return;
        }
        let lost = job.code == WORKER_LOST;
        self.note(
            env.now,
            "action",
            format!("job {} {}", job.outcome, job.code)
                .trim_end()
                .to_owned(),
        );
        let outcome = job.outcome.clone();
        self.record.job = Some(job);
        match outcome.as_str() {
            "succeeded" => {
                self.enter(Phase::Verifying, env.now);
                self.verify(step);
            }
            // The guard takes the approval back only if it was not spent, whatever was seen of it.
            "failed" if lost => self.worker_lost(env, step),
            "failed" => self.close(Outcome::Failed, env, step),
            _ => {
                if lost {
                    self.in_doubt(env);
                }
                if let Some(action) = self.record.action.clone() {
                    step.effects.push(Effect::WatchAction(action.id));
                }
            }
        }
    }

    pub(super) fn verify(&self, step: &mut Step) {
        if let Some(proposal) = &self.record.proposal {
            step.effects.push(Effect::Verify {
                class: proposal.class,
                target: proposal.target.clone(),
            });
        }
    }

    pub(super) fn probe_ended(&mut self, probe: VerificationNote, env: &Env<'_>, step: &mut Step) {
        if self.record.phase != Phase::Verifying {
            return;
        }
        let (outcome, word) = match probe.recovered {
            Some(true) => (Outcome::Recovered, "recovered"),
            Some(false) => (Outcome::NotRecovered, "not_recovered"),
            None => (Outcome::Unverified, "unknown"),
        };
        self.note(env.now, "probe", format!("{word}: {}", probe.metric));
        self.leaf(
            step,
            "incident.verified",
            [("result", ParamValue::Text(word.to_owned()))],
        );
        self.record.verification = Some(probe);
        self.close(outcome, env, step);
    }

    /// The cause that stands.
    #[must_use]
    pub fn cause_class(&self) -> CauseClass {
        self.record.cause_class.unwrap_or(CauseClass::Inconclusive)
    }
}

fn note(proposal: &Proposal) -> ProposalNote {
    ProposalNote {
        class: proposal.class(),
        advice: proposal.advice(),
        target: proposal.target().name.clone(),
        change: proposal.change().clone(),
        citations: proposal.cites().to_vec(),
    }
}
