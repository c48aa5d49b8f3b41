use super::{Decider, Evidence, Withdraw, cancel, decide, revoke};
use crate::audit::EventType;
use crate::canon::Value;
use crate::guard::judge::{Judged, due, policy_changed};
use crate::guard::testing::{
    T0, agent, approved, at, console, decision, drawn, one, pending, policy, propose, scale,
};
use crate::guard::{Action, Code, Decision, Peer, Policy, State, Verdict};

fn refused<A>(judged: &Judged<A>) -> Code {
    assert!(judged.actions.is_empty(), "a refusal changed an action");
    assert_eq!(judged.leaves.len(), 1, "a refusal leaves one leaf");
    match &judged.answer {
        Ok(_) => panic!("not refused"),
        Err(problem) => problem.code,
    }
}

fn approve(policy: &Policy, action: &Action, subject: &str) -> Judged<(Action, Decision)> {
    decide(
        &at(policy, T0),
        &console(),
        action,
        &decision(action, subject, Verdict::Approve),
    )
}

/// guard 4.2, 4.8
#[test]
fn an_approval_is_recorded_with_its_leaf_and_its_window_ends_on_a_whole_second() {
    let policy = policy();
    let judged = approve(&policy, &pending(&policy, &scale(6)), "local:alice");
    assert_eq!(judged.leaves[0].kind, EventType::DecisionApproved);
    assert_eq!(judged.leaves[0].via.as_deref(), Some("console"));
    let action = one(judged);
    assert_eq!(action.state, State::Approved);
    let end = action.approval_expires_at.unwrap().0;
    assert_eq!(end % 1000, 0);
    assert!(end <= T0.0 + 600_000 && end > T0.0 + 599_000);
}

/// guard 2.2.3, 10 H1
#[test]
fn the_requester_never_approves_its_own_action() {
    let policy = policy();
    let action = pending(&policy, &scale(6));
    let request = decision(&action, "local:alice", Verdict::Approve);
    for verdict in [Verdict::Approve, Verdict::Deny] {
        let mut request = request.clone();
        request.verdict = verdict;
        let judged = decide(&at(&policy, T0), &Decider::Peer(agent()), &action, &request);
        assert_eq!(refused(&judged), Code::SelfDecision);
        assert_eq!(judged.leaves[0].kind, EventType::DecisionRefused);
    }
}

/// guard 2.2.3
#[test]
fn the_person_who_chose_the_action_does_not_decide_about_it() {
    let policy = policy();
    let mut request = scale(6);
    request.initiator = Some("local:alice".to_owned());
    let action = pending(&policy, &request);
    assert_eq!(
        refused(&approve(&policy, &action, "local:alice")),
        Code::SelfDecision
    );
    assert_eq!(
        refused(&approve(&policy, &action, "oidc:corp:7f31c0")),
        Code::SelfDecision
    );
    assert!(approve(&policy, &action, "local:ben").answer.is_ok());
}

/// guard 2.2.4, 10 H3
#[test]
fn who_is_no_delegate_names_nobody_else() {
    let policy = policy();
    let action = pending(&policy, &scale(6));
    let ben = Decider::Person("ben".to_owned());
    let mut request = decision(&action, "local:alice", Verdict::Approve);
    let judged = decide(&at(&policy, T0), &ben, &action, &request);
    assert_eq!(refused(&judged), Code::NotPermitted);
    request.approver = None;
    assert!(
        decide(&at(&policy, T0), &ben, &action, &request)
            .answer
            .is_ok()
    );
    let judged = decide(&at(&policy, T0), &console(), &action, &request);
    assert_eq!(refused(&judged), Code::Malformed);
}

/// guard 2.4.1: default deny.
#[test]
fn a_person_outside_the_groups_and_a_subject_that_nobody_has_decide_nothing() {
    let policy = policy();
    let action = pending(&policy, &scale(6));
    for subject in ["local:carol", "local:mallory", "alice"] {
        assert_eq!(
            refused(&approve(&policy, &action, subject)),
            Code::NotPermitted,
            "{subject}"
        );
    }
}

/// guard 2.2.1, 2.2.5
#[test]
fn two_approvals_must_be_of_two_people_whatever_their_subjects() {
    let policy = policy();
    let action = pending(
        &policy,
        &propose("drain", [("incident", Value::from("inc-42"))]),
    );
    let first = one(approve(&policy, &action, "local:alice"));
    assert_eq!((first.state, first.have()), (State::Pending, 1));
    let again = approve(&policy, &first, "oidc:corp:7f31c0");
    assert!(
        again.actions.is_empty() && again.leaves.is_empty(),
        "a repeat counts once"
    );
    let second = one(approve(&policy, &first, "local:ben"));
    assert_eq!((second.state, second.have()), (State::Approved, 2));
}

/// guard 2.2.5
#[test]
fn the_last_approval_is_kept_for_a_group_that_must_be_included() {
    let text = crate::guard::testing::POLICY.replace(
        "subjects = [\"local:carol\"], groups = []",
        "subjects = [\"local:carol\"], groups = [\"oncall\"]",
    );
    let policy = Policy::parse(&text).unwrap();
    let action = pending(
        &policy,
        &propose("drain", [("incident", Value::from("inc-42"))]),
    );
    let first = one(approve(&policy, &action, "local:alice"));
    assert_eq!(
        refused(&approve(&policy, &first, "local:carol")),
        Code::NotPermitted
    );
    assert!(approve(&policy, &first, "local:ben").answer.is_ok());
}

/// guard 4.1, 2.2.5, 10 H4
#[test]
fn an_approval_after_a_denial_is_refused_with_the_recorded_outcome() {
    let policy = policy();
    let action = pending(&policy, &scale(6));
    let deny = decision(&action, "local:ben", Verdict::Deny);
    let denied = one(decide(&at(&policy, T0), &console(), &action, &deny));
    assert_eq!(denied.state, State::Denied);
    let judged = approve(&policy, &denied, "local:alice");
    assert_eq!(refused(&judged), Code::WrongState);
    let problem = judged.answer.unwrap_err();
    assert_eq!(problem.recorded_outcome.as_deref(), Some("deny"));
    assert_eq!(problem.state, Some(State::Denied));
}

/// guard 4.2, 10 H5
#[test]
fn an_approval_one_millisecond_before_expiry_is_recorded_and_at_expiry_or_after_is_not() {
    let policy = policy();
    let action = pending(&policy, &scale(6));
    for (offset, good) in [(-1, true), (0, false), (1, false)] {
        let now = action.expires_at.plus(offset);
        let current = due(now, &action).map_or_else(|| action.clone(), |(next, _)| next);
        let request = decision(&current, "local:alice", Verdict::Approve);
        let judged = decide(&at(&policy, now), &console(), &current, &request);
        if good {
            assert_eq!(one(judged).state, State::Approved);
        } else {
            assert_eq!(refused(&judged), Code::Expired);
        }
    }
}

/// guard 4.3, 10 H6
#[test]
fn a_digest_seen_before_a_new_proposal_approves_nothing() {
    let policy = policy();
    let (old, new) = (pending(&policy, &scale(6)), pending(&policy, &scale(7)));
    let seen = decision(&old, "local:alice", Verdict::Approve);
    let judged = decide(&at(&policy, T0), &console(), &new, &seen);
    assert_eq!(refused(&judged), Code::DigestMismatch);
    let mut superseded = old;
    superseded.state = State::Superseded;
    let judged = decide(&at(&policy, T0), &console(), &superseded, &seen);
    assert_eq!(refused(&judged), Code::WrongState);
}

/// guard 2.4.2, 10 H7
#[test]
fn an_approval_given_under_the_old_policy_is_not_counted_under_the_new() {
    let policy = policy();
    let action = pending(
        &policy,
        &propose("drain", [("incident", Value::from("inc-42"))]),
    );
    let first = one(approve(&policy, &action, "local:alice"));
    let (after, _) = policy_changed(&first, drawn(8)).unwrap();
    assert_eq!((after.state, after.have()), (State::Pending, 0));
    assert_ne!(after.nonce, first.nonce);
    let (revoked, _) = policy_changed(&approved(&policy), drawn(8)).unwrap();
    assert_eq!(revoked.state, State::Revoked);
}

/// guard 4.4
#[test]
fn a_repeated_decision_returns_the_recorded_one_and_another_answer_is_refused() {
    let policy = policy();
    let action = pending(
        &policy,
        &propose("drain", [("incident", Value::from("inc-42"))]),
    );
    let first = one(approve(&policy, &action, "local:alice"));
    let mut again = decision(&first, "local:alice", Verdict::Approve);
    again.digest = "anything".to_owned();
    again.evidence = Evidence::Local { holds: false };
    let judged = decide(&at(&policy, T0), &console(), &first, &again);
    assert!(judged.leaves.is_empty() && judged.answer.is_ok());
    let deny = decision(&first, "local:alice", Verdict::Deny);
    let judged = decide(&at(&policy, T0), &console(), &first, &deny);
    assert_eq!(refused(&judged), Code::AlreadyDecided);
    let done = one(approve(
        &policy,
        &pending(&policy, &scale(6)),
        "local:alice",
    ));
    assert!(approve(&policy, &done, "local:alice").answer.is_ok());
}

/// guard 2.2.2
#[test]
fn an_action_that_asks_a_code_is_not_approved_without_one_but_is_denied() {
    let policy = policy();
    let action = pending(
        &policy,
        &propose("restart", [("incident", Value::from("inc-42"))]),
    );
    let ctx = at(&policy, T0);
    let mut request = decision(&action, "local:alice", Verdict::Approve);
    assert_eq!(
        refused(&decide(&ctx, &console(), &action, &request)),
        Code::AssuranceTooLow
    );
    request.evidence = Evidence::Local { holds: false };
    assert_eq!(
        refused(&decide(&ctx, &console(), &action, &request)),
        Code::EvidenceInvalid
    );
    request.evidence = Evidence::Local { holds: true };
    let judged = decide(&ctx, &console(), &action, &request);
    assert!(judged.code_used);
    assert_eq!(one(judged).state, State::Approved);
    let deny = decision(&action, "local:alice", Verdict::Deny);
    assert_eq!(
        one(decide(&ctx, &console(), &action, &deny)).state,
        State::Denied
    );
}

/// guard 2.4 (the example's comment), operations 2.6
#[test]
fn the_control_socket_approves_with_a_code_only() {
    let policy = policy();
    let action = pending(&policy, &scale(6));
    let control = Decider::Peer(Peer::Internal("control".to_owned()));
    let request = decision(&action, "local:alice", Verdict::Approve);
    let judged = decide(&at(&policy, T0), &control, &action, &request);
    assert_eq!(refused(&judged), Code::AssuranceTooLow);
}

/// guard 4.7
#[test]
fn a_hold_stops_approvals_and_not_denials() {
    let policy = policy();
    let action = pending(&policy, &scale(6));
    let mut ctx = at(&policy, T0);
    ctx.on_hold = true;
    let yes = decision(&action, "local:alice", Verdict::Approve);
    assert_eq!(
        refused(&decide(&ctx, &console(), &action, &yes)),
        Code::OnHold
    );
    let no = decision(&action, "local:alice", Verdict::Deny);
    assert_eq!(
        one(decide(&ctx, &console(), &action, &no)).state,
        State::Denied
    );
}

/// guard 9.1.2
#[test]
fn behind_a_regressed_clock_nothing_is_approved() {
    let policy = policy();
    let action = pending(&policy, &scale(6));
    let mut ctx = at(&policy, T0);
    ctx.blocked = Some(Code::ClockRegressed);
    let yes = decision(&action, "local:alice", Verdict::Approve);
    assert_eq!(
        refused(&decide(&ctx, &console(), &action, &yes)),
        Code::ClockRegressed
    );
}

/// guard 3.1: cancel is the requester's while pending, revoke a permitted person's afterwards.
#[test]
fn a_pending_action_is_cancelled_and_an_approved_one_is_revoked() {
    let policy = policy();
    let ctx = at(&policy, T0);
    let action = pending(&policy, &scale(6));
    assert_eq!(one(cancel(&ctx, &agent(), &action)).state, State::Cancelled);
    let console_peer = Peer::Internal("console".to_owned());
    assert_eq!(
        refused(&cancel(&ctx, &console_peer, &action)),
        Code::RoleForbidden
    );
    let done = approved(&policy);
    assert_eq!(refused(&cancel(&ctx, &agent(), &done)), Code::WrongState);
    let mut request = Withdraw {
        approver: Some("local:ben".to_owned()),
        reason: "no longer needed".to_owned(),
    };
    assert_eq!(
        one(revoke(&ctx, &console(), &done, &request)).state,
        State::Revoked
    );
    assert_eq!(
        refused(&revoke(&ctx, &console(), &action, &request)),
        Code::WrongState
    );
    request.approver = Some("local:carol".to_owned());
    assert_eq!(
        refused(&revoke(&ctx, &console(), &done, &request)),
        Code::NotPermitted
    );
    request.reason = String::new();
    assert_eq!(
        refused(&revoke(&ctx, &console(), &done, &request)),
        Code::Malformed
    );
}
