//! What the rules make of the incidents.

use super::world::{SECONDS, World};
use crate::claim::Proposal;
use crate::diagnosis::{CulpritKind, Diagnosis, ParamValue, ToolFailure};
use crate::interlocks::Clearance;
use crate::model::{AlertStatus, CauseClass, DeployStatus, RemediationClass};

/// The second in which things break.
pub(super) const BREAK: i64 = 70;

const TABLE: (&str, &[&str]) = (
    "@@ -3,5 +3,4 @@",
    &[
        " PRICES = {\"tea\": 450}",
        "-WRAPS = {\"paper\": 250}",
        "-WRAP_DEFAULT = 250",
        "+WRAPS = {\"paper\": (250, \"Kraft paper\")}",
    ],
);

pub(super) const LOOKUP: (&str, &[&str]) = (
    "@@ -22,4 +22,5 @@ def wrap_price(wrap):",
    &[
        "     if not wrap:",
        "         return 0",
        "-    return WRAPS.get(wrap, WRAP_DEFAULT)",
        "+    cents, _label = WRAPS[wrap]",
        "+    return cents",
    ],
);

pub(super) fn cleared(clearance: &Clearance) -> &Proposal {
    match clearance {
        Clearance::Cleared(cleared) => cleared.proposal(),
        Clearance::Escalate(e) => panic!("refused: {:?} {:?}", e.codes, e.reasons),
    }
}

fn codes(clearance: &Clearance) -> Vec<String> {
    match clearance {
        Clearance::Cleared(cleared) => panic!("cleared: {:?}", cleared.proposal()),
        Clearance::Escalate(e) => e.codes.clone(),
    }
}

pub(super) fn text(value: &str) -> ParamValue {
    ParamValue::Text(value.to_owned())
}

pub(super) fn show(diagnosis: &Diagnosis) -> String {
    let hypotheses = diagnosis.hypotheses.iter().map(|h| {
        format!(
            "{} {} {:?} {} {:?} {:?}",
            h.id, h.cause_class, h.culprit, h.score, h.weights, h.rejected
        )
    });
    let checks = diagnosis
        .checks
        .iter()
        .map(|c| format!("{} {:?} {}", c.name, c.state, c.note));
    let facts = diagnosis.facts.iter().map(|f| f.text.clone());
    let lines: Vec<String> = facts
        .chain(hypotheses)
        .chain(checks)
        .chain(diagnosis.missing.iter().cloned())
        .collect();
    lines.join("\n")
}

/// `till` fails 40 % of its orders since a release that reached one instance twelve seconds before
/// the other; `depot` was deployed shortly before.
fn bad_deploy() -> World {
    let mut world = World::new();
    world.alert("till", BREAK + 6, AlertStatus::Firing);
    for (instance, since) in [("till-1", BREAK), ("till-2", BREAK + 12)] {
        let fails = move |s: i64| if s > since { 0.4 } else { 0.0 };
        world.serves(instance, 0..SECONDS, |_| 18.0, fails, "500", |_| 0.03);
        world.version(instance, "1.0.0", 0..since);
        world.version(instance, "1.1.0", since + 1..SECONDS);
        world.unit(since, instance, "stopped", "inactive");
        world.unit(since, instance, "started", "active");
        world.calls(instance, "ledger", 18.0, |_| 0.0);
        world.calls(instance, "depot", 18.0, |_| 0.0);
    }
    world.well("ledger-1", 36.0);
    world.well("depot-1", 36.0);
    for second in BREAK + 1..SECONDS {
        let frames = [
            ("app.py", 31, "place_order"),
            ("orders.py", 30, "total"),
            ("orders.py", 24, "wrap_price"),
        ];
        world.error(second, "till-1", "KeyError: 'ribbon'", &frames);
    }
    let count = ("@@ -6,1 +6,1 @@", &["-KEEP = 64", "+KEEP = 128"][..]);
    world.deploy("d0", "till", -3_000, ("0.9.0", "1.0.0"), "pool.py", count);
    let sorted = (
        "@@ -60,2 +60,2 @@ def show(_):",
        &[
            "-    return 200, dict(STOCK)",
            "+    return 200, dict(sorted(STOCK.items()))",
        ][..],
    );
    world.deploy(
        "d1",
        "depot",
        BREAK - 12,
        ("1.0.0", "1.0.1"),
        "app.py",
        sorted,
    );
    world.deploy("d2", "till", BREAK, ("1.0.0", "1.1.0"), "orders.py", LOOKUP);
    world
}

/// Demand has grown by three quarters and the pool of `till` is too small.
fn pool_exhausted() -> World {
    let mut world = World::new();
    world.alert("till", BREAK + 8, AlertStatus::Firing);
    for instance in ["till-1", "till-2"] {
        let rate = |s: i64| if s > BREAK { 31.0 } else { 18.0 };
        let fails = |s: i64| if s > BREAK + 2 { 0.35 } else { 0.0 };
        let mean = |s: i64| if s > BREAK + 1 { 0.9 } else { 0.2 };
        world.serves(instance, 0..SECONDS, rate, fails, "503", mean);
        world.gauge(instance, "db_pool_size", 0..SECONDS, |_| 4.0);
        world.gauge(instance, "db_pool_in_use", 0..SECONDS, |s| {
            if s > BREAK {
                4.0
            } else {
                2.0 + f64::from(s % 2 == 0)
            }
        });
        world.gauge(instance, "db_pool_waiting", 0..SECONDS, |s| {
            if s > BREAK { 9.0 } else { 0.0 }
        });
        world.version(instance, "1.0.0", 0..SECONDS);
        world.calls(instance, "ledger", 18.0, |_| 0.0);
    }
    world.well("ledger-1", 36.0);
    world.well("depot-1", 36.0);
    for second in BREAK + 3..SECONDS {
        world.error(
            second,
            "till-2",
            "PoolTimeout: no pool connection within 1.0s (size=4 in_use=4 waiting=9)",
            &[],
        );
    }
    let count = ("@@ -6,1 +6,1 @@", &["-KEEP = 64", "+KEEP = 128"][..]);
    world.deploy(
        "d0",
        "till",
        -3_000,
        ("0.9.0", "1.0.0"),
        "pricing.py",
        count,
    );
    world
}

/// `ledger` reaches its memory limit, is killed and stays down; `till` is loud.
pub(super) fn dependency_down() -> World {
    let mut world = World::new();
    world.alert("till", BREAK + 6, AlertStatus::Firing);
    for instance in ["till-1", "till-2"] {
        let fails = |s: i64| if s > BREAK { 0.75 } else { 0.0 };
        world.serves(instance, 0..SECONDS, |_| 18.0, fails, "502", |_| 0.03);
        world.calls(
            instance,
            "ledger",
            14.0,
            |s| if s > BREAK { 1.0 } else { 0.0 },
        );
        world.calls(instance, "depot", 18.0, |_| 0.0);
        world.version(instance, "1.0.0", 0..SECONDS);
    }
    world.well("depot-1", 36.0);
    world.serves("ledger-1", 0..BREAK, |_| 28.0, |_| 0.0, "500", |_| 0.2);
    world.gauge("ledger-1", "process_memory_limit_bytes", 0..BREAK, |_| 64e6);
    let grows = |s: i64| {
        if s < BREAK - 12 {
            24e6
        } else {
            24e6 + 3.2e6 * f64::from(i32::try_from(s - BREAK + 12).unwrap())
        }
    };
    world.gauge("ledger-1", "process_resident_memory_bytes", 0..BREAK, grows);
    world.unit(BREAK, "ledger-1", "oom_killed", "failed");
    for second in BREAK + 1..SECONDS {
        world.error(
            second,
            "till-1",
            "UpstreamError: ledger /charge: [Errno 111] Connection refused",
            &[],
        );
    }
    let swap = (
        "@@ -40,1 +40,1 @@ def place_order(order):",
        &["-    check(order)", "+    verify(order)"][..],
    );
    world.deploy(
        "d1",
        "till",
        BREAK - 600,
        ("0.9.0", "1.0.0"),
        "app.py",
        swap,
    );
    world
}

/// The disk of `depot` is full.
fn disk_full() -> World {
    let mut world = World::new();
    world.alert("till", BREAK + 6, AlertStatus::Firing);
    world.alert("depot", BREAK + 6, AlertStatus::Firing);
    let fails = |s: i64| if s > BREAK { 0.8 } else { 0.0 };
    for instance in ["till-1", "till-2"] {
        world.serves(instance, 0..SECONDS, |_| 18.0, fails, "502", |_| 0.03);
        world.calls(
            instance,
            "depot",
            14.0,
            |s| if s > BREAK { 1.0 } else { 0.0 },
        );
    }
    world.well("ledger-1", 36.0);
    world.serves("depot-1", 0..SECONDS, |_| 30.0, fails, "500", |_| 0.01);
    world.gauge("depot-1", "data_disk_size_bytes", 0..SECONDS, |_| 16e6);
    let left = |s: i64| (16e6 - 0.23e6 * f64::from(i32::try_from(s).unwrap())).max(0.0);
    world.gauge("depot-1", "data_disk_free_bytes", 0..SECONDS, left);
    for second in BREAK + 1..SECONDS {
        let frames = [("app.py", 44, "reserve"), ("journal.py", 34, "append")];
        world.error(
            second,
            "depot-1",
            "OSError: [Errno 28] No space left on device",
            &frames,
        );
        world.error(
            second,
            "till-1",
            "UpstreamError: depot /reserve answered 500: internal error",
            &[],
        );
    }
    let words = (
        "@@ -42,1 +42,1 @@ def reserve(request):",
        &[
            "-    raise Refused(\"sold out\")",
            "+    raise Refused(\"%s is sold out\" % item)",
        ][..],
    );
    world.deploy("d1", "depot", -4_000, ("0.9.0", "1.0.0"), "app.py", words);
    world
}

/// `depot` stalled for a moment.
fn noise(length: i64, status: AlertStatus) -> World {
    let mut world = World::new();
    world.alert("till", BREAK + 4, status);
    for instance in ["till-1", "till-2"] {
        let fails = move |s: i64| {
            if s > BREAK && s <= BREAK + length {
                0.6
            } else {
                0.0
            }
        };
        world.serves(instance, 0..SECONDS, |_| 18.0, fails, "504", |_| 0.03);
        world.calls(instance, "depot", 14.0, fails);
    }
    world.well("ledger-1", 36.0);
    world.well("depot-1", 36.0);
    world.error(
        BREAK + 2,
        "till-1",
        "UpstreamError: depot /reserve: no answer within 1.0s",
        &[],
    );
    world
}

#[test]
fn the_release_that_fails_is_rolled_back_to_the_one_before() {
    let (diagnosis, clearance) = bad_deploy().judge();
    let shown = show(&diagnosis);
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::BadDeploy,
        "{shown}"
    );
    assert_eq!(diagnosis.verdict.culprit.id, "d2", "{shown}");
    let proposal = cleared(&clearance);
    assert_eq!(proposal.class(), RemediationClass::Rollback);
    assert_eq!(proposal.target().name, "till");
    assert_eq!(proposal.change().get("from"), Some(&text("1.1.0")));
    assert_eq!(proposal.change().get("to"), Some(&text("1.0.0")));
    assert_eq!(proposal.deploy(), Some("d2"));
    assert!(proposal.cites().iter().all(|c| c.line.is_some()));
}

#[test]
fn the_trace_decides_where_no_two_versions_ran_side_by_side() {
    let mut world = bad_deploy();
    world.series.retain(|s| s.name != "build_info");
    let (diagnosis, clearance) = world.judge();
    assert_eq!(diagnosis.verdict.culprit.id, "d2", "{}", show(&diagnosis));
    assert_eq!(cleared(&clearance).class(), RemediationClass::Rollback);
}

#[test]
fn two_versions_side_by_side_decide_where_the_trace_does_not() {
    let mut world = bad_deploy();
    world.deploys.pop();
    world.deploy("d2", "till", BREAK, ("1.0.0", "1.1.0"), "orders.py", TABLE);
    let (diagnosis, clearance) = world.judge();
    assert_eq!(diagnosis.verdict.culprit.id, "d2", "{}", show(&diagnosis));
    assert_eq!(cleared(&clearance).class(), RemediationClass::Rollback);
}

#[test]
fn a_pool_that_is_too_small_for_the_demand_is_made_bigger_within_its_bounds() {
    let (diagnosis, clearance) = pool_exhausted().judge();
    let shown = show(&diagnosis);
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::ResourceExhaustion,
        "{shown}"
    );
    assert_eq!(diagnosis.verdict.culprit.id, "till", "{shown}");
    let proposal = cleared(&clearance);
    assert_eq!(proposal.class(), RemediationClass::Resize);
    assert_eq!(proposal.change().get("key"), Some(&text("pool_size")));
    assert_eq!(proposal.change().get("from"), Some(&ParamValue::Int(4)));
    assert_eq!(proposal.change().get("to"), Some(&ParamValue::Int(8)));
}

#[test]
fn a_callee_that_was_killed_is_restarted_and_not_its_loud_caller() {
    let (diagnosis, clearance) = dependency_down().judge();
    let shown = show(&diagnosis);
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::ResourceExhaustion,
        "{shown}"
    );
    assert_eq!(diagnosis.verdict.culprit.id, "ledger", "{shown}");
    let proposal = cleared(&clearance);
    assert_eq!(proposal.class(), RemediationClass::Restart);
    assert_eq!(proposal.target().name, "ledger");
}

#[test]
fn a_full_disk_goes_to_a_person_with_advice() {
    let (diagnosis, clearance) = disk_full().judge();
    let shown = show(&diagnosis);
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::ResourceExhaustion,
        "{shown}"
    );
    assert_eq!(diagnosis.verdict.culprit.id, "depot", "{shown}");
    assert!(codes(&clearance).is_empty());
    let winner = diagnosis.winner().unwrap();
    assert_eq!(winner.remediation.class, RemediationClass::Escalate);
    assert_eq!(winner.remediation.advice, Some(RemediationClass::Resize));
}

#[test]
fn a_blip_that_is_over_needs_nothing() {
    for length in [1, 2, 3, 6] {
        for status in [AlertStatus::Firing, AlertStatus::Resolved] {
            let (diagnosis, clearance) = noise(length, status).judge();
            let shown = show(&diagnosis);
            assert_eq!(
                diagnosis.verdict.cause_class,
                CauseClass::None,
                "{length} {shown}"
            );
            assert_eq!(diagnosis.verdict.culprit.kind, CulpritKind::None);
            let winner = diagnosis.winner().unwrap();
            assert_eq!(winner.remediation.class, RemediationClass::NoAction);
            assert!(codes(&clearance).is_empty());
        }
    }
}

#[test]
fn a_blip_whose_end_the_source_has_seen_needs_nothing_at_once() {
    let mut world = noise(SECONDS - BREAK - 3, AlertStatus::Resolved);
    for instance in ["till-1", "till-2"] {
        world.gauge(instance, "db_pool_size", 0..SECONDS, |_| 4.0);
        world.gauge(instance, "db_pool_in_use", 0..SECONDS, |s| {
            if s > BREAK { 4.0 } else { 2.0 }
        });
        let waiting = |s: i64| {
            if s > BREAK && s < SECONDS - 3 {
                9.0
            } else {
                0.0
            }
        };
        world.gauge(instance, "db_pool_waiting", 0..SECONDS, waiting);
    }
    let (diagnosis, _) = world.judge();
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::None,
        "{}",
        show(&diagnosis)
    );
}

#[test]
fn a_process_that_took_over_before_the_old_one_ended_is_not_down() {
    let mut world = noise(3, AlertStatus::Firing);
    world.unit(BREAK - 5, "till-1", "started", "active");
    world.unit(BREAK - 4, "till-1", "stopped", "inactive");
    let (diagnosis, _) = world.judge();
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::None,
        "{}",
        show(&diagnosis)
    );
    assert!(diagnosis.facts.iter().all(|f| !f.text.contains("is down")));
}

#[test]
fn rollback_is_refused_when_deploy_history_is_missing() {
    let mut world = bad_deploy();
    world.history = false;
    world.failed.push(ToolFailure {
        tool: "deploys".to_owned(),
        source: "releases".to_owned(),
        code: "timeout".to_owned(),
    });
    let (diagnosis, clearance) = world.judge();
    assert_eq!(diagnosis.verdict.cause_class, CauseClass::Inconclusive);
    assert!(
        diagnosis.missing.iter().any(|m| m.contains("deploys")),
        "{:?}",
        diagnosis.missing
    );
    codes(&clearance);
}

#[test]
fn an_innocent_deploy_of_the_loud_service_is_not_blamed() {
    let mut world = dependency_down();
    world.deploy(
        "d2",
        "till",
        BREAK - 20,
        ("1.0.0", "1.1.0"),
        "orders.py",
        LOOKUP,
    );
    let (diagnosis, clearance) = world.judge();
    assert_eq!(
        diagnosis.verdict.culprit.id,
        "ledger",
        "{}",
        show(&diagnosis)
    );
    assert_eq!(cleared(&clearance).class(), RemediationClass::Restart);
}

#[test]
fn a_neutral_change_in_the_failing_function_is_not_blamed() {
    let mut world = bad_deploy();
    world.series.retain(|s| s.name != "build_info");
    world.deploys.pop();
    let told = (
        "@@ -22,4 +22,5 @@ def wrap_price(wrap):",
        &[
            "     if not wrap:",
            "+        LOG.info(\"plain\")",
            "         return 0",
        ][..],
    );
    world.deploy("d2", "till", BREAK, ("1.0.0", "1.1.0"), "orders.py", told);
    let (diagnosis, clearance) = world.judge();
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::Inconclusive,
        "{}",
        show(&diagnosis)
    );
    codes(&clearance);
}

#[test]
fn a_deploy_after_the_onset_is_not_blamed() {
    let mut world = bad_deploy();
    world.series.retain(|s| s.name != "build_info");
    if let Some(deploy) = world.deploys.last_mut() {
        deploy.started_at = super::world::at(BREAK + 65);
    }
    let (diagnosis, clearance) = world.judge();
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::Inconclusive,
        "{}",
        show(&diagnosis)
    );
    codes(&clearance);
}

#[test]
fn a_better_looking_change_of_another_service_is_not_blamed() {
    let mut world = bad_deploy();
    let risky = (
        "@@ -9,3 +9,2 @@ def lock(order):",
        &[
            "-    if order is None:",
            "-        return None",
            "+    LOCK.acquire(timeout=1)",
        ][..],
    );
    world.deploy(
        "d3",
        "depot",
        BREAK - 2,
        ("1.0.1", "1.0.2"),
        "locks.py",
        risky,
    );
    let (diagnosis, clearance) = world.judge();
    assert_eq!(diagnosis.verdict.culprit.id, "d2", "{}", show(&diagnosis));
    assert_eq!(cleared(&clearance).deploy(), Some("d2"));
}

#[test]
fn the_guilty_deploy_under_a_later_innocent_one_is_undone_with_it() {
    let mut world = bad_deploy();
    let words = ("@@ -1,1 +1,1 @@", &["-# prices", "+# all prices"][..]);
    world.deploy(
        "d3",
        "till",
        BREAK + 20,
        ("1.1.0", "1.1.1"),
        "orders.py",
        words,
    );
    let (diagnosis, clearance) = world.judge();
    assert_eq!(diagnosis.verdict.culprit.id, "d2", "{}", show(&diagnosis));
    let proposal = cleared(&clearance);
    assert_eq!(proposal.change().get("from"), Some(&text("1.1.1")));
    assert_eq!(proposal.change().get("to"), Some(&text("1.0.0")));
}

#[test]
fn a_deploy_that_was_put_back_is_not_blamed() {
    let mut world = bad_deploy();
    if let Some(deploy) = world.deploys.last_mut() {
        deploy.status = DeployStatus::RolledBack;
    }
    let (diagnosis, clearance) = world.judge();
    assert_ne!(diagnosis.verdict.culprit.id, "d2", "{}", show(&diagnosis));
    codes(&clearance);
}

#[test]
fn a_deploy_that_shrank_the_pool_is_blamed_and_not_the_pool() {
    let mut world = pool_exhausted();
    let less = (
        "@@ -2,1 +2,1 @@",
        &["-POOL = Pool(16)", "+POOL = Pool(4)"][..],
    );
    world.deploy("d1", "till", BREAK - 3, ("1.0.0", "1.0.1"), "app.py", less);
    let (diagnosis, clearance) = world.judge();
    assert_eq!(diagnosis.verdict.culprit.id, "d1", "{}", show(&diagnosis));
    assert_eq!(cleared(&clearance).class(), RemediationClass::Rollback);
}

#[test]
fn demand_that_doubled_is_load_and_no_small_pool() {
    let mut world = pool_exhausted();
    world.series.retain(|s| !s.name.starts_with("http_request"));
    for instance in ["till-1", "till-2"] {
        let rate = |s: i64| if s > BREAK { 60.0 } else { 18.0 };
        let fails = |s: i64| if s > BREAK + 2 { 0.35 } else { 0.0 };
        world.serves(instance, 0..SECONDS, rate, fails, "503", |_| 0.2);
    }
    let (diagnosis, clearance) = world.judge();
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::Load,
        "{}",
        show(&diagnosis)
    );
    codes(&clearance);
}

#[test]
fn a_kill_without_a_word_about_memory_is_not_called_exhaustion() {
    let mut world = dependency_down();
    world.series.retain(|s| !s.name.contains("memory"));
    for event in &mut world.units {
        if event.event == "oom_killed" {
            event.event = "killed".to_owned();
        }
    }
    let (diagnosis, clearance) = world.judge();
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::Inconclusive,
        "{}",
        show(&diagnosis)
    );
    assert!(
        diagnosis.missing.iter().any(|m| m.contains("what ended")),
        "{:?}",
        diagnosis.missing
    );
    codes(&clearance);
}

#[test]
fn an_outside_party_that_fails_alone_is_named_and_nothing_is_restarted() {
    let mut world = dependency_down();
    world.units.retain(|u| u.event != "oom_killed");
    world
        .series
        .retain(|s| s.service != "ledger" && s.name != "upstream_requests_total");
    world.well("ledger-1", 28.0);
    for instance in ["till-1", "till-2"] {
        world.calls(instance, "cards.example", 14.0, |s| {
            if s > BREAK { 1.0 } else { 0.0 }
        });
        world.calls(instance, "ledger", 14.0, |_| 0.0);
    }
    let (diagnosis, clearance) = world.judge();
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::ExternalDependency,
        "{}",
        show(&diagnosis)
    );
    assert_eq!(diagnosis.verdict.culprit.id, "cards.example");
    codes(&clearance);
}

#[test]
fn a_setting_that_changed_at_the_onset_is_named() {
    let mut world = pool_exhausted();
    world.series.retain(|s| !s.name.contains("pool"));
    world.unit(BREAK - 1, "till-1", "config_changed", "active");
    let (diagnosis, clearance) = world.judge();
    assert_eq!(
        diagnosis.verdict.cause_class,
        CauseClass::ConfigError,
        "{}",
        show(&diagnosis)
    );
    codes(&clearance);
}

#[test]
fn nothing_to_read_is_inconclusive_and_says_what_is_missing() {
    let mut world = World::new();
    world.alert("till", BREAK, AlertStatus::Firing);
    let (diagnosis, clearance) = world.judge();
    assert_eq!(diagnosis.verdict.cause_class, CauseClass::Inconclusive);
    assert!(
        diagnosis.missing.iter().any(|m| m.contains("metrics")),
        "{:?}",
        diagnosis.missing
    );
    codes(&clearance);
}

#[test]
fn the_same_case_gives_the_same_bytes() {
    let world = bad_deploy();
    let bytes = |world: &World| serde_json::to_string(&world.judge().0).unwrap();
    assert_eq!(bytes(&world), bytes(&world));
    let mut turned = bad_deploy();
    turned.series.reverse();
    assert_eq!(turned.judge().0.verdict.culprit.id, "d2");
}
