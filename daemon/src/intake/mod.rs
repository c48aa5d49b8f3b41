//! `POST /v1/intake/NAME`: webhooks (protocols.md 4).
//!
//! An answer of 202 means that the alerts are durable. Nothing in the path of a request waits for
//! a model, a tool or a worker. A full disk or a failing database is 503, which the sender
//! retries, and never 429, which it would not.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use hmac::{Hmac, KeyInit, Mac};
use policies::admit;
use policies::claim::RedactKey;
use policies::intake::{Error as ParseError, parse_alertmanager};
use policies::model::Alert;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::sentinel::{Db, Taken, Webhook};
use subtle::ConstantTimeEq;

use crate::conductor::Conductor;
use crate::config;
use crate::telemetry::{self, names};
use crate::{clock, failpoint};

/// Most bytes of one body.
const MAX_BODY: usize = 16 << 20;
/// When a sender should try again.
const RETRY_AFTER_S: &str = "5";

/// One configured webhook.
pub struct Source {
    /// Its configuration.
    pub config: config::Intake,
    /// SHA-256 of its bearer token.
    pub token: [u8; 32],
}

/// What the routes work with.
pub struct Intake {
    /// The database.
    pub db: Arc<Db>,
    /// Who takes the incidents up.
    pub conductor: Conductor,
    /// Webhooks by name.
    pub sources: BTreeMap<String, Source>,
    /// Key of digests of raw text.
    pub site_key: [u8; 32],
    /// Redaction key of text outside an incident.
    pub redact_key: RedactKey,
}

/// The routes.
pub fn router(intake: Arc<Intake>) -> Router {
    Router::new()
        .route("/v1/intake/{name}", post(take))
        .with_state(intake)
}

fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let body = json!({
        "type": format!("urn:sentinel:problem:{code}"),
        "title": status.canonical_reason().unwrap_or_default(),
        "status": status.as_u16(),
        "detail": detail,
        "code": code,
    });
    (
        status,
        [(header::CONTENT_TYPE, "application/problem+json")],
        body.to_string(),
    )
        .into_response()
}

async fn take(
    State(intake): State<Arc<Intake>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let begin = std::time::Instant::now();
    let (parts, body) = request.into_parts();
    let known = intake
        .sources
        .get(&name)
        .filter(|source| authenticated(&parts.headers, source));
    let Some(source) = known else {
        telemetry::count(names::INTAKE_REQUESTS, &["other", "401"], 1);
        return problem(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "the credential of this intake is missing or wrong",
        );
    };
    let response = answer(&intake, &name, source, &parts.headers, body).await;
    telemetry::count(
        names::INTAKE_REQUESTS,
        &[&name, response.status().as_str()],
        1,
    );
    telemetry::observe(
        names::INTAKE_SECONDS,
        &[&name],
        begin.elapsed().as_secs_f64(),
    );
    response
}

fn authenticated(headers: &HeaderMap, source: &Source) -> bool {
    let token = headers
        .get(header::AUTHORIZATION)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.strip_prefix("Bearer "));
    token.is_some_and(|t| {
        Sha256::digest(t.as_bytes())
            .as_slice()
            .ct_eq(&source.token)
            .into()
    })
}

async fn answer(
    intake: &Arc<Intake>,
    name: &str,
    source: &Source,
    headers: &HeaderMap,
    body: Body,
) -> Response {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("application/json");
    if !kind.starts_with("application/json") {
        return problem(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media",
            "the body must be application/json",
        );
    }
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.parse::<u64>().ok());
    let too_large = || {
        problem(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            "a body has at most 16 MiB",
        )
    };
    if announced.is_some_and(|n| n > MAX_BODY as u64) {
        return too_large();
    }
    let Ok(bytes) = to_bytes(body, MAX_BODY).await else {
        return too_large();
    };
    let (worker, name, config) = (Arc::clone(intake), name.to_owned(), source.config.clone());
    let done =
        tokio::task::spawn_blocking(move || store_body(&worker, &name, &config, &bytes)).await;
    match done {
        Ok(Ok((taken, rejected))) => accepted(intake, &taken, &rejected),
        Ok(Err(Refusal::Bad(status, code, detail))) => problem(status, code, &detail),
        Ok(Err(Refusal::Later(detail))) => {
            tracing::error!(detail, "a webhook could not be stored");
            later()
        }
        Err(e) => {
            tracing::error!(error = %e, "a webhook was cut off");
            later()
        }
    }
}

fn later() -> Response {
    let mut response = problem(
        StatusCode::SERVICE_UNAVAILABLE,
        "store_failed",
        "the alerts are not stored; send them again",
    );
    response.headers_mut().insert(
        header::RETRY_AFTER,
        header::HeaderValue::from_static(RETRY_AFTER_S),
    );
    response
}

enum Refusal {
    Bad(StatusCode, &'static str, String),
    Later(String),
}

fn store_body(
    intake: &Intake,
    name: &str,
    config: &config::Intake,
    body: &[u8],
) -> Result<(Taken, Vec<policies::intake::Rejected>), Refusal> {
    let now = clock::now();
    let batch =
        parse_alertmanager(body, name, &config.tenant, now, &intake.site_key).map_err(|e| {
            let (status, code) = match &e {
                ParseError::NotJson(_) => (StatusCode::BAD_REQUEST, "malformed"),
                ParseError::NoUsableAlert => (StatusCode::BAD_REQUEST, "no_usable_alert"),
                ParseError::TooManyAlerts(_) => (StatusCode::PAYLOAD_TOO_LARGE, "too_many_alerts"),
            };
            Refusal::Bad(status, code, e.to_string())
        })?;
    let alerts: Vec<Alert> = batch
        .alerts
        .into_iter()
        .map(|alert| {
            let (alert, events) = admit::alert(alert, &intake.redact_key);
            events.iter().for_each(|e| telemetry::guardrail(None, e));
            alert
        })
        .collect();
    let mut no_random = None;
    let taken = intake
        .db
        .take_webhook(
            &Webhook {
                tenant: &config.tenant,
                source: name,
                mac: &body_mac(&intake.site_key, body),
                now,
                alerts: &alerts,
                heartbeats: &config.heartbeats,
                storm_threshold: config.storm_threshold,
            },
            &mut || match intake.conductor.new_incident() {
                Ok(new) => new,
                Err(e) => {
                    no_random = Some(e);
                    (
                        policies::model::IncidentId::from_random([0; 10]),
                        Vec::new(),
                    )
                }
            },
        )
        .map_err(|e| Refusal::Later(format!("{e}: {:?}", std::error::Error::source(&e))))?;
    if let Some(e) = no_random {
        return Err(Refusal::Later(e.to_string()));
    }
    failpoint::hit("webhook_stored");
    for (fate, n) in &taken.fates {
        telemetry::count(
            names::INTAKE_ALERTS,
            &[name, fate],
            u64::try_from(*n).unwrap_or(0),
        );
    }
    #[allow(clippy::cast_precision_loss, reason = "a time in seconds fits")]
    telemetry::gauge(names::INTAKE_LAST, &[name], now.0 as f64 / 1000.0);
    Ok((taken, batch.rejected))
}

/// Keyed, because no unkeyed digest of raw text is kept anywhere.
fn body_mac(site_key: &[u8; 32], body: &[u8]) -> [u8; 32] {
    let mut mac = match Hmac::<Sha256>::new_from_slice(site_key) {
        Ok(mac) => mac,
        Err(e) => unreachable!("HMAC takes a key of any length: {e}"),
    };
    mac.update(b"body/1");
    mac.update(body);
    mac.finalize().into_bytes().into()
}

fn accepted(intake: &Intake, taken: &Taken, rejected: &[policies::intake::Rejected]) -> Response {
    for incident in &taken.incidents {
        intake.conductor.touch(&incident.id);
    }
    let count = |words: &[&str]| {
        words
            .iter()
            .filter_map(|w| taken.fates.get(w))
            .sum::<usize>()
    };
    let body: Value = json!({
        "receipt": taken.receipt,
        "accepted": count(&["opened", "grouped", "reopened"]),
        "duplicate": count(&["duplicate", "stale"]),
        "resolved": count(&["resolved", "resolved_unknown"]),
        "heartbeat": count(&["heartbeat"]),
        "rejected": rejected,
        "incidents": taken.incidents.iter().map(|i| i.id.to_string()).collect::<Vec<_>>(),
    });
    (
        StatusCode::ACCEPTED,
        [(header::CONTENT_TYPE, "application/json")],
        body.to_string(),
    )
        .into_response()
}
