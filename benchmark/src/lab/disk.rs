//! The small disk of inventory: a tmpfs in a mount namespace of the supervisor's own, so that it
//! is gone with the supervisor, however that ends. Without the right to mount: a file-size limit.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Size of the disk.
pub(super) const SIZE_BYTES: u64 = 24 * 1024 * 1024;

/// How the disk is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    /// A file system of its own.
    Tmpfs,
    /// A limit on the size of the journal's file.
    FileSizeLimit,
}

impl Disk {
    /// What `status` says.
    #[must_use]
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Tmpfs => "tmpfs",
            Self::FileSizeLimit => "file-size limit (no right to mount a tmpfs)",
        }
    }

    /// The limit for the service's configuration; 0 for none.
    #[must_use]
    pub(super) const fn limit_bytes(self) -> u64 {
        match self {
            Self::Tmpfs => 0,
            Self::FileSizeLimit => SIZE_BYTES,
        }
    }
}

/// Makes the disk at `folder`. Call it before any thread that is to see it is started.
///
/// # Errors
/// When the folder cannot be made.
pub(super) fn make(folder: &Path) -> anyhow::Result<Disk> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    Ok(match mount_tmpfs(folder) {
        Ok(()) => Disk::Tmpfs,
        Err(_) => Disk::FileSizeLimit,
    })
}

fn mount_tmpfs(folder: &Path) -> rustix::io::Result<()> {
    // SAFETY: A new mount namespace does not touch the table of file descriptors, which is what
    // the call is marked unsafe for; it moves this thread, and those it starts, alone.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    let size = format!("size={SIZE_BYTES},mode=0755");
    let options = std::ffi::CString::new(size).map_err(|_| rustix::io::Errno::INVAL)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", folder, "tmpfs", flags, options.as_c_str())
}
