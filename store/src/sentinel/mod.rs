//! `sentinel.db`: incidents, their alerts and evidence, scraped samples, postmortems and
//! notifications.
//!
//! One connection, WAL, `synchronous=FULL`: what a caller was told is stored survives a power cut.
//! What becomes of an alert is decided by `policies::intake`; this module holds the transaction
//! around it.

mod incidents;
mod intake;
mod notices;
mod samples;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

pub use incidents::{AlertRow, IncidentRow, LeafRow, NewState, Postmortem};
pub use intake::{Taken, TakenIncident, Webhook};
pub use notices::{DueNotice, Notice};
pub use samples::Scrape;

/// What can go wrong in `sentinel.db`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQLite refused.
    #[error("`sentinel.db` could not be read or written")]
    Sqlite(#[from] rusqlite::Error),
    /// A stored JSON text is not what was written.
    #[error("a row of `{table}` in `sentinel.db` does not parse")]
    Row {
        /// Table of the row.
        table: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The file is of a newer program.
    #[error("`sentinel.db` has schema {found}, this program knows {known}")]
    Newer {
        /// Version in the file.
        found: i64,
        /// Newest known version.
        known: i64,
    },
}

/// Forward-only steps; the index of a step is the version that it starts from.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE incident (
  id TEXT NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  environment TEXT NOT NULL,
  title TEXT NOT NULL,
  service TEXT NOT NULL,
  severity TEXT NOT NULL,
  phase TEXT NOT NULL,
  outcome TEXT,
  cause_class TEXT,
  action_id TEXT,
  redact_key BLOB NOT NULL,
  opened_at INTEGER NOT NULL,
  last_alert_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  closed_at INTEGER,
  version INTEGER NOT NULL,
  state TEXT
) STRICT;
CREATE INDEX incident_open ON incident (closed_at, opened_at);
CREATE TABLE incident_alert (
  incident TEXT NOT NULL REFERENCES incident(id),
  seq INTEGER NOT NULL,
  fate TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (incident, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE episode (
  dedup_key TEXT NOT NULL PRIMARY KEY,
  incident TEXT NOT NULL REFERENCES incident(id),
  source TEXT NOT NULL,
  name TEXT NOT NULL,
  service TEXT NOT NULL,
  group_key TEXT NOT NULL,
  open INTEGER NOT NULL,
  opened_at INTEGER NOT NULL,
  ended_at INTEGER,
  last_seen INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX episode_incident ON episode (incident);
CREATE INDEX episode_opened ON episode (source, opened_at);
CREATE TABLE receipt (
  mac BLOB NOT NULL PRIMARY KEY,
  receipt TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE evidence (
  incident TEXT NOT NULL REFERENCES incident(id),
  id INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (incident, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE postmortem (
  incident TEXT NOT NULL PRIMARY KEY REFERENCES incident(id),
  markdown TEXT NOT NULL,
  json TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE scrape (
  id INTEGER PRIMARY KEY,
  service TEXT NOT NULL,
  instance TEXT NOT NULL,
  at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX scrape_at ON scrape (at);
CREATE TABLE outbox (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
",
    "
CREATE TABLE notice (
  sink TEXT NOT NULL,
  id TEXT NOT NULL,
  body TEXT NOT NULL,
  at INTEGER NOT NULL,
  due INTEGER,
  tries INTEGER NOT NULL,
  PRIMARY KEY (sink, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX notice_due ON notice (sink, due);
",
    "
CREATE TABLE key_check (name TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
",
];

/// The database.
#[derive(Debug)]
pub struct Db {
    connection: Mutex<Connection>,
}

impl Db {
    /// Opens or makes the file and brings its schema up to date.
    ///
    /// # Errors
    /// [`Error::Newer`] leaves the file unchanged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        private(path);
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        let found: i64 = connection.pragma_query_value(None, "user_version", |r| r.get(0))?;
        let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        if found > known {
            return Err(Error::Newer { found, known });
        }
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "secure_delete", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        let steps = (1_i64..).zip(MIGRATIONS);
        for (version, step) in steps.filter(|(version, _)| *version > found) {
            let tx = connection.transaction()?;
            tx.execute_batch(step)?;
            tx.pragma_update(None, "user_version", version)?;
            tx.commit()?;
        }
        Ok(Self {
            connection: Mutex::new(connection),
        })
    }

    /// True when `value`, made from the key `name`, is what was stored for it; the first one is
    /// stored. The value must not tell the key.
    ///
    /// # Errors
    /// The database refused.
    pub fn key_matches(&self, name: &str, value: &[u8; 32]) -> Result<bool, Error> {
        let connection = self.lock();
        connection.execute(
            "INSERT OR IGNORE INTO key_check (name, value) VALUES (?1, ?2)",
            rusqlite::params![name, value],
        )?;
        let stored: Vec<u8> =
            connection.query_row("SELECT value FROM key_check WHERE name = ?1", [name], |r| {
                r.get(0)
            })?;
        Ok(stored == value)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the file closed to others before anything is in it; SQLite gives its WAL the same mode.
/// A folder that does not allow it is found by the open that follows.
fn private(path: &Path) {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let mut options = std::fs::OpenOptions::new();
    let file = options.create(true).append(true).mode(0o600).open(path);
    if let Ok(file) = file {
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
    }
}

fn from_json<T: serde::de::DeserializeOwned>(table: &'static str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|source| Error::Row { table, source })
}

fn to_json<T: serde::Serialize>(table: &'static str, value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|source| Error::Row { table, source })
}

#[cfg(test)]
mod tests {
    use super::{Db, Error};

    #[test]
    fn the_database_is_closed_to_everybody_else() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sentinel.db");
        let _db = Db::open(&path).unwrap();
        for name in ["sentinel.db", "sentinel.db-wal"] {
            let mode = std::fs::metadata(dir.path().join(name))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn the_first_value_of_a_key_is_kept_and_another_one_does_not_match() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sentinel.db");
        let db = Db::open(&path).unwrap();
        assert!(db.key_matches("redact-key", &[1; 32]).unwrap());
        drop(db);
        let db = Db::open(&path).unwrap();
        assert!(!db.key_matches("redact-key", &[2; 32]).unwrap());
        assert!(db.key_matches("redact-key", &[1; 32]).unwrap());
    }

    #[test]
    fn a_newer_file_is_refused_and_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sentinel.db");
        drop(Db::open(&path).unwrap());
        let raw = rusqlite::Connection::open(&path).unwrap();
        raw.pragma_update(None, "user_version", 99).unwrap();
        drop(raw);
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(
            Db::open(&path),
            Err(Error::Newer { found: 99, .. })
        ));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
