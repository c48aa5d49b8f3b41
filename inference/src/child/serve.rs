//! The two threads of the engine process: one reads the channel, one owns the context (inference 1.5).

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::ClockId;

use super::decode::{Watch, generate};
use super::fault::Fault;
use super::load::Loaded;
use super::session::CHUNK;
use super::{probe, tokens};
use crate::frame::{self, Complete, Delta, Done, Failed, FromChild, ToChild};
use crate::provider::{Code, Error, Finish, Timings, Usage};
use crate::schema;

/// Requests that may wait (inference 3.3).
const QUEUE: usize = 64;

/// The channel to core. Both threads write whole frames; a channel that fails ends the process, because the work of
/// this process is of no use to anybody else.
pub(crate) struct Channel {
    stream: Mutex<UnixStream>,
    /// Requests that are queued or running, and whether each was cancelled.
    open: Mutex<BTreeMap<u32, bool>>,
}

impl Channel {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self {
            stream: Mutex::new(stream),
            open: Mutex::new(BTreeMap::new()),
        }
    }

    /// Sends a frame.
    pub(crate) fn send(&self, id: u32, frame: &FromChild) {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        if frame.write(&mut *stream, id).is_err() {
            std::process::exit(0);
        }
    }

    /// Sends bytes that are no frame.
    fn send_garbage(&self) {
        use std::io::Write;
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.write_all(&[0xff; 64]);
    }

    /// Reports a failure.
    pub(crate) fn fail(&self, id: u32, error: &Error) {
        self.send(
            id,
            &FromChild::Failed(Failed {
                code: error.code,
                detail: error.detail.clone(),
            }),
        );
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u32, bool>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Job {
    Complete(u32, Box<Complete>, Instant),
    Probe(u32, String),
}

/// Starts the reading thread. This is the last thread that the process makes.
pub(crate) fn start_reader(stream: UnixStream, channel: &Arc<Channel>) -> std::io::Result<Jobs> {
    let (to_engine, jobs) = sync_channel(QUEUE);
    let channel = Arc::clone(channel);
    std::thread::Builder::new()
        .name("channel".to_owned())
        .spawn(move || {
            read_frames(stream, &channel, &to_engine);
            // End of file, `shutdown` or garbage: core is gone or wants this process gone.
            std::process::exit(0);
        })?;
    Ok(Jobs(jobs))
}

/// What the reading thread hands over.
pub(crate) struct Jobs(Receiver<Job>);

fn read_frames(mut stream: UnixStream, channel: &Channel, to_engine: &SyncSender<Job>) {
    while let Ok(Some(raw)) = frame::read(&mut stream, frame::MAX_TO_CHILD) {
        let Ok(ask) = ToChild::decode(&raw) else {
            return;
        };
        let job = match ask {
            ToChild::Complete(ask) => {
                channel.open().insert(raw.id, false);
                Job::Complete(raw.id, Box::new(ask), Instant::now())
            }
            ToChild::Probe(ask) => Job::Probe(raw.id, ask.path),
            ToChild::Cancel => {
                // An id that is finished or was never there is ignored.
                if let Some(cancelled) = channel.open().get_mut(&raw.id) {
                    *cancelled = true;
                }
                continue;
            }
            ToChild::Ping => {
                channel.send(raw.id, &FromChild::Pong);
                continue;
            }
            ToChild::Load(_) | ToChild::Shutdown => return,
        };
        match to_engine.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                channel.open().remove(&raw.id);
                let busy = Error::new(Code::Busy, format!("{QUEUE} requests wait already"));
                channel.fail(raw.id, &busy);
            }
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}

/// Works until the channel ends.
pub(crate) fn serve(
    mut loaded: Loaded,
    channel: &Channel,
    jobs: &Jobs,
    probe_socket: &UnixStream,
    fault: Option<Fault>,
) -> ExitCode {
    while let Ok(job) = jobs.0.recv() {
        match job {
            Job::Probe(id, path) => {
                channel.send(id, &FromChild::Probed(probe::run(&path, probe_socket)));
            }
            Job::Complete(id, ask, arrived) => {
                match fault {
                    Some(Fault::Hang) => loop {
                        std::thread::sleep(Duration::from_secs(3_600));
                    },
                    Some(Fault::GarbageFrame) => channel.send_garbage(),
                    Some(Fault::CrashMidDecode | Fault::AbortAtLoad) | None => {}
                }
                let mut watch = Request {
                    channel,
                    id,
                    end: arrived + Duration::from_millis(ask.deadline_ms),
                    arrived,
                    first: None,
                    tail: Vec::new(),
                    written: 0,
                    fault,
                };
                match complete(&mut loaded, &ask, &mut watch) {
                    Ok(done) => channel.send(id, &FromChild::Done(done)),
                    Err(error) => channel.fail(id, &error),
                }
                channel.open().remove(&id);
            }
        }
    }
    ExitCode::SUCCESS
}

/// A running request, seen from the decoding loop.
struct Request<'a> {
    channel: &'a Channel,
    id: u32,
    arrived: Instant,
    end: Instant,
    first: Option<Instant>,
    /// The start of a character that is not complete yet.
    tail: Vec<u8>,
    written: u32,
    fault: Option<Fault>,
}

impl Request<'_> {
    fn delta(&self, text: &str, tokens: u32) {
        let text = text.to_owned();
        self.channel
            .send(self.id, &FromChild::Delta(Delta { text, tokens }));
    }
}

impl Watch for Request<'_> {
    fn stop(&mut self) -> Option<Finish> {
        if self.channel.open().get(&self.id) == Some(&true) {
            Some(Finish::Cancelled)
        } else if Instant::now() >= self.end {
            Some(Finish::Deadline)
        } else {
            None
        }
    }

    fn wrote(&mut self, bytes: &[u8], tokens: u32) -> Result<(), Error> {
        self.first.get_or_insert_with(Instant::now);
        self.written += tokens;
        if self.fault == Some(Fault::CrashMidDecode) && self.written > 3 {
            std::process::abort();
        }
        self.tail.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.tail) {
            Ok(text) => text.len(),
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => return Err(Error::new(Code::GrammarError, "the answer is not UTF-8")),
        };
        let rest = self.tail.split_off(whole);
        let text = std::mem::replace(&mut self.tail, rest);
        self.delta(&String::from_utf8_lossy(&text), tokens);
        Ok(())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Refuses what cannot end well before any work, and says how much of the context can be taken over.
fn plan(
    loaded: &Loaded,
    ask: &Complete,
    prompt: &tokens::PromptTokens,
    left: Duration,
) -> Result<usize, Error> {
    let (count, capacity) = (prompt.tokens.len(), loaded.session.capacity());
    if count + ask.max_tokens as usize > capacity {
        let what = format!(
            "a prompt of {count} and an answer of {} tokens do not fit into {capacity}",
            ask.max_tokens
        );
        return Err(Error::new(Code::ContextOverflow, what));
    }
    let reusable = loaded.session.reusable(prompt, &ask.session);
    let predicted = (count - reusable) as f32 / loaded.prefill_tps.max(1.0);
    if predicted > left.as_secs_f32() {
        let what = format!("the prompt alone takes {predicted:.1} s and {left:.1?} are left");
        return Err(Error::new(Code::DeadlineUnreachable, what));
    }
    Ok(reusable)
}

fn complete(loaded: &mut Loaded, ask: &Complete, watch: &mut Request<'_>) -> Result<Done, Error> {
    let (begin, cpu) = (Instant::now(), cpu_time());
    let mut matcher = loaded.grammars.matcher(&ask.schema)?;
    let rendered = loaded.template.render(&ask.messages)?;
    let prompt = tokens::encode(loaded.model, &rendered);
    let count = prompt.tokens.len();
    let reusable = plan(
        loaded,
        ask,
        &prompt,
        watch.end.saturating_duration_since(begin),
    )?;
    let cached = loaded.session.cut(reusable, &ask.session);
    let mut stopped = None;
    for chunk in prompt.tokens[cached..].chunks(CHUNK) {
        stopped = watch.stop();
        if stopped.is_some() {
            break;
        }
        prefill(loaded, chunk)?;
        watch.delta("", 0);
    }
    let prefilled = Instant::now();
    let (answer, finish) = match stopped {
        Some(finish) => (super::decode::Answer::default(), finish),
        None => answer(loaded, &mut matcher, watch, ask, count)?,
    };
    let text = String::from_utf8(answer.bytes)
        .map_err(|_| Error::new(Code::GrammarError, "the answer is not UTF-8"))?;
    match finish {
        Finish::Stop => {
            schema::parse(&ask.schema, &text)
                .map_err(|error| Error::new(Code::SchemaInvalid, error.to_string()))?;
        }
        Finish::Length => {
            let what = format!("the answer is not complete after {} tokens", answer.tokens);
            return Err(Error::new(Code::Truncated, what));
        }
        Finish::Cancelled | Finish::Deadline => {}
    }
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let first = watch.first.unwrap_or_else(Instant::now);
    Ok(Done {
        text,
        finish,
        usage: Usage {
            prompt: number(count),
            cached: number(cached),
            evaluated: number(count - cached),
            completion: answer.tokens,
            forced: answer.forced,
        },
        timings: Timings {
            queue_ms: millis(begin - watch.arrived),
            prefill_ms: millis(prefilled - begin),
            decode_ms: millis(prefilled.elapsed()),
            ttft_ms: millis(first - watch.arrived),
            cpu_ms: millis(cpu_time().saturating_sub(cpu)),
        },
        model: loaded.sha256.clone(),
        template_sha256: loaded.template.sha256().to_owned(),
    })
}

/// Computes a chunk of the prompt. After a failure nothing is known about the context, so it is emptied. The best speed
/// counts for later predictions: one slow moment must not refuse requests for ever.
fn prefill(loaded: &mut Loaded, chunk: &[llama_cpp_2::token::LlamaToken]) -> Result<(), Error> {
    let begin = Instant::now();
    let result = loaded.session.append(chunk);
    if result.is_err() {
        loaded.session.cut(0, "");
    }
    let speed = chunk.len() as f32 / begin.elapsed().as_secs_f32().max(1e-3);
    loaded.prefill_tps = loaded.prefill_tps.max(speed);
    result
}

/// Writes the answer and leaves the context with the prompt alone.
fn answer(
    loaded: &mut Loaded,
    matcher: &mut llguidance::Matcher,
    watch: &mut Request<'_>,
    ask: &Complete,
    prompt: usize,
) -> Result<(super::decode::Answer, Finish), Error> {
    let result = generate(
        matcher,
        &mut loaded.session,
        watch,
        &loaded.banned,
        ask.max_tokens,
    );
    let keep = if result.is_ok() { prompt } else { 0 };
    loaded.session.cut(keep, &ask.session);
    result
}
