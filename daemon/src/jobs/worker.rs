//! The body of `sentinel worker`: one job, one sandbox, then the end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::process::{PidfdFlags, PidfdGetfdFlags};
use serde::Serialize;

use super::channel::{self, Channel};
use super::process::GUARD_FD;
use super::wire::{EffectReply, Job, MAX_FRAME, Reply, ToolDone};
use super::{sandbox, selfcheck};
use crate::tools::{self, Failure, Input, Run};
use crate::{executors, scrape};

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("the worker cannot be restricted")]
    Sandbox(#[from] sandbox::Error),
    #[error("the job channel failed")]
    Channel(#[from] channel::Error),
    #[error("a descriptor cannot be taken")]
    Descriptor(#[source] io::Error),
}

/// Runs one job from descriptor 0 and answers on it. The exit code is for core's eyes only: a
/// worker has nowhere to print to.
#[must_use]
pub fn worker_main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Channel(_)) => ExitCode::from(2),
        Err(Error::Sandbox(_) | Error::Descriptor(_)) => ExitCode::from(3),
    }
}

fn work() -> Result<(), Error> {
    sandbox::harden()?;
    let inherited = selfcheck::inherited_descriptors();
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    let mut channel = Channel::new(UnixStream::from(stdin.map_err(Error::Descriptor)?));
    let job: Job = channel.recv(MAX_FRAME, None)?;
    // Made before the filter is in force: a runtime opens descriptors that a worker may not open.
    let runtime = match job {
        Job::Scrape | Job::Remediate { .. } => Some(runtime().map_err(Error::Descriptor)?),
        Job::Tool { .. } | Job::Preview { .. } | Job::SelfCheck { .. } => None,
    };
    let guard = match job {
        Job::Remediate { .. } => Some(guard_channel().map_err(Error::Descriptor)?),
        _ => None,
    };
    if let Err(error) = sandbox::enter(&job.grants()) {
        let reply = Failure::new("sandbox", error.to_string());
        channel.send(&failed::<()>(&reply))?;
        return Err(error.into());
    }
    match (job, runtime, guard) {
        (
            Job::Tool {
                tool,
                source,
                args,
                window,
                now,
                ..
            },
            ..,
        ) => {
            let input = Input {
                source: &source,
                args: &args,
                window,
                now,
            };
            answer_tool(&mut channel, &tool, &input)?;
        }
        (
            Job::Preview {
                executor, change, ..
            },
            ..,
        ) => {
            let seen = executors::preview(&executor, change.as_ref());
            channel.send(&reply(seen))?;
        }
        (Job::SelfCheck { attempts, .. }, ..) => {
            channel.send(&selfcheck::run(&attempts, &inherited))?;
        }
        (Job::Scrape, Some(runtime), _) => scrape::serve(&mut channel, &runtime)?,
        (Job::Remediate { order, .. }, Some(runtime), Some(guard)) => {
            let reply: EffectReply =
                match executors::remediate(&mut channel, &runtime, guard, &order) {
                    Ok(effect) => Reply::Done(effect),
                    Err(refused) => Reply::Failed {
                        code: refused.code,
                        detail: refused.detail,
                    },
                };
            channel.send(&reply)?;
        }
        (Job::Scrape | Job::Remediate { .. }, ..) => {}
    }
    Ok(())
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
}

/// Takes the inherited descriptor 3 as an owned one: the process asks the kernel for a copy of its
/// own, which needs no unsafe code.
fn guard_channel() -> io::Result<UnixStream> {
    let own = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
    let fd: OwnedFd = rustix::process::pidfd_getfd(&own, GUARD_FD, PidfdGetfdFlags::empty())?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(UnixStream::from(fd))
}

fn answer_tool(channel: &mut Channel, name: &str, input: &Input<'_>) -> Result<(), channel::Error> {
    match run_tool(name, input) {
        Ok((partial, bytes)) => {
            channel.send(&Reply::Done(ToolDone { partial }))?;
            channel.send_bytes(&bytes)
        }
        Err(failure) => channel.send(&failed::<ToolDone>(&failure)),
    }
}

fn run_tool(name: &str, input: &Input<'_>) -> Result<(Vec<String>, Vec<u8>), Failure> {
    let tool = tools::find(name).ok_or_else(|| Failure::new("unknown_tool", name))?;
    let Run::Worker { body, .. } = tool.run else {
        return Err(Failure::new("unknown_tool", name));
    };
    let output = body(input)?;
    let bytes = tools::encode(tool, &output.payload)?;
    Ok((output.partial, bytes))
}

fn reply<T: Serialize>(outcome: Result<T, Failure>) -> Reply<T> {
    match outcome {
        Ok(done) => Reply::Done(done),
        Err(failure) => failed(&failure),
    }
}

fn failed<T>(failure: &Failure) -> Reply<T> {
    Reply::Failed {
        code: failure.code.to_owned(),
        detail: failure.detail.clone(),
    }
}
