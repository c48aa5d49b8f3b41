//! The life of the child: start, watch, bury, pause, start again (inference 8.3 and 12).

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::process::{Lines, keep_lines, send_load, spawn};
use super::{EngineEvent, QUARANTINE, Reply, Shared, lock};
use crate::child::CHUNK;
use crate::frame::{self, Failed, FromChild, ToChild};
use crate::provider::{Code, EngineState};

/// How often the watchdog looks.
const LOOK: Duration = Duration::from_millis(50);
/// How long a child that was asked to end may take.
const GOODBYE: Duration = Duration::from_millis(500);
/// Silence that is allowed for one chunk of a prompt, as a multiple of its predicted time.
const PATIENCE: f32 = 5.0;

/// How a child ended.
enum End {
    Asked,
    Refused(Failed),
    Died { cause: String, stderr: Vec<String> },
}

/// Why a child is ended by us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kill {
    Stop,
    Hang,
    Garbage,
    Refusal,
}

/// What the reading thread tells.
enum News {
    Silence(Duration),
    Refused(Failed),
    Closed { garbage: bool },
}

/// Runs until the engine is dropped.
pub(super) fn run(shared: &Arc<Shared>) {
    let mut crashes: VecDeque<Instant> = VecDeque::new();
    while !shared.stopping() {
        shared.set_state(EngineState::Loading);
        match one_child(shared) {
            End::Asked => break,
            End::Refused(failed) => {
                bury(shared, failed.code.as_str(), false);
                shared.set_state(EngineState::Unavailable { code: failed.code });
                shared.emit(EngineEvent::Refused {
                    code: failed.code,
                    detail: failed.detail,
                });
                pause(shared, None);
            }
            End::Died { cause, stderr } => {
                let now = Instant::now();
                let window = shared.limits.crash_window;
                crashes.retain(|crash| now.duration_since(*crash) < window);
                crashes.push_back(now);
                let degraded = crashes.len() >= shared.limits.crashes;
                shared.set_state(if degraded {
                    EngineState::Degraded
                } else {
                    EngineState::Restarting
                });
                bury(shared, &cause, true);
                shared.emit(EngineEvent::Crashed { cause, stderr });
                if degraded {
                    crashes.clear();
                    shared.emit(EngineEvent::Degraded);
                    pause(shared, Some(window));
                } else {
                    let doubled = 1_u32 << (crashes.len() - 1).min(16);
                    let after = (shared.limits.pause * doubled).min(shared.limits.pause_max);
                    shared.emit(EngineEvent::Restarting { after });
                    pause(shared, Some(after));
                }
            }
        }
    }
    shared.set_state(EngineState::Stopped);
    bury(shared, "stopped", false);
}

/// Waits; a stop ends the wait.
fn pause(shared: &Shared, length: Option<Duration>) {
    let end = length.map(|length| Instant::now() + length);
    let mut state = lock(&shared.state);
    while !shared.stopping() && end.is_none_or(|end| Instant::now() < end) {
        let (next, _) = shared
            .changed
            .wait_timeout(state, LOOK)
            .unwrap_or_else(PoisonError::into_inner);
        state = next;
    }
}

/// Ends the requests in flight, and counts their prompts after a crash.
fn bury(shared: &Shared, cause: &str, crashed: bool) {
    let pending = std::mem::take(&mut *lock(&shared.pending));
    for (_, request) in pending {
        if let (true, Some(prompt)) = (crashed, request.prompt) {
            let mut counts = lock(&shared.crashes_of);
            let count = counts.entry(prompt).or_insert(0);
            *count += 1;
            if *count == QUARANTINE {
                drop(counts);
                shared.emit(EngineEvent::Quarantined {
                    prompt: crate::hex(&prompt),
                });
            }
        }
        // A caller that is gone needs no answer.
        let _ = request.reply.send(Reply::Crashed(cause.to_owned()));
    }
}

fn refused(code: Code, detail: String) -> End {
    End::Refused(Failed { code, detail })
}

fn one_child(shared: &Arc<Shared>) -> End {
    let options = &shared.options;
    let model = match File::open(&options.model) {
        Ok(model) => model,
        Err(error) => {
            let what = format!("the model file cannot be opened: {error}");
            let code = match error.kind() {
                std::io::ErrorKind::NotFound => Code::ModelMissing,
                _ => Code::ModelCorrupt,
            };
            return refused(code, what);
        }
    };
    let (mut child, mut stream) = match spawn(options) {
        Ok(started) => started,
        Err(error) => {
            let what = format!("the engine process cannot be started: {error}");
            return refused(Code::EngineUnavailable, what);
        }
    };
    shared.emit(EngineEvent::Started { pid: child.id() });
    *lock(&shared.heard) = Instant::now();
    let lines: Lines = Arc::new(Mutex::new(VecDeque::new()));
    let (news, told) = mpsc::channel();
    let stderr = child.stderr.take();
    let ended = std::thread::scope(|scope| {
        if let Some(stderr) = stderr {
            let lines = &lines;
            scope.spawn(move || keep_lines(stderr, lines));
        }
        let ended = match (stream.try_clone(), send_load(&mut stream, options, &model)) {
            (Ok(reader), Ok(())) => {
                scope.spawn(|| read_frames(shared, reader, &news));
                watch(shared, stream, &told)
            }
            (_, _) => Watched::Closed(None),
        };
        end(&mut child, &ended);
        ended
    });
    let status = child.wait();
    match ended {
        Watched::Killed(Kill::Stop, _) => End::Asked,
        Watched::Killed(Kill::Refusal, Some(failed)) | Watched::Closed(Some(failed)) => {
            End::Refused(failed)
        }
        Watched::Killed(kill, _) => End::Died {
            cause: match kill {
                Kill::Hang => "hang",
                Kill::Garbage => "garbage",
                Kill::Stop | Kill::Refusal => "stopped",
            }
            .to_owned(),
            stderr: lock(&lines).iter().cloned().collect(),
        },
        Watched::Closed(None) => End::Died {
            cause: status.map_or_else(
                |_| "unknown".to_owned(),
                |status| match (status.signal(), status.code()) {
                    (Some(signal), _) => format!("signal {signal}"),
                    (None, Some(code)) => format!("exit {code}"),
                    (None, None) => "unknown".to_owned(),
                },
            ),
            stderr: lock(&lines).iter().cloned().collect(),
        },
    }
}

/// How the watch over a child ended.
enum Watched {
    Killed(Kill, Option<Failed>),
    Closed(Option<Failed>),
}

/// Watches until the child closes the channel, falls silent, or is to end.
fn watch(shared: &Shared, stream: UnixStream, told: &mpsc::Receiver<News>) -> Watched {
    let mut silence = shared.limits.load;
    let mut loading = true;
    *lock(&shared.link) = Some(stream);
    let ended = loop {
        match told.recv_timeout(LOOK) {
            Ok(News::Silence(chunk)) => {
                loading = false;
                silence = shared.limits.hang.max(chunk);
            }
            Ok(News::Refused(failed)) => break Watched::Killed(Kill::Refusal, Some(failed)),
            Ok(News::Closed { garbage: true }) => break Watched::Killed(Kill::Garbage, None),
            Ok(News::Closed { garbage: false }) | Err(RecvTimeoutError::Disconnected) => {
                break Watched::Closed(None);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if shared.stopping() {
            break Watched::Killed(Kill::Stop, None);
        }
        let busy = loading || !lock(&shared.pending).is_empty();
        if busy && lock(&shared.heard).elapsed() > silence {
            break Watched::Killed(Kill::Hang, None);
        }
    };
    if let Some(mut stream) = lock(&shared.link).take() {
        // A child that is gone cannot be asked.
        let _ = ToChild::Shutdown.write(&mut stream, 0);
    }
    ended
}

/// Makes sure that the child is gone. It is not waited for before this, so its process id is still its own.
fn end(child: &mut Child, ended: &Watched) {
    let patience = match ended {
        Watched::Killed(Kill::Stop | Kill::Refusal, _) | Watched::Closed(_) => GOODBYE,
        Watched::Killed(Kill::Hang | Kill::Garbage, _) => Duration::ZERO,
    };
    let limit = Instant::now() + patience;
    while Instant::now() < limit {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended just now.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

/// Reads frames until the channel ends, and gives each reply to its caller.
fn read_frames(shared: &Shared, mut stream: UnixStream, news: &Sender<News>) {
    // The other side of `news` is gone only when the child is being ended.
    let tell = |what| {
        let _ = news.send(what);
    };
    loop {
        let raw = match frame::read(&mut stream, frame::MAX_FROM_CHILD) {
            Ok(Some(raw)) => raw,
            Ok(None) | Err(frame::Error::Io(_)) => return tell(News::Closed { garbage: false }),
            Err(_) => return tell(News::Closed { garbage: true }),
        };
        let Ok(frame) = FromChild::decode(&raw) else {
            return tell(News::Closed { garbage: true });
        };
        *lock(&shared.heard) = Instant::now();
        let reply = match frame {
            FromChild::Hello(_) | FromChild::Progress(_) | FromChild::Pong => continue,
            FromChild::Ready(ready) => {
                let chunk = PATIENCE * CHUNK as f32 / ready.prefill_tps.max(1.0);
                tell(News::Silence(Duration::from_secs_f32(chunk)));
                shared.set_state(EngineState::Ready);
                shared.emit(EngineEvent::Ready(ready));
                continue;
            }
            FromChild::Delta(delta) => {
                if let Some(pending) = lock(&shared.pending).get_mut(&raw.id) {
                    pending.text.push_str(&delta.text);
                }
                continue;
            }
            FromChild::Failed(failed) if raw.id == 0 => {
                tell(News::Refused(failed));
                continue;
            }
            FromChild::Done(done) => Reply::Done(done),
            FromChild::Failed(failed) => Reply::Failed(failed),
            FromChild::Probed(results) => Reply::Probed(results),
        };
        // Frames of an id that is finished, or never was, are ignored.
        if let Some(pending) = lock(&shared.pending).remove(&raw.id) {
            if let Reply::Done(done) = &reply
                && done.text != pending.text
            {
                lock(&shared.pending).insert(raw.id, pending);
                return tell(News::Closed { garbage: true });
            }
            let _ = pending.reply.send(reply);
        }
    }
}
