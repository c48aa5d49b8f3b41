//! What a judgement asks before it is made: rows as they stand inside the batch.

use policies::guard::judge::ProposeFacts;
use policies::guard::totp::Kept;
use policies::guard::{Action, ActionDoc, State};
use policies::model::Millis;
use rusqlite::OptionalExtension;

use super::people;
use super::{Batch, Error, rows};

const HOUR_MS: i64 = 3_600_000;

impl Batch<'_> {
    /// An action by id.
    ///
    /// # Errors
    /// The database cannot be read, or the row is not what its leaf says.
    pub fn action(&self, id: &str) -> Result<Option<Action>, Error> {
        rows::find(self.conn, self.log, "WHERE id = ?1", [id])
    }

    /// The action of a capability, with the highest fence known of its job.
    ///
    /// # Errors
    /// As [`Batch::action`].
    pub fn action_of_jti(&self, jti: &str) -> Result<Option<(Action, i64)>, Error> {
        let Some(action) = rows::find(self.conn, self.log, "WHERE jti = ?1", [jti])? else {
            return Ok(None);
        };
        let job = action.issue.as_ref().map_or("", |i| i.job.as_str());
        let fence = self.fence(job)?;
        Ok(Some((action, fence)))
    }

    /// The highest fence known of a job; 0 where there is none.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn fence(&self, job: &str) -> Result<i64, Error> {
        Ok(self
            .conn
            .prepare_cached("SELECT fence FROM fence WHERE job = ?1")?
            .query_row([job], |row| row.get(0))
            .optional()?
            .unwrap_or(0))
    }

    /// Actions whose deadline has passed.
    ///
    /// # Errors
    /// As [`Batch::action`].
    pub fn due(&self, now: Millis) -> Result<Vec<Action>, Error> {
        rows::select(
            self.conn,
            self.log,
            "WHERE due_at <= ?1 ORDER BY due_at",
            [now.0],
        )
    }

    /// Actions in a state.
    ///
    /// # Errors
    /// As [`Batch::action`].
    pub fn in_state(&self, state: State) -> Result<Vec<Action>, Error> {
        let condition = "WHERE state = ?1 ORDER BY created_at, id";
        rows::select(self.conn, self.log, condition, [state.as_str()])
    }

    /// What the database knows about a proposal (guard 4.3).
    ///
    /// # Errors
    /// As [`Batch::action`].
    pub fn propose_facts(&self, requester: &str, doc: &ActionDoc) -> Result<ProposeFacts, Error> {
        let (digest, place) = (doc.digest(), rows::place(doc));
        let same = rows::find(
            self.conn,
            self.log,
            "WHERE digest = ?1 AND requester = ?2 \
             AND state IN ('pending', 'approved', 'issued', 'spent', 'in_doubt')",
            [digest.as_str(), requester],
        )?;
        let rivals = rows::select(
            self.conn,
            self.log,
            "WHERE state = 'pending' AND requester = ?1 AND place = ?2 AND digest <> ?3",
            [requester, place.as_str(), digest.as_str()],
        )?;
        let number = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
            self.conn
                .prepare_cached(sql)?
                .query_row(values, |row| row.get::<_, Option<i64>>(0))
        };
        let hour_ago = self.stamp.now.plus(-HOUR_MS).0;
        Ok(ProposeFacts {
            same,
            rivals,
            in_doubt: number(
                "SELECT count(*) FROM action WHERE state = 'in_doubt' AND place = ?1",
                &[&place],
            )? > Some(0),
            denied_at: number(
                "SELECT max(denied_at) FROM action WHERE digest = ?1",
                &[&digest],
            )?
            .map(Millis),
            pending: number(
                "SELECT count(*) FROM action WHERE state = 'pending' AND requester = ?1",
                &[&requester],
            )?
            .unwrap_or(0),
            last_hour: number(
                "SELECT count(*) FROM action WHERE requester = ?1 AND created_at > ?2",
                &[&requester, &hour_ago],
            )?
            .unwrap_or(0),
        })
    }

    /// Secret and last accepted step of a subject's one-time codes.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn totp(&self, subject: &str) -> Result<Option<Kept>, Error> {
        people::totp(self.conn, subject)
    }
}
