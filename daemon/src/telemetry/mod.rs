//! Metrics and logs: one table of names, one recorder, one subscriber.

pub mod names;

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::filter::LevelFilter;

use crate::listen;
use names::{Kind, METRICS, Metric};

/// Bounds of every histogram of seconds.
const SECONDS: &[f64] = &[
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// Installs the recorder of this process and describes every metric of the table.
///
/// # Errors
/// A recorder is installed already.
pub fn install_recorder() -> Result<PrometheusHandle, metrics_exporter_prometheus::BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
        .install_recorder()?;
    for metric in METRICS {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.help),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
            Kind::Histogram => metrics::describe_histogram!(metric.name, metric.help),
        }
    }
    Ok(handle)
}

fn labels(metric: &Metric, values: &[&str]) -> Vec<metrics::Label> {
    debug_assert_eq!(
        metric.labels.len(),
        values.len(),
        "{} has other labels",
        metric.name
    );
    metric
        .labels
        .iter()
        .zip(values)
        .map(|(name, value)| metrics::Label::new(*name, (*value).to_owned()))
        .collect()
}

/// Adds to a counter of the table; `values` are those of its labels, in order.
pub fn count(metric: &'static Metric, values: &[&str], by: u64) {
    metrics::counter!(metric.name, labels(metric, values)).increment(by);
}

/// Sets a gauge of the table.
pub fn gauge(metric: &'static Metric, values: &[&str], to: f64) {
    metrics::gauge!(metric.name, labels(metric, values)).set(to);
}

/// Adds to a histogram of the table.
pub fn observe(metric: &'static Metric, values: &[&str], value: f64) {
    metrics::histogram!(metric.name, labels(metric, values)).record(value);
}

/// Installs the one trace subscriber: a JSON object a line on standard error.
pub fn install_subscriber(level: &str) {
    let level = level.parse().unwrap_or(LevelFilter::INFO);
    let _ = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .try_init();
}

/// Serves `/metrics` on its own listener until the process ends.
///
/// # Errors
/// The address cannot be bound.
pub async fn serve_metrics(
    listen: SocketAddr,
    handle: PrometheusHandle,
) -> std::io::Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let app = Router::new().route(
        "/metrics",
        get(move || async move {
            (
                [("content-type", "text/plain; version=0.0.4")],
                handle.render(),
            )
        }),
    );
    tokio::spawn(listen::serve(listener, app, listen::HEAD));
    Ok(address)
}

/// Two of the four places of an intervention: the counter and the event of the span. The others,
/// the record of the incident and its postmortem, are written by the state machine.
pub fn guardrail(incident: Option<&str>, event: &policies::event::GuardrailEvent) {
    count(
        names::GUARDRAILS,
        &[event.layer.as_str(), &event.code],
        u64::from(event.count),
    );
    tracing::info!(
        target: "sentinel.guardrail",
        incident = incident.unwrap_or_default(),
        layer = event.layer.as_str(),
        code = event.code.as_str(),
        rule = event.rule.as_str(),
        count = event.count,
        evidence = event.evidence.map(|id| id.to_string()),
        step = event.step.as_str(),
        decision = event.decision(),
        "guardrail intervened"
    );
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use metrics_exporter_prometheus::PrometheusBuilder;
    use policies::event::{CODES, GuardrailEvent, Layer};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn r12_2_every_code_has_the_same_count_in_the_counter_and_in_the_span_event() {
        let written = Written::default();
        let sink = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_writer(move || sink.clone())
            .finish();
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        tracing::subscriber::with_default(subscriber, || {
            metrics::with_local_recorder(&recorder, || {
                for (count, code) in (1..).zip(CODES) {
                    let mut event = GuardrailEvent::once(Layer::Redact, code);
                    event.count = count;
                    super::guardrail(Some("inc"), &event);
                }
            });
        });
        let page = handle.render();
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let events: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(events.len(), CODES.len());
        for ((count, code), event) in (1_u32..).zip(CODES).zip(&events) {
            let line = format!(
                "sentinel_guardrail_events_total{{layer=\"redact\",code=\"{code}\"}} {count}"
            );
            assert!(page.contains(&line), "{line} in {page}");
            assert_eq!(event["code"], *code);
            assert_eq!(event["count"], count);
            assert_eq!(event["incident"], "inc");
        }
    }
}
