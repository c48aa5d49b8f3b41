//! A scratch site around the shop, and the daemon on it: started, killed, asked and approved as an
//! operator would.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use policies::guard::totp;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::files::{self, PEOPLE, TOKEN, Wishes};
use super::http::{self, Answer, Ask};
use super::shop::{Shop, now};

/// How long anything may take on a loaded box.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// The program under test.
pub(crate) fn exe() -> PathBuf {
    // A runner that moved the binaries says where they are.
    std::env::var_os("NEXTEST_BIN_EXE_sentinel").map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_sentinel")),
        PathBuf::from,
    )
}

/// Waits until `look` finds something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(PAUSE);
    }
}

/// A site with its own shop and folder.
pub(crate) struct Site {
    root: TempDir,
    /// The patient.
    pub(crate) shop: Shop,
    serve: Option<Child>,
    runs: u32,
    address: String,
    metrics: String,
    secrets: BTreeMap<String, Vec<u8>>,
}

impl Site {
    /// Writes a site down; nothing runs yet but the shop.
    pub(crate) fn new(wishes: &Wishes) -> Self {
        let root = tempfile::tempdir().unwrap();
        let shop = Shop::open(root.path());
        files::write(root.path(), &shop, wishes);
        Self {
            root,
            shop,
            serve: None,
            runs: 0,
            address: String::new(),
            metrics: String::new(),
            secrets: BTreeMap::new(),
        }
    }

    /// The state folder.
    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("site")
    }

    /// Address of console, API and intake.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    fn socket(&self) -> PathBuf {
        self.state().join("run/control.sock")
    }

    fn err_file(&self) -> PathBuf {
        self.root.path().join(format!("serve-{}.err", self.runs))
    }

    /// Everything that every run of the daemon wrote to standard error.
    pub(crate) fn stderr(&self) -> String {
        (1..=self.runs)
            .map(|n| self.root.path().join(format!("serve-{n}.err")))
            .map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned())
            .collect()
    }

    fn launch(&mut self, flags: &[&str]) {
        self.runs += 1;
        let child = Command::new(exe())
            .args(["serve", "--state-dir"])
            .arg(self.state())
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(self.err_file()).unwrap())
            .spawn()
            .unwrap();
        self.serve = Some(child);
    }

    /// Starts the daemon and waits until it serves.
    pub(crate) fn start(&mut self, flags: &[&str]) {
        self.launch(flags);
        let (address, metrics) = wait_for("the daemon", || {
            let text = std::fs::read_to_string(self.err_file()).unwrap();
            if let Some(status) = self.ended() {
                panic!("the daemon ended with {status}: {text}");
            }
            let line = text.lines().find(|l| l.contains("\"serving\""))?;
            let line: Value = serde_json::from_str(line).ok()?;
            let word = |name: &str| line[name].as_str().map(str::to_owned);
            Some((word("address")?, word("metrics")?))
        });
        (self.address, self.metrics) = (address, metrics);
    }

    /// How the daemon ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.serve.as_mut().and_then(|c| c.try_wait().unwrap())
    }

    /// Kills the daemon.
    pub(crate) fn kill(&mut self) {
        let mut serve = self.serve.take().expect("it runs");
        serve.kill().unwrap();
        serve.wait().unwrap();
    }

    /// Starts a daemon that must not start: its exit code, and what it said.
    #[track_caller]
    pub(crate) fn refused(&mut self) -> (Option<i32>, String) {
        self.launch(&[]);
        let status = wait_for("the refusal", || self.ended());
        self.serve = None;
        let said = std::fs::read_to_string(self.err_file()).unwrap();
        (status.code(), said)
    }

    /// Panics unless the daemon was killed by SIGKILL.
    pub(crate) fn assert_killed(&mut self) {
        let status = self.ended().expect("it has ended");
        assert_eq!(status.signal(), Some(9), "{status}\n{}", self.stderr());
        self.serve = None;
    }

    /// Runs a subcommand against the daemon.
    pub(crate) fn run(&self, args: &[&str], input: &str) -> Output {
        let mut child = Command::new(exe())
            .arg("--json")
            .arg("--socket")
            .arg(self.socket())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that fails early does not read its input.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Runs a subcommand that has to succeed, and gives its `data`.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str], input: &str) -> Value {
        let output = self.run(args, input);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        printed["data"].clone()
    }

    /// Gives each person an account and an authenticator.
    pub(crate) fn hire(&mut self) {
        for person in PEOPLE {
            let args = [
                "user",
                "add",
                person,
                "--roles",
                "viewer,responder,approver",
            ];
            let data = self.done(&args, "correct horse battery staple 7\n");
            let secret = data["totp_secret"].as_str().unwrap().as_bytes();
            let secret = data_encoding::BASE32_NOPAD.decode(secret).unwrap();
            self.secrets.insert(person.to_owned(), secret);
        }
    }

    fn code(&self, person: &str) -> String {
        let code = totp::code(&self.secrets[person], totp::step_at(now())).unwrap();
        format!("{code}\n")
    }

    /// Approves an action as a person; each person's code is good once.
    pub(crate) fn approve(&self, action: &str, person: &str) -> Output {
        let subject = format!("local:{person}");
        let args = [
            "approve",
            action,
            "--as",
            &subject,
            "--target",
            "ledger",
            "--code-stdin",
            "--reason",
            "it is down",
        ];
        self.run(&args, &self.code(person))
    }

    /// Says what an action in doubt did.
    pub(crate) fn reconcile(&self, action: &str, person: &str, result: &str) -> Output {
        let subject = format!("local:{person}");
        let args = [
            "action",
            "reconcile",
            action,
            "--as",
            &subject,
            "--result",
            result,
            "--code-stdin",
            "--reason",
            "I looked at the restart file",
        ];
        self.run(&args, &self.code(person))
    }

    /// Reads something off the control socket; `None` when the daemon does not answer.
    pub(crate) fn get(&self, target: &str) -> Option<Value> {
        let answer = http::unix(&self.socket(), target)?;
        (answer.status == 200).then(|| answer.json())
    }

    /// The incidents, newest first.
    pub(crate) fn incidents(&self) -> Vec<Value> {
        let list = self.get("/v1/incidents").unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// The one incident; none or a second one is an error.
    #[track_caller]
    pub(crate) fn incident(&self) -> Value {
        let all = self.incidents();
        assert_eq!(all.len(), 1, "{all:#?}");
        all[0].clone()
    }

    /// The postmortem of a closed incident: `markdown` and `json`.
    #[track_caller]
    pub(crate) fn postmortem(&self, id: &str) -> Value {
        self.get(&format!("/v1/incidents/{id}/postmortem"))
            .expect("a closed incident has a postmortem")
    }

    /// The actions of the guard.
    pub(crate) fn actions(&self) -> Vec<Value> {
        let list = self.get("/v1/actions").unwrap_or_default();
        list["actions"].as_array().cloned().unwrap_or_default()
    }

    /// The action that waits for a person, if one does.
    pub(crate) fn pending(&self) -> Option<String> {
        let actions = self.actions();
        let waits = actions.iter().find(|a| a["state"] == "pending")?;
        waits["id"].as_str().map(str::to_owned)
    }

    /// The page of the daemon's own metrics.
    pub(crate) fn metrics(&self) -> String {
        let ask = Ask {
            method: "GET",
            path: "/metrics",
            ..Ask::default()
        };
        http::tcp(&self.metrics, ask).unwrap().body
    }

    /// The body that Alertmanager sends for the broken shop.
    pub(crate) fn alert(&self) -> Value {
        json!({
            "version": "4", "groupKey": "{}:{alertname=\"OrdersFail\"}", "truncatedAlerts": 0,
            "status": "firing", "receiver": "sentinel",
            "groupLabels": {"alertname": "OrdersFail"}, "commonLabels": {}, "commonAnnotations": {},
            "externalURL": "http://alertmanager.example",
            "alerts": [{
                "status": "firing",
                "labels": {"alertname": "OrdersFail", "service": "front", "severity": "critical"},
                "annotations": {"summary": "three of four orders fail"},
                "startsAt": self.shop.broke().plus(5_000).to_string(),
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "http://prometheus.example/graph",
                "fingerprint": "5ef77f1f8a3ecfcd",
            }],
        })
    }

    /// Posts a body to the intake with its credential.
    pub(crate) fn post(&self, body: &[u8]) -> Option<Answer> {
        self.post_as(body, &format!("Bearer {TOKEN}"), "application/json")
    }

    /// Posts with another credential or another type.
    pub(crate) fn post_as(&self, body: &[u8], credential: &str, kind: &str) -> Option<Answer> {
        let headers = [("authorization", credential), ("content-type", kind)];
        let ask = Ask {
            method: "POST",
            path: "/v1/intake/alertmanager",
            headers: &headers,
            body,
        };
        http::tcp(&self.address, ask)
    }

    /// Exports the whole log and has it verified offline; gives its events.
    #[track_caller]
    pub(crate) fn audited(&self) -> Vec<Value> {
        let file = |name: &str| self.root.path().join(name);
        let (bundle, trust) = (file("log.bundle"), file("log.trust"));
        let text = |path: &Path| path.display().to_string();
        self.done(&["audit", "export", "--out", &text(&bundle)], "");
        let printed = http::unix(&self.socket(), "/v1/audit/trust").unwrap();
        std::fs::write(&trust, printed.body).unwrap();
        self.done(
            &["audit", "verify", &text(&bundle), "--trust", &text(&trust)],
            "",
        );
        let lines = std::fs::read_to_string(&bundle).unwrap();
        let parsed = lines
            .lines()
            .map(|l| serde_json::from_str::<Value>(l).unwrap());
        parsed
            .filter_map(|line| line.get("event").cloned())
            .collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(mut serve) = self.serve.take() {
            let _ = serve.kill();
            let _ = serve.wait();
        }
        if std::thread::panicking() {
            eprintln!("{}", self.stderr());
        }
    }
}
