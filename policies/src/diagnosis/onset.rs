//! When the incident began (D5, guard rails 11.2.2): the first lasting change of the failing signal,
//! or the first error on the failing path. Never the time of the alert.

use std::collections::BTreeMap;

use super::board::Board;
use super::logs::{self, Level};
use super::view::View;
use super::{Cite, Onset};
use crate::model::Millis;

/// How finely a log tells time.
const LOG_RESOLUTION_MS: i64 = 1_000;
/// A new kind of error line counts from this many on.
const ENOUGH_LINES: usize = 3;
/// A kind of line that is absent for more than this part of the record has ended.
const SILENCE: i64 = 5;

/// Finds the onset.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    let onset = measured(view, board).or_else(|| logged(view, board));
    if let Some(onset) = &onset {
        let cite = Cite {
            evidence: onset.evidence,
            line: None,
        };
        board.fact(
            format!("the incident began at {}: {}", onset.at, onset.signal),
            &[cite],
        );
    }
    board.onset = onset;
}

/// The earliest lasting change among the loud services; without any, among what they call.
fn measured(view: &View<'_>, board: &Board<'_>) -> Option<Onset> {
    let of = |wanted: &dyn Fn(usize) -> bool| {
        board
            .services
            .iter()
            .filter(|(service, _)| board.graph.depth.get(*service).is_some_and(|d| wanted(*d)))
            .filter(|(_, signals)| signals.fails())
            .filter_map(|(service, signals)| {
                let cite = signals.cites.first().or(signals.latency_cites.first())?;
                Some((signals.began()?, *service, *cite))
            })
            .min()
    };
    let (at, service, cite) = of(&|depth| depth == 0).or_else(|| of(&|_| true))?;
    let step = view.series.iter().map(|r| r.step_ms).max().unwrap_or(0);
    Some(Onset {
        at,
        signal: format!("`{service}` begins to fail or to slow down"),
        resolution_ms: step.max(board.width_ms).max(60_000),
        evidence: cite.evidence,
    })
}

/// The first line of a kind of error on the path that comes up inside the window and goes on. A long
/// silence parts two faults: the later one counts.
fn logged(view: &View<'_>, board: &Board<'_>) -> Option<Onset> {
    let begin = view.logs.first()?.at;
    let end = view.logs.last()?.at;
    let mut kinds: BTreeMap<(&str, String), Vec<(Millis, Cite)>> = BTreeMap::new();
    for record in logs::records(view) {
        let Some(head) = record.head() else { continue };
        if record.level == Level::Error && board.graph.on_path(record.service) {
            let key = (record.service, logs::mask(head.text));
            kinds.entry(key).or_default().push((record.at, head.cite));
        }
    }
    let span = end.since(begin);
    kinds
        .into_iter()
        .filter_map(|((service, _), seen)| {
            let seen = after_silence(&seen, span / SILENCE);
            let (first, cite) = *seen.first().filter(|_| seen.len() >= ENOUGH_LINES)?;
            let (last, _) = *seen.last()?;
            let new = first.since(begin) > span / 10;
            let goes_on = end.since(last) <= span / SILENCE;
            (new && goes_on).then_some((first, service, cite))
        })
        .min()
        .map(|(at, service, cite)| Onset {
            at,
            signal: format!("`{service}` logs a new kind of error"),
            resolution_ms: LOG_RESOLUTION_MS.max(60_000),
            evidence: cite.evidence,
        })
}

/// The lines after the last silence longer than `silence`.
fn after_silence(seen: &[(Millis, Cite)], silence: i64) -> &[(Millis, Cite)] {
    let gap = |pair: &[(Millis, Cite)]| matches!(pair, [a, b] if b.0.since(a.0) > silence);
    let last = seen.windows(2).rposition(gap);
    let begin = last.map_or(0, |i| i.saturating_add(1));
    seen.get(begin..).unwrap_or_default()
}
