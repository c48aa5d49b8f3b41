//! What happens without a request on the action itself: deadlines, restarts, a new policy, a hold.

use super::decide::{bad_reason, refused_by, speaker};
use super::{Context, Decider, Drawn, Evidence, Judged, step};
use crate::audit::EventType;
use crate::canon::Value;
use crate::guard::{Action, Assurance, Code, Ending, Leaf, Problem, State, Who};
use crate::model::Millis;

/// The deadline of an action that has passed, judged as `now >= deadline` (guard 4.2, 7.6).
#[must_use]
pub fn due(now: Millis, action: &Action) -> Option<(Action, Leaf)> {
    let (deadline, state, kind) = match action.state {
        State::Pending => (
            Some(action.expires_at),
            State::Expired,
            EventType::ActionExpired,
        ),
        State::Approved | State::Issued => (
            action.approval_expires_at,
            State::Lapsed,
            EventType::CapLapsed,
        ),
        State::Spent => (
            action.spend.as_ref().map(|s| s.effect_deadline),
            State::InDoubt,
            EventType::ExecInDoubt,
        ),
        State::Succeeded
        | State::Failed
        | State::InDoubt
        | State::ReconciledSucceeded
        | State::ReconciledFailed
        | State::Denied
        | State::Expired
        | State::Cancelled
        | State::Superseded
        | State::Lapsed
        | State::Revoked
        | State::EpochVoid => return None,
    };
    if now < deadline? {
        return None;
    }
    Some(if state == State::InDoubt {
        in_doubt(action, "deadline")
    } else {
        let next = step(action, |a| a.state = state);
        let leaf = Leaf::new(kind, Who::Guard).of(&next);
        (next, leaf)
    })
}

/// A spent action without an outcome after a restart: nobody knows, so a person is asked and
/// nothing is run again (guard 7.1, 7.6).
#[must_use]
pub fn restarted(action: &Action) -> Option<(Action, Leaf)> {
    (action.state == State::Spent).then(|| in_doubt(action, "restart"))
}

fn in_doubt(action: &Action, code: &str) -> (Action, Leaf) {
    let started = action.spend.as_ref().and_then(|s| s.started);
    let next = step(action, |a| {
        a.state = State::InDoubt;
        a.ending = Some(Ending {
            outcome: "unknown".to_owned(),
            code: code.to_owned(),
            evidence_sha256: None,
        });
    });
    let leaf = Leaf::new(EventType::ExecInDoubt, Who::Guard)
        .of(&next)
        .reason(code)
        .data([("started", Value::Bool(started.is_some()))]);
    (next, leaf)
}

/// Another policy came into force: collected approvals are void and get a new nonce, approved and
/// issued actions are revoked (guard 2.4.2, 10 H7).
#[must_use]
pub fn policy_changed(action: &Action, nonce: Drawn) -> Option<(Action, Option<Leaf>)> {
    match action.state {
        State::Pending => {
            let next = step(action, |a| {
                a.decisions.clear();
                a.nonce = nonce.text();
            });
            Some((next, None))
        }
        State::Approved | State::Issued => {
            let next = step(action, |a| a.state = State::Revoked);
            let leaf = Leaf::new(EventType::DecisionRevoked, Who::Guard)
                .of(&next)
                .reason("policy_changed");
            Some((next, Some(leaf)))
        }
        State::Spent
        | State::Succeeded
        | State::Failed
        | State::InDoubt
        | State::ReconciledSucceeded
        | State::ReconciledFailed
        | State::Denied
        | State::Expired
        | State::Cancelled
        | State::Superseded
        | State::Lapsed
        | State::Revoked
        | State::EpochVoid => None,
    }
}

/// A request about the hold ("stop all actions", guard 4.7).
#[derive(Clone, Debug)]
pub struct Hold {
    /// Subject of the person.
    pub approver: Option<String>,
    /// In the person's words.
    pub reason: String,
    /// Evidence that it is this person.
    pub evidence: Evidence,
}

/// Any person stops everything, with a reason. Setting it twice keeps the first.
#[must_use]
pub fn hold_set(ctx: &Context<'_>, decider: &Decider, request: &Hold) -> Judged<()> {
    let approver = request.approver.as_deref();
    let kind = EventType::DecisionRefused;
    let refuse = |problem| refused_by(ctx, decider, approver, kind, "hold").refuse(None, problem);
    if let Some(problem) = bad_reason(&request.reason, true) {
        return refuse(problem);
    }
    let named = speaker(ctx, decider, approver, None);
    let (who, via) = match (named, decider) {
        (Ok(speaker), _) => (speaker.who(Assurance::Delegated), speaker.via),
        // A delegate may name a subject that no person lists: stopping is open to everybody.
        (Err(problem), Decider::Peer(peer)) if problem.code == Code::NotPermitted => {
            let via = ctx.policy.identity(peer).map(|i| i.id.as_str());
            (Who::Caller(via.unwrap_or_default().to_owned()), via)
        }
        (Err(problem), _) => return refuse(problem),
    };
    if ctx.on_hold {
        return Judged::recorded(());
    }
    let leaf = Leaf::new(EventType::HoldSet, who)
        .via(via)
        .pii("subject", approver.unwrap_or_default())
        .pii("reason", &request.reason);
    Judged::done((), Vec::new(), vec![leaf])
}

/// A person who may approve something releases it, at `local` or better.
#[must_use]
pub fn hold_release(ctx: &Context<'_>, decider: &Decider, request: &Hold) -> Judged<()> {
    let approver = request.approver.as_deref();
    let kind = EventType::DecisionRefused;
    let refuse =
        |problem| refused_by(ctx, decider, approver, kind, "hold_release").refuse(None, problem);
    if let Some(problem) = bad_reason(&request.reason, true) {
        return refuse(problem);
    }
    let speaker = match speaker(ctx, decider, approver, None) {
        Ok(speaker) => speaker,
        Err(problem) => return refuse(problem),
    };
    if !ctx.policy.approves_anything(speaker.person) {
        let text = "only who may approve releases a hold";
        return refuse(Problem::new(Code::NotPermitted, text));
    }
    match request.evidence.assurance(ctx.now) {
        Err(problem) => return refuse(problem),
        Ok(assurance) if assurance < Assurance::Local => {
            let text = "a hold is released with a code";
            return refuse(Problem::new(Code::AssuranceTooLow, text));
        }
        Ok(_) => {}
    }
    if !ctx.on_hold {
        return refuse(Problem::new(Code::WrongState, "no hold is set"));
    }
    let leaf = Leaf::new(EventType::HoldReleased, speaker.who(Assurance::Local))
        .via(speaker.via)
        .pii("reason", &request.reason);
    let mut judged = Judged::done((), Vec::new(), vec![leaf]);
    judged.code_used = true;
    judged
}
