//! What the guard needs to start, and what keeps it from starting.

use std::path::PathBuf;

use super::Clock;

/// Why the guard could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The policy file cannot be read.
    #[error("the policy `{}` cannot be read", path.display())]
    PolicyFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The policy file may be changed by somebody else.
    #[error("the policy `{}` {why}", path.display())]
    PolicyOwner {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The policy is not valid.
    #[error("the policy is refused")]
    Policy(#[from] policies::guard::policy::Error),
    /// The database cannot be used.
    #[error("the guard's database cannot be used")]
    Store(#[from] store::guard::Error),
    /// A file for readers of the guard cannot be written.
    #[error("`{}` cannot be written", path.display())]
    RunFile {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The writer thread cannot be started.
    #[error("the guard's thread cannot be started")]
    Thread(#[source] std::io::Error),
}

/// What the guard needs.
#[derive(Clone)]
pub struct GuardOptions {
    /// Folder of `guard.db`, `epoch.key` and the audit copy.
    pub state_dir: PathBuf,
    /// Folder of the anchor.
    pub anchor_dir: PathBuf,
    /// Folder of the files that other programs read.
    pub run_dir: PathBuf,
    /// The policy file.
    pub policy_path: PathBuf,
    /// Key-encryption key of the epoch's keys.
    pub kek: [u8; 32],
    /// Clocks.
    pub now: Clock,
}
