//! The engine process: `sentinel infer --role chat` (inference 1).
//!
//! It has one channel, descriptor 3, and one file, the model, which arrives over that channel. It knows nothing of
//! incidents, opens no socket, and is expected to be killed at any moment.

mod cpu;
mod decode;
mod fault;
mod grammar;
mod load;
mod probe;
mod sandbox;
mod serve;
mod session;
mod template;
mod tokens;

use std::error::Error as _;
use std::fs::File;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;

use llama_cpp_2::llama_backend::LlamaBackend;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::frame::{self, FromChild, HEADER, Hello, Load, ToChild};
use crate::provider::{Code, Error};
use fault::Fault;
use serve::Channel;
pub(crate) use session::CHUNK;

/// The descriptor that core hands over.
const CHANNEL: i32 = 3;
/// Exit code of a wrong command line.
const USAGE: u8 = 64;
/// Exit code of a panic.
const PANIC: i32 = 70;
/// Exit code of a start that failed; the reason went over the channel.
const START: u8 = 71;

/// The body of `sentinel infer`. It returns when core closes the channel.
#[must_use]
pub fn run_child(role: &str, fault: Option<&str>) -> ExitCode {
    let fault = match fault.map(Fault::named) {
        Some(None) => return ExitCode::from(USAGE),
        Some(Some(fault)) => Some(fault),
        None => None,
    };
    if role != "chat" {
        return ExitCode::from(USAGE);
    }
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::exit(PANIC);
    }));
    // SAFETY: core starts this process with the channel as descriptor 3 and nothing in this program has touched it. If
    // it is no socket after all, the first call on it fails.
    let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(CHANNEL) });
    // This closes every descriptor above the channel, so the copies are made afterwards.
    let entered = sandbox::enter();
    let (Ok(writer), Ok(probe)) = (stream.try_clone(), stream.try_clone()) else {
        return ExitCode::from(START);
    };
    let channel = Arc::new(Channel::new(writer));
    let started = entered
        .map_err(|error| sandbox_failed(&error))
        .and_then(|()| start(stream, &channel, fault));
    match started {
        Ok((loaded, jobs)) => serve::serve(loaded, &channel, &jobs, &probe, fault),
        Err(error) => {
            channel.fail(0, &error);
            ExitCode::from(START)
        }
    }
}

fn sandbox_failed(error: &sandbox::Error) -> Error {
    let cause = error.source().map(ToString::to_string);
    let detail = match cause {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    Error::new(Code::SandboxFailed, detail)
}

/// From the processor check to `ready`.
fn start(
    stream: UnixStream,
    channel: &Arc<Channel>,
    fault: Option<Fault>,
) -> Result<(load::Loaded, serve::Jobs), Error> {
    let features = cpu::check()?;
    let mut backend = LlamaBackend::init()
        .map_err(|_| Error::new(Code::DecodeFailed, "the engine cannot be initialised"))?;
    // The library's own lines quote the model file; failures are reported by code instead.
    backend.void_logs();
    // The backends look at /sys once; after stage A they could not.
    let _ = llama_cpp_2::list_llama_ggml_backend_devices();
    channel.send(
        0,
        &FromChild::Hello(Hello {
            features,
            pid: std::process::id(),
        }),
    );
    let (ask, model) = receive_load(&stream)?;
    sandbox::stage_a(model.as_fd()).map_err(|error| sandbox_failed(&error))?;
    let loaded = load::load(&backend, channel, &ask, model, fault)?;
    let jobs = serve::start_reader(stream, channel)
        .map_err(|_| Error::new(Code::SandboxFailed, "the reading thread cannot be started"))?;
    sandbox::stage_b().map_err(|error| sandbox_failed(&error))?;
    channel.send(0, &FromChild::Ready(loaded.facts.clone()));
    Ok((loaded, jobs))
}

/// The first frame: `load`, with the model file beside it.
fn receive_load(stream: &UnixStream) -> Result<(Load, File), Error> {
    let bad = || Error::new(Code::BadFrame, "the first frame is not `load` with a file");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut header = [0_u8; HEADER];
    let received = rustix::net::recvmsg(
        stream,
        &mut [IoSliceMut::new(&mut header)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL,
    )
    .map_err(|_| bad())?;
    if received.bytes == 0 {
        // Core has closed the channel before it asked for anything.
        std::process::exit(0);
    }
    let model = control
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        })
        .ok_or_else(bad)?;
    let mut rest = stream;
    let raw = frame::read_body(header, &mut rest, frame::MAX_TO_CHILD).map_err(|_| bad())?;
    match ToChild::decode(&raw) {
        Ok(ToChild::Load(ask)) if received.bytes == HEADER => Ok((ask, File::from(model))),
        Ok(_) | Err(_) => Err(bad()),
    }
}
