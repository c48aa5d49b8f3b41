//! The lab's alert evaluator: rules over the scraped pages, sent as Alertmanager v4 webhooks.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use policies::model::Millis;
use serde_json::{Value, json};

use super::http::{self, Request};
use super::layout::INSTANCES;
use super::scrape::Pages;

/// Rules look back this far.
pub(super) const WINDOW: Duration = Duration::from_secs(5);
/// While something fires, the group is sent again after this time.
const REPEAT: Duration = Duration::from_secs(5);
/// Each attempt waits this long for its answer.
const TIMEOUT: Duration = Duration::from_secs(3);

const ERROR_RATIO_MAX: f64 = 0.05;
const LATENCY_MAX_SECONDS: f64 = 0.6;
const DISK_FREE_MIN: f64 = 0.05;

/// One condition that holds now.
struct Condition {
    name: &'static str,
    service: &'static str,
    instance: Option<&'static str>,
    severity: &'static str,
    hold: Duration,
    summary: String,
}

/// One alert by its rule and labels.
struct Alert {
    labels: BTreeMap<&'static str, String>,
    summary: String,
    since: Instant,
    hold: Duration,
    fired_at: Option<Millis>,
    ended_at: Option<Millis>,
    announced: bool,
}

/// Where webhooks go, and with which credential.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Host and port.
    pub(super) address: SocketAddr,
    /// Path of the intake.
    pub(super) path: String,
    /// File that holds the bearer token; read for each webhook.
    pub(super) credential: PathBuf,
}

impl Receiver {
    /// Reads `http://HOST:PORT/PATH`.
    ///
    /// # Errors
    /// When the address is of another form.
    pub(super) fn parse(url: &str, credential: PathBuf) -> anyhow::Result<Self> {
        let rest = url
            .strip_prefix("http://")
            .with_context(|| format!("`{url}` is not an http address"))?;
        let (host, path) = rest
            .split_once('/')
            .with_context(|| format!("`{url}` has no path"))?;
        let address = host.to_socket_addrs()?.next();
        let address = address.with_context(|| format!("`{host}` has no address"))?;
        ensure!(
            address.ip().is_loopback(),
            "`{host}` is not on this machine"
        );
        Ok(Self {
            address,
            path: format!("/{path}"),
            credential,
        })
    }
}

/// What the evaluator has sent so far.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub(super) struct Sent {
    /// Webhooks that were taken.
    pub(super) taken: u64,
    /// Attempts that failed and are tried again, or were refused.
    pub(super) failed: u64,
    /// Last status code; 0 when nobody answered.
    pub(super) last_code: u16,
}

/// The evaluator's memory.
pub(super) struct Evaluator {
    alerts: BTreeMap<String, Alert>,
    last_sent: Option<Instant>,
    /// Counters of what was sent.
    pub(super) sent: Sent,
}

fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

fn conditions(pages: &Pages, now: Instant) -> Vec<Condition> {
    let mut out = Vec::new();
    for service in super::layout::SERVICES {
        if let Some(ratio) = pages.error_ratio(service, WINDOW, now)
            && ratio > ERROR_RATIO_MAX
        {
            out.push(Condition {
                name: "HighErrorRate",
                service,
                instance: None,
                severity: "critical",
                hold: Duration::from_secs(3),
                summary: format!("{} of the requests of {service} fail", percent(ratio)),
            });
        }
        if let Some(mean) = pages.mean_latency(service, WINDOW, now)
            && mean > LATENCY_MAX_SECONDS
        {
            out.push(Condition {
                name: "HighLatency",
                service,
                instance: None,
                severity: "warning",
                hold: Duration::from_secs(3),
                summary: format!("{service} answers after {mean:.2} s on average"),
            });
        }
    }
    for (service, instance) in INSTANCES {
        let size = pages.latest(instance, "data_disk_size_bytes");
        let free = pages.latest(instance, "data_disk_free_bytes");
        if let (Some(size), Some(free)) = (size, free)
            && free < size * DISK_FREE_MIN
        {
            out.push(Condition {
                name: "DiskAlmostFull",
                service,
                instance: Some(instance),
                severity: "critical",
                hold: Duration::from_secs(3),
                summary: format!("{} of the data disk is free", percent(free / size)),
            });
        }
        if pages.is_down(instance) {
            out.push(Condition {
                name: "TargetDown",
                service,
                instance: Some(instance),
                severity: "critical",
                hold: Duration::from_secs(8),
                summary: format!("{instance} does not answer its metrics page"),
            });
        }
    }
    out
}

fn labels_of(condition: &Condition) -> BTreeMap<&'static str, String> {
    let mut labels = BTreeMap::from([
        ("alertname", condition.name.to_owned()),
        ("environment", "lab".to_owned()),
        ("service", condition.service.to_owned()),
        ("severity", condition.severity.to_owned()),
    ]);
    if let Some(instance) = condition.instance {
        labels.insert("instance", instance.to_owned());
    }
    labels
}

/// FNV-1a over the sorted labels, as Alertmanager does it: the same labels, the same fingerprint.
fn fingerprint(labels: &BTreeMap<&'static str, String>) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for (key, value) in labels {
        for byte in key.bytes().chain([0xff]).chain(value.bytes()).chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

impl Default for Evaluator {
    fn default() -> Self {
        Self::new()
    }
}

impl Evaluator {
    /// An evaluator that has seen nothing.
    #[must_use]
    pub(super) fn new() -> Self {
        Self {
            alerts: BTreeMap::new(),
            last_sent: None,
            sent: Sent::default(),
        }
    }

    /// Names of what fires now, with the service.
    #[must_use]
    pub(super) fn firing(&self) -> Vec<String> {
        let fires = |a: &&Alert| a.fired_at.is_some() && a.ended_at.is_none();
        let name = |a: &Alert| {
            let label = |key| a.labels.get(key).map_or("", String::as_str);
            format!("{}/{}", label("alertname"), label("service"))
        };
        self.alerts.values().filter(fires).map(name).collect()
    }

    /// Judges the rules once.
    pub(super) fn evaluate(&mut self, pages: &Pages, now: Instant, wall: Millis) {
        let mut holding = Vec::new();
        for condition in conditions(pages, now) {
            let labels = labels_of(&condition);
            let key = fingerprint(&labels);
            holding.push(key.clone());
            let over = self.alerts.get(&key).is_some_and(|a| a.ended_at.is_some());
            if over {
                // It fires anew before its end was sent: the receiver never saw it end.
                self.alerts.remove(&key);
            }
            let alert = self.alerts.entry(key).or_insert_with(|| Alert {
                labels,
                summary: String::new(),
                since: now,
                hold: condition.hold,
                fired_at: None,
                ended_at: None,
                announced: false,
            });
            alert.summary = condition.summary;
            let held = now.saturating_duration_since(alert.since) >= alert.hold;
            if held && alert.fired_at.is_none() {
                alert.fired_at = Some(wall);
            }
        }
        self.alerts.retain(|key, alert| {
            if !holding.contains(key) && alert.ended_at.is_none() {
                alert.ended_at = Some(wall);
                alert.announced = false;
            }
            alert.fired_at.is_some() || alert.ended_at.is_none()
        });
    }

    /// The webhook that is due now, if any.
    #[must_use]
    pub(super) fn due(&self, now: Instant) -> Option<Value> {
        let shown: Vec<_> = self
            .alerts
            .iter()
            .filter(|(_, a)| a.fired_at.is_some())
            .collect();
        let news = shown.iter().any(|(_, a)| !a.announced);
        let repeat = shown.iter().any(|(_, a)| a.ended_at.is_none())
            && self
                .last_sent
                .is_none_or(|at| now.saturating_duration_since(at) >= REPEAT);
        (news || repeat).then(|| envelope(&shown))
    }

    /// Notes how an attempt ended. Only 5xx and silence are tried again, as Alertmanager does.
    pub(super) fn noted(&mut self, now: Instant, code: u16) {
        self.sent.last_code = code;
        if code == 0 || code >= 500 {
            self.sent.failed += 1;
            return;
        }
        if (200..300).contains(&code) {
            self.sent.taken += 1;
        } else {
            self.sent.failed += 1;
        }
        self.last_sent = Some(now);
        self.alerts.retain(|_, alert| {
            if alert.fired_at.is_some() {
                alert.announced = true;
            }
            alert.ended_at.is_none()
        });
    }
}

fn envelope(shown: &[(&String, &Alert)]) -> Value {
    let alerts: Vec<Value> = shown
        .iter()
        .map(|(key, alert)| {
            let ends_at = alert
                .ended_at
                .map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), Millis::rfc3339);
            json!({
                "status": if alert.ended_at.is_some() { "resolved" } else { "firing" },
                "labels": alert.labels,
                "annotations": {"summary": alert.summary},
                "startsAt": alert.fired_at.map(Millis::rfc3339),
                "endsAt": ends_at,
                "generatorURL": "",
                "fingerprint": key,
            })
        })
        .collect();
    let open = shown.iter().any(|(_, a)| a.ended_at.is_none());
    json!({
        "version": "4",
        "groupKey": "{}:{environment=\"lab\"}",
        "truncatedAlerts": 0,
        "status": if open { "firing" } else { "resolved" },
        "receiver": "sentinel",
        "groupLabels": {"environment": "lab"},
        "commonLabels": {"environment": "lab"},
        "commonAnnotations": {},
        "externalURL": "",
        "alerts": alerts,
    })
}

/// Sends one webhook and returns the status code, 0 when nobody answered.
#[must_use]
pub(super) fn post(receiver: &Receiver, body: &Value) -> u16 {
    let Ok(token) = fs::read_to_string(&receiver.credential) else {
        return 0;
    };
    let headers = format!(
        "Authorization: Bearer {}\r\nContent-Type: application/json\r\nUser-Agent: Alertmanager/0.27.0\r\n",
        token.trim()
    );
    let text = body.to_string();
    let request = Request {
        method: "POST",
        path: &receiver.path,
        headers: &headers,
        body: text.as_bytes(),
    };
    http::send(receiver.address, &request, TIMEOUT).map_or(0, |(code, _)| code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::scrape::parse_page;

    fn page(good: u32, bad: u32) -> String {
        format!(
            "http_requests_total{{route=\"/orders\",code=\"201\"}} {good}\n\
             http_requests_total{{route=\"/orders\",code=\"500\"}} {bad}\n"
        )
    }

    #[test]
    fn an_alert_fires_after_its_hold_is_repeated_and_ends_once() {
        let pages = Pages::new(&INSTANCES);
        let mut evaluator = Evaluator::new();
        let start = Instant::now();
        let mut bodies = Vec::new();
        let (mut good, mut bad) = (0, 0);
        for second in 0..40_u32 {
            let now = start + Duration::from_secs(u64::from(second));
            good += 30;
            bad += if (5..20).contains(&second) { 10 } else { 0 };
            pages.push("checkout-1", now, Some(parse_page(&page(good, bad))));
            evaluator.evaluate(&pages, now, Millis(1_790_000_000_000));
            if let Some(body) = evaluator.due(now) {
                bodies.push((second, body));
                evaluator.noted(now, 202);
            }
        }
        assert_eq!(bodies[0].0, 8);
        let first = &bodies[0].1["alerts"][0];
        assert_eq!(first["labels"]["alertname"], "HighErrorRate");
        assert_eq!(first["labels"]["service"], "checkout");
        let ends = |b: &&(u32, Value)| b.1["status"] == "resolved";
        assert_eq!(bodies.iter().filter(ends).count(), 1);
        let prints: Vec<_> = bodies
            .iter()
            .map(|b| &b.1["alerts"][0]["fingerprint"])
            .collect();
        assert!(prints.len() >= 4 && prints.iter().all(|p| *p == prints[0]));
        assert!(evaluator.firing().is_empty());
    }

    #[test]
    fn a_webhook_that_was_not_taken_is_tried_again() {
        let pages = Pages::new(&INSTANCES);
        let mut evaluator = Evaluator::new();
        let start = Instant::now();
        pages.push("payments-1", start, None);
        evaluator.evaluate(&pages, start, Millis(0));
        let later = start + Duration::from_secs(9);
        evaluator.evaluate(&pages, later, Millis(9));
        for code in [0, 503] {
            assert!(evaluator.due(later).is_some());
            evaluator.noted(later, code);
        }
        evaluator.noted(later, 202);
        assert!(evaluator.due(later).is_none());
        assert_eq!((evaluator.sent.taken, evaluator.sent.failed), (1, 2));
        assert_eq!(evaluator.firing(), ["TargetDown/payments"]);
    }

    #[test]
    fn webhooks_go_to_this_machine_only() {
        let parse = |url| Receiver::parse(url, PathBuf::new());
        let receiver = parse("http://127.0.0.1:8470/v1/intake/alertmanager").unwrap();
        assert_eq!(receiver.path, "/v1/intake/alertmanager");
        for bad in [
            "https://127.0.0.1:1/a",
            "http://192.0.2.1:80/a",
            "http://127.0.0.1:1",
        ] {
            assert!(parse(bad).is_err(), "{bad} was taken");
        }
    }
}
