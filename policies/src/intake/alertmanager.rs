//! Alertmanager's webhook, version 4.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use serde_json::Value;
use sha2::Sha256;

use crate::model::{Alert, AlertFlag, AlertStatus, Millis, Severity};

/// Most alerts in one body (protocols.md 4.1.12).
pub const MAX_ALERTS: usize = 10_000;
/// Most labels or annotations of one alert.
const MAX_PAIRS: usize = 64;
/// Longest name of a label, in bytes.
const MAX_NAME: usize = 256;
/// Longest label value, in bytes.
const MAX_LABEL: usize = 4 * 1024;
/// Longest annotation, in bytes.
const MAX_ANNOTATION: usize = 16 * 1024;
/// Deepest nesting of a body that others define (protocols.md 1.1).
const MAX_DEPTH: usize = 64;
/// A start further ahead than this is clamped.
const MAX_AHEAD_MS: i64 = 5 * 60 * 1000;

/// A body that can never be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Answered 400.
    #[error("the body is not the JSON object of an Alertmanager webhook: {0}")]
    NotJson(String),
    /// Answered 400.
    #[error("the body holds no usable alert")]
    NoUsableAlert,
    /// Answered 413.
    #[error("the body holds {0} alerts; at most {MAX_ALERTS} are taken")]
    TooManyAlerts(usize),
}

/// An alert of a batch that was left out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rejected {
    /// Its place in the body, from 0.
    pub index: usize,
    /// Why, as a stable word.
    pub code: String,
}

/// What one body held. Texts are raw outside text: they must pass `admit::alert`.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Usable alerts, in body order.
    pub alerts: Vec<Alert>,
    /// The rest.
    pub rejected: Vec<Rejected>,
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default, rename = "groupKey")]
    group_key: Option<Value>,
    #[serde(default, rename = "truncatedAlerts")]
    truncated: Option<Value>,
    alerts: Vec<Value>,
}

/// Reads a webhook body. `site_key` makes the dedup keys (protocols.md 4.1.6).
///
/// # Errors
/// [`Error`] when nothing of the body can be accepted.
pub fn parse_alertmanager(
    body: &[u8],
    source: &str,
    tenant: &str,
    received_at: Millis,
    site_key: &[u8; 32],
) -> Result<Batch, Error> {
    if depth_exceeds(body, MAX_DEPTH) {
        return Err(Error::NotJson(format!("it nests deeper than {MAX_DEPTH}")));
    }
    let envelope: Envelope =
        serde_json::from_slice(body).map_err(|e| Error::NotJson(e.to_string()))?;
    if envelope.alerts.len() > MAX_ALERTS {
        return Err(Error::TooManyAlerts(envelope.alerts.len()));
    }
    let group_key = envelope
        .group_key
        .as_ref()
        .and_then(Value::as_str)
        .unwrap_or_default();
    let truncated = envelope
        .truncated
        .as_ref()
        .and_then(Value::as_u64)
        .is_some_and(|n| n > 0);
    let mut batch = Batch {
        alerts: Vec::new(),
        rejected: Vec::new(),
    };
    for (index, value) in envelope.alerts.iter().enumerate() {
        match read_alert(value, received_at) {
            Ok(mut alert) => {
                source.clone_into(&mut alert.source);
                group_key.clone_into(&mut alert.group_key);
                if truncated {
                    alert.flags.push(AlertFlag::PartialGroup);
                }
                alert.dedup_key = dedup_key(site_key, tenant, &native_key(value, &alert));
                batch.alerts.push(alert);
            }
            Err(code) => batch.rejected.push(Rejected {
                index,
                code: code.to_owned(),
            }),
        }
    }
    if batch.alerts.is_empty() {
        return Err(Error::NoUsableAlert);
    }
    Ok(batch)
}

fn read_alert(value: &Value, received_at: Millis) -> Result<Alert, &'static str> {
    let object = value.as_object().ok_or("not_an_object")?;
    let labels = pairs(object.get("labels"), MAX_LABEL)?;
    if labels.is_empty() {
        return Err("no_labels");
    }
    let annotations = pairs(object.get("annotations"), MAX_ANNOTATION)?;
    let status = match object.get("status").and_then(Value::as_str) {
        Some("resolved") => AlertStatus::Resolved,
        Some("firing") | None => AlertStatus::Firing,
        Some(_) => return Err("unknown_status"),
    };
    let mut flags = Vec::new();
    let starts_at = start(object.get("startsAt"), received_at, &mut flags);
    let service = service(&labels);
    if service.is_empty() {
        flags.push(AlertFlag::ServiceUnknown);
    }
    let get = |map: &BTreeMap<String, String>, key: &str| map.get(key).cloned().unwrap_or_default();
    Ok(Alert {
        source: String::new(),
        dedup_key: String::new(),
        status,
        severity: severity(labels.get("severity").map(String::as_str)),
        name: labels.get("alertname").cloned().ok_or("no_alertname")?,
        service,
        environment: get(&labels, "environment"),
        starts_at,
        ends_at: end(object.get("endsAt"), status, received_at),
        received_at,
        summary: get(&annotations, "summary"),
        description: get(&annotations, "description"),
        labels,
        annotations,
        group_key: String::new(),
        flags,
    })
}

fn pairs(value: Option<&Value>, longest: usize) -> Result<BTreeMap<String, String>, &'static str> {
    let Some(value) = value.filter(|v| !v.is_null()) else {
        return Ok(BTreeMap::new());
    };
    let object = value.as_object().ok_or("labels_not_an_object")?;
    if object.len() > MAX_PAIRS {
        return Err("too_many_labels");
    }
    let mut out = BTreeMap::new();
    for (name, value) in object {
        if name.len() > MAX_NAME {
            return Err("label_name_too_long");
        }
        let text = match value {
            Value::String(s) => s.clone(),
            Value::Null => String::new(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                value.to_string()
            }
        };
        out.insert(name.clone(), cut(text, longest));
    }
    Ok(out)
}

/// Cuts a value that is too long and says so in the value.
fn cut(text: String, longest: usize) -> String {
    if text.len() <= longest {
        return text;
    }
    let mut end = longest;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept}[cut {} bytes]", text.len() - end)
}

fn start(value: Option<&Value>, received_at: Millis, flags: &mut Vec<AlertFlag>) -> Millis {
    match value
        .and_then(Value::as_str)
        .and_then(Millis::parse_rfc3339)
    {
        Some(at) if at.since(received_at) > MAX_AHEAD_MS => {
            flags.push(AlertFlag::ClockSkew);
            received_at
        }
        Some(at) => at,
        None => {
            flags.push(AlertFlag::TimeAssumed);
            received_at
        }
    }
}

/// `0001-01-01T00:00:00Z`, null and absent mean open.
fn end(value: Option<&Value>, status: AlertStatus, received_at: Millis) -> Option<Millis> {
    let given = value
        .and_then(Value::as_str)
        .and_then(Millis::parse_rfc3339)
        .filter(|at| at.0 > 0);
    match status {
        AlertStatus::Resolved => Some(given.unwrap_or(received_at)),
        AlertStatus::Firing => None,
    }
}

fn service(labels: &BTreeMap<String, String>) -> String {
    [
        "service",
        "app.kubernetes.io/name",
        "app",
        "job",
        "deployment",
        "container",
    ]
    .iter()
    .find_map(|key| labels.get(*key).filter(|v| !v.is_empty()).cloned())
    .unwrap_or_default()
}

fn severity(text: Option<&str>) -> Severity {
    match text.map(str::to_ascii_lowercase).as_deref() {
        Some("critical" | "page" | "emergency" | "fatal") => Severity::Critical,
        Some("error" | "major" | "high") => Severity::Error,
        Some("warning" | "warn" | "minor") => Severity::Warning,
        Some("info" | "information" | "notice") => Severity::Info,
        Some(_) | None => Severity::Unknown,
    }
}

/// The source's fingerprint, else the sorted labels without severity, `__*` and `timestamp`.
fn native_key(value: &Value, alert: &Alert) -> String {
    if let Some(fingerprint) = value.get("fingerprint").and_then(Value::as_str)
        && !fingerprint.is_empty()
    {
        return format!("fp\0{fingerprint}");
    }
    let mut key = String::from("labels");
    for (name, value) in &alert.labels {
        if name == "severity" || name == "timestamp" || name.starts_with("__") {
            continue;
        }
        key.push('\0');
        key.push_str(name);
        key.push('\0');
        key.push_str(value);
    }
    key
}

fn dedup_key(site_key: &[u8; 32], tenant: &str, native: &str) -> String {
    let mut mac = match Hmac::<Sha256>::new_from_slice(site_key) {
        Ok(mac) => mac,
        Err(e) => unreachable!("HMAC takes a key of any length: {e}"),
    };
    for part in ["dedup/1", tenant, "alertmanager", native] {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    data_encoding::HEXLOWER.encode(&mac.finalize().into_bytes())
}

/// True when the brackets of `body` nest deeper than `limit`, whatever else is wrong with it.
fn depth_exceeds(body: &[u8], limit: usize) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for &byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{Error, parse_alertmanager};
    use crate::model::{AlertFlag, AlertStatus, Millis, Severity};

    const NOW: Millis = Millis(1_780_000_000_000);

    fn parse(body: &str) -> Result<super::Batch, Error> {
        parse_alertmanager(body.as_bytes(), "alertmanager", "default", NOW, &[7; 32])
    }

    #[test]
    fn a_body_with_only_alerts_and_labels_is_valid() {
        let batch = parse(r#"{"alerts":[{"labels":{"alertname":"X","app":"shop"}}]}"#).unwrap();
        let alert = batch.alerts.first().unwrap();
        assert_eq!((alert.name.as_str(), alert.service.as_str()), ("X", "shop"));
        assert_eq!(alert.severity, Severity::Unknown);
        assert_eq!(alert.starts_at, NOW);
        assert_eq!(alert.flags, [AlertFlag::TimeAssumed]);
    }

    #[test]
    fn the_status_of_the_alert_wins_over_that_of_the_group() {
        let body = r#"{"status":"firing","alerts":[{"status":"resolved","labels":{"alertname":"X","service":"s"},
            "startsAt":"2026-05-28T20:00:00Z","endsAt":"2026-05-28T20:10:00Z"}]}"#;
        let batch = parse(body).unwrap();
        let alert = batch.alerts.first().unwrap();
        assert_eq!(alert.status, AlertStatus::Resolved);
        assert_eq!(alert.ends_at, Millis::parse_rfc3339("2026-05-28T20:10:00Z"));
    }

    #[test]
    fn a_start_far_ahead_is_clamped_and_an_open_end_is_open() {
        let body = r#"{"truncatedAlerts":3,"alerts":[{"labels":{"alertname":"X","service":"s"},
            "startsAt":"2036-01-01T00:00:00Z","endsAt":"0001-01-01T00:00:00Z"}]}"#;
        let batch = parse(body).unwrap();
        let alert = batch.alerts.first().unwrap();
        assert_eq!((alert.starts_at, alert.ends_at), (NOW, None));
        assert_eq!(alert.flags, [AlertFlag::ClockSkew, AlertFlag::PartialGroup]);
    }

    #[test]
    fn usable_alerts_are_taken_and_the_rest_is_reported_with_its_place() {
        let body = r#"{"alerts":[7,{"labels":{}},{"labels":{"alertname":"X","service":"s"}},{"labels":{"a":"b"}}]}"#;
        let batch = parse(body).unwrap();
        assert_eq!(batch.alerts.len(), 1);
        let codes: Vec<_> = batch
            .rejected
            .iter()
            .map(|r| (r.index, r.code.as_str()))
            .collect();
        assert_eq!(
            codes,
            [(0, "not_an_object"), (1, "no_labels"), (3, "no_alertname")]
        );
    }

    #[test]
    fn what_is_no_webhook_is_refused_with_a_reason() {
        assert!(matches!(parse("not json"), Err(Error::NotJson(_))));
        assert!(matches!(parse("[]"), Err(Error::NotJson(_))));
        assert!(matches!(
            parse(r#"{"alerts":[]}"#),
            Err(Error::NoUsableAlert)
        ));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(parse(&deep), Err(Error::NotJson(_))));
        let many = format!(r#"{{"alerts":[{}]}}"#, vec!["{}"; 10_001].join(","));
        assert_eq!(parse(&many), Err(Error::TooManyAlerts(10_001)));
    }

    #[test]
    fn the_dedup_key_hides_the_fingerprint_and_separates_tenants() {
        let body =
            br#"{"alerts":[{"labels":{"alertname":"X","service":"s"},"fingerprint":"abc"}]}"#;
        let key = |tenant, site: u8| {
            let batch = parse_alertmanager(body, "a", tenant, NOW, &[site; 32]).unwrap();
            batch.alerts.first().unwrap().dedup_key.clone()
        };
        assert_eq!(key("one", 1), key("one", 1));
        assert_ne!(key("one", 1), key("two", 1));
        assert_ne!(key("one", 1), key("one", 2));
    }

    #[test]
    fn a_long_value_is_cut_and_says_how_much_is_gone() {
        let body = format!(
            r#"{{"alerts":[{{"labels":{{"alertname":"X","service":"{}"}}}}]}}"#,
            "é".repeat(3000)
        );
        let batch = parse(&body).unwrap();
        let service = &batch.alerts.first().unwrap().service;
        assert!(
            service.ends_with("[cut 1904 bytes]"),
            "{}",
            &service[service.len() - 30..]
        );
    }
}
