//! The evidence of a case, laid out for the engines: one list per kind, oldest first, each row with
//! the citation that it would be quoted by.

use std::collections::{BTreeMap, BTreeSet};

use super::{Case, Cite, ExecutorFact, ToolFailure};
use crate::claim::{Evidence, LineOf};
use crate::model::{
    Alert, AlertStatus, Deploy, DeployHistory, Edge, LogSource, Millis, Payload, RemediationClass,
    Series, UnitEvent,
};

/// A log line.
pub(super) struct LogRow<'a> {
    /// Time of the line; an unstamped line has that of the one before it.
    pub(super) at: Millis,
    /// True when the line bears a time itself, and so begins a record.
    pub(super) stamped: bool,
    pub(super) source: &'a LogSource,
    pub(super) text: &'a str,
    pub(super) cite: Cite,
}

/// A series.
pub(super) struct SeriesRow<'a> {
    pub(super) series: &'a Series,
    pub(super) step_ms: i64,
    pub(super) cite: Cite,
}

/// A deploy record.
pub(super) struct DeployRow<'a> {
    pub(super) deploy: &'a Deploy,
    pub(super) cite: Cite,
    index: usize,
    evidence: &'a Evidence,
}

impl DeployRow<'_> {
    /// The citation of one hunk of it.
    pub(super) fn hunk(&self, file: usize, hunk: usize) -> Cite {
        cite(self.evidence, LineOf::Hunk(self.index, file, hunk))
    }
}

/// A unit event.
pub(super) struct UnitRow<'a> {
    pub(super) event: &'a UnitEvent,
    pub(super) cite: Cite,
}

/// Kinds of tools that answered, with anything or with nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tool {
    Logs,
    Metrics,
    Deploys,
    Units,
    Topology,
}

impl Tool {
    /// The name by which the registry knows it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Metrics => "metrics",
            Self::Deploys => "deploys",
            Self::Units => "units",
            Self::Topology => "topology",
        }
    }
}

/// The evidence of a case.
pub(super) struct View<'a> {
    pub(super) now: Millis,
    pub(super) alerts: &'a [Alert],
    pub(super) inventory: &'a [String],
    pub(super) capabilities: &'a [ExecutorFact],
    pub(super) failed_tools: &'a [ToolFailure],
    /// Services that the firing alerts name; of all alerts when none fires.
    pub(super) loud: BTreeSet<&'a str>,
    pub(super) answered: BTreeSet<Tool>,
    pub(super) logs: Vec<LogRow<'a>>,
    pub(super) series: Vec<SeriesRow<'a>>,
    pub(super) units: Vec<UnitRow<'a>>,
    pub(super) history: Option<&'a DeployHistory>,
    /// The citation of the history as a whole.
    pub(super) history_cite: Option<Cite>,
    pub(super) deploys: Vec<DeployRow<'a>>,
    pub(super) edges: Vec<(&'a Edge, Cite)>,
    /// The newest instant that any series shows.
    pub(super) last_sample: Option<Millis>,
}

impl<'a> View<'a> {
    pub(super) fn new(case: &Case<'a>) -> Self {
        let mut view = Self {
            now: case.now,
            alerts: case.alerts,
            inventory: case.inventory,
            capabilities: case.capabilities,
            failed_tools: case.failed_tools,
            loud: loud(case.alerts),
            answered: BTreeSet::new(),
            logs: Vec::new(),
            series: Vec::new(),
            units: Vec::new(),
            history: None,
            history_cite: None,
            deploys: Vec::new(),
            edges: Vec::new(),
            last_sample: None,
        };
        let mut seen = BTreeMap::new();
        for evidence in case.evidence {
            view.add(evidence, &mut seen);
        }
        view.logs.sort_by_key(|row| row.at);
        view.units.sort_by_key(|row| row.event.at);
        view.deploys.sort_by_key(|row| row.deploy.started_at);
        let last = |row: &SeriesRow<'_>| row.series.points.last().map(|p| p.0);
        view.last_sample = view.series.iter().filter_map(last).max();
        view
    }

    fn add(&mut self, evidence: &'a Evidence, seen: &mut BTreeMap<SeriesKey<'a>, usize>) {
        match evidence.payload() {
            Payload::Logs { sources, .. } => {
                self.answered.insert(Tool::Logs);
                self.add_logs(evidence, sources);
            }
            Payload::Metrics { step_ms, series } => {
                self.answered.insert(Tool::Metrics);
                for (i, one) in series.iter().enumerate() {
                    self.add_series(one, *step_ms, cite(evidence, LineOf::Series(i)), seen);
                }
            }
            Payload::Deploys { history } => {
                self.answered.insert(Tool::Deploys);
                self.add_deploys(evidence, history);
            }
            Payload::Units { events } => {
                self.answered.insert(Tool::Units);
                for (i, event) in events.iter().enumerate() {
                    if self.units.iter().all(|known| known.event != event) {
                        let cite = cite(evidence, LineOf::Unit(i));
                        self.units.push(UnitRow { event, cite });
                    }
                }
            }
            Payload::Topology { edges } => {
                self.answered.insert(Tool::Topology);
                let rows = edges.iter().enumerate();
                self.edges
                    .extend(rows.map(|(i, e)| (e, cite(evidence, LineOf::Edge(i)))));
            }
            Payload::Alerts { .. } | Payload::Runbooks { .. } => {}
        }
    }

    fn add_logs(&mut self, evidence: &'a Evidence, sources: &'a [LogSource]) {
        let Payload::Logs { lines, .. } = evidence.payload() else {
            return;
        };
        let overlaps = !self.logs.is_empty();
        let known: BTreeSet<(Millis, &str, &str)> = self
            .logs
            .iter()
            .filter(|_| overlaps)
            .map(|r| (r.at, r.source.instance.as_str(), r.text))
            .collect();
        let mut last: BTreeMap<usize, Millis> = BTreeMap::new();
        for (i, line) in lines.iter().enumerate() {
            let Some(source) = sources.get(line.source) else {
                continue;
            };
            let at = line
                .at
                .or_else(|| last.get(&line.source).copied())
                .unwrap_or(evidence.meta().window.from);
            last.insert(line.source, at);
            let text = line.text.as_str();
            if known.contains(&(at, source.instance.as_str(), text)) {
                continue;
            }
            self.logs.push(LogRow {
                at,
                stamped: line.at.is_some(),
                source,
                text,
                cite: cite(evidence, LineOf::Log(i)),
            });
        }
    }

    /// Of a series that two answers hold, the one with more points stays.
    fn add_series(
        &mut self,
        series: &'a Series,
        step_ms: i64,
        cite: Cite,
        seen: &mut BTreeMap<SeriesKey<'a>, usize>,
    ) {
        let key = (
            series.service.as_str(),
            series.instance.as_str(),
            series.name.as_str(),
            &series.labels,
        );
        let row = SeriesRow {
            series,
            step_ms,
            cite,
        };
        match seen.get(&key).and_then(|at| self.series.get_mut(*at)) {
            Some(known) if known.series.points.len() >= series.points.len() => {}
            Some(known) => *known = row,
            None => {
                seen.insert(key, self.series.len());
                self.series.push(row);
            }
        }
    }

    fn add_deploys(&mut self, evidence: &'a Evidence, history: &'a DeployHistory) {
        let older = self
            .history
            .is_some_and(|h| h.covers_to >= history.covers_to);
        if older {
            return;
        }
        self.history = Some(history);
        self.history_cite = Some(Cite {
            evidence: evidence.id(),
            line: None,
        });
        let rows = history.deploys.iter().enumerate();
        self.deploys = rows
            .map(|(index, deploy)| DeployRow {
                deploy,
                cite: cite(evidence, LineOf::Deploy(index)),
                index,
                evidence,
            })
            .collect();
    }

    /// The newest version of a service by the release link, else by its newest deploy.
    pub(super) fn in_force(&self, service: &str) -> Option<&'a str> {
        self.history?.in_force.get(service).map(String::as_str)
    }

    /// The executor of a class for a service.
    pub(super) fn executor(&self, class: RemediationClass, service: &str) -> Option<&ExecutorFact> {
        self.capabilities
            .iter()
            .find(|e| e.class == class && e.target == service)
    }

    /// True when a tool of this site was asked and could not answer.
    pub(super) fn failed(&self, tool: Tool) -> bool {
        self.failed_tools.iter().any(|f| f.tool == tool.name())
    }

    /// True when a service belongs to the site.
    pub(super) fn is_ours(&self, service: &str) -> bool {
        self.inventory.iter().any(|name| name == service)
    }
}

type SeriesKey<'a> = (&'a str, &'a str, &'a str, &'a BTreeMap<String, String>);

fn cite(evidence: &Evidence, item: LineOf) -> Cite {
    Cite {
        evidence: evidence.id(),
        line: evidence.line_of(item),
    }
}

fn loud(alerts: &[Alert]) -> BTreeSet<&str> {
    let named = |wanted: Option<AlertStatus>| -> BTreeSet<&str> {
        alerts
            .iter()
            .filter(|a| wanted.is_none_or(|status| a.status == status))
            .map(|a| a.service.as_str())
            .filter(|service| !service.is_empty())
            .collect()
    };
    let firing = named(Some(AlertStatus::Firing));
    if firing.is_empty() {
        named(None)
    } else {
        firing
    }
}
