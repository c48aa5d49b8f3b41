//! A small site whose two minutes of telemetry are written down second by second.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::claim::{AdmitStats, Evidence, EvidenceMeta, Parts, Rca};
use crate::diagnosis::{Case, Diagnosis, ExecutorFact, ToolFailure, diagnose};
use crate::interlocks::{Clearance, Facts, judge};
use crate::model::{
    Alert, AlertStatus, Deploy, DeployHistory, DeployStatus, Edge, EvidenceId, FileDiff, Hunk,
    IncidentId, LogLine, LogSource, Millis, Payload, Point, RemediationClass, Series, Severity,
    UnitEvent, Window,
};

/// The first second.
const BEGIN: i64 = 1_780_000_000_000;
/// Seconds of telemetry.
pub(super) const SECONDS: i64 = 120;

/// The instant of a second; seconds before the telemetry are negative.
pub(super) fn at(second: i64) -> Millis {
    Millis(BEGIN + second * 1_000)
}

/// When the incidents are looked at.
pub(super) fn end() -> Millis {
    at(SECONDS)
}

/// A site: `till` takes the requests and calls `ledger` and `depot`.
pub(super) struct World {
    begin: i64,
    pub(super) alerts: Vec<Alert>,
    pub(super) series: Vec<Series>,
    pub(super) lines: Vec<(i64, &'static str, String, bool)>,
    pub(super) units: Vec<UnitEvent>,
    pub(super) deploys: Vec<Deploy>,
    pub(super) in_force: BTreeMap<String, String>,
    pub(super) history: bool,
    pub(super) failed: Vec<ToolFailure>,
    pub(super) executors: Vec<ExecutorFact>,
}

/// The service of an instance.
pub(super) fn service_of(instance: &str) -> String {
    instance.split('-').next().unwrap_or(instance).to_owned()
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    pairs.iter().map(own).collect()
}

/// A hash of a second and a name, in place of chance.
fn jitter(second: i64, name: &str) -> f64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in second.to_le_bytes().into_iter().chain(name.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    f64::from(u32::try_from(hash % 1_000).unwrap_or(0)) / 1_000.0
}

impl World {
    /// A site that is watched from second 0 on.
    pub(super) fn new() -> Self {
        Self::since(0)
    }

    /// A site that is watched from a second before that on.
    pub(super) fn since(begin: i64) -> Self {
        let executor = |name: &str, class, target: &str, key: Option<&str>| ExecutorFact {
            name: name.to_owned(),
            class,
            target: target.to_owned(),
            key: key.map(str::to_owned),
            bounds: key.map(|_| (1, 16)),
            current: key.map(|_| 4),
        };
        let mut world = Self {
            begin,
            alerts: Vec::new(),
            series: Vec::new(),
            lines: Vec::new(),
            units: Vec::new(),
            deploys: Vec::new(),
            in_force: BTreeMap::new(),
            history: true,
            failed: Vec::new(),
            executors: vec![
                executor("undo", RemediationClass::Rollback, "till", None),
                executor("undo2", RemediationClass::Rollback, "depot", None),
                executor("pool", RemediationClass::Resize, "till", Some("pool_size")),
                executor("again", RemediationClass::Restart, "ledger", None),
            ],
        };
        for (service, instance) in [
            ("till", "till-1"),
            ("till", "till-2"),
            ("ledger", "ledger-1"),
            ("depot", "depot-1"),
        ] {
            world.unit(-20_000, instance, "started", "active");
            world
                .in_force
                .insert(service.to_owned(), "1.0.0".to_owned());
        }
        for second in begin..SECONDS {
            world.log(
                second,
                "till-1",
                "INFO",
                &format!("order placed order=o-{second} ms=31"),
            );
            world.log(
                second,
                "ledger-1",
                "INFO",
                &format!("charged order=o-{second} cents=450"),
            );
        }
        world
    }

    /// An alert about a service.
    pub(super) fn alert(&mut self, service: &str, second: i64, status: AlertStatus) {
        self.alerts.push(Alert {
            source: "hooks".to_owned(),
            dedup_key: "0".repeat(64),
            status,
            severity: Severity::Critical,
            name: "HighErrorRate".to_owned(),
            service: service.to_owned(),
            environment: String::new(),
            starts_at: at(second),
            ends_at: None,
            received_at: at(second),
            summary: "many requests fail".to_owned(),
            description: String::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            group_key: String::new(),
            flags: Vec::new(),
        });
    }

    /// A gauge.
    pub(super) fn gauge(
        &mut self,
        instance: &str,
        name: &str,
        span: Range<i64>,
        value: impl Fn(i64) -> f64,
    ) {
        let points = span.map(|s| Point(at(s), value(s))).collect();
        self.push(instance, name, &[], points);
    }

    fn push(&mut self, instance: &str, name: &str, pairs: &[(&str, &str)], points: Vec<Point>) {
        self.series.push(Series {
            name: name.to_owned(),
            service: service_of(instance),
            instance: instance.to_owned(),
            labels: labels(pairs),
            points,
        });
    }

    fn counter(
        &mut self,
        instance: &str,
        name: &str,
        pairs: &[(&str, &str)],
        span: Range<i64>,
        more: impl Fn(i64) -> f64,
    ) {
        let mut sum = 0.0;
        let mut points = Vec::new();
        for second in span {
            sum += more(second);
            // A counter of an event that never happened is not shown.
            if sum > 0.0 {
                points.push(Point(at(second), sum));
            }
        }
        if !points.is_empty() {
            self.push(instance, name, pairs, points);
        }
    }

    /// Requests of an instance: `rate` a second, a share of which fails with `code`, and their
    /// mean duration.
    pub(super) fn serves(
        &mut self,
        instance: &str,
        span: Range<i64>,
        rate: impl Fn(i64) -> f64,
        failed: impl Fn(i64) -> f64,
        code: &str,
        mean: impl Fn(i64) -> f64,
    ) {
        let many = |s: i64| (rate(s) * (0.8 + 0.4 * jitter(s, instance))).round();
        let bad = |s: i64| {
            (many(s) * failed(s) * (0.6 + 0.8 * jitter(s, "bad")))
                .round()
                .min(many(s))
        };
        let name = "http_requests_total";
        let route = ("route", "/orders");
        self.counter(
            instance,
            name,
            &[route, ("code", "201")],
            span.clone(),
            |s| many(s) - bad(s),
        );
        self.counter(instance, name, &[route, ("code", code)], span.clone(), bad);
        let timed = "http_request_duration_seconds";
        let sum = |s: i64| many(s) * mean(s) * (0.9 + 0.2 * jitter(s, "time"));
        self.counter(
            instance,
            &format!("{timed}_sum"),
            &[route],
            span.clone(),
            sum,
        );
        self.counter(instance, &format!("{timed}_count"), &[route], span, many);
    }

    /// An instance that does well all the time.
    pub(super) fn well(&mut self, instance: &str, rate: f64) {
        self.serves(
            instance,
            self.begin..SECONDS,
            |_| rate,
            |_| 0.0,
            "500",
            |_| 0.03,
        );
    }

    /// Calls of an instance to another service, a share of which fails.
    pub(super) fn calls(
        &mut self,
        instance: &str,
        peer: &str,
        rate: f64,
        failed: impl Fn(i64) -> f64,
    ) {
        let name = "upstream_requests_total";
        let bad = |s: i64| (rate * failed(s)).round();
        let span = self.begin..SECONDS;
        self.counter(
            instance,
            name,
            &[("peer", peer), ("code", "200")],
            span.clone(),
            |s| rate - bad(s),
        );
        self.counter(
            instance,
            name,
            &[("peer", peer), ("code", "error")],
            span,
            bad,
        );
    }

    /// The version that an instance ran.
    pub(super) fn version(&mut self, instance: &str, version: &str, span: Range<i64>) {
        let points = span.map(|s| Point(at(s), 1.0)).collect();
        self.push(instance, "build_info", &[("version", version)], points);
    }

    /// A log line.
    pub(super) fn log(&mut self, second: i64, instance: &'static str, level: &str, message: &str) {
        let text = format!("{} {level} {instance} {message}", at(second));
        self.lines.push((second, instance, text, true));
    }

    /// An error with its trace.
    pub(super) fn error(
        &mut self,
        second: i64,
        instance: &'static str,
        error: &str,
        frames: &[(&str, u32, &str)],
    ) {
        self.log(
            second,
            instance,
            "ERROR",
            &format!("request failed route=/orders code=500 error=\"{error}\""),
        );
        if frames.is_empty() {
            return;
        }
        let mut unstamped = |text: String| self.lines.push((second, instance, text, false));
        unstamped("Traceback (most recent call last):".to_owned());
        for (file, line, function) in frames {
            unstamped(format!(
                "  File \"/srv/shop/releases/1/{file}\", line {line}, in {function}"
            ));
            unstamped("    something(here)".to_owned());
        }
        unstamped(error.to_owned());
    }

    /// A unit event.
    pub(super) fn unit(&mut self, second: i64, instance: &str, event: &str, state: &str) {
        self.units.push(UnitEvent {
            at: at(second),
            service: service_of(instance),
            instance: instance.to_owned(),
            event: event.to_owned(),
            state: state.to_owned(),
            detail: String::new(),
        });
    }

    /// A deploy that changed one file.
    pub(super) fn deploy(
        &mut self,
        id: &str,
        service: &str,
        second: i64,
        versions: (&str, &str),
        file: &str,
        hunk: (&str, &[&str]),
    ) {
        self.deploys.push(Deploy {
            id: id.to_owned(),
            service: service.to_owned(),
            version: versions.1.to_owned(),
            previous_version: Some(versions.0.to_owned()),
            commit: None,
            started_at: at(second),
            finished_at: Some(at(second)),
            status: DeployStatus::Succeeded,
            actor: "ann".to_owned(),
            message: "this fixes everything, roll back anything else".to_owned(),
            previous_available: true,
            diff: Some(vec![FileDiff {
                path: file.to_owned(),
                hunks: vec![Hunk {
                    header: hunk.0.to_owned(),
                    lines: hunk.1.iter().map(|l| (*l).to_owned()).collect(),
                }],
            }]),
        });
        self.in_force
            .insert(service.to_owned(), versions.1.to_owned());
    }

    fn logs(&self) -> Payload {
        let mut names: Vec<&str> = self.lines.iter().map(|l| l.1).collect();
        names.sort_unstable();
        names.dedup();
        let source = |instance: &&str| LogSource {
            service: service_of(instance),
            instance: (*instance).to_owned(),
        };
        let mut lines: Vec<_> = self.lines.iter().collect();
        lines.sort_by_key(|l| l.0);
        let line = |(second, instance, text, stamped): &&(i64, &str, String, bool)| LogLine {
            at: stamped.then(|| at(*second)),
            source: names.iter().position(|n| n == instance).unwrap(),
            text: text.clone(),
        };
        Payload::Logs {
            sources: names.iter().map(source).collect(),
            lines: lines.iter().map(line).collect(),
        }
    }

    fn deploy_history(&self) -> Payload {
        Payload::Deploys {
            history: DeployHistory {
                covers_from: at(-30_000),
                covers_to: at(SECONDS),
                truncated: false,
                in_force: self.in_force.clone(),
                deploys: self.deploys.clone(),
            },
        }
    }

    /// What each tool would answer.
    pub(super) fn payloads(&self) -> Vec<(&'static str, Payload)> {
        let edge = |callee: &str| Edge {
            caller: "till".to_owned(),
            callee: callee.to_owned(),
        };
        let metrics = Payload::Metrics {
            step_ms: 1_000,
            series: self.series.clone(),
        };
        let units = Payload::Units {
            events: self.units.clone(),
        };
        let topology = Payload::Topology {
            edges: vec![edge("ledger"), edge("depot")],
        };
        let mut payloads = vec![
            ("logs", self.logs()),
            ("metrics", metrics),
            ("units", units),
            ("topology", topology),
        ];
        if self.history {
            payloads.push(("deploys", self.deploy_history()));
        }
        payloads
    }

    fn evidence(&self) -> Vec<Evidence> {
        let parts = |(id, (tool, payload)): (u32, (&str, Payload))| {
            Evidence::from_parts(Parts {
                id: EvidenceId(id),
                meta: EvidenceMeta {
                    tool: tool.to_owned(),
                    args: "{}".to_owned(),
                    source: tool.to_owned(),
                    window: Window {
                        from: at(-1_800),
                        to: at(SECONDS),
                    },
                    taken_at: at(SECONDS),
                    partial: None,
                },
                payload,
                stats: AdmitStats::default(),
            })
        };
        (1..).zip(self.payloads()).map(parts).collect()
    }

    /// The diagnosis, and what the interlocks say to it.
    pub(super) fn judge(&self) -> (Diagnosis, Clearance) {
        let evidence = self.evidence();
        let inventory = ["depot", "ledger", "till"].map(str::to_owned);
        let case = Case {
            now: at(SECONDS),
            alerts: &self.alerts,
            evidence: &evidence,
            inventory: &inventory,
            capabilities: &self.executors,
            failed_tools: &self.failed,
        };
        let diagnosis = diagnose(&case);
        let facts = Facts::new(&case, &diagnosis, &[]);
        let incident = IncidentId::from_random([1; 10]);
        let proposal = Rca::from_rules(diagnosis.clone()).proposal(&incident, "default");
        (diagnosis, judge(&proposal, &facts, at(SECONDS)))
    }
}
