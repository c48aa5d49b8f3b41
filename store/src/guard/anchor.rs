//! The anchor: the newest head, kept outside the backup set, so that a database that was put back
//! is found (guard 9.2). Two slots of 1 KiB are written in turn; a torn one leaves the other.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use policies::audit::{Hash, hash_from_text, hash_text, sha256};
use policies::canon::{self, Limits, Value};
use policies::model::Millis;

use super::{Error, files};

const SLOT: usize = 1024;

/// A head as the anchor keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) inc: u64,
    pub(super) size: u64,
    pub(super) root: Hash,
    pub(super) high_water: Millis,
}

/// The open anchor file.
pub(super) struct Anchor {
    path: PathBuf,
    file: File,
    turn: u64,
    last: Option<Head>,
}

impl Anchor {
    /// True where an anchor file stands.
    pub(super) fn exists(path: &Path) -> bool {
        std::fs::symlink_metadata(path).is_ok()
    }

    /// Opens the anchor; makes it only where `create` says that the log is empty.
    pub(super) fn open(path: &Path, create: bool) -> Result<Option<Self>, Error> {
        if let Some(folder) = path.parent() {
            files::private_dir(folder)?;
        }
        let file = match files::open(path, create) {
            Ok(file) => file,
            Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let slots = [slot(&file, 0), slot(&file, 1)];
        let newest = slots.into_iter().flatten().max_by_key(|(turn, _)| *turn);
        Ok(Some(Self {
            path: path.to_owned(),
            file,
            turn: newest.as_ref().map_or(0, |(turn, _)| *turn),
            last: newest.map(|(_, head)| head),
        }))
    }

    /// The head that it keeps.
    pub(super) fn head(&self) -> Option<&Head> {
        self.last.as_ref()
    }

    /// The open file is the one that its path names.
    pub(super) fn check(&self) -> Result<(), Error> {
        files::check(&self.file, &self.path).map_err(files::at(&self.path))
    }

    /// Writes a head into the older slot and waits for the disk.
    pub(super) fn write(&mut self, head: &Head) -> Result<(), Error> {
        if self.last.as_ref() == Some(head) {
            return Ok(());
        }
        self.check()?;
        let turn = self.turn + 1;
        let bytes = encode(turn, head);
        let offset = (turn % 2) * SLOT as u64;
        self.file
            .write_all_at(&bytes, offset)
            .and_then(|()| self.file.sync_data())
            .map_err(files::at(&self.path))?;
        self.turn = turn;
        self.last = Some(head.clone());
        Ok(())
    }
}

fn encode(turn: u64, head: &Head) -> Vec<u8> {
    let int = |n: u64| Value::Int(i64::try_from(n).unwrap_or(canon::MAX_INT));
    let body = Value::map([
        ("inc", int(head.inc)),
        ("root", Value::from(hash_text(&head.root))),
        ("size", int(head.size)),
        ("t_hwm", Value::Int(head.high_water.0)),
        ("turn", int(turn)),
    ])
    .to_jcs();
    let mut text = format!("{} {body}\n", hash_text(&sha256(body.as_bytes())));
    while text.len() < SLOT {
        text.push('\n');
    }
    text.into_bytes()
}

fn slot(file: &File, number: u64) -> Option<(u64, Head)> {
    let mut bytes = [0_u8; SLOT];
    file.read_exact_at(&mut bytes, number * SLOT as u64).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?.trim_end_matches('\n');
    let (sum, body) = text.split_once(' ')?;
    if hash_from_text(sum)? != sha256(body.as_bytes()) {
        return None;
    }
    let limits = Limits {
        max_bytes: SLOT,
        max_depth: 1,
    };
    let value = canon::parse(body.as_bytes(), limits).ok()?;
    let int = |key: &str| value.get(key).and_then(Value::as_int);
    let head = Head {
        inc: int("inc")?.try_into().ok()?,
        size: int("size")?.try_into().ok()?,
        root: hash_from_text(value.get("root")?.as_text()?)?,
        high_water: Millis(int("t_hwm")?),
    };
    Some((int("turn")?.try_into().ok()?, head))
}
