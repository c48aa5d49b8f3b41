//! What the supervisor of units says: who is down now, and since when.

use std::collections::BTreeMap;

use super::Cite;
use super::board::Board;
use super::view::{UnitRow, View};
use crate::model::Millis;

/// How a unit went down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The kernel or the supervisor killed it for its memory.
    OutOfMemory,
    /// A signal.
    Killed,
    /// By itself, or by somebody's order.
    Ended,
}

/// A unit that is not active now.
#[derive(Clone, Debug)]
pub(super) struct Down<'v> {
    pub(super) service: &'v str,
    pub(super) instance: &'v str,
    pub(super) at: Millis,
    pub(super) way: Way,
    pub(super) cites: Vec<Cite>,
}

/// Finds the units that are down at the end of the record.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    let mut by_unit: BTreeMap<(&str, &str), Vec<&UnitRow<'_>>> = BTreeMap::new();
    for row in &view.units {
        let key = (row.event.service.as_str(), row.event.instance.as_str());
        by_unit.entry(key).or_default().push(row);
    }
    for ((service, instance), rows) in by_unit {
        let Some(down) = down(service, instance, &rows) else {
            continue;
        };
        // A process that took over may be announced before the end of the one that it replaced:
        // what answers its metrics page is not down.
        let answers = board
            .instances
            .get(&(service, instance))
            .is_some_and(|signals| !signals.stopped && signals.last_seen > down.at);
        if answers {
            continue;
        }
        let way = match down.way {
            Way::OutOfMemory => "was killed for its memory",
            Way::Killed => "was killed",
            Way::Ended => "ended",
        };
        let text = format!("`{instance}` {way} at {} and is down since", down.at);
        board.fact(text, &down.cites);
        board.down.push(down);
    }
}

/// A unit is down when its newest event leaves it in another state than active. It went down with
/// the first event of that stretch.
fn down<'v>(service: &'v str, instance: &'v str, rows: &[&'v UnitRow<'v>]) -> Option<Down<'v>> {
    let is_down = |row: &&&UnitRow<'_>| row.event.state != "active";
    let tail: Vec<&UnitRow<'_>> = rows.iter().rev().take_while(is_down).copied().collect();
    let first = tail.last()?;
    let ways = tail.iter().map(|r| match r.event.event.as_str() {
        "oom_killed" => Way::OutOfMemory,
        "killed" => Way::Killed,
        _ => Way::Ended,
    });
    let way = ways.fold(Way::Ended, |worst, way| match (worst, way) {
        (Way::OutOfMemory, _) | (_, Way::OutOfMemory) => Way::OutOfMemory,
        (Way::Killed, _) | (_, Way::Killed) => Way::Killed,
        (Way::Ended, Way::Ended) => Way::Ended,
    });
    Some(Down {
        service,
        instance,
        at: first.event.at,
        way,
        cites: tail.iter().rev().map(|r| r.cite).collect(),
    })
}
