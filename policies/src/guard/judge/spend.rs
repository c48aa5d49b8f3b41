//! Spending: the one moment at which an effect becomes possible (guard 5.3, 7).

use super::{Channel, Context, Judged, Origin, state_problem, step};
use crate::audit::EventType;
use crate::canon::Value;
use crate::guard::capability::invalid;
use crate::guard::policy::INTERNAL_WORKER;
use crate::guard::{
    Action, ActionDoc, Claims, Code, Issue, Leaf, Problem, Purpose, Spend, State, TrustedKey, Who,
    check_proof, judge_use, verify,
};
use crate::model::Millis;

/// A request to spend a capability.
#[derive(Clone)]
pub struct SpendRequest {
    /// The capability.
    pub capability: String,
    /// The executor's own arguments: action,
    pub action: String,
    /// target
    pub target: Value,
    /// and parameters.
    pub change: Value,
    /// The job.
    pub job: String,
    /// The fence.
    pub fence: i64,
    /// Holder proof.
    pub proof: String,
}

/// Leave to begin one effect. Made here only; worth nothing until the store has committed it.
#[derive(Debug)]
pub struct SpendGrant {
    aid: String,
    jti: String,
    doc: ActionDoc,
    job: String,
    fence: i64,
    effect_deadline: Millis,
}

impl SpendGrant {
    /// The action.
    #[must_use]
    pub fn aid(&self) -> &str {
        &self.aid
    }

    /// The capability that was used up.
    #[must_use]
    pub fn jti(&self) -> &str {
        &self.jti
    }

    /// Exactly what may be done.
    #[must_use]
    pub fn doc(&self) -> &ActionDoc {
        &self.doc
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Its fence.
    #[must_use]
    pub fn fence(&self) -> i64 {
        self.fence
    }

    /// Until when the effect must be over.
    #[must_use]
    pub fn effect_deadline(&self) -> Millis {
        self.effect_deadline
    }
}

/// What a spend gives.
#[derive(Debug)]
pub enum SpendAnswer {
    /// The first and only time: an effect may begin.
    Fresh(Box<SpendGrant>),
    /// The same request again before `started`: the recorded receipt (guard 7.4).
    Recorded(Box<Action>),
}

/// Judges a spend. `lookup` gives the action of a `jti` and the highest fence known of its job.
///
/// # Errors
/// Whatever `lookup` fails with; a refusal is an answer and no error.
pub fn spend<E>(
    ctx: &Context<'_>,
    channel: &Channel,
    keys: &[TrustedKey],
    request: &SpendRequest,
    lookup: impl FnOnce(&str) -> Result<Option<(Action, i64)>, E>,
) -> Result<Judged<SpendAnswer>, E> {
    let doc = match own_arguments(ctx, request) {
        Ok(doc) => doc,
        Err(problem) => return Ok(refuse(None, problem)),
    };
    if let Some(problem) = ctx.stopped() {
        return Ok(refuse(None, problem));
    }
    let claims = match verify(&request.capability, keys) {
        Ok(claims) => claims,
        Err(rule) => return Ok(refuse(None, invalid(rule))),
    };
    let found = lookup(&claims.jti)?;
    let current =
        claims.epoch == ctx.epoch && claims.inc == ctx.inc && claims.pol == ctx.policy.hash();
    let Some((action, known_fence)) = found.filter(|_| current) else {
        return Ok(refuse(None, invalid(5)));
    };
    let Some(issue) = action.issue.clone().filter(|i| i.claims == claims) else {
        return Ok(refuse(Some(&action), invalid(5)));
    };
    if action.spend.is_some() {
        return Ok(spent_before(&action, &issue, channel, request, doc));
    }
    let judged = row(&action, &issue, channel, request, known_fence)
        .and_then(|()| usable(ctx, &claims, request, doc.as_ref()))
        .and_then(|()| holder(&claims, channel, request));
    Ok(match (judged, doc) {
        (Err(problem), _) => refuse(Some(&action), problem),
        (Ok(()), None) => refuse(Some(&action), other_parameters()),
        (Ok(()), Some(doc)) => grant(ctx, &action, doc),
    })
}

fn refuse(action: Option<&Action>, problem: Problem) -> Judged<SpendAnswer> {
    Origin {
        kind: EventType::SpendRefused,
        route: "spend",
        who: Who::Caller(INTERNAL_WORKER.to_owned()),
        via: None,
    }
    .refuse(action, problem)
}

fn other_parameters() -> Problem {
    Problem::new(Code::ParamsMismatch, Code::ParamsMismatch.title())
}

/// The executor's arguments by the types of the policy. An action or tenant that the policy does
/// not let run is no document, which is `params_mismatch` in its turn (guard 3.7).
fn own_arguments(ctx: &Context<'_>, request: &SpendRequest) -> Result<Option<ActionDoc>, Problem> {
    match ActionDoc::check(
        ctx.policy,
        &request.action,
        &request.target,
        &request.change,
    ) {
        Ok(doc) => Ok(Some(doc)),
        Err(problem) if problem.code == Code::NotPermitted => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// 5.3.5: the state of the row, then job and fence as issued (7.3).
fn row(
    action: &Action,
    issue: &Issue,
    channel: &Channel,
    request: &SpendRequest,
    known_fence: i64,
) -> Result<(), Problem> {
    if action.state != State::Issued {
        return Err(state_problem(action));
    }
    same_lease(issue, channel, &request.job, request.fence)?;
    if known_fence > issue.fence {
        return Err(Problem::new(Code::StaleFence, Code::StaleFence.title()));
    }
    Ok(())
}

/// A lower fence is stale; another job or a higher fence is somebody else's (guard 7.3).
pub(super) fn same_lease(
    issue: &Issue,
    channel: &Channel,
    job: &str,
    fence: i64,
) -> Result<(), Problem> {
    let own = job == channel.job && fence == channel.fence && job == issue.job;
    if own && fence < issue.fence {
        return Err(Problem::new(Code::StaleFence, Code::StaleFence.title()));
    }
    if own && fence == issue.fence {
        return Ok(());
    }
    Err(Problem::new(
        Code::HolderMismatch,
        Code::HolderMismatch.title(),
    ))
}

fn usable(
    ctx: &Context<'_>,
    claims: &Claims,
    request: &SpendRequest,
    doc: Option<&ActionDoc>,
) -> Result<(), Problem> {
    let nothing = std::collections::BTreeMap::new();
    let (target, change) = doc.map_or((&claims.tgt, &nothing), |d| (d.target(), d.change()));
    judge_use(claims, ctx.now, &request.action, target, change)
}

fn holder(claims: &Claims, channel: &Channel, request: &SpendRequest) -> Result<(), Problem> {
    let purpose = Purpose::Spend {
        jti: &claims.jti,
        token: &request.capability,
    };
    let jkt = check_proof(&request.proof, purpose, &channel.job, channel.fence);
    if jkt.as_deref() == Some(claims.jkt.as_str()) {
        Ok(())
    } else {
        Err(Problem::new(
            Code::HolderMismatch,
            Code::HolderMismatch.title(),
        ))
    }
}

/// The identical request before `started` gets the recorded receipt; anything else on a spent
/// capability is `already_spent` (guard 7.4).
fn spent_before(
    action: &Action,
    issue: &Issue,
    channel: &Channel,
    request: &SpendRequest,
    doc: Option<ActionDoc>,
) -> Judged<SpendAnswer> {
    let fresh =
        action.state == State::Spent && action.spend.as_ref().is_some_and(|s| s.started.is_none());
    let identical = doc.is_some_and(|doc| doc == action.doc)
        && same_lease(issue, channel, &request.job, request.fence).is_ok()
        && holder(&issue.claims, channel, request).is_ok();
    if fresh && identical {
        return Judged::recorded(SpendAnswer::Recorded(Box::new(action.clone())));
    }
    let problem = Problem::new(Code::AlreadySpent, Code::AlreadySpent.title())
        .at(action.state)
        .recorded(action.recorded_outcome());
    refuse(Some(action), problem)
}

fn grant(ctx: &Context<'_>, action: &Action, doc: ActionDoc) -> Judged<SpendAnswer> {
    let (Some(rule), Some(issue)) = (ctx.policy.action(doc.action()), &action.issue) else {
        return refuse(Some(action), other_parameters());
    };
    let effect_deadline = ctx.now.plus(rule.effect_timeout_s.saturating_mul(1000));
    let next = step(action, |a| {
        a.state = State::Spent;
        a.spend = Some(Spend {
            at: ctx.now,
            effect_deadline,
            started: None,
            index: 0,
        });
    });
    let leaf = Leaf::new(EventType::SpendOk, Who::Caller(issue.executor.clone()))
        .of(&next)
        .data([
            ("effect_deadline_ms", Value::Int(effect_deadline.0)),
            ("seen_size", Value::Null),
        ]);
    let grant = SpendGrant {
        aid: action.id.clone(),
        jti: issue.claims.jti.clone(),
        doc,
        job: issue.job.clone(),
        fence: issue.fence,
        effect_deadline,
    };
    Judged::done(SpendAnswer::Fresh(Box::new(grant)), vec![next], vec![leaf])
}

#[cfg(test)]
#[path = "spend_tests.rs"]
mod tests;
