//! Notifications that wait to be sent, and the ones that were, so that each is told once.

use policies::model::Millis;
use rusqlite::{Connection, params};

use super::{Db, Error};

/// A notification to one sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Name of the sink in the configuration.
    pub sink: String,
    /// Stable id: the receiver may see it twice and can tell.
    pub id: String,
    /// What is sent, byte for byte.
    pub body: String,
}

/// A notification whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueNotice {
    /// What and where to.
    pub notice: Notice,
    /// When it was stored.
    pub at: Millis,
    /// Attempts so far.
    pub tries: u32,
}

/// Stores `notices` unless their sink was told the same id before.
pub(super) fn insert(
    connection: &Connection,
    now: Millis,
    notices: &[Notice],
) -> Result<(), Error> {
    for notice in notices {
        connection
            .prepare_cached(
                "INSERT OR IGNORE INTO notice (sink, id, body, at, due, tries)
                 VALUES (?1, ?2, ?3, ?4, ?4, 0)",
            )?
            .execute(params![notice.sink, notice.id, notice.body, now.0])?;
    }
    Ok(())
}

impl Db {
    /// Stores notifications that belong to no step of an investigation.
    ///
    /// # Errors
    /// The database refused.
    pub fn add_notices(&self, now: Millis, notices: &[Notice]) -> Result<(), Error> {
        insert(&self.lock(), now, notices)
    }

    /// What is due for `sink`, oldest first.
    ///
    /// # Errors
    /// The database refused.
    pub fn due_notices(
        &self,
        sink: &str,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<DueNotice>, Error> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT id, body, at, tries FROM notice WHERE sink = ?1 AND due <= ?2 ORDER BY at, id LIMIT ?3",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![sink, now.0, limit], |r| {
            Ok(DueNotice {
                notice: Notice {
                    sink: sink.to_owned(),
                    id: r.get(0)?,
                    body: r.get(1)?,
                },
                at: Millis(r.get(2)?),
                tries: r.get(3)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Notes an attempt: `again` is when to try once more, `None` when it is settled.
    ///
    /// # Errors
    /// The database refused.
    pub fn notice_tried(&self, notice: &Notice, again: Option<Millis>) -> Result<(), Error> {
        self.lock().execute(
            "UPDATE notice SET due = ?3, tries = tries + 1 WHERE sink = ?1 AND id = ?2",
            params![notice.sink, notice.id, again.map(|m| m.0)],
        )?;
        Ok(())
    }

    /// Forgets settled notifications that were stored before `before`.
    ///
    /// # Errors
    /// The database refused.
    pub fn forget_notices(&self, before: Millis) -> Result<(), Error> {
        self.lock().execute(
            "DELETE FROM notice WHERE due IS NULL AND at < ?1",
            params![before.0],
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use policies::model::Millis;

    use super::{Db, Notice};

    fn notice(id: &str) -> Notice {
        Notice {
            sink: "pager".to_owned(),
            id: id.to_owned(),
            body: "{}".to_owned(),
        }
    }

    #[test]
    fn a_notification_is_due_until_it_is_settled_and_is_never_stored_twice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sentinel.db");
        let db = Db::open(&path).unwrap();
        let ids = |now: i64| {
            let due = db.due_notices("pager", Millis(now), 10).unwrap();
            due.into_iter()
                .map(|d| (d.notice.id, d.tries))
                .collect::<Vec<_>>()
        };
        db.add_notices(Millis(5), &[notice("a"), notice("b")])
            .unwrap();
        db.add_notices(Millis(6), &[notice("a")]).unwrap();
        assert_eq!(ids(5), [("a".to_owned(), 0), ("b".to_owned(), 0)]);
        assert_eq!(db.due_notices("mail", Millis(9), 10).unwrap(), []);

        db.notice_tried(&notice("a"), Some(Millis(50))).unwrap();
        db.notice_tried(&notice("b"), None).unwrap();
        assert_eq!(ids(49), []);
        assert_eq!(ids(50), [("a".to_owned(), 1)]);
        // One that was told is not told again, not even after a restart.
        db.add_notices(Millis(60), &[notice("b")]).unwrap();
        assert_eq!(ids(60), [("a".to_owned(), 1)]);

        db.forget_notices(Millis(100)).unwrap();
        db.add_notices(Millis(101), &[notice("b")]).unwrap();
        assert_eq!(ids(101), [("a".to_owned(), 1), ("b".to_owned(), 0)]);
    }
}
