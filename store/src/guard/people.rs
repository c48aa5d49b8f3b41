//! People and free text, kept out of the leaves: pseudonyms, salted values, one-time codes
//! (guard 2.2.2, 6.1.1, 6.6.1).

use policies::audit::{Hash, pii_commitment};
use policies::canon::b64url;
use policies::guard::totp::Kept;
use policies::model::Millis;
use rusqlite::{Connection, OptionalExtension, params};

use super::{Error, GuardDb};

/// How a person is named whose mapping is gone.
const ERASED: &str = "erased person";

/// The pseudonym of a person; a new one is drawn where there is none.
pub(super) fn pseudonym(
    conn: &Connection,
    person: &str,
    fill: &mut dyn FnMut(&mut [u8]),
) -> Result<String, Error> {
    let known: Option<String> = conn
        .prepare_cached("SELECT pseudonym FROM person WHERE person = ?1")?
        .query_row([person], |row| row.get(0))
        .optional()?;
    if let Some(pseudonym) = known {
        return Ok(pseudonym);
    }
    let mut bits = [0; 16];
    fill(&mut bits);
    let pseudonym = format!("p_{}", b64url(&bits));
    conn.prepare_cached("INSERT INTO person (pseudonym, person) VALUES (?1, ?2)")?
        .execute([&pseudonym, person])?;
    Ok(pseudonym)
}

/// The person of a pseudonym.
pub(super) fn name(conn: &Connection, pseudonym: &str) -> Result<String, Error> {
    let known: Option<String> = conn
        .prepare_cached("SELECT person FROM person WHERE pseudonym = ?1")?
        .query_row([pseudonym], |row| row.get(0))
        .optional()?;
    Ok(known.unwrap_or_else(|| ERASED.to_owned()))
}

/// Keeps a value under a fresh salt and gives the commitment for the leaf.
pub(super) fn keep(
    conn: &Connection,
    seq: i64,
    field: &str,
    value: &str,
    fill: &mut dyn FnMut(&mut [u8]),
) -> Result<Hash, Error> {
    let mut salt = [0; 32];
    fill(&mut salt);
    conn.prepare_cached("INSERT INTO pii (seq, field, salt, value) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![seq, field, salt, value])?;
    Ok(pii_commitment(field, &salt, value))
}

/// A value that was kept.
pub(super) fn pii(conn: &Connection, seq: i64, field: &str) -> Result<Option<String>, Error> {
    Ok(conn
        .prepare_cached("SELECT value FROM pii WHERE seq = ?1 AND field = ?2")?
        .query_row(params![seq, field], |row| row.get(0))
        .optional()?)
}

/// What is kept about a subject's one-time codes.
pub(super) fn totp(conn: &Connection, subject: &str) -> Result<Option<Kept>, Error> {
    Ok(conn
        .prepare_cached(
            "SELECT secret, last_step, failures, failed_at FROM totp WHERE subject = ?1",
        )?
        .query_row([subject], |row| {
            Ok(Kept {
                secret: row.get(0)?,
                last_step: row.get(1)?,
                failures: row.get(2)?,
                failed_at: Millis(row.get(3)?),
            })
        })
        .optional()?)
}

/// Counts a wrong code, up to a number that already has the longest delay.
pub(super) fn code_failed(conn: &Connection, subject: &str, at: Millis) -> Result<(), Error> {
    conn.prepare_cached(
        "UPDATE totp SET failures = min(failures + 1, 1000), failed_at = ?2 WHERE subject = ?1",
    )?
    .execute(params![subject, at.0])?;
    Ok(())
}

/// Uses a step up and forgives the wrong codes before it; `false` where it, or a later one, is
/// used up already.
pub(super) fn use_step(conn: &Connection, subject: &str, step: i64) -> Result<bool, Error> {
    let changed = conn
        .prepare_cached(
            "UPDATE totp SET last_step = ?2, failures = 0 \
             WHERE subject = ?1 AND (last_step IS NULL OR last_step < ?2)",
        )?
        .execute(params![subject, step])?;
    Ok(changed == 1)
}

impl GuardDb {
    /// What is kept about the codes of a subject (`local:NAME`).
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn totp(&self, subject: &str) -> Result<Option<Kept>, Error> {
        totp(&self.conn, subject)
    }

    /// Uses a step up outside a judgement (a login). Of two racing uses one wins.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn use_totp_step(&self, subject: &str, step: i64) -> Result<bool, Error> {
        use_step(&self.conn, subject, step)
    }

    /// Counts a wrong code outside a judgement (a login).
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn code_failed(&self, subject: &str, at: Millis) -> Result<(), Error> {
        code_failed(&self.conn, subject, at)
    }

    /// Sets the secret of a subject; steps that were accepted before stay used up.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn enroll_totp(&self, subject: &str, secret: &[u8]) -> Result<(), Error> {
        self.conn.execute(
            "INSERT INTO totp (subject, secret) VALUES (?1, ?2) \
             ON CONFLICT (subject) DO UPDATE SET secret = excluded.secret",
            params![subject, secret],
        )?;
        Ok(())
    }

    /// Raises the fence of a job and gives the new one (guard 7.3).
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn next_fence(&self, job: &str) -> Result<i64, Error> {
        Ok(self.conn.query_row(
            "INSERT INTO fence (job, fence) VALUES (?1, 1) \
             ON CONFLICT (job) DO UPDATE SET fence = fence + 1 RETURNING fence",
            [job],
            |row| row.get(0),
        )?)
    }
}
