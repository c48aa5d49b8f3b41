//! The way in: raw tool answers become evidence, outside text becomes admissible text.
//!
//! This is the only module that builds `Evidence`. Every text field is redacted before anything
//! else looks at it; then instructions to the reader are removed from free text. Names, code and
//! diffs are exempt from the rules that ordinary names and code would trip (guardrails 7.8 c).

use std::collections::BTreeMap;

use crate::claim::{
    AdmitStats, Evidence, EvidenceMeta, Parts, RawOutput, RedactKey, Refused, StoredEvidence,
};
use crate::event::{GuardrailEvent, Layer, Tally};
use crate::injection::{self, Mode};
use crate::model::{
    Alert, Deploy, DeployHistory, EvidenceId, LogLine, Payload, Predicate, RunbookSection, Series,
    UnitEvent,
};
use crate::redaction::{Redactor, is_sensitive_field};
use crate::spotlight;

/// Largest raw answer that is read.
const MAX_RAW: usize = 32 * 1024 * 1024;
/// Largest text of one field that is filtered.
const MAX_TEXT: usize = 1024 * 1024;

/// Evidence and what the guardrails did to make it.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The evidence.
    pub evidence: Evidence,
    /// Interventions.
    pub events: Vec<GuardrailEvent>,
}

/// Admits the answer of a tool.
///
/// # Errors
/// Refuses with `evidence.too_large` or `evidence.malformed`; the reason never quotes the answer.
pub fn evidence(
    id: EvidenceId,
    meta: EvidenceMeta,
    raw: RawOutput,
    key: &RedactKey,
) -> Result<Admitted, Refused> {
    if raw.len() > MAX_RAW {
        return Err(Refused::new(
            "evidence.too_large",
            format!(
                "the answer has {} bytes, at most {MAX_RAW} are read",
                raw.len()
            ),
        ));
    }
    let payload: Payload = serde_json::from_slice(raw.bytes()).map_err(|e| {
        let (line, column) = (e.line(), e.column());
        Refused::new(
            "evidence.malformed",
            format!(
                "the answer is no payload ({:?} at {line}:{column})",
                e.classify()
            ),
        )
    })?;
    let read = raw.len() as u64;
    drop(raw);
    Ok(build(id, meta, payload, None, read, key))
}

/// Admits stored evidence again: newer rules may find more. What they find is counted as
/// `redact.recheck`, and the caller saves the evidence again when there are events.
///
/// # Errors
/// Refuses with `evidence.too_large`, like [`evidence`].
pub fn rehydrate_evidence(stored: StoredEvidence, key: &RedactKey) -> Result<Admitted, Refused> {
    let size = text_bytes(&stored.payload);
    if size > MAX_RAW as u64 {
        return Err(Refused::new(
            "evidence.too_large",
            format!("the stored evidence has {size} bytes, at most {MAX_RAW} are read"),
        ));
    }
    let read = stored.stats.bytes_read;
    Ok(build(
        stored.id,
        stored.meta,
        stored.payload,
        Some(stored.stats),
        read,
        key,
    ))
}

/// Admits a text from outside that belongs to no evidence: a question, a reason, an operand.
#[must_use]
pub fn text(text: &str, key: &RedactKey) -> (String, Vec<GuardrailEvent>) {
    let mut gate = Gate::new(key);
    let out = gate.free(text, Mode::Telemetry);
    (out, gate.finish(None, "redact.hit").events)
}

/// What the injection filter makes of one text, for measuring it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screened {
    /// The text that is left, as a model would see it.
    pub output: String,
    /// Class of each removal.
    pub classes: Vec<&'static str>,
    /// True when a slot of it was abstracted.
    pub abstracted: bool,
}

/// Runs one text through the injection filter alone: as a line of telemetry, or as prose. This is
/// what the benchmark measures; the redactor has measures of its own.
#[must_use]
pub fn screen(text: &str, prose: bool, key: &RedactKey) -> Screened {
    let mode = if prose { Mode::Prose } else { Mode::Telemetry };
    let (left, classes) = injection::clean(text, mode, key, 0)
        .map_or_else(|| (text.to_owned(), Vec::new()), |c| (c.text, c.classes));
    let (output, fields) = if prose {
        (left, 0)
    } else {
        injection::Sight::new(&[], None, &[], key).line(&left, EvidenceId(0))
    };
    Screened {
        output,
        classes,
        abstracted: fields > 0,
    }
}

/// Admits an alert: all its texts, labels and annotations too.
#[must_use]
pub fn alert(mut alert: Alert, key: &RedactKey) -> (Alert, Vec<GuardrailEvent>) {
    let mut gate = Gate::new(key);
    gate.alert(&mut alert);
    (alert, gate.finish(None, "redact.hit").events)
}

/// Redacts a text that leaves (what a model said, for example) and frees it of control
/// characters, invisible characters and control tokens.
#[must_use]
pub fn own_output(text: &str, key: &RedactKey) -> (String, Vec<GuardrailEvent>) {
    let visible: String = text
        .chars()
        .filter(|&c| !spotlight::is_invisible(c) && (!c.is_control() || c == '\n'))
        .collect();
    let mut gate = Gate::new(key);
    let out = gate.redact(&visible);
    let out = spotlight::escape(&out, key);
    (out, gate.finish(None, "out.redacted").events)
}

fn build(
    id: EvidenceId,
    mut meta: EvidenceMeta,
    mut payload: Payload,
    before: Option<AdmitStats>,
    bytes_read: u64,
    key: &RedactKey,
) -> Admitted {
    let mut gate = Gate::new(key);
    let contested = gate.contested_or_clean(&mut payload, before.as_ref());
    gate.typed(&mut meta.args);
    if let Some(partial) = &mut meta.partial {
        gate.typed(partial);
    }
    let bytes_kept = text_bytes(&payload);
    let code = if before.is_some() {
        "redact.recheck"
    } else {
        "redact.hit"
    };
    let done = gate.finish(Some(id), code);
    let mut stats = before.unwrap_or_default();
    for (kind, count) in done.redactions {
        let slot = stats.redactions.entry(kind).or_default();
        *slot = slot.saturating_add(count);
    }
    stats.removed = stats.removed.saturating_add(done.removed);
    stats.contested = contested;
    stats.bytes_read = bytes_read;
    stats.bytes_kept = bytes_kept;
    Admitted {
        evidence: Evidence::from_parts(Parts {
            id,
            meta,
            payload,
            stats,
        }),
        events: done.events,
    }
}

/// The redactor and the injection filter over the fields of one output.
struct Gate<'a> {
    key: &'a RedactKey,
    redactor: Redactor,
    removed: BTreeMap<&'static str, u32>,
    /// Bytes that were removed and bytes seen, for the share (guardrails 7.8 b).
    cut: usize,
    seen: usize,
    count: u32,
    /// Only control tokens are removed.
    quiet: bool,
    contested: bool,
}

struct Done {
    events: Vec<GuardrailEvent>,
    redactions: BTreeMap<String, u32>,
    removed: u32,
}

impl<'a> Gate<'a> {
    fn new(key: &'a RedactKey) -> Self {
        Self {
            key,
            redactor: Redactor::new(key),
            removed: BTreeMap::new(),
            cut: 0,
            seen: 0,
            count: 0,
            quiet: false,
            contested: false,
        }
    }

    fn redact(&mut self, text: &str) -> String {
        self.redactor.text(text)
    }

    /// A name, an identifier, code: redacted, and freed of control tokens and plain overrides.
    fn typed(&mut self, text: &mut String) {
        *text = self.free(text, Mode::Typed);
    }

    fn free(&mut self, text: &str, mode: Mode) -> String {
        let redacted = self.redact(text);
        self.filter(redacted, mode)
    }

    fn filter(&mut self, text: String, mode: Mode) -> String {
        self.seen = self.seen.saturating_add(text.len());
        if text.len() > MAX_TEXT {
            return crate::redaction::token::placeholder(self.key, "dropped:budget");
        }
        let mode = if self.quiet { Mode::Control } else { mode };
        let Some(clean) = injection::clean(&text, mode, self.key, self.count) else {
            return text;
        };
        self.cut = self.cut.saturating_add(clean.cut);
        for class in clean.classes {
            let slot = self.removed.entry(class).or_default();
            *slot = slot.saturating_add(1);
            self.count = self.count.saturating_add(1);
        }
        clean.text
    }

    fn telemetry(&mut self, text: &mut String) {
        *text = self.free(text, Mode::Telemetry);
    }

    fn prose(&mut self, text: &mut String) {
        *text = self.free(text, Mode::Prose);
    }

    /// Label maps: the name of a label is the key of its value.
    fn labels(&mut self, labels: &mut BTreeMap<String, String>, mode: Mode) {
        let taken = std::mem::take(labels);
        for (mut name, value) in taken {
            let value = if is_sensitive_field(&name, &value) {
                self.redactor.whole_secret(&value)
            } else {
                self.free(&value, mode)
            };
            self.typed(&mut name);
            labels.insert(name, value);
        }
    }

    /// Filters a payload. When more than a fifth of its bytes would go, nothing but control tokens
    /// is removed and the output is contested: its slots are abstracted when a model sees them
    /// (guardrails 7.8 b). What was contested once stays so.
    fn contested_or_clean(&mut self, payload: &mut Payload, before: Option<&AdmitStats>) -> bool {
        let was = before.is_some_and(|stats| stats.contested);
        let raw = payload.clone();
        self.quiet = was;
        self.payload(payload);
        if was || self.cut.saturating_mul(5) <= self.seen {
            return was;
        }
        // The first pass is forgotten: every finding is counted once, by the pass that stands.
        *self = Self::new(self.key);
        self.quiet = true;
        *payload = raw;
        self.payload(payload);
        self.contested = true;
        true
    }

    fn payload(&mut self, payload: &mut Payload) {
        match payload {
            Payload::Alerts { alerts } => alerts.iter_mut().for_each(|a| self.alert(a)),
            Payload::Logs { sources, lines } => {
                for source in sources.iter_mut() {
                    self.typed(&mut source.service);
                    self.typed(&mut source.instance);
                }
                self.logs(sources.len(), lines);
            }
            Payload::Metrics { series, .. } => series.iter_mut().for_each(|s| self.series(s)),
            Payload::Deploys { history } => self.deploys(history),
            Payload::Units { events } => events.iter_mut().for_each(|e| self.unit(e)),
            Payload::Topology { edges } => {
                for edge in edges {
                    self.typed(&mut edge.caller);
                    self.typed(&mut edge.callee);
                }
            }
            Payload::Runbooks { sections } => sections.iter_mut().for_each(|s| self.section(s)),
        }
    }

    /// The lines of one source are one input, so that a key over several lines is seen whole.
    fn logs(&mut self, sources: usize, lines: &mut [LogLine]) {
        for source in 0..=sources {
            let mine = |line: &LogLine| line.source.min(sources) == source;
            let joined: Vec<&str> = lines
                .iter()
                .filter(|line| mine(line))
                .map(|line| line.text.as_str())
                .collect();
            if joined.is_empty() {
                continue;
            }
            let redacted = self.redact(&joined.join("\n"));
            let mut rest = redacted.split('\n');
            for line in lines.iter_mut().filter(|line| mine(line)) {
                let rows = line.text.matches('\n').count().saturating_add(1);
                let text: Vec<&str> = rest.by_ref().take(rows).collect();
                line.text = self.filter(text.join("\n"), Mode::Telemetry);
            }
        }
    }

    fn alert(&mut self, alert: &mut Alert) {
        for name in [
            &mut alert.source,
            &mut alert.name,
            &mut alert.service,
            &mut alert.environment,
            &mut alert.group_key,
        ] {
            self.typed(name);
        }
        self.telemetry(&mut alert.summary);
        self.telemetry(&mut alert.description);
        self.labels(&mut alert.labels, Mode::Telemetry);
        self.labels(&mut alert.annotations, Mode::Telemetry);
    }

    fn series(&mut self, series: &mut Series) {
        self.typed(&mut series.name);
        self.typed(&mut series.service);
        self.typed(&mut series.instance);
        self.labels(&mut series.labels, Mode::Typed);
    }

    fn deploys(&mut self, history: &mut DeployHistory) {
        let taken = std::mem::take(&mut history.in_force);
        for (mut service, mut version) in taken {
            self.typed(&mut service);
            self.typed(&mut version);
            history.in_force.insert(service, version);
        }
        history.deploys.iter_mut().for_each(|d| self.deploy(d));
    }

    fn deploy(&mut self, deploy: &mut Deploy) {
        for name in [
            &mut deploy.id,
            &mut deploy.service,
            &mut deploy.version,
            &mut deploy.actor,
        ] {
            self.typed(name);
        }
        for name in [&mut deploy.previous_version, &mut deploy.commit]
            .into_iter()
            .flatten()
        {
            self.typed(name);
        }
        self.prose(&mut deploy.message);
        for file in deploy.diff.iter_mut().flatten() {
            self.typed(&mut file.path);
            for hunk in &mut file.hunks {
                self.typed(&mut hunk.header);
                // A key over several lines of a hunk is one value; the signs stay in front.
                let whole = self.redact(&hunk.lines.join("\n"));
                let mut rest = whole.split('\n');
                for line in &mut hunk.lines {
                    let rows = line.matches('\n').count().saturating_add(1);
                    let text: Vec<&str> = rest.by_ref().take(rows).collect();
                    *line = self.filter(text.join("\n"), Mode::Typed);
                }
            }
        }
    }

    fn unit(&mut self, event: &mut UnitEvent) {
        for name in [
            &mut event.service,
            &mut event.instance,
            &mut event.event,
            &mut event.state,
        ] {
            self.typed(name);
        }
        self.telemetry(&mut event.detail);
    }

    fn section(&mut self, section: &mut RunbookSection) {
        self.typed(&mut section.document);
        self.prose(&mut section.heading);
        self.prose(&mut section.text);
        for condition in section
            .preconditions
            .iter_mut()
            .flat_map(|p| p.requires.iter_mut().chain(&mut p.forbids))
        {
            self.typed(&mut condition.text);
            match &mut condition.predicate {
                Predicate::Metric { name, .. }
                | Predicate::Healthy(name)
                | Predicate::EvidenceKind(name) => self.typed(name),
                Predicate::AlertLabel { name, value } => {
                    self.typed(name);
                    self.typed(value);
                }
                Predicate::DeployWithin(_)
                | Predicate::Replicas { .. }
                | Predicate::Stateless
                | Predicate::Unreadable => {}
            }
        }
    }

    fn finish(self, id: Option<EvidenceId>, hit_code: &'static str) -> Done {
        let report = self.redactor.into_report();
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let mut tally = Tally::default();
        let mut redactions = BTreeMap::new();
        for (kind, count) in &report.counts {
            tally.add(Layer::Redact, hit_code, kind, narrow(*count));
            redactions.insert((*kind).to_owned(), narrow(*count));
        }
        for (reason, count) in &report.dropped {
            tally.add(Layer::Redact, "redact.dropped", reason, narrow(*count));
        }
        tally.add(
            Layer::Redact,
            "redact.forged",
            "token",
            narrow(report.forged),
        );
        tally.add(
            Layer::Redact,
            "redact.allowed",
            "site",
            narrow(report.allowed),
        );
        for (class, count) in &self.removed {
            let code = if *class == injection::CTL {
                "inject.ctl"
            } else {
                "inject.removed"
            };
            tally.add(Layer::Inject, code, class, *count);
        }
        if self.contested {
            tally.add(Layer::Inject, "inject.contested", "share", 1);
        }
        Done {
            events: tally.events(id),
            redactions,
            removed: self.count,
        }
    }
}

/// Bytes of all texts of a payload.
fn text_bytes(payload: &Payload) -> u64 {
    let mut count = Counter(0);
    // Counting cannot fail: the writer takes everything and the type serialises.
    let _ = serde_json::to_writer(&mut count, payload);
    count.0
}

struct Counter(u64);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
