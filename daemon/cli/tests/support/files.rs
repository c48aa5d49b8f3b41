//! What lies on disk before the daemon starts: the site's history, configuration, policy and keys.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::Path;

use policies::model::Millis;
use store::sentinel::{Db, Scrape};

use super::shop::{INSTANCES, Shop, append, now, unit};

/// What a test wants different.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Lines that the log of `front` holds besides its own.
    pub(crate) log_lines: Vec<String>,
    /// `[model]`, whole.
    pub(crate) model: String,
    /// Address of a webhook that is told what happens.
    pub(crate) pager: Option<std::net::SocketAddr>,
}

/// Key that signs what the pager is told.
pub(crate) const PAGER_KEY: &str = "pager-key-0a1b2c";

/// The people who may approve.
pub(crate) const PEOPLE: [&str; 3] = ["ann", "ben", "cleo"];
/// Bearer token of the intake.
pub(crate) const TOKEN: &str = "tok-3f1c0a77d2";

/// Writes everything below `root`: the shop's own files and the state folder `site`.
pub(crate) fn write(root: &Path, shop: &Shop, wishes: &Wishes) {
    releases(root);
    log(root, shop, wishes);
    unit(root, shop.begin(), "started", "active");
    unit(root, shop.broke(), "oom_killed", "failed");
    fs::create_dir_all(root.join("runbooks")).unwrap();
    let runbook = "# Ledger\n\nA ledger that was killed for its memory is restarted.\n";
    fs::write(root.join("runbooks/ledger.md"), runbook).unwrap();
    let etc = root.join("site/etc");
    fs::create_dir_all(&etc).unwrap();
    secret(&root.join("token"), TOKEN.as_bytes());
    secret(&root.join("pager-key"), PAGER_KEY.as_bytes());
    fs::write(etc.join("sentinel.toml"), config(root, shop, wishes)).unwrap();
    fs::write(etc.join("policy.toml"), policy()).unwrap();
    history(root, shop);
}

fn secret(path: &Path, bytes: &[u8]) {
    let mut file = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
}

/// Two releases of `front`; the newer one came three hours ago and has nothing to do with it.
fn releases(root: &Path) {
    for (version, text) in [("0.9.0", "KEEP = 64\n"), ("1.0.0", "KEEP = 128\n")] {
        let folder = root.join("releases").join(version);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("app.py"), text).unwrap();
    }
    symlink("releases/1.0.0", root.join("current")).unwrap();
    let at = now().plus(-3 * 3_600_000);
    let deploy = serde_json::json!({
        "id": "d-1", "service": "front", "version": "1.0.0", "previous_version": "0.9.0",
        "commit": null, "started_at": at.to_string(), "finished_at": at.plus(4_000).to_string(),
        "status": "succeeded", "actor": "ann", "message": "keep more",
    });
    append(&root.join("deploys.jsonl"), &deploy.to_string());
}

fn log(root: &Path, shop: &Shop, wishes: &Wishes) {
    let path = root.join("front.log");
    let line = |at: Millis, text: &str| append(&path, &format!("{at} {text}"));
    for second in 0..70 {
        let at = shop.begin().plus(second * 1000 + 250);
        line(
            at,
            &format!("INFO front-1 order placed order=o-{second} ms=31"),
        );
    }
    for second in 0..20 {
        let at = shop.broke().plus(second * 1000 + 400);
        line(
            at,
            "ERROR front-1 request failed route=/orders code=502 \
             error=\"UpstreamError: ledger /charge: [Errno 111] Connection refused\"",
        );
    }
    for (second, text) in (1..).zip(&wishes.log_lines) {
        line(shop.broke().plus(second * 300), text);
    }
}

/// The daemon ran before: what it scraped in the last minute and a half is in its database.
fn history(root: &Path, shop: &Shop) {
    let etc = root.join("site/etc");
    for (n, name) in (1_u8..).zip(["guard-kek", "redact-key"]) {
        secret(&etc.join(name), &[n; 32]);
    }
    let db = Db::open(&root.join("site/sentinel.db")).unwrap();
    let mut at = shop.begin().plus(1_000);
    while at < now() {
        for (service, instance) in INSTANCES {
            if let Some(samples) = shop.samples(service, at) {
                let scrape = Scrape {
                    service: service.to_owned(),
                    instance: instance.to_owned(),
                    at,
                    samples,
                };
                db.add_scrape(&scrape, Millis(0)).unwrap();
            }
        }
        at = at.plus(1_000);
    }
}

fn config(root: &Path, shop: &Shop, wishes: &Wishes) -> String {
    let path = |name: &str| root.join(name).display().to_string();
    let [front, ledger] = [shop.address(0), shop.address(1)];
    format!(
        r#"schema = 1

[site]
name = "mini.example"

[http]
listen = "127.0.0.1:0"

[telemetry]
metrics_listen = "127.0.0.1:0"

[intake.alertmanager]
kind = "alertmanager"
file = "{token}"
tenant = "default"

[sources.logs]
kind = "logs"
files = [{{ service = "front", instance = "front-1", path = "{log}" }}]

[sources.metrics]
kind = "metrics"
every = "250ms"
targets = [
  {{ service = "front", instance = "front-1", address = "{front}", path = "/metrics" }},
  {{ service = "ledger", instance = "ledger-1", address = "{ledger}", path = "/metrics" }},
]

[sources.releases]
kind = "releases"
history = "{deploys}"
services = [{{ name = "front", releases = "{releases}", current = "{current}" }}]

[sources.units]
kind = "units"
path = "{units}"

[sources.topology]
kind = "topology"
edges = ["front->ledger"]

[sources.runbooks]
kind = "runbooks"
folder = "{runbooks}"

[executors.restart-ledger]
kind = "trigger"
action = "restart"
target = "ledger"
file = "{restart}"
probe = {{ service = "front", metric = "http_requests_total", label = "code", bad_prefix = "5", max_ratio = 0.02, window = "2s" }}

[investigation]
settle = "300ms"
verify_for = "20s"
verify_hold = "1s"
{model}{pager}"#,
        token = path("token"),
        log = path("front.log"),
        deploys = path("deploys.jsonl"),
        releases = path("releases"),
        current = path("current"),
        units = path("units.jsonl"),
        runbooks = path("runbooks"),
        restart = path("restart"),
        model = wishes.model,
        pager = wishes
            .pager
            .map(|address| pager(&path("pager-key"), address))
            .unwrap_or_default(),
    )
}

fn pager(key: &str, address: std::net::SocketAddr) -> String {
    format!(
        "\n[notify.pager]\nkind = \"webhook\"\nurl = \"http://{address}/hook\"\nsecret_file = \"{key}\"\n"
    )
}

fn policy() -> String {
    let people: String = PEOPLE
        .iter()
        .map(|p| {
            format!("  {{ id = \"{p}\", subjects = [\"local:{p}\"], groups = [\"oncall\"] }},\n")
        })
        .collect();
    format!(
        r#"version = 1
site = "mini.example"
limits = {{ pending_per_requester = 20, proposals_per_requester_per_hour = 60, refused_leaves_per_caller_per_minute = 30, deny_cooldown_h = 24 }}
identity = [
  {{ id = "agent/rca", role = "agent", peer = "internal:conductor", tenants = ["default"] }},
  {{ id = "console", role = "delegate", peer = "internal:console" }},
  {{ id = "control", role = "delegate", peer = "internal:control" }},
]
person = [
{people}]

[[action]]
name = "restart"
may_propose = ["agent/rca"]
may_approve = ["group:oncall"]
executors = ["internal:worker"]
approvals = 1
must_include = []
min_assurance = "local"
pending_ttl_h = 72
approval_ttl_s = 600
effect_timeout_s = 120
target = {{ namespace = {{ type = "name" }}, name = {{ type = "name" }} }}
change = {{ incident = {{ type = "id" }} }}
"#
    )
}
