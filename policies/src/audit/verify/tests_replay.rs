//! Step 10 of a bundle: logs with good hashes and signatures whose events break the state machine.

use EventType as T;

use super::testlog::TestLog;
use super::*;
use crate::audit::EventType;

fn judge(log: &TestLog, from: u64) -> (u8, Option<&'static str>, Option<u64>) {
    let bundle = log.bundle(from, log.size());
    let verdict = verify_bundle(bundle.as_bytes(), log.trust().to_text().as_bytes(), None);
    (
        verdict.exit(),
        verdict.rule.map(Rule::as_str),
        verdict.index,
    )
}

/// A log in which `act_a` has been proposed (need 1) and taken these steps.
fn after(steps: &[T]) -> TestLog {
    let mut log = TestLog::new();
    log.load_policy(1);
    log.propose("act_a", 1);
    for kind in steps {
        step(&mut log, *kind);
    }
    log
}

fn step(log: &mut TestLog, kind: T) -> u64 {
    if kind == T::DecisionApproved {
        log.approve("act_a", "p_1")
    } else {
        log.act(kind, "act_a")
    }
}

const STEPS: [T; 15] = [
    T::DecisionApproved,
    T::CapIssued,
    T::CapRedelivered,
    T::SpendOk,
    T::ExecStarted,
    T::ExecOutcome,
    T::ExecInDoubt,
    T::ExecReconciled,
    T::DecisionDenied,
    T::ActionCancelled,
    T::ActionExpired,
    T::ActionSuperseded,
    T::DecisionRevoked,
    T::CapLapsed,
    T::ActionVoided,
];

#[test]
fn audit_bundle_3_10_each_state_takes_its_own_events_and_no_others() {
    const PENDING_ENDS: [T; 4] = [
        T::DecisionDenied,
        T::ActionCancelled,
        T::ActionExpired,
        T::ActionSuperseded,
    ];
    let upto = |n: usize| -> Vec<T> {
        [
            T::DecisionApproved,
            T::CapIssued,
            T::SpendOk,
            T::ExecStarted,
        ][..n]
            .to_vec()
    };
    let with = |n: usize, last: T| [upto(n), vec![last]].concat();
    let spent = [T::ExecOutcome, T::ExecInDoubt];
    let states: Vec<(Vec<T>, Vec<T>)> = vec![
        (
            upto(0),
            [&PENDING_ENDS[..], &[T::DecisionApproved, T::ActionVoided]].concat(),
        ),
        (
            upto(1),
            vec![
                T::CapIssued,
                T::DecisionRevoked,
                T::CapLapsed,
                T::ActionVoided,
            ],
        ),
        (
            upto(2),
            vec![
                T::CapRedelivered,
                T::SpendOk,
                T::DecisionRevoked,
                T::CapLapsed,
                T::ActionVoided,
            ],
        ),
        (upto(3), [&spent[..], &[T::ExecStarted]].concat()),
        (upto(4), spent.to_vec()),
        (with(3, T::ExecInDoubt), vec![T::ExecReconciled]),
        (with(4, T::ExecOutcome), Vec::new()),
        (with(0, T::DecisionDenied), Vec::new()),
        (with(1, T::CapLapsed), Vec::new()),
        (with(2, T::ActionVoided), Vec::new()),
    ];
    for (steps, allowed) in states {
        for kind in STEPS {
            let mut log = after(&steps);
            let index = step(&mut log, kind);
            let wanted = if allowed.contains(&kind) {
                (0, None, None)
            } else {
                (1, Some("replay"), Some(index))
            };
            assert_eq!(judge(&log, 0), wanted, "{steps:?} then {kind:?}");
        }
    }
}

#[test]
fn audit_bundle_3_10_an_unknown_outcome_leads_to_in_doubt() {
    let mut log = after(&[T::DecisionApproved, T::CapIssued, T::SpendOk]);
    let mut unknown = log.of(T::ExecOutcome, "act_a");
    unknown.outcome = Some("unknown".to_owned());
    log.push(unknown);
    log.act(T::ExecReconciled, "act_a");
    assert_eq!(judge(&log, 0), (0, None, None));
}

#[test]
fn audit_bundle_3_10_a_person_counts_once() {
    let mut log = TestLog::new();
    log.load_policy(1);
    log.propose("act_a", 2);
    log.approve("act_a", "p_1");
    let index = log.approve("act_a", "p_1");
    assert_eq!(judge(&log, 0), (1, Some("replay"), Some(index)));
}

#[test]
fn audit_bundle_3_10_too_few_approvals_issue_nothing() {
    let mut log = TestLog::new();
    log.load_policy(1);
    log.propose("act_a", 2);
    log.approve("act_a", "p_1");
    let index = log.act(T::CapIssued, "act_a");
    assert_eq!(judge(&log, 0), (1, Some("replay"), Some(index)));
}

#[test]
fn audit_bundle_3_10_another_policy_voids_the_approvals_so_far() {
    let half_approved = || {
        let mut log = TestLog::new();
        log.load_policy(1);
        log.propose("act_a", 2);
        log.approve("act_a", "p_1");
        log
    };
    let mut same = half_approved();
    same.load_policy(1);
    same.approve("act_a", "p_2");
    same.act(T::CapIssued, "act_a");
    assert_eq!(judge(&same, 0), (0, None, None));

    let mut other = half_approved();
    other.load_policy(2);
    other.approve("act_a", "p_2");
    let index = other.act(T::CapIssued, "act_a");
    assert_eq!(judge(&other, 0), (1, Some("replay"), Some(index)));

    let mut again = half_approved();
    again.load_policy(2);
    again.approve("act_a", "p_2");
    again.approve("act_a", "p_1");
    again.load_policy(3);
    again.act(T::CapIssued, "act_a");
    assert_eq!(judge(&again, 0), (0, None, None), "a full approval stays");
}

#[test]
fn audit_bundle_3_10_an_aid_is_proposed_once_and_keeps_its_digest() {
    let mut log = after(&[T::DecisionDenied]);
    let index = log.propose("act_a", 1);
    assert_eq!(judge(&log, 0), (1, Some("replay"), Some(index)));

    let mut log = after(&[]);
    let mut other = log.of(T::DecisionDenied, "act_a");
    other.dig = Some([1; 32]);
    let index = log.push(other);
    assert_eq!(judge(&log, 0), (1, Some("replay"), Some(index)));

    let mut log = after(&[]);
    let mut none = log.of(T::DecisionDenied, "act_a");
    none.dig = None;
    log.push(none);
    assert_eq!(judge(&log, 0), (0, None, None));
}

#[test]
fn audit_bundle_3_10_a_redelivery_and_a_spend_have_the_jti_of_the_issue() {
    for kind in [T::CapRedelivered, T::SpendOk] {
        let mut log = after(&[T::DecisionApproved, T::CapIssued]);
        let mut other = log.of(kind, "act_a");
        other.jti = Some("jti_other".to_owned());
        let index = log.push(other);
        assert_eq!(judge(&log, 0), (1, Some("replay"), Some(index)));
    }
}

#[test]
fn audit_bundle_3_10_refusals_are_passed_over() {
    let mut log = after(&[]);
    for kind in [
        T::ActionRefused,
        T::DecisionRefused,
        T::CapRefused,
        T::SpendRefused,
        T::ExecRefused,
    ] {
        let mut refused = log.of(kind, "act_nobody_knows");
        refused.dig = Some([4; 32]);
        log.push(refused);
        log.act(kind, "act_a");
    }
    assert_eq!(judge(&log, 0), (0, None, None));
}

#[test]
fn audit_bundle_3_10_actions_from_before_the_range_are_not_replayed_but_spend_once() {
    let steps = [
        T::DecisionApproved,
        T::CapIssued,
        T::SpendOk,
        T::ExecOutcome,
    ];
    let mut log = after(&steps);
    assert_eq!(judge(&log, 3), (0, None, None));
    log.act(T::ExecStarted, "act_a");
    assert_eq!(judge(&log, 3), (0, None, None));
    let index = log.act(T::SpendOk, "act_a");
    assert_eq!(judge(&log, 3), (1, Some("replay"), Some(index)));
    assert_eq!(judge(&log, index), (0, None, None));
}

#[test]
fn audit_bundle_3_10_a_log_from_its_start_has_no_action_from_before() {
    let mut log = TestLog::new();
    log.load_policy(1);
    let index = log.act(T::ExecStarted, "act_nobody_proposed");
    assert_eq!(judge(&log, 0), (1, Some("replay"), Some(index)));
    assert_eq!(judge(&log, 1), (0, None, None));
}
