//! What the tests of workers share. Each of them uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sentinel_daemon::executors::ExecutorSpec;
use sentinel_daemon::jobs::{Scheduler, SchedulerOptions, WorkerExe};
use sentinel_daemon::tools::SourceSpec;

/// A scheduler whose workers are real processes.
pub(crate) fn scheduler(
    sources: BTreeMap<String, SourceSpec>,
    executors: BTreeMap<String, ExecutorSpec>,
) -> Scheduler {
    Scheduler::new(SchedulerOptions {
        exe: WorkerExe {
            path: env!("CARGO_BIN_EXE_sentinel-worker-under-test").into(),
            args: vec!["worker".to_owned()],
        },
        clock: Arc::new(now),
        sources,
        executors,
        observer: Arc::new(|_| ()),
    })
    .unwrap()
}

/// Tests that count processes take turns where they share one process.
pub(crate) static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Wall time.
pub(crate) fn now() -> policies::model::Millis {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    policies::model::Millis(i64::try_from(since.as_millis()).unwrap())
}

/// Numbers of the worker processes that this test process has now.
pub(crate) fn workers() -> Vec<u32> {
    let own = std::process::id();
    let mut out = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|text| text.parse::<u32>().ok()) else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let rest = stat.rsplit(") ").next().unwrap_or_default();
        let mut fields = rest.split(' ');
        let (state, parent) = (fields.next(), fields.next());
        if stat.contains("(sentinel-worker")
            && state != Some("Z")
            && parent == Some(&own.to_string())
        {
            out.push(pid);
        }
    }
    out
}

/// Waits until `done` holds, at most `limit`.
pub(crate) fn eventually(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    done()
}
