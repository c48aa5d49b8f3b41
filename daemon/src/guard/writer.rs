//! The writer thread: takes requests in batches, has them judged inside one transaction, and
//! answers after it is committed, copied and signed (guard 6.3).

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use policies::audit::EventType;
use policies::canon::Value;
use policies::guard::judge::{self, Drawn};
use policies::guard::{Code, Policy, Problem, Timekeeper, TrustedKey, jwks};
use policies::guard::{Leaf, State, Who};
use policies::model::Millis;
use store::guard::{EpochKeys, Fault, GuardDb, OpenOptions, Stamp};
use tokio::sync::broadcast;

use super::after::{Finish, Sealed};
use super::judge::Desk;
use super::messages::{ActionChanged, Request};
use super::{Clock, Error, ExpectedMap, GuardOptions, files};

/// Who waits for which spend.
pub(super) type Expected = Arc<Mutex<ExpectedMap>>;

/// Requests of one batch (guard 6.3.2).
const BATCH: usize = 128;

/// How long a batch is gathered.
const GATHER: Duration = Duration::from_millis(2);

/// How often deadlines are looked at without a request.
const TICK: Duration = Duration::from_millis(200);

/// How long the anchor may lag behind a commit (guard 9.2.1).
const ANCHOR_LAG: Duration = Duration::from_millis(900);

/// Changes that a slow subscriber may lag behind.
const CHANGES: usize = 1024;

/// What the handle needs of a started writer.
pub(super) struct Started {
    pub(super) requests: Sender<Request>,
    pub(super) changes: broadcast::Sender<ActionChanged>,
    pub(super) expected: Expected,
    pub(super) origin: String,
    pub(super) jwks: String,
    pub(super) trust: String,
}

/// The thread's whole world.
pub(super) struct Writer {
    pub(super) db: GuardDb,
    pub(super) keys: Option<EpochKeys>,
    pub(super) desk: Desk,
    clock: Clock,
    time: Timekeeper,
    boot: String,
    policy_path: PathBuf,
    changes: broadcast::Sender<ActionChanged>,
    anchored: Instant,
    lagging: bool,
}

/// Opens everything on the calling thread, so that a start that fails says so, then lets the
/// writer run.
pub(super) fn start(options: GuardOptions) -> Result<Started, Error> {
    let policy = files::policy(&options.policy_path)?;
    let open = OpenOptions {
        state_dir: options.state_dir,
        anchor_dir: options.anchor_dir,
        site: policy.site().to_owned(),
        kek: options.kek,
    };
    let (db, keys) = GuardDb::open(&open, &mut fill)?;
    let reading = options.now.read();
    let public: Vec<_> = keys.iter().map(|k| *k.cap.verifying_key()).collect();
    let (changes, _) = broadcast::channel(CHANGES);
    let expected = Expected::default();
    let trust = files::trust(db.origin(), &db.epochs()?, &policy);
    let jwks = jwks(&public);
    files::publish(&options.run_dir.join("guard-trust.json"), &trust)?;
    files::publish(&options.run_dir.join("guard-jwks.json"), &jwks)?;
    let mut writer = Writer {
        time: Timekeeper::start(db.high_water(), reading),
        desk: Desk::new(
            policy,
            public.iter().map(|key| TrustedKey::new(*key)).collect(),
            db.hold()?,
            Arc::clone(&expected),
        ),
        db,
        keys,
        clock: options.now,
        boot: boot_id(),
        policy_path: options.policy_path,
        changes: changes.clone(),
        anchored: Instant::now(),
        lagging: false,
    };
    writer.take_up()?;
    let origin = writer.db.origin().to_owned();
    let (requests, inbox) = channel();
    std::thread::Builder::new()
        .name("guard".to_owned())
        .spawn(move || writer.run(&inbox))
        .map_err(Error::Thread)?;
    Ok(Started {
        requests,
        changes,
        expected,
        origin,
        jwks,
        trust,
    })
}

/// Random bytes of the kernel. Without them there are no keys and no salts, so it may not fail
/// quietly.
pub(super) fn fill(bytes: &mut [u8]) {
    assert!(
        getrandom::fill(bytes).is_ok(),
        "the kernel gives random bytes"
    );
}

/// 128 fresh bits.
pub(super) fn draw() -> Drawn {
    let mut bits = [0; 16];
    fill(&mut bits);
    Drawn(bits)
}

/// The kernel's id of this boot; a box without it still has a log.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

impl Writer {
    fn run(mut self, inbox: &Receiver<Request>) {
        loop {
            match inbox.recv_timeout(TICK) {
                Ok(first) => {
                    let requests = gather(first, inbox);
                    self.serve(requests);
                }
                Err(RecvTimeoutError::Timeout) => self.serve(Vec::new()),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.anchor_if_due();
        }
        if self.db.fault().is_none()
            && let Err(error) = self.db.write_anchor()
        {
            tracing::error!(%error, "the anchor could not be written at the end");
        }
    }

    fn anchor_if_due(&mut self) {
        if self.db.fault().is_some() || self.anchored.elapsed() < ANCHOR_LAG {
            return;
        }
        self.anchored = Instant::now();
        if let Err(error) = self.db.write_anchor() {
            self.block(&error);
        }
    }

    /// The guard's time, and whether the wall clock lags enough to be said.
    pub(super) fn now(&mut self) -> (Millis, Millis, bool) {
        let reading = self.clock.read();
        let now = self.time.now(reading);
        let lags = self.time.lags(reading);
        let fresh = lags && !self.lagging;
        self.lagging = lags;
        (now, reading.wall, fresh)
    }

    pub(super) fn is_regressed(&self) -> bool {
        self.time.is_regressed()
    }

    /// What a restart owes: the policy in force as a leaf, and everything spent without an outcome
    /// in doubt (guard 2.4.2, 7.6).
    fn take_up(&mut self) -> Result<(), Error> {
        if self.db.fault().is_some() || self.keys.is_none() {
            return Ok(());
        }
        let (now, wall, _) = self.now();
        let policy = self.desk.policy().clone();
        let changed = self.db.last_policy()?.as_deref() != Some(policy.hash());
        let before = self.db.last_policy()?;
        let stamp = self.stamp(now, wall, before);
        let mut seen = Vec::new();
        let mut random = fill;
        let mut batch = self.db.begin(stamp, &mut random)?;
        load_policy(&mut batch, &policy, changed, &mut seen)?;
        for action in batch.in_state(State::Spent)? {
            if let Some((next, leaf)) = judge::restarted(&action) {
                seen.extend(batch.apply(vec![next], vec![leaf])?.actions);
            }
        }
        let Some(keys) = &self.keys else {
            return Ok(());
        };
        batch.commit(|head| head.sign(&[&keys.log]), true)?;
        self.tell(&seen);
        Ok(())
    }

    fn stamp(&self, now: Millis, wall: Millis, policy: Option<String>) -> Stamp {
        Stamp {
            boot: self.boot.clone(),
            wall,
            now,
            policy,
        }
    }

    fn tell(&self, actions: &[policies::guard::Action]) {
        for action in actions {
            // Nobody listening is no failure.
            let _ = self.changes.send(ActionChanged {
                id: action.id.clone(),
                state: action.state,
            });
        }
    }

    /// Stops all changes. After a failure of the disk nothing is tried again in this process: the
    /// next one checks the whole copy before it serves (guard 8).
    fn block(&mut self, error: &store::guard::Error) {
        if error.is_disk_failure() {
            tracing::error!(
                code = "SN-0216",
                error = error as &dyn std::error::Error,
                "the disk failed under the signed log; the process ends"
            );
            std::process::abort();
        }
        tracing::error!(%error, "the guard stops all changes");
        self.db.block(Fault {
            code: Code::AuditBlocked,
            cause: error.to_string(),
        });
    }

    fn serve(&mut self, requests: Vec<Request>) {
        let (changes, reads): (Vec<Request>, Vec<Request>) =
            requests.into_iter().partition(Request::is_change);
        if let Some(fault) = self.db.fault().cloned() {
            self.desk.count_stopped(changes.len(), fault.code);
            let problem = Problem::new(fault.code, fault.cause);
            changes
                .into_iter()
                .for_each(|request| request.refuse(&problem));
        } else if let Some(reload) = changes.iter().position(Request::is_reload) {
            let mut changes = changes;
            let reload = changes.remove(reload);
            self.batch(changes);
            self.reload(reload);
        } else {
            self.batch(changes);
        }
        for request in reads {
            self.read(request);
        }
    }

    /// One batch: deadlines first, then the requests, then COMMIT, copy, anchor, replies.
    fn batch(&mut self, mut requests: Vec<Request>) {
        requests.sort_by_key(Request::rank);
        let mut waiting = requests.into_iter();
        let (now, wall, lags) = self.now();
        let regressed = self.time.is_regressed();
        let stamp = self.stamp(now, wall, Some(self.desk.policy().hash().to_owned()));
        let mut seen = Vec::new();
        let mut finishes: Vec<Finish> = Vec::new();
        let Some(keys) = &self.keys else { return };
        let anchor_due = self.anchored.elapsed() >= ANCHOR_LAG;
        let mut random = fill;
        let done = (|| {
            let mut batch = self.db.begin(stamp, &mut random)?;
            if lags {
                batch.apply(
                    Vec::new(),
                    vec![Leaf::new(EventType::ClockRegressed, Who::Guard)],
                )?;
            }
            for action in batch.due(now)? {
                if let Some((next, leaf)) = judge::due(now, &action) {
                    seen.extend(batch.apply(vec![next], vec![leaf])?.actions);
                }
            }
            if let Some(leaf) = self.desk.rollup(now) {
                batch.apply(Vec::new(), vec![leaf])?;
            }
            for request in waiting.by_ref() {
                let finish = self
                    .desk
                    .judge(&mut batch, request, now, regressed, &mut seen)?;
                finishes.push(finish);
            }
            batch.commit(|head| head.sign(&[&keys.log]), anchor_due)
        })();
        match done {
            Ok(mut committed) => {
                self.tell(&seen);
                for finish in finishes {
                    finish(Sealed::Done {
                        db: &self.db,
                        keys,
                        committed: &mut committed,
                    });
                }
            }
            Err(error) => {
                let problem = Problem::new(Code::AuditBlocked, error.to_string());
                self.block(&error);
                for finish in finishes {
                    finish(Sealed::Failed(problem.clone()));
                }
                waiting.for_each(|request| request.refuse(&problem));
            }
        }
    }

    fn reload(&mut self, request: Request) {
        let Request::ReloadPolicy { reply } = request else {
            return;
        };
        let answer = match files::policy(&self.policy_path) {
            Ok(policy) => self.change_policy(policy),
            Err(error) => self.reject_policy(&error),
        };
        // A caller that has gone away is no failure.
        let _ = reply.send(answer);
    }

    fn change_policy(&mut self, policy: Policy) -> Result<(), Problem> {
        let changed = policy.hash() != self.desk.policy().hash();
        let result = self.own_batch(|batch, seen| load_policy(batch, &policy, changed, seen));
        result.map(|()| self.desk.set_policy(policy))
    }

    fn reject_policy(&mut self, error: &Error) -> Result<(), Problem> {
        let leaf = Leaf::new(EventType::PolicyRejected, Who::Guard).reason("policy_rejected");
        self.own_batch(|batch, _| batch.apply(Vec::new(), vec![leaf]).map(|_| ()))?;
        let text = match error {
            Error::Policy(problems) => problems.to_string(),
            other => other.to_string(),
        };
        Err(Problem::new(Code::Malformed, text))
    }

    /// A batch of the guard's own.
    pub(super) fn own_batch(
        &mut self,
        fill_in: impl FnOnce(
            &mut store::guard::Batch<'_>,
            &mut Vec<policies::guard::Action>,
        ) -> Result<(), store::guard::Error>,
    ) -> Result<(), Problem> {
        let (now, wall, _) = self.now();
        let stamp = self.stamp(now, wall, Some(self.desk.policy().hash().to_owned()));
        let mut seen = Vec::new();
        let mut random = fill;
        let Some(keys) = &self.keys else {
            return Err(Problem::new(Code::KeyUnavailable, "no key"));
        };
        let done = (|| {
            let mut batch = self.db.begin(stamp, &mut random)?;
            fill_in(&mut batch, &mut seen)?;
            batch
                .commit(|head| head.sign(&[&keys.log]), true)
                .map(|_| ())
        })();
        match done {
            Ok(()) => {
                self.tell(&seen);
                Ok(())
            }
            Err(error) => {
                self.block(&error);
                Err(Problem::new(Code::AuditBlocked, error.to_string()))
            }
        }
    }
}

/// `policy.loaded`, and what a changed policy does to open actions.
fn load_policy(
    batch: &mut store::guard::Batch<'_>,
    policy: &Policy,
    changed: bool,
    seen: &mut Vec<policies::guard::Action>,
) -> Result<(), store::guard::Error> {
    batch.set_policy(policy.hash());
    let leaf =
        Leaf::new(EventType::PolicyLoaded, Who::Guard).data([("changed", Value::Bool(changed))]);
    batch.apply(Vec::new(), vec![leaf])?;
    if !changed {
        return Ok(());
    }
    for state in [State::Pending, State::Approved, State::Issued] {
        for action in batch.in_state(state)? {
            if let Some((next, leaf)) = judge::policy_changed(&action, draw()) {
                seen.extend(batch.apply(vec![next], leaf.into_iter().collect())?.actions);
            }
        }
    }
    Ok(())
}

fn gather(first: Request, inbox: &Receiver<Request>) -> Vec<Request> {
    let end = Instant::now() + GATHER;
    let mut requests = vec![first];
    while requests.len() < BATCH {
        let left = end.saturating_duration_since(Instant::now());
        match inbox.recv_timeout(left) {
            Ok(request) => requests.push(request),
            Err(_) => break,
        }
    }
    requests
}
