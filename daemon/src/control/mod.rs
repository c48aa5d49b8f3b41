//! `control.sock`: what the command line asks of a running daemon.
//!
//! HTTP/1.1 and JSON on a Unix socket. In a scratch run the running uid and root count as local
//! root (operations 1.8); everybody else is refused. Decisions carry the person and a TOTP code,
//! which the guard checks itself.

mod client;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::IncomingStream;
use axum::{Json, Router};
use policies::guard::Problem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::sentinel::Db;
use tokio::net::UnixListener;

use crate::guard::{DecisionRequest, DelegateHandle, Export, Guard, ReconcileRequest};
use crate::identity::{Identity, Role};

pub use client::{Client, Error as ClientError};

/// What the routes work with.
pub struct Control {
    /// Incidents.
    pub db: Arc<Db>,
    /// The guard.
    pub guard: Guard,
    /// The identity under which decisions come in.
    pub delegate: DelegateHandle,
    /// Accounts.
    pub identity: Identity,
    /// Readiness.
    pub health: crate::health::Health,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    uid: Option<u32>,
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        Self {
            uid: stream.io().peer_cred().ok().map(|c| c.uid()),
        }
    }
}

/// Serves the socket until the process ends.
///
/// # Errors
/// The socket cannot be made.
pub fn serve(path: &FilePath, control: Control) -> std::io::Result<()> {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    let app = router(Arc::new(control));
    tokio::spawn(async move {
        let service = app.into_make_service_with_connect_info::<Peer>();
        if let Err(e) = axum::serve(listener, service).await {
            tracing::error!(error = %e, "the control socket ended");
        }
    });
    Ok(())
}

fn router(control: Arc<Control>) -> Router {
    Router::new()
        .route("/v1/health", get(health))
        .route("/v1/incidents", get(incidents))
        .route("/v1/incidents/{id}", get(incident))
        .route("/v1/incidents/{id}/postmortem", get(postmortem))
        .route("/v1/actions", get(actions))
        .route("/v1/actions/{id}", get(action))
        .route("/v1/actions/{id}/approve", post(approve))
        .route("/v1/actions/{id}/deny", post(deny))
        .route("/v1/actions/{id}/reconcile", post(reconcile))
        .route("/v1/audit/export", get(export))
        .route("/v1/audit/trust", get(trust))
        .route("/v1/users", post(user_add))
        .layer(middleware::from_fn(local_root))
        .with_state(control)
}

async fn local_root(
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let own = rustix::process::geteuid().as_raw();
    match peer.uid {
        Some(uid) if uid == 0 || uid == own => next.run(request).await,
        Some(_) | None => refuse(
            StatusCode::FORBIDDEN,
            "role_forbidden",
            "this socket serves root and the owner of the scratch folder",
        ),
    }
}

fn refuse(status: StatusCode, code: &str, detail: &str) -> Response {
    let body = json!({ "code": code, "detail": detail, "status": status.as_u16() });
    (
        status,
        [(header::CONTENT_TYPE, "application/problem+json")],
        body.to_string(),
    )
        .into_response()
}

fn problem(p: &Problem) -> Response {
    let status = StatusCode::from_u16(p.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = json!({
        "code": p.code.as_str(),
        "detail": p.detail,
        "status": status.as_u16(),
        "recorded_outcome": p.recorded_outcome,
        "audit_index": p.audit_index,
        "retry_after_s": p.retry_after_s,
    });
    (
        status,
        [(header::CONTENT_TYPE, "application/problem+json")],
        body.to_string(),
    )
        .into_response()
}

fn reply<T: Serialize>(result: Result<T, Problem>) -> Response {
    match result {
        Ok(value) => Json(value).into_response(),
        Err(p) => problem(&p),
    }
}

fn stored<T>(result: Result<T, store::sentinel::Error>) -> Result<T, Box<Response>> {
    result.map_err(|e| {
        tracing::error!(error = &e as &dyn std::error::Error, "the database refused");
        Box::new(refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "store_failed",
            "the database refused",
        ))
    })
}

fn not_found(what: &str) -> Response {
    refuse(
        StatusCode::NOT_FOUND,
        "not_found",
        &format!("there is no such {what}"),
    )
}

async fn health(State(c): State<Arc<Control>>) -> Response {
    Json(c.health.report().await).into_response()
}

async fn incidents(State(c): State<Arc<Control>>) -> Response {
    match stored(c.db.incident_list(200, None)) {
        Ok(items) => Json(json!({ "items": items })).into_response(),
        Err(response) => *response,
    }
}

/// The row, the record of the investigation and the evidence of an incident.
fn incident_json(db: &Db, id: &str) -> Result<Option<Value>, store::sentinel::Error> {
    let Ok(id) = id.parse() else {
        return Ok(None);
    };
    let Some(row) = db.incident(&id)? else {
        return Ok(None);
    };
    let record: Value = db
        .state(&id)?
        .and_then(|s| serde_json::from_str(&s).ok())
        .unwrap_or(Value::Null);
    let evidence: Vec<Value> = db
        .evidence(&id)?
        .iter()
        .filter_map(|(_, body)| serde_json::from_str(body).ok())
        .collect();
    Ok(Some(
        json!({ "incident": row, "record": record, "evidence": evidence }),
    ))
}

async fn incident(State(c): State<Arc<Control>>, Path(id): Path<String>) -> Response {
    match stored(incident_json(&c.db, &id)) {
        Ok(Some(value)) => Json(value).into_response(),
        Ok(None) => not_found("incident"),
        Err(response) => *response,
    }
}

async fn postmortem(State(c): State<Arc<Control>>, Path(id): Path<String>) -> Response {
    let Ok(id) = id.parse() else {
        return not_found("incident");
    };
    match stored(c.db.postmortem(&id)) {
        Ok(Some(p)) => Json(json!({
            "markdown": p.markdown,
            "json": serde_json::from_str::<Value>(&p.json).unwrap_or(Value::Null),
        }))
        .into_response(),
        Ok(None) => not_found("postmortem: the incident is unknown or still open"),
        Err(response) => *response,
    }
}

async fn actions(State(c): State<Arc<Control>>) -> Response {
    reply(
        c.guard
            .actions(None)
            .await
            .map(|actions| json!({ "actions": actions })),
    )
}

async fn action(State(c): State<Arc<Control>>, Path(id): Path<String>) -> Response {
    match c.guard.action(&id).await {
        Ok(Some(view)) => Json(view).into_response(),
        Ok(None) => not_found("action"),
        Err(p) => problem(&p),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    person: String,
    digest: String,
    decision_nonce: String,
    reason: String,
    totp: Option<String>,
}

impl Decision {
    fn request(self, action_id: String) -> DecisionRequest {
        DecisionRequest {
            action_id,
            digest: self.digest,
            decision_nonce: self.decision_nonce,
            approver: self.person,
            reason: self.reason,
            totp: self.totp,
        }
    }
}

async fn approve(
    State(c): State<Arc<Control>>,
    Path(id): Path<String>,
    Json(body): Json<Decision>,
) -> Response {
    reply(c.guard.approve(&c.delegate, body.request(id)).await)
}

async fn deny(
    State(c): State<Arc<Control>>,
    Path(id): Path<String>,
    Json(body): Json<Decision>,
) -> Response {
    reply(c.guard.deny(&c.delegate, body.request(id)).await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reconcile {
    person: String,
    succeeded: bool,
    reason: String,
    totp: Option<String>,
}

async fn reconcile(
    State(c): State<Arc<Control>>,
    Path(id): Path<String>,
    Json(body): Json<Reconcile>,
) -> Response {
    let request = ReconcileRequest {
        action_id: id,
        succeeded: body.succeeded,
        approver: body.person,
        reason: body.reason,
        evidence_sha256: None,
        totp: body.totp,
    };
    reply(c.guard.reconcile(&c.delegate, request).await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    #[serde(default)]
    from: u64,
    to: Option<u64>,
    #[serde(default)]
    with_pii: bool,
    since: Option<u64>,
}

async fn export(State(c): State<Arc<Control>>, Query(range): Query<Range>) -> Response {
    let wanted = Export {
        from: range.from,
        to: range.to,
        with_pii: range.with_pii,
        since: range.since,
    };
    match c.guard.export(wanted).await {
        Ok(bundle) => bundle.into_response(),
        Err(p) => problem(&p),
    }
}

async fn trust(State(c): State<Arc<Control>>) -> Response {
    c.guard.trust().into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewUser {
    name: String,
    password: String,
    roles: Vec<String>,
}

async fn user_add(State(c): State<Arc<Control>>, Json(user): Json<NewUser>) -> Response {
    let mut roles = Vec::new();
    for word in &user.roles {
        match Role::from_word(word) {
            Some(role) => roles.push(role),
            None => {
                return refuse(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "unknown_role",
                    &format!("there is no role `{word}`"),
                );
            }
        }
    }
    match c
        .identity
        .create_user(&user.name, &user.password, &roles, crate::clock::now())
        .await
    {
        Ok(enrolled) => {
            let leaf = json!({ "user": user.name, "roles": user.roles.join(",") });
            let _ = stored(c.db.outbox_add("admin.user", &leaf));
            Json(json!({ "name": user.name, "totp_secret": enrolled.totp_secret, "totp_url": enrolled.totp_url }))
                .into_response()
        }
        Err(e) => refuse(
            StatusCode::UNPROCESSABLE_ENTITY,
            "user_refused",
            &e.to_string(),
        ),
    }
}
