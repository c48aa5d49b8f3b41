//! Worker processes from core's side: started, held by a pidfd, killed, reaped.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender, SyncSender};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::channel::{self, Channel};

/// Why there is no worker.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program did not start.
    #[error("`{}` does not start", path.display())]
    Start {
        /// The program.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// No channel to it.
    #[error("no channel for a worker")]
    Channel(#[source] channel::Error),
    /// It cannot be held.
    #[error("a worker cannot be held by a pidfd")]
    Pidfd(#[source] rustix::io::Errno),
    /// Core is stopping.
    #[error("workers are no longer started")]
    Stopped,
}

/// Number of the guard's channel in a remediate worker (guard 2.1.1).
pub(super) const GUARD_FD: i32 = 3;

/// The program that is started as a worker.
#[derive(Clone, Debug)]
pub struct WorkerExe {
    /// Its file.
    pub path: PathBuf,
    /// Its arguments: `worker` for the shipped binary.
    pub args: Vec<String>,
}

type Started = (Child, OwnedFd, Channel);

enum Request {
    Start {
        guard: Option<OwnedFd>,
        reply: SyncSender<Result<Started, Error>>,
    },
    Bury(Child),
}

/// Starts workers, all of them from one thread that lives as long as core.
///
/// The kernel sends the parent death signal when the *thread* that made the child ends; a thread of
/// a pool ends when it is idle, and its workers would die with it.
#[derive(Clone, Debug)]
pub struct Spawner {
    requests: Sender<Request>,
}

impl Spawner {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the kernel has no thread left.
    pub fn start(exe: WorkerExe) -> Result<Self, Error> {
        let (requests, inbox) = mpsc::channel();
        let path = exe.path.clone();
        std::thread::Builder::new()
            .name("workers".to_owned())
            .spawn(move || serve(&exe, &inbox))
            .map_err(|source| Error::Start { path, source })?;
        Ok(Self { requests })
    }

    /// Starts one worker; `guard` becomes its descriptor 3. Blocks for the time of a fork.
    ///
    /// # Errors
    /// When it does not start.
    pub fn worker(&self, guard: Option<OwnedFd>) -> Result<Worker, Error> {
        let (reply, answer) = mpsc::sync_channel(1);
        self.requests
            .send(Request::Start { guard, reply })
            .map_err(|_| Error::Stopped)?;
        let (child, pidfd, channel) = answer.recv().map_err(|_| Error::Stopped)??;
        Ok(Worker {
            channel,
            child: Some(child),
            killer: Killer(Arc::new(pidfd)),
            bury: self.requests.clone(),
        })
    }
}

/// Ends when the last spawner and the last worker are gone.
fn serve(exe: &WorkerExe, inbox: &mpsc::Receiver<Request>) {
    let mut dead: Vec<Child> = Vec::new();
    loop {
        let request = if dead.is_empty() {
            inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            inbox.recv_timeout(Duration::from_millis(20))
        };
        match request {
            Ok(Request::Start { guard, reply }) => {
                let _ = reply.send(start(exe, guard));
            }
            Ok(Request::Bury(child)) => dead.push(child),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        dead.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

fn start(exe: &WorkerExe, guard: Option<OwnedFd>) -> Result<Started, Error> {
    let failed = |source| Error::Start {
        path: exe.path.clone(),
        source,
    };
    let (near, far) = Channel::pair().map_err(Error::Channel)?;
    let mut command = Command::new(&exe.path);
    command
        .args(&exe.args)
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::from(far))
        // A panic message may quote what the worker read: nothing of it may reach a log.
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(guard) = guard {
        let mapping = FdMapping {
            parent_fd: guard,
            child_fd: GUARD_FD,
        };
        command
            .fd_mappings(vec![mapping])
            .map_err(|e| failed(io::Error::other(e)))?;
    }
    let mut child = command.spawn().map_err(failed)?;
    // Not reaped yet, so the number is still its own.
    match rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
        Ok(pidfd) => Ok((child, pidfd, near)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(Error::Pidfd(error))
        }
    }
}

/// A handle that ends one worker, whatever happened to its number since.
#[derive(Clone, Debug)]
pub struct Killer(Arc<OwnedFd>);

impl Killer {
    /// Sends SIGKILL. A worker that is already gone stays gone.
    pub fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(self.0.as_fd(), Signal::KILL);
    }

    /// Kills it and waits, at most `limit`, until nothing of it runs any more.
    #[must_use]
    pub fn end(&self, limit: Duration) -> bool {
        self.kill();
        let Ok(limit) = Timespec::try_from(limit) else {
            return false;
        };
        // A pidfd becomes readable when its process has ended.
        let mut watched = [PollFd::new(&*self.0, PollFlags::IN)];
        rustix::event::poll(&mut watched, Some(&limit)).is_ok_and(|ended| ended == 1)
    }
}

/// One worker process. Dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    /// The job channel, the worker's descriptor 0.
    pub channel: Channel,
    child: Option<Child>,
    killer: Killer,
    bury: Sender<Request>,
}

impl Worker {
    /// A handle that kills it.
    #[must_use]
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }

    /// Its process number, for messages.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Kills it and waits until the kernel has confirmed its end: afterwards nothing of it runs.
    pub fn end(mut self) -> Option<ExitStatus> {
        self.killer.kill();
        self.child.take().and_then(|mut child| child.wait().ok())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            self.killer.kill();
            let _ = self.bury.send(Request::Bury(child));
        }
    }
}
