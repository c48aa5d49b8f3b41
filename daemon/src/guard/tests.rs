use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Request as HttpRequest;
use policies::audit::verify::{verify_bundle, verify_entry};
use policies::canon::Value;
use policies::guard::{Code, HolderKey, Purpose, Reading, State, TrustedKey, totp, verify};
use policies::model::{Millis, Target};
use tempfile::TempDir;
use tower::ServiceExt;

use super::{
    AgentHandle, Clock, DecisionRequest, DelegateHandle, Error, Export, Guard, GuardOptions,
    HoldRequest, ProposeRequest, ReconcileRequest, Reply,
};

const POLICY: &str = r#"
version = 1
site = "plant-7.example"
limits = { pending_per_requester = 20, proposals_per_requester_per_hour = 200, refused_leaves_per_caller_per_minute = 30, deny_cooldown_h = 24 }
identity = [
  { id = "agent/rca", role = "agent", peer = "internal:conductor", tenants = ["default"] },
  { id = "console", role = "delegate", peer = "internal:console" },
]
person = [
  { id = "alice", subjects = ["local:alice"], groups = ["oncall"] },
  { id = "ben", subjects = ["local:ben"], groups = ["oncall"] },
]
[[action]]
name = "resize"
may_propose = ["agent/rca"]
may_approve = ["group:oncall"]
executors = ["internal:worker"]
approvals = 1
min_assurance = "local"
effect_timeout_s = 120
target = { namespace = { type = "name" }, name = { type = "name" } }
change = { incident = { type = "id" }, to = { type = "int", min = 1, max = 64 } }
"#;

const SECRET: &[u8] = b"12345678901234567890";
const T0: i64 = 1_780_000_000_250;

/// A guard in a scratch folder whose clocks the test turns.
struct Site {
    folder: TempDir,
    wall: Arc<AtomicI64>,
    boot: Arc<AtomicI64>,
}

impl Site {
    fn new() -> Self {
        let site = Self {
            folder: TempDir::new().unwrap(),
            wall: Arc::new(AtomicI64::new(T0)),
            boot: Arc::new(AtomicI64::new(1_000)),
        };
        std::fs::create_dir(site.path("run")).unwrap();
        site.policy(POLICY);
        site
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn policy(&self, text: &str) {
        let path = self.path("policy.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn try_open(&self) -> Result<Guard, Error> {
        let (wall, boot) = (Arc::clone(&self.wall), Arc::clone(&self.boot));
        Guard::open(GuardOptions {
            state_dir: self.path("state"),
            anchor_dir: self.path("anchor"),
            run_dir: self.path("run"),
            policy_path: self.path("policy.toml"),
            kek: [7; 32],
            now: Clock::new(move || Reading {
                wall: Millis(wall.load(Ordering::SeqCst)),
                boot_ms: boot.load(Ordering::SeqCst),
            }),
        })
    }

    async fn open(&self) -> Guard {
        // The thread of a guard that was dropped a moment ago may still hold the database.
        for _ in 0..200 {
            match self.try_open() {
                Ok(guard) => return guard,
                Err(Error::Store(store::guard::Error::Sqlite(_))) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the database stays locked");
    }

    fn advance(&self, ms: i64) {
        self.wall.fetch_add(ms, Ordering::SeqCst);
        self.boot.fetch_add(ms, Ordering::SeqCst);
    }

    fn now(&self) -> i64 {
        self.wall.load(Ordering::SeqCst)
    }

    fn code(&self) -> String {
        totp::code(SECRET, totp::step_at(Millis(self.now()))).unwrap()
    }
}

fn agent() -> AgentHandle {
    AgentHandle::internal("conductor")
}

fn console() -> DelegateHandle {
    DelegateHandle::internal("console")
}

fn resize(to: i64) -> ProposeRequest {
    ProposeRequest {
        action: "resize".to_owned(),
        target: Target {
            namespace: "default".to_owned(),
            name: "checkout".to_owned(),
        },
        change: change(to),
        intent: "the pool is too small".to_owned(),
        initiator: None,
    }
}

fn change(to: i64) -> BTreeMap<String, Value> {
    [
        ("incident".to_owned(), Value::from("inc-42")),
        ("to".to_owned(), Value::Int(to)),
    ]
    .into()
}

async fn decision(site: &Site, guard: &Guard, id: &str) -> DecisionRequest {
    let view = guard.action(id).await.unwrap().unwrap();
    DecisionRequest {
        action_id: id.to_owned(),
        digest: view.digest,
        decision_nonce: view.decision_nonce,
        approver: "local:alice".to_owned(),
        reason: "looks right".to_owned(),
        totp: Some(site.code()),
    }
}

/// Proposes and approves; gives the id of the action.
async fn approved(site: &Site, guard: &Guard, to: i64) -> String {
    guard.enroll_totp("local:alice", SECRET).await.unwrap();
    let id = guard.propose(&agent(), resize(to)).await.unwrap().id;
    let request = decision(site, guard, &id).await;
    let reply = guard.approve(&console(), request).await.unwrap();
    assert_eq!(reply.state, State::Approved);
    id
}

/// A worker of the test: its key, its lease, its channel.
struct Worker {
    guard: Guard,
    key: HolderKey,
    job: String,
    fence: i64,
}

impl Worker {
    async fn new(guard: &Guard, job: &str) -> Self {
        Self {
            guard: guard.clone(),
            key: HolderKey::from_random(&[9; 32]).unwrap(),
            job: job.to_owned(),
            fence: guard.next_fence(job).await.unwrap(),
        }
    }

    async fn post(&self, path: &str, body: String) -> (u16, serde_json::Value) {
        let router = self.guard.channel(&self.job, self.fence).router();
        let request = HttpRequest::post(path).body(Body::from(body)).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn collect(&self, action: &str) -> (u16, serde_json::Value) {
        let proof = self
            .key
            .prove(Purpose::Collect { aid: action }, &self.job, self.fence);
        let body = serde_json::json!({"job": self.job, "fence": self.fence, "holder_proof": proof});
        let path = format!("/v1/actions/{action}/capability");
        self.post(&path, body.to_string()).await
    }

    fn spend_body(&self, token: &str, change: &str) -> String {
        let keys = TrustedKey::from_jwks(self.guard.jwks().as_bytes()).unwrap();
        let jti = verify(token, &keys).unwrap().jti;
        let purpose = Purpose::Spend { jti: &jti, token };
        let proof = self.key.prove(purpose, &self.job, self.fence);
        format!(
            r#"{{"capability":"{token}","action":"resize","target":{{"namespace":"default","name":"checkout"}},"change":{change},"job":"{}","fence":{},"holder_proof":"{proof}","seen":null}}"#,
            self.job, self.fence
        )
    }

    async fn spend(&self, token: &str, to: i64) -> (u16, serde_json::Value) {
        let body = self.spend_body(token, &format!(r#"{{"incident":"inc-42","to":{to}}}"#));
        self.post("/v1/capabilities/spend", body).await
    }

    async fn tell(&self, jti: &str, step: &str, more: &str) -> (u16, serde_json::Value) {
        let body = format!(r#"{{"job":"{}","fence":{}{more}}}"#, self.job, self.fence);
        self.post(&format!("/v1/capabilities/{jti}/{step}"), body)
            .await
    }
}

fn token_of(reply: &serde_json::Value) -> String {
    reply["capability"].as_str().unwrap().to_owned()
}

async fn leaves(guard: &Guard) -> Vec<serde_json::Value> {
    let mut out = Vec::new();
    for index in 0..guard.health().await.unwrap().size {
        let (event, _) = guard.entry(index).await.unwrap();
        out.push(serde_json::from_str(&event).unwrap());
    }
    out
}

fn count(leaves: &[serde_json::Value], kind: &str) -> usize {
    leaves.iter().filter(|leaf| leaf["type"] == kind).count()
}

async fn spent(site: &Site, guard: &Guard, worker: &Worker) -> (String, String) {
    let id = approved(site, guard, 32).await;
    let (_, issued) = worker.collect(&id).await;
    let token = token_of(&issued);
    let (status, receipt) = worker.spend(&token, 32).await;
    assert_eq!(status, 200, "{receipt}");
    (id, receipt["jti"].as_str().unwrap().to_owned())
}

/// guard 1.1, 4.1, 6, 7.2, audit-bundle 3
#[tokio::test]
async fn an_action_goes_from_proposal_to_outcome_and_its_log_verifies() {
    let site = Site::new();
    let guard = site.open().await;
    let id = approved(&site, &guard, 32).await;
    let worker = Worker::new(&guard, "job-1").await;
    let waiting = guard.expect_spend("job-1", worker.fence);
    let (status, issued) = worker.collect(&id).await;
    assert_eq!(status, 200, "{issued}");
    let (status, receipt) = worker.spend(&token_of(&issued), 32).await;
    assert_eq!(status, 200, "{receipt}");
    let released = waiting.await.unwrap();
    assert_eq!(released.aid(), id);
    assert_eq!(released.doc().change(), &change(32));
    let jti = receipt["jti"].as_str().unwrap();
    assert_eq!(worker.tell(jti, "started", "").await.0, 200);
    let ending = r#","outcome":"succeeded","code":"ok","evidence_sha256":null"#;
    assert_eq!(worker.tell(jti, "outcome", ending).await.0, 200);
    let view = guard.action(&id).await.unwrap().unwrap();
    assert_eq!(
        (view.state.as_str(), view.decided_by()),
        ("succeeded", Some("alice".to_owned()))
    );
    let bundle = guard
        .export(Export {
            with_pii: true,
            ..Export::default()
        })
        .await
        .unwrap();
    let verdict = verify_bundle(bundle.as_bytes(), guard.trust().as_bytes(), None);
    assert_eq!(verdict.exit(), 0, "{verdict:?}");
    assert_eq!(
        std::fs::read_to_string(site.path("run/guard-trust.json")).unwrap(),
        guard.trust()
    );
}

/// guard 3.1, 6.2.3: every answer to a change carries the proof of its leaf.
#[tokio::test]
async fn the_proof_in_a_reply_verifies_against_the_trust_file() {
    let site = Site::new();
    let guard = site.open().await;
    let reply = guard.propose(&agent(), resize(32)).await.unwrap();
    let (event, _) = guard.entry(reply.audit_index).await.unwrap();
    let verdict = verify_entry(
        reply.proof.as_bytes(),
        event.as_bytes(),
        guard.trust().as_bytes(),
    );
    assert_eq!(verdict.exit(), 0, "{verdict:?}");
}

/// guard 10 P1, P3, P4, P5, P6, 3.4: refused, state unchanged, one leaf each.
#[tokio::test]
async fn only_the_approved_parameters_in_their_own_spelling_are_spent() {
    let site = Site::new();
    let guard = site.open().await;
    let id = approved(&site, &guard, 32).await;
    let worker = Worker::new(&guard, "job-1").await;
    let (_, issued) = worker.collect(&id).await;
    let token = token_of(&issued);
    for (change, code, status) in [
        (r#"{"incident":"inc-42","to":33}"#, "params_mismatch", 403),
        (
            r#"{"incident":"inc-42","to":32,"force":true}"#,
            "params_invalid",
            422,
        ),
        (r#"{"incident":"inc-42","to":32.0}"#, "params_invalid", 422),
        (r#"{"incident":"inc-42","to":"32"}"#, "params_invalid", 422),
        (r#"{"incident":"inc-42","to":3.2e1}"#, "params_invalid", 422),
        (r#"{"incident":"inc-42","to":32,"to":32}"#, "malformed", 400),
    ] {
        let before = count(&leaves(&guard).await, "spend.refused");
        let body = worker.spend_body(&token, change);
        let (found, reply) = worker.post("/v1/capabilities/spend", body).await;
        assert_eq!(
            (found, reply["code"].as_str()),
            (status, Some(code)),
            "{change}"
        );
        assert_eq!(
            count(&leaves(&guard).await, "spend.refused"),
            before + 1,
            "{change}"
        );
        assert_eq!(guard.action(&id).await.unwrap().unwrap().state, "issued");
    }
    let (status, receipt) = worker.spend(&token, 32).await;
    assert_eq!(status, 200, "{receipt}");
    worker
        .tell(receipt["jti"].as_str().unwrap(), "started", "")
        .await;
    let (status, reply) = worker.spend(&token, 32).await;
    assert_eq!(
        (status, reply["code"].as_str()),
        (409, Some("already_spent"))
    );
    assert!(
        reply["instance"]
            .as_str()
            .unwrap()
            .starts_with("urn:sentinel:audit:plant-7.example/sentinel/1:")
    );
}

/// guard 10 P2
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_sixty_four_racers_with_one_capability_one_wins() {
    let site = Site::new();
    let guard = site.open().await;
    let id = approved(&site, &guard, 32).await;
    let worker = Arc::new(Worker::new(&guard, "job-1").await);
    let waiting = guard.expect_spend("job-1", worker.fence);
    let (_, issued) = worker.collect(&id).await;
    let token = token_of(&issued);
    let racers: Vec<_> = (0..64)
        .map(|_| {
            let (worker, token) = (Arc::clone(&worker), token.clone());
            tokio::spawn(async move { worker.spend(&token, 32).await })
        })
        .collect();
    let mut indices = std::collections::BTreeSet::new();
    for racer in racers {
        let (status, reply) = racer.await.unwrap();
        match status {
            200 => drop(indices.insert(reply["audit_index"].as_u64())),
            _ => assert_eq!(reply["code"], "already_spent"),
        }
    }
    assert_eq!(indices.len(), 1, "all that got a receipt got the same one");
    assert_eq!(count(&leaves(&guard).await, "spend.ok"), 1);
    assert_eq!(waiting.await.unwrap().aid(), id);
    assert!(
        guard
            .expect_spend("job-1", worker.fence)
            .try_recv()
            .is_err()
    );
}

/// guard 7.1, 7.6, 7.7
#[tokio::test]
async fn after_a_restart_a_spent_action_is_in_doubt_and_a_person_closes_it() {
    let site = Site::new();
    let guard = site.open().await;
    let worker = Worker::new(&guard, "job-1").await;
    let (id, jti) = spent(&site, &guard, &worker).await;
    drop((guard, worker));
    let guard = site.open().await;
    assert_eq!(guard.action(&id).await.unwrap().unwrap().state, "in_doubt");
    let worker = Worker {
        guard: guard.clone(),
        key: HolderKey::from_random(&[9; 32]).unwrap(),
        job: "job-1".to_owned(),
        fence: 1,
    };
    let (status, reply) = worker.tell(&jti, "started", "").await;
    assert_eq!((status, reply["code"].as_str()), (409, Some("wrong_state")));
    let refused = guard.propose(&agent(), resize(33)).await.unwrap_err();
    assert_eq!(refused.code, Code::InDoubtOpen);
    site.advance(60_000);
    let request = ReconcileRequest {
        action_id: id.clone(),
        succeeded: true,
        approver: "local:alice".to_owned(),
        reason: "looked at the file".to_owned(),
        evidence_sha256: None,
        totp: Some(site.code()),
    };
    let reply = guard.reconcile(&console(), request).await.unwrap();
    assert_eq!(reply.state, State::ReconciledSucceeded);
    let bundle = guard.export(Export::default()).await.unwrap();
    assert_eq!(
        verify_bundle(bundle.as_bytes(), guard.trust().as_bytes(), None).exit(),
        0
    );
}

/// guard 4.2, 8: what was acknowledged is there after a restart, and waits as it did.
#[tokio::test]
async fn pending_and_approved_actions_survive_a_restart() {
    let site = Site::new();
    let guard = site.open().await;
    let one = approved(&site, &guard, 32).await;
    let mut other = resize(8);
    other.target.name = "payments".to_owned();
    let two = guard.propose(&agent(), other).await.unwrap().id;
    drop(guard);
    let guard = site.open().await;
    assert_eq!(guard.action(&one).await.unwrap().unwrap().state, "approved");
    assert_eq!(guard.action(&two).await.unwrap().unwrap().state, "pending");
    let worker = Worker::new(&guard, "job-1").await;
    assert_eq!(worker.collect(&one).await.0, 200);
    site.advance(601_000);
    let changes = guard.subscribe();
    let reply = worker.collect(&one).await;
    assert_eq!((reply.0, reply.1["code"].as_str()), (410, Some("expired")));
    drop(changes);
    assert_eq!(guard.action(&one).await.unwrap().unwrap().state, "lapsed");
}

/// guard 2.2.2, protocols 6.5.1
#[tokio::test]
async fn a_code_used_at_login_approves_nothing() {
    let site = Site::new();
    let guard = site.open().await;
    guard.enroll_totp("local:alice", SECRET).await.unwrap();
    let id = guard.propose(&agent(), resize(32)).await.unwrap().id;
    guard.check_totp("local:alice", &site.code()).await.unwrap();
    assert!(guard.check_totp("local:alice", &site.code()).await.is_err());
    let request = decision(&site, &guard, &id).await;
    let refused = guard.approve(&console(), request).await.unwrap_err();
    assert_eq!(refused.code, Code::EvidenceInvalid);
    site.advance(30_000);
    let request = decision(&site, &guard, &id).await;
    let reply = guard.approve(&console(), request).await.unwrap();
    let recorded = reply.decision.unwrap();
    assert_eq!(
        (recorded.assurance.as_str(), recorded.via.as_deref()),
        ("local", Some("console"))
    );
    assert!(guard.check_totp("local:alice", &site.code()).await.is_err());
}

/// console 4.2: a delegate that holds a session cannot try codes without end. Logins and decisions
/// share the count, and a restart keeps it.
#[tokio::test]
async fn wrong_codes_delay_the_right_one_at_decisions_and_logins_and_after_a_restart() {
    let site = Site::new();
    let guard = site.open().await;
    guard.enroll_totp("local:alice", SECRET).await.unwrap();
    let id = guard.propose(&agent(), resize(32)).await.unwrap().id;
    let mut wrong = decision(&site, &guard, &id).await;
    wrong.totp = Some("000000".to_owned());
    for _ in 0..4 {
        let refused = guard.approve(&console(), wrong.clone()).await.unwrap_err();
        assert_eq!(refused.code, Code::EvidenceInvalid);
    }
    assert!(guard.check_totp("local:alice", "000000").await.is_err());
    drop(guard);
    let guard = site.open().await;
    let right = decision(&site, &guard, &id).await;
    let refused = guard.approve(&console(), right.clone()).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.retry_after_s),
        (Code::Quota, Some(30))
    );
    let (leaf, _) = guard.entry(refused.audit_index.unwrap()).await.unwrap();
    assert!(leaf.contains(r#""reason":"quota""#), "{leaf}");
    let (lock, _) = guard.entry(refused.audit_index.unwrap() - 1).await.unwrap();
    assert!(
        lock.contains("policy.loaded") || lock.contains("auth.locked"),
        "{lock}"
    );
    assert!(guard.check_totp("local:alice", &site.code()).await.is_err());
    site.advance(30_000);
    let right = decision(&site, &guard, &id).await;
    let reply = guard.approve(&console(), right).await.unwrap();
    assert_eq!(reply.state, State::Approved);
    assert_eq!(guard.codes_locked("local:alice").await.unwrap(), None);
}

/// console 4.7: no number of wrong codes stops a denial, which needs none.
#[tokio::test]
async fn a_denial_without_a_code_is_taken_while_codes_wait() {
    let site = Site::new();
    let guard = site.open().await;
    guard.enroll_totp("local:alice", SECRET).await.unwrap();
    let id = guard.propose(&agent(), resize(32)).await.unwrap().id;
    let mut request = decision(&site, &guard, &id).await;
    request.totp = Some("000000".to_owned());
    for _ in 0..5 {
        guard.deny(&console(), request.clone()).await.unwrap_err();
    }
    let refused = guard.deny(&console(), request.clone()).await.unwrap_err();
    assert_eq!(refused.code, Code::Quota);
    request.totp = None;
    let reply = guard.deny(&console(), request).await.unwrap();
    assert_eq!(reply.state, State::Denied);
}

/// guard 4.7: a hold is kept over a restart, and a code is asked to release it.
#[tokio::test]
async fn a_hold_stops_approvals_until_a_person_releases_it_with_a_code() {
    let site = Site::new();
    let guard = site.open().await;
    guard.enroll_totp("local:alice", SECRET).await.unwrap();
    let id = guard.propose(&agent(), resize(32)).await.unwrap().id;
    let hold = |totp: Option<String>| HoldRequest {
        approver: "local:alice".to_owned(),
        reason: "something is odd".to_owned(),
        totp,
    };
    guard.hold_set(&console(), hold(None)).await.unwrap();
    drop(guard);
    let guard = site.open().await;
    assert_eq!(guard.health().await.unwrap().states[0].state, "on_hold");
    let request = decision(&site, &guard, &id).await;
    let refused = guard.approve(&console(), request).await.unwrap_err();
    assert_eq!(refused.code, Code::OnHold);
    let refused = guard
        .hold_release(&console(), hold(None))
        .await
        .unwrap_err();
    assert_eq!(refused.code, Code::AssuranceTooLow);
    guard
        .hold_release(&console(), hold(Some(site.code())))
        .await
        .unwrap();
    assert!(guard.health().await.unwrap().ok);
}

/// guard 3.4, 10 X7
#[tokio::test]
async fn refusals_beyond_the_limit_of_a_minute_are_counted_in_one_leaf() {
    let site = Site::new();
    let guard = site.open().await;
    for _ in 0..40 {
        let mut bad = resize(32);
        bad.action = "rm".to_owned();
        assert_eq!(
            guard.propose(&agent(), bad).await.unwrap_err().code,
            Code::NotPermitted
        );
    }
    assert_eq!(count(&leaves(&guard).await, "action.refused"), 30);
    site.advance(61_000);
    guard
        .append("incident.opened", r#"{"incident":"inc-42"}"#)
        .await
        .unwrap();
    let leaves = leaves(&guard).await;
    let rollup = leaves
        .iter()
        .find(|leaf| leaf["type"] == "refused.rollup")
        .unwrap();
    assert_eq!(rollup["data"]["counts"]["not_permitted"], 10);
}

/// guard 6.1.2: the rest of core appends its own types, with ids and numbers only.
#[tokio::test]
async fn core_appends_its_own_types_and_no_other() {
    let site = Site::new();
    let guard = site.open().await;
    let index = guard
        .append("incident.closed", r#"{"incident":"inc-42","seconds":31}"#)
        .await
        .unwrap();
    let (event, _) = guard.entry(index).await.unwrap();
    assert!(event.contains(r#""data":{"incident":"inc-42","seconds":31}"#));
    for (kind, body) in [
        ("spend.ok", "{}"),
        ("nonsense", "{}"),
        ("incident.closed", "[]"),
        ("incident.closed", r#"{"x":1.5}"#),
    ] {
        assert_eq!(
            guard.append(kind, body).await.unwrap_err().code,
            Code::Malformed,
            "{kind} {body}"
        );
    }
}

/// guard 2.4.2, 10 H7
#[tokio::test]
async fn a_changed_policy_revokes_what_was_approved_and_an_invalid_one_changes_nothing() {
    let site = Site::new();
    let guard = site.open().await;
    let id = approved(&site, &guard, 32).await;
    site.policy("nonsense");
    assert_eq!(
        guard.reload_policy().await.unwrap_err().code,
        Code::Malformed
    );
    assert_eq!(guard.action(&id).await.unwrap().unwrap().state, "approved");
    site.policy(&POLICY.replace("max = 64", "max = 65"));
    guard.reload_policy().await.unwrap();
    assert_eq!(guard.action(&id).await.unwrap().unwrap().state, "revoked");
    let bundle = guard.export(Export::default()).await.unwrap();
    assert_eq!(
        verify_bundle(bundle.as_bytes(), guard.trust().as_bytes(), None).exit(),
        0
    );
}

/// guard 2.4.1, operations 1.8
#[tokio::test]
async fn a_policy_that_others_may_write_is_not_taken() {
    let site = Site::new();
    std::fs::set_permissions(
        site.path("policy.toml"),
        std::fs::Permissions::from_mode(0o622),
    )
    .unwrap();
    assert!(matches!(site.try_open(), Err(Error::PolicyOwner { .. })));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// guard 9.2.2, 10 L2, L6
#[tokio::test]
async fn yesterdays_state_folder_is_found_by_the_anchor_and_nothing_is_spent() {
    let site = Site::new();
    let guard = site.open().await;
    let id = approved(&site, &guard, 32).await;
    drop(guard);
    drop(site.open().await);
    tokio::time::sleep(Duration::from_millis(400)).await;
    copy(&site.path("state"), &site.path("backup"));
    let guard = site.open().await;
    let worker = Worker::new(&guard, "job-1").await;
    let (_, issued) = worker.collect(&id).await;
    assert_eq!(worker.spend(&token_of(&issued), 32).await.0, 200);
    drop((guard, worker));
    tokio::time::sleep(Duration::from_millis(400)).await;
    std::fs::remove_dir_all(site.path("state")).unwrap();
    copy(&site.path("backup"), &site.path("state"));
    let guard = site.open().await;
    assert_eq!(guard.health().await.unwrap().states[0].state, "rolled_back");
    let worker = Worker {
        guard: guard.clone(),
        key: HolderKey::from_random(&[9; 32]).unwrap(),
        job: "job-1".to_owned(),
        fence: 1,
    };
    let (status, reply) = worker.spend(&token_of(&issued), 32).await;
    assert_eq!((status, reply["code"].as_str()), (503, Some("rolled_back")));
    assert_eq!(guard.action(&id).await.unwrap().unwrap().state, "approved");
}

/// guard 6.3.4, 8
#[tokio::test]
async fn a_second_copy_that_was_replaced_blocks_before_anything_is_judged() {
    let site = Site::new();
    let guard = site.open().await;
    let tail = site.path("state/audit/1/tail");
    std::fs::copy(&tail, site.path("tail")).unwrap();
    std::fs::remove_file(&tail).unwrap();
    std::fs::copy(site.path("tail"), &tail).unwrap();
    let refused = guard.propose(&agent(), resize(32)).await.unwrap_err();
    assert_eq!(refused.code, Code::AuditBlocked);
    assert!(refused.detail.contains("tail"), "{}", refused.detail);
    assert!(guard.actions(None).await.unwrap().is_empty());
}

/// guard 6.4.1, 8
#[tokio::test]
async fn without_the_key_encryption_key_nothing_is_signed_and_everything_is_readable() {
    let site = Site::new();
    let guard = site.open().await;
    let id = guard.propose(&agent(), resize(32)).await.unwrap().id;
    drop(guard);
    drop(site.open().await);
    let path = site.path("state/epoch.key");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let guard = site.open().await;
    assert_eq!(
        guard.health().await.unwrap().states[0].state,
        "key_unavailable"
    );
    let refused = guard.propose(&agent(), resize(33)).await.unwrap_err();
    assert_eq!(refused.code, Code::KeyUnavailable);
    assert!(guard.action(&id).await.unwrap().is_some());
}

/// guard 9.1, 10 C1
#[tokio::test]
async fn a_clock_that_is_set_back_makes_nothing_last_longer() {
    let site = Site::new();
    let guard = site.open().await;
    let id = approved(&site, &guard, 32).await;
    let worker = Worker::new(&guard, "job-1").await;
    let (_, issued) = worker.collect(&id).await;
    site.wall.fetch_sub(3_600_000, Ordering::SeqCst);
    site.boot.fetch_add(601_000, Ordering::SeqCst);
    let (status, reply) = worker.spend(&token_of(&issued), 32).await;
    assert_eq!((status, reply["code"].as_str()), (410, Some("expired")));
    assert!(count(&leaves(&guard).await, "clock.regressed") >= 1);
}

/// guard 1.6, 6.6.1, 10 X2: neither capability nor code nor free text of people is in a leaf, and
/// the capability is in no file at all.
#[tokio::test]
async fn a_capability_is_in_no_file_and_a_reason_in_no_leaf() {
    let site = Site::new();
    let guard = site.open().await;
    let worker = Worker::new(&guard, "job-1").await;
    let id = approved(&site, &guard, 32).await;
    let (_, issued) = worker.collect(&id).await;
    let token = token_of(&issued);
    assert_eq!(worker.spend(&token, 32).await.0, 200);
    let signature = token.rsplit('.').next().unwrap();
    let mut folders = vec![site.folder.path().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let bytes = std::fs::read(&path).unwrap();
            let hit = bytes
                .windows(signature.len())
                .any(|w| w == signature.as_bytes());
            assert!(!hit, "{} holds a capability", path.display());
        }
    }
    assert!(files >= 6, "{files} files were looked at");
    let text = serde_json::to_string(&leaves(&guard).await).unwrap();
    assert!(
        !text.contains("looks right") && !text.contains("too small") && !text.contains("alice")
    );
}

/// guard 4.4: the retry of a lost answer gets what is recorded.
#[tokio::test]
async fn a_decision_sent_twice_is_recorded_once() {
    let site = Site::new();
    let guard = site.open().await;
    guard.enroll_totp("local:alice", SECRET).await.unwrap();
    let id = guard.propose(&agent(), resize(32)).await.unwrap().id;
    let request = decision(&site, &guard, &id).await;
    let first: Reply = guard.approve(&console(), request.clone()).await.unwrap();
    let again = guard.approve(&console(), request).await.unwrap();
    assert_eq!(
        (again.audit_index, again.decision),
        (first.audit_index, first.decision)
    );
    assert_eq!(count(&leaves(&guard).await, "decision.approved"), 1);
}
