//! The second copy of the log: one line for each committed batch, its events and its signed head
//! (guard 6.2.4, 6.3.4).

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use policies::audit::{Hash, leaf_hash};
use serde::{Deserialize, Serialize};

use super::{Error, files};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    from: u64,
    events: Vec<String>,
    checkpoint: String,
}

/// The open copy.
pub(super) struct Tail {
    path: PathBuf,
    file: File,
    bytes: u64,
    size: u64,
}

impl Tail {
    /// Opens the copy and compares it, leaf by leaf, with the hashes of the database. A last line
    /// that a crash cut short is dropped; everything else that differs is told by `Err(text)`.
    pub(super) fn open(path: &Path, leaves: &[Hash]) -> Result<Result<Self, String>, Error> {
        if let Some(folder) = path.parent() {
            files::private_dir(folder)?;
        }
        let file = match files::open(path, leaves.is_empty()) {
            Ok(file) => file,
            Err(Error::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(Err(format!("`{}` is missing", path.display())));
            }
            Err(error) => return Err(error),
        };
        let mut tail = Self {
            path: path.to_owned(),
            file,
            bytes: 0,
            size: 0,
        };
        Ok(match tail.compare(leaves)? {
            None => Ok(tail),
            Some(difference) => Err(difference),
        })
    }

    fn compare(&mut self, leaves: &[Hash]) -> Result<Option<String>, Error> {
        let mut reader = BufReader::new(&self.file);
        let mut line = String::new();
        loop {
            line.clear();
            let read = reader.read_line(&mut line).map_err(files::at(&self.path))?;
            if read == 0 || !line.ends_with('\n') {
                break;
            }
            let differs = |text: &str| Some(format!("`{}` {text}", self.path.display()));
            let Ok(frame) = serde_json::from_str::<Frame>(&line) else {
                return Ok(differs("has a line that does not parse"));
            };
            if frame.from != self.size {
                return Ok(differs("has a gap"));
            }
            for event in &frame.events {
                let index = usize::try_from(self.size).unwrap_or(usize::MAX);
                match leaves.get(index) {
                    None => return Ok(differs("is longer than the database")),
                    Some(hash) if *hash != leaf_hash(event.as_bytes()) => {
                        return Ok(differs("differs from the database"));
                    }
                    Some(_) => self.size += 1,
                }
            }
            self.bytes += read as u64;
        }
        // What is left is a line that a crash cut short: it was never acknowledged from here.
        self.file
            .set_len(self.bytes)
            .map_err(files::at(&self.path))?;
        Ok(None)
    }

    /// How many leaves it holds.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The open file is the one that its path names, and as long as it was left.
    pub(super) fn check(&self) -> Result<(), Error> {
        files::check(&self.file, &self.path)
            .and_then(|()| {
                let length = self.file.metadata()?.len();
                if length == self.bytes {
                    Ok(())
                } else {
                    Err(std::io::Error::other(
                        "the file was changed by somebody else",
                    ))
                }
            })
            .map_err(files::at(&self.path))
    }

    /// Appends the events of a batch with its head, and waits for the disk.
    pub(super) fn append(&mut self, events: Vec<String>, checkpoint: &str) -> Result<(), Error> {
        let count = events.len() as u64;
        let frame = Frame {
            from: self.size,
            events,
            checkpoint: checkpoint.to_owned(),
        };
        let mut line = serde_json::to_vec(&frame)
            .map_err(std::io::Error::other)
            .map_err(files::at(&self.path))?;
        line.push(b'\n');
        let path = &self.path;
        let written = self
            .file
            .set_len(self.bytes)
            .and_then(|()| self.file.seek(SeekFrom::Start(self.bytes)))
            .and_then(|_| self.file.write_all(&line))
            .and_then(|()| self.file.sync_data());
        written.map_err(files::at(path))?;
        self.bytes += line.len() as u64;
        self.size += count;
        Ok(())
    }
}
