//! `guard.db` and what stands beside it: the signed log and the state that it proves, changed in
//! one transaction, with a second copy and an anchor outside (guard 6.3, 6.4, 9.2).
//!
//! Decides nothing: `policies::guard` judges, this module commits all of a judgement or none.

mod anchor;
mod batch;
mod export;
mod files;
mod keys;
mod lookup;
mod open;
mod people;
mod rows;
mod spent;
mod tail;

use std::path::PathBuf;

use policies::audit::{Frontier, Hash, Tree};
use policies::guard::Code;
use policies::model::Millis;
use rusqlite::Connection;

pub use batch::{Applied, Batch, Committed, Stamp};
pub use keys::EpochKeys;
pub use open::OpenOptions;
pub use spent::{Receipt, Spent};

/// What can go wrong with the guard's files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQLite refused.
    #[error("`guard.db` could not be read or written")]
    Sqlite(#[from] rusqlite::Error),
    /// A file could not be read or written.
    #[error("`{}` could not be read or written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is of a newer program; it is left as it is.
    #[error("`guard.db` has schema {found}, this program knows {known}")]
    Newer {
        /// Version in the file.
        found: i64,
        /// Newest known version.
        known: i64,
    },
    /// A pragma did not take.
    #[error("`guard.db` has {name} = `{found}`")]
    Pragma {
        /// The pragma.
        name: &'static str,
        /// What it is.
        found: String,
    },
    /// An anchor stands, and the database that it belongs to is gone.
    #[error("`guard.db` is missing while the anchor `{}` stands", anchor.display())]
    Missing {
        /// The anchor.
        anchor: PathBuf,
    },
    /// A leaf is not what its hash says.
    #[error("leaf {0} of `guard.db` is not what was written")]
    Leaf(u64),
    /// A row is not what its leaf says.
    #[error("the row `{row}` of `guard.db` is not what its leaf says")]
    Row {
        /// Table and key.
        row: String,
    },
    /// A compare-and-set found another revision.
    #[error("the action `{0}` was changed in between")]
    Race(String),
    /// A change that is no arrow of guard 4.1.
    #[error("no action becomes {to} from {from}")]
    Arrow {
        /// State before.
        from: policies::guard::State,
        /// State after.
        to: policies::guard::State,
    },
    /// A leaf could not be built.
    #[error("a leaf could not be built")]
    Event(#[from] policies::audit::Error),
    /// The second copy or the anchor is not open.
    #[error("the second copy of the log or its anchor is not there")]
    NoCopy,
    /// The epoch's keys cannot be unwrapped.
    #[error("`epoch.key` cannot be unwrapped with this key")]
    Key,
}

impl Error {
    /// True when the disk failed to read, write or sync: what is on it is not known then, and only
    /// a look at it from the start tells (guard 8).
    #[must_use]
    pub fn is_disk_failure(&self) -> bool {
        /// `EIO`.
        const IO: i32 = 5;
        match self {
            Self::Sqlite(error) => {
                error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure)
            }
            Self::File { source, .. } => source.raw_os_error() == Some(IO),
            _ => false,
        }
    }
}

/// A state of health found at open or while writing (guard 3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `rolled_back`, `audit_blocked` or `key_unavailable`.
    pub code: Code,
    /// Which file, and what is wrong with it.
    pub cause: String,
}

/// The log in memory, beside the connection: what the next leaf is built on.
pub(crate) struct Log {
    origin: String,
    inc: u64,
    epoch: u64,
    tree: Tree,
    /// Leaves of the open batch, which are not yet true.
    pending: Vec<Hash>,
    frontier: Frontier,
    high_water: Millis,
    note: String,
    tail: Option<tail::Tail>,
    anchor: Option<anchor::Anchor>,
}

/// The guard's database with its second copy and its anchor. One thread owns it.
pub struct GuardDb {
    conn: Connection,
    log: Log,
    fault: Option<Fault>,
}

impl GuardDb {
    /// Name of the log: `SITE/sentinel/INCARNATION`.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.log.origin
    }

    /// Incarnation of the log.
    #[must_use]
    pub fn inc(&self) -> u64 {
        self.log.inc
    }

    /// Epoch of the keys.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.log.epoch
    }

    /// Leaves in the log.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.log.tree.size()
    }

    /// The newest signed head.
    #[must_use]
    pub fn checkpoint(&self) -> &str {
        &self.log.note
    }

    /// The persisted high-water mark of time.
    #[must_use]
    pub fn high_water(&self) -> Millis {
        self.log.high_water
    }

    /// What stops all changes, if anything does.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Keeps the first fault that is met while writing; nothing is changed any more.
    pub fn block(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// Writes the anchor, if the head has moved since it was written (guard 9.2.1).
    ///
    /// # Errors
    /// The anchor cannot be written, or was replaced.
    pub fn write_anchor(&mut self) -> Result<(), Error> {
        self.log.write_anchor()
    }
}

impl Log {
    /// Leaves, those of the open batch included.
    fn size(&self) -> u64 {
        self.tree.size().saturating_add(self.pending.len() as u64)
    }

    /// The hash of a leaf, those of the open batch included.
    fn hash(&self, index: u64) -> Option<&Hash> {
        match index.checked_sub(self.tree.size()) {
            None => self.tree.leaves().get(usize::try_from(index).ok()?),
            Some(beyond) => self.pending.get(usize::try_from(beyond).ok()?),
        }
    }

    /// The hash of the newest leaf.
    fn last(&self) -> Option<Hash> {
        self.hash(self.size().checked_sub(1)?).copied()
    }

    fn head(&self) -> anchor::Head {
        anchor::Head {
            inc: self.inc,
            size: self.tree.size(),
            root: self.frontier.root(),
            high_water: self.high_water,
        }
    }

    fn write_anchor(&mut self) -> Result<(), Error> {
        let head = self.head();
        self.anchor.as_mut().ok_or(Error::NoCopy)?.write(&head)
    }
}

#[cfg(test)]
mod tests;
