//! Did it help? The probe of the executor, read off the scraped metric.

use std::time::Duration;

use policies::machine::{Input, VerificationNote};
use policies::model::{Millis, RemediationClass, Series, Window};
use tokio::sync::mpsc::UnboundedSender;

use super::{Conductor, effects::window_start};
use crate::clock;
use crate::config::Probe;

/// How often the probe looks.
const EVERY: Duration = Duration::from_millis(500);

/// Watches until the metric was good for the configured time, or the time for it is over.
pub(super) async fn watch(
    conductor: &Conductor,
    class: RemediationClass,
    target: &str,
    sender: &UnboundedSender<Input>,
) {
    let parts = &conductor.shared.parts;
    let Some(probe) = parts
        .config
        .executors
        .values()
        .find(|e| e.action == class && e.target == target)
        .map(|e| e.probe.clone())
    else {
        return;
    };
    let waits = &parts.config.investigation;
    let begin = clock::now();
    let ring = parts.scheduler.ring();
    let before = ratio(
        &probe,
        &ring.query(&probe.service, window(begin, probe.window_ms)),
    );
    let mut good_since: Option<Millis> = None;
    let mut after = None;
    let recovered = loop {
        tokio::time::sleep(EVERY).await;
        let now = clock::now();
        // Samples from before the remediation prove nothing about it.
        let mut w = window(now, probe.window_ms);
        w.from = Millis(w.from.0.max(begin.0));
        after = ratio(&probe, &ring.query(&probe.service, w)).or(after);
        let fresh = ratio(&probe, &ring.query(&probe.service, w));
        match fresh {
            Some(r) if r <= probe.max_ratio => {
                let since = *good_since.get_or_insert(now);
                if now.since(since) >= waits.verify_hold_ms {
                    break Some(true);
                }
            }
            Some(_) | None => good_since = None,
        }
        if now.since(begin) >= waits.verify_for_ms {
            break fresh.map(|_| false);
        }
    };
    let metric = format!(
        "share of {} with {} {}xx of {} over {} s, at most {}",
        probe.metric,
        probe.label,
        probe.bad_prefix,
        probe.service,
        probe.window_ms / 1000,
        probe.max_ratio
    );
    let _ = sender.send(Input::Probe(VerificationNote {
        recovered,
        metric,
        before,
        after,
    }));
}

fn window(now: Millis, window_ms: i64) -> Window {
    Window {
        from: window_start(now, window_ms),
        to: now.plus(1),
    }
}

/// The share of bad increments of the counter; `None` when nothing was counted.
pub(super) fn ratio(probe: &Probe, series: &[Series]) -> Option<f64> {
    let (mut bad, mut all) = (0.0, 0.0);
    for one in series.iter().filter(|s| s.name == probe.metric) {
        let rise = increase(one);
        all += rise;
        if one
            .labels
            .get(&probe.label)
            .is_some_and(|v| v.starts_with(&probe.bad_prefix))
        {
            bad += rise;
        }
    }
    (all > 0.0).then(|| bad / all)
}

/// Increase of a counter over its points; a fall is a restart from zero.
fn increase(series: &Series) -> f64 {
    series
        .points
        .iter()
        .zip(series.points.iter().skip(1))
        .map(|(a, b)| if b.1 >= a.1 { b.1 - a.1 } else { b.1 })
        .sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use policies::model::{Millis, Point, Series};

    use super::ratio;
    use crate::config::Probe;

    fn series(code: &str, values: &[f64]) -> Series {
        Series {
            name: "requests_total".into(),
            service: "s".into(),
            instance: "s-1".into(),
            labels: BTreeMap::from([("code".to_owned(), code.to_owned())]),
            points: (0..)
                .zip(values)
                .map(|(i, v)| Point(Millis(i * 1000), *v))
                .collect(),
        }
    }

    fn probe() -> Probe {
        Probe {
            service: "s".into(),
            metric: "requests_total".into(),
            label: "code".into(),
            bad_prefix: "5".into(),
            max_ratio: 0.02,
            window_ms: 5_000,
        }
    }

    #[test]
    fn the_ratio_counts_increases_and_survives_a_restart() {
        let good = series("200", &[100.0, 110.0, 5.0]);
        let bad = series("500", &[7.0, 12.0, 0.0]);
        assert_eq!(ratio(&probe(), &[good, bad]), Some(0.25));
    }

    #[test]
    fn no_traffic_is_no_answer() {
        assert_eq!(ratio(&probe(), &[]), None);
        assert_eq!(ratio(&probe(), &[series("200", &[3.0, 3.0])]), None);
    }
}
