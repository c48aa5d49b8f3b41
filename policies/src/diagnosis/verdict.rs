//! From candidates to a ranked list and a conclusion (D15, D16).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::board::{Board, Candidate};
use super::view::View;
use super::weights::{FLOOR, HIGH, MARGIN, MEDIUM, OPEN_RANGE};
use super::{
    Case, CheckState, Cite, Confidence, Culprit, Diagnosis, ENGINES, Hypothesis, RULES_VERSION,
    Verdict,
};
use crate::model::{CauseClass, Payload};

/// Most hypotheses that are kept.
const HYPOTHESES_MAX: usize = 12;

/// Diagnoses a case. The same case gives the same diagnosis, byte for byte.
#[must_use]
pub fn diagnose(case: &Case<'_>) -> Diagnosis {
    let view = View::new(case);
    let mut board = Board::default();
    for engine in ENGINES {
        (engine.run)(&view, &mut board);
    }
    let hypotheses = rank(std::mem::take(&mut board.candidates));
    let verdict = conclude(&hypotheses, &board, case);
    let missing = missing(case, &view, &board, &hypotheses, &verdict);
    Diagnosis {
        rules: RULES_VERSION,
        at: case.now,
        allowed: allowed(&hypotheses),
        seen_deploys: seen_deploys(&view),
        onset: board.onset,
        facts: board.facts,
        hypotheses,
        verdict,
        missing,
        checks: board.checks,
    }
}

fn rank(mut candidates: Vec<Candidate>) -> Vec<Hypothesis> {
    candidates.sort_by(|a, b| {
        let key = |c: &Candidate| (c.rejected.is_some(), Reverse(c.score()));
        key(a)
            .cmp(&key(b))
            .then_with(|| (a.class, &a.service, &a.culprit).cmp(&(b.class, &b.service, &b.culprit)))
    });
    candidates
        .into_iter()
        .take(HYPOTHESES_MAX)
        .enumerate()
        .map(|(i, candidate)| hypothesis(i, candidate))
        .collect()
}

fn hypothesis(index: usize, candidate: Candidate) -> Hypothesis {
    let cites = |wanted: &dyn Fn(i32) -> bool| -> Vec<Cite> {
        let marks = candidate.marks.iter().filter(|m| wanted(m.weight.points()));
        let all: BTreeSet<Cite> = marks.flat_map(|m| m.cites.iter().copied()).collect();
        all.into_iter().collect()
    };
    let mut weights: Vec<(String, i32)> = candidate
        .marks
        .iter()
        .map(|m| (m.weight.name().to_owned(), m.weight.points()))
        .collect();
    weights.sort_by_key(|(_, points)| Reverse(points.abs()));
    Hypothesis {
        id: format!("H{}", index.saturating_add(1)),
        cause_class: candidate.class,
        score: candidate.score(),
        weights,
        supporting: cites(&|points| points > 0),
        refuting: cites(&|points| points < 0),
        corroborated: candidate.corroborated(),
        service: candidate.service,
        culprit: candidate.culprit,
        missing: candidate.missing,
        rejected: candidate.rejected,
        explanation: candidate.explanation,
        change_evidence: candidate.change_evidence,
        remediation: candidate.remedy,
    }
}

fn standing(hypotheses: &[Hypothesis]) -> impl Iterator<Item = &Hypothesis> {
    hypotheses.iter().filter(|h| h.rejected.is_none())
}

fn conclude(hypotheses: &[Hypothesis], board: &Board<'_>, case: &Case<'_>) -> Verdict {
    let mut standing = standing(hypotheses);
    let best = standing.next().filter(|h| h.score >= FLOOR);
    let lead = best.map(|h| {
        h.score
            .saturating_sub(standing.next().map_or(0, |next| next.score))
    });
    match (best, lead) {
        (Some(best), Some(lead)) if lead >= MARGIN => Verdict {
            hypothesis: Some(best.id.clone()),
            cause_class: best.cause_class,
            culprit: best.culprit.clone(),
            confidence: confidence(best, lead, hypotheses, board, case),
        },
        _ => Verdict {
            hypothesis: None,
            cause_class: CauseClass::Inconclusive,
            culprit: Culprit::none(),
            confidence: Confidence::Low,
        },
    }
}

fn confidence(
    best: &Hypothesis,
    lead: i32,
    hypotheses: &[Hypothesis],
    board: &Board<'_>,
    case: &Case<'_>,
) -> Confidence {
    let unread = standing(hypotheses).any(|h| !h.missing.is_empty());
    let open = |c: &super::ExternalCheck| c.state == CheckState::Unknown && c.answerable;
    let gaps = unread || !case.failed_tools.is_empty() || board.checks.iter().any(open);
    if best.score >= HIGH && lead >= OPEN_RANGE && best.corroborated && !gaps {
        Confidence::High
    } else if best.score >= MEDIUM {
        Confidence::Medium
    } else {
        Confidence::Low
    }
}

/// The best hypothesis and those that are not far behind.
fn allowed(hypotheses: &[Hypothesis]) -> Vec<String> {
    let Some(best) = standing(hypotheses).next().filter(|h| h.score >= FLOOR) else {
        return Vec::new();
    };
    standing(hypotheses)
        .filter(|h| h.score >= FLOOR && h.score > best.score.saturating_sub(OPEN_RANGE))
        .map(|h| h.id.clone())
        .collect()
}

fn seen_deploys(view: &View<'_>) -> BTreeMap<String, String> {
    // Rows are oldest first, so the newest one of a service stays.
    let rows = view.deploys.iter();
    rows.map(|r| (r.deploy.service.clone(), r.deploy.id.clone()))
        .collect()
}

fn missing(
    case: &Case<'_>,
    view: &View<'_>,
    board: &Board<'_>,
    hypotheses: &[Hypothesis],
    verdict: &Verdict,
) -> Vec<String> {
    let mut missing: BTreeSet<String> = board.missing.clone();
    for failure in case.failed_tools {
        missing.insert(format!(
            "the answer of `{}` from `{}`",
            failure.tool, failure.source
        ));
    }
    for evidence in case.evidence {
        if let Some(why) = &evidence.meta().partial {
            missing.insert(format!("the rest of {}: {why}", evidence.id()));
        }
        let empty = match evidence.payload() {
            Payload::Logs { lines, .. } => lines.is_empty(),
            Payload::Metrics { series, .. } => series.is_empty(),
            Payload::Alerts { .. }
            | Payload::Deploys { .. }
            | Payload::Units { .. }
            | Payload::Topology { .. }
            | Payload::Runbooks { .. } => false,
        };
        if empty {
            let tool = &evidence.meta().tool;
            missing.insert(format!(
                "anything from `{tool}`: {} is empty",
                evidence.id()
            ));
        }
    }
    if verdict.cause_class == CauseClass::Inconclusive {
        missing.extend(standing(hypotheses).flat_map(|h| h.missing.iter().cloned()));
        if board.onset.is_none() {
            missing.insert("a signal that shows when the incident began".to_owned());
        }
        for service in &view.loud {
            if !board.services.contains_key(service) {
                missing.insert(format!("metrics of `{service}`"));
            }
        }
    }
    missing.into_iter().collect()
}
