//! Core is killed by SIGKILL at every border of the way of one alert, and started again: the incident
//! is never lost, there is never a second one, and its action never happens twice (guard 7, 8).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test"
)]

mod support;

use std::time::Duration;

use serde_json::Value;
use support::files::PEOPLE;
use support::{Site, Wishes, model, wait_for};

/// What the guard must make of a death at a point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The action runs once and the metric recovers.
    Recovered,
    /// It was spent and nobody heard the end: a person finds out that nothing had happened.
    DoubtedNothing,
    /// The same, but it had happened.
    DoubtedDone,
}

/// Dies at a point, is started again, and comes to the wanted end.
fn survive(point: &str, end: End) {
    run(point, end, &Wishes::default());
}

/// The same with a model, where there is one to test with.
fn survive_with_model(point: &str) {
    let Some(model) = model::section() else {
        return;
    };
    let wishes = Wishes {
        model,
        ..Wishes::default()
    };
    run(point, End::Recovered, &wishes);
}

fn run(point: &str, end: End, wishes: &Wishes) {
    let mut site = Site::new(wishes);
    let mut people = PEOPLE.iter();
    site.start(&["--crash-at", point]);
    site.hire();
    let body = site.alert().to_string();
    // A death before the answer: Alertmanager sends the same body again.
    let first = site.post(body.as_bytes());
    assert_eq!(first.is_none(), point == "webhook_stored");
    let mut asked = Vec::new();
    wait_for("the death", || {
        approve_what_waits(&site, &mut asked, &mut people);
        site.ended()
    });
    site.assert_killed();
    // Whatever a worker had begun is over: it dies with core.
    std::thread::sleep(Duration::from_millis(300));
    let effects = site.shop.effects().len();
    assert_eq!(effects, usize::from(done_by(point)), "before the restart");

    site.start(&[]);
    let again = site.post(body.as_bytes()).unwrap();
    assert_eq!((again.status, &again.json()["duplicate"]), (202, &1.into()));
    if end != End::Recovered {
        settle_the_doubt(&site, end, people.next().unwrap());
    }
    wait_for("the end of the incident", || {
        approve_what_waits(&site, &mut asked, &mut people);
        (site.incident()["phase"] == "closed").then_some(())
    });
    check(&site, end);
}

/// Approves an action that was not approved before.
fn approve_what_waits<'a>(
    site: &Site,
    asked: &mut Vec<String>,
    people: &mut impl Iterator<Item = &'a &'a str>,
) {
    if let Some(action) = site.pending()
        && !asked.contains(&action)
    {
        let output = site.approve(&action, people.next().unwrap());
        // Core may die before it answers; what is still pending then is asked for again.
        if output.status.success() {
            asked.push(action);
        } else if site.get("/v1/health").is_some() {
            panic!("{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// Points after the effect.
fn done_by(point: &str) -> bool {
    matches!(
        point,
        "effect_done" | "job_ended" | "verifying" | "before_close"
    )
}

/// The incident says that it does not know, nothing runs again, and a person ends it.
fn settle_the_doubt(site: &Site, end: End, person: &str) {
    wait_for("the doubt", || {
        (site.incident()["phase"] == "in_doubt").then_some(())
    });
    let effects = site.shop.effects();
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(site.incident()["phase"], "in_doubt");
    assert_eq!(site.shop.effects(), effects, "nothing runs again");
    let actions = site.actions();
    assert_eq!(actions.len(), 1);
    assert_eq!(actions[0]["state"], "in_doubt");
    let action = actions[0]["id"].as_str().unwrap();
    let result = if end == End::DoubtedDone {
        "succeeded"
    } else {
        "failed"
    };
    let output = site.reconcile(action, person, result);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

fn check(site: &Site, end: End) {
    let incident = site.incident();
    let id = incident["id"].as_str().unwrap();
    let outcome = match end {
        End::Recovered | End::DoubtedDone => "recovered",
        End::DoubtedNothing => "reconciled",
    };
    assert_eq!(incident["outcome"], outcome, "{incident:#}");
    assert_eq!(incident["cause_class"], "resource_exhaustion");
    let effects = site.shop.effects();
    let wanted = usize::from(end != End::DoubtedNothing);
    assert_eq!(effects.len(), wanted, "{effects:?}");
    site.postmortem(id);
    // Leaves reach the log a moment after their step.
    let events = wait_for("the last leaf", || {
        let events = site.audited();
        let closed = events.iter().any(|e| e["type"] == "incident.closed");
        closed.then_some(events)
    });
    let of = |kind: &str| -> Vec<&Value> { events.iter().filter(|e| e["type"] == kind).collect() };
    assert_eq!(of("spend.ok").len(), 1);
    let started = of("exec.started");
    assert!(started.len() <= 1 && started.len() >= wanted, "{started:?}");
    if let [effect] = effects.as_slice() {
        assert_eq!(of("spend.ok")[0]["jti"], effect.as_str());
    }
    assert!(!of("incident.opened").is_empty());
}

macro_rules! deaths {
    ($($test:ident: $point:literal => $end:ident,)+) => {
        $(#[test] fn $test() { survive($point, End::$end); })+
        const TESTED: &[&str] = &[$($point),+, "diagnosed", "model_asked"];
    };
}

deaths! {
    killed_when_the_webhook_is_stored: "webhook_stored" => Recovered,
    killed_when_the_incident_is_opened: "incident_saved" => Recovered,
    killed_while_tools_run: "tools_running" => Recovered,
    killed_between_two_pieces_of_evidence: "evidence_saved" => Recovered,
    killed_before_the_guard_is_asked: "before_propose" => Recovered,
    killed_when_the_guard_has_the_proposal: "after_propose" => Recovered,
    killed_while_a_person_is_awaited: "awaiting_approval" => Recovered,
    killed_when_the_approval_is_seen: "approval_seen" => Recovered,
    killed_after_the_second_look: "rechecked" => Recovered,
    killed_before_the_capability_is_collected: "before_collect" => Recovered,
    killed_when_the_capability_is_collected: "collected" => Recovered,
    killed_when_the_capability_is_spent: "spent" => DoubtedNothing,
    killed_when_the_job_is_released: "released" => DoubtedNothing,
    killed_when_the_start_is_on_record: "started" => DoubtedNothing,
    killed_after_the_effect_and_before_its_record: "effect_done" => DoubtedDone,
    killed_when_the_job_has_ended: "job_ended" => Recovered,
    killed_while_the_probe_watches: "verifying" => Recovered,
    killed_before_the_incident_closes: "before_close" => Recovered,
}

#[test]
fn killed_when_the_diagnosis_is_saved() {
    survive_with_model("diagnosed");
}

#[test]
fn killed_while_the_model_is_asked() {
    survive_with_model("model_asked");
}

#[test]
fn every_point_has_its_death() {
    for point in daemon::failpoint::POINTS {
        assert!(TESTED.contains(point), "no test kills at `{point}`");
    }
}
