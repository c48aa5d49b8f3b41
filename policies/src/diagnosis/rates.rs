//! Counters turned into what happened in each bin of time.
//!
//! A counter that falls was reset and counts from zero. A series that appears later than others of
//! its metric began at zero: the first failed request makes the first series of its status.

use std::collections::{BTreeMap, BTreeSet};

use super::Cite;
use super::view::SeriesRow;
use crate::model::Millis;

/// Narrowest bin.
const BIN_MIN_MS: i64 = 1_000;
/// Most bins over the whole span.
const BINS_MAX: i64 = 600;

/// What happened in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bin {
    /// All requests.
    pub(super) total: f64,
    /// Failed ones.
    pub(super) failed: f64,
}

/// Bins by their begin.
pub(super) type Bins = BTreeMap<Millis, Bin>;

/// Adds one instance's bins to another's.
pub(super) fn add(into: &mut Bins, from: &Bins) {
    for (at, bin) in from {
        let sum = into.entry(*at).or_default();
        sum.total += bin.total;
        sum.failed += bin.failed;
    }
}

/// The width of bins that suits these series.
pub(super) fn width(rows: &[SeriesRow<'_>]) -> i64 {
    let step = rows.iter().map(|r| r.step_ms).max().unwrap_or(0);
    let times = || {
        rows.iter()
            .flat_map(|r| r.series.points.iter().map(|p| p.0.0))
    };
    let span = match (times().min(), times().max()) {
        (Some(first), Some(last)) => last.saturating_sub(first),
        (None, _) | (_, None) => 0,
    };
    step.max(BIN_MIN_MS).max(span / BINS_MAX)
}

/// The begin of the bin that an instant lies in.
pub(super) fn bin_of(at: Millis, width: i64) -> Millis {
    Millis(at.0.div_euclid(width.max(1)).saturating_mul(width.max(1)))
}

/// Growth of each series of one metric of one instance: when, by how much, which row.
pub(super) fn growth<'v>(rows: &[&'v SeriesRow<'v>]) -> Vec<(Millis, f64, &'v SeriesRow<'v>)> {
    let first_of_all = rows
        .iter()
        .filter_map(|r| r.series.points.first().map(|p| p.0))
        .min();
    let mut grown = Vec::new();
    for &row in rows {
        let mut points = row.series.points.iter();
        let Some(first) = points.next() else { continue };
        if Some(first.0) > first_of_all {
            grown.push((first.0, first.1.max(0.0), row));
        }
        let mut last = first.1;
        for point in points {
            let more = if point.1 < last {
                point.1
            } else {
                point.1 - last
            };
            last = point.1;
            grown.push((point.0, more.max(0.0), row));
        }
    }
    grown
}

/// Counts the events of one metric of one instance into bins; `failed` tells which rows are failures.
pub(super) fn bins(
    rows: &[&SeriesRow<'_>],
    width: i64,
    failed: impl Fn(&SeriesRow<'_>) -> bool,
) -> Bins {
    let mut bins = Bins::new();
    for (at, more, row) in growth(rows) {
        let bin = bins.entry(bin_of(at, width)).or_default();
        bin.total += more;
        if failed(row) {
            bin.failed += more;
        }
    }
    bins
}

/// Fewest events that a share is made from: fewer say more about chance than about the service.
const SHARE_OF: f64 = 10.0;

/// The share of failed requests over time. Bins with few requests are joined to the ones after
/// them; what is left at the end is joined to the last share.
pub(super) fn failed_share(bins: &Bins) -> Vec<(Millis, f64)> {
    let mut joined: Vec<(Millis, Bin)> = Vec::new();
    let mut open: Option<(Millis, Bin)> = None;
    for (at, bin) in bins.iter().filter(|(_, b)| b.total > 0.0) {
        let (begin, mut sum) = open.unwrap_or((*at, Bin::default()));
        sum.total += bin.total;
        sum.failed += bin.failed;
        open = Some((begin, sum));
        if sum.total >= SHARE_OF {
            joined.extend(open.take());
        }
    }
    match (open, joined.last_mut()) {
        (Some((_, rest)), Some((_, last))) => {
            last.total += rest.total;
            last.failed += rest.failed;
        }
        (rest, _) => joined.extend(rest),
    }
    let share = |(at, bin): (Millis, Bin)| (at, bin.failed / bin.total);
    joined.into_iter().map(share).collect()
}

/// Sums over the bins of `[from, to)`.
pub(super) fn sum(bins: &Bins, from: Millis, to: Millis) -> Bin {
    let mut sum = Bin::default();
    if from < to {
        for bin in bins.range(from..to).map(|(_, b)| b) {
            sum.total += bin.total;
            sum.failed += bin.failed;
        }
    }
    sum
}

/// Citations of rows, each once.
pub(super) fn cites<'v>(rows: impl IntoIterator<Item = &'v SeriesRow<'v>>) -> Vec<Cite> {
    let all: BTreeSet<Cite> = rows.into_iter().map(|r| r.cite).collect();
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::{Bin, Bins, failed_share};
    use crate::model::Millis;

    #[test]
    fn few_requests_are_joined_until_they_say_something() {
        let bin = |total, failed| Bin { total, failed };
        let all = [
            (0, bin(12.0, 3.0)),
            (1, bin(4.0, 1.0)),
            (2, bin(0.0, 0.0)),
            (3, bin(6.0, 0.0)),
            (4, bin(2.0, 2.0)),
        ];
        let bins: Bins = all.into_iter().map(|(at, bin)| (Millis(at), bin)).collect();
        let shares = failed_share(&bins);
        assert_eq!(shares, [(Millis(0), 0.25), (Millis(1), 0.25)]);
        assert_eq!(failed_share(&Bins::new()), []);
    }
}
