//! Tries what the sandbox must forbid (inference 1.4). Each try goes through the same safe calls that any code in this
//! process would use; the answer is the kernel's.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use crate::frame::ProbeResult;

/// Tries socket, connect, open, exec and fork. `channel` is a socket that is open already, because a new one cannot
/// be had to test connect with.
pub(crate) fn run(path: &str, channel: impl AsFd) -> Vec<ProbeResult> {
    let result = |what: &str, error: Option<std::io::Error>| ProbeResult {
        what: what.to_owned(),
        error: error.map(|error| error.to_string()),
    };
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).err();
    let connect = SocketAddrUnix::new(path)
        .and_then(|address| rustix::net::connect(channel, &address))
        .err();
    let open = File::open(path).err();
    // Inherited standard streams, so that the first call that can fail is the fork itself.
    let spawn = |program: &str| {
        let mut command = Command::new(program);
        command
            .stdin(Stdio::inherit())
            .stdout(Stdio::inherit())
            .stderr(Stdio::inherit());
        command
    };
    let exec = spawn("/bin/true").exec();
    let fork = spawn("/bin/true").spawn();
    vec![
        result("socket", socket.map(Into::into)),
        result("connect", connect.map(Into::into)),
        result("open", open),
        result("execve", Some(exec)),
        result("fork", fork.err()),
    ]
}
