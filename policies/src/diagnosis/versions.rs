//! Two versions side by side (guard rails 11.2.4): does the new one fail while the old one does not?

use std::collections::{BTreeMap, BTreeSet};

use super::Cite;
use super::board::Board;
use super::kinds;
use super::rates::{self, Bin};
use super::view::View;
use crate::model::Millis;

/// How much more often the new version must fail.
const RATIO: f64 = 5.0;
/// How many failures of the new version are needed.
const FAILURES: f64 = 20.0;
/// How many failures of the old version refute.
const OLD_FAILURES: f64 = 5.0;

/// What two versions of one service did at the same time.
#[derive(Clone, Debug)]
pub(super) struct Split<'v> {
    pub(super) service: &'v str,
    pub(super) new: &'v str,
    pub(super) old: &'v str,
    pub(super) new_did: Bin,
    pub(super) old_did: Bin,
    pub(super) since: Millis,
    pub(super) cites: Vec<Cite>,
}

fn share(bin: Bin) -> f64 {
    if bin.total > 0.0 {
        bin.failed / bin.total
    } else {
        0.0
    }
}

impl Split<'_> {
    /// The new version fails and the old one, under the same load at the same time, does not.
    pub(super) fn blames_new(&self) -> bool {
        // One failure that did not happen is granted to the old version, so that few requests
        // without a failure prove nothing.
        let granted = (self.old_did.failed + 1.0) / self.old_did.total.max(1.0);
        let known = self.old_did.total >= FAILURES;
        let ratio = share(self.new_did) / share(self.old_did).max(granted.min(0.02));
        known && self.new_did.failed >= FAILURES && ratio >= RATIO
    }

    /// The old version fails as well.
    pub(super) fn clears_new(&self) -> bool {
        self.old_did.failed >= OLD_FAILURES && share(self.old_did) * 2.0 >= share(self.new_did)
    }
}

/// When each version ran on each instance.
type Runs<'v> = BTreeMap<(&'v str, &'v str), BTreeMap<&'v str, (Millis, Millis, Cite)>>;

/// Compares the versions of each service wherever two ran at the same time.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    let mut runs: Runs<'_> = BTreeMap::new();
    for row in &view.series {
        let (Some(version), Some(first), Some(last)) = (
            kinds::version(row.series),
            row.series.points.first(),
            row.series.points.last(),
        ) else {
            continue;
        };
        let key = (row.series.service.as_str(), row.series.instance.as_str());
        let spans = runs.entry(key).or_default();
        spans.insert(version, (first.0, last.0, row.cite));
    }
    let services: BTreeSet<&str> = runs.keys().map(|(service, _)| *service).collect();
    for service in services {
        let found = splits(service, &runs, board);
        for split in found {
            if split.blames_new() {
                let text = format!(
                    "at the same time version {} of `{service}` fails {:.0} % and version {} {:.0} %",
                    split.new,
                    share(split.new_did) * 100.0,
                    split.old,
                    share(split.old_did) * 100.0
                );
                board.fact(text, &split.cites);
            }
            board.splits.push(split);
        }
    }
}

fn splits<'v>(service: &'v str, runs: &Runs<'v>, board: &Board<'v>) -> Vec<Split<'v>> {
    let mut found: BTreeMap<(&str, &str), Split<'_>> = BTreeMap::new();
    let own = || runs.iter().filter(|((name, _), _)| *name == service);
    for ((_, new_on), new_spans) in own() {
        for ((_, old_on), old_spans) in own().filter(|((_, on), _)| on != new_on) {
            for (new, new_span) in new_spans {
                for (old, old_span) in old_spans {
                    // The new version is the one that the other instance did not begin with.
                    let newer = new != old && new_span.0 > old_span.0;
                    let (from, to) = (new_span.0.max(old_span.0), new_span.1.min(old_span.1));
                    if !newer || from >= to {
                        continue;
                    }
                    let did = |on: &str| {
                        let signals = board.instances.get(&(service, on));
                        signals.map_or_else(Bin::default, |s| rates::sum(&s.bins, from, to))
                    };
                    let split = found.entry((new, old)).or_insert_with(|| Split {
                        service,
                        new,
                        old,
                        new_did: Bin::default(),
                        old_did: Bin::default(),
                        since: from,
                        cites: Vec::new(),
                    });
                    split.since = split.since.min(from);
                    for (into, did) in [
                        (&mut split.new_did, did(new_on)),
                        (&mut split.old_did, did(old_on)),
                    ] {
                        into.total += did.total;
                        into.failed += did.failed;
                    }
                    split.cites.extend([new_span.2, old_span.2]);
                    let series = [new_on, old_on].into_iter().filter_map(|on| {
                        board
                            .instances
                            .get(&(service, on))
                            .and_then(|s| s.cites.first())
                    });
                    split.cites.extend(series);
                }
            }
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::Split;
    use crate::diagnosis::rates::Bin;
    use crate::model::Millis;

    fn split(new: (f64, f64), old: (f64, f64)) -> Split<'static> {
        let bin = |(total, failed)| Bin { total, failed };
        Split {
            service: "till",
            new: "2",
            old: "1",
            new_did: bin(new),
            old_did: bin(old),
            since: Millis(0),
            cites: Vec::new(),
        }
    }

    #[test]
    fn a_failing_new_version_beside_a_healthy_old_one_is_blamed() {
        assert!(split((100.0, 40.0), (100.0, 0.0)).blames_new());
        assert!(split((100.0, 40.0), (100.0, 5.0)).blames_new());
    }

    #[test]
    fn too_few_failures_or_too_small_a_difference_blame_nothing() {
        assert!(!split((100.0, 19.0), (100.0, 0.0)).blames_new());
        assert!(!split((100.0, 40.0), (100.0, 10.0)).blames_new());
        assert!(!split((100.0, 40.0), (3.0, 0.0)).blames_new());
    }

    #[test]
    fn an_old_version_that_fails_too_clears_the_new_one() {
        assert!(split((100.0, 40.0), (100.0, 30.0)).clears_new());
        assert!(!split((100.0, 40.0), (100.0, 1.0)).clears_new());
    }
}
