//! Starting the child and handing it the model file (inference 1.2, 3.1).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};

use command_fds::{CommandFdExt, FdMapping};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::{EngineOptions, lock};
use crate::frame::{self, Load, ToChild};

/// Lines of standard error that are kept.
const LINES: usize = 20;
/// Longest line that is kept, in bytes.
const LINE: u64 = 4 << 10;

/// The last lines of a child's standard error.
pub(super) type Lines = Arc<Mutex<VecDeque<String>>>;

/// Starts the child; the channel is its descriptor 3 and nothing of core's environment reaches it.
pub(super) fn spawn(options: &EngineOptions) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(&options.exe);
    command.args(["infer", "--role", "chat"]);
    if let Some(fault) = &options.fault {
        command.args(["--fault", fault]);
    }
    command
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    if threads(options.threads).1 == 1 {
        // With one decode thread only prompts have barriers, a few hundred per batch. Sleeping at them costs nothing
        // that can be measured; spinning beside other work costs four times the processor time and two thirds of the
        // speed (prompt of 434 tokens, two threads, eight busy processes on two cores: 18 against 57 tokens/s).
        command.env("OMP_WAIT_POLICY", "PASSIVE");
    }
    let mapping = FdMapping {
        parent_fd: theirs.into(),
        child_fd: 3,
    };
    command
        .fd_mappings(vec![mapping])
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    // The command owns the child's end and is dropped here, so the end of the child is the end of the channel.
    Ok((command.spawn()?, ours))
}

/// Sends `load` with the open model file beside it.
pub(super) fn send_load(
    stream: &mut UnixStream,
    options: &EngineOptions,
    model: &File,
) -> Result<(), frame::Error> {
    let (threads_prefill, threads_decode) = threads(options.threads);
    let load = ToChild::Load(Load {
        sha256: options.sha256.clone(),
        n_ctx: options.n_ctx,
        threads_prefill,
        threads_decode,
    });
    let bytes = load.encode(0)?;
    let files = [model.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
    }
    let sent = rustix::net::sendmsg(
        &*stream,
        &[IoSlice::new(&bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )
    .map_err(io::Error::from)?;
    stream.write_all(bytes.get(sent..).unwrap_or_default())?;
    Ok(())
}

/// Threads for the prompt and for the answer. A decode thread without a core of its own halves the speed, because the
/// barrier spins, so one core is left to others. With more than two cores both numbers are the same: OpenMP ends the
/// threads that a smaller team does not need, and after stage B of the sandbox none can be made again. A single
/// decode thread is fine, because it makes no team at all.
fn threads(wanted: Option<u32>) -> (u32, u32) {
    let cores = std::thread::available_parallelism()
        .ok()
        .and_then(|cores| u32::try_from(cores.get()).ok())
        .unwrap_or(1);
    match (wanted, cores) {
        (Some(wanted), _) => (wanted.max(1), wanted.max(1)),
        (None, 0..=2) => (cores.max(1), 1),
        (None, _) => (cores - 1, cores - 1),
    }
}

/// Keeps the last lines until the child closes its standard error.
pub(super) fn keep_lines(from: ChildStderr, lines: &Lines) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        match from.by_ref().take(LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        let mut lines = lock(lines);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }
}

#[cfg(test)]
mod tests {
    use super::threads;

    #[test]
    fn a_team_of_threads_never_shrinks_to_more_than_one() {
        let (prefill, decode) = threads(None);
        assert!(decode == 1 || decode == prefill);
        assert_eq!(threads(Some(3)), (3, 3));
        assert_eq!(threads(Some(0)), (1, 1));
    }
}
