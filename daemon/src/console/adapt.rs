//! From the records of core to what the pages show. Plain functions: nothing is decided here.

use std::collections::BTreeMap;

use policies::claim::StoredEvidence;
use policies::diagnosis::{self, ParamValue};
use policies::interlocks::INTERLOCKS;
use policies::machine::{CallState, ClearanceNote, Phase, ProposalNote, Record, VerificationNote};
use policies::model::{Millis, RemediationClass};
use store::sentinel::IncidentRow as StoredRow;

use super::backend::Verb;
use super::view::*;
use super::words;
use crate::guard::ActionView;

/// States of actions by their ids.
pub(crate) type ActionStates = BTreeMap<String, String>;

/// A row of the inbox.
#[must_use]
pub(crate) fn row(stored: StoredRow, actions: &ActionStates) -> IncidentRow {
    let action = stored.action_id.and_then(|id| {
        let state = actions.get(&id)?.clone();
        Some(ActionLink { id, state })
    });
    IncidentRow {
        id: stored.id,
        title: stored.title,
        service: stored.service,
        severity: stored.severity,
        state: stored.outcome.unwrap_or(stored.phase),
        opened_at: stored.opened_at,
        updated_at: stored.updated_at,
        closed_at: stored.closed_at,
        cause_class: stored.cause_class,
        action,
    }
}

/// Rank of a row in the inbox: what waits for a decision, what is in doubt, what is open, the rest
/// (console 6.3).
#[must_use]
pub(crate) fn rank(row: &IncidentRow) -> u8 {
    let state = row.action.as_ref().map(|action| action.state.as_str());
    match (row.closed_at, state) {
        (None, Some("pending")) => 0,
        (_, Some("in_doubt")) => 1,
        (None, _) => 2,
        (Some(_), _) => 3,
    }
}

/// What an incident's page shows beside its row.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Alerts joined into it.
    pub alerts: i64,
    /// The record of the investigation, once there is one.
    pub record: Option<Record>,
    /// Its evidence.
    pub evidence: Vec<StoredEvidence>,
    /// True when a postmortem is stored.
    pub postmortem: bool,
}

/// An incident's page.
#[must_use]
pub(crate) fn incident(row: IncidentRow, parts: Parts) -> Incident {
    let record = parts.record.as_ref();
    Incident {
        alerts: usize::try_from(parts.alerts).unwrap_or(0),
        progress: record.map(progress),
        verdict: record.and_then(verdict),
        suggestion: record.map_or(Suggestion::Undecided, |r| suggestion(r, &row)),
        recovery: record.and_then(|r| r.verification.as_ref()).map(recovery),
        facts: record.map_or_else(Vec::new, facts),
        hypotheses: record.map_or_else(Vec::new, hypotheses),
        timeline: record.map_or_else(Vec::new, timeline),
        evidence: parts.evidence.iter().map(evidence).collect(),
        guardrails: record.map_or_else(Vec::new, guardrails),
        failed: record.map_or_else(Vec::new, failed),
        model_absent: record
            .and_then(|r| r.model.as_ref())
            .map(|model| model.unavailable.clone())
            .filter(|reason| !reason.is_empty()),
        postmortem: parts.postmortem,
        row,
    }
}

fn progress(record: &Record) -> String {
    match record.phase {
        Phase::Settling => "Waiting for the first failing seconds to be on record.".to_owned(),
        Phase::Collecting | Phase::Rechecking => {
            let answered = record
                .calls
                .iter()
                .filter(|call| call.state != CallState::Pending)
                .count();
            let running: Vec<_> = record
                .calls
                .iter()
                .filter(|call| call.state == CallState::Pending)
                .map(|call| call.tool.as_str())
                .collect();
            format!(
                "Reading evidence: {answered} of {} tools answered{}{}.",
                record.calls.len(),
                if running.is_empty() {
                    ""
                } else {
                    ", waiting for "
                },
                running.join(", ")
            )
        }
        Phase::Explaining => "The model explains what the rules found.".to_owned(),
        Phase::Proposing => "The proposal is on its way to the guard.".to_owned(),
        Phase::AwaitingApproval => "A person has to decide.".to_owned(),
        Phase::Executing => "The action is being performed.".to_owned(),
        Phase::InDoubt => "The action may or may not have happened.".to_owned(),
        Phase::Verifying => "Watching whether it helped.".to_owned(),
        Phase::Closed => "Closed.".to_owned(),
    }
}

fn verdict(record: &Record) -> Option<Verdict> {
    let diagnosis = record.diagnosis.as_ref()?;
    let stands = record.hypothesis();
    let cause_class = record
        .cause_class
        .or_else(|| stands.map(|hypothesis| hypothesis.cause_class))
        .unwrap_or(diagnosis.verdict.cause_class);
    let found = stands.map_or(&diagnosis.verdict.culprit, |hypothesis| &hypothesis.culprit);
    let model = record.model.as_ref().filter(|m| m.hypothesis.is_some());
    Some(Verdict {
        cause_class: cause_class.as_str().to_owned(),
        culprit: culprit(found),
        confidence: diagnosis.verdict.confidence.as_str().to_owned(),
        source: model.map_or_else(|| "rules".to_owned(), |model| model.name.clone()),
        summary: model
            .map(|model| model.summary.clone())
            .filter(|summary| !summary.is_empty()),
        cites: model.map_or_else(Vec::new, |model| {
            let whole = |id: &policies::model::EvidenceId| Cite {
                evidence: id.0,
                line: None,
            };
            model.citations.iter().map(whole).collect()
        }),
        missing: diagnosis.missing.clone(),
    })
}

fn culprit(culprit: &diagnosis::Culprit) -> String {
    let kind = match culprit.kind {
        diagnosis::CulpritKind::Commit => "commit ",
        diagnosis::CulpritKind::Deploy => "deploy ",
        diagnosis::CulpritKind::Service => "",
        diagnosis::CulpritKind::Node => "node ",
        diagnosis::CulpritKind::Object => "object ",
        diagnosis::CulpritKind::None => return String::new(),
    };
    format!("{kind}{}", culprit.id)
}

fn suggestion(record: &Record, row: &IncidentRow) -> Suggestion {
    let Some(proposal) = &record.proposal else {
        return Suggestion::Undecided;
    };
    let last = record.clearances.last();
    if proposal.class == RemediationClass::NoAction {
        return Suggestion::NoAction;
    }
    let refused = last.is_some_and(|clearance| !clearance.cleared);
    if !proposal.class.is_mutating() || refused {
        let advice = proposal
            .advice
            .or(proposal.class.is_mutating().then_some(proposal.class));
        return Suggestion::Escalate {
            advice: advice.map(|class| class.as_str().to_owned()),
            reasons: last.map_or_else(Vec::new, |c| refusals(c, proposal)),
        };
    }
    Suggestion::Act {
        class: proposal.class.as_str().to_owned(),
        target: proposal.target.clone(),
        params: params(&proposal.change),
        action: row.action.clone(),
        checks: last.map_or_else(Vec::new, |c| checks(c, proposal)),
    }
}

fn params(change: &BTreeMap<String, ParamValue>) -> Vec<Param> {
    let Some((from, to)) = change.get("from").zip(change.get("to")) else {
        return Vec::new();
    };
    vec![Param {
        name: change
            .get("key")
            .map_or_else(|| "version".to_owned(), spelled),
        now: Some(spelled(from)),
        after: spelled(to),
    }]
}

fn spelled(value: &ParamValue) -> String {
    match value {
        ParamValue::Int(number) => number.to_string(),
        ParamValue::Bool(truth) => truth.to_string(),
        ParamValue::Text(text) => text.clone(),
    }
}

fn refusals(clearance: &ClearanceNote, proposal: &ProposalNote) -> Vec<Check> {
    let reasons = clearance.codes.iter().zip(&clearance.reasons);
    reasons
        .map(|(code, reason)| Check {
            code: code.clone(),
            passed: false,
            text: reason.clone(),
            cites: cites(&proposal.citations),
        })
        .collect()
}

/// Every interlock with its verdict: what refused first, then what let it pass.
#[must_use]
pub(crate) fn checks(clearance: &ClearanceNote, proposal: &ProposalNote) -> Vec<Check> {
    let mut all = refusals(clearance, proposal);
    let passed = INTERLOCKS
        .iter()
        .filter(|lock| !clearance.codes.iter().any(|code| code == lock.code));
    all.extend(passed.map(|lock| Check {
        code: lock.code.to_owned(),
        passed: true,
        text: format!("Ruled out: {}", lock.cause),
        cites: Vec::new(),
    }));
    all
}

/// What an action's page says from the investigation that it came out of.
#[must_use]
pub(crate) fn context(record: &Record, around: ActionContext) -> ActionContext {
    let proposal = record.proposal.as_ref();
    let checks = record.clearances.last().zip(proposal);
    ActionContext {
        checks: checks.map_or_else(Vec::new, |(clearance, note)| self::checks(clearance, note)),
        ground: hypotheses(record).into_iter().find(|h| h.chosen),
        cites: proposal.map_or_else(Vec::new, |note| cites(&note.citations)),
        recovery: record.verification.as_ref().map(recovery),
        recovered: record.verification.as_ref().and_then(|note| note.recovered),
        ..around
    }
}

/// What the probe measured, in a sentence.
#[must_use]
pub(crate) fn recovery(note: &VerificationNote) -> String {
    let percent = |ratio: Option<f64>| {
        ratio.map_or_else(|| "unknown".to_owned(), |r| format!("{:.1} %", r * 100.0))
    };
    let word = match note.recovered {
        Some(true) => "Recovered",
        Some(false) => "Not fixed",
        None => "Not measured",
    };
    format!(
        "{word}: {} before, {} now. Measured: {}.",
        percent(note.before),
        percent(note.after),
        note.metric
    )
}

fn cites(list: &[diagnosis::Cite]) -> Vec<Cite> {
    list.iter()
        .map(|cite| Cite {
            evidence: cite.evidence.0,
            line: cite.line,
        })
        .collect()
}

fn facts(record: &Record) -> Vec<Fact> {
    let facts = record.diagnosis.iter().flat_map(|d| &d.facts);
    facts
        .map(|fact| Fact {
            text: fact.text.clone(),
            cites: cites(&fact.cites),
        })
        .collect()
}

fn hypotheses(record: &Record) -> Vec<Hypothesis> {
    let stands = record.hypothesis().map(|hypothesis| hypothesis.id.as_str());
    let all = record.diagnosis.iter().flat_map(|d| &d.hypotheses);
    all.map(|h| Hypothesis {
        id: h.id.clone(),
        cause_class: h.cause_class.as_str().to_owned(),
        service: h.service.clone(),
        culprit: culprit(&h.culprit),
        score: h.score.to_string(),
        chosen: stands == Some(h.id.as_str()),
        explanation: h.explanation.clone(),
        supporting: cites(&h.supporting),
        refuting: cites(&h.refuting),
        missing: h.missing.clone(),
        rejected: h.rejected.clone(),
        remedy: h.remediation.class.as_str().to_owned(),
    })
    .collect()
}

fn timeline(record: &Record) -> Vec<Moment> {
    let mut moments: Vec<_> = record
        .timeline
        .iter()
        .map(|entry| Moment {
            at: entry.at,
            kind: entry.kind.clone(),
            text: entry.text.clone(),
            who: None,
            cites: Vec::new(),
        })
        .collect();
    moments.sort_by_key(|moment| moment.at);
    moments
}

fn evidence(stored: &StoredEvidence) -> EvidenceItem {
    EvidenceItem {
        id: stored.id.0,
        tool: stored.meta.tool.clone(),
        args: stored.meta.args.clone(),
        source: stored.meta.source.clone(),
        from: stored.meta.window.from,
        to: stored.meta.window.to,
        taken_at: stored.meta.taken_at,
        partial: stored.meta.partial.clone(),
        bytes_read: stored.stats.bytes_read,
        bytes_kept: stored.stats.bytes_kept,
        redactions: stored
            .stats
            .redactions
            .iter()
            .map(|(kind, count)| (kind.clone(), *count))
            .collect(),
        removed: stored.stats.removed,
        lines: stored.lines(),
    }
}

fn guardrails(record: &Record) -> Vec<GuardrailRow> {
    record
        .events
        .iter()
        .map(|event| GuardrailRow {
            layer: event.layer.as_str().to_owned(),
            code: event.code.clone(),
            rule: event.rule.clone(),
            count: event.count,
            evidence: event.evidence.map(|id| id.0),
        })
        .collect()
}

fn failed(record: &Record) -> Vec<FailedTool> {
    record
        .failed_tools
        .iter()
        .map(|failure| FailedTool {
            tool: format!("{} ({})", failure.tool, failure.source),
            code: failure.code.clone(),
        })
        .collect()
}

/// An action as the guard records it.
#[must_use]
pub(crate) fn action(view: ActionView, context: ActionContext) -> Action {
    let decided_by = view.decided_by();
    let mut decisions: Vec<_> = view
        .approvals
        .by
        .into_iter()
        .map(|approval| DecisionRow {
            person: approval.person,
            assurance: approval.assurance,
            via: approval.via.unwrap_or_else(|| "itself".to_owned()),
            at: Millis::parse_rfc3339(&approval.at),
            reason: approval.reason,
            verb: Verb::Approve,
        })
        .collect();
    // A denial is no approval, but it is the decision that ended the action.
    if let Some(person) = decided_by.filter(|_| view.state == "denied") {
        decisions.push(DecisionRow {
            person,
            assurance: String::new(),
            via: String::new(),
            at: None,
            reason: String::new(),
            verb: Verb::Deny,
        });
    }
    let time = |text: &Option<String>| text.as_deref().and_then(Millis::parse_rfc3339);
    Action {
        created_at: Millis::parse_rfc3339(&view.created_at).unwrap_or(Millis(0)),
        expires_at: Millis::parse_rfc3339(&view.expires_at),
        approval_expires_at: time(&view.approval_expires_at),
        effect_deadline: time(&view.effect_deadline),
        started: time(&view.started),
        id: view.id,
        state: view.state,
        document: view.document,
        digest: view.digest,
        decision_nonce: view.decision_nonce,
        requester: view.requester,
        initiator: view.initiator,
        intent: view.intent,
        have: u32::try_from(view.approvals.have).unwrap_or(0),
        need: u32::try_from(view.approvals.need).unwrap_or(u32::MAX),
        decisions,
        jti: view.jti,
        job: view.job,
        fence: view.fence,
        outcome: view.outcome.map(|outcome| words::plain(&outcome)),
        audit_index: Some(view.audit_index),
        context,
    }
}

#[cfg(test)]
#[path = "adapt_tests.rs"]
mod tests;
