//! Causes outside the code (D12). Each check is clear, signal or unknown; none signals on log text
//! alone (D13): it needs a measurement, a dated fact or a control path.

use std::collections::BTreeSet;

use super::board::Board;
use super::deploys::WINDOW_MS;
use super::kinds::{self, ResourceKind};
use super::logs::{self, Level};
use super::view::{Tool, View};
use super::{CHECKS, CheckState, Cite, ExternalCheck};
use crate::model::Millis;

/// Demand has grown enough to be a cause of its own from this ratio on.
pub(super) const DEMAND_RATIO: f64 = 2.0;

type Found = (CheckState, Option<Millis>, Vec<Cite>, String);

/// Performs every check of the list, in its order.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    for name in CHECKS {
        let (tool, found) = match *name {
            "credential" => (Tool::Metrics, credential(view)),
            "provider" => (Tool::Metrics, provider(view, board)),
            "name_resolution" => (Tool::Logs, name_resolution(view, board)),
            "disk" => (Tool::Metrics, disk(board)),
            "quota" => (Tool::Metrics, quota(view, board)),
            "traffic" => (Tool::Metrics, traffic(view, board)),
            "bad_data" => (Tool::Logs, bad_data(view, board)),
            "old_instances" => (Tool::Metrics, old_instances(board)),
            "config_change" => (Tool::Units, config_change(view, board)),
            // Nodes, clocks and timers have no tool here yet.
            _ => (Tool::Topology, None),
        };
        let check = finish(view, name, tool, found);
        board.checks.push(check);
    }
}

/// A check without a result was not made: unknown, and a reason to refuse if a tool of this site
/// could have answered.
fn finish(view: &View<'_>, name: &str, tool: Tool, found: Option<Found>) -> ExternalCheck {
    let failed = view.failed(tool);
    let (state, onset, cites, note) = found.unwrap_or_else(|| {
        let note = if failed {
            format!("the tool `{}` did not answer", tool.name())
        } else {
            "not checkable at this site".to_owned()
        };
        (CheckState::Unknown, None, Vec::new(), note)
    });
    let answerable = match state {
        CheckState::Clear | CheckState::Signal => true,
        CheckState::Unknown => failed || view.answered.contains(&tool) && !note.starts_with("not "),
    };
    ExternalCheck {
        name: name.to_owned(),
        state,
        onset,
        cites,
        answerable,
        note,
    }
}

fn clear(note: &str) -> Found {
    (CheckState::Clear, None, Vec::new(), note.to_owned())
}

/// A date that a gauge tells: an instant in seconds, or seconds that are left.
fn credential(view: &View<'_>) -> Option<Found> {
    let mut dated = false;
    for row in &view.series {
        let words = kinds::words(&row.series.name);
        let expiry = ["expiry", "expires", "expire", "expiration", "after"];
        if kinds::is_counter(row.series) || !words.iter().any(|w| expiry.contains(&w.as_str())) {
            continue;
        }
        let Some(last) = row.series.points.last() else {
            continue;
        };
        dated = true;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "seconds of this century fit"
        )]
        let seconds = last.1 as i64;
        // A number of seconds this large is a date and not a rest.
        let ends = if seconds > 1_000_000_000 {
            Millis(seconds.saturating_mul(1_000))
        } else {
            last.0.plus(seconds.saturating_mul(1_000))
        };
        if ends <= view.now {
            let note = format!("a date was reached at {ends}");
            return Some((CheckState::Signal, Some(ends), vec![row.cite], note));
        }
    }
    dated.then(|| clear("no date that is measured was reached"))
}

/// Only calls to one outside party fail.
fn provider(view: &View<'_>, board: &Board<'_>) -> Option<Found> {
    if !view.answered.contains(&Tool::Metrics) {
        return None;
    }
    let failing: Vec<_> = board.graph.calls.iter().filter(|(_, c)| c.fail()).collect();
    let outside = |peer: &str| !view.is_ours(peer);
    let peers: BTreeSet<&str> = failing.iter().map(|((_, peer), _)| *peer).collect();
    match (peers.len(), failing.first()) {
        (1, Some(((_, peer), calls))) if outside(peer) => Some((
            CheckState::Signal,
            calls.began(),
            calls.cites.clone(),
            format!("only calls to `{peer}` fail"),
        )),
        _ => Some(clear("no outside party alone fails")),
    }
}

fn name_resolution(view: &View<'_>, board: &Board<'_>) -> Option<Found> {
    if !view.answered.contains(&Tool::Logs) {
        return None;
    }
    let words = [
        "getaddrinfo",
        "name resolution",
        "no such host",
        "nxdomain",
        "could not resolve",
    ];
    let said = logs::records(view).into_iter().find(|record| {
        let lower = |row: &&super::view::LogRow<'_>| row.text.to_ascii_lowercase();
        let named = |text: String| words.iter().any(|w| text.contains(w));
        record.level == Level::Error && record.rows.iter().any(|row| named(lower(row)))
    });
    let Some(record) = said else {
        return Some(clear("no line speaks of it"));
    };
    let cites: Vec<Cite> = record.head().map(|h| h.cite).into_iter().collect();
    let measured = board.graph.calls.values().any(|calls| calls.fail());
    let note = "names could not be resolved".to_owned();
    Some(if measured {
        (CheckState::Signal, Some(record.at), cites, note)
    } else {
        (CheckState::Unknown, None, cites, note)
    })
}

fn disk(board: &Board<'_>) -> Option<Found> {
    let mut disks = board
        .resources
        .iter()
        .filter(|r| r.kind == ResourceKind::Disk && board.graph.on_path(r.service))
        .peekable();
    disks.peek()?;
    let full = disks.find(|r| r.since.is_some());
    Some(full.map_or_else(
        || clear("there is space on the disks that are measured"),
        |r| {
            let note = format!("the disk of `{}` is full", r.instance);
            (CheckState::Signal, r.since, r.cites.clone(), note)
        },
    ))
}

/// Calls that are turned away for their number.
fn quota(view: &View<'_>, board: &Board<'_>) -> Option<Found> {
    if !view.answered.contains(&Tool::Metrics) {
        return None;
    }
    let onset = board.onset.as_ref().map(|o| o.at);
    let refused = view.series.iter().find(|row| {
        let status = kinds::status(row.series);
        let limited = matches!(status, Some("429" | "resource_exhausted" | "rate_limited"));
        let first = row.series.points.first().map_or(0.0, |p| p.1);
        let grew = row
            .series
            .points
            .last()
            .is_some_and(|p| p.1 > first && Some(p.0) >= onset);
        limited && grew && kinds::is_called(row.series)
    });
    Some(refused.map_or_else(
        || clear("no calls were turned away for their number"),
        |row| {
            let note = "calls are turned away for their number".to_owned();
            (
                CheckState::Signal,
                row.series.points.first().map(|p| p.0),
                vec![row.cite],
                note,
            )
        },
    ))
}

/// Demand at the edge since the onset against before.
pub(super) fn demand(board: &Board<'_>) -> Option<(f64, Vec<Cite>)> {
    let onset = board.onset.as_ref()?.at;
    let mut growth: Option<(f64, Vec<Cite>)> = None;
    for (service, signals) in &board.services {
        if !board.graph.on_path(service) || !board.graph.is_edge(service) {
            continue;
        }
        let rate = |wanted: &dyn Fn(Millis) -> bool| {
            let of: Vec<f64> = signals
                .bins
                .iter()
                .filter(|(at, _)| wanted(**at))
                .map(|(_, bin)| bin.total)
                .collect();
            (of.len() >= 5).then(|| super::detect::median(&of))
        };
        // The bins right at the onset already belong to the failure.
        let width = board.width_ms;
        let before = rate(&|at| at < onset.plus(-2 * width));
        let after = rate(&|at| at >= onset.plus(-2 * width) && at <= onset.plus(30 * width));
        if let (Some(before), Some(after)) = (before.filter(|b| *b > 0.0), after) {
            let ratio = after / before;
            if growth.as_ref().is_none_or(|(known, _)| ratio > *known) {
                growth = Some((ratio, signals.cites.clone()));
            }
        }
    }
    growth
}

fn traffic(view: &View<'_>, board: &Board<'_>) -> Option<Found> {
    let Some((ratio, cites)) = demand(board) else {
        let measured = board.services.values().any(|s| !s.bins.is_empty());
        let quiet = measured && board.onset.is_none() && view.answered.contains(&Tool::Metrics);
        return quiet.then(|| clear("nothing began to fail"));
    };
    let note = format!("demand is {ratio:.1} times that of before");
    Some(if ratio >= DEMAND_RATIO {
        (
            CheckState::Signal,
            board.onset.as_ref().map(|o| o.at),
            cites,
            note,
        )
    } else {
        (CheckState::Clear, None, cites, note)
    })
}

/// Nearly all failures are about one record, while others are handled well, on unchanged code.
fn bad_data(view: &View<'_>, board: &Board<'_>) -> Option<Found> {
    if !view.answered.contains(&Tool::Logs) {
        return None;
    }
    for signature in board.signatures.iter().filter(|s| s.count >= 10) {
        let changed = board.onset.as_ref().is_none_or(|onset| {
            view.deploys.iter().any(|row| {
                row.deploy.service == signature.service
                    && row.deploy.started_at >= onset.at.plus(-WINDOW_MS)
            })
        });
        let ids = signature
            .names
            .iter()
            .filter(|n| n.bytes().any(|b| b.is_ascii_digit()));
        let ids: Vec<&String> = ids.collect();
        let fails = board
            .services
            .get(signature.service)
            .is_some_and(|s| s.recent_share() < 0.9);
        if let ([id], false, true) = (ids.as_slice(), changed, fails) {
            let note = format!("the record `{id}` alone fails again and again");
            let onset = Some(signature.first);
            return Some((CheckState::Signal, onset, signature.cites.clone(), note));
        }
    }
    Some(clear("no single record fails on unchanged code"))
}

fn old_instances(board: &Board<'_>) -> Option<Found> {
    let mut splits = board
        .splits
        .iter()
        .filter(|s| s.old_did.total > 0.0)
        .peekable();
    splits.peek()?;
    let old = splits.find(|s| s.clears_new());
    Some(old.map_or_else(
        || clear("instances of the old version do not fail"),
        |s| {
            let note = format!("instances of version {} fail as well", s.old);
            (CheckState::Signal, Some(s.since), s.cites.clone(), note)
        },
    ))
}

fn config_change(view: &View<'_>, board: &Board<'_>) -> Option<Found> {
    if !view.answered.contains(&Tool::Units) {
        return None;
    }
    let change = super::configuration::changes(view, board).next();
    Some(change.map_or_else(
        || clear("no setting changed near the onset"),
        |row| {
            let note = format!("the configuration of `{}` changed", row.event.service);
            (CheckState::Signal, Some(row.event.at), vec![row.cite], note)
        },
    ))
}
