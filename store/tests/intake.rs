//! Whole webhook bodies against a real database file.

// Helpers of a test fail by panicking.
#![allow(clippy::unwrap_used)]

use policies::intake::parse_alertmanager;
use policies::model::{IncidentId, Millis};
use sentinel_store::sentinel::{Db, NewState, Taken, Webhook};

const NOW: Millis = Millis(1_780_000_000_000);

struct Site {
    db: Db,
    opened: u8,
    _dir: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            db: Db::open(&dir.path().join("sentinel.db")).unwrap(),
            opened: 0,
            _dir: dir,
        }
    }

    fn take(&mut self, body: &str, now: Millis) -> Taken {
        let batch =
            parse_alertmanager(body.as_bytes(), "alertmanager", "default", now, &[1; 32]).unwrap();
        let mut mac = [0_u8; 32];
        for (i, b) in body.bytes().enumerate() {
            mac[i % 32] = mac[i % 32].wrapping_mul(31).wrapping_add(b);
        }
        let opened = &mut self.opened;
        self.db
            .take_webhook(
                &Webhook {
                    tenant: "default",
                    source: "alertmanager",
                    mac: &mac,
                    now,
                    alerts: &batch.alerts,
                    heartbeats: &["Watchdog".to_owned()],
                    storm_threshold: 100,
                },
                &mut || {
                    *opened += 1;
                    (IncidentId::from_random([*opened; 10]), vec![1])
                },
            )
            .unwrap()
    }

    fn close(&self, id: &IncidentId, now: Millis) {
        let end = NewState {
            phase: "closed",
            outcome: Some("escalated"),
            cause_class: None,
            action_id: None,
            state: "{}",
            evidence: &[],
            leaves: &[],
            notices: &[],
            postmortem: None,
        };
        self.db.save_state(id, now, &end).unwrap();
    }
}

fn firing(name: &str, service: &str, fingerprint: &str) -> String {
    format!(
        r#"{{"status":"firing","labels":{{"alertname":"{name}","service":"{service}"}},"startsAt":"2026-05-28T20:26:00Z","fingerprint":"{fingerprint}"}}"#
    )
}

const RESOLVED: &str = r#"{"alerts":[{"status":"resolved","labels":{"alertname":"Slow","service":"shop"},
    "startsAt":"2026-05-28T20:26:00Z","endsAt":"2026-05-28T20:27:00Z","fingerprint":"1"}]}"#;
const AGAIN: &str = r#"{"alerts":[{"status":"firing","labels":{"alertname":"Slow","service":"shop"},
    "startsAt":"2026-05-28T20:28:00Z","fingerprint":"1"}]}"#;

#[test]
fn a_fingerprint_twice_is_one_alert_and_a_watchdog_opens_nothing() {
    let mut site = Site::new();
    let body = format!(
        r#"{{"alerts":[{},{},{}]}}"#,
        firing("Slow", "shop", "1"),
        firing("Slow", "shop", "1"),
        firing("Watchdog", "shop", "2")
    );
    let taken = site.take(&body, NOW);
    assert_eq!(taken.fates.get("opened"), Some(&1));
    assert_eq!(taken.fates.get("duplicate"), Some(&1));
    assert_eq!(taken.fates.get("heartbeat"), Some(&1));
    assert_eq!(site.db.incident_list(10, None).unwrap().len(), 1);
}

#[test]
fn the_same_body_again_is_all_duplicates_with_the_same_receipt() {
    let mut site = Site::new();
    let body = format!(r#"{{"alerts":[{}]}}"#, firing("Slow", "shop", "1"));
    let first = site.take(&body, NOW);
    let second = site.take(&body, NOW.plus(5_000));
    assert_eq!(first.receipt, second.receipt);
    assert_eq!(second.fates.get("duplicate"), Some(&1));
    assert!(second.incidents.is_empty());
}

#[test]
fn a_second_alert_of_the_same_service_joins_the_open_incident() {
    let mut site = Site::new();
    site.take(
        &format!(r#"{{"alerts":[{}]}}"#, firing("Slow", "shop", "1")),
        NOW,
    );
    let taken = site.take(
        &format!(r#"{{"alerts":[{}]}}"#, firing("Errors", "shop", "2")),
        NOW.plus(10_000),
    );
    assert_eq!(taken.fates.get("grouped"), Some(&1));
    let rows = site.db.incident_list(10, None).unwrap();
    assert_eq!((rows.len(), rows[0].alerts), (1, 2));
    let other = site.take(
        &format!(r#"{{"alerts":[{}]}}"#, firing("Errors", "other", "3")),
        NOW.plus(11_000),
    );
    assert_eq!(other.fates.get("opened"), Some(&1));
}

#[test]
fn ten_thousand_alerts_are_one_storm_incident() {
    let mut site = Site::new();
    let alerts: Vec<String> = (0..10_000)
        .map(|i| firing("Down", &format!("s{i}"), &format!("f{i}")))
        .collect();
    let taken = site.take(&format!(r#"{{"alerts":[{}]}}"#, alerts.join(",")), NOW);
    let rows = site.db.incident_list(10, None).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].kind.as_str(), rows[0].alerts), ("storm", 10_000));
    assert_eq!(taken.incidents.len(), 1);
    let more = site.take(
        &format!(r#"{{"alerts":[{}]}}"#, firing("Down", "later", "late")),
        NOW.plus(30_000),
    );
    assert_eq!(more.incidents.len(), 1);
    assert_eq!(
        site.db.incident_list(10, None).unwrap().len(),
        1,
        "the storm goes on in its incident"
    );
}

#[test]
fn a_resolve_closes_the_episode_and_a_quick_refire_reopens_it() {
    let mut site = Site::new();
    site.take(
        &format!(r#"{{"alerts":[{}]}}"#, firing("Slow", "shop", "1")),
        NOW,
    );
    let taken = site.take(RESOLVED, NOW.plus(20_000));
    assert_eq!(taken.fates.get("resolved"), Some(&1));
    let taken = site.take(AGAIN, NOW.plus(80_000));
    assert_eq!(taken.fates.get("reopened"), Some(&1));
    assert_eq!(site.db.incident_list(10, None).unwrap().len(), 1);
}

#[test]
fn a_quick_refire_after_its_incident_closed_opens_another() {
    let mut site = Site::new();
    let body = format!(r#"{{"alerts":[{}]}}"#, firing("Slow", "shop", "1"));
    let first = site.take(&body, NOW).incidents[0].id.clone();
    site.close(&first, NOW.plus(10_000));
    let late = site.take(RESOLVED, NOW.plus(20_000));
    assert_eq!(late.fates.get("resolved"), Some(&1));
    assert!(site.db.open_incidents().unwrap().is_empty());
    let taken = site.take(AGAIN, NOW.plus(80_000));
    assert_eq!(taken.fates.get("opened"), Some(&1));
    assert_eq!(
        site.db.open_incidents().unwrap(),
        [taken.incidents[0].id.clone()]
    );
    assert_ne!(taken.incidents[0].id, first);
}

#[test]
fn a_quick_refire_after_its_incident_closed_joins_an_open_one() {
    let mut site = Site::new();
    let body = format!(r#"{{"alerts":[{}]}}"#, firing("Slow", "shop", "1"));
    let first = site.take(&body, NOW).incidents[0].id.clone();
    site.close(&first, NOW.plus(10_000));
    site.take(RESOLVED, NOW.plus(20_000));
    let body = format!(r#"{{"alerts":[{}]}}"#, firing("Errors", "shop", "2"));
    let second = site.take(&body, NOW.plus(30_000)).incidents[0].id.clone();
    let taken = site.take(AGAIN, NOW.plus(80_000));
    assert_eq!(taken.fates.get("grouped"), Some(&1));
    assert_eq!(taken.incidents[0].id, second);
}
