//! The way of one change, from core's side: lease, worker, the guard's channel, release (guard 7.2).

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use policies::model::RemediationClass;
use tokio::sync::oneshot;

use super::channel::{self, Channel};
use super::process::{Killer, Worker};
use super::scheduler::{MAX_ANSWER, Scheduler, chain};
use super::wire::{EffectReply, Job, Reply};
use crate::executors::{ExecutorSpec, Order, Release};
use crate::failpoint;
use crate::guard::{ActionView, Guard, Spent};

/// The right to run a job. All effects that exist take far less.
const LEASE: Duration = Duration::from_secs(120);
/// How long core waits after the end of a lease for a worker to say so itself.
const GRACE: Duration = Duration::from_secs(5);
/// How long the kernel may take to end a killed worker.
const DEATH: Duration = Duration::from_secs(10);

/// Who may run which job.
#[derive(Default)]
pub(super) struct Leases {
    /// The fence and the worker of each job that runs.
    held: Mutex<BTreeMap<String, (i64, Killer)>>,
    /// Held while a lease changes hands, so that two callers cannot do it at the same time.
    changing: tokio::sync::Mutex<()>,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutcome {
    /// `succeeded`, `failed` (nothing was changed) or `unknown`.
    pub outcome: String,
    /// Why: of the executor, of the guard, or of the scheduler.
    pub code: String,
    /// For a person.
    pub detail: String,
}

impl JobOutcome {
    fn failed(code: &str, detail: impl Into<String>) -> Self {
        Self {
            outcome: "failed".to_owned(),
            code: code.to_owned(),
            detail: detail.into(),
        }
    }

    fn succeeded(&self) -> bool {
        self.outcome == "succeeded"
    }
}

impl Scheduler {
    /// Performs an approved action, at most once, by a worker that collects and spends its
    /// capability. A caller that goes away does not stop it.
    pub async fn remediate(
        &self,
        guard: &Guard,
        action: &ActionView,
        executor: &str,
    ) -> JobOutcome {
        self.perform(guard, action, executor, None).await
    }

    /// As [`Scheduler::remediate`], with a fence that was taken before. One that is no longer the
    /// highest of its job is refused by the guard (guard 7.3).
    pub async fn remediate_with_fence(
        &self,
        guard: &Guard,
        action: &ActionView,
        executor: &str,
        fence: i64,
    ) -> JobOutcome {
        self.perform(guard, action, executor, Some(fence)).await
    }

    /// The job of an action: one for its whole life, so that its fences rise.
    #[must_use]
    pub fn job_of(action: &ActionView) -> String {
        format!("remediate:{}", action.id)
    }

    async fn perform(
        &self,
        guard: &Guard,
        action: &ActionView,
        executor: &str,
        fence: Option<i64>,
    ) -> JobOutcome {
        let begin = Instant::now();
        let (scheduler, guard, action) = (self.clone(), guard.clone(), action.clone());
        let executor = self.executors().get(executor).cloned();
        // A task of its own: an incident that is given up does not tear a change in two.
        let running =
            tokio::spawn(async move { scheduler.run(&guard, &action, executor, fence).await });
        let outcome = running.await.unwrap_or_else(|e| JobOutcome {
            outcome: "unknown".to_owned(),
            code: "crashed".to_owned(),
            detail: e.to_string(),
        });
        let result = match outcome.outcome.as_str() {
            _ if outcome.succeeded() => "ok",
            "unknown" => "unknown",
            _ => crate::tools::failure_code(&outcome.code),
        };
        self.observe("remediate", result, begin);
        outcome
    }

    async fn run(
        &self,
        guard: &Guard,
        action: &ActionView,
        executor: Option<ExecutorSpec>,
        fence: Option<i64>,
    ) -> JobOutcome {
        let Some(executor) = executor.filter(|executor| fits(executor, action)) else {
            return JobOutcome::failed(
                "unknown_executor",
                "no executor for this action and target",
            );
        };
        let job = Self::job_of(action);
        let changing = self.inner.leases.changing.lock().await;
        // Whoever held the lease is dead before the fence rises (guard 7.3).
        if let Err(killer) = self.revoke_lease(&job).await {
            return JobOutcome::failed("no_worker", format!("{killer:?} does not end"));
        }
        let fence = match fence {
            Some(fence) => fence,
            None => match guard.next_fence(&job).await {
                Ok(fence) => fence,
                Err(problem) => return JobOutcome::failed(problem.code.as_str(), problem.detail),
            },
        };
        let spent = guard.expect_spend(&job, fence);
        let order = Order {
            aid: action.id.clone(),
            action: action.action.clone(),
            target: action.target.clone(),
            change: action.change.clone(),
            job: job.clone(),
            fence,
            lease_ms: u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX),
            jwks: guard.jwks(),
            executor,
        };
        let leased = self.lease(guard, &order).await;
        drop(changing);
        let outcome = match leased {
            Ok(worker) => supervise(guard, worker, order, spent).await,
            Err(detail) => JobOutcome::failed("no_worker", detail),
        };
        // Unless somebody else has taken the lease by now.
        self.lock_leases()
            .retain(|held, (of, _)| (held.as_str(), *of) != (job.as_str(), fence));
        outcome
    }

    /// Starts the worker of an order, with the guard's channel as its descriptor 3.
    async fn lease(&self, guard: &Guard, order: &Order) -> Result<Worker, String> {
        let (near, far) = UnixStream::pair().map_err(|e| chain(&e))?;
        near.set_nonblocking(true).map_err(|e| chain(&e))?;
        let near = tokio::net::UnixStream::from_std(near).map_err(|e| chain(&e))?;
        let channel = guard.channel(&order.job, order.fence);
        // Ends when the worker's end closes, at the latest with the worker itself.
        tokio::spawn(async move {
            if let Err(error) = channel.serve(near).await {
                tracing::debug!(error = %error, "the guard's channel of a worker broke");
            }
        });
        let spawner = self.spawner();
        let worker = tokio::task::spawn_blocking(move || spawner.worker(Some(OwnedFd::from(far))))
            .await
            .map_err(|e| chain(&e))?
            .map_err(|e| chain(&e))?;
        let killer = worker.killer();
        self.lock_leases()
            .insert(order.job.clone(), (order.fence, killer));
        Ok(worker)
    }

    /// Ends the worker that holds the lease of a job, if one does.
    async fn revoke_lease(&self, job: &str) -> Result<(), Killer> {
        let Some((_, killer)) = self.lock_leases().remove(job) else {
            return Ok(());
        };
        let waiting = killer.clone();
        let dead = tokio::task::spawn_blocking(move || waiting.end(DEATH)).await;
        match dead {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(killer),
        }
    }

    fn lock_leases(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (i64, Killer)>> {
        // A map of handles: no panic leaves it half changed.
        self.inner
            .leases
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn fits(executor: &ExecutorSpec, action: &ActionView) -> bool {
    action.action.parse::<RemediationClass>() == Ok(executor.action)
        && executor.service == action.target.name
}

/// Hands over the order, releases the effect when the spend is on record, and waits for the end.
async fn supervise(
    guard: &Guard,
    mut worker: Worker,
    order: Order,
    spent: oneshot::Receiver<Spent>,
) -> JobOutcome {
    let (job, fence, aid) = (order.job.clone(), order.fence, order.aid.clone());
    let Ok(mut sender) = worker.channel.second() else {
        return JobOutcome::failed("no_worker", "its channel cannot be shared");
    };
    let frame = Job::Remediate {
        grants: order.executor.effect_grants(),
        order,
    };
    failpoint::hit("before_collect");
    let mut answer = tokio::task::spawn_blocking(move || {
        let deadline = Instant::now() + LEASE + GRACE;
        let answer = worker.channel.send(&frame).and_then(|()| {
            worker
                .channel
                .recv::<EffectReply>(MAX_ANSWER, Some(deadline))
        });
        worker.end();
        answer
    });
    let answer = tokio::select! {
        spent = spent => {
            if let Ok(spent) = spent
                && (spent.job(), spent.fence(), spent.aid()) == (job.as_str(), fence, aid.as_str())
            {
                failpoint::hit("spent");
                // A worker that is gone by now is noticed below.
                let _ = release(spent, &mut sender);
                failpoint::hit("released");
            }
            (&mut answer).await
        }
        answer = &mut answer => answer,
    };
    match answer {
        Ok(Ok(Reply::Done(effect))) => JobOutcome {
            outcome: effect.outcome,
            code: effect.code,
            detail: effect.evidence,
        },
        Ok(Ok(Reply::Failed { code, detail })) => JobOutcome::failed(&code, detail),
        Ok(Err(error)) => lost(guard, &aid, &chain(&error)).await,
        Err(error) => lost(guard, &aid, &chain(&error)).await,
    }
}

/// A worker that is gone without an answer. Only the guard's record tells whether it had spent:
/// what core saw of the spend may lag behind the death (guard 7.6, 8). Whatever is not known to be
/// unspent is `unknown`.
async fn lost(guard: &Guard, aid: &str, detail: &str) -> JobOutcome {
    let record = guard.action(aid).await.ok().flatten();
    let unspent = record.is_some_and(|a| matches!(a.state.as_str(), "approved" | "issued"));
    JobOutcome {
        outcome: if unspent { "failed" } else { "unknown" }.to_owned(),
        code: "worker_lost".to_owned(),
        detail: detail.to_owned(),
    }
}

/// The only sender of a [`Release`]: it costs a `Spent`, and there is one for each capability.
fn release(spent: Spent, channel: &mut Channel) -> Result<(), channel::Error> {
    channel.send(&Release {
        jti: spent.jti().to_owned(),
    })
}
