//! Incidents: their row, state, alerts, evidence, postmortem, and the leaves that wait for the guard.

use policies::model::{Alert, IncidentId, Millis};
use rusqlite::{OptionalExtension, Row, params};

use super::notices::{self, Notice};
use super::{Db, Error, from_json, to_json};

/// The list's view of an incident.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct IncidentRow {
    /// Id.
    pub id: String,
    /// Tenant.
    pub tenant: String,
    /// `alert` or `storm`.
    pub kind: String,
    /// Name of the first alert, or what storms.
    pub title: String,
    /// Service of the first alert; empty when unknown.
    pub service: String,
    /// Severity word.
    pub severity: String,
    /// Phase word of the investigation.
    pub phase: String,
    /// How it ended; `None` while open.
    pub outcome: Option<String>,
    /// Diagnosed cause class.
    pub cause_class: Option<String>,
    /// The guard's action, once proposed.
    pub action_id: Option<String>,
    /// When it was opened.
    pub opened_at: Millis,
    /// Last change.
    pub updated_at: Millis,
    /// When it was closed.
    pub closed_at: Option<Millis>,
    /// Episodes attached.
    pub alerts: i64,
    /// Rises with each change.
    pub version: i64,
}

/// An alert of an incident with what became of it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct AlertRow {
    /// The word of `policies::intake::Fate`.
    pub fate: String,
    /// The alert.
    pub alert: Alert,
}

/// The state of an investigation, as it is saved after each step.
#[derive(Clone, Copy, Debug)]
pub struct NewState<'a> {
    /// Phase word.
    pub phase: &'a str,
    /// Outcome word, once closed.
    pub outcome: Option<&'a str>,
    /// Diagnosed cause class.
    pub cause_class: Option<&'a str>,
    /// The guard's action.
    pub action_id: Option<&'a str>,
    /// The machine's own JSON.
    pub state: &'a str,
    /// Evidence added by the step: number and JSON.
    pub evidence: &'a [(u32, String)],
    /// Leaves for the audit log: type word and JSON.
    pub leaves: &'a [(String, String)],
    /// Set when the step closes the incident.
    pub postmortem: Option<&'a Postmortem>,
    /// Whom to tell what about the step.
    pub notices: &'a [Notice],
}

/// A postmortem in both forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Postmortem {
    /// Markdown.
    pub markdown: String,
    /// JSON.
    pub json: String,
}

/// A leaf that waits for the guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafRow {
    /// Order.
    pub seq: i64,
    /// Type word of guard 6.1.2.
    pub kind: String,
    /// JSON of its members.
    pub body: String,
}

const ROW: &str =
    "SELECT id, tenant, kind, title, service, severity, phase, outcome, cause_class, action_id,
  opened_at, updated_at, closed_at, version,
  (SELECT count(*) FROM episode e WHERE e.incident = incident.id) FROM incident";

fn row(r: &Row<'_>) -> rusqlite::Result<IncidentRow> {
    Ok(IncidentRow {
        id: r.get(0)?,
        tenant: r.get(1)?,
        kind: r.get(2)?,
        title: r.get(3)?,
        service: r.get(4)?,
        severity: r.get(5)?,
        phase: r.get(6)?,
        outcome: r.get(7)?,
        cause_class: r.get(8)?,
        action_id: r.get(9)?,
        opened_at: Millis(r.get(10)?),
        updated_at: Millis(r.get(11)?),
        closed_at: r.get::<_, Option<i64>>(12)?.map(Millis),
        version: r.get(13)?,
        alerts: r.get(14)?,
    })
}

impl Db {
    /// Incidents, newest first, at most `limit`, opened before `before` if given.
    ///
    /// # Errors
    /// The database refused.
    pub fn incident_list(
        &self,
        limit: usize,
        before: Option<Millis>,
    ) -> Result<Vec<IncidentRow>, Error> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&format!(
            "{ROW} WHERE opened_at < ?1 ORDER BY opened_at DESC, id LIMIT ?2"
        ))?;
        let before = before.map_or(i64::MAX, |m| m.0);
        let rows = statement.query_map(
            params![before, i64::try_from(limit).unwrap_or(i64::MAX)],
            row,
        )?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// One incident.
    ///
    /// # Errors
    /// The database refused.
    pub fn incident(&self, id: &IncidentId) -> Result<Option<IncidentRow>, Error> {
        let connection = self.lock();
        Ok(connection
            .prepare_cached(&format!("{ROW} WHERE id = ?1"))?
            .query_row(params![id.as_str()], row)
            .optional()?)
    }

    /// Ids of all incidents that are not closed, oldest first.
    ///
    /// # Errors
    /// The database refused.
    pub fn open_incidents(&self) -> Result<Vec<IncidentId>, Error> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT id FROM incident WHERE closed_at IS NULL ORDER BY opened_at, id",
        )?;
        let ids = statement.query_map([], |r| r.get::<_, String>(0))?;
        let ids: Vec<String> = ids.collect::<Result<_, _>>()?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// The saved state of an investigation; `None` before its first step or for an unknown id.
    ///
    /// # Errors
    /// The database refused.
    pub fn state(&self, id: &IncidentId) -> Result<Option<String>, Error> {
        let connection = self.lock();
        Ok(connection
            .prepare_cached("SELECT state FROM incident WHERE id = ?1")?
            .query_row(params![id.as_str()], |r| r.get(0))
            .optional()?
            .flatten())
    }

    /// The wrapped redaction key of an incident; `None` once it was erased.
    ///
    /// # Errors
    /// The database refused.
    pub fn redact_key(&self, id: &IncidentId) -> Result<Option<Vec<u8>>, Error> {
        let connection = self.lock();
        let key: Option<Vec<u8>> = connection
            .prepare_cached("SELECT redact_key FROM incident WHERE id = ?1")?
            .query_row(params![id.as_str()], |r| r.get(0))
            .optional()?;
        Ok(key.filter(|k| !k.is_empty()))
    }

    /// The alerts of an incident with their fates, in order of receipt (the first 50).
    ///
    /// # Errors
    /// The database refused, or a row is damaged.
    pub fn alerts(&self, id: &IncidentId) -> Result<Vec<AlertRow>, Error> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT fate, body FROM incident_alert WHERE incident = ?1 ORDER BY seq",
        )?;
        let rows = statement.query_map(params![id.as_str()], |r| {
            Ok((r.get::<_, String>(0)?, r.get::<_, String>(1)?))
        })?;
        rows.map(|r| {
            let (fate, body) = r?;
            Ok(AlertRow {
                fate,
                alert: from_json("incident_alert", &body)?,
            })
        })
        .collect()
    }

    /// The evidence of an incident as stored, by number.
    ///
    /// # Errors
    /// The database refused.
    pub fn evidence(&self, id: &IncidentId) -> Result<Vec<(u32, String)>, Error> {
        let connection = self.lock();
        let mut statement = connection
            .prepare_cached("SELECT id, body FROM evidence WHERE incident = ?1 ORDER BY id")?;
        let rows = statement.query_map(params![id.as_str()], |r| Ok((r.get(0)?, r.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The postmortem of a closed incident.
    ///
    /// # Errors
    /// The database refused.
    pub fn postmortem(&self, id: &IncidentId) -> Result<Option<Postmortem>, Error> {
        let connection = self.lock();
        Ok(connection
            .prepare_cached("SELECT markdown, json FROM postmortem WHERE incident = ?1")?
            .query_row(params![id.as_str()], |r| {
                Ok(Postmortem {
                    markdown: r.get(0)?,
                    json: r.get(1)?,
                })
            })
            .optional()?)
    }

    /// Saves one step of an investigation: state, new evidence, leaves, notifications and
    /// postmortem in one transaction. Closing erases the incident's redaction key.
    ///
    /// # Errors
    /// The database refused; nothing was stored.
    pub fn save_state(
        &self,
        id: &IncidentId,
        now: Millis,
        new: &NewState<'_>,
    ) -> Result<(), Error> {
        let mut connection = self.lock();
        let tx = connection.transaction()?;
        tx.prepare_cached(
            "UPDATE incident SET phase = ?2, outcome = ?3, cause_class = ?4, action_id = ?5, state = ?6,
               updated_at = ?7, version = version + 1,
               closed_at = CASE WHEN ?3 IS NULL THEN NULL ELSE coalesce(closed_at, ?7) END,
               redact_key = CASE WHEN ?3 IS NULL THEN redact_key ELSE x'' END
             WHERE id = ?1",
        )?
        .execute(params![
            id.as_str(),
            new.phase,
            new.outcome,
            new.cause_class,
            new.action_id,
            new.state,
            now.0
        ])?;
        for (number, body) in new.evidence {
            tx.prepare_cached(
                "INSERT OR REPLACE INTO evidence (incident, id, body) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![id.as_str(), number, body])?;
        }
        for (kind, body) in new.leaves {
            tx.prepare_cached("INSERT INTO outbox (kind, body) VALUES (?1, ?2)")?
                .execute(params![kind, body])?;
        }
        if let Some(postmortem) = new.postmortem {
            tx.prepare_cached("INSERT OR REPLACE INTO postmortem (incident, markdown, json, at) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![id.as_str(), postmortem.markdown, postmortem.json, now.0])?;
        }
        notices::insert(&tx, now, new.notices)?;
        tx.commit()?;
        Ok(())
    }

    /// The oldest leaves that wait for the guard.
    ///
    /// # Errors
    /// The database refused.
    pub fn outbox(&self, limit: usize) -> Result<Vec<LeafRow>, Error> {
        let connection = self.lock();
        let mut statement = connection
            .prepare_cached("SELECT seq, kind, body FROM outbox ORDER BY seq LIMIT ?1")?;
        let rows = statement.query_map(params![i64::try_from(limit).unwrap_or(i64::MAX)], |r| {
            Ok(LeafRow {
                seq: r.get(0)?,
                kind: r.get(1)?,
                body: r.get(2)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Forgets a leaf that the guard has taken.
    ///
    /// # Errors
    /// The database refused.
    pub fn outbox_done(&self, seq: i64) -> Result<(), Error> {
        self.lock()
            .execute("DELETE FROM outbox WHERE seq = ?1", params![seq])?;
        Ok(())
    }

    /// Adds one leaf for the guard.
    ///
    /// # Errors
    /// The database refused.
    pub fn outbox_add<T: serde::Serialize>(&self, kind: &str, body: &T) -> Result<(), Error> {
        let body = to_json("outbox", body)?;
        self.lock().execute(
            "INSERT INTO outbox (kind, body) VALUES (?1, ?2)",
            params![kind, body],
        )?;
        Ok(())
    }
}
