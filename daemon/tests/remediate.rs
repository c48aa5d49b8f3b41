//! One change through the real guard, a real worker and a real target (guard 7).
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use policies::canon::Value;
use policies::guard::State;
use policies::model::{RemediationClass, Target};
use sentinel_daemon::executors::{ExecutorKind, ExecutorSpec};
use sentinel_daemon::guard::{
    ActionView, AgentHandle, Clock, DecisionRequest, DelegateHandle, Guard, GuardOptions,
    ProposeRequest,
};
use sentinel_daemon::jobs::Scheduler;
use support::{TURN, eventually, scheduler, workers};

const POLICY: &str = r#"
version = 1
site = "plant-7.example"
limits = { pending_per_requester = 20, proposals_per_requester_per_hour = 60, refused_leaves_per_caller_per_minute = 30, deny_cooldown_h = 24 }
identity = [
  { id = "agent/rca", role = "agent", peer = "internal:conductor", tenants = ["default"] },
  { id = "console", role = "delegate", peer = "internal:console" },
]
person = [{ id = "alice", subjects = ["local:alice"], groups = ["oncall"] }]
[[action]]
name = "rollback"
may_propose = ["agent/rca"]
may_approve = ["group:oncall"]
executors = ["internal:worker"]
approvals = 1
must_include = []
min_assurance = "delegated"
pending_ttl_h = 72
approval_ttl_s = 600
effect_timeout_s = 120
target = { namespace = { type = "name" }, name = { type = "name" } }
change = { incident = { type = "id" }, deploy = { type = "id" }, from = { type = "id" }, to = { type = "id" } }
[[action]]
name = "resize"
may_propose = ["agent/rca"]
may_approve = ["group:oncall"]
executors = ["internal:worker"]
approvals = 1
must_include = []
min_assurance = "delegated"
pending_ttl_h = 72
approval_ttl_s = 600
effect_timeout_s = 120
target = { namespace = { type = "name" }, name = { type = "name" } }
change = { incident = { type = "id" }, key = { type = "enum", values = ["pool_size"] }, from = { type = "int", min = 1, max = 16 }, to = { type = "int", min = 1, max = 16 } }
[[action]]
name = "restart"
may_propose = ["agent/rca"]
may_approve = ["group:oncall"]
executors = ["internal:worker"]
approvals = 1
must_include = []
min_assurance = "delegated"
pending_ttl_h = 72
approval_ttl_s = 600
effect_timeout_s = 120
target = { namespace = { type = "name" }, name = { type = "name" } }
change = { incident = { type = "id" } }
"#;

struct Site {
    root: tempfile::TempDir,
    guard: Guard,
    scheduler: Scheduler,
}

impl Site {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in [
            "releases/1.0",
            "releases/1.1",
            "releases/1.2",
            "state",
            "anchor",
            "run",
        ] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        symlink("releases/1.1", root.path().join("current")).unwrap();
        let policy = root.path().join("policy.toml");
        std::fs::write(&policy, POLICY).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&policy, mode).unwrap();
        let guard = Guard::open(GuardOptions {
            state_dir: root.path().join("state"),
            anchor_dir: root.path().join("anchor"),
            run_dir: root.path().join("run"),
            policy_path: policy,
            kek: [7; 32],
            now: Clock::system(),
        })
        .unwrap();
        let file = |name: &str| root.path().join(name);
        std::fs::write(file("config.toml"), "pool_size = 4 # per instance\n").unwrap();
        let executor = |action, kind| ExecutorSpec {
            name: format!("{action}"),
            action,
            service: "checkout".into(),
            kind,
        };
        let executors = [
            executor(
                RemediationClass::Rollback,
                ExecutorKind::Symlink {
                    link: file("current"),
                    releases: file("releases"),
                },
            ),
            executor(
                RemediationClass::Resize,
                ExecutorKind::Value {
                    file: file("config.toml"),
                    key: "pool_size".into(),
                    min: 1,
                    max: 16,
                },
            ),
            executor(
                RemediationClass::Restart,
                ExecutorKind::Trigger {
                    file: file("restart"),
                },
            ),
        ];
        let executors = executors.map(|executor| (executor.name.clone(), executor));
        let executors = BTreeMap::from(executors);
        Self {
            guard,
            scheduler: scheduler(BTreeMap::new(), executors),
            root,
        }
    }

    async fn approved(&self, from: &str, to: &str) -> ActionView {
        let text = |text: &str| Value::Text(text.to_owned());
        let change = [
            ("deploy", text("d-2")),
            ("from", text(from)),
            ("to", text(to)),
        ];
        self.approve("rollback", &change).await
    }

    async fn approve(&self, action: &str, change: &[(&str, Value)]) -> ActionView {
        let mut change: BTreeMap<String, Value> = change
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect();
        let incident = Value::Text("inc_aaaaaaaaaaaaaaaa".to_owned());
        change.insert("incident".to_owned(), incident);
        let request = ProposeRequest {
            action: action.to_owned(),
            target: Target {
                namespace: "default".into(),
                name: "checkout".into(),
            },
            change,
            intent: "go back".into(),
            initiator: None,
        };
        let agent = AgentHandle::internal("conductor");
        let proposed = self.guard.propose(&agent, request).await.unwrap();
        let pending = self.action(&proposed.id).await;
        let decision = DecisionRequest {
            action_id: pending.id.clone(),
            digest: pending.digest.clone(),
            decision_nonce: pending.decision_nonce.clone(),
            approver: "local:alice".into(),
            reason: "yes".into(),
            totp: None,
        };
        let console = DelegateHandle::internal("console");
        let approved = self.guard.approve(&console, decision).await.unwrap();
        assert_eq!(approved.state, State::Approved);
        self.action(&proposed.id).await
    }

    async fn action(&self, id: &str) -> ActionView {
        self.guard.action(id).await.unwrap().unwrap()
    }

    fn shows(&self) -> PathBuf {
        std::fs::read_link(self.root.path().join("current")).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_rollback_runs_once_and_leaves_its_outcome_at_the_guard() {
    let _turn = TURN.lock().await;
    let site = Site::new();
    let action = site.approved("1.1", "1.0").await;
    let outcome = site
        .scheduler
        .remediate(&site.guard, &action, "rollback")
        .await;
    assert_eq!(
        (outcome.outcome.as_str(), outcome.code.as_str()),
        ("succeeded", "done"),
        "{outcome:?}"
    );
    assert_eq!(site.shows(), Path::new("releases/1.0"));
    let after = site.action(&action.id).await;
    assert_eq!(after.state, "succeeded");
    assert!(after.started.is_some() && after.jti.is_some());
    // The link is moved back by hand; a second run of the same action must not touch it.
    std::fs::remove_file(site.root.path().join("current")).unwrap();
    symlink("releases/1.1", site.root.path().join("current")).unwrap();
    let again = site
        .scheduler
        .remediate(&site.guard, &action, "rollback")
        .await;
    assert_eq!(
        (again.outcome.as_str(), again.code.as_str()),
        ("failed", "wrong_state")
    );
    assert_eq!(site.shows(), Path::new("releases/1.1"));
    assert!(eventually(Duration::from_secs(2), || workers().is_empty()));
}

/// protocols.md 10.1: the kinds `value` and `trigger`, inside the sandbox of a real worker.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_resized_and_a_restart_file_is_written() {
    let _turn = TURN.lock().await;
    let site = Site::new();
    let change = [
        ("key", Value::Text("pool_size".to_owned())),
        ("from", Value::Int(4)),
        ("to", Value::Int(8)),
    ];
    let action = site.approve("resize", &change).await;
    let outcome = site
        .scheduler
        .remediate(&site.guard, &action, "resize")
        .await;
    assert_eq!(outcome.outcome, "succeeded", "{outcome:?}");
    let config = std::fs::read_to_string(site.root.path().join("config.toml")).unwrap();
    assert_eq!(config, "pool_size = 8 # per instance\n");

    let action = site.approve("restart", &[]).await;
    let outcome = site
        .scheduler
        .remediate(&site.guard, &action, "restart")
        .await;
    assert_eq!(outcome.outcome, "succeeded", "{outcome:?}");
    let restart = std::fs::read_to_string(site.root.path().join("restart")).unwrap();
    assert_eq!(
        Some(restart.trim_end()),
        site.action(&action.id).await.jti.as_deref()
    );
}

/// protocols.md 10.1.1
#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_has_changed_since_ends_as_failed_without_an_effect() {
    let _turn = TURN.lock().await;
    let site = Site::new();
    let action = site.approved("1.2", "1.0").await;
    let outcome = site
        .scheduler
        .remediate(&site.guard, &action, "rollback")
        .await;
    assert_eq!(
        (outcome.outcome.as_str(), outcome.code.as_str()),
        ("failed", "changed_since")
    );
    assert_eq!(site.shows(), Path::new("releases/1.1"));
    assert_eq!(site.action(&action.id).await.state, "failed");
}

/// guard 7.6: what core says of a killed worker never contradicts the guard's record.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_after_its_spend_has_never_failed_for_want_of_one() {
    let _turn = TURN.lock().await;
    let mut lost = 0;
    for _ in 0..12 {
        let site = Site::new();
        let action = site.approved("1.1", "1.0").await;
        let (guard, id) = (site.guard.clone(), action.id.clone());
        let killer = tokio::spawn(async move {
            loop {
                let state = guard.action(&id).await.unwrap().unwrap().state;
                match state.as_str() {
                    "approved" | "issued" => {}
                    "spent" => break,
                    _ => return,
                }
            }
            for pid in workers() {
                let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        });
        let run = site.scheduler.remediate(&site.guard, &action, "rollback");
        let outcome = run.await;
        killer.await.unwrap();
        if outcome.code == "worker_lost" {
            lost += 1;
            assert_eq!(outcome.outcome, "unknown", "{outcome:?}");
        } else {
            let state = site.action(&action.id).await.state;
            assert_eq!(outcome.outcome, state, "{outcome:?}");
        }
    }
    assert!(lost > 0, "no worker was killed in time");
}

/// guard 5.3 rule 6: the worker compares with its own arguments, before it spends.
#[tokio::test(flavor = "multi_thread")]
async fn parameters_that_differ_from_the_approved_ones_are_never_spent() {
    let _turn = TURN.lock().await;
    let site = Site::new();
    let mut action = site.approved("1.1", "1.0").await;
    action.change["to"] = "1.2".into();
    let outcome = site
        .scheduler
        .remediate(&site.guard, &action, "rollback")
        .await;
    assert_eq!(
        (outcome.outcome.as_str(), outcome.code.as_str()),
        ("failed", "params_mismatch")
    );
    assert_eq!(site.shows(), Path::new("releases/1.1"));
    assert_eq!(site.action(&action.id).await.state, "issued");
}

/// guard 7.3
#[tokio::test(flavor = "multi_thread")]
async fn a_lower_fence_is_refused_and_changes_nothing() {
    let _turn = TURN.lock().await;
    let site = Site::new();
    let action = site.approved("1.1", "1.0").await;
    let job = Scheduler::job_of(&action);
    let low = site.guard.next_fence(&job).await.unwrap();
    let high = site.guard.next_fence(&job).await.unwrap();
    assert!(low < high);
    let run = |fence| {
        site.scheduler
            .remediate_with_fence(&site.guard, &action, "rollback", fence)
    };
    let stale = run(low).await;
    assert_eq!(
        (stale.outcome.as_str(), stale.code.as_str()),
        ("failed", "stale_fence")
    );
    assert_eq!(site.shows(), Path::new("releases/1.1"));
    assert_eq!(run(high).await.outcome, "succeeded");
    assert_eq!(site.shows(), Path::new("releases/1.0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_of_one_action_at_a_time_change_the_target_once() {
    let _turn = TURN.lock().await;
    let site = Site::new();
    let action = site.approved("1.1", "1.0").await;
    let run = || site.scheduler.remediate(&site.guard, &action, "rollback");
    let (one, two) = tokio::join!(run(), run());
    let succeeded = [&one, &two]
        .iter()
        .filter(|o| o.outcome == "succeeded")
        .count();
    assert!(succeeded <= 1, "{one:?} {two:?}");
    let moved = site.shows() == Path::new("releases/1.0");
    let unknown = [&one, &two].iter().any(|o| o.outcome == "unknown");
    assert!(moved == (succeeded == 1) || unknown, "{one:?} {two:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_of_another_action_or_target_is_refused_before_a_worker_starts() {
    let _turn = TURN.lock().await;
    let site = Site::new();
    let mut action = site.approved("1.1", "1.0").await;
    let missing = site
        .scheduler
        .remediate(&site.guard, &action, "reboot")
        .await;
    assert_eq!(missing.code, "unknown_executor");
    action.target.name = "payments".into();
    let other = site
        .scheduler
        .remediate(&site.guard, &action, "rollback")
        .await;
    assert_eq!(other.code, "unknown_executor");
    assert_eq!(site.action(&action.id).await.state, "approved");
}
