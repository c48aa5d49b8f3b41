use super::{SpendAnswer, SpendRequest, spend};
use crate::audit::EventType;
use crate::canon::{self, Value};
use crate::guard::judge::Evidence;
use crate::guard::judge::{
    Channel, Collect, Context, Judged, Outcome, Reconcile, collect, due, outcome, reconcile,
    restarted, started,
};
use crate::guard::testing::{T0, approved, at, change_of, console, drawn, holder, one, policy};
use crate::guard::{
    Action, Capability, Code, Ending, HolderKey, Policy, Purpose, State, TrustedKey,
};
use crate::model::Millis;
use p256::ecdsa::SigningKey;

fn cap_key() -> SigningKey {
    SigningKey::from_slice(&[5; 32]).unwrap()
}

fn keys() -> Vec<TrustedKey> {
    vec![TrustedKey::new(*cap_key().verifying_key())]
}

fn channel() -> Channel {
    Channel {
        job: "job-1".to_owned(),
        fence: 7,
    }
}

fn ask(action: &Action, key: &HolderKey, channel: &Channel) -> Collect {
    Collect {
        job: channel.job.clone(),
        fence: channel.fence,
        proof: key.prove(
            Purpose::Collect { aid: &action.id },
            &channel.job,
            channel.fence,
        ),
    }
}

struct Issued {
    policy: Policy,
    action: Action,
    token: String,
}

fn issued() -> Issued {
    let policy = policy();
    let action = approved(&policy);
    let request = ask(&action, &holder(), &channel());
    let mut judged = collect(&at(&policy, T0), &channel(), &action, &request, 7, drawn(6));
    let action = judged.actions.remove(0);
    let token = Capability::mint(judged.answer.unwrap(), &cap_key()).into_token();
    Issued {
        policy,
        action,
        token: token.to_string(),
    }
}

fn request(issued: &Issued) -> SpendRequest {
    let jti = issued.action.issue.as_ref().unwrap().claims.jti.clone();
    let purpose = Purpose::Spend {
        jti: &jti,
        token: &issued.token,
    };
    SpendRequest {
        capability: issued.token.clone(),
        action: "scale".to_owned(),
        target: issued.action.doc.target_value(),
        change: Value::Map(change_of(&issued.action)),
        job: "job-1".to_owned(),
        fence: 7,
        proof: holder().prove(purpose, "job-1", 7),
    }
}

fn judge(
    ctx: &Context<'_>,
    channel: &Channel,
    request: &SpendRequest,
    action: &Action,
) -> Judged<SpendAnswer> {
    let lookup = |_: &str| Ok::<_, ()>(Some((action.clone(), 7)));
    spend(ctx, channel, &keys(), request, lookup).unwrap()
}

fn refused<A>(judged: &Judged<A>) -> (Code, Option<u8>) {
    assert!(judged.actions.is_empty(), "a refusal changed an action");
    assert_eq!(judged.leaves.len(), 1, "a refusal leaves one leaf");
    match &judged.answer {
        Ok(_) => panic!("not refused"),
        Err(problem) => (problem.code, problem.rule),
    }
}

fn spent() -> (Issued, Action) {
    let issued = issued();
    let judged = judge(
        &at(&issued.policy, T0),
        &channel(),
        &request(&issued),
        &issued.action,
    );
    (issued, one(judged))
}

/// guard 5.3, 7.2
#[test]
fn a_capability_is_spent_once_for_exactly_its_document() {
    let issued = issued();
    let judged = judge(
        &at(&issued.policy, T0),
        &channel(),
        &request(&issued),
        &issued.action,
    );
    assert_eq!(judged.leaves[0].kind, EventType::SpendOk);
    assert_eq!(judged.actions[0].state, State::Spent);
    let Ok(SpendAnswer::Fresh(grant)) = &judged.answer else {
        panic!("not granted")
    };
    assert_eq!(grant.doc(), &issued.action.doc);
    assert_eq!(grant.effect_deadline(), T0.plus(120_000));
}

/// guard 7.4, 10 P1
#[test]
fn a_replayed_capability_is_refused_once_the_effect_has_started_or_for_anything_else() {
    let (issued, action) = spent();
    let ctx = at(&issued.policy, T0);
    let same = judge(&ctx, &channel(), &request(&issued), &action);
    assert!(matches!(same.answer, Ok(SpendAnswer::Recorded(_))));
    assert!(same.actions.is_empty() && same.leaves.is_empty());
    let mut other = request(&issued);
    other.change = Value::map([
        ("incident", Value::from("inc-42")),
        ("replicas", Value::Int(7)),
    ]);
    assert_eq!(
        refused(&judge(&ctx, &channel(), &other, &action)).0,
        Code::AlreadySpent
    );
    let begun = one(started(&ctx, &channel(), Some(&action), "job-1", 7));
    let again = judge(&ctx, &channel(), &request(&issued), &begun);
    assert_eq!(refused(&again).0, Code::AlreadySpent);
}

/// guard 5.3.6, 10 P3, T7
#[test]
fn other_parameters_than_the_approved_ones_run_nothing() {
    let issued = issued();
    let ctx = at(&issued.policy, T0);
    let good = request(&issued);
    let mut more = good.clone();
    more.change = Value::map([
        ("incident", Value::from("inc-42")),
        ("replicas", Value::Int(40)),
    ]);
    let mut incident = good.clone();
    incident.change = Value::map([
        ("incident", Value::from("inc-43")),
        ("replicas", Value::Int(6)),
    ]);
    let mut target = good.clone();
    target.target =
        Value::map([("namespace", "acme"), ("name", "basket")].map(|(k, v)| (k, Value::from(v))));
    let mut tenant = good.clone();
    tenant.target = Value::map(
        [("namespace", "payments-core"), ("name", "checkout")].map(|(k, v)| (k, Value::from(v))),
    );
    let mut unknown = good.clone();
    unknown.action = "rm".to_owned();
    for (request, what) in [
        (more, "size"),
        (incident, "incident"),
        (target, "target"),
        (tenant, "tenant"),
        (unknown, "action"),
    ] {
        let judged = judge(&ctx, &channel(), &request, &issued.action);
        assert_eq!(refused(&judged).0, Code::ParamsMismatch, "{what}");
    }
}

/// guard 5.1.3, 10 P4, P5
#[test]
fn one_parameter_more_or_a_parameter_of_another_type_is_invalid() {
    let issued = issued();
    let ctx = at(&issued.policy, T0);
    for change in [
        r#"{"incident":"inc-42","replicas":6,"force":true}"#,
        r#"{"incident":"inc-42","replicas":"6"}"#,
    ] {
        let limits = canon::Limits {
            max_bytes: 1024,
            max_depth: 4,
        };
        let mut bad = request(&issued);
        bad.change = canon::parse(change.as_bytes(), limits).unwrap();
        assert_eq!(
            refused(&judge(&ctx, &channel(), &bad, &issued.action)).0,
            Code::ParamsInvalid
        );
    }
}

/// guard 5.3.7, 10 X3
#[test]
fn a_stolen_capability_without_the_key_of_its_holder_is_worth_nothing() {
    let issued = issued();
    let ctx = at(&issued.policy, T0);
    let thief = HolderKey::from_random(&[8; 32]).unwrap();
    let jti = issued.action.issue.as_ref().unwrap().claims.jti.clone();
    let purpose = Purpose::Spend {
        jti: &jti,
        token: &issued.token,
    };
    let mut stolen = request(&issued);
    stolen.proof = thief.prove(purpose, "job-1", 7);
    assert_eq!(
        refused(&judge(&ctx, &channel(), &stolen, &issued.action)).0,
        Code::HolderMismatch
    );
    stolen.proof = String::new();
    assert_eq!(
        refused(&judge(&ctx, &channel(), &stolen, &issued.action)).0,
        Code::HolderMismatch
    );
}

/// guard 5.3.6, 10 C1
#[test]
fn a_capability_ends_on_its_second_and_no_clock_brings_it_back() {
    let issued = issued();
    let exp = issued.action.issue.as_ref().unwrap().claims.exp;
    let good = request(&issued);
    let last = at(&issued.policy, Millis(exp * 1000 - 1));
    assert!(
        judge(&last, &channel(), &good, &issued.action)
            .answer
            .is_ok()
    );
    let over = at(&issued.policy, Millis(exp * 1000));
    assert_eq!(
        refused(&judge(&over, &channel(), &good, &issued.action)).0,
        Code::Expired
    );
    let mut keeper = crate::guard::Timekeeper::start(
        Millis(exp * 1000),
        crate::guard::Reading {
            wall: T0,
            boot_ms: 0,
        },
    );
    let now = keeper.now(crate::guard::Reading {
        wall: T0,
        boot_ms: 1,
    });
    let back = at(&issued.policy, now);
    assert_eq!(
        refused(&judge(&back, &channel(), &good, &issued.action)).0,
        Code::Expired
    );
    let (lapsed, leaf) = due(Millis(exp * 1000), &issued.action).unwrap();
    assert_eq!(
        (lapsed.state, leaf.kind),
        (State::Lapsed, EventType::CapLapsed)
    );
    assert_eq!(
        refused(&judge(&over, &channel(), &good, &lapsed)).0,
        Code::Expired
    );
}

/// guard 5.3.5, 2.4.2
#[test]
fn a_capability_of_another_epoch_incarnation_or_policy_fails_rule_five() {
    let issued = issued();
    let good = request(&issued);
    let mut epoch = at(&issued.policy, T0);
    epoch.epoch = 2;
    let mut inc = at(&issued.policy, T0);
    inc.inc = 2;
    let text = crate::guard::testing::POLICY.replace("max = 50", "max = 51");
    let other = Policy::parse(&text).unwrap();
    for ctx in [epoch, inc, at(&other, T0)] {
        let judged = judge(&ctx, &channel(), &good, &issued.action);
        assert_eq!(refused(&judged), (Code::CapabilityInvalid, Some(5)));
    }
    let unknown = spend(&at(&issued.policy, T0), &channel(), &keys(), &good, |_| {
        Ok::<_, ()>(None)
    });
    assert_eq!(
        refused(&unknown.unwrap()),
        (Code::CapabilityInvalid, Some(5))
    );
}

/// guard 7.3, 10 C3
#[test]
fn a_worker_whose_lease_was_taken_over_spends_nothing() {
    let issued = issued();
    let ctx = at(&issued.policy, T0);
    let good = request(&issued);
    let lookup = |_: &str| Ok::<_, ()>(Some((issued.action.clone(), 8)));
    let judged = spend(&ctx, &channel(), &keys(), &good, lookup).unwrap();
    assert_eq!(refused(&judged).0, Code::StaleFence);
    let low = Channel {
        fence: 6,
        ..channel()
    };
    let mut old = good.clone();
    old.fence = 6;
    assert_eq!(
        refused(&judge(&ctx, &low, &old, &issued.action)).0,
        Code::StaleFence
    );
    let high = Channel {
        fence: 8,
        ..channel()
    };
    let mut new = good.clone();
    new.fence = 8;
    assert_eq!(
        refused(&judge(&ctx, &high, &new, &issued.action)).0,
        Code::HolderMismatch
    );
    let mut lied = good;
    lied.job = "job-2".to_owned();
    assert_eq!(
        refused(&judge(&ctx, &channel(), &lied, &issued.action)).0,
        Code::HolderMismatch
    );
}

/// guard 4.7
#[test]
fn a_hold_stops_issue_and_spend() {
    let issued = issued();
    let mut ctx = at(&issued.policy, T0);
    ctx.on_hold = true;
    assert_eq!(
        refused(&judge(&ctx, &channel(), &request(&issued), &issued.action)).0,
        Code::OnHold
    );
    let action = approved(&issued.policy);
    let asked = ask(&action, &holder(), &channel());
    let judged = collect(&ctx, &channel(), &action, &asked, 7, drawn(6));
    assert_eq!(refused(&judged).0, Code::OnHold);
}

/// guard 3.1, 5.2
#[test]
fn a_capability_is_issued_once_and_delivered_again_to_the_same_holder_only() {
    let issued = issued();
    let ctx = at(&issued.policy, T0);
    let again = collect(
        &ctx,
        &channel(),
        &issued.action,
        &ask(&issued.action, &holder(), &channel()),
        7,
        drawn(7),
    );
    assert_eq!(again.leaves[0].kind, EventType::CapRedelivered);
    let token = Capability::mint(again.answer.unwrap(), &cap_key()).into_token();
    assert_eq!(*token, issued.token, "the same claims are signed again");
    let thief = HolderKey::from_random(&[8; 32]).unwrap();
    let judged = collect(
        &ctx,
        &channel(),
        &issued.action,
        &ask(&issued.action, &thief, &channel()),
        7,
        drawn(7),
    );
    assert_eq!(refused(&judged).0, Code::AlreadyIssued);
    let bad = Collect {
        proof: "x".to_owned(),
        ..ask(&issued.action, &holder(), &channel())
    };
    let judged = collect(&ctx, &channel(), &issued.action, &bad, 7, drawn(7));
    assert_eq!(refused(&judged).0, Code::HolderMismatch);
}

/// guard 1.5: what is stored is judged anew.
#[test]
fn a_stored_state_of_approved_without_the_decisions_behind_it_issues_nothing() {
    let policy = policy();
    let mut forged = approved(&policy);
    forged.decisions.clear();
    let judged = collect(
        &at(&policy, T0),
        &channel(),
        &forged,
        &ask(&forged, &holder(), &channel()),
        0,
        drawn(6),
    );
    assert_eq!(refused(&judged).0, Code::WrongState);
    let mut edited = approved(&policy);
    edited.digest = "A".repeat(43);
    let judged = collect(
        &at(&policy, T0),
        &channel(),
        &edited,
        &ask(&edited, &holder(), &channel()),
        0,
        drawn(6),
    );
    assert_eq!(refused(&judged).0, Code::WrongState);
}

/// guard 7.3: a first collect below the highest known fence.
#[test]
fn a_first_collect_with_an_old_fence_is_stale() {
    let policy = policy();
    let action = approved(&policy);
    let judged = collect(
        &at(&policy, T0),
        &channel(),
        &action,
        &ask(&action, &holder(), &channel()),
        8,
        drawn(6),
    );
    assert_eq!(refused(&judged).0, Code::StaleFence);
}

fn ended(word: &str) -> Outcome {
    Outcome {
        job: "job-1".to_owned(),
        fence: 7,
        ending: Ending {
            outcome: word.to_owned(),
            code: "ok".to_owned(),
            evidence_sha256: None,
        },
    }
}

/// guard 7.6
#[test]
fn an_outcome_is_recorded_once_and_an_unknown_one_asks_a_person() {
    let (_, action) = spent();
    for (word, state) in [
        ("succeeded", State::Succeeded),
        ("failed", State::Failed),
        ("unknown", State::InDoubt),
    ] {
        let done = one(outcome(&channel(), Some(&action), &ended(word)));
        assert_eq!(done.state, state);
        let same = outcome(&channel(), Some(&done), &ended(word));
        assert!(same.answer.is_ok() && same.leaves.is_empty());
    }
    let done = one(outcome(&channel(), Some(&action), &ended("failed")));
    let other = outcome(&channel(), Some(&done), &ended("succeeded"));
    assert_eq!(refused(&other).0, Code::WrongState);
    assert_eq!(
        refused(&outcome(&channel(), Some(&action), &ended("great"))).0,
        Code::Malformed
    );
    assert_eq!(
        refused(&outcome(&channel(), None, &ended("failed"))).0,
        Code::NotFound
    );
    let stranger = Channel {
        job: "job-2".to_owned(),
        fence: 7,
    };
    assert_eq!(
        refused(&outcome(&stranger, Some(&action), &ended("failed"))).0,
        Code::HolderMismatch
    );
}

/// guard 7.1, 7.6
#[test]
fn after_a_restart_or_the_deadline_a_spent_action_is_in_doubt() {
    let (issued, action) = spent();
    let (doubt, leaf) = restarted(&action).unwrap();
    assert_eq!(
        (doubt.state, leaf.kind),
        (State::InDoubt, EventType::ExecInDoubt)
    );
    let deadline = action.spend.as_ref().unwrap().effect_deadline;
    assert!(due(deadline.plus(-1), &action).is_none());
    assert_eq!(due(deadline, &action).unwrap().0.state, State::InDoubt);
    let late = outcome(&channel(), Some(&doubt), &ended("succeeded"));
    assert_eq!(refused(&late).0, Code::WrongState);
    assert!(
        restarted(&issued.action).is_none(),
        "an issued action is not in doubt"
    );
}

/// guard 7.7
#[test]
fn a_permitted_person_closes_what_is_in_doubt() {
    let (issued, action) = spent();
    let (doubt, _) = restarted(&action).unwrap();
    let ctx = at(&issued.policy, T0);
    let mut request = Reconcile {
        succeeded: true,
        approver: Some("local:ben".to_owned()),
        reason: "looked at the link".to_owned(),
        evidence_sha256: None,
        evidence: Evidence::None,
    };
    let closed = one(reconcile(&ctx, &console(), &doubt, &request));
    assert_eq!(closed.state, State::ReconciledSucceeded);
    assert_eq!(
        refused(&reconcile(&ctx, &console(), &action, &request)).0,
        Code::WrongState
    );
    request.approver = Some("local:carol".to_owned());
    assert_eq!(
        refused(&reconcile(&ctx, &console(), &doubt, &request)).0,
        Code::NotPermitted
    );
    let mut chosen = doubt;
    chosen.initiator = Some("ben".to_owned());
    request.approver = Some("local:ben".to_owned());
    assert_eq!(
        refused(&reconcile(&ctx, &console(), &chosen, &request)).0,
        Code::SelfDecision
    );
}
