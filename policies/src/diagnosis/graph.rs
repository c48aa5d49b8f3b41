//! The call graph (D6) and the walk from the loud service to what it depends on (D7).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Cite;
use super::board::Board;
use super::detect::{self, Shape};
use super::kinds;
use super::rates::{self, Bins};
use super::view::{SeriesRow, View};
use crate::model::Millis;

/// What one service's calls to another look like from the caller's side.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) bins: Bins,
    pub(super) failing: Shape,
    pub(super) cites: Vec<Cite>,
}

impl Calls {
    /// True when these calls fail and have not come back.
    pub(super) fn fail(&self) -> bool {
        match &self.failing {
            Shape::Changed(change) => change.lasts() && change.rose(),
            Shape::Steady(_) | Shape::NoBaseline => {
                let recent = self.bins.values().rev().take(5);
                let (total, failed) =
                    recent.fold((0.0, 0.0), |(t, f), b| (t + b.total, f + b.failed));
                total > 0.0 && failed / total >= 0.05
            }
        }
    }

    /// When they began to fail.
    pub(super) fn began(&self) -> Option<Millis> {
        self.failing.change().filter(|c| c.lasts()).map(|c| c.at)
    }
}

/// Who calls whom.
#[derive(Default)]
pub(super) struct Graph<'v> {
    /// Callees of each caller.
    pub(super) callees: BTreeMap<&'v str, BTreeSet<&'v str>>,
    /// Distance of each service from the loud ones along calls; the failing path lies in here.
    pub(super) depth: BTreeMap<&'v str, usize>,
    /// Measured calls.
    pub(super) calls: BTreeMap<(&'v str, &'v str), Calls>,
}

impl Graph<'_> {
    /// True when a failure of `service` can be the cause of what the loud services show.
    pub(super) fn on_path(&self, service: &str) -> bool {
        self.depth.contains_key(service)
    }

    /// Callers of a service whose calls to it fail, with the evidence.
    pub(super) fn failing_callers(&self, service: &str) -> Vec<(&str, Vec<Cite>)> {
        self.calls
            .iter()
            .filter(|((_, callee), calls)| *callee == service && calls.fail())
            .map(|((caller, _), calls)| (*caller, calls.cites.clone()))
            .collect()
    }

    /// The services that nobody of the site calls.
    pub(super) fn is_edge(&self, service: &str) -> bool {
        !self
            .callees
            .values()
            .any(|callees| callees.contains(service))
    }
}

/// Builds the graph and walks it.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    let mut graph = Graph::default();
    for (edge, _) in &view.edges {
        let callees = graph.callees.entry(edge.caller.as_str()).or_default();
        callees.insert(edge.callee.as_str());
    }
    measure(view, board.width_ms, &mut graph);
    let mut queue: VecDeque<(&str, usize)> = view.loud.iter().map(|s| (*s, 0)).collect();
    if queue.is_empty() {
        queue.extend(view.inventory.iter().map(|s| (s.as_str(), 0)));
    }
    while let Some((service, depth)) = queue.pop_front() {
        if graph.depth.contains_key(service) {
            continue;
        }
        graph.depth.insert(service, depth);
        let callees = graph.callees.get(service).into_iter().flatten();
        queue.extend(callees.map(|callee| (*callee, depth.saturating_add(1))));
    }
    board.graph = graph;
    report(board);
}

fn measure<'v>(view: &'v View<'v>, width: i64, graph: &mut Graph<'v>) {
    type Key<'v> = (&'v str, &'v str);
    let mut rows: BTreeMap<Key<'v>, BTreeMap<(&str, &str), Vec<&SeriesRow<'_>>>> = BTreeMap::new();
    for row in view.series.iter().filter(|r| kinds::is_called(r.series)) {
        let Some(peer) = kinds::peer(row.series) else {
            continue;
        };
        let caller = row.series.service.as_str();
        graph.callees.entry(caller).or_default().insert(peer);
        let group = (row.series.name.as_str(), row.series.instance.as_str());
        let groups = rows.entry((caller, peer)).or_default();
        groups.entry(group).or_default().push(row);
    }
    for (key, groups) in rows {
        let mut bins = Bins::new();
        let failed = |r: &SeriesRow<'_>| kinds::status(r.series).is_some_and(kinds::is_failure);
        for group in groups.values() {
            rates::add(&mut bins, &rates::bins(group, width, failed));
        }
        let all = groups.values().flatten().copied();
        let mut cites = rates::cites(all.clone().filter(|r| failed(r)));
        if cites.is_empty() {
            cites = rates::cites(all);
        }
        let failing = detect::detect(&rates::failed_share(&bins), 0.01);
        let calls = Calls {
            bins,
            failing,
            cites,
        };
        graph.calls.insert(key, calls);
    }
}

fn report(board: &mut Board<'_>) {
    let failing: Vec<(String, Vec<Cite>)> = board
        .graph
        .calls
        .iter()
        .filter(|(_, calls)| calls.fail())
        .map(|((caller, callee), calls)| {
            let since = calls
                .began()
                .map(|at| format!(" since {at}"))
                .unwrap_or_default();
            (
                format!("calls of `{caller}` to `{callee}` fail{since}"),
                calls.cites.clone(),
            )
        })
        .collect();
    for (text, cites) in failing {
        board.fact(text, &cites);
    }
}

/// The callee whose failures a service hands on: its failing calls make up at least half of the
/// service's own failures.
pub(super) fn forwards_from<'v>(board: &Board<'v>, service: &str) -> Option<&'v str> {
    let own = board.services.get(service)?;
    let since = own.began().unwrap_or(Millis(i64::MIN));
    let failed = |bins: &Bins| rates::sum(bins, since, Millis(i64::MAX)).failed;
    let mine = failed(&own.bins);
    board
        .graph
        .calls
        .iter()
        .filter(|((caller, _), calls)| *caller == service && calls.fail())
        .map(|((_, callee), calls)| (*callee, failed(&calls.bins)))
        .filter(|(_, theirs)| mine > 0.0 && *theirs >= 0.5 * mine)
        .max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.0.cmp(a.0)))
        .map(|(callee, _)| callee)
}
