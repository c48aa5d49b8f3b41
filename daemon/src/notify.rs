//! Notifications to webhooks on this box (protocols.md 10.2).
//!
//! What is told is stored with the step that it tells of, so a crash loses nothing; a task for each
//! sink sends it until the sink takes it. What is worth telling is decided in `policies`.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use policies::machine::{Event, Phase, Record};
use policies::model::Millis;
use serde_json::json;
use sha2::Sha256;
use store::sentinel::{Db, DueNotice, Notice};
use zeroize::Zeroizing;

use crate::clock;
use crate::config::{Config, Notify};
use crate::health::{Health, State};
use crate::telemetry::{self, names};

/// How often a sink is looked after.
const EVERY: Duration = Duration::from_secs(1);
/// Most notifications of a sink in one look, so that a storm does not flood a pager.
const BURST: usize = 5;
/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// First and longest pause between attempts, in ms.
const PAUSES_MS: (i64, i64) = (5_000, 15 * 60_000);
/// How long it is tried, in ms.
const GIVE_UP_MS: i64 = 24 * 3_600_000;
/// How long a settled notification is remembered, in ms.
const REMEMBER_MS: i64 = 30 * 24 * 3_600_000;
/// How often the health is looked at.
const HEALTH_EVERY: Duration = Duration::from_secs(5);

/// Words notifications for the configured sinks.
#[derive(Clone, Debug)]
pub struct Notifier {
    config: Arc<Config>,
}

impl Notifier {
    /// For the sinks of a configuration.
    #[must_use]
    pub const fn new(config: Arc<Config>) -> Self {
        Self { config }
    }

    /// What the sinks are told about a step of an investigation that began in phase `before`.
    #[must_use]
    pub fn of_step(&self, before: Option<Phase>, record: &Record, now: Millis) -> Vec<Notice> {
        let alert = record.alerts.first();
        let about = About {
            incident: record.id.as_str(),
            severity: alert.map_or("", |a| a.severity.as_str()),
            service: alert.map_or("", |a| &a.service),
        };
        policies::machine::news(before, record)
            .into_iter()
            .flat_map(|(event, line)| {
                // A second action of one incident waits, is decided and is in doubt on its own.
                let action = record.action.as_ref().filter(|_| {
                    matches!(
                        event,
                        Event::ApprovalWaiting | Event::Decided | Event::InDoubt
                    )
                });
                let action = action.map_or_else(String::new, |a| format!(":{}", a.id));
                let id = format!("{}:{}{action}", record.id, event.as_str());
                self.word(event, &id, &line, &about, now)
            })
            .collect()
    }

    fn word(
        &self,
        event: Event,
        id: &str,
        line: &str,
        about: &About<'_>,
        now: Millis,
    ) -> Vec<Notice> {
        let page = if about.incident.is_empty() {
            String::new()
        } else {
            format!("incidents/{}", about.incident)
        };
        let http = &self.config.http;
        let host = http
            .names
            .first()
            .map_or_else(|| http.listen.ip().to_string(), Clone::clone);
        let body = json!({
            "v": 1,
            "id": id,
            "site": self.config.site,
            "event": event,
            "incident": about.incident,
            "severity": about.severity,
            "service": about.service,
            "line": line,
            "url": format!("http://{host}:{}/{page}", http.listen.port()),
            "at": now.rfc3339(),
        })
        .to_string();
        let told = self
            .config
            .notify
            .iter()
            .filter(|(_, sink)| sink.events.contains(&event));
        told.map(|(name, _)| Notice {
            sink: name.clone(),
            id: id.to_owned(),
            body: body.clone(),
        })
        .collect()
    }
}

/// What a notification is about; empty where it is about no incident.
#[derive(Default)]
struct About<'a> {
    incident: &'a str,
    severity: &'a str,
    service: &'a str,
}

/// Starts a sender for each sink and the watch over the health.
///
/// # Errors
/// A sink's key cannot be read.
pub fn start(notifier: &Notifier, db: &Arc<Db>, health: &Health) -> std::io::Result<()> {
    if notifier.config.notify.is_empty() {
        return Ok(());
    }
    for (name, sink) in &notifier.config.notify {
        let key = Zeroizing::new(std::fs::read(&sink.secret_file)?);
        let sender = Sender {
            name: name.clone(),
            sink: sink.clone(),
            key: Zeroizing::new(key.trim_ascii_end().to_vec()),
            db: Arc::clone(db),
        };
        tokio::spawn(sender.run());
    }
    tokio::spawn(watch_health(
        notifier.clone(),
        Arc::clone(db),
        health.clone(),
    ));
    Ok(())
}

/// Sends what is due for one sink.
struct Sender {
    name: String,
    sink: Notify,
    key: Zeroizing<Vec<u8>>,
    db: Arc<Db>,
}

impl Sender {
    async fn run(self) {
        loop {
            self.send_due().await;
            tokio::time::sleep(EVERY).await;
        }
    }

    async fn send_due(&self) {
        let now = clock::now();
        let due = tokio::task::block_in_place(|| {
            self.db.forget_notices(now.plus(-REMEMBER_MS))?;
            self.db.due_notices(&self.name, now, BURST)
        });
        let due = match due {
            Ok(due) => due,
            Err(e) => {
                tracing::error!(
                    sink = self.name,
                    error = &e as &dyn std::error::Error,
                    "notifications cannot be read"
                );
                return;
            }
        };
        for one in due {
            let taken = tokio::time::timeout(ATTEMPT, self.post(&one.notice.body)).await;
            self.settle(&one, matches!(taken, Ok(Some(()))));
        }
    }

    /// Notes how an attempt went. The pauses double from five seconds to a quarter of an hour.
    fn settle(&self, one: &DueNotice, taken: bool) {
        let now = clock::now();
        let (result, again) = if taken {
            ("sent", None)
        } else if now.since(one.at) >= GIVE_UP_MS {
            tracing::error!(
                sink = self.name,
                id = one.notice.id,
                "a notification was given up"
            );
            ("given_up", None)
        } else {
            let (first, longest) = PAUSES_MS;
            let pause = first.saturating_mul(1 << one.tries.min(10)).min(longest);
            ("failed", Some(now.plus(pause)))
        };
        telemetry::count(names::NOTIFICATIONS, &[&self.name, result], 1);
        let noted = tokio::task::block_in_place(|| self.db.notice_tried(&one.notice, again));
        if let Err(e) = noted {
            tracing::error!(
                sink = self.name,
                error = &e as &dyn std::error::Error,
                "an attempt to notify is not noted; it may be told twice"
            );
        }
    }

    /// `Some` when the sink answered 2xx.
    async fn post(&self, body: &str) -> Option<()> {
        let stream = tokio::net::TcpStream::connect(self.sink.address)
            .await
            .ok()?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .ok()?;
        let driver = tokio::spawn(connection);
        let request = Request::post(self.sink.path.as_str())
            .header(HOST, self.sink.address.to_string())
            .header(USER_AGENT, concat!("sentinel/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/json")
            .header("X-Sentinel-Signature", signature(&self.key, body)?)
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .ok()?;
        let answer = sender.send_request(request).await;
        driver.abort();
        answer.ok()?.status().is_success().then_some(())
    }
}

/// HMAC-SHA256 of the body (RFC 2104) under the sink's key.
fn signature(key: &[u8], body: &str) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    mac.update(body.as_bytes());
    Some(format!(
        "sha256={}",
        HEXLOWER.encode(&mac.finalize().into_bytes())
    ))
}

/// Tells when a part fails and when it works again. A model that is on its way up is no news.
async fn watch_health(notifier: Notifier, db: Arc<Db>, health: Health) {
    let mut told: Vec<(&'static str, String)> = Vec::new();
    loop {
        tokio::time::sleep(HEALTH_EVERY).await;
        let report = health.report().await;
        let bad: Vec<(&'static str, String)> = report
            .parts
            .into_iter()
            .filter(|p| {
                p.state != State::Ok && !matches!(p.code.as_str(), "loading" | "restarting")
            })
            .map(|p| (p.part, p.code))
            .collect();
        let now = clock::now();
        let notices: Vec<Notice> = changes(&told, &bad)
            .into_iter()
            .flat_map(|(event, line)| {
                let id = format!("{}:{}", event.as_str(), now.0);
                notifier.word(event, &id, &line, &About::default(), now)
            })
            .collect();
        match tokio::task::block_in_place(|| db.add_notices(now, &notices)) {
            Ok(()) => told = bad,
            Err(e) => tracing::error!(
                error = &e as &dyn std::error::Error,
                "a notification about the health is not stored"
            ),
        }
    }
}

/// What changed between two looks, at most one sentence for each event.
fn changes(
    before: &[(&'static str, String)],
    now: &[(&'static str, String)],
) -> Vec<(Event, String)> {
    let held = |parts: &[(&str, String)]| parts.iter().any(|(_, code)| code == "on_hold");
    let mut told = Vec::new();
    match (held(before), held(now)) {
        (false, true) => told.push((Event::Hold, "all actions are on hold".to_owned())),
        (true, false) => told.push((Event::Hold, "the hold was released".to_owned())),
        (true, true) | (false, false) => {}
    }
    let others = |parts: &[(&'static str, String)]| -> Vec<(&'static str, String)> {
        let mut parts = parts.to_vec();
        parts.retain(|(_, code)| code != "on_hold");
        parts
    };
    let (before, now) = (others(before), others(now));
    if before != now {
        let line = if now.is_empty() {
            "all parts work again".to_owned()
        } else {
            let parts: Vec<String> = now.iter().map(|(p, code)| format!("{p}: {code}")).collect();
            format!("not well: {}", parts.join(", "))
        };
        told.push((Event::Health, line));
    }
    told
}

#[cfg(test)]
mod tests {
    use policies::machine::Event;

    use super::{changes, signature};

    #[test]
    fn a_notification_is_signed_as_rfc_4231_signs() {
        // Test case 2 of RFC 4231.
        assert_eq!(
            signature(b"Jefe", "what do ya want for nothing?").unwrap(),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn what_fails_and_what_works_again_is_told_once_and_a_hold_by_its_own_event() {
        let broken = [("model", "engine_degraded".to_owned())];
        let both = [
            ("guard", "on_hold".to_owned()),
            ("model", "engine_degraded".to_owned()),
        ];
        assert_eq!(
            changes(&[], &broken),
            [(Event::Health, "not well: model: engine_degraded".to_owned())]
        );
        assert_eq!(changes(&broken, &broken), []);
        assert_eq!(
            changes(&broken, &both),
            [(Event::Hold, "all actions are on hold".to_owned())]
        );
        assert_eq!(
            changes(&both, &[]),
            [
                (Event::Hold, "the hold was released".to_owned()),
                (Event::Health, "all parts work again".to_owned())
            ]
        );
    }
}
