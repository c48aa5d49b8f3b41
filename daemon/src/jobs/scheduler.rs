//! The scheduler: which worker runs what, and for how long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policies::claim::RawOutput;
use policies::model::{Millis, Window};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::Grants;
use super::channel;
use super::process::{self, Killer, Spawner, Worker, WorkerExe};
use super::remediate::Leases;
use super::selfcheck::{Attempt, Attempts};
use super::wire::{Job, PreviewReply, Reply, ToolReply};
use crate::executors::{ExecutorSpec, Preview};
use crate::scrape::MetricsRing;
use crate::tools::{self, Failure, Input, Run, SourceSpec, Tool};

/// Workers at a time; more jobs wait.
const MAX_WORKERS: usize = 8;
/// Most bytes of an answer that is not a tool's.
pub(super) const MAX_ANSWER: usize = 1 << 20;
/// Time of a job that only looks at an executor's target.
const PREVIEW: Duration = Duration::from_secs(10);

/// The time, as an argument.
pub type Clock = Arc<dyn Fn() -> Millis + Send + Sync>;

/// Told of each job that ended, for the metrics.
pub type Observer = Arc<dyn Fn(&JobRecord) + Send + Sync>;

/// One job that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// Name of the tool, or `preview`, `remediate`, `self_check`.
    pub tool: &'static str,
    /// `ok`, `partial` or the code of the failure.
    pub result: &'static str,
    /// How long it took, waiting included.
    pub took: Duration,
}

/// Why the scheduler does not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No worker can be started.
    #[error("no worker can be started")]
    Worker(#[from] process::Error),
    /// A worker did not answer.
    #[error("a worker did not answer")]
    Channel(#[from] channel::Error),
    /// The thread of a job was lost.
    #[error("the thread of a job was lost")]
    Thread(#[from] tokio::task::JoinError),
    /// The sandbox has a hole.
    #[error("a worker could do what it must not: {0:?}")]
    Hole(Vec<Attempt>),
}

/// What the scheduler works with.
pub struct SchedulerOptions {
    /// The program that becomes a worker.
    pub exe: WorkerExe,
    /// The time.
    pub clock: Clock,
    /// Sources by name.
    pub sources: BTreeMap<String, SourceSpec>,
    /// Executors by name.
    pub executors: BTreeMap<String, ExecutorSpec>,
    /// Told of each job.
    pub observer: Observer,
}

/// One call of a read-only tool.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Name of the tool.
    pub tool: String,
    /// Name of the source.
    pub source: String,
    /// Arguments.
    pub args: Value,
    /// The window.
    pub window: Window,
    /// Most time; the tool's own limit may be shorter.
    pub deadline: Duration,
}

/// What a call came to.
#[derive(Debug)]
pub enum ToolAnswer {
    /// The source answered.
    Answered {
        /// The bytes, to be admitted and nothing else.
        raw: RawOutput,
        /// Why it is not complete; `None` when it is.
        partial: Option<String>,
    },
    /// The source did not answer.
    Failed {
        /// One of [`tools::FAILURE_CODES`].
        code: &'static str,
        /// For a person.
        detail: String,
    },
}

/// Runs jobs. Cheap to clone.
#[derive(Clone)]
pub struct Scheduler {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    options: SchedulerOptions,
    spawner: Spawner,
    ring: Arc<MetricsRing>,
    permits: Arc<Semaphore>,
    pub(super) leases: Leases,
}

/// Kills the worker of a call whose caller has gone away (protocols.md 2.2.3).
struct Cancel(Option<Killer>);

impl Drop for Cancel {
    fn drop(&mut self) {
        if let Some(killer) = self.0.take() {
            killer.kill();
        }
    }
}

impl Scheduler {
    /// Makes a scheduler. No process is started yet.
    ///
    /// # Errors
    /// When the kernel has no thread left.
    pub fn new(options: SchedulerOptions) -> Result<Self, Error> {
        let spawner = Spawner::start(options.exe.clone())?;
        let inner = Inner {
            options,
            spawner,
            ring: Arc::default(),
            permits: Arc::new(Semaphore::new(MAX_WORKERS)),
            leases: Leases::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The ring that the metrics tool reads.
    #[must_use]
    pub fn ring(&self) -> Arc<MetricsRing> {
        Arc::clone(&self.inner.ring)
    }

    /// Starts workers for others, the scraper.
    #[must_use]
    pub fn spawner(&self) -> Spawner {
        self.inner.spawner.clone()
    }

    /// The configured executors.
    #[must_use]
    pub fn executors(&self) -> &BTreeMap<String, ExecutorSpec> {
        &self.inner.options.executors
    }

    /// The configured sources.
    #[must_use]
    pub fn sources(&self) -> &BTreeMap<String, SourceSpec> {
        &self.inner.options.sources
    }

    /// Calls a tool. A refusal and a failure are answers: nothing here ends a run.
    pub async fn run_tool(&self, call: ToolCall) -> ToolAnswer {
        let begin = Instant::now();
        let name = tools::find(&call.tool).map_or("unknown", |tool| tool.name);
        let outcome = self.answer(&call).await;
        let result = match &outcome {
            Ok((_, None)) => "ok",
            Ok((_, Some(_))) => "partial",
            Err(failure) => failure.code,
        };
        self.observe(name, result, begin);
        match outcome {
            Ok((raw, partial)) => ToolAnswer::Answered { raw, partial },
            Err(failure) => ToolAnswer::Failed {
                code: failure.code,
                detail: failure.detail,
            },
        }
    }

    async fn answer(&self, call: &ToolCall) -> Result<(RawOutput, Option<String>), Failure> {
        let tool = tools::find(&call.tool)
            .ok_or_else(|| Failure::new("unknown_tool", format!("`{}`", call.tool)))?;
        (tool.check)(&call.args).map_err(|detail| Failure::new("invalid_arguments", detail))?;
        let source = self
            .sources()
            .get(&call.source)
            .ok_or_else(|| Failure::new("unknown_source", format!("`{}`", call.source)))?;
        if source.kind() != tool.source {
            let detail = format!("`{}` is of kind `{}`", call.source, source.kind());
            return Err(Failure::new("wrong_source", detail));
        }
        let now = (self.inner.options.clock)();
        let (partial, bytes) = match tool.run {
            Run::Core(body) => {
                let input = Input {
                    source,
                    args: &call.args,
                    window: call.window,
                    now,
                };
                let output = body(&input, &self.inner.ring)?;
                let bytes = tools::encode(tool, &output.payload)?;
                (output.partial, bytes)
            }
            Run::Worker { grants, .. } => {
                let job = Job::Tool {
                    grants: grants(source),
                    tool: call.tool.clone(),
                    source: source.clone(),
                    args: call.args.clone(),
                    window: call.window,
                    now,
                };
                self.in_worker(tool, job, call.deadline).await?
            }
        };
        let partial = (!partial.is_empty()).then(|| partial.join("; "));
        Ok((RawOutput::new(bytes), partial))
    }

    async fn in_worker(
        &self,
        tool: &'static Tool,
        job: Job,
        deadline: Duration,
    ) -> Result<(Vec<String>, Vec<u8>), Failure> {
        let limit = tool.timeout.min(deadline);
        self.with_worker(limit, move |worker, deadline| {
            worker.channel.send(&job)?;
            let reply: ToolReply = worker.channel.recv(MAX_ANSWER, Some(deadline))?;
            Ok(match reply {
                Reply::Done(done) => {
                    let bytes = worker.channel.recv_bytes(tool.max_output, Some(deadline))?;
                    Ok((done.partial, bytes))
                }
                Reply::Failed { code, detail } => {
                    Err(Failure::new(tools::failure_code(&code), detail))
                }
            })
        })
        .await?
    }

    /// Looks at what an executor would do, without doing it.
    ///
    /// # Errors
    /// When the executor is unknown, or its target or the change do not allow it.
    pub async fn preview(&self, executor: &str, change: Option<Value>) -> Result<Preview, Failure> {
        let begin = Instant::now();
        let outcome = self.look(executor, change).await;
        let result = outcome
            .as_ref()
            .map_or_else(|failure| failure.code, |_| "ok");
        self.observe("preview", result, begin);
        outcome
    }

    async fn look(&self, executor: &str, change: Option<Value>) -> Result<Preview, Failure> {
        let executor = self
            .executors()
            .get(executor)
            .cloned()
            .ok_or_else(|| Failure::new("unknown_executor", format!("`{executor}`")))?;
        let job = Job::Preview {
            grants: executor.preview_grants(),
            executor,
            change,
        };
        self.with_worker(PREVIEW, move |worker, deadline| {
            worker.channel.send(&job)?;
            let reply: PreviewReply = worker.channel.recv(MAX_ANSWER, Some(deadline))?;
            Ok(match reply {
                Reply::Done(preview) => Ok(preview),
                Reply::Failed { code, detail } => {
                    Err(Failure::new(tools::failure_code(&code), detail))
                }
            })
        })
        .await?
    }

    /// Lets a worker try what it must not be able to do.
    ///
    /// # Errors
    /// When a worker cannot be started, does not answer, or when an attempt worked.
    pub async fn self_check(&self, attempts: Attempts) -> Result<Vec<Attempt>, Error> {
        let spawner = self.spawner();
        let tried = tokio::task::spawn_blocking(move || -> Result<Vec<Attempt>, Error> {
            let mut worker = spawner.worker(None)?;
            let grants = Grants::default();
            worker.channel.send(&Job::SelfCheck { grants, attempts })?;
            let deadline = Instant::now() + PREVIEW;
            Ok(worker.channel.recv(MAX_ANSWER, Some(deadline))?)
        })
        .await??;
        let worked = |attempt: &&Attempt| attempt.refused.is_none();
        let holes: Vec<Attempt> = tried.iter().filter(worked).cloned().collect();
        if holes.is_empty() {
            Ok(tried)
        } else {
            Err(Error::Hole(holes))
        }
    }

    /// Runs `body` with a fresh worker on a thread that may block, and ends the worker afterwards:
    /// at the deadline, at an error, and when the caller is gone.
    async fn with_worker<T: Send + 'static>(
        &self,
        limit: Duration,
        body: impl FnOnce(&mut Worker, Instant) -> Result<T, channel::Error> + Send + 'static,
    ) -> Result<T, Failure> {
        let lost = |e: tokio::task::JoinError| Failure::new("crashed", e.to_string());
        let deadline = Instant::now() + limit;
        let permits = Arc::clone(&self.inner.permits);
        let permit = tokio::time::timeout_at(deadline.into(), permits.acquire_owned())
            .await
            .map_err(|_| Failure::new("timeout", "no worker was free in time"))?
            .map_err(|_| Failure::new("cancelled", "core is stopping"))?;
        let spawner = self.spawner();
        let mut worker = tokio::task::spawn_blocking(move || spawner.worker(None))
            .await
            .map_err(lost)?
            .map_err(|e| Failure::new("no_worker", chain(&e)))?;
        let mut cancel = Cancel(Some(worker.killer()));
        let outcome = tokio::task::spawn_blocking(move || {
            let outcome = body(&mut worker, deadline);
            worker.end();
            drop(permit);
            outcome
        })
        .await
        .map_err(lost)?;
        cancel.0 = None;
        outcome.map_err(|error| match error {
            channel::Error::Deadline => Failure::new(
                "timeout",
                format!("no answer within {} ms", limit.as_millis()),
            ),
            channel::Error::TooLarge { .. } => Failure::new("too_large", chain(&error)),
            channel::Error::Closed => Failure::new("crashed", "the worker ended without an answer"),
            channel::Error::Malformed(_)
            | channel::Error::TooManyDescriptors(_)
            | channel::Error::Io(_) => Failure::new("crashed", chain(&error)),
        })
    }

    pub(super) fn observe(&self, tool: &'static str, result: &'static str, begin: Instant) {
        (self.inner.options.observer)(&JobRecord {
            tool,
            result,
            took: begin.elapsed(),
        });
    }
}

/// An error with its causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
