//! Scraped samples, kept so that a restart does not lose the baseline of an incident.

use policies::model::{Millis, Sample};
use rusqlite::params;

use super::{Db, Error, from_json, to_json};

/// One scrape of one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Scrape {
    /// Service of the target.
    pub service: String,
    /// Instance of the target.
    pub instance: String,
    /// When it was read.
    pub at: Millis,
    /// What the page said.
    pub samples: Vec<Sample>,
}

impl Db {
    /// Stores one scrape and drops what is older than `keep_from`.
    ///
    /// # Errors
    /// The database refused.
    pub fn add_scrape(&self, scrape: &Scrape, keep_from: Millis) -> Result<(), Error> {
        let body = to_json("scrape", &scrape.samples)?;
        let connection = self.lock();
        connection
            .prepare_cached(
                "INSERT INTO scrape (service, instance, at, body) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![scrape.service, scrape.instance, scrape.at.0, body])?;
        connection
            .prepare_cached("DELETE FROM scrape WHERE at < ?1")?
            .execute(params![keep_from.0])?;
        Ok(())
    }

    /// All scrapes since `from`, oldest first.
    ///
    /// # Errors
    /// The database refused, or a row is damaged.
    pub fn scrapes(&self, from: Millis) -> Result<Vec<Scrape>, Error> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT service, instance, at, body FROM scrape WHERE at >= ?1 ORDER BY at, id",
        )?;
        let rows = statement.query_map(params![from.0], |r| {
            Ok((
                r.get::<_, String>(0)?,
                r.get::<_, String>(1)?,
                r.get::<_, i64>(2)?,
                r.get::<_, String>(3)?,
            ))
        })?;
        rows.map(|r| {
            let (service, instance, at, body) = r?;
            Ok(Scrape {
                service,
                instance,
                at: Millis(at),
                samples: from_json("scrape", &body)?,
            })
        })
        .collect()
    }
}
