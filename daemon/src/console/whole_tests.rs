//! The console over the real store and the real guard: a person reads, decides and is on record.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::body::Body;
use policies::canon::Value;
use policies::guard::{Policy, Reading, totp};
use policies::model::Target;
use store::logins::Logins;
use store::sentinel::Db;
use tower::ServiceExt;

use super::reach::Reach;
use super::records::Records;
use super::tests::{Cookies, PASSWORD, body, field_of, get, location, post, token_of};
use super::*;
use crate::executors::ExecutorSpec;
use crate::guard::{AgentHandle, Clock, DelegateHandle, Guard, GuardOptions, ProposeRequest};
use crate::identity::{Enrolled, Role};
use crate::jobs::{Scheduler, SchedulerOptions, WorkerExe};

const POLICY: &str = r#"
version = 1
site = "plant-7.example"
limits = { pending_per_requester = 20, proposals_per_requester_per_hour = 60, refused_leaves_per_caller_per_minute = 30, deny_cooldown_h = 24 }
identity = [
  { id = "agent/rca", role = "agent", peer = "internal:conductor", tenants = ["default"] },
  { id = "console", role = "delegate", peer = "internal:console" },
]
person = [
  { id = "alice", subjects = ["local:alice"], groups = ["oncall"] },
  { id = "ben", subjects = ["local:ben"], groups = [] },
]
[[action]]
name = "rollback"
may_propose = ["agent/rca"]
may_approve = ["group:oncall"]
executors = ["internal:worker"]
approvals = 1
min_assurance = "local"
effect_timeout_s = 120
target = { namespace = { type = "name" }, name = { type = "name" } }
change = { incident = { type = "id" }, deploy = { type = "id" }, from = { type = "id" }, to = { type = "id" } }
"#;

const CONFIG: &str = r#"
[sources.topology]
kind = "topology"
edges = ["web->checkout"]
[executors.rollback-checkout]
kind = "symlink"
action = "rollback"
target = "checkout"
link = "/nowhere/current"
releases = "/nowhere/releases"
probe = { service = "checkout", metric = "requests", label = "code", bad_prefix = "5", max_ratio = 0.02, window = "5s" }
"#;

/// The site of the configuration, on a box where no worker starts.
fn reach() -> Reach {
    let loaded = crate::config::load_text("sentinel.toml", CONFIG);
    let config = loaded
        .config
        .unwrap_or_else(|| panic!("{:?}", loaded.problems));
    let executors = config.executors.iter();
    let scheduler = Scheduler::new(SchedulerOptions {
        exe: WorkerExe {
            path: "/nowhere/sentinel".into(),
            args: Vec::new(),
        },
        clock: Arc::new(|| Millis(0)),
        sources: BTreeMap::new(),
        executors: executors
            .map(|(name, e)| (name.clone(), ExecutorSpec::configured(name, e)))
            .collect(),
        observer: Arc::new(|_| {}),
    });
    Reach::new(&config, Policy::parse(POLICY).unwrap(), scheduler.unwrap())
}

/// A box with its own clock, which only moves when told.
struct Whole {
    router: Router,
    guard: Guard,
    identity: Identity,
    time: Arc<AtomicI64>,
    _folder: tempfile::TempDir,
}

impl Whole {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["state", "anchor", "run"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::write(at("policy.toml"), POLICY).unwrap();
        let time = Arc::new(AtomicI64::new(1_780_000_000_000));
        let clock = Arc::clone(&time);
        let guard = Guard::open(GuardOptions {
            state_dir: at("state"),
            anchor_dir: at("anchor"),
            run_dir: at("run"),
            policy_path: at("policy.toml"),
            kek: [9; 32],
            now: Clock::new(move || Reading {
                wall: Millis(clock.load(Ordering::SeqCst)),
                boot_ms: clock.load(Ordering::SeqCst) - 1_779_000_000_000,
            }),
        })
        .unwrap();
        let db = Arc::new(Db::open(&at("sentinel.db")).unwrap());
        let logins = Logins::open(&at("sentinel.db")).unwrap();
        let identity =
            Identity::new(logins, Arc::new(guard.clone()), "plant-7".to_owned()).unwrap();
        let via = DelegateHandle::internal("console");
        let backend = Records::new(db, guard.clone(), via, reach(), || {
            "none: rules only".to_owned()
        });
        let clock = Arc::clone(&time);
        let now = move || Millis(clock.load(Ordering::SeqCst));
        let router = router(ConsoleOptions {
            backend: Arc::new(backend),
            identity: identity.clone(),
            bus: Bus::new(now.clone()),
            site: "plant-7".to_owned(),
            names: vec!["127.0.0.1".to_owned()],
            tls: false,
            now: Arc::new(now),
            form_key: FormKey::generate().unwrap(),
        });
        Self {
            router,
            guard,
            identity,
            time,
            _folder: folder,
        }
    }

    fn now(&self) -> Millis {
        Millis(self.time.load(Ordering::SeqCst))
    }

    async fn add(&self, name: &str) -> Vec<u8> {
        let made = self
            .identity
            .create_user(name, PASSWORD, &[Role::Approver], self.now());
        let Enrolled { totp_secret, .. } = made.await.unwrap();
        data_encoding::BASE32_NOPAD
            .decode(totp_secret.as_bytes())
            .unwrap()
    }

    /// The code of the next step: the clock moves on, so that no code is used twice.
    fn code(&self, secret: &[u8]) -> String {
        self.time.fetch_add(30_000, Ordering::SeqCst);
        totp::code(secret, totp::step_at(self.now())).unwrap()
    }

    async fn propose(&self, to: &str) -> String {
        let text = |text: &str| Value::Text(text.to_owned());
        let request = ProposeRequest {
            action: "rollback".to_owned(),
            target: Target {
                namespace: "default".to_owned(),
                name: "checkout".to_owned(),
            },
            change: BTreeMap::from([
                ("incident".to_owned(), text("inc_aaaaaaaaaaaaaaaa")),
                ("deploy".to_owned(), text("d-118")),
                ("from".to_owned(), text("1.8.0")),
                ("to".to_owned(), text(to)),
            ]),
            intent: "Put the release before back. <b>now</b>".to_owned(),
            initiator: None,
        };
        let agent = AgentHandle::internal("conductor");
        self.guard.propose(&agent, request).await.unwrap().id
    }

    async fn page(&self, path: &str, cookies: &mut Cookies) -> String {
        let request = get(path, cookies).body(Body::empty()).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        cookies.take(&response);
        body(response).await
    }

    /// Sends a form and reads the page that it leads to.
    async fn send(&self, path: &str, cookies: &mut Cookies, form: &str) -> String {
        let request = post(path, cookies).body(Body::from(form.to_owned()));
        let response = self.router.clone().oneshot(request.unwrap()).await.unwrap();
        cookies.take(&response);
        let next = location(&response).to_owned();
        self.page(&next, cookies).await
    }

    async fn log_in(&self, name: &str, secret: &[u8]) -> Cookies {
        let mut cookies = Cookies::default();
        let html = self.page("/login", &mut cookies).await;
        let form = format!(
            "form={}&name={name}&password=correct+horse+battery&totp={}",
            token_of(&html, "/login"),
            self.code(secret)
        );
        let inbox = self.send("/login", &mut cookies, &form).await;
        assert!(inbox.contains("No open incidents."));
        cookies
    }

    async fn decide(&self, cookies: &mut Cookies, path: &str, rest: &str) -> String {
        let action = path.rsplit_once('/').unwrap().0.to_owned();
        let html = self.page(&action, cookies).await;
        let form = format!(
            "form={}&digest={}&decision_nonce={}&{rest}",
            token_of(&html, path),
            field_of(&html, "digest"),
            field_of(&html, "decision_nonce"),
        );
        self.send(path, cookies, &form).await
    }
}

#[tokio::test]
async fn an_approval_through_the_forms_is_on_record_at_the_guard() {
    let whole = Whole::new();
    let secret = whole.add("alice").await;
    let mut cookies = whole.log_in("alice", &secret).await;
    let id = whole.propose("1.7.2").await;
    let list = whole.page("/approvals", &mut cookies).await;
    assert!(list.contains("Roll back checkout from 1.8.0 to 1.7.2"));
    let approve = format!("/approvals/{id}/approve");

    // The code of the login is used up: nothing is recorded.
    let used = totp::code(&secret, totp::step_at(whole.now())).unwrap();
    let rest = format!("target=checkout&reason=&totp={used}");
    let page = whole.decide(&mut cookies, &approve, &rest).await;
    assert!(page.contains("No decision of yours was recorded by this."));
    assert!(page.contains("evidence_invalid"));

    let rest = format!("target=checkout&reason=fits&totp={}", whole.code(&secret));
    let page = whole.decide(&mut cookies, &approve, &rest).await;
    assert!(page.contains("Approval recorded"), "{page}");
    assert!(
        page.contains("approved by alice (local, via console)."),
        "{page}"
    );
    let view = whole.guard.action(&id).await.unwrap().unwrap();
    assert_eq!(view.state, "approved");
    assert_eq!(view.approvals.by[0].person, "alice");
    assert_eq!(view.approvals.by[0].assurance, "local");
    let page = whole.page(&format!("/actions/{id}"), &mut cookies).await;
    assert!(page.contains("Approved; not started."));

    let revoke = format!("/approvals/{id}/revoke");
    let form = format!("form={}&reason=wrong+release", token_of(&page, &revoke));
    let page = whole.send(&revoke, &mut cookies, &form).await;
    assert!(
        page.contains("What you said is on record. Audit entry")
            && page.contains("The approval was taken back before it was used."),
        "{page}"
    );
    let view = whole.guard.action(&id).await.unwrap().unwrap();
    assert_eq!(view.state, "revoked");
}

#[tokio::test]
async fn an_approval_shows_what_the_configuration_and_the_policy_say_around_it() {
    let whole = Whole::new();
    let secret = whole.add("alice").await;
    let mut cookies = whole.log_in("alice", &secret).await;
    let id = whole.propose("1.7.2").await;
    let page = whole.page(&format!("/approvals/{id}"), &mut cookies).await;
    for words in [
        "rollback-checkout, which moves the link /nowhere/current",
        "120 s from its start",
        "Called, directly or through others, by web.",
        "no_worker",
        "Approve exactly this",
    ] {
        assert!(page.contains(words), "{words} in {page}");
    }
}

#[tokio::test]
async fn a_denial_needs_no_code_and_is_final() {
    let whole = Whole::new();
    let secret = whole.add("alice").await;
    let mut cookies = whole.log_in("alice", &secret).await;
    let id = whole.propose("1.7.2").await;
    let deny = format!("/approvals/{id}/deny");
    let page = whole.decide(&mut cookies, &deny, "reason=too+early").await;
    assert!(page.contains("Denial recorded"), "{page}");
    assert!(page.contains("denied by alice."), "{page}");
    assert!(!page.contains("name=\"totp\""), "a form is offered again");
    let view = whole.guard.action(&id).await.unwrap().unwrap();
    assert_eq!(view.state, "denied");
}

#[tokio::test]
async fn a_person_whom_the_policy_does_not_let_decide_is_refused_by_the_guard() {
    let whole = Whole::new();
    let secret = whole.add("ben").await;
    let mut cookies = whole.log_in("ben", &secret).await;
    let id = whole.propose("1.7.2").await;
    let approve = format!("/approvals/{id}/approve");
    let rest = format!("target=checkout&reason=&totp={}", whole.code(&secret));
    let page = whole.decide(&mut cookies, &approve, &rest).await;
    assert!(
        page.contains("The policy does not let you decide this"),
        "{page}"
    );
    let view = whole.guard.action(&id).await.unwrap().unwrap();
    assert_eq!((view.state.as_str(), view.approvals.have), ("pending", 0));
}
