//! Changes as candidates (D9 to D11): a deploy is blamed when its diff or its version explains the
//! failing path, never because it was near.

use super::board::{Board, Candidate, Voice};
use super::graph;
use super::hunks::ChangeClass;
use super::link::{self, Link};
use super::remedy;
use super::versions::Split;
use super::view::{DeployRow, Tool, View};
use super::weights::Weight;
use super::{Cite, Culprit};
use crate::model::{CauseClass, DeployStatus, RemediationClass};

/// How long before the onset a change may have begun.
pub(super) const WINDOW_MS: i64 = 30 * 60 * 1000;

/// Judges every deploy record.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    for row in &view.deploys {
        if let Some(candidate) = judge(view, board, row) {
            report(board, row, &candidate);
            board.candidates.push(candidate);
        }
    }
    if view.history.is_none() {
        board.missing.insert("the deploy history".to_owned());
    }
}

fn judge(view: &View<'_>, board: &Board<'_>, row: &DeployRow<'_>) -> Option<Candidate> {
    let deploy = row.deploy;
    let link = link::strongest(view, board, row);
    let split = split(board, row);
    let near = is_near(board, row);
    // An old deploy without any link is no suspect at all and would only fill the list.
    if link.is_none() && split.is_none() && !near {
        return None;
    }
    let configured = link
        .as_ref()
        .is_some_and(|l| l.class == ChangeClass::Configuration);
    let (class, remedy) = if configured {
        let advice = Some(RemediationClass::ConfigRevert);
        (
            CauseClass::ConfigError,
            remedy::advise(&deploy.service, advice),
        )
    } else {
        (CauseClass::BadDeploy, remedy::rollback(view, deploy))
    };
    let culprit = Culprit::deploy(&deploy.id);
    let mut candidate = Candidate::new(class, &deploy.service, culprit, remedy);
    candidate.explanation = explain(row, link.as_ref(), split);
    candidate.rejected = objection(view, board, row);
    weigh_change(&mut candidate, row, link.as_ref(), split);
    if near {
        candidate.mark(Weight::BeforeOnset, &[row.cite]);
    } else if is_old(board, row) {
        candidate.mark(Weight::RanFineSince, &[row.cite]);
    }
    weigh_symptoms(&mut candidate, board, &deploy.service);
    let unread = deploy.diff.is_none() || has_unread_hunk(row);
    if unread {
        candidate
            .missing
            .push(format!("the difference that deploy `{}` made", deploy.id));
    }
    if link.is_none() && split.is_none() && !unread && candidate.rejected.is_none() {
        let why = "no change of it is linked to the failing path".to_owned();
        candidate.rejected = Some(why);
    }
    Some(candidate)
}

fn weigh_change(
    candidate: &mut Candidate,
    row: &DeployRow<'_>,
    link: Option<&Link>,
    split: Option<&Split<'_>>,
) {
    if let Some(link) = link {
        let mut cites = vec![link.change];
        cites.extend(&link.symptom);
        candidate.mark(link.weight, &cites);
        if link.firm {
            candidate.change_evidence.push(link.change);
        }
    }
    if let Some(split) = split {
        let voices = vec![Voice {
            tool: Tool::Metrics,
            component: format!("{} {}", split.service, split.new),
        }];
        candidate.observe(Weight::VersionSplit, &split.cites, voices);
        // The record of the deploy says which version it brought.
        candidate
            .change_evidence
            .push(link.map_or(row.cite, |l| l.change));
    }
    candidate.change_evidence.dedup();
}

/// True when a file changed in a way that could not be shown.
fn has_unread_hunk(row: &DeployRow<'_>) -> bool {
    let files = row.deploy.diff.iter().flatten();
    files.flat_map(|f| &f.hunks).any(|h| h.lines.is_empty())
}

/// The failures that the counters of a service show.
pub(super) fn weigh_own_failures(candidate: &mut Candidate, board: &Board<'_>, service: &str) {
    if board.fails_lastingly(service)
        && let Some(signals) = board.services.get(service)
    {
        let slow_only = !signals.fails_now() && signals.is_slow();
        let cites: &[Cite] = if slow_only {
            &signals.latency_cites
        } else {
            &signals.cites
        };
        candidate.observe(Weight::OwnFailures, cites, board.metric_voices(service));
    }
}

/// What the blamed service itself shows.
pub(super) fn weigh_symptoms(candidate: &mut Candidate, board: &Board<'_>, service: &str) {
    weigh_own_failures(candidate, board, service);
    if let Some(signature) = board.signatures.iter().find(|s| s.service == service) {
        let voices = signature.instances.iter().map(|instance| Voice {
            tool: Tool::Logs,
            component: (*instance).to_owned(),
        });
        let cites: Vec<Cite> = signature.cites.iter().take(2).copied().collect();
        candidate.observe(Weight::NovelFailure, &cites, voices.collect());
    }
    let old = board
        .splits
        .iter()
        .find(|s| s.service == service && s.clears_new());
    if let Some(old) = old
        && candidate.class == CauseClass::BadDeploy
    {
        candidate.mark(Weight::OldFailsToo, &old.cites);
    }
    if let Some(callee) = graph::forwards_from(board, service)
        && callee_is_worse(board, callee)
    {
        let calls = board.graph.calls.get(&(service, callee));
        candidate.mark(Weight::Forwarded, calls.map_or(&[], |c| &c.cites));
    }
}

/// True when a callee shows a fault of its own: it is down, fails, or its resource is used up.
fn callee_is_worse(board: &Board<'_>, callee: &str) -> bool {
    board.fails_lastingly(callee)
        || board.down.iter().any(|d| d.service == callee)
        || board
            .resources
            .iter()
            .any(|r| r.service == callee && r.since.is_some())
}

fn split<'b, 'v>(board: &'b Board<'v>, row: &DeployRow<'_>) -> Option<&'b Split<'v>> {
    board
        .splits
        .iter()
        .find(|s| s.service == row.deploy.service && s.new == row.deploy.version && s.blames_new())
}

/// True when the deploy began inside the window before the onset, at the signal's resolution.
fn is_near(board: &Board<'_>, row: &DeployRow<'_>) -> bool {
    board.onset.as_ref().is_some_and(|onset| {
        let begun = row.deploy.started_at;
        begun >= onset.at.plus(-WINDOW_MS) && begun <= onset.at.plus(onset.resolution_ms)
    })
}

/// True when the deploy ran for longer than the window before the onset.
fn is_old(board: &Board<'_>, row: &DeployRow<'_>) -> bool {
    let onset = board.onset.as_ref();
    onset.is_some_and(|onset| row.deploy.started_at < onset.at.plus(-WINDOW_MS))
}

/// Why a deploy cannot be the cause, whatever its diff says.
fn objection(view: &View<'_>, board: &Board<'_>, row: &DeployRow<'_>) -> Option<String> {
    let deploy = row.deploy;
    if matches!(
        deploy.status,
        DeployStatus::Failed | DeployStatus::RolledBack
    ) {
        return Some("it is not part of what runs".to_owned());
    }
    if !board.graph.on_path(&deploy.service) {
        return Some("its service is not on the failing path".to_owned());
    }
    let onset = board.onset.as_ref()?;
    if deploy.started_at > onset.at.plus(onset.resolution_ms) {
        return Some("it began after the onset".to_owned());
    }
    let undone = view.deploys.iter().any(|later| {
        later.deploy.service == deploy.service
            && later.deploy.started_at > deploy.started_at
            && deploy.previous_version.as_deref() == Some(later.deploy.version.as_str())
            && later.deploy.status == DeployStatus::Succeeded
    });
    undone.then(|| "what ran before it was put back since".to_owned())
}

fn explain(row: &DeployRow<'_>, link: Option<&Link>, split: Option<&Split<'_>>) -> String {
    let deploy = row.deploy;
    let mut text = format!(
        "deploy `{}` brought version {} of `{}` at {}",
        deploy.id, deploy.version, deploy.service, deploy.started_at
    );
    if let Some(link) = link {
        text.push_str(": ");
        text.push_str(&link.why);
    }
    if let Some(split) = split {
        text.push_str(&format!(
            "; at the same time instances of version {} do not fail",
            split.old
        ));
    }
    text
}

fn report(board: &mut Board<'_>, row: &DeployRow<'_>, candidate: &Candidate) {
    let why = candidate
        .rejected
        .as_deref()
        .map(|why| format!(" ({why})"))
        .unwrap_or_default();
    board.fact(format!("{}{why}", candidate.explanation), &[row.cite]);
}
