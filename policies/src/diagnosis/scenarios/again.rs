//! A second fault soon after another one that was repaired.

use super::cases::{BREAK, LOOKUP, cleared, show, text};
use super::world::{SECONDS, World, at};
use crate::model::{AlertStatus, CauseClass, RemediationClass};

/// When the first fault was there: longer than the quiet between the two.
const FIRST: std::ops::Range<i64> = -320..-60;

/// `ledger` was down and came back; two minutes later a release of `till` fails. The site is
/// watched since `begin`.
fn after_a_repair(begin: i64) -> World {
    let mut world = World::since(begin);
    world.alert("till", BREAK + 6, AlertStatus::Firing);
    let fails = |s: i64| match s {
        _ if FIRST.contains(&s) => 0.7,
        _ if s > BREAK => 0.4,
        _ => 0.0,
    };
    let down = |s: i64| if FIRST.contains(&s) { 1.0 } else { 0.0 };
    for instance in ["till-1", "till-2"] {
        world.serves(instance, begin..SECONDS, |_| 18.0, fails, "500", |_| 0.03);
        world.calls(instance, "ledger", 14.0, down);
        world.calls(instance, "depot", 18.0, |_| 0.0);
    }
    world.well("depot-1", 36.0);
    world.well("ledger-1", 36.0);
    world.unit(FIRST.start, "ledger-1", "killed", "failed");
    world.unit(FIRST.end, "ledger-1", "started", "active");
    for second in FIRST.filter(|s| *s >= begin) {
        let refused = "UpstreamError: ledger /charge: [Errno 111] Connection refused";
        world.error(second, "till-1", refused, &[]);
    }
    for second in BREAK + 1..SECONDS {
        let frames = [("orders.py", 30, "total"), ("orders.py", 24, "wrap_price")];
        world.error(second, "till-1", "KeyError: 'ribbon'", &frames);
    }
    world.deploy("d2", "till", BREAK, ("1.0.0", "1.1.0"), "orders.py", LOOKUP);
    world
}

#[test]
fn a_second_fault_is_dated_by_itself_and_its_own_deploy_is_rolled_back() {
    // The record begins before the first fault, or in the middle of it.
    for begin in [-400, -300] {
        let (diagnosis, clearance) = after_a_repair(begin).judge();
        let shown = show(&diagnosis);
        let onset = diagnosis.onset.as_ref().unwrap();
        assert!(onset.at >= at(BREAK), "{}: {shown}", onset.at);
        assert_eq!(
            diagnosis.verdict.cause_class,
            CauseClass::BadDeploy,
            "{shown}"
        );
        assert_eq!(diagnosis.verdict.culprit.id, "d2", "{shown}");
        let proposal = cleared(&clearance);
        assert_eq!(proposal.class(), RemediationClass::Rollback);
        assert_eq!(proposal.change().get("to"), Some(&text("1.0.0")));
    }
}

#[test]
fn a_deploy_between_two_faults_is_not_blamed_for_the_second_by_nearness() {
    let mut world = after_a_repair(-400);
    world.deploys.clear();
    let words = ("@@ -1,1 +1,1 @@", &["-# prices", "+# all prices"][..]);
    world.deploy("d1", "till", -20, ("1.0.0", "1.0.1"), "pool.py", words);
    let (diagnosis, _) = world.judge();
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::Inconclusive,
        "{}",
        show(&diagnosis)
    );
}

#[test]
fn errors_that_had_stopped_are_dated_by_their_second_coming() {
    let mut world = after_a_repair(-400);
    world.series.clear();
    let (diagnosis, _) = world.judge();
    let onset = diagnosis.onset.as_ref().unwrap();
    assert!(onset.at >= at(BREAK), "{}: {}", onset.at, show(&diagnosis));
}
