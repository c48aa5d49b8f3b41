//! The configuration: one TOML file over an embedded `default.toml` (operations.md 4).
//!
//! Owns the types that the rest of the daemon is configured by, and every check that needs no
//! running daemon. All problems are reported at once, each with file, line and column.

mod load;
mod modes;
mod notify;
mod problem;
mod reader;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use policies::machine::Event;
use policies::model::{Edge, RemediationClass};

pub(crate) use load::secret_file_is_private;
pub use load::{Loaded, load, load_text};
pub use modes::open_files;
pub use problem::{Level, Problem};

/// The embedded reference: every default, with a comment for each key.
pub const DEFAULT_TOML: &str = include_str!("default.toml");

/// Everything that a site can set.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Name of the site.
    pub site: String,
    /// Console, API and intake.
    pub http: Http,
    /// Listener of `/metrics`.
    pub metrics_listen: SocketAddr,
    /// Log level: `error`, `warn`, `info`, `debug`, `trace`.
    pub log_level: String,
    /// Default trust file of `audit verify`.
    pub trust_file: Option<PathBuf>,
    /// The embedded model, if one is configured.
    pub model: Option<Model>,
    /// Limits and waits of an investigation.
    pub investigation: Investigation,
    /// Webhooks by name.
    pub intake: BTreeMap<String, Intake>,
    /// Evidence sources by name.
    pub sources: BTreeMap<String, Source>,
    /// Executors by name.
    pub executors: BTreeMap<String, Executor>,
    /// Who is told what outside the console, by name.
    pub notify: BTreeMap<String, Notify>,
}

/// The main listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// Address; loopback only, since there is no TLS on it.
    pub listen: SocketAddr,
    /// Host names that are answered besides the address itself.
    pub names: Vec<String>,
}

/// The embedded chat model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// GGUF file.
    pub file: PathBuf,
    /// Lower-case hexadecimal SHA-256 of it.
    pub sha256: String,
    /// Tokens of context.
    pub n_ctx: u32,
    /// Threads; 0 lets the engine choose.
    pub threads: u32,
}

/// Waits and budgets of one investigation, in ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Investigation {
    /// How far before the first alert evidence is read.
    pub lookback_ms: i64,
    /// Wait between the alert and the first tool.
    pub settle_ms: i64,
    /// Longest model step.
    pub model_deadline_ms: i64,
    /// How long the probe watches after a remediation.
    pub verify_for_ms: i64,
    /// How long the probe must be good without a break.
    pub verify_hold_ms: i64,
}

/// One webhook of kind `alertmanager`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intake {
    /// File with the bearer token of this intake.
    pub token_file: PathBuf,
    /// Tenant that its alerts belong to.
    pub tenant: String,
    /// Alert names that open nothing.
    pub heartbeats: Vec<String>,
    /// More new episodes than this in a minute are one storm.
    pub storm_threshold: usize,
}

/// A webhook on this box that is told what happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// Address; loopback only, since there is no TLS.
    pub address: SocketAddr,
    /// Path and query.
    pub path: String,
    /// File with the key that signs each notification.
    pub secret_file: PathBuf,
    /// What it is told.
    pub events: Vec<Event>,
}

/// One log file and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Service that writes it.
    pub service: String,
    /// Instance that writes it.
    pub instance: String,
    /// The file.
    pub path: PathBuf,
}

/// One page of Prometheus text and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrapeTarget {
    /// Service.
    pub service: String,
    /// Instance.
    pub instance: String,
    /// Address to dial.
    pub address: SocketAddr,
    /// Path of the page.
    pub path: String,
}

/// Where the releases of a service lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseTree {
    /// Service.
    pub service: String,
    /// Folder with one folder for each version.
    pub releases: PathBuf,
    /// Link to the release in force.
    pub current: PathBuf,
}

/// An evidence source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Log files.
    Logs {
        /// The files.
        files: Vec<LogFile>,
    },
    /// Prometheus pages, scraped into a ring.
    Metrics {
        /// Interval in ms.
        every_ms: i64,
        /// Pages.
        targets: Vec<ScrapeTarget>,
    },
    /// Deploy records and the releases they name.
    Releases {
        /// One JSON record a line.
        history: PathBuf,
        /// Release folders.
        services: Vec<ReleaseTree>,
    },
    /// Unit events, one JSON object a line.
    Units {
        /// The file.
        path: PathBuf,
    },
    /// Call graph.
    Topology {
        /// Call edges.
        edges: Vec<Edge>,
    },
    /// Markdown runbooks.
    Runbooks {
        /// The folder.
        folder: PathBuf,
    },
}

/// How it is measured that a remediation helped: the share of `metric` samples whose label
/// `label` begins with `bad_prefix`, over `window_ms`, must be at most `max_ratio`.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Service whose metric is read.
    pub service: String,
    /// Counter.
    pub metric: String,
    /// Label of the counter that tells good from bad.
    pub label: String,
    /// Value prefix that means bad.
    pub bad_prefix: String,
    /// Largest good ratio.
    pub max_ratio: f64,
    /// Window in ms.
    pub window_ms: i64,
}

/// What an executor does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutorKind {
    /// Points a release link at another release.
    Symlink {
        /// The link.
        link: PathBuf,
        /// Folder with the releases.
        releases: PathBuf,
    },
    /// Changes one integer of one TOML file.
    Value {
        /// The file.
        file: PathBuf,
        /// The key, dotted.
        key: String,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// Writes a restart file.
    Trigger {
        /// The file.
        file: PathBuf,
    },
}

/// An executor: who does which action on what.
#[derive(Clone, Debug, PartialEq)]
pub struct Executor {
    /// Policy action it performs.
    pub action: RemediationClass,
    /// Service it works on.
    pub target: String,
    /// What it does.
    pub kind: ExecutorKind,
    /// How success is measured.
    pub probe: Probe,
}
