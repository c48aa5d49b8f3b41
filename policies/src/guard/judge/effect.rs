//! What became of a spent capability: started, outcome, and a person's word where nobody knows
//! (guard 7.3 to 7.7).

use super::decide::{bad_reason, refused_by, speaker};
use super::spend::same_lease;
use super::{Channel, Context, Decider, Evidence, Judged, Origin, state_problem, step};
use crate::audit::{EventType, hash_from_text};
use crate::canon::Value;
use crate::guard::policy::{INTERNAL_WORKER, is_id};
use crate::guard::{Action, Assurance, Code, Ending, Leaf, Problem, State, Who};

/// A reported outcome.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The job.
    pub job: String,
    /// The fence.
    pub fence: i64,
    /// How it ended.
    pub ending: Ending,
}

fn origin(route: &'static str) -> Origin<'static> {
    Origin {
        kind: EventType::ExecRefused,
        route,
        who: Who::Caller(INTERNAL_WORKER.to_owned()),
        via: None,
    }
}

fn not_found() -> Problem {
    Problem::new(Code::NotFound, Code::NotFound.title())
}

/// The lease of the issue, on an action that was spent.
fn spender(action: &Action, channel: &Channel, job: &str, fence: i64) -> Result<(), Problem> {
    let issue = action.issue.as_ref().ok_or_else(not_found)?;
    same_lease(issue, channel, job, fence)
}

/// The executor says that it begins. It waits for the answer before it does.
#[must_use]
pub fn started(
    ctx: &Context<'_>,
    channel: &Channel,
    action: Option<&Action>,
    job: &str,
    fence: i64,
) -> Judged<Action> {
    let Some(action) = action else {
        return origin("started").refuse(None, not_found());
    };
    if let Err(problem) = spender(action, channel, job, fence) {
        return origin("started").refuse(Some(action), problem);
    }
    if action.spend.as_ref().is_some_and(|s| s.started.is_some()) && action.state == State::Spent {
        return Judged::recorded(action.clone());
    }
    if action.state != State::Spent {
        return origin("started").refuse(Some(action), state_problem(action));
    }
    let next = step(action, |a| {
        if let Some(spend) = &mut a.spend {
            spend.started = Some(ctx.now);
        }
    });
    let who = Who::Caller(INTERNAL_WORKER.to_owned());
    let leaf = Leaf::new(EventType::ExecStarted, who).of(&next);
    Judged::done(next.clone(), vec![next], vec![leaf])
}

/// The executor says how it ended. After the deadline it is too late, and only the hash of its
/// evidence is kept (guard 7.6).
#[must_use]
pub fn outcome(channel: &Channel, action: Option<&Action>, request: &Outcome) -> Judged<Action> {
    let Some(action) = action else {
        return origin("outcome").refuse(None, not_found());
    };
    let ending = &request.ending;
    if let Some(problem) = bad_ending(ending) {
        return origin("outcome").refuse(Some(action), problem);
    }
    if let Err(problem) = spender(action, channel, &request.job, request.fence) {
        return origin("outcome").refuse(Some(action), problem);
    }
    if action.ending.as_ref() == Some(ending) {
        return Judged::recorded(action.clone());
    }
    if action.state != State::Spent {
        let mut judged = origin("outcome").refuse(Some(action), state_problem(action));
        if let (Some(leaf), Some(hash)) = (judged.leaves.first_mut(), &ending.evidence_sha256)
            && let Value::Map(data) = &mut leaf.data
        {
            data.insert("evidence_sha256".to_owned(), Value::from(hash.as_str()));
        }
        return judged;
    }
    let next = step(action, |a| {
        a.state = match ending.outcome.as_str() {
            "succeeded" => State::Succeeded,
            "failed" => State::Failed,
            _ => State::InDoubt,
        };
        a.ending = Some(ending.clone());
    });
    let leaf = Leaf::new(
        EventType::ExecOutcome,
        Who::Caller(INTERNAL_WORKER.to_owned()),
    )
    .of(&next)
    .outcome(&ending.outcome)
    .data([
        ("code", Value::from(ending.code.as_str())),
        (
            "evidence_sha256",
            Value::text_or_null(ending.evidence_sha256.as_deref()),
        ),
    ]);
    Judged::done(next.clone(), vec![next], vec![leaf])
}

fn bad_ending(ending: &Ending) -> Option<Problem> {
    let hash = ending.evidence_sha256.as_deref();
    let good = matches!(ending.outcome.as_str(), "succeeded" | "failed" | "unknown")
        && is_id(&ending.code)
        && hash.is_none_or(|h| hash_from_text(h).is_some());
    (!good).then(|| Problem::new(Code::Malformed, "the outcome is not well formed"))
}

/// A person's word on an action with an unknown outcome.
#[derive(Clone, Debug)]
pub struct Reconcile {
    /// `true`: the effect happened.
    pub succeeded: bool,
    /// Subject of the person.
    pub approver: Option<String>,
    /// In the person's words.
    pub reason: String,
    /// SHA-256 of what a read-only probe saw, base64url.
    pub evidence_sha256: Option<String>,
    /// Evidence that it is this person.
    pub evidence: Evidence,
}

/// Judges a reconciliation: a person permitted to approve, not the initiator (guard 7.7).
#[must_use]
pub fn reconcile(
    ctx: &Context<'_>,
    decider: &Decider,
    action: &Action,
    request: &Reconcile,
) -> Judged<Action> {
    let approver = request.approver.as_deref();
    let refuse = |problem: Problem, code_used| {
        let origin = refused_by(ctx, decider, approver, EventType::ExecRefused, "reconcile");
        let mut judged = origin.refuse(Some(action), problem);
        judged.code_used = code_used;
        judged
    };
    if let Some(problem) = bad_reason(&request.reason, true) {
        return refuse(problem, false);
    }
    let speaker = match speaker(ctx, decider, approver, Some(&action.requester)) {
        Ok(speaker) => speaker,
        Err(problem) => return refuse(problem, false),
    };
    if action.state != State::InDoubt {
        return refuse(state_problem(action), false);
    }
    if action.initiator.as_deref() == Some(speaker.person.id.as_str()) {
        let problem = Problem::new(Code::SelfDecision, Code::SelfDecision.title());
        return refuse(problem, false);
    }
    let Some(rule) = ctx
        .policy
        .action(action.doc.action())
        .filter(|rule| ctx.policy.may_approve(rule, speaker.person))
    else {
        let text = "this person does not decide about it";
        return refuse(Problem::new(Code::NotPermitted, text), false);
    };
    let assurance = match request.evidence.assurance(ctx.now) {
        Ok(assurance) => assurance,
        Err(problem) => return refuse(problem, false),
    };
    let code_used = assurance == Assurance::Local;
    if assurance < rule.min_assurance {
        let text = format!("the policy asks `{}`", rule.min_assurance.as_str());
        return refuse(Problem::new(Code::AssuranceTooLow, text), code_used);
    }
    let word = if request.succeeded {
        "succeeded"
    } else {
        "failed"
    };
    let next = step(action, |a| {
        a.state = if request.succeeded {
            State::ReconciledSucceeded
        } else {
            State::ReconciledFailed
        };
    });
    let leaf = Leaf::new(EventType::ExecReconciled, speaker.who(assurance))
        .of(&next)
        .via(speaker.via)
        .outcome(word)
        .pii("reason", &request.reason)
        .data([(
            "evidence_sha256",
            Value::text_or_null(request.evidence_sha256.as_deref()),
        )]);
    let mut judged = Judged::done(next.clone(), vec![next], vec![leaf]);
    judged.code_used = code_used;
    judged
}
