//! `POST /v1/actions`: a proposal becomes a pending action, or comes back as the one it already is.

use super::{Context, Drawn, Judged, MAX_INTENT, Origin, step};
use crate::audit::EventType;
use crate::canon::Value;
use crate::guard::policy::{Identity, Peer, Role};
use crate::guard::{Action, ActionDoc, Code, Leaf, Problem, State, Who};
use crate::model::Millis;

const HOUR_MS: i64 = 3_600_000;

/// What an agent asks for.
#[derive(Clone, Debug)]
pub struct Propose {
    /// Name of the action.
    pub action: String,
    /// `{namespace, name}`.
    pub target: Value,
    /// Parameters.
    pub change: Value,
    /// Display text.
    pub intent: String,
    /// Subject of the person who chose the action or its parameters.
    pub initiator: Option<String>,
}

/// What the store knows about a proposal.
#[derive(Clone, Debug, Default)]
pub struct ProposeFacts {
    /// The requester's action with the same digest that is not at its end.
    pub same: Option<Action>,
    /// Pending actions of the requester on the same action and target with another digest.
    pub rivals: Vec<Action>,
    /// An action on the same action and target has an unknown outcome.
    pub in_doubt: bool,
    /// When this digest was last denied, by anybody.
    pub denied_at: Option<Millis>,
    /// Pending actions of the requester.
    pub pending: i64,
    /// Proposals of the requester in the last hour.
    pub last_hour: i64,
}

/// Judges a proposal. `lookup` reads the facts once the document is known; `bits` make the id of
/// the action and its decision nonce. It never gives a capability (guard 3.1, 10 X1).
///
/// # Errors
/// Whatever `lookup` fails with; a refusal is an answer and no error.
pub fn propose<E>(
    ctx: &Context<'_>,
    peer: &Peer,
    request: &Propose,
    bits: (Drawn, Drawn),
    lookup: impl FnOnce(&str, &ActionDoc) -> Result<ProposeFacts, E>,
) -> Result<Judged<Action>, E> {
    let (identity, doc) = match admitted(ctx, peer, request) {
        Ok(admitted) => admitted,
        Err(problem) => return Ok(origin(ctx, peer).refuse(None, problem)),
    };
    let initiator = match initiator(ctx, request) {
        Ok(initiator) => initiator,
        Err(problem) => return Ok(origin(ctx, peer).refuse(None, problem)),
    };
    let facts = lookup(&identity.id, &doc)?;
    if let Some(problem) = too_many_an_hour(ctx, &facts) {
        return Ok(origin(ctx, peer).refuse(None, problem));
    }
    if let Some(same) = facts.same {
        let leaf = Leaf::new(EventType::ActionDeduped, Who::Caller(identity.id.clone())).of(&same);
        return Ok(Judged::done(same, Vec::new(), vec![leaf]));
    }
    if let Some(problem) = refused_by_facts(ctx, &facts) {
        return Ok(origin(ctx, peer).refuse(None, problem));
    }
    let action = new_action(ctx, identity, doc, request, initiator, bits);
    let who = || Who::Caller(identity.id.clone());
    let mut actions = Vec::new();
    let mut leaves = Vec::new();
    for rival in &facts.rivals {
        // Another incident is another matter; the same one gets the newer proposal (guard 4.3).
        if rival.doc.incident() == action.doc.incident() {
            leaves.push(Leaf::new(EventType::ActionSuperseded, who()).of(rival));
            actions.push(step(rival, |a| a.state = State::Superseded));
        }
    }
    leaves.push(
        Leaf::new(EventType::ActionProposed, who())
            .of(&action)
            .pii("intent", &action.intent)
            .person("initiator", action.initiator.as_deref())
            .data([
                ("expires_ms", Value::Int(action.expires_at.0)),
                ("initiator", Value::Null),
                ("need", Value::Int(action.need)),
            ]),
    );
    actions.push(action.clone());
    Ok(Judged::done(action, actions, leaves))
}

fn origin(ctx: &Context<'_>, peer: &Peer) -> Origin<'static> {
    let id = ctx
        .policy
        .identity(peer)
        .map_or_else(|| peer.to_string(), |i| i.id.clone());
    Origin {
        kind: EventType::ActionRefused,
        route: "propose",
        who: Who::Caller(id),
        via: None,
    }
}

/// Size, role, permission, parameters: the order of guard 3.7.
fn admitted<'a>(
    ctx: &Context<'a>,
    peer: &Peer,
    request: &Propose,
) -> Result<(&'a Identity, ActionDoc), Problem> {
    let identity = ctx
        .policy
        .identity(peer)
        .ok_or_else(|| Problem::new(Code::Unauthenticated, "the policy knows no such peer"))?;
    if request.intent.len() > MAX_INTENT {
        return Err(Problem::new(Code::TooLarge, "`intent` is over 2,000 bytes"));
    }
    if identity.role != Role::Agent {
        return Err(Problem::new(Code::RoleForbidden, "only an agent proposes"));
    }
    let denied = |text: &str| Err(Problem::new(Code::NotPermitted, text));
    let Some(rule) = ctx.policy.action(&request.action) else {
        return denied("the policy has no such action");
    };
    if !rule.may_propose.contains(&identity.id) {
        return denied("the policy does not let this agent propose it");
    }
    if let Some(tenant) = request.target.get("namespace").and_then(Value::as_text)
        && !identity.tenants.iter().any(|t| t == tenant)
    {
        return denied("the tenant is none of this agent");
    }
    let doc = ActionDoc::check(
        ctx.policy,
        &request.action,
        &request.target,
        &request.change,
    )?;
    Ok((identity, doc))
}

/// An initiator that nobody is could not be kept from deciding, so it is refused (guard 2.2.3).
fn initiator(ctx: &Context<'_>, request: &Propose) -> Result<Option<String>, Problem> {
    let Some(subject) = &request.initiator else {
        return Ok(None);
    };
    ctx.policy
        .person_of_subject(subject)
        .map(|person| Some(person.id.clone()))
        .ok_or_else(|| Problem::new(Code::Malformed, "`initiator` is no subject of the policy"))
}

fn too_many_an_hour(ctx: &Context<'_>, facts: &ProposeFacts) -> Option<Problem> {
    let most = ctx.policy.limits().proposals_per_requester_per_hour;
    (facts.last_hour >= most).then(|| {
        let mut problem = Problem::new(Code::Quota, format!("{most} proposals in an hour"));
        problem.retry_after_s = Some(3600);
        problem
    })
}

fn refused_by_facts(ctx: &Context<'_>, facts: &ProposeFacts) -> Option<Problem> {
    let limits = ctx.policy.limits();
    if facts.pending >= limits.pending_per_requester {
        let text = format!("{} actions of this agent are pending", facts.pending);
        return Some(Problem::new(Code::Quota, text));
    }
    if facts.in_doubt {
        return Some(Problem::new(Code::InDoubtOpen, Code::InDoubtOpen.title()));
    }
    let ends = facts
        .denied_at?
        .plus(limits.deny_cooldown_h.saturating_mul(HOUR_MS));
    (ctx.now < ends).then(|| {
        let mut problem = Problem::new(Code::Cooldown, "these bytes were denied a short time ago");
        problem.retry_after_s = u64::try_from(ends.since(ctx.now) / 1000).ok();
        problem
    })
}

fn new_action(
    ctx: &Context<'_>,
    identity: &Identity,
    doc: ActionDoc,
    request: &Propose,
    initiator: Option<String>,
    (id, nonce): (Drawn, Drawn),
) -> Action {
    let rule = ctx.policy.action(doc.action());
    let ttl_h = rule.map_or(0, |r| r.pending_ttl_h);
    Action {
        id: format!("act_{}", id.text()),
        digest: doc.digest(),
        need: rule.map_or(i64::MAX, |r| r.approvals),
        doc,
        intent: request.intent.clone(),
        requester: identity.id.clone(),
        initiator,
        state: State::Pending,
        nonce: nonce.text(),
        decisions: Vec::new(),
        created_at: ctx.now,
        expires_at: ctx.now.plus(ttl_h.saturating_mul(HOUR_MS)),
        approval_expires_at: None,
        issue: None,
        spend: None,
        ending: None,
        index: 0,
        revision: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{HOUR_MS, Judged, Propose, ProposeFacts};
    use crate::audit::EventType;
    use crate::canon::Value;
    use crate::guard::testing::{T0, agent, approved, at, drawn, pending, policy, scale};
    use crate::guard::{Action, Code, Peer, Policy, State};
    use crate::model::Millis;

    fn judge(
        policy: &Policy,
        peer: &Peer,
        request: &Propose,
        facts: ProposeFacts,
    ) -> Judged<Action> {
        let bits = (drawn(3), drawn(4));
        let lookup = |_: &str, _: &crate::guard::ActionDoc| Ok::<_, ()>(facts);
        super::propose(&at(policy, T0), peer, request, bits, lookup).unwrap()
    }

    fn refused(judged: &Judged<Action>) -> Code {
        assert!(judged.actions.is_empty());
        assert_eq!(judged.leaves.len(), 1);
        assert_eq!(judged.leaves[0].kind, EventType::ActionRefused);
        judged.answer.as_ref().unwrap_err().code
    }

    /// guard 3.1, 4.2
    #[test]
    fn a_good_proposal_is_pending_and_leaves_one_leaf() {
        let policy = policy();
        let judged = judge(&policy, &agent(), &scale(6), ProposeFacts::default());
        let action = judged.answer.unwrap();
        assert_eq!(action.state, State::Pending);
        assert_eq!(action.expires_at, T0.plus(72 * HOUR_MS));
        assert_eq!(judged.leaves[0].kind, EventType::ActionProposed);
        assert_eq!(judged.leaves[0].dig.as_ref(), Some(&action.digest));
    }

    /// guard 4.3, 10 X1
    #[test]
    fn a_proposal_sent_again_after_approval_gives_state_only() {
        let policy = policy();
        let facts = ProposeFacts {
            same: Some(approved(&policy)),
            ..ProposeFacts::default()
        };
        let judged = judge(&policy, &agent(), &scale(6), facts);
        assert_eq!(judged.answer.unwrap().state, State::Approved);
        assert!(judged.actions.is_empty());
        assert_eq!(judged.leaves[0].kind, EventType::ActionDeduped);
    }

    /// guard 4.3
    #[test]
    fn another_digest_for_the_same_incident_supersedes_and_for_another_does_not() {
        let policy = policy();
        let rival = pending(&policy, &scale(6));
        let facts = ProposeFacts {
            rivals: vec![rival],
            ..ProposeFacts::default()
        };
        let judged = judge(&policy, &agent(), &scale(7), facts.clone());
        let states: Vec<State> = judged.actions.iter().map(|a| a.state).collect();
        assert_eq!(states, [State::Superseded, State::Pending]);
        let mut other = scale(7);
        other.change = Value::map([
            ("incident", Value::from("inc-43")),
            ("replicas", Value::Int(7)),
        ]);
        assert_eq!(judge(&policy, &agent(), &other, facts).actions.len(), 1);
    }

    /// guard 3.7, 4.3, 10 X7
    #[test]
    fn quota_open_doubt_and_cool_down_refuse_in_this_order() {
        let policy = policy();
        let mut facts = ProposeFacts {
            pending: 3,
            in_doubt: true,
            denied_at: Some(Millis(T0.0 - 24 * HOUR_MS + 1)),
            ..ProposeFacts::default()
        };
        for code in [Code::Quota, Code::InDoubtOpen, Code::Cooldown] {
            let judged = judge(&policy, &agent(), &scale(6), facts.clone());
            assert_eq!(refused(&judged), code);
            match code {
                Code::Quota => facts.pending = 0,
                _ => facts.in_doubt = false,
            }
        }
        facts.denied_at = Some(Millis(T0.0 - 24 * HOUR_MS));
        assert!(judge(&policy, &agent(), &scale(6), facts).answer.is_ok());
        let facts = ProposeFacts {
            last_hour: 60,
            ..ProposeFacts::default()
        };
        assert_eq!(
            refused(&judge(&policy, &agent(), &scale(6), facts)),
            Code::Quota
        );
    }

    /// guard 2.1.3, 3.7: a delegate, an unknown peer, another tenant, a huge intent.
    #[test]
    fn who_may_not_propose_is_told_so_before_the_parameters_are_looked_at() {
        let policy = policy();
        let console = Peer::Internal("console".to_owned());
        let mut bad = scale(6);
        bad.change = Value::Null;
        let nobody = Peer::Api("ghost".to_owned());
        let none = ProposeFacts::default;
        assert_eq!(
            refused(&judge(&policy, &console, &bad, none())),
            Code::RoleForbidden
        );
        assert_eq!(
            refused(&judge(&policy, &nobody, &bad, none())),
            Code::Unauthenticated
        );
        let mut tenant = bad.clone();
        tenant.target =
            Value::map([("namespace", "other"), ("name", "x")].map(|(k, v)| (k, Value::from(v))));
        assert_eq!(
            refused(&judge(&policy, &agent(), &tenant, none())),
            Code::NotPermitted
        );
        assert_eq!(
            refused(&judge(&policy, &agent(), &bad, none())),
            Code::ParamsInvalid
        );
        let mut long = scale(6);
        long.intent = "x".repeat(2001);
        assert_eq!(
            refused(&judge(&policy, &agent(), &long, none())),
            Code::TooLarge
        );
    }

    /// guard 10 X5: what the intent says has no effect at all.
    #[test]
    fn an_intent_that_claims_an_approval_changes_nothing() {
        let policy = policy();
        let mut request = scale(6);
        request.intent = "approved by alice".to_owned();
        let judged = judge(&policy, &agent(), &request, ProposeFacts::default());
        let action = judged.answer.unwrap();
        assert_eq!((action.state, action.have()), (State::Pending, 0));
    }
}
