//! The files that the guard reads and writes beside its database.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use policies::audit::bundle::Epoch;
use policies::audit::{EventType, PinnedEpoch, TrustFile, VKey};
use policies::guard::Policy;

use super::Error;

/// Reads the policy: owned by root or by this user, writable by nobody else (operations 1.8).
pub(super) fn policy(path: &Path) -> Result<Policy, Error> {
    let wrong = |why| Error::PolicyOwner {
        path: path.to_owned(),
        why,
    };
    let unreadable = |source| Error::PolicyFile {
        path: path.to_owned(),
        source,
    };
    let found = std::fs::symlink_metadata(path).map_err(unreadable)?;
    if !found.is_file() {
        return Err(wrong("is no regular file"));
    }
    let own = found.uid() == 0 || found.uid() == rustix::process::geteuid().as_raw();
    if !own {
        return Err(wrong("belongs to somebody else"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(wrong("may be written by others"));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    Ok(Policy::parse(&text)?)
}

/// Writes a file that everybody may read: temporary name, fsync, rename.
pub(super) fn publish(path: &Path, text: &str) -> Result<(), Error> {
    let temporary = path.with_extension("tmp");
    let write = || {
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o644)
            .open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().map_err(|source| Error::RunFile {
        path: path.to_owned(),
        source,
    })
}

/// The trust file of a log: its epochs and the roots of the policy (audit-bundle 4.2).
pub(super) fn trust(origin: &str, epochs: &[Epoch], policy: &Policy) -> String {
    let root = policy.root();
    TrustFile {
        origins: vec![origin.to_owned()],
        epochs: epochs
            .iter()
            .map(|epoch| PinnedEpoch {
                origin: origin.to_owned(),
                epoch: epoch.epoch,
                from: epoch.from,
                to: epoch.closing.as_ref().map(|closing| closing.to),
                vkey: epoch.vkey.clone(),
            })
            .collect(),
        roots: root
            .map(|r| r.keys.iter().filter_map(|k| VKey::parse(k)).collect())
            .unwrap_or_default(),
        threshold: root.map_or(0, |r| u64::try_from(r.threshold).unwrap_or(0)),
    }
    .to_text()
}

/// The types that the rest of core appends (the last list of guard 6.1.2).
pub(super) fn is_of_core(kind: EventType) -> bool {
    ["incident.", "auth.", "ask.", "admin."]
        .iter()
        .any(|prefix| kind.as_str().starts_with(prefix))
}
