//! Opening `guard.db`: schema, pragmas, the log in memory, and the comparison with the copy and
//! the anchor (guard 6.3.1, 6.7, 9.2.2).

use std::path::{Path, PathBuf};

use policies::audit::{Checkpoint, Event, Frontier, Hash, Tree};
use policies::guard::Code;
use policies::model::Millis;
use rusqlite::{Connection, OptionalExtension, params};

use super::anchor::Anchor;
use super::keys::EpochKeys;
use super::tail::Tail;
use super::{Error, Fault, GuardDb, Log, files};

/// Newest leaves whose bytes are hashed again at each start.
const REHASHED: u64 = 4_096;

/// Forward-only steps; the index of a step is the version that it starts from.
const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE leaf (
  seq INTEGER PRIMARY KEY, hash BLOB NOT NULL, event TEXT NOT NULL
) STRICT;
CREATE TABLE head (
  id INTEGER PRIMARY KEY CHECK (id = 1), size INTEGER NOT NULL, high_water INTEGER NOT NULL,
  note TEXT NOT NULL
) STRICT;
CREATE TABLE epoch (
  epoch INTEGER PRIMARY KEY, start INTEGER NOT NULL, vkey TEXT NOT NULL, cap_spki BLOB NOT NULL
) STRICT;
CREATE TABLE action (
  id TEXT NOT NULL PRIMARY KEY,
  revision INTEGER NOT NULL,
  state TEXT NOT NULL,
  requester TEXT NOT NULL,
  initiator TEXT,
  digest TEXT NOT NULL,
  place TEXT NOT NULL,
  doc TEXT NOT NULL,
  nonce TEXT NOT NULL,
  need INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  approval_expires_at INTEGER,
  due_at INTEGER,
  jti TEXT UNIQUE,
  issue TEXT,
  spend TEXT,
  ending TEXT,
  denied_at INTEGER,
  proposed INTEGER NOT NULL,
  leaf INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX action_state ON action (state, created_at);
CREATE INDEX action_digest ON action (digest);
CREATE INDEX action_due ON action (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE decision (
  leaf INTEGER PRIMARY KEY,
  aid TEXT NOT NULL REFERENCES action (id),
  person TEXT NOT NULL,
  verdict TEXT NOT NULL,
  assurance TEXT NOT NULL,
  via TEXT,
  nonce TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX decision_aid ON decision (aid);
CREATE TABLE person (
  pseudonym TEXT NOT NULL PRIMARY KEY, person TEXT NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
CREATE TABLE pii (
  seq INTEGER NOT NULL, field TEXT NOT NULL, salt BLOB NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (seq, field)
) STRICT, WITHOUT ROWID;
CREATE TABLE totp (
  subject TEXT NOT NULL PRIMARY KEY, secret BLOB NOT NULL, last_step INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE fence (
  job TEXT NOT NULL PRIMARY KEY, fence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
",
    "
ALTER TABLE totp ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE totp ADD COLUMN failed_at INTEGER NOT NULL DEFAULT 0;
",
];

/// Where the guard's files are, and what a new log is called.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Folder of `guard.db`, `epoch.key` and the second copy.
    pub state_dir: PathBuf,
    /// Folder of the anchor, outside the backup set.
    pub anchor_dir: PathBuf,
    /// Site name: the origin of a new log starts with it.
    pub site: String,
    /// Key-encryption key of `epoch.key`.
    pub kek: [u8; 32],
}

impl GuardDb {
    /// Opens the database, makes it where nothing stands yet, and compares it with the second copy
    /// and the anchor. What stops changes without stopping reads is told by [`GuardDb::fault`];
    /// the keys are `None` exactly where they cannot be unwrapped.
    ///
    /// # Errors
    /// The database cannot be used at all: a newer schema, a lost file beside a standing anchor,
    /// a leaf that is not what its hash says.
    pub fn open(
        options: &OpenOptions,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(Self, Option<EpochKeys>), Error> {
        files::private_dir(&options.state_dir)?;
        let path = options.state_dir.join("guard.db");
        let anchor_path = options.anchor_dir.join("head");
        if !path.exists() {
            if Anchor::exists(&anchor_path) {
                return Err(Error::Missing {
                    anchor: anchor_path,
                });
            }
            drop(files::open(&path, true)?);
        }
        let mut conn = connect(&path)?;
        migrate(&mut conn)?;
        let key_path = options.state_dir.join("epoch.key");
        let origin = match meta(&conn, "origin")? {
            Some(origin) => origin,
            None => found(&conn, &options.site)?,
        };
        let keys = match keys(&conn, &key_path, &origin, &options.kek, fill) {
            Ok(keys) => Ok(keys),
            Err(error @ (Error::Key | Error::File { .. })) => Err(Fault {
                code: Code::KeyUnavailable,
                cause: error.to_string(),
            }),
            Err(error) => return Err(error),
        };
        let (log, fault) = log(&conn, origin, &options.state_dir, &anchor_path)?;
        let key_fault = keys.as_ref().err().cloned();
        let db = Self {
            conn,
            log,
            fault: fault.or(key_fault),
        };
        Ok((db, keys.ok()))
    }
}

fn connect(path: &Path) -> Result<Connection, Error> {
    let conn = Connection::open(path)?;
    conn.busy_timeout(std::time::Duration::from_secs(2))?;
    for (name, value, wanted) in [
        ("locking_mode", "EXCLUSIVE", "exclusive"),
        ("journal_mode", "WAL", "wal"),
        ("synchronous", "FULL", "2"),
        ("secure_delete", "ON", "1"),
        ("trusted_schema", "OFF", "0"),
        ("foreign_keys", "ON", "1"),
    ] {
        conn.pragma_update_and_check(None, name, value, |_| Ok(()))
            .optional()?;
        let found = conn.pragma_query_value(None, name, |row| {
            Ok(match row.get_ref(0)? {
                rusqlite::types::ValueRef::Integer(n) => n.to_string(),
                other => other.as_str()?.to_owned(),
            })
        })?;
        if found != wanted {
            return Err(Error::Pragma { name, found });
        }
    }
    Ok(conn)
}

fn migrate(conn: &mut Connection) -> Result<(), Error> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let found: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > known {
        return Err(Error::Newer { found, known });
    }
    let steps = MIGRATIONS
        .iter()
        .enumerate()
        .skip(usize::try_from(found).unwrap_or(0));
    for (version, step) in steps {
        let tx = conn.transaction()?;
        tx.execute_batch(step)?;
        let next = i64::try_from(version).unwrap_or(i64::MAX).saturating_add(1);
        tx.pragma_update(None, "user_version", next)?;
        tx.commit()?;
    }
    Ok(())
}

fn meta(conn: &Connection, key: &str) -> Result<Option<String>, Error> {
    Ok(conn
        .query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| {
            row.get(0)
        })
        .optional()?)
}

/// A new log: incarnation 1 of the site.
fn found(conn: &Connection, site: &str) -> Result<String, Error> {
    let origin = format!("{site}/sentinel/1");
    conn.execute(
        "INSERT INTO meta (key, value) VALUES ('origin', ?1), ('inc', '1')",
        [&origin],
    )?;
    Ok(origin)
}

/// Epoch 1 is made with its key file first, so that a crash between leaves a file that the next
/// start takes up, never an epoch without a key.
fn keys(
    conn: &Connection,
    path: &Path,
    origin: &str,
    kek: &[u8; 32],
    fill: &mut dyn FnMut(&mut [u8]),
) -> Result<EpochKeys, Error> {
    let aad = format!("{origin} epoch 1");
    let row: Option<String> = conn
        .query_row("SELECT vkey FROM epoch WHERE epoch = 1", [], |row| {
            row.get(0)
        })
        .optional()?;
    if let Some(vkey) = row {
        let keys = EpochKeys::read(path, kek, &aad)?;
        return if keys.vkey(origin) == vkey {
            Ok(keys)
        } else {
            Err(Error::Key)
        };
    }
    let keys = if path.exists() {
        EpochKeys::read(path, kek, &aad)?
    } else {
        let keys = EpochKeys::draw(fill);
        keys.write(path, kek, &aad, fill)?;
        keys
    };
    conn.execute(
        "INSERT INTO epoch (epoch, start, vkey, cap_spki) VALUES (1, 0, ?1, ?2)",
        params![keys.vkey(origin), keys.cap_spki()],
    )?;
    Ok(keys)
}

/// Builds the log in memory and compares it with its head, its copy and its anchor.
fn log(
    conn: &Connection,
    origin: String,
    state_dir: &Path,
    anchor_path: &Path,
) -> Result<(Log, Option<Fault>), Error> {
    let inc: u64 = meta(conn, "inc")?
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let leaves = leaves(conn)?;
    let mut frontier = Frontier::default();
    for leaf in &leaves {
        frontier.push(*leaf);
    }
    let head: Option<(String, i64)> = conn
        .query_row("SELECT note, high_water FROM head", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let (note, high_water) = head.unwrap_or_default();
    let tree = Tree::new(&leaves);
    if !leaves.is_empty() {
        let (head, _) = Checkpoint::parse(&note)?;
        if head.size != leaves.len() as u64 || head.root != frontier.root() {
            return Err(Error::Leaf(head.size));
        }
    }
    let (anchor, mut fault) = anchor(anchor_path, &tree, inc)?;
    let high_water = anchor
        .as_ref()
        .and_then(Anchor::head)
        .map_or(high_water, |head| high_water.max(head.high_water.0));
    let tail_path = state_dir.join("audit").join(inc.to_string()).join("tail");
    let tail = match Tail::open(&tail_path, &leaves)? {
        Ok(tail) => Some(tail),
        Err(cause) => {
            fault.get_or_insert(Fault {
                code: Code::AuditBlocked,
                cause,
            });
            None
        }
    };
    let mut log = Log {
        origin,
        inc,
        epoch: 1,
        tree,
        pending: Vec::new(),
        frontier,
        high_water: Millis(high_water),
        note,
        tail,
        anchor,
    };
    if fault.is_none() {
        catch_up(conn, &mut log)?;
    }
    Ok((log, fault))
}

/// A crash between COMMIT and the copy leaves the copy behind; it is brought up from the database.
fn catch_up(conn: &Connection, log: &mut Log) -> Result<(), Error> {
    let size = log.tree.size();
    let Some(tail) = &mut log.tail else {
        return Ok(());
    };
    if tail.size() < size {
        let from = i64::try_from(tail.size()).unwrap_or(i64::MAX);
        let mut statement = conn.prepare("SELECT event FROM leaf WHERE seq >= ?1 ORDER BY seq")?;
        let events: Vec<String> = statement
            .query_map([from], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        tail.append(events, &log.note)?;
    }
    // An empty log is anchored too, or a crash right after its first commit would look like a
    // lost anchor.
    log.write_anchor()
}

/// All leaf hashes; the newest are made anew from their bytes.
fn leaves(conn: &Connection) -> Result<Vec<Hash>, Error> {
    let count: i64 = conn.query_row("SELECT count(*) FROM leaf", [], |row| row.get(0))?;
    let rehash_from = u64::try_from(count).unwrap_or(0).saturating_sub(REHASHED);
    let mut statement = conn.prepare("SELECT seq, hash, event FROM leaf ORDER BY seq")?;
    let mut rows = statement.query([])?;
    let mut leaves: Vec<Hash> = Vec::new();
    while let Some(row) = rows.next()? {
        let next = leaves.len() as u64;
        let seq: i64 = row.get(0)?;
        let hash: Vec<u8> = row.get(1)?;
        let hash: Hash = hash.try_into().map_err(|_| Error::Leaf(next))?;
        if u64::try_from(seq) != Ok(next) {
            return Err(Error::Leaf(next));
        }
        if next >= rehash_from {
            let event: String = row.get(2)?;
            let event = Event::parse(&event).map_err(|_| Error::Leaf(next))?;
            let prev = leaves.last().copied();
            if event.leaf != hash || event.seq != next || event.prev != prev {
                return Err(Error::Leaf(next));
            }
        }
        leaves.push(hash);
    }
    Ok(leaves)
}

/// The database must contain the head of the anchor (guard 9.2.2).
fn anchor(path: &Path, tree: &Tree, inc: u64) -> Result<(Option<Anchor>, Option<Fault>), Error> {
    let rolled_back = |cause: String| Fault {
        code: Code::RolledBack,
        cause,
    };
    let Some(anchor) = Anchor::open(path, tree.size() == 0)? else {
        let cause = format!("the anchor `{}` is missing", path.display());
        return Ok((None, Some(rolled_back(cause))));
    };
    let fault = match anchor.head() {
        None if tree.size() == 0 => None,
        None => Some(rolled_back(format!(
            "the anchor `{}` is empty",
            path.display()
        ))),
        Some(head) => {
            let root = tree.root(head.size).ok();
            let contained = head.inc == inc && root == Some(head.root);
            (!contained).then(|| {
                rolled_back(format!(
                    "the database has {} leaves and not the head of {} leaves of the anchor `{}`",
                    tree.size(),
                    head.size,
                    path.display()
                ))
            })
        }
    };
    Ok((Some(anchor), fault))
}
