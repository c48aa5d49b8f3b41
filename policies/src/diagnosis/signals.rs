//! Change points of what each service answers (D4): failures, durations, silence.

use std::collections::BTreeMap;

use super::board::{Board, Signals};
use super::detect::{self, Shape};
use super::kinds::{self, Half};
use super::rates::{self, Bin, Bins};
use super::view::{SeriesRow, View};
use crate::model::Millis;

/// Smallest spread of a share of failed requests that means anything.
const SHARE_FLOOR: f64 = 0.01;
/// Smallest spread of a mean duration that means anything, in seconds: a busy machine alone makes
/// some milliseconds.
const DURATION_FLOOR_S: f64 = 0.01;
/// A target that misses this many steps is silent.
const SILENT_STEPS: i64 = 6;

/// Reads the counters of every service.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    board.width_ms = rates::width(&view.series);
    let mut by_instance: BTreeMap<(&str, &str), Vec<&SeriesRow<'_>>> = BTreeMap::new();
    let mut by_service: BTreeMap<&str, Vec<&SeriesRow<'_>>> = BTreeMap::new();
    for row in &view.series {
        let (service, instance) = (row.series.service.as_str(), row.series.instance.as_str());
        by_instance
            .entry((service, instance))
            .or_default()
            .push(row);
        by_service.entry(service).or_default().push(row);
    }
    for (key, rows) in by_instance {
        let signals = read(&rows, board.width_ms, view.last_sample);
        board.instances.insert(key, signals);
    }
    for (service, rows) in by_service {
        let mut signals = read(&rows, board.width_ms, view.last_sample);
        // A service is silent when all its instances are.
        let mut own = board
            .instances
            .iter()
            .filter(|((name, _), _)| *name == service);
        signals.stopped = own.all(|(_, instance)| instance.stopped);
        board.services.insert(service, signals);
    }
    report(board);
}

fn read(rows: &[&SeriesRow<'_>], width: i64, last_sample: Option<Millis>) -> Signals {
    let served: Vec<&SeriesRow<'_>> = one_metric(rows);
    let mut bins = Bins::new();
    for group in by_metric_and_instance(&served).values() {
        let failed = |r: &SeriesRow<'_>| kinds::status(r.series).is_some_and(kinds::is_failure);
        rates::add(&mut bins, &rates::bins(group, width, failed));
    }
    let failed_rows = served
        .iter()
        .filter(|r| kinds::status(r.series).is_some_and(kinds::is_failure));
    let mut cites = rates::cites(failed_rows.copied());
    if cites.is_empty() {
        cites = rates::cites(served.iter().copied());
    }
    let (latency, latency_cites) = durations(rows, width);
    let last_seen = rows
        .iter()
        .filter_map(|r| r.series.points.last().map(|p| p.0))
        .max()
        .unwrap_or(Millis(0));
    let step = rows.iter().map(|r| r.step_ms).max().unwrap_or(0);
    Signals {
        failing: detect::detect(&rates::failed_share(&bins), SHARE_FLOOR),
        bins,
        latency,
        last_seen,
        stopped: last_sample.is_some_and(|last| last.since(last_seen) > step * SILENT_STEPS),
        cites,
        latency_cites,
    }
}

/// The rows of the request counter; of several such metrics the one with the most requests, so that
/// nothing is counted twice.
fn one_metric<'r, 'v>(rows: &[&'r SeriesRow<'v>]) -> Vec<&'r SeriesRow<'v>> {
    let mut by_name: BTreeMap<&str, Vec<&'r SeriesRow<'v>>> = BTreeMap::new();
    for &row in rows.iter().filter(|r| kinds::is_served(r.series)) {
        by_name
            .entry(row.series.name.as_str())
            .or_default()
            .push(row);
    }
    let grown = |rows: &Vec<&SeriesRow<'_>>| -> f64 {
        let ends = rows.iter().filter_map(|r| r.series.points.last());
        ends.map(|p| p.1).sum()
    };
    by_name
        .into_values()
        .max_by(|a, b| grown(a).total_cmp(&grown(b)))
        .unwrap_or_default()
}

type Groups<'r, 'v> = BTreeMap<(&'r str, &'r str), Vec<&'r SeriesRow<'v>>>;

fn by_metric_and_instance<'r, 'v>(rows: &[&'r SeriesRow<'v>]) -> Groups<'r, 'v> {
    let mut groups: Groups<'r, 'v> = BTreeMap::new();
    for &row in rows {
        let key = (row.series.name.as_str(), row.series.instance.as_str());
        groups.entry(key).or_default().push(row);
    }
    groups
}

fn durations(rows: &[&SeriesRow<'_>], width: i64) -> (Shape, Vec<super::Cite>) {
    let half = |wanted: Half| -> Vec<&SeriesRow<'_>> {
        let of = |r: &&&SeriesRow<'_>| kinds::duration(r.series) == Some(wanted);
        rows.iter().filter(of).copied().collect()
    };
    let (sums, counts) = (half(Half::Sum), half(Half::Count));
    let count = |rows: &[&SeriesRow<'_>]| {
        let mut bins = Bins::new();
        for group in by_metric_and_instance(rows).values() {
            rates::add(&mut bins, &rates::bins(group, width, |_| false));
        }
        bins
    };
    let (sum, number) = (count(&sums), count(&counts));
    // A mean is a share whose parts are durations.
    let means: Bins = number
        .iter()
        .filter_map(|(at, n)| {
            let failed = sum.get(at)?.total;
            let total = n.total;
            Some((*at, Bin { total, failed }))
        })
        .collect();
    let cites = rates::cites(sums.iter().copied());
    let floor = sums.first().map_or(f64::MIN_POSITIVE, |r| {
        kinds::seconds_of(r.series).map_or(f64::MIN_POSITIVE, |unit| DURATION_FLOOR_S / unit)
    });
    (detect::detect(&rates::failed_share(&means), floor), cites)
}

fn report(board: &mut Board<'_>) {
    let mut lines = Vec::new();
    for (service, signals) in &board.services {
        if let Some(change) = signals.failing.change() {
            let state = change.over.map_or_else(
                || "and still does".to_owned(),
                |over| format!("until {over}"),
            );
            let text = format!(
                "`{service}` fails {:.0} % of its requests since {} {state}; {:.0} % before",
                change.after * 100.0,
                change.at,
                change.before * 100.0
            );
            lines.push((text, signals.cites.clone()));
        }
        if signals.is_slow()
            && let Some(change) = signals.latency.change()
        {
            let text = format!(
                "`{service}` takes {:.1} times as long since {}",
                change.after / change.before.max(f64::MIN_POSITIVE),
                change.at
            );
            lines.push((text, signals.latency_cites.clone()));
        }
        if signals.stopped {
            let text = format!("`{service}` gives no samples since {}", signals.last_seen);
            lines.push((text, signals.cites.clone()));
        }
    }
    for (text, cites) in lines {
        board.fact(text, &cites);
    }
}
