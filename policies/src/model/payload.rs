//! What a tool answers, as data.
//!
//! A tool worker serialises one [`Payload`] into the bytes of a `RawOutput`. Only `admit` reads
//! them back; what it makes of them (redacted, freed of injections) is `Evidence`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DeployHistory, Millis, Preconditions};

/// A half-open span of time `[from, to)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// First instant inside.
    pub from: Millis,
    /// First instant after.
    pub to: Millis,
}

/// Where a log line comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSource {
    /// Service.
    pub service: String,
    /// Instance of the service, for example `checkout-1`.
    pub instance: String,
}

/// One log line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    /// Time by its stamp; `None` when it has none that was understood.
    pub at: Option<Millis>,
    /// Index into the sources of the payload.
    pub source: usize,
    /// The whole line as written, without its end.
    pub text: String,
}

/// One point of a series: time and value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point(pub Millis, pub f64);

/// One sample of a scraped page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Metric name.
    pub name: String,
    /// Labels of the page, without those of the target.
    pub labels: BTreeMap<String, String>,
    /// Value.
    pub value: f64,
}

/// One time series of one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Metric name.
    pub name: String,
    /// Service of the target.
    pub service: String,
    /// Instance of the target.
    pub instance: String,
    /// Labels of the page.
    pub labels: BTreeMap<String, String>,
    /// Points, oldest first. A target that did not answer leaves a gap.
    pub points: Vec<Point>,
}

/// What a supervisor of units says happened (systemd's part).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitEvent {
    /// When.
    pub at: Millis,
    /// Service.
    pub service: String,
    /// Instance.
    pub instance: String,
    /// `started`, `stopped`, `exited`, `killed`, `oom_killed`, `config_changed`, `state`.
    pub event: String,
    /// `active`, `failed`, `inactive` after the event.
    pub state: String,
    /// Anything else, free text.
    pub detail: String,
}

/// One section of a runbook that a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunbookSection {
    /// File name.
    pub document: String,
    /// Heading path.
    pub heading: String,
    /// First line of the section in its file, counted from 1.
    pub line: u32,
    /// Text of the section.
    pub text: String,
    /// Rank score of the search, higher is better.
    pub score: f64,
    /// The conditions in the front matter of its document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Preconditions>,
}

/// `caller` calls `callee`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// Service that calls.
    pub caller: String,
    /// Service that is called.
    pub callee: String,
}

/// The answer of one tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Payload {
    /// The alerts themselves.
    Alerts {
        /// As normalised by intake.
        alerts: Vec<super::Alert>,
    },
    /// Log lines, oldest first.
    Logs {
        /// Files read.
        sources: Vec<LogSource>,
        /// Lines.
        lines: Vec<LogLine>,
    },
    /// Metric series.
    Metrics {
        /// Sampling step in ms.
        step_ms: i64,
        /// Series.
        series: Vec<Series>,
    },
    /// Deploy history with diffs.
    Deploys {
        /// The history.
        history: DeployHistory,
    },
    /// Unit events.
    Units {
        /// Oldest first.
        events: Vec<UnitEvent>,
    },
    /// Call graph.
    Topology {
        /// Call edges.
        edges: Vec<Edge>,
    },
    /// Runbook sections, best first.
    Runbooks {
        /// Sections.
        sections: Vec<RunbookSection>,
    },
}
