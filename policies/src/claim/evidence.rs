//! Evidence: a tool answer that was redacted and freed of instructions.
//!
//! It has no public constructor; `crate::admit` is the only place that builds one. What is stored
//! is [`StoredEvidence`], which becomes evidence again only by being checked again.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::{EvidenceId, LogSource, Millis, Payload, Series, Window};

/// How a piece of evidence was obtained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceMeta {
    /// Tool that answered.
    pub tool: String,
    /// Arguments of the call, canonical JSON.
    pub args: String,
    /// Configured source it read.
    pub source: String,
    /// Span of time it covers.
    pub window: Window,
    /// When it was taken.
    pub taken_at: Millis,
    /// Why it is incomplete; `None` when it is whole.
    pub partial: Option<String>,
}

/// What admission did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmitStats {
    /// Bytes of the raw answer.
    pub bytes_read: u64,
    /// Bytes of text that stayed.
    pub bytes_kept: u64,
    /// Redactions by kind.
    pub redactions: BTreeMap<String, u32>,
    /// Instructions removed.
    pub removed: u32,
    /// So much of it read like instructions that nothing was removed: its slots are abstracted
    /// instead, and it supports no action (guardrails 7.8 b).
    #[serde(default)]
    pub contested: bool,
}

/// Where a value comes from (guardrails 8.1), most trustworthy first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Metrics, supervisor state, deploy records, own probes.
    Machine,
    /// Fixed text and typed slots of a service's own log lines.
    Service,
    /// Documents that people wrote.
    Human,
    /// A kind of line that was first seen after onset.
    Novel,
    /// Free-text slots that users can fill.
    User,
}

impl Provenance {
    /// The word used on every wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Service => "service",
            Self::Human => "human",
            Self::Novel => "novel",
            Self::User => "user",
        }
    }

    /// True when a value seen only here may not become a parameter of an action (guardrails 8.5).
    #[must_use]
    pub const fn is_tainted(self) -> bool {
        match self {
            Self::Machine | Self::Service | Self::Human => false,
            Self::Novel | Self::User => true,
        }
    }
}

/// An item of the payload whose first citable line is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineOf {
    /// Alert by index.
    Alert(usize),
    /// Log line by index.
    Log(usize),
    /// Series by index.
    Series(usize),
    /// Deploy by index.
    Deploy(usize),
    /// Hunk by index of deploy, file and hunk.
    Hunk(usize, usize, usize),
    /// Unit event by index.
    Unit(usize),
    /// Call edge by index.
    Edge(usize),
    /// Runbook section by index.
    Section(usize),
}

/// What a citable line is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineRole {
    /// Names, numbers, records, code.
    Machine,
    /// A log line by index.
    Log(usize),
    /// Free text of an alert or an event.
    Told,
    /// A label; its value begins at this byte.
    Label(usize),
    /// A document of people.
    Prose,
}

/// A tool answer that may be reasoned about.
///
/// ```compile_fail
/// let e = sentinel_policies::claim::Evidence { id: sentinel_policies::model::EvidenceId(1) };
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    id: EvidenceId,
    meta: EvidenceMeta,
    payload: Payload,
    stats: AdmitStats,
    lines: Vec<String>,
    roles: Vec<LineRole>,
    index: BTreeMap<LineOf, u32>,
}

/// What `admit` hands over to build evidence from.
pub(crate) struct Parts {
    pub(crate) id: EvidenceId,
    pub(crate) meta: EvidenceMeta,
    pub(crate) payload: Payload,
    pub(crate) stats: AdmitStats,
}

/// The stored form. Anyone can build one, so it is never trusted: `admit::rehydrate_evidence`
/// sends it through the redactor and the injection filter again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredEvidence {
    /// Number inside the incident.
    pub id: EvidenceId,
    /// How it was obtained.
    pub meta: EvidenceMeta,
    /// The redacted content.
    pub payload: Payload,
    /// What admission did.
    pub stats: AdmitStats,
}

impl StoredEvidence {
    /// The citable text lines, to be shown; the numbers are those of [`Evidence::lines`].
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        render(&self.payload).lines
    }
}

impl Evidence {
    pub(crate) fn from_parts(parts: Parts) -> Self {
        let Page {
            lines,
            roles,
            index,
        } = render(&parts.payload);
        Self {
            id: parts.id,
            meta: parts.meta,
            payload: parts.payload,
            stats: parts.stats,
            lines,
            roles,
            index,
        }
    }

    /// Number inside the incident.
    #[must_use]
    pub const fn id(&self) -> EvidenceId {
        self.id
    }

    /// How it was obtained.
    #[must_use]
    pub const fn meta(&self) -> &EvidenceMeta {
        &self.meta
    }

    /// The content, redacted and freed of instructions.
    #[must_use]
    pub const fn payload(&self) -> &Payload {
        &self.payload
    }

    /// What admission did.
    #[must_use]
    pub const fn stats(&self) -> &AdmitStats {
        &self.stats
    }

    /// The citable text lines; the first is line 1. No line contains a line end.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Line `number` (from 1), if there is one.
    #[must_use]
    pub fn line(&self, number: u32) -> Option<&str> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.lines.get(at).map(String::as_str)
    }

    /// What line `number` is made of.
    pub(crate) fn role(&self, number: u32) -> Option<LineRole> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.roles.get(at).copied()
    }

    /// The number of the first line that shows `item`.
    #[must_use]
    pub fn line_of(&self, item: LineOf) -> Option<u32> {
        self.index.get(&item).copied()
    }

    /// The best provenance of all places where each value occurs as a whole word; values that do
    /// not occur are left out. `onset` divides known kinds of log lines from new ones.
    #[must_use]
    pub fn provenances(
        &self,
        values: &BTreeSet<String>,
        onset: Option<Millis>,
    ) -> BTreeMap<String, Provenance> {
        crate::provenance::of(&self.payload, values, onset)
    }

    /// This evidence under the number of an earlier answer of the same source, for judging a
    /// proposal that cites the earlier one on fresh facts. It is never stored or shown so.
    pub(crate) fn standing_for(&self, id: EvidenceId) -> Self {
        let mut fresh = self.clone();
        fresh.id = id;
        fresh
    }

    /// What is written to the store.
    #[must_use]
    pub fn to_stored(&self) -> StoredEvidence {
        StoredEvidence {
            id: self.id,
            meta: self.meta.clone(),
            payload: self.payload.clone(),
            stats: self.stats.clone(),
        }
    }
}

/// Collects lines and remembers which item each began with.
#[derive(Default)]
struct Page {
    lines: Vec<String>,
    roles: Vec<LineRole>,
    index: BTreeMap<LineOf, u32>,
}

impl Page {
    fn mark(&mut self, item: LineOf) {
        let next = u32::try_from(self.lines.len()).map_or(u32::MAX, |n| n.saturating_add(1));
        self.index.insert(item, next);
    }

    /// Adds one line; line ends inside it become spaces, so that numbers stay right.
    fn line(&mut self, role: LineRole, text: String) {
        self.roles.push(role);
        if text.contains(['\n', '\r']) {
            self.lines.push(text.replace(['\n', '\r'], " "));
        } else {
            self.lines.push(text);
        }
    }

    fn item(&mut self, item: LineOf, role: LineRole, text: String) {
        self.mark(item);
        self.line(role, text);
    }
}

fn render(payload: &Payload) -> Page {
    let mut page = Page::default();
    match payload {
        Payload::Alerts { alerts } => {
            for (i, alert) in alerts.iter().enumerate() {
                page.item(LineOf::Alert(i), LineRole::Machine, alert_line(alert));
                for (name, text) in [
                    ("summary", &alert.summary),
                    ("description", &alert.description),
                ] {
                    if !text.is_empty() {
                        page.line(LineRole::Told, format!("{name}: {text}"));
                    }
                }
                for (key, value) in alert.labels.iter().chain(&alert.annotations) {
                    let value_at = key.len().saturating_add(2);
                    page.line(LineRole::Label(value_at), format!("{key}: {value}"));
                }
            }
        }
        Payload::Logs { sources, lines } => {
            for (i, line) in lines.iter().enumerate() {
                page.item(
                    LineOf::Log(i),
                    LineRole::Log(i),
                    log_line(sources.get(line.source), &line.text),
                );
            }
        }
        Payload::Metrics { step_ms, series } => {
            for (i, one) in series.iter().enumerate() {
                page.item(
                    LineOf::Series(i),
                    LineRole::Machine,
                    series_line(one, *step_ms),
                );
            }
        }
        Payload::Deploys { history } => render_deploys(&mut page, history),
        Payload::Units { events } => {
            for (i, e) in events.iter().enumerate() {
                let text = format!(
                    "{} {}/{} {} state={} {}",
                    e.at, e.service, e.instance, e.event, e.state, e.detail
                );
                page.item(LineOf::Unit(i), LineRole::Told, text.trim_end().to_owned());
            }
        }
        Payload::Topology { edges } => {
            for (i, edge) in edges.iter().enumerate() {
                page.item(
                    LineOf::Edge(i),
                    LineRole::Machine,
                    format!("{} calls {}", edge.caller, edge.callee),
                );
            }
        }
        Payload::Runbooks { sections } => {
            for (i, s) in sections.iter().enumerate() {
                page.item(
                    LineOf::Section(i),
                    LineRole::Prose,
                    format!("{}:{} {}", s.document, s.line, s.heading),
                );
                for line in s.text.lines() {
                    page.line(LineRole::Prose, line.to_owned());
                }
            }
        }
    }
    page
}

fn alert_line(alert: &crate::model::Alert) -> String {
    let status = match alert.status {
        crate::model::AlertStatus::Firing => "firing",
        crate::model::AlertStatus::Resolved => "resolved",
    };
    format!(
        "{} alert {} service={} {status} since {}",
        alert.received_at, alert.name, alert.service, alert.starts_at
    )
}

/// A log line as written; the instance is put in front when the line does not name it.
fn log_line(source: Option<&LogSource>, text: &str) -> String {
    match source {
        Some(source) if !text.contains(source.instance.as_str()) => {
            format!("{} | {text}", source.instance)
        }
        _ => text.to_owned(),
    }
}

fn series_line(series: &Series, step_ms: i64) -> String {
    use std::fmt::Write as _;
    let mut text = format!("{}{{", series.name);
    for (i, (key, value)) in series.labels.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{key}={value}");
    }
    let _ = write!(text, "}} {}/{}", series.service, series.instance);
    let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else {
        return text + " no points";
    };
    let low = series
        .points
        .iter()
        .map(|p| p.1)
        .fold(f64::INFINITY, f64::min);
    let high = series
        .points
        .iter()
        .map(|p| p.1)
        .fold(f64::NEG_INFINITY, f64::max);
    let _ = write!(
        text,
        " first={} at {} last={} at {} min={low} max={high} points={} step_ms={step_ms}",
        first.1,
        first.0,
        last.1,
        last.0,
        series.points.len()
    );
    text
}

fn render_deploys(page: &mut Page, history: &crate::model::DeployHistory) {
    for (d, deploy) in history.deploys.iter().enumerate() {
        let status = match deploy.status {
            crate::model::DeployStatus::Started => "started",
            crate::model::DeployStatus::Succeeded => "succeeded",
            crate::model::DeployStatus::Failed => "failed",
            crate::model::DeployStatus::RolledBack => "rolled_back",
        };
        page.item(
            LineOf::Deploy(d),
            LineRole::Prose,
            format!(
                "{} deploy {} {} {} -> {} {status}: {}",
                deploy.started_at,
                deploy.id,
                deploy.service,
                deploy.previous_version.as_deref().unwrap_or("nothing"),
                deploy.version,
                deploy.message
            ),
        );
        for (f, file) in deploy.diff.iter().flatten().enumerate() {
            for (h, hunk) in file.hunks.iter().enumerate() {
                page.item(
                    LineOf::Hunk(d, f, h),
                    LineRole::Machine,
                    format!("{} {}", file.path, hunk.header),
                );
                for line in &hunk.lines {
                    page.line(LineRole::Machine, line.clone());
                }
            }
        }
    }
    for (service, version) in &history.in_force {
        page.line(LineRole::Machine, format!("in force: {service} {version}"));
    }
}

#[cfg(test)]
mod tests {
    use static_assertions::assert_not_impl_any;

    use super::Evidence;

    assert_not_impl_any!(Evidence: Default, serde::Serialize, serde::de::DeserializeOwned);
    assert_not_impl_any!(crate::claim::Draft: Default, serde::de::DeserializeOwned);

    #[test]
    fn lines_are_counted_from_one_and_every_item_knows_its_first() {
        let evidence = crate::admit::tests::logs(&["checkout-1 one", "two"]);
        assert_eq!(evidence.line(0), None);
        assert_eq!(evidence.line(1), Some("checkout-1 one"));
        assert_eq!(evidence.line(2), Some("checkout-1 | two"));
        assert_eq!(evidence.line_of(super::LineOf::Log(1)), Some(2));
        assert_eq!(evidence.line_of(super::LineOf::Log(2)), None);
    }
}
