//! `metrics`: series from the ring that the scraper fills.

use std::time::Duration;

use policies::model::{Payload, Series};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Failure, Input, Output, Run, SourceSpec, Tool, check, wanted, wrong_source};
use crate::scrape::MetricsRing;

const MAX_SERIES: usize = 400;
const MAX_POINTS: usize = 60_000;

pub(super) const TOOL: Tool = Tool {
    name: "metrics",
    summary: "Answers metric series of services, oldest point first; a target that is down leaves a gap.",
    source: "metrics",
    schema,
    check: check::<Args>,
    timeout: Duration::from_secs(5),
    max_output: 8 << 20,
    run: Run::Core(run),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    services: Vec<String>,
    #[serde(default)]
    names: Vec<String>,
}

fn schema() -> Value {
    let list = |description: &str| json!({"type": "array", "items": {"type": "string"}, "maxItems": 64, "description": description});
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "services": list("only these services; all when absent"),
            "names": list("only these metrics; all when absent"),
        },
        "examples": [{}, {"services": ["checkout"], "names": ["http_requests_total"]}],
    })
}

fn run(input: &Input<'_>, ring: &MetricsRing) -> Result<Output, Failure> {
    let args: Args = input.args()?;
    let SourceSpec::Metrics { every_ms, targets } = input.source else {
        return Err(wrong_source(input, "metrics"));
    };
    let mut services: Vec<&str> = targets
        .iter()
        .map(|target| target.service.as_str())
        .filter(|service| wanted(&args.services, service))
        .collect();
    services.sort_unstable();
    services.dedup();
    let mut series: Vec<Series> = Vec::new();
    let mut partial = Vec::new();
    for service in services {
        partial.extend(ring.gaps(service, input.window));
        let found = ring.query(service, input.window);
        let chosen = |one: &Series| args.names.is_empty() || args.names.contains(&one.name);
        series.extend(found.into_iter().filter(chosen));
    }
    if series.len() > MAX_SERIES {
        partial.push(format!(
            "{} series that changed least left out",
            series.len() - MAX_SERIES
        ));
        series.sort_by(|a, b| change(b).total_cmp(&change(a)));
        series.truncate(MAX_SERIES);
    }
    let step = thin(&mut series, *every_ms);
    series.sort_by(|a, b| {
        let key = |s: &Series| {
            (
                s.service.clone(),
                s.instance.clone(),
                s.name.clone(),
                s.labels.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    Ok(Output {
        payload: Payload::Metrics {
            step_ms: step,
            series,
        },
        partial,
    })
}

/// How much a series moves, relative to its size.
fn change(series: &Series) -> f64 {
    let values = || {
        series
            .points
            .iter()
            .map(|point| point.1)
            .filter(|v| v.is_finite())
    };
    let most = values().fold(f64::MIN, f64::max);
    let least = values().fold(f64::MAX, f64::min);
    if most < least {
        return 0.0;
    }
    (most - least) / most.abs().max(least.abs()).max(1.0)
}

/// Keeps every n-th point, counted from the last, until all fit. Answers the new step.
fn thin(series: &mut [Series], step: i64) -> i64 {
    let total: usize = series.iter().map(|one| one.points.len()).sum();
    let every = total.div_ceil(MAX_POINTS).max(1);
    if every > 1 {
        for one in series {
            let mut from_end = one.points.len();
            one.points.retain(|_| {
                from_end -= 1;
                from_end.is_multiple_of(every)
            });
        }
    }
    step.saturating_mul(i64::try_from(every).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use policies::model::{Millis, Point, Sample, Window};

    use super::super::ScrapeTarget;
    use super::*;

    fn sample(name: &str, value: f64) -> Sample {
        Sample {
            name: name.into(),
            labels: BTreeMap::new(),
            value,
        }
    }

    fn target(service: &str) -> ScrapeTarget {
        ScrapeTarget {
            service: service.into(),
            instance: format!("{service}-1"),
            address: ([127, 0, 0, 1], 1).into(),
            path: "/metrics".into(),
        }
    }

    #[test]
    fn chosen_series_of_the_window_are_answered_with_their_step() {
        let ring = MetricsRing::default();
        let targets = vec![target("checkout"), target("payments")];
        for at in 0..10 {
            for target in &targets {
                let samples = vec![sample("up_total", at as f64), sample("other", 1.0)];
                ring.push(target, Millis(at * 1000), &samples);
            }
        }
        let source = SourceSpec::Metrics {
            every_ms: 1000,
            targets,
        };
        let args = json!({"services": ["payments"], "names": ["up_total"]});
        let input = Input {
            source: &source,
            args: &args,
            window: Window {
                from: Millis(3000),
                to: Millis(5000),
            },
            now: Millis(9000),
        };
        let output = run(&input, &ring).unwrap();
        let Payload::Metrics { step_ms, series } = output.payload else {
            panic!("another payload");
        };
        assert_eq!((step_ms, series.len()), (1000, 1));
        assert_eq!(series[0].service, "payments");
        assert_eq!(
            series[0].points,
            [Point(Millis(3000), 3.0), Point(Millis(4000), 4.0)]
        );
    }

    #[test]
    fn many_points_are_thinned_and_the_last_one_stays() {
        let points: Vec<Point> = (0..i64::try_from(MAX_POINTS).unwrap() * 2 + 1)
            .map(|n| Point(Millis(n), n as f64))
            .collect();
        let last = *points.last().unwrap();
        let mut series = vec![Series {
            name: "x".into(),
            service: "s".into(),
            instance: "i".into(),
            labels: BTreeMap::new(),
            points,
        }];
        assert_eq!(thin(&mut series, 1000), 3000);
        assert!(series[0].points.len() <= MAX_POINTS);
        assert_eq!(*series[0].points.last().unwrap(), last);
    }
}
