//! Reading without changing: actions for the screens, and the parts of a bundle.

use policies::audit::bundle::{Epoch, LogView, Parts, PiiRow, Wanted, outline};
use policies::guard::{Action, State};
use rusqlite::{OptionalExtension, params};

use super::rows::as_sql as sql;
use super::{Error, GuardDb, rows};

/// The hold that is in force.
const HOLD: &str = "hold";

impl GuardDb {
    /// An action by id.
    ///
    /// # Errors
    /// The database cannot be read, or the row is not what its leaf says.
    pub fn action(&self, id: &str) -> Result<Option<Action>, Error> {
        rows::find(&self.conn, &self.log, "WHERE id = ?1", [id])
    }

    /// The newest actions, in a state or in any.
    ///
    /// # Errors
    /// As [`GuardDb::action`].
    pub fn actions(&self, state: Option<State>, limit: u32) -> Result<Vec<Action>, Error> {
        rows::select(
            &self.conn,
            &self.log,
            "WHERE (?1 IS NULL OR state = ?1) ORDER BY created_at DESC, id LIMIT ?2",
            params![state.map(State::as_str), limit],
        )
    }

    /// When and why a hold was set; `None` where there is none.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn hold(&self) -> Result<Option<String>, Error> {
        self.meta(HOLD)
    }

    /// A small value of the guard's own.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn meta(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(self
            .conn
            .query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| {
                row.get(0)
            })
            .optional()?)
    }

    /// The hash of the policy that the newest leaf names.
    ///
    /// # Errors
    /// The newest leaf cannot be read.
    pub fn last_policy(&self) -> Result<Option<String>, Error> {
        let Some(last) = self.size().checked_sub(1) else {
            return Ok(None);
        };
        let event = rows::leaf(&self.conn, &self.log, last)?;
        Ok(event.policy.map(|hash| policies::audit::hash_text(&hash)))
    }

    /// The leaves of a range as JCS, each compared with its hash.
    ///
    /// # Errors
    /// A leaf is missing or not what was written.
    pub fn events(&self, from: u64, to: u64) -> Result<Vec<String>, Error> {
        (from..to)
            .map(|index| rows::leaf(&self.conn, &self.log, index).map(|event| event.jcs))
            .collect()
    }

    /// Everything that a bundle of a range holds (audit-bundle 2).
    ///
    /// # Errors
    /// The range is none of this log, or something cannot be read.
    pub fn bundle(&self, wanted: Wanted, with_pii: bool) -> Result<Parts, Error> {
        let epochs = self.epochs()?;
        let view = LogView {
            origin: &self.log.origin,
            inc: self.log.inc,
            tree: &self.log.tree,
            epochs: &epochs,
            root: None,
            head: &self.log.note,
        };
        let mut parts = outline(&view, wanted)?;
        parts.events = self.events(wanted.from, wanted.to)?;
        parts.docs = self.docs(wanted)?;
        if with_pii {
            parts.pii = self.pii(wanted)?;
        }
        Ok(parts)
    }

    /// The epochs of this log; each is open until there is a rotation.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn epochs(&self) -> Result<Vec<Epoch>, Error> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT epoch, start, vkey, cap_spki FROM epoch ORDER BY epoch")?;
        let rows = statement.query_map([], |row| {
            Ok(Epoch {
                epoch: row.get::<_, i64>(0)?.unsigned_abs(),
                from: row.get::<_, i64>(1)?.unsigned_abs(),
                vkey: row.get(2)?,
                cap_spki: row.get(3)?,
                closing: None,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn docs(&self, wanted: Wanted) -> Result<Vec<String>, Error> {
        let mut statement = self.conn.prepare_cached(
            "SELECT DISTINCT doc FROM action WHERE proposed >= ?1 AND proposed < ?2",
        )?;
        let rows =
            statement.query_map(params![sql(wanted.from), sql(wanted.to)], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn pii(&self, wanted: Wanted) -> Result<Vec<PiiRow>, Error> {
        let mut statement = self.conn.prepare_cached(
            "SELECT seq, field, salt, value FROM pii WHERE seq >= ?1 AND seq < ?2",
        )?;
        let rows = statement.query_map(params![sql(wanted.from), sql(wanted.to)], |row| {
            Ok(PiiRow {
                seq: row.get::<_, i64>(0)?.unsigned_abs(),
                field: row.get(1)?,
                salt: row.get(2)?,
                value: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
