//! One webhook body, one transaction (protocols.md 4.1.1).

use std::collections::BTreeMap;

use policies::intake::{Episode, Fate, Known, is_storm, judge};
use policies::model::{Alert, IncidentId, Millis};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{Db, Error, to_json};

/// A new episode joins the open incident whose last alert is at most this old (protocols.md 4.1.17).
const GROUP_WINDOW_MS: i64 = 5 * 60 * 1000;
/// Bodies received again within this time are repeats.
const RECEIPT_MS: i64 = 24 * 3600 * 1000;
/// Alerts of one incident that are kept whole; further ones are counted by their episodes.
const ALERTS_KEPT: i64 = 50;

/// One webhook body whose texts have passed the redactor.
#[derive(Clone, Copy, Debug)]
pub struct Webhook<'a> {
    /// Tenant of the intake.
    pub tenant: &'a str,
    /// Name of the intake.
    pub source: &'a str,
    /// Keyed digest of the raw body.
    pub mac: &'a [u8; 32],
    /// Time of receipt.
    pub now: Millis,
    /// Usable alerts.
    pub alerts: &'a [Alert],
    /// Alert names that open nothing.
    pub heartbeats: &'a [String],
    /// Storm limit.
    pub storm_threshold: usize,
}

/// An incident that the body touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenIncident {
    /// Which.
    pub id: IncidentId,
    /// True when the body opened it.
    pub opened: bool,
}

/// What became of the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Receipt, the same for the same body.
    pub receipt: String,
    /// Counts by [`Fate::as_str`].
    pub fates: BTreeMap<&'static str, usize>,
    /// Incidents touched, each once, in order.
    pub incidents: Vec<TakenIncident>,
}

impl Db {
    /// Takes a webhook: all of it or, on an error, nothing. `new_incident` gives the id and the
    /// wrapped redaction key of an incident that has to be opened.
    ///
    /// # Errors
    /// The database refused; nothing was stored.
    pub fn take_webhook(
        &self,
        hook: &Webhook<'_>,
        new_incident: &mut dyn FnMut() -> (IncidentId, Vec<u8>),
    ) -> Result<Taken, Error> {
        let mut connection = self.lock();
        let tx = connection.transaction()?;
        let mut taken = Taken::default();
        tx.execute(
            "DELETE FROM receipt WHERE at < ?1",
            params![hook.now.0 - RECEIPT_MS],
        )?;
        let known: Option<String> = tx
            .query_row(
                "SELECT receipt FROM receipt WHERE mac = ?1",
                params![hook.mac],
                |r| r.get(0),
            )
            .optional()?;
        if let Some(receipt) = known {
            taken.receipt = receipt;
            taken
                .fates
                .insert(Fate::Duplicate.as_str(), hook.alerts.len());
            touch_episodes(&tx, hook)?;
            tx.commit()?;
            return Ok(taken);
        }
        taken.receipt = format!("rcp_{}", hex(hook.mac.get(..12).unwrap_or_default()));
        tx.execute(
            "INSERT INTO receipt (mac, receipt, at) VALUES (?1, ?2, ?3)",
            params![hook.mac, taken.receipt, hook.now.0],
        )?;
        let storm = storm_incident(&tx, hook, new_incident, &mut taken)?;
        for alert in hook.alerts {
            take_alert(&tx, hook, alert, storm.as_ref(), new_incident, &mut taken)?;
        }
        tx.commit()?;
        Ok(taken)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn touch_episodes(tx: &Transaction<'_>, hook: &Webhook<'_>) -> Result<(), Error> {
    let mut update = tx.prepare_cached("UPDATE episode SET last_seen = ?2 WHERE dedup_key = ?1")?;
    for alert in hook.alerts {
        update.execute(params![alert.dedup_key, hook.now.0])?;
    }
    Ok(())
}

fn episode(tx: &Connection, key: &str) -> Result<Option<(Episode, IncidentId)>, Error> {
    let row = tx
        .prepare_cached(
            "SELECT e.open, e.ended_at, i.closed_at IS NULL, e.incident
             FROM episode e JOIN incident i ON i.id = e.incident WHERE e.dedup_key = ?1",
        )?
        .query_row(params![key], |r| {
            Ok((
                r.get::<_, bool>(0)?,
                r.get::<_, Option<i64>>(1)?,
                r.get::<_, bool>(2)?,
                r.get::<_, String>(3)?,
            ))
        })
        .optional()?;
    Ok(row.and_then(|(open, ended, incident_open, incident)| {
        Some((
            Episode {
                open,
                ended_at: ended.map(Millis),
                incident_open,
            },
            incident.parse().ok()?,
        ))
    }))
}

/// Decides whether the body is part of a storm; then all its new episodes go to one incident.
fn storm_incident(
    tx: &Transaction<'_>,
    hook: &Webhook<'_>,
    new_incident: &mut dyn FnMut() -> (IncidentId, Vec<u8>),
    taken: &mut Taken,
) -> Result<Option<IncidentId>, Error> {
    let mut new_keys = std::collections::BTreeSet::new();
    let mut first_new = None;
    for alert in hook.alerts {
        let known = episode(tx, &alert.dedup_key)?;
        let known = Known {
            episode: known.as_ref().map(|(e, _)| e),
            joins: false,
            heartbeats: hook.heartbeats,
        };
        if judge(alert, known) == Fate::Opens && new_keys.insert(alert.dedup_key.as_str()) {
            first_new.get_or_insert(alert);
        }
    }
    let last_minute: i64 = tx.query_row(
        "SELECT count(*) FROM episode WHERE source = ?1 AND opened_at > ?2",
        params![hook.source, hook.now.0 - 60_000],
        |r| r.get(0),
    )?;
    let Some(first) = first_new.filter(|_| {
        is_storm(
            new_keys.len(),
            usize::try_from(last_minute).unwrap_or(0),
            hook.storm_threshold,
        )
    }) else {
        return Ok(None);
    };
    let running: Option<String> = tx
        .query_row(
            "SELECT id FROM incident WHERE kind = 'storm' AND closed_at IS NULL AND tenant = ?1
             AND last_alert_at >= ?2 ORDER BY opened_at LIMIT 1",
            params![hook.tenant, hook.now.0 - GROUP_WINDOW_MS],
            |r| r.get(0),
        )
        .optional()?;
    if let Some(id) = running.and_then(|id| id.parse().ok()) {
        return Ok(Some(id));
    }
    let id = open_incident(tx, hook, first, "storm", new_incident)?;
    taken.incidents.push(TakenIncident {
        id: id.clone(),
        opened: true,
    });
    Ok(Some(id))
}

fn take_alert(
    tx: &Transaction<'_>,
    hook: &Webhook<'_>,
    alert: &Alert,
    storm: Option<&IncidentId>,
    new_incident: &mut dyn FnMut() -> (IncidentId, Vec<u8>),
    taken: &mut Taken,
) -> Result<(), Error> {
    let known = episode(tx, &alert.dedup_key)?;
    let joined = match storm {
        Some(id) => Some(id.clone()),
        None => group(tx, hook, alert)?,
    };
    let fate = judge(
        alert,
        Known {
            episode: known.as_ref().map(|(e, _)| e),
            joins: joined.is_some(),
            heartbeats: hook.heartbeats,
        },
    );
    *taken.fates.entry(fate.as_str()).or_default() += 1;
    let (incident, opened) = match fate {
        Fate::Heartbeat | Fate::ResolvedUnknown | Fate::Stale => return Ok(()),
        Fate::Duplicate => {
            tx.prepare_cached("UPDATE episode SET last_seen = ?2 WHERE dedup_key = ?1")?
                .execute(params![alert.dedup_key, hook.now.0])?;
            return Ok(());
        }
        Fate::Resolves | Fate::Reopens => match known {
            Some((_, incident)) => (incident, false),
            None => return Ok(()),
        },
        Fate::Joins => match joined {
            Some(incident) => (incident, false),
            None => return Ok(()),
        },
        Fate::Opens => (open_incident(tx, hook, alert, "alert", new_incident)?, true),
    };
    write_episode(tx, hook, alert, fate, &incident)?;
    write_alert(tx, &incident, alert, fate, hook.now)?;
    match taken.incidents.iter().any(|t| t.id == incident) {
        true => {}
        false => taken.incidents.push(TakenIncident {
            id: incident,
            opened,
        }),
    }
    Ok(())
}

/// The open incident that a new episode joins: the same group, else the same service.
fn group(
    tx: &Transaction<'_>,
    hook: &Webhook<'_>,
    alert: &Alert,
) -> Result<Option<IncidentId>, Error> {
    let found: Option<String> = tx
        .prepare_cached(
            "SELECT i.id FROM incident i WHERE i.closed_at IS NULL AND i.kind = 'alert' AND i.tenant = ?1
               AND i.environment = ?2 AND i.last_alert_at >= ?3 AND EXISTS (
                 SELECT 1 FROM episode e WHERE e.incident = i.id AND (
                   (?4 <> '' AND e.group_key = ?4) OR (?5 <> '' AND e.service = ?5)))
             ORDER BY EXISTS (SELECT 1 FROM episode e WHERE e.incident = i.id AND ?4 <> '' AND e.group_key = ?4) DESC,
               i.opened_at LIMIT 1",
        )?
        .query_row(
            params![
                hook.tenant,
                alert.environment,
                hook.now.0 - GROUP_WINDOW_MS,
                alert.group_key,
                alert.service
            ],
            |r| r.get(0),
        )
        .optional()?;
    Ok(found.and_then(|id| id.parse().ok()))
}

fn open_incident(
    tx: &Transaction<'_>,
    hook: &Webhook<'_>,
    alert: &Alert,
    kind: &str,
    new_incident: &mut dyn FnMut() -> (IncidentId, Vec<u8>),
) -> Result<IncidentId, Error> {
    let (id, key) = new_incident();
    let title = if kind == "storm" {
        format!("Alert storm from {}", hook.source)
    } else {
        alert.name.clone()
    };
    let severity = to_json("incident", &alert.severity)?;
    tx.execute(
        "INSERT INTO incident (id, tenant, kind, environment, title, service, severity, phase, redact_key,
           opened_at, last_alert_at, updated_at, version)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'opened', ?8, ?9, ?9, ?9, 0)",
        params![
            id.as_str(),
            hook.tenant,
            kind,
            alert.environment,
            title,
            if kind == "storm" { "" } else { alert.service.as_str() },
            severity.trim_matches('"'),
            key,
            hook.now.0
        ],
    )?;
    Ok(id)
}

fn write_episode(
    tx: &Transaction<'_>,
    hook: &Webhook<'_>,
    alert: &Alert,
    fate: Fate,
    incident: &IncidentId,
) -> Result<(), Error> {
    let open = fate != Fate::Resolves;
    tx.prepare_cached(
        "INSERT INTO episode (dedup_key, incident, source, name, service, group_key, open, opened_at, ended_at, last_seen)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?8)
         ON CONFLICT (dedup_key) DO UPDATE SET incident = ?2, group_key = ?6, open = ?7,
           opened_at = CASE WHEN ?7 AND NOT open THEN ?8 ELSE opened_at END, ended_at = ?9, last_seen = ?8",
    )?
    .execute(params![
        alert.dedup_key,
        incident.as_str(),
        hook.source,
        alert.name,
        alert.service,
        alert.group_key,
        open,
        hook.now.0,
        if open { None } else { Some(alert.ends_at.unwrap_or(hook.now).0) },
    ])?;
    Ok(())
}

fn write_alert(
    tx: &Transaction<'_>,
    incident: &IncidentId,
    alert: &Alert,
    fate: Fate,
    now: Millis,
) -> Result<(), Error> {
    tx.prepare_cached("UPDATE incident SET last_alert_at = ?2, updated_at = ?2, version = version + 1 WHERE id = ?1")?
        .execute(params![incident.as_str(), now.0])?;
    let next: i64 = tx
        .prepare_cached("SELECT coalesce(max(seq) + 1, 0) FROM incident_alert WHERE incident = ?1")?
        .query_row(params![incident.as_str()], |r| r.get(0))?;
    if next < ALERTS_KEPT {
        tx.prepare_cached(
            "INSERT INTO incident_alert (incident, seq, fate, body) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            incident.as_str(),
            next,
            fate.as_str(),
            to_json("incident_alert", alert)?
        ])?;
    }
    Ok(())
}
