//! What the interlocks look at: the facts of one moment, without the words around them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::preconditions::{self, ConditionFact};
use crate::claim::{Evidence, Provenance};
use crate::diagnosis::{Case, Diagnosis, ExecutorFact, Hypothesis, Onset};
use crate::diagnosis::{ExternalCheck, ParamValue, ToolFailure};
use crate::model::{
    AlertStatus, CauseClass, Deploy, DeployStatus, EvidenceId, IncidentId, Millis, Payload,
    RemediationClass,
};

/// An action of this or another incident that the guard knows of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecentAction {
    /// The incident that it belongs to.
    pub incident: IncidentId,
    /// Its class.
    pub class: RemediationClass,
    /// Its target.
    pub target: String,
    /// When it was executed, or released for execution.
    pub at: Millis,
    /// True while it runs or its outcome is in doubt.
    pub in_progress: bool,
}

/// A deploy record without its diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeployFact {
    pub(super) id: String,
    pub(super) service: String,
    pub(super) version: String,
    pub(super) previous: Option<String>,
    pub(super) previous_available: bool,
    pub(super) started_at: Millis,
    pub(super) status: DeployStatus,
}

impl DeployFact {
    fn of(deploy: &Deploy) -> Self {
        Self {
            id: deploy.id.clone(),
            service: deploy.service.clone(),
            version: deploy.version.clone(),
            previous: deploy.previous_version.clone(),
            previous_available: deploy.previous_available,
            started_at: deploy.started_at,
            status: deploy.status,
        }
    }
}

/// What the deploy source answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HistoryFact {
    pub(super) covers_from: Millis,
    pub(super) covers_to: Millis,
    pub(super) truncated: bool,
    pub(super) in_force: BTreeMap<String, String>,
    pub(super) deploys: Vec<DeployFact>,
}

/// One piece of evidence, as far as an interlock needs to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PieceFact {
    pub(super) from: Millis,
    pub(super) to: Millis,
    /// The source or the tool left something out.
    pub(super) partial: bool,
    /// The redactor had to drop so much that what is left may mislead (guard rails 2.5.2), or so
    /// much of it read like instructions that it is contested (7.8 b).
    pub(super) degraded: bool,
}

/// The facts of one moment.
#[derive(Clone, Debug)]
pub struct Facts {
    pub(super) inventory: BTreeSet<String>,
    pub(super) investigated: BTreeSet<String>,
    pub(super) alert_active: bool,
    pub(super) executors: Vec<ExecutorFact>,
    pub(super) failed_tools: Vec<ToolFailure>,
    pub(super) history: Option<HistoryFact>,
    pub(super) pieces: BTreeMap<EvidenceId, PieceFact>,
    pub(super) tainted: BTreeSet<String>,
    pub(super) recent: Vec<RecentAction>,
    pub(super) conditions: Vec<ConditionFact>,
    pub(super) onset: Option<Onset>,
    pub(super) verdict: CauseClass,
    pub(super) hypotheses: Vec<Hypothesis>,
    pub(super) checks: Vec<ExternalCheck>,
}

impl Facts {
    /// Collects the facts for judging what `diagnosis` led to. Call it again with a fresh case
    /// before an approval is issued and before an execution.
    #[must_use]
    pub fn new(case: &Case<'_>, diagnosis: &Diagnosis, recent: &[RecentAction]) -> Self {
        Self {
            inventory: case.inventory.iter().cloned().collect(),
            investigated: investigated(case),
            alert_active: case.alerts.iter().any(|a| a.status == AlertStatus::Firing),
            executors: case.capabilities.to_vec(),
            failed_tools: case.failed_tools.to_vec(),
            history: history(case),
            pieces: case.evidence.iter().map(piece).collect(),
            tainted: tainted(case, diagnosis),
            recent: recent.to_vec(),
            conditions: preconditions::collect(
                case,
                &targets(diagnosis),
                diagnosis.onset.as_ref().map(|o| o.at),
            ),
            onset: diagnosis.onset.clone(),
            verdict: diagnosis.verdict.cause_class,
            hypotheses: diagnosis.hypotheses.clone(),
            checks: diagnosis.checks.clone(),
        }
    }

    pub(super) fn hypothesis(&self, id: Option<&str>) -> Option<&Hypothesis> {
        let id = id?;
        self.hypotheses.iter().find(|h| h.id == id)
    }

    pub(super) fn deploy(&self, id: &str) -> Option<&DeployFact> {
        self.history.as_ref()?.deploys.iter().find(|d| d.id == id)
    }
}

/// The services that a hypothesis would act on, each once.
fn targets(diagnosis: &Diagnosis) -> Vec<String> {
    let named = diagnosis.hypotheses.iter().map(|h| &h.remediation.target);
    let unique: BTreeSet<&String> = named.collect();
    unique.into_iter().cloned().collect()
}

fn piece(evidence: &Evidence) -> (EvidenceId, PieceFact) {
    let meta = evidence.meta();
    let fact = PieceFact {
        from: meta.window.from,
        to: meta.window.to,
        partial: meta.partial.is_some(),
        degraded: is_degraded(evidence) || evidence.stats().contested,
    };
    (evidence.id(), fact)
}

/// More than one line in ten was dropped whole.
fn is_degraded(evidence: &Evidence) -> bool {
    let dropped = |line: &&String| line.contains("\u{2039}dropped:");
    let count = evidence.lines().iter().filter(dropped).count();
    count.saturating_mul(10) > evidence.lines().len()
}

/// The services that a tool of this run returned evidence about. A call graph or a runbook is
/// evidence about no service.
fn investigated(case: &Case<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for evidence in case.evidence {
        match evidence.payload() {
            Payload::Logs { sources, lines } => {
                let seen = lines.iter().filter_map(|l| sources.get(l.source));
                found.extend(seen.map(|s| s.service.clone()));
            }
            Payload::Metrics { series, .. } => {
                let seen = series.iter().filter(|s| !s.points.is_empty());
                found.extend(seen.map(|s| s.service.clone()));
            }
            Payload::Deploys { history } => {
                found.extend(history.deploys.iter().map(|d| d.service.clone()));
            }
            Payload::Units { events } => found.extend(events.iter().map(|e| e.service.clone())),
            Payload::Alerts { .. } | Payload::Topology { .. } | Payload::Runbooks { .. } => {}
        }
    }
    found
}

/// The deploy history of the newest answer.
fn history(case: &Case<'_>) -> Option<HistoryFact> {
    let answered = case.evidence.iter().filter_map(|e| match e.payload() {
        Payload::Deploys { history } => Some(history),
        Payload::Alerts { .. }
        | Payload::Logs { .. }
        | Payload::Metrics { .. }
        | Payload::Units { .. }
        | Payload::Topology { .. }
        | Payload::Runbooks { .. } => None,
    });
    let newest = answered.max_by_key(|h| h.covers_to)?;
    Some(HistoryFact {
        covers_from: newest.covers_from,
        covers_to: newest.covers_to,
        truncated: newest.truncated,
        in_force: newest.in_force.clone(),
        deploys: newest.deploys.iter().map(DeployFact::of).collect(),
    })
}

/// Values of remediations that occur in evidence, but only where anybody can write. A value that
/// occurs nowhere comes from the site's own configuration.
fn tainted(case: &Case<'_>, diagnosis: &Diagnosis) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    for hypothesis in &diagnosis.hypotheses {
        values.insert(hypothesis.remediation.target.clone());
        for value in hypothesis.remediation.change.values() {
            match value {
                ParamValue::Text(text) => {
                    values.insert(text.clone());
                }
                ParamValue::Int(_) | ParamValue::Bool(_) => {}
            }
        }
    }
    let onset = diagnosis.onset.as_ref().map(|o| o.at);
    let mut best: BTreeMap<String, Provenance> = BTreeMap::new();
    for evidence in case.evidence {
        for (value, found) in evidence.provenances(&values, onset) {
            let slot = best.entry(value).or_insert(found);
            *slot = (*slot).min(found);
        }
    }
    values.retain(|value| best.get(value).is_some_and(|p| p.is_tainted()));
    values
}
