//! The last hours of every scraped series, in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use policies::model::{Millis, Point, Sample, Series, Window};

use crate::tools::ScrapeTarget;

/// How long a point is kept (protocols.md 5: six hours).
const KEEP_MS: i64 = 6 * 60 * 60 * 1000;
/// Most series of one target.
const MAX_SERIES: usize = 5_000;
/// Most points in the ring, whatever the interval: about 96 MiB.
const MAX_POINTS: usize = 6_000_000;

type SeriesKey = (String, BTreeMap<String, String>);

#[derive(Debug, Default)]
struct Kept {
    series: BTreeMap<SeriesKey, VecDeque<Point>>,
    /// Instants at which the target did not answer.
    missed: VecDeque<Millis>,
}

#[derive(Debug, Default)]
struct Inner {
    targets: BTreeMap<(String, String), Kept>,
    points: usize,
}

/// A ring of points for each series of each target.
#[derive(Debug, Default)]
pub struct MetricsRing {
    inner: Mutex<Inner>,
}

impl MetricsRing {
    /// Adds one scrape of a target.
    pub fn push(&self, target: &ScrapeTarget, at: Millis, samples: &[Sample]) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let kept = inner.targets.entry(key(target)).or_default();
        for sample in samples {
            let name = (sample.name.clone(), sample.labels.clone());
            if kept.series.len() >= MAX_SERIES && !kept.series.contains_key(&name) {
                continue;
            }
            kept.series
                .entry(name)
                .or_default()
                .push_back(Point(at, sample.value));
            inner.points += 1;
        }
        let horizon = at.plus(-KEEP_MS);
        inner.points -= kept.forget(horizon);
        while inner.points > MAX_POINTS {
            let oldest = inner.oldest();
            let gone: usize = inner
                .targets
                .values_mut()
                .map(|k| k.forget(oldest.plus(60_000)))
                .sum();
            if gone == 0 {
                break;
            }
            inner.points -= gone;
        }
    }

    /// Notes that a target did not answer.
    pub fn missed(&self, target: &ScrapeTarget, at: Millis) {
        let mut inner = self.lock();
        let missed = &mut inner.targets.entry(key(target)).or_default().missed;
        missed.push_back(at);
        while missed
            .front()
            .is_some_and(|first| *first < at.plus(-KEEP_MS))
        {
            missed.pop_front();
        }
    }

    /// All series of a service with the points inside the window.
    #[must_use]
    pub fn query(&self, service: &str, window: Window) -> Vec<Series> {
        let inner = self.lock();
        let mut out = Vec::new();
        for ((of, instance), kept) in &inner.targets {
            if of != service {
                continue;
            }
            for ((name, labels), points) in &kept.series {
                let from = points.partition_point(|point| point.0 < window.from);
                let to = points.partition_point(|point| point.0 < window.to);
                if from < to {
                    out.push(Series {
                        name: name.clone(),
                        service: of.clone(),
                        instance: instance.clone(),
                        labels: labels.clone(),
                        points: points.range(from..to).copied().collect(),
                    });
                }
            }
        }
        out
    }

    /// One sentence for each instance of a service that did not answer inside the window.
    #[must_use]
    pub fn gaps(&self, service: &str, window: Window) -> Vec<String> {
        let inner = self.lock();
        let mut out = Vec::new();
        for ((of, instance), kept) in &inner.targets {
            let inside = |at: &&Millis| window.from <= **at && **at < window.to;
            let times: Vec<&Millis> = kept.missed.iter().filter(inside).collect();
            if let (true, Some(last)) = (of == service, times.last()) {
                let n = times.len();
                out.push(format!(
                    "{instance}: {n} scrapes without an answer, the last at {last}"
                ));
            }
        }
        out
    }

    /// When a target of the service answered last.
    #[must_use]
    pub fn latest(&self, service: &str) -> Option<Millis> {
        let inner = self.lock();
        let of_service = inner.targets.iter().filter(|((of, _), _)| of == service);
        of_service
            .flat_map(|(_, kept)| kept.series.values())
            .filter_map(|points| points.back())
            .map(|point| point.0)
            .max()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The ring holds plain numbers: a panic elsewhere leaves nothing half done that matters.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn oldest(&self) -> Millis {
        let all = self.targets.values().flat_map(|kept| kept.series.values());
        all.filter_map(|points| points.front())
            .map(|point| point.0)
            .min()
            .unwrap_or(Millis(i64::MAX))
    }
}

impl Kept {
    /// Drops points before `horizon`; answers how many.
    fn forget(&mut self, horizon: Millis) -> usize {
        let mut gone = 0;
        self.series.retain(|_, points| {
            while points.front().is_some_and(|point| point.0 < horizon) {
                points.pop_front();
                gone += 1;
            }
            !points.is_empty()
        });
        gone
    }
}

fn key(target: &ScrapeTarget) -> (String, String) {
    (target.service.clone(), target.instance.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> ScrapeTarget {
        ScrapeTarget {
            service: "checkout".into(),
            instance: "checkout-1".into(),
            address: ([127, 0, 0, 1], 1).into(),
            path: "/metrics".into(),
        }
    }

    fn sample(name: &str, value: f64) -> Sample {
        Sample {
            name: name.into(),
            labels: BTreeMap::new(),
            value,
        }
    }

    const ALWAYS: Window = Window {
        from: Millis(i64::MIN),
        to: Millis(i64::MAX),
    };

    #[test]
    fn points_are_kept_for_six_hours_and_a_series_without_points_goes() {
        let ring = MetricsRing::default();
        ring.push(
            &target(),
            Millis(0),
            &[sample("old", 1.0), sample("both", 1.0)],
        );
        ring.push(&target(), Millis(KEEP_MS + 1), &[sample("both", 2.0)]);
        let found = ring.query("checkout", ALWAYS);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].points, [Point(Millis(KEEP_MS + 1), 2.0)]);
        assert_eq!(ring.lock().points, 1);
    }

    #[test]
    fn a_window_takes_its_first_instant_and_not_its_last() {
        let ring = MetricsRing::default();
        for at in 0..5 {
            ring.push(&target(), Millis(at), &[sample("x", at as f64)]);
        }
        let window = Window {
            from: Millis(1),
            to: Millis(3),
        };
        let found = ring.query("checkout", window);
        assert_eq!(
            found[0].points,
            [Point(Millis(1), 1.0), Point(Millis(2), 2.0)]
        );
        assert!(ring.query("payments", window).is_empty());
    }

    #[test]
    fn a_target_that_did_not_answer_leaves_a_gap_that_is_told() {
        let ring = MetricsRing::default();
        ring.push(&target(), Millis(0), &[sample("x", 1.0)]);
        ring.missed(&target(), Millis(1000));
        ring.missed(&target(), Millis(2000));
        let gaps = ring.gaps("checkout", ALWAYS);
        assert_eq!(
            gaps,
            ["checkout-1: 2 scrapes without an answer, the last at 1970-01-01T00:00:02.000Z"]
        );
        assert_eq!(ring.query("checkout", ALWAYS)[0].points.len(), 1);
        assert_eq!(ring.latest("checkout"), Some(Millis(0)));
    }
}
