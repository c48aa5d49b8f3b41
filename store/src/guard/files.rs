//! How the files beside the database are opened: without following links, regular, with one
//! name, by the owner, closed to everybody else (guard 6.2.4).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::Error;

/// Wraps an I/O error with its path.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    move |source| Error::File {
        path: path.to_owned(),
        source,
    }
}

/// Opens a file for reading and writing, and makes it where `create` allows.
pub(super) fn open(path: &Path, create: bool) -> Result<File, Error> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(create)
        .mode(0o600)
        .custom_flags(no_follow)
        .open(path)
        .map_err(at(path))?;
    check(&file, path).map_err(at(path))?;
    Ok(file)
}

/// The open file is still the one that its path names, and nobody else's.
pub(super) fn check(file: &File, path: &Path) -> io::Result<()> {
    let (open, named) = (file.metadata()?, std::fs::symlink_metadata(path)?);
    let same = open.ino() == named.ino() && open.dev() == named.dev();
    let own = open.uid() == rustix::process::geteuid().as_raw();
    if same && own && open.is_file() && open.nlink() == 1 && open.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::other(
        "the file was replaced or is open to others",
    ))
}

/// Makes a folder that is closed to everybody else, with its parents.
pub(super) fn private_dir(path: &Path) -> Result<(), Error> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(at(path))
}

/// Writes a whole file: temporary name, fsync, rename, fsync of the folder.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let temporary = path.with_extension("tmp");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(at(&temporary))?;
    file.write_all(bytes).map_err(at(&temporary))?;
    file.sync_all().map_err(at(&temporary))?;
    std::fs::rename(&temporary, path).map_err(at(path))?;
    sync_dir(path)
}

/// Makes the name of a file durable.
pub(super) fn sync_dir(path: &Path) -> Result<(), Error> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    File::open(folder)
        .and_then(|dir| dir.sync_all())
        .map_err(at(folder))
}
