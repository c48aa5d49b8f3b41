//! Nothing is wrong now (D14): the signal that alarmed is read again, and what is over is over.

use super::board::{Board, Candidate, Signals, Voice};
use super::detect::Shape;
use super::remedy;
use super::view::{Tool, View};
use super::weights::Weight;
use super::{Cite, Culprit};
use crate::model::{AlertStatus, CauseClass};

/// Samples older than this say nothing about now.
const FRESH_MS: i64 = 120_000;

/// How many newest points inside the band confirm an end that something else shows already.
const QUIET: usize = 2;

/// True when a service still fails. Where the source of the alert has seen the end, the first points
/// inside the band confirm it. A mean duration trails behind the failures that it came with, while
/// the work that had piled up is done.
fn still_fails(signals: &Signals, over: bool) -> bool {
    let settled = |shape: &Shape, early: bool| {
        let change = shape.change();
        change.is_none_or(|c| !c.lasts() || (early && c.quiet >= QUIET))
    };
    let quiet = settled(&signals.failing, over) && settled(&signals.latency, true);
    let always = signals.failing.change().is_none() && signals.fails_now();
    signals.stopped || always || (signals.fails() && !quiet)
}

/// Judges whether the incident is over.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    if let Some(candidate) = judge(view, board) {
        board.candidates.push(candidate);
    }
}

fn judge(view: &View<'_>, board: &Board<'_>) -> Option<Candidate> {
    let last = view.last_sample?;
    if view.now.since(last) > FRESH_MS || view.loud.is_empty() {
        return None;
    }
    let over = view
        .alerts
        .iter()
        .all(|a| a.status == AlertStatus::Resolved);
    let lasting = board.graph.depth.keys().any(|service| {
        board
            .services
            .get(service)
            .is_some_and(|s| still_fails(s, over))
            || board.down.iter().any(|d| d.service == *service)
            || board
                .resources
                .iter()
                .any(|r| r.service == *service && r.since.is_some())
    });
    if lasting {
        return None;
    }
    let (mut back, mut measured) = (Vec::<Cite>::new(), Vec::<Cite>::new());
    for service in &view.loud {
        let signals = board.services.get(service)?;
        match &signals.failing {
            Shape::Changed(_) => back.extend(&signals.cites),
            // A blip may be too short to be a change.
            Shape::Steady(strays) if *strays > 0 => back.extend(&signals.cites),
            Shape::Steady(_) => measured.extend(&signals.cites),
            Shape::NoBaseline => {}
        }
        match &signals.latency {
            Shape::Changed(change) if change.after >= 2.0 * change.before => {
                back.extend(&signals.latency_cites);
            }
            Shape::Changed(_) | Shape::Steady(_) => measured.extend(&signals.latency_cites),
            Shape::NoBaseline => {}
        }
    }
    // An alert about something that no signal here shows, and that still fires, is not over.
    if (back.is_empty() && !over) || (back.is_empty() && measured.is_empty()) {
        return None;
    }
    let service = view.loud.first().copied().unwrap_or("");
    let remedy = remedy::nothing(service);
    let mut candidate = Candidate::new(CauseClass::None, service, Culprit::none(), remedy);
    let voices = vec![Voice {
        tool: Tool::Metrics,
        component: service.to_owned(),
    }];
    let shown = if back.is_empty() { &measured } else { &back };
    candidate.observe(Weight::BackInBand, shown, voices);
    candidate.mark(Weight::NothingLasts, shown);
    if over {
        candidate.mark(Weight::AlertOver, &[]);
    }
    candidate.explanation =
        format!("what alarmed about `{service}` is over and nothing measured has changed for good");
    Some(candidate)
}
