//! Approve, deny, cancel, revoke: what people (and, for their own pending proposals, agents) say.

use std::collections::BTreeSet;

use super::{Context, Judged, MAX_REASON, Origin, state_problem, step};
use crate::audit::EventType;
use crate::canon::Value;
use crate::guard::policy::{Peer, Person, Role};
use crate::guard::{Action, Assurance, Code, Decision, Leaf, Problem, State, Verdict, Who};
use crate::model::Millis;

/// Who hands a decision in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decider {
    /// A caller of the policy; only a delegate decides, and names the person.
    Peer(Peer),
    /// A person who speaks for herself, by person id.
    Person(String),
}

/// What shows that the person said so. The code itself stays in the shell, which asks
/// [`crate::guard::totp::Kept::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing but the delegate's word.
    None,
    /// A one-time code, and whether it holds.
    Local {
        /// It is right and its step is unused.
        holds: bool,
    },
    /// A one-time code that was not looked at, because too many were wrong.
    Locked {
        /// Until when none is.
        until: Millis,
    },
}

/// One decision.
#[derive(Clone, Debug)]
pub struct Decide {
    /// Yes or no.
    pub verdict: Verdict,
    /// Digest that the person saw.
    pub digest: String,
    /// Nonce that the person saw.
    pub nonce: String,
    /// Subject of the person.
    pub approver: Option<String>,
    /// In the person's words.
    pub reason: String,
    /// Evidence.
    pub evidence: Evidence,
}

impl Evidence {
    /// What it proves, or why it proves nothing. A wrong code is never less than none: it refuses.
    pub(super) fn assurance(self, now: Millis) -> Result<Assurance, Problem> {
        match self {
            Self::None => Ok(Assurance::Delegated),
            Self::Local { holds: true } => Ok(Assurance::Local),
            Self::Local { holds: false } => Err(Problem::new(
                Code::EvidenceInvalid,
                "the code is wrong, too old or was used before",
            )),
            Self::Locked { until } => {
                let text = format!(
                    "too many codes were wrong; the next is taken from {}",
                    until.rfc3339()
                );
                let mut problem = Problem::new(Code::Quota, text);
                let seconds = until.since(now).saturating_add(999) / 1000;
                problem.retry_after_s = u64::try_from(seconds).ok();
                Err(problem)
            }
        }
    }
}

/// The person behind a request, and the delegate between.
pub(super) struct Speaker<'a> {
    pub(super) person: &'a Person,
    pub(super) via: Option<&'a str>,
    floor: Assurance,
}

impl Speaker<'_> {
    pub(super) fn who(&self, assurance: Assurance) -> Who {
        Who::Person {
            id: self.person.id.clone(),
            assurance: Some(assurance),
        }
    }
}

/// Resolves who speaks (guard 2.1.3, 2.2.4). The requester of the action gets `self_decision`
/// here, before its role is looked at (guard 2.2.3, 3.7).
pub(super) fn speaker<'a>(
    ctx: &Context<'a>,
    decider: &Decider,
    approver: Option<&str>,
    requester: Option<&str>,
) -> Result<Speaker<'a>, Problem> {
    let not_permitted = |text: &str| Problem::new(Code::NotPermitted, text);
    match decider {
        Decider::Peer(peer) => {
            let identity = ctx.policy.identity(peer).ok_or_else(|| {
                Problem::new(Code::Unauthenticated, "the policy knows no such peer")
            })?;
            if requester == Some(identity.id.as_str()) {
                return Err(own_action());
            }
            if identity.role != Role::Delegate {
                return Err(Problem::new(Code::RoleForbidden, "only a delegate decides"));
            }
            let subject =
                approver.ok_or_else(|| Problem::new(Code::Malformed, "`approver` is missing"))?;
            let person = ctx
                .policy
                .person_of_subject(subject)
                .ok_or_else(|| not_permitted("the policy knows no such subject"))?;
            // The control socket cannot tell people apart but by their code (operations 2.6).
            let control = identity.peer == Peer::Internal("control".to_owned());
            Ok(Speaker {
                person,
                via: Some(&identity.id),
                floor: if control {
                    Assurance::Local
                } else {
                    Assurance::Delegated
                },
            })
        }
        Decider::Person(id) => {
            let person = ctx.policy.person(id).ok_or_else(|| {
                Problem::new(Code::Unauthenticated, "the policy knows no such person")
            })?;
            let own = approver.is_none_or(|subject| person.subjects.iter().any(|s| s == subject));
            if own {
                Ok(Speaker {
                    person,
                    via: None,
                    floor: Assurance::Delegated,
                })
            } else {
                Err(not_permitted("nobody speaks for another person"))
            }
        }
    }
}

fn own_action() -> Problem {
    Problem::new(Code::SelfDecision, Code::SelfDecision.title())
}

/// Name of a caller for the leaf of a refusal.
pub(super) fn refused_by<'a>(
    ctx: &Context<'a>,
    decider: &Decider,
    approver: Option<&str>,
    kind: EventType,
    route: &'static str,
) -> Origin<'a> {
    let (caller, via) = match decider {
        Decider::Peer(peer) => {
            let identity = ctx.policy.identity(peer);
            let id = identity.map_or_else(|| peer.to_string(), |i| i.id.clone());
            (Who::Caller(id), identity.map(|i| i.id.as_str()))
        }
        Decider::Person(id) => (person_who(id), None),
    };
    let named = approver.and_then(|subject| ctx.policy.person_of_subject(subject));
    match named {
        Some(person) if via.is_some() => Origin {
            kind,
            route,
            who: person_who(&person.id),
            via,
        },
        _ => Origin {
            kind,
            route,
            who: caller,
            via: None,
        },
    }
}

fn person_who(id: &str) -> Who {
    Who::Person {
        id: id.to_owned(),
        assurance: None,
    }
}

/// Judges an approval or a denial. It is recorded by this judgement, before anything resumes
/// (guard 4.8).
#[must_use]
pub fn decide(
    ctx: &Context<'_>,
    decider: &Decider,
    action: &Action,
    request: &Decide,
) -> Judged<(Action, Decision)> {
    let approver = request.approver.as_deref();
    let route = request.verdict.as_str();
    let refuse = |problem: Problem, code_used: bool| {
        let kind = EventType::DecisionRefused;
        let mut judged =
            refused_by(ctx, decider, approver, kind, route).refuse(Some(action), problem);
        judged.code_used = code_used;
        judged
    };
    let speaker = match speaker(ctx, decider, approver, Some(&action.requester)) {
        Ok(speaker) => speaker,
        Err(problem) => return refuse(problem, false),
    };
    if let Some(problem) = unfit(ctx, request) {
        return refuse(problem, false);
    }
    // A repeat is judged before the state and checked for nothing else (guard 4.4).
    let recorded = action.decisions.iter().find(|d| {
        d.person == speaker.person.id && d.verdict == request.verdict && d.nonce == request.nonce
    });
    if let Some(decision) = recorded {
        return Judged::recorded((action.clone(), decision.clone()));
    }
    if let Some(problem) = closed(action, &speaker, request) {
        return refuse(problem, false);
    }
    if let Some(problem) = not_entitled(ctx, action, &speaker) {
        return refuse(problem, false);
    }
    let assurance = match request.evidence.assurance(ctx.now) {
        Ok(assurance) => assurance,
        Err(problem) => return refuse(problem, false),
    };
    let code_used = assurance == Assurance::Local;
    if request.verdict == Verdict::Approve
        && let Some(problem) = too_weak(ctx, action, &speaker, assurance)
    {
        return refuse(problem, code_used);
    }
    let mut judged = record(ctx, action, &speaker, request, assurance);
    judged.code_used = code_used;
    judged
}

/// Structure and health.
fn unfit(ctx: &Context<'_>, request: &Decide) -> Option<Problem> {
    if let Some(problem) = bad_reason(&request.reason, request.verdict == Verdict::Deny) {
        return Some(problem);
    }
    match request.verdict {
        Verdict::Approve => ctx.stopped(),
        Verdict::Deny => None,
    }
}

/// `reason` is at most 500 bytes, and required where guard 3.1 says so.
pub(super) fn bad_reason(reason: &str, required: bool) -> Option<Problem> {
    let bad = reason.len() > MAX_REASON || (required && reason.trim().is_empty());
    bad.then(|| Problem::new(Code::Malformed, "`reason` is missing or over 500 bytes"))
}

/// State, then an earlier answer of this person, then the bytes that were seen.
fn closed(action: &Action, speaker: &Speaker<'_>, request: &Decide) -> Option<Problem> {
    if action.state != State::Pending {
        return Some(state_problem(action));
    }
    let decided = action
        .decisions
        .iter()
        .find(|d| d.person == speaker.person.id);
    if let Some(decision) = decided {
        return Some(
            Problem::new(Code::AlreadyDecided, Code::AlreadyDecided.title())
                .at(action.state)
                .recorded(Some(decision.verdict.as_str().to_owned())),
        );
    }
    let same = request.digest == action.digest && request.nonce == action.nonce;
    (!same)
        .then(|| Problem::new(Code::DigestMismatch, Code::DigestMismatch.title()).at(action.state))
}

/// The initiator decides nothing, and neither does who is not eligible.
fn not_entitled(ctx: &Context<'_>, action: &Action, speaker: &Speaker<'_>) -> Option<Problem> {
    if action.initiator.as_deref() == Some(speaker.person.id.as_str()) {
        return Some(own_action().at(action.state));
    }
    let eligible = ctx
        .policy
        .action(action.doc.action())
        .is_some_and(|rule| ctx.policy.may_approve(rule, speaker.person));
    (!eligible).then(|| {
        Problem::new(Code::NotPermitted, "this person does not decide about it").at(action.state)
    })
}

/// The floor of the policy; and the last free place goes to who is still missing (guard 2.2.5).
fn too_weak(
    ctx: &Context<'_>,
    action: &Action,
    speaker: &Speaker<'_>,
    assurance: Assurance,
) -> Option<Problem> {
    let rule = ctx.policy.action(action.doc.action())?;
    let floor = rule.min_assurance.max(speaker.floor);
    if assurance < floor {
        let text = format!("the policy asks `{}`", floor.as_str());
        return Some(Problem::new(Code::AssuranceTooLow, text).at(action.state));
    }
    if action.have().saturating_add(1) < action.need {
        return None;
    }
    let missing = ctx
        .policy
        .missing_groups(rule, &approvers(action, &speaker.person.id));
    (!missing.is_empty()).then(|| {
        let text = format!("the last approval must come from {}", missing.join(" and "));
        Problem::new(Code::NotPermitted, text).at(action.state)
    })
}

fn approvers<'a>(action: &'a Action, with: &'a str) -> BTreeSet<&'a str> {
    action
        .decisions
        .iter()
        .filter(|d| d.verdict == Verdict::Approve)
        .map(|d| d.person.as_str())
        .chain([with])
        .collect()
}

fn record(
    ctx: &Context<'_>,
    action: &Action,
    speaker: &Speaker<'_>,
    request: &Decide,
    assurance: Assurance,
) -> Judged<(Action, Decision)> {
    let decision = Decision {
        person: speaker.person.id.clone(),
        verdict: request.verdict,
        assurance,
        via: speaker.via.map(str::to_owned),
        nonce: request.nonce.clone(),
        at: ctx.now,
        reason: request.reason.clone(),
        index: 0,
    };
    let next = step(action, |a| {
        a.decisions.push(decision.clone());
        match request.verdict {
            Verdict::Deny => a.state = State::Denied,
            Verdict::Approve if a.have() >= a.need => {
                a.state = State::Approved;
                a.approval_expires_at = Some(window_end(ctx, action));
            }
            Verdict::Approve => {}
        }
    });
    let kind = match request.verdict {
        Verdict::Approve => EventType::DecisionApproved,
        Verdict::Deny => EventType::DecisionDenied,
    };
    let deadline = next.approval_expires_at.map(|at| at.0);
    let subject = request
        .approver
        .clone()
        .or_else(|| speaker.person.subjects.first().cloned())
        .unwrap_or_default();
    let leaf = Leaf::new(kind, speaker.who(assurance))
        .of(&next)
        .via(speaker.via)
        .outcome(request.verdict.as_str())
        .pii("subject", &subject)
        .pii("reason", &request.reason)
        .data([
            ("deadline_ms", Value::int_or_null(deadline)),
            ("have", Value::Int(next.have())),
            ("need", Value::Int(next.need)),
        ]);
    Judged::done((next.clone(), decision), vec![next], vec![leaf])
}

/// The end of the approval window, rounded down to a whole second (guard 4.2).
fn window_end(ctx: &Context<'_>, action: &Action) -> Millis {
    let ttl = ctx
        .policy
        .action(action.doc.action())
        .map_or(0, |rule| rule.approval_ttl_s);
    let end = ctx.now.plus(ttl.saturating_mul(1000)).0;
    Millis(end - end.rem_euclid(1000))
}

/// A revocation by a person.
#[derive(Clone, Debug)]
pub struct Withdraw {
    /// Subject of the person.
    pub approver: Option<String>,
    /// In the person's words.
    pub reason: String,
}

/// The requester takes a pending action back.
#[must_use]
pub fn cancel(ctx: &Context<'_>, peer: &Peer, action: &Action) -> Judged<Action> {
    let decider = Decider::Peer(peer.clone());
    let kind = EventType::ActionRefused;
    let refuse =
        |problem| refused_by(ctx, &decider, None, kind, "cancel").refuse(Some(action), problem);
    let own = ctx
        .policy
        .identity(peer)
        .is_some_and(|i| i.id == action.requester);
    if !own {
        return refuse(Problem::new(
            Code::RoleForbidden,
            "only the requester cancels",
        ));
    }
    if action.state != State::Pending {
        return refuse(state_problem(action));
    }
    let next = step(action, |a| a.state = State::Cancelled);
    let leaf = Leaf::new(
        EventType::ActionCancelled,
        Who::Caller(next.requester.clone()),
    )
    .of(&next);
    Judged::done(next.clone(), vec![next], vec![leaf])
}

/// A person takes an approval back; so does the requester (whose interlocks no longer hold).
#[must_use]
pub fn revoke(
    ctx: &Context<'_>,
    decider: &Decider,
    action: &Action,
    request: &Withdraw,
) -> Judged<Action> {
    let approver = request.approver.as_deref();
    let kind = EventType::DecisionRefused;
    let refuse =
        |problem| refused_by(ctx, decider, approver, kind, "revoke").refuse(Some(action), problem);
    if let Some(problem) = bad_reason(&request.reason, true) {
        return refuse(problem);
    }
    let requester = match decider {
        Decider::Peer(peer) => ctx
            .policy
            .identity(peer)
            .filter(|i| i.id == action.requester),
        Decider::Person(_) => None,
    };
    let (who, via) = if let Some(identity) = requester {
        (Who::Caller(identity.id.clone()), None)
    } else {
        match speaker(ctx, decider, approver, None) {
            Err(problem) => return refuse(problem),
            Ok(speaker) => match not_entitled(ctx, action, &speaker) {
                Some(problem) => return refuse(problem),
                None => (speaker.who(Assurance::Delegated), speaker.via),
            },
        }
    };
    if !matches!(action.state, State::Approved | State::Issued) {
        return refuse(state_problem(action));
    }
    let next = step(action, |a| a.state = State::Revoked);
    let leaf = Leaf::new(EventType::DecisionRevoked, who)
        .of(&next)
        .via(via)
        .pii("reason", &request.reason);
    Judged::done(next.clone(), vec![next], vec![leaf])
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
