//! Conditions of runbooks against the evidence of this run (guard rails 11.3).

use crate::claim::Evidence;
use crate::diagnosis::Case;
use crate::model::{
    AlertStatus, Condition, Millis, Payload, Preconditions, Predicate, RemediationClass, Series,
};

/// What a condition came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    const fn of(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }

    const fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// One condition of a runbook that was found for this incident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConditionFact {
    pub(super) action: RemediationClass,
    /// The service that it was evaluated for.
    pub(super) target: String,
    /// File, line and words.
    pub(super) place: String,
    /// Whether it is as the runbook wants it.
    pub(super) met: Truth,
}

/// Every condition of every runbook found, for each service that could be a target.
pub(super) fn collect(
    case: &Case<'_>,
    targets: &[String],
    onset: Option<Millis>,
) -> Vec<ConditionFact> {
    let mut found: Vec<ConditionFact> = Vec::new();
    for (document, conditions) in documents(case.evidence) {
        for target in targets {
            let wanted = conditions.requires.iter().map(|c| (c, true));
            let unwanted = conditions.forbids.iter().map(|c| (c, false));
            for (condition, want) in wanted.chain(unwanted) {
                let holds = evaluate(condition, target, case, onset);
                let fact = ConditionFact {
                    action: conditions.action,
                    target: target.clone(),
                    place: format!("{document}:{} `{}`", condition.line, condition.text),
                    met: if want { holds } else { holds.not() },
                };
                // Several sections of one document have the same front matter.
                if !found.contains(&fact) {
                    found.push(fact);
                }
            }
        }
    }
    found
}

fn documents(evidence: &[Evidence]) -> impl Iterator<Item = (&str, &Preconditions)> {
    evidence
        .iter()
        .filter_map(|e| match e.payload() {
            Payload::Runbooks { sections } => Some(sections),
            Payload::Alerts { .. }
            | Payload::Logs { .. }
            | Payload::Metrics { .. }
            | Payload::Deploys { .. }
            | Payload::Units { .. }
            | Payload::Topology { .. } => None,
        })
        .flatten()
        .filter_map(|s| Some((s.document.as_str(), s.preconditions.as_ref()?)))
}

fn evaluate(condition: &Condition, target: &str, case: &Case<'_>, onset: Option<Millis>) -> Truth {
    match &condition.predicate {
        Predicate::DeployWithin(span) => deploy_within(case, target, *span, onset),
        Predicate::Metric { name, is, value } => series(case, target)
            .filter(|s| s.name == *name)
            .filter_map(|s| s.points.last())
            .map(|point| is.holds(point.1, *value))
            .reduce(|a, b| a && b)
            .map_or(Truth::Unknown, Truth::of),
        Predicate::Replicas { is, value } => {
            let mut instances: Vec<&str> =
                series(case, target).map(|s| s.instance.as_str()).collect();
            instances.sort_unstable();
            instances.dedup();
            if instances.is_empty() {
                return Truth::Unknown;
            }
            let count = u32::try_from(instances.len()).map_or(f64::INFINITY, f64::from);
            Truth::of(is.holds(count, *value))
        }
        Predicate::Healthy(service) => healthy(case, service),
        Predicate::EvidenceKind(tool) => {
            Truth::of(case.evidence.iter().any(|e| e.meta().tool == *tool))
        }
        Predicate::AlertLabel { name, value } => Truth::of(
            case.alerts
                .iter()
                .filter(|a| a.status == AlertStatus::Firing)
                .any(|a| a.labels.get(name) == Some(value)),
        ),
        // No source of this version says whether a service keeps state.
        Predicate::Stateless | Predicate::Unreadable => Truth::Unknown,
    }
}

fn series<'c>(case: &'c Case<'_>, target: &'c str) -> impl Iterator<Item = &'c Series> {
    case.evidence
        .iter()
        .filter_map(|e| match e.payload() {
            Payload::Metrics { series, .. } => Some(series),
            Payload::Alerts { .. }
            | Payload::Logs { .. }
            | Payload::Deploys { .. }
            | Payload::Units { .. }
            | Payload::Topology { .. }
            | Payload::Runbooks { .. } => None,
        })
        .flatten()
        .filter(move |s| s.service == target)
}

fn deploy_within(case: &Case<'_>, target: &str, span: i64, onset: Option<Millis>) -> Truth {
    let Some(onset) = onset else {
        return Truth::Unknown;
    };
    let mut asked = false;
    for evidence in case.evidence {
        if let Payload::Deploys { history } = evidence.payload() {
            asked |= history.covers_from <= onset.plus(-span);
            let near = |at: Millis| at <= onset && onset.since(at) <= span;
            if history
                .deploys
                .iter()
                .any(|d| d.service == target && near(d.started_at))
            {
                return Truth::True;
            }
        }
    }
    if asked { Truth::False } else { Truth::Unknown }
}

/// By the newest event of each instance.
fn healthy(case: &Case<'_>, service: &str) -> Truth {
    let mut newest: std::collections::BTreeMap<&str, (Millis, bool)> =
        std::collections::BTreeMap::new();
    for evidence in case.evidence {
        if let Payload::Units { events } = evidence.payload() {
            for event in events.iter().filter(|e| e.service == service) {
                let slot = newest
                    .entry(event.instance.as_str())
                    .or_insert((event.at, false));
                if event.at >= slot.0 {
                    *slot = (event.at, event.state == "active");
                }
            }
        }
    }
    if newest.is_empty() {
        return Truth::Unknown;
    }
    Truth::of(newest.values().all(|(_, active)| *active))
}

#[cfg(test)]
mod tests {
    use super::{Truth, collect};
    use crate::diagnosis::Case;
    use crate::model::{
        EvidenceId, Millis, Payload, Point, RunbookSection, Series, UnitEvent, front_matter,
    };

    fn admitted(tool: &str, id: u32, payload: &Payload) -> crate::claim::Evidence {
        let raw = crate::claim::RawOutput::new(serde_json::to_vec(payload).unwrap());
        let (meta, key) = (crate::admit::tests::meta(tool), crate::admit::tests::key());
        crate::admit::evidence(EvidenceId(id), meta, raw, &key)
            .unwrap()
            .evidence
    }

    fn found_runbook(front: &str) -> Payload {
        let (preconditions, errors) = front_matter("till.md", front);
        assert_eq!(errors, []);
        let section = RunbookSection {
            document: "till.md".into(),
            heading: "Till".into(),
            line: 1,
            text: "Words.".into(),
            score: 1.0,
            preconditions,
        };
        Payload::Runbooks {
            sections: vec![section.clone(), section],
        }
    }

    fn queue(instance: &str) -> Series {
        Series {
            name: "queue".into(),
            service: "till".into(),
            instance: instance.into(),
            labels: std::collections::BTreeMap::new(),
            points: vec![Point(Millis(1), 4.0)],
        }
    }

    fn state(at: i64, state: &str) -> UnitEvent {
        UnitEvent {
            at: Millis(at),
            service: "till".into(),
            instance: "till-1".into(),
            event: "state".into(),
            state: state.into(),
            detail: String::new(),
        }
    }

    #[test]
    fn r11_3_each_predicate_is_true_false_or_unknown_by_the_evidence() {
        let front = "---\nsentinel:\n  action: restart\n  requires: [metric queue <= 5, replicas >= 2, healthy till, evidence_kind units, stateless, deploy_within 1h]\n  forbids: [healthy till, metric queue < 9, metric absent < 1]\n---\n";
        let metrics = Payload::Metrics {
            step_ms: 1,
            series: vec![queue("till-1"), queue("till-2")],
        };
        let units = Payload::Units {
            events: vec![state(1, "failed"), state(2, "active")],
        };
        let evidence = [
            admitted("runbooks", 1, &found_runbook(front)),
            admitted("metrics", 2, &metrics),
            admitted("units", 3, &units),
        ];
        let case = Case {
            now: Millis(9),
            alerts: &[],
            evidence: &evidence,
            inventory: &[],
            capabilities: &[],
            failed_tools: &[],
        };
        let facts = collect(&case, &["till".to_owned()], Some(Millis(5)));
        let met: Vec<Truth> = facts.iter().map(|f| f.met).collect();
        let (yes, no, open) = (Truth::True, Truth::False, Truth::Unknown);
        assert_eq!(met, [yes, yes, yes, yes, open, open, no, no, open]);
        let place = &facts.first().unwrap().place;
        assert!(place.starts_with("till.md:4 "), "{place}");
    }
}
