//! People, their roles, their logins and their failed tries (console 4).
//!
//! Secrets never come in here: a password as its argon2id hash, a cookie as its SHA-256, a name
//! that was tried as its SHA-256. TOTP secrets are the guard's and live in its own database.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use policies::model::Millis;
use rusqlite::{Connection, OptionalExtension, params};

/// Rows of failed tries that are kept: names are chosen by whoever tries.
const FAILURES_KEPT: i64 = 10_000;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS person (
  name TEXT NOT NULL PRIMARY KEY,
  password TEXT NOT NULL,
  totp INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS role_grant (
  person TEXT NOT NULL REFERENCES person(name) ON DELETE CASCADE,
  role TEXT NOT NULL,
  PRIMARY KEY (person, role)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS login (
  id BLOB NOT NULL PRIMARY KEY,
  write_secret BLOB NOT NULL,
  person TEXT NOT NULL REFERENCES person(name) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS login_failure (
  name BLOB NOT NULL PRIMARY KEY,
  failures INTEGER NOT NULL,
  last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// What went wrong in the database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQLite refused.
    #[error("the table of logins could not be read or written")]
    Sqlite(#[from] rusqlite::Error),
}

/// A person with an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Account name.
    pub name: String,
    /// PHC string of argon2id.
    pub password: String,
    /// True when the guard holds a TOTP secret of this person.
    pub totp: bool,
    /// Role words, sorted.
    pub roles: Vec<String>,
}

/// A login in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Whose.
    pub person: String,
    /// SHA-256 of the second cookie, which every POST needs as well.
    pub write_secret: [u8; 32],
    /// Begin.
    pub created_at: Millis,
    /// Last use by the person.
    pub seen_at: Millis,
    /// Role words, read anew on each request.
    pub roles: Vec<String>,
}

/// The tables of this module, in a database file that others may share.
#[derive(Debug)]
pub struct Logins {
    connection: Mutex<Connection>,
}

impl Logins {
    /// Opens the file and makes the tables that are missing.
    ///
    /// # Errors
    /// [`Error`] when the file is no database or cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self {
            connection: Mutex::new(connection),
        })
    }

    /// Adds a person; false when the name is taken.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn add_person(&self, person: &Person, now: Millis) -> Result<bool, Error> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        let added = transaction.execute(
            "INSERT INTO person (name, password, totp, created_at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
            params![person.name, person.password, person.totp, now.0],
        )? == 1;
        if added {
            for role in &person.roles {
                transaction.execute(
                    "INSERT OR IGNORE INTO role_grant (person, role) VALUES (?1, ?2)",
                    params![person.name, role],
                )?;
            }
        }
        transaction.commit()?;
        Ok(added)
    }

    /// A person by name.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn person(&self, name: &str) -> Result<Option<Person>, Error> {
        let connection = self.lock();
        let found: Option<(String, String, bool)> = connection
            .query_row(
                "SELECT name, password, totp FROM person WHERE name = ?1",
                [name],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()?;
        let Some((name, password, totp)) = found else {
            return Ok(None);
        };
        let roles = roles(&connection, &name)?;
        Ok(Some(Person {
            name,
            password,
            totp,
            roles,
        }))
    }

    /// Begins a login.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn begin(
        &self,
        id: &[u8; 32],
        write_secret: &[u8; 32],
        person: &str,
        now: Millis,
    ) -> Result<(), Error> {
        self.lock().execute(
            "INSERT INTO login (id, write_secret, person, created_at, seen_at)
             VALUES (?1, ?2, ?3, ?4, ?4)",
            params![id, write_secret, person, now.0],
        )?;
        Ok(())
    }

    /// A login by the digest of its cookie.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn login(&self, id: &[u8; 32]) -> Result<Option<Login>, Error> {
        let connection = self.lock();
        let found = connection
            .query_row(
                "SELECT person, write_secret, created_at, seen_at FROM login WHERE id = ?1",
                [id],
                |row| {
                    Ok(Login {
                        person: row.get(0)?,
                        write_secret: row.get(1)?,
                        created_at: Millis(row.get(2)?),
                        seen_at: Millis(row.get(3)?),
                        roles: Vec::new(),
                    })
                },
            )
            .optional()?;
        match found {
            Some(mut login) => {
                login.roles = roles(&connection, &login.person)?;
                Ok(Some(login))
            }
            None => Ok(None),
        }
    }

    /// Notes that the person used the login.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn touch(&self, id: &[u8; 32], now: Millis) -> Result<(), Error> {
        self.lock().execute(
            "UPDATE login SET seen_at = ?2 WHERE id = ?1",
            params![id, now.0],
        )?;
        Ok(())
    }

    /// Ends a login.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn end(&self, id: &[u8; 32]) -> Result<(), Error> {
        self.lock()
            .execute("DELETE FROM login WHERE id = ?1", [id])?;
        Ok(())
    }

    /// Removes logins that nobody used since `seen`, and those begun before `created`.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn prune(&self, seen: Millis, created: Millis) -> Result<usize, Error> {
        Ok(self.lock().execute(
            "DELETE FROM login WHERE seen_at < ?1 OR created_at < ?2",
            [seen.0, created.0],
        )?)
    }

    /// Failed tries in a row for the digest of a name, and the last of them.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn failures(&self, name: &[u8; 32]) -> Result<Option<(u32, Millis)>, Error> {
        Ok(self
            .lock()
            .query_row(
                "SELECT failures, last_at FROM login_failure WHERE name = ?1",
                [name],
                |row| Ok((row.get(0)?, Millis(row.get(1)?))),
            )
            .optional()?)
    }

    /// Counts a failed try. The oldest rows go when there are too many.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn fail(&self, name: &[u8; 32], now: Millis) -> Result<(), Error> {
        let mut connection = self.lock();
        let transaction = connection.transaction()?;
        transaction.execute(
            "INSERT INTO login_failure (name, failures, last_at) VALUES (?1, 1, ?2)
             ON CONFLICT (name) DO UPDATE SET failures = failures + 1, last_at = ?2",
            params![name, now.0],
        )?;
        transaction.execute(
            "DELETE FROM login_failure WHERE name IN (SELECT name FROM login_failure
             ORDER BY last_at DESC LIMIT -1 OFFSET ?1)",
            [FAILURES_KEPT],
        )?;
        transaction.commit()?;
        Ok(())
    }

    /// Forgets the failed tries of a name.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn forgive(&self, name: &[u8; 32]) -> Result<(), Error> {
        self.lock()
            .execute("DELETE FROM login_failure WHERE name = ?1", [name])?;
        Ok(())
    }

    /// A panic while the lock was held leaves no half-done work: every write is one transaction.
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn roles(connection: &Connection, person: &str) -> Result<Vec<String>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT role FROM role_grant WHERE person = ?1 ORDER BY role")?;
    let rows = statement.query_map([person], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> (tempfile::TempDir, Logins) {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins::open(&folder.path().join("sentinel.db")).unwrap();
        (folder, logins)
    }

    fn alice() -> Person {
        Person {
            name: "alice".to_owned(),
            password: "$argon2id$".to_owned(),
            totp: true,
            roles: vec!["approver".to_owned(), "viewer".to_owned()],
        }
    }

    #[test]
    fn a_person_is_added_once_and_read_back() {
        let (_folder, logins) = fresh();
        assert!(logins.add_person(&alice(), Millis(1)).unwrap());
        assert!(!logins.add_person(&alice(), Millis(2)).unwrap());
        assert_eq!(logins.person("alice").unwrap(), Some(alice()));
        assert_eq!(logins.person("bob").unwrap(), None);
    }

    #[test]
    fn a_login_survives_reopening_and_ends_for_good() {
        let (folder, logins) = fresh();
        logins.add_person(&alice(), Millis(1)).unwrap();
        logins
            .begin(&[1; 32], &[2; 32], "alice", Millis(10))
            .unwrap();
        drop(logins);
        let logins = Logins::open(&folder.path().join("sentinel.db")).unwrap();
        logins.touch(&[1; 32], Millis(20)).unwrap();
        let login = logins.login(&[1; 32]).unwrap().unwrap();
        assert_eq!(
            (login.created_at, login.seen_at, login.write_secret),
            (Millis(10), Millis(20), [2; 32])
        );
        assert_eq!(login.roles, ["approver", "viewer"]);
        logins.end(&[1; 32]).unwrap();
        assert_eq!(logins.login(&[1; 32]).unwrap(), None);
    }

    #[test]
    fn idle_and_old_logins_are_removed() {
        let (_folder, logins) = fresh();
        logins.add_person(&alice(), Millis(1)).unwrap();
        logins
            .begin(&[1; 32], &[0; 32], "alice", Millis(0))
            .unwrap();
        logins
            .begin(&[2; 32], &[0; 32], "alice", Millis(50))
            .unwrap();
        assert_eq!(logins.prune(Millis(40), Millis(0)).unwrap(), 1);
        assert!(logins.login(&[2; 32]).unwrap().is_some());
        assert_eq!(logins.prune(Millis(0), Millis(60)).unwrap(), 1);
    }

    #[test]
    fn failures_are_counted_until_they_are_forgiven() {
        let (_folder, logins) = fresh();
        for at in 1..=3 {
            logins.fail(&[9; 32], Millis(at)).unwrap();
        }
        assert_eq!(logins.failures(&[9; 32]).unwrap(), Some((3, Millis(3))));
        logins.forgive(&[9; 32]).unwrap();
        assert_eq!(logins.failures(&[9; 32]).unwrap(), None);
    }
}
