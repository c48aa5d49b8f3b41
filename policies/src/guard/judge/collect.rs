//! Collecting: an approved action becomes a capability, once (guard 3.1, 5.2).

use std::collections::BTreeSet;

use super::{Context, Drawn, Judged, Origin, state_problem, step};
use crate::audit::EventType;
use crate::canon::Value;
use crate::guard::policy::INTERNAL_WORKER;
use crate::guard::{
    Action, ActionDoc, Claims, Code, Issue, Leaf, MAX_LIFE_S, Policy, Problem, Purpose, State,
    Verdict, Who, check_proof,
};
use crate::model::Millis;

/// The channel of one remediate worker: its job and the fence of its lease (guard 2.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The job.
    pub job: String,
    /// The fence.
    pub fence: i64,
}

/// A request for the capability of an action.
#[derive(Clone, Debug)]
pub struct Collect {
    /// The job.
    pub job: String,
    /// The fence.
    pub fence: i64,
    /// Holder proof.
    pub proof: String,
}

/// An action that as many distinct, entitled people as the policy asks have approved, for exactly
/// its bytes, a short time ago. Stored rows are never read into this type: they are judged anew.
#[derive(Debug)]
pub struct Approved<'a> {
    action: &'a Action,
    until: Millis,
}

impl<'a> Approved<'a> {
    /// Judges a stored action. `None` where any part of its claim does not hold.
    #[must_use]
    pub fn check(action: &'a Action, policy: &Policy, now: Millis) -> Option<Self> {
        let rule = policy.action(action.doc.action())?;
        let until = action.approval_expires_at.filter(|until| now < *until)?;
        let whole = ActionDoc::reread(&action.doc.jcs(), &action.digest).is_some();
        let allowed = !policy.forbids(action.doc.action(), &action.doc.target().namespace);
        let denied = action.decisions.iter().any(|d| d.verdict == Verdict::Deny);
        let people: BTreeSet<&str> = action
            .decisions
            .iter()
            .filter(|d| d.nonce == action.nonce && d.assurance >= rule.min_assurance)
            .filter(|d| action.initiator.as_deref() != Some(d.person.as_str()))
            .filter_map(|d| policy.person(&d.person))
            .filter(|person| policy.may_approve(rule, person))
            .map(|person| person.id.as_str())
            .collect();
        let enough = i64::try_from(people.len()).unwrap_or(0) >= rule.approvals
            && policy.missing_groups(rule, &people).is_empty();
        let good = matches!(action.state, State::Approved | State::Issued);
        (good && whole && allowed && !denied && enough).then_some(Self { action, until })
    }
}

/// Leave to sign one capability. Made here only, from an [`Approved`].
#[derive(Debug)]
pub struct IssueGrant {
    claims: Claims,
}

impl IssueGrant {
    fn first(approved: &Approved<'_>, ctx: &Context<'_>, jti: String, jkt: String) -> Self {
        let iat = ctx.now.0.div_euclid(1000);
        let end = approved.until.0.div_euclid(1000);
        Self {
            claims: Claims {
                jti,
                aid: approved.action.id.clone(),
                act: approved.action.doc.action().to_owned(),
                tgt: approved.action.doc.target().clone(),
                dig: approved.action.digest.clone(),
                iat,
                exp: end.min(iat.saturating_add(MAX_LIFE_S)),
                epoch: ctx.epoch,
                inc: ctx.inc,
                pol: ctx.policy.hash().to_owned(),
                chk: i64::try_from(ctx.size)
                    .unwrap_or(i64::MAX)
                    .saturating_add(1),
                jkt,
            },
        }
    }

    /// Re-delivery signs the recorded claims again (guard 5.2).
    fn again(_approved: &Approved<'_>, issue: &Issue) -> Self {
        Self {
            claims: issue.claims.clone(),
        }
    }

    pub(in crate::guard) fn into_claims(self) -> Claims {
        self.claims
    }
}

/// Judges a collect. `known_fence` is the highest fence known of the job, `jti` fresh bits.
#[must_use]
pub fn collect(
    ctx: &Context<'_>,
    channel: &Channel,
    action: &Action,
    request: &Collect,
    known_fence: i64,
    jti: Drawn,
) -> Judged<IssueGrant> {
    let refuse = |problem| {
        Origin {
            kind: EventType::CapRefused,
            route: "capability",
            who: Who::Caller(INTERNAL_WORKER.to_owned()),
            via: None,
        }
        .refuse(Some(action), problem)
    };
    let listed = ctx
        .policy
        .action(action.doc.action())
        .is_some_and(|rule| rule.executors.iter().any(|e| e == INTERNAL_WORKER));
    if !listed {
        return refuse(Problem::new(Code::NotFound, Code::NotFound.title()));
    }
    if let Some(problem) = ctx.stopped() {
        return refuse(problem);
    }
    let purpose = Purpose::Collect { aid: &action.id };
    let own = request.job == channel.job && request.fence == channel.fence;
    let proof = check_proof(&request.proof, purpose, &channel.job, channel.fence);
    let Some(jkt) = proof.filter(|_| own) else {
        return refuse(Problem::new(Code::HolderMismatch, "the holder proof fails"));
    };
    if !matches!(action.state, State::Approved | State::Issued) {
        return refuse(state_problem(action));
    }
    let Some(approved) = Approved::check(action, ctx.policy, ctx.now) else {
        let text = "the recorded approvals do not carry it any more";
        return refuse(Problem::new(Code::WrongState, text).at(action.state));
    };
    if let Some(issue) = &action.issue {
        let same =
            issue.claims.jkt == jkt && issue.job == channel.job && issue.fence == channel.fence;
        if !same {
            let problem = Problem::new(Code::AlreadyIssued, Code::AlreadyIssued.title());
            return refuse(problem.at(action.state));
        }
        let leaf = issue_leaf(EventType::CapRedelivered, action, &issue.claims);
        let grant = IssueGrant::again(&approved, issue);
        return Judged::done(grant, Vec::new(), vec![leaf]);
    }
    if channel.fence < known_fence {
        return refuse(Problem::new(Code::StaleFence, Code::StaleFence.title()));
    }
    let grant = IssueGrant::first(&approved, ctx, jti.text(), jkt);
    let next = step(action, |a| {
        a.state = State::Issued;
        a.issue = Some(Issue {
            claims: grant.claims.clone(),
            executor: INTERNAL_WORKER.to_owned(),
            job: channel.job.clone(),
            fence: channel.fence,
        });
    });
    let leaf = issue_leaf(EventType::CapIssued, &next, &grant.claims);
    Judged::done(grant, vec![next], vec![leaf])
}

fn issue_leaf(kind: EventType, action: &Action, claims: &Claims) -> Leaf {
    Leaf::new(kind, Who::Caller(INTERNAL_WORKER.to_owned()))
        .of(action)
        .data([
            ("exp", Value::Int(claims.exp)),
            ("jkt", Value::from(claims.jkt.as_str())),
        ])
}
