//! What people outside the console are told about an investigation (protocols.md 10.2).
//!
//! A notification names what happened and where to look. It holds no evidence, and a link in it
//! decides nothing.

use serde::Serialize;

use super::{Outcome, Phase, Record};

/// One thing worth telling. An incident tells each event once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// An investigation began.
    Opened,
    /// An action waits for a person.
    ApprovalWaiting,
    /// A person decided.
    Decided,
    /// Nobody knows whether the action happened; a person has to find out.
    InDoubt,
    /// The investigation ended, with or without an action.
    Outcome,
    /// It stays with the people: nothing is proposed that Sentinel may do.
    Escalated,
    /// All actions were stopped, or may go on.
    Hold,
    /// A part of Sentinel itself does not work, or works again.
    Health,
}

impl Event {
    /// Every event, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Opened,
        Self::ApprovalWaiting,
        Self::Decided,
        Self::InDoubt,
        Self::Outcome,
        Self::Escalated,
        Self::Hold,
        Self::Health,
    ];

    /// The word in the configuration and in a notification.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::ApprovalWaiting => "approval_waiting",
            Self::Decided => "decided",
            Self::InDoubt => "in_doubt",
            Self::Outcome => "outcome",
            Self::Escalated => "escalated",
            Self::Hold => "hold",
            Self::Health => "health",
        }
    }
}

/// What an investigation has to tell after a step that began in phase `before` (`None` for the
/// first). The sentence is made of enum words, numbers and admitted names.
#[must_use]
pub fn news(before: Option<Phase>, record: &Record) -> Vec<(Event, String)> {
    let mut told = Vec::new();
    if before.is_none() {
        told.push((Event::Opened, opened(record)));
    }
    if before == Some(record.phase) {
        return told;
    }
    let decided = record.action.as_ref().map(|a| a.decided_by.join(", "));
    let by = decided.filter(|names| !names.is_empty());
    match record.phase {
        Phase::AwaitingApproval => told.push((
            Event::ApprovalWaiting,
            format!("{} waits for a person", action(record)),
        )),
        Phase::Rechecking | Phase::Executing => {
            if let Some(by) = by {
                told.push((
                    Event::Decided,
                    format!("{} was approved by {by}", action(record)),
                ));
            }
        }
        Phase::InDoubt => told.push((
            Event::InDoubt,
            format!(
                "{} was started and its end is not known; a person has to find out",
                action(record)
            ),
        )),
        Phase::Closed => {
            if record.outcome == Some(Outcome::Denied) {
                let by = by.unwrap_or_else(|| "a person".to_owned());
                told.push((
                    Event::Decided,
                    format!("{} was denied by {by}", action(record)),
                ));
            }
            told.push(end(record));
        }
        Phase::Settling
        | Phase::Collecting
        | Phase::Explaining
        | Phase::Proposing
        | Phase::Verifying => {}
    }
    told
}

fn opened(record: &Record) -> String {
    let alert = record.alerts.first();
    let name = alert.map_or("an alert", |a| a.name.as_str());
    let service = alert.map_or("", |a| a.service.as_str());
    let on = if service.is_empty() {
        String::new()
    } else {
        format!(" on {service}")
    };
    match record.alerts.len() {
        0 | 1 => format!("{name}{on} is investigated"),
        more => format!("{name}{on} and {} more are investigated", more - 1),
    }
}

fn action(record: &Record) -> String {
    record.proposal.as_ref().map_or_else(
        || "an action".to_owned(),
        |p| format!("{} of {}", p.class, p.target),
    )
}

fn cause(record: &Record) -> String {
    let culprit = record.hypothesis().map(|h| h.culprit.id.as_str());
    match (record.cause_class, culprit) {
        (Some(class), Some(culprit)) => format!("cause {class} ({culprit})"),
        (Some(class), None) => format!("cause {class}"),
        (None, _) => "no cause found".to_owned(),
    }
}

fn end(record: &Record) -> (Event, String) {
    let cause = cause(record);
    match record.outcome {
        Some(Outcome::Escalated) => {
            let codes = record
                .clearances
                .last()
                .filter(|c| !c.codes.is_empty())
                .map(|c| format!("; refused by {}", c.codes.join(", ")));
            let advice = record
                .proposal
                .as_ref()
                .and_then(|p| p.advice.map(|a| format!("; advice: {a} of {}", p.target)));
            (
                Event::Escalated,
                format!(
                    "escalated: {cause}{}{}",
                    advice.unwrap_or_default(),
                    codes.unwrap_or_default()
                ),
            )
        }
        Some(Outcome::NoAction) => (
            Event::Outcome,
            "no action: what was alerted about is over".to_owned(),
        ),
        Some(outcome) => (
            Event::Outcome,
            format!("{}: {cause}, {}", outcome.as_str(), action(record)),
        ),
        None => (Event::Outcome, format!("closed: {cause}")),
    }
}
