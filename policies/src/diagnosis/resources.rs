//! Limited resources: the gauges that belong together, and whether the resource is used up.

use std::collections::BTreeMap;

use super::Cite;
use super::board::Board;
use super::detect;
use super::kinds::{self, Part, ResourceKind};
use super::view::{SeriesRow, View};
use crate::model::{Millis, Point};

/// A pool is used up from this share on.
const POOL_FULL: f64 = 0.95;
/// Memory is used up from this share on.
const MEMORY_FULL: f64 = 0.9;
/// A disk is full with less than this share free.
const DISK_FULL: f64 = 0.95;
/// A pool must be used up for this many points: a queue that a short stall left behind is worked off.
const SUSTAINED: usize = 8;
/// The newest points that decide whether it is used up now.
const RECENT: usize = 5;

/// A limited resource of one instance.
#[derive(Clone, Debug)]
pub(super) struct Resource<'v> {
    pub(super) service: &'v str,
    pub(super) instance: &'v str,
    pub(super) kind: ResourceKind,
    /// The words of its name, without those for its parts.
    pub(super) stem: Vec<String>,
    /// How much there is now.
    pub(super) capacity: f64,
    /// Share in use, now.
    pub(super) share: f64,
    /// How much is wanted while it is used up: in use and waiting.
    pub(super) demand: f64,
    /// Since when it is used up; `None` while it is not.
    pub(super) since: Option<Millis>,
    /// True when it was already used up when the record began.
    pub(super) always: bool,
    /// True when a gauge tells how many wait.
    pub(super) tells_waiting: bool,
    pub(super) cites: Vec<Cite>,
}

#[derive(Default)]
struct Gauges<'v> {
    parts: BTreeMap<Part, &'v SeriesRow<'v>>,
}

/// Groups the gauges and judges each resource.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    type Key<'v> = (
        &'v str,
        &'v str,
        ResourceKind,
        Vec<String>,
        Vec<(&'v str, &'v str)>,
    );
    let mut groups: BTreeMap<Key<'_>, Gauges<'_>> = BTreeMap::new();
    for row in &view.series {
        let Some((stem, kind, part)) = kinds::resource(row.series) else {
            continue;
        };
        let labels = row
            .series
            .labels
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()));
        let key = (
            row.series.service.as_str(),
            row.series.instance.as_str(),
            kind,
            stem,
            labels.collect(),
        );
        groups.entry(key).or_default().parts.insert(part, row);
    }
    for ((service, instance, kind, stem, _), gauges) in groups {
        if let Some(resource) = judge(service, instance, kind, stem, &gauges) {
            report(&resource, board);
            board.resources.push(resource);
        }
    }
}

fn judge<'v>(
    service: &'v str,
    instance: &'v str,
    kind: ResourceKind,
    stem: Vec<String>,
    gauges: &Gauges<'v>,
) -> Option<Resource<'v>> {
    let capacity = gauges.parts.get(&Part::Capacity)?;
    let used = gauges.parts.get(&Part::Used);
    let free = gauges.parts.get(&Part::Free);
    let waiting = gauges.parts.get(&Part::Waiting);
    let measured = used.or(free)?;
    let limits = &capacity.series.points;
    let shares: Vec<(Millis, f64)> = measured
        .series
        .points
        .iter()
        .filter_map(|point| {
            let limit = at(limits, point.0).filter(|l| *l > 0.0)?;
            let share = point.1 / limit;
            Some((point.0, if used.is_some() { share } else { 1.0 - share }))
        })
        .collect();
    let full = match kind {
        ResourceKind::Pool | ResourceKind::Descriptors => POOL_FULL,
        ResourceKind::Memory => MEMORY_FULL,
        ResourceKind::Disk => DISK_FULL,
    };
    let waits = |at_time: Millis| {
        waiting
            .and_then(|w| at(&w.series.points, at_time))
            .unwrap_or(0.0)
    };
    let since = full_since(&shares, full);
    // A pool whose users hardly ever wait is busy and not used up.
    let recent = shares.iter().rev().take(RECENT);
    let queues = recent.filter(|(t, _)| waits(*t) >= 1.0).count();
    let long = shares
        .iter()
        .filter(|(t, _)| since.is_some_and(|since| *t >= since))
        .count();
    let waited = waiting.is_none() || queues * 2 > RECENT;
    let starved = kind != ResourceKind::Pool || (waited && long >= SUSTAINED);
    let since = since.filter(|_| starved);
    let wanted: Vec<f64> = measured
        .series
        .points
        .iter()
        .filter(|p| since.is_some_and(|since| p.0 >= since) && used.is_some())
        .map(|p| p.1 + waits(p.0))
        .collect();
    let rows = [Some(capacity), used, free, waiting].into_iter().flatten();
    Some(Resource {
        service,
        instance,
        kind,
        stem,
        capacity: limits.last()?.1,
        share: shares.last()?.1,
        demand: detect::quantile(&wanted, 3, 4),
        since,
        always: since.is_some() && since == shares.first().map(|s| s.0),
        tells_waiting: waiting.is_some(),
        cites: rows.map(|r| r.cite).collect(),
    })
}

/// The value in force at an instant: that of the newest point up to it.
fn at(points: &[Point], when: Millis) -> Option<f64> {
    let upto = points.partition_point(|p| p.0 <= when);
    points.get(upto.saturating_sub(1)).map(|p| p.1)
}

/// Since when the share is at its limit: most of the newest points are, and it is dated by walking
/// back over single dips.
fn full_since(shares: &[(Millis, f64)], full: f64) -> Option<Millis> {
    let recent: Vec<f64> = shares.iter().rev().take(RECENT).map(|s| s.1).collect();
    if detect::median(&recent) < full || recent.is_empty() {
        return None;
    }
    let mut since = None;
    let mut dips = 0;
    for (time, share) in shares.iter().rev() {
        if *share >= full {
            since = Some(*time);
            dips = 0;
        } else {
            dips += 1;
            if dips >= 3 {
                break;
            }
        }
    }
    since
}

fn report(resource: &Resource<'_>, board: &mut Board<'_>) {
    if let Some(since) = resource.since {
        let text = format!(
            "the {} of `{}` is used up to {:.0} % since {since}",
            resource.kind.words(),
            resource.instance,
            resource.share * 100.0
        );
        board.fact(text, &resource.cites);
    }
}

#[cfg(test)]
mod tests {
    use super::full_since;
    use crate::model::Millis;

    fn shares(values: &[f64]) -> Vec<(Millis, f64)> {
        (0..).map(Millis).zip(values.iter().copied()).collect()
    }

    #[test]
    fn it_is_used_up_since_it_stays_at_its_limit() {
        let found = full_since(&shares(&[0.2, 0.3, 1.0, 1.0, 0.8, 1.0, 1.0, 1.0]), 0.95);
        assert_eq!(found, Some(Millis(2)));
    }

    #[test]
    fn a_peak_that_is_over_is_nothing() {
        assert_eq!(
            full_since(&shares(&[0.2, 1.0, 1.0, 0.3, 0.2, 0.2]), 0.95),
            None
        );
        assert_eq!(full_since(&[], 0.95), None);
    }
}
