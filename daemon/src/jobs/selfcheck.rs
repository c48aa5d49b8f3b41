//! A worker that tries what a worker must not be able to do, and tells what the kernel said.
//!
//! Core runs it at start and refuses to run jobs when one attempt succeeds; `doctor` and the tests
//! run the same code.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::net::{AddressFamily, SocketType};
use serde::{Deserialize, Serialize};

/// What to try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempts {
    /// Files that must not open: databases, keys, the policy.
    pub files: Vec<PathBuf>,
    /// Unix sockets that must not be reached.
    pub sockets: Vec<PathBuf>,
    /// An address that must not be reached.
    pub address: SocketAddr,
    /// A program that must not start.
    pub program: PathBuf,
}

/// One attempt and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// What was tried.
    pub what: String,
    /// What the kernel said; `None`: it worked, which it must not.
    pub refused: Option<String>,
    /// The error number.
    pub errno: Option<i32>,
}

/// What the inherited descriptors from 3 on lead to, as the kernel names it. Asked one by one,
/// because reading the folder would open a descriptor of its own.
pub(crate) fn inherited_descriptors() -> Vec<PathBuf> {
    let link = |number| std::fs::read_link(format!("/proc/self/fd/{number}"));
    (3..256).filter_map(|number| link(number).ok()).collect()
}

/// Tries everything. `inherited` is what was found at the start.
pub(crate) fn run(attempts: &Attempts, inherited: &[PathBuf]) -> Vec<Attempt> {
    let mut out = Vec::new();
    let mut note = |what: String, outcome: io::Result<()>| {
        let error = outcome.err();
        out.push(Attempt {
            what,
            errno: error.as_ref().and_then(io::Error::raw_os_error),
            refused: error.map(|e| e.to_string()),
        });
    };
    for (name, family) in [("inet", AddressFamily::INET), ("unix", AddressFamily::UNIX)] {
        let made = rustix::net::socket(family, SocketType::STREAM, None);
        note(
            format!("socket {name}"),
            made.map(drop).map_err(io::Error::from),
        );
    }
    // A socket that is there already: the channel itself.
    let connected = rustix::net::connect(io::stdin().as_fd(), &attempts.address);
    note("connect".to_owned(), connected.map_err(io::Error::from));
    note(
        "connect tcp".to_owned(),
        TcpStream::connect(attempts.address).map(drop),
    );
    for path in &attempts.sockets {
        let what = format!("connect {}", path.display());
        note(what, UnixStream::connect(path).map(drop));
    }
    for path in &attempts.files {
        note(
            format!("open {}", path.display()),
            File::open(path).map(drop),
        );
        let write = OpenOptions::new().write(true).open(path);
        note(format!("write {}", path.display()), write.map(drop));
    }
    let thread = std::thread::Builder::new().spawn(|| ());
    note("thread".to_owned(), thread.map(drop));
    let mut child = Command::new(&attempts.program);
    note("fork".to_owned(), child.spawn().map(drop));
    // A descriptor of core's own: its files and sockets. What an ancestor of core left open (a
    // terminal, a lock) is not core's to judge.
    let own = |path: &&PathBuf| {
        attempts.files.contains(path) || path.to_string_lossy().starts_with("socket:")
    };
    let leaked: Vec<&PathBuf> = inherited.iter().filter(own).collect();
    let none_leaked = if leaked.is_empty() {
        Err(io::Error::other("there is none"))
    } else {
        Ok(())
    };
    note(format!("inherited descriptors {leaked:?}"), none_leaked);
    // Last, because it does not return when it works: core then sees the channel close.
    note(
        "execve".to_owned(),
        Err(Command::new(&attempts.program).exec()),
    );
    out
}
