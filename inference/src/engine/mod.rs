//! The embedded engine as core sees it: a provider whose work is done by a child process (inference 1 and 12).
//!
//! One thread supervises: it starts the child, watches it, and starts it again. Callers block on their own thread.
//! Nothing that the child does or fails to do can do more than end the requests in flight.

mod process;
mod supervisor;

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use policies::claim::{Prompt, Role, Trust};
use sha2::{Digest, Sha256};

use crate::frame::{
    self, Complete, Done, Failed, Message, Part, ProbeAsk, ProbeResult, Ready, ToChild,
};
use crate::provider::{
    Cancel, Code, Completion, CompletionRequest, EngineState, Error, Finish, Provider,
};
use crate::schema;

/// How often a waiting caller looks up.
const TICK: Duration = Duration::from_millis(20);
/// In flight at this many crashes, a prompt is never sent again.
const QUARANTINE: u32 = 2;

/// What to run.
pub struct EngineOptions {
    /// The executable that understands `infer --role chat`: this program's own.
    pub exe: PathBuf,
    /// The model file.
    pub model: PathBuf,
    /// Its SHA-256, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Size of the context in tokens.
    pub n_ctx: u32,
    /// Threads; `None` takes what the machine gives.
    pub threads: Option<u32>,
    /// A fault to inject; understood by debug builds of the child only.
    pub fault: Option<String>,
    /// Told of everything that a person may want to know.
    pub on_event: Box<dyn Fn(EngineEvent) + Send + Sync>,
}

/// Times and counts of the supervision; the defaults are those of inference 8.3 and 12.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest silence while a request is pending.
    pub hang: Duration,
    /// Longest silence while the model is loaded.
    pub load: Duration,
    /// First pause after a crash; it doubles up to [`Self::pause_max`].
    pub pause: Duration,
    /// Longest pause.
    pub pause_max: Duration,
    /// So many crashes within [`Self::crash_window`] make the engine degraded.
    pub crashes: usize,
    /// See [`Self::crashes`]; also how long a degraded engine is left alone.
    pub crash_window: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            hang: Duration::from_secs(10),
            load: Duration::from_secs(60),
            pause: Duration::from_millis(500),
            pause_max: Duration::from_secs(30),
            crashes: 5,
            crash_window: Duration::from_secs(600),
        }
    }
}

/// What happened to the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineEvent {
    /// A child was started.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// It is ready.
    Ready(Ready),
    /// It ended without being asked to.
    Crashed {
        /// `hang`, `garbage`, a signal or an exit code.
        cause: String,
        /// Its last lines of standard error. Outside text.
        stderr: Vec<String>,
    },
    /// It starts again after a pause.
    Restarting {
        /// The pause.
        after: Duration,
    },
    /// It died too often and is left alone.
    Degraded,
    /// It cannot work with what it was given.
    Refused {
        /// Why.
        code: Code,
        /// One line for a person.
        detail: String,
    },
    /// A prompt was in flight at two crashes.
    Quarantined {
        /// SHA-256 of the prompt, hexadecimal.
        prompt: String,
    },
}

/// The embedded engine. Dropping it ends the child.
pub struct Engine {
    shared: Arc<Shared>,
    supervisor: Option<JoinHandle<()>>,
}

struct Shared {
    options: EngineOptions,
    limits: Limits,
    state: Mutex<EngineState>,
    changed: Condvar,
    stop: AtomicBool,
    next: AtomicU32,
    /// The way to the child while there is one.
    link: Mutex<Option<UnixStream>>,
    pending: Mutex<BTreeMap<u32, Pending>>,
    crashes_of: Mutex<BTreeMap<[u8; 32], u32>>,
    heard: Mutex<Instant>,
}

/// A request in flight.
struct Pending {
    reply: Sender<Reply>,
    prompt: Option<[u8; 32]>,
    /// The deltas so far.
    text: String,
}

enum Reply {
    Done(Done),
    Failed(Failed),
    Probed(Vec<ProbeResult>),
    Crashed(String),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn set_state(&self, state: EngineState) {
        *lock(&self.state) = state;
        self.changed.notify_all();
    }

    fn emit(&self, event: EngineEvent) {
        (self.options.on_event)(event);
    }

    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Waits for `ready` while the engine is on its way there.
    fn wait_ready(&self, end: Instant, cancel: &Cancel) -> Result<(), Error> {
        let mut state = lock(&self.state);
        loop {
            match &*state {
                EngineState::Ready => return Ok(()),
                EngineState::Loading | EngineState::Restarting
                    if Instant::now() < end && !cancel.is_cancelled() => {}
                other => {
                    let what = format!("the engine is {}", other.as_str());
                    return Err(Error::new(Code::EngineUnavailable, what));
                }
            }
            let (next, _) = self
                .changed
                .wait_timeout(state, TICK)
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
        }
    }

    /// Registers a request and sends it.
    fn send(
        &self,
        ask: &ToChild,
        prompt: Option<[u8; 32]>,
    ) -> Result<(u32, mpsc::Receiver<Reply>), Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed).max(1);
        let bytes = ask
            .encode(id)
            .map_err(|error| Error::new(Code::ContextOverflow, error.to_string()))?;
        let (reply, replies) = mpsc::channel();
        let text = String::new();
        let pending = Pending {
            reply,
            prompt,
            text,
        };
        lock(&self.pending).insert(id, pending);
        *lock(&self.heard) = Instant::now();
        let sent = match lock(&self.link).as_mut() {
            Some(stream) => stream.write_all(&bytes).is_ok(),
            None => false,
        };
        if sent {
            Ok((id, replies))
        } else {
            lock(&self.pending).remove(&id);
            let what = "the engine process is gone";
            Err(Error::new(Code::EngineUnavailable, what))
        }
    }

    /// Ends a request early, as far as the child still listens.
    fn send_cancel(&self, id: u32) {
        if let Some(stream) = lock(&self.link).as_mut() {
            // A link that fails is noticed by the reader.
            let _ = ToChild::Cancel.write(stream, id);
        }
    }
}

impl Engine {
    /// Starts the engine and returns at once; [`Provider::state`] says when it is ready.
    ///
    /// # Errors
    /// `engine_unavailable` when no thread can be started.
    pub fn start(options: EngineOptions) -> Result<Self, Error> {
        Self::start_with(options, Limits::default())
    }

    /// Starts the engine with other limits.
    ///
    /// # Errors
    /// `engine_unavailable` when no thread can be started.
    pub fn start_with(options: EngineOptions, limits: Limits) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            options,
            limits,
            state: Mutex::new(EngineState::Loading),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            next: AtomicU32::new(1),
            link: Mutex::new(None),
            pending: Mutex::new(BTreeMap::new()),
            crashes_of: Mutex::new(BTreeMap::new()),
            heard: Mutex::new(Instant::now()),
        });
        let inner = Arc::clone(&shared);
        // The child dies with the thread that started it, so that thread must live as long as the engine.
        let supervisor = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || supervisor::run(&inner))
            .map_err(|_| Error::new(Code::EngineUnavailable, "no thread can be started"))?;
        Ok(Self {
            shared,
            supervisor: Some(supervisor),
        })
    }

    /// Waits until the engine is ready or will not become so. True when it is ready.
    pub fn wait_ready(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        self.shared.wait_ready(end, &Cancel::default()).is_ok()
    }

    /// Like [`Provider::complete`], with a way to end it early.
    ///
    /// # Errors
    /// As [`Provider::complete`]; `cancelled` when the switch was thrown first.
    pub fn complete_cancellable(
        &self,
        prompt: &Prompt,
        request: &CompletionRequest,
        cancel: &Cancel,
    ) -> Result<Completion, Error> {
        self.complete_messages(messages(prompt), request, cancel)
    }

    fn complete_messages(
        &self,
        messages: Vec<Message>,
        request: &CompletionRequest,
        cancel: &Cancel,
    ) -> Result<Completion, Error> {
        let begin = Instant::now();
        let end = begin + request.deadline;
        schema::check(&request.schema)
            .map_err(|error| Error::new(Code::SchemaRefused, error.to_string()))?;
        let hash = digest(&messages);
        if lock(&self.shared.crashes_of).get(&hash).copied() >= Some(QUARANTINE) {
            let what = "this prompt was in flight at two crashes";
            return Err(Error::new(Code::Quarantined, what));
        }
        self.shared.wait_ready(end, cancel)?;
        let left = end.saturating_duration_since(Instant::now());
        let ask = ToChild::Complete(Complete {
            messages,
            schema: request.schema.clone(),
            max_tokens: request.max_tokens,
            deadline_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
            session: request.session.clone(),
        });
        let (id, replies) = self.shared.send(&ask, Some(hash))?;
        let done = self.wait(id, &replies, end, cancel)?;
        self.finish(done, request)
    }

    /// Waits for the one reply of a request. The watchdog ends a child that says nothing, so this ends too.
    fn wait(
        &self,
        id: u32,
        replies: &mpsc::Receiver<Reply>,
        end: Instant,
        cancel: &Cancel,
    ) -> Result<Done, Error> {
        let mut told = false;
        loop {
            match replies.recv_timeout(TICK) {
                Ok(Reply::Done(mut done)) => {
                    // The switch below is thrown at the deadline too; nobody went away then.
                    if done.finish == Finish::Cancelled && !cancel.is_cancelled() {
                        done.finish = Finish::Deadline;
                    }
                    return Ok(done);
                }
                Ok(Reply::Failed(failed)) => return Err(Error::new(failed.code, failed.detail)),
                Ok(Reply::Crashed(cause)) => {
                    let what = format!("the engine process ended: {cause}");
                    return Err(Error::new(Code::EngineCrashed, what));
                }
                Ok(Reply::Probed(_)) => {
                    return Err(Error::new(Code::BadFrame, "a reply to another question"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(Code::EngineCrashed, "the engine was stopped"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let late = Instant::now() >= end;
            if !told && (late || cancel.is_cancelled()) {
                // The child watches the deadline itself; telling it costs nothing and covers a stopped clock.
                self.shared.send_cancel(id);
                told = true;
            }
        }
    }

    fn finish(&self, done: Done, request: &CompletionRequest) -> Result<Completion, Error> {
        let ended = |code, what: &str| {
            let mut error = Error::new(code, what);
            error.usage = Some(done.usage);
            Err(error)
        };
        match done.finish {
            Finish::Stop => {}
            Finish::Cancelled => return ended(Code::Cancelled, "the request was cancelled"),
            Finish::Deadline => return ended(Code::Deadline, "the deadline passed"),
            Finish::Length => return ended(Code::Truncated, "the answer is not complete"),
        }
        if let Err(error) = schema::parse(&request.schema, &done.text) {
            return ended(Code::SchemaInvalid, &error.to_string());
        }
        let options = &self.shared.options;
        let stem = options.model.file_stem().unwrap_or_default();
        let digest = options.sha256.get(..12).unwrap_or_default();
        Ok(Completion {
            text: done.text,
            usage: done.usage,
            timings: done.timings,
            model: format!("{}@{digest}", stem.to_string_lossy()),
            finish: done.finish,
        })
    }

    /// Has the child try what its sandbox forbids, with `path` as the file to open and the socket to connect to.
    ///
    /// # Errors
    /// When the child cannot be asked.
    pub fn probe(&self, path: &str) -> Result<Vec<ProbeResult>, Error> {
        let ask = ToChild::Probe(ProbeAsk {
            path: path.to_owned(),
        });
        let (_, replies) = self.shared.send(&ask, None)?;
        match replies.recv() {
            Ok(Reply::Probed(results)) => Ok(results),
            Ok(Reply::Failed(failed)) => Err(Error::new(failed.code, failed.detail)),
            Ok(Reply::Done(_)) => Err(Error::new(Code::BadFrame, "a reply to another question")),
            Ok(Reply::Crashed(cause)) => Err(Error::new(Code::EngineCrashed, cause)),
            Err(_) => Err(Error::new(Code::EngineCrashed, "the engine was stopped")),
        }
    }
}

impl Provider for Engine {
    fn complete(&self, prompt: &Prompt, request: &CompletionRequest) -> Result<Completion, Error> {
        self.complete_cancellable(prompt, request, &Cancel::default())
    }

    fn state(&self) -> EngineState {
        lock(&self.shared.state).clone()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.changed.notify_all();
        if let Some(supervisor) = self.supervisor.take() {
            let _ = supervisor.join();
        }
    }
}

/// The parts of a prompt as messages: neighbours of one role are one message.
fn messages(prompt: &Prompt) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for part in prompt.parts() {
        let role = match part.role {
            Role::System => "system",
            Role::User => "user",
        };
        let trust = match part.trust {
            Trust::Trusted => frame::Trust::Trusted,
            Trust::Untrusted { .. } => frame::Trust::Untrusted,
        };
        let part = Part {
            text: part.text.clone(),
            trust,
        };
        match messages.last_mut() {
            Some(last) if last.role == role => last.parts.push(part),
            Some(_) | None => messages.push(Message {
                role: role.to_owned(),
                parts: vec![part],
            }),
        }
    }
    messages
}

fn digest(messages: &[Message]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for message in messages {
        for part in &message.parts {
            hash.update((part.text.len() as u64).to_le_bytes());
            hash.update(part.text.as_bytes());
        }
    }
    hash.finalize().into()
}
