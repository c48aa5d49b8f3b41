//! The guard's HTTP on the socketpair of one remediate worker (guard 2.1.1 way (c), 3.1).
//!
//! The caller is the channel's (job, fence) and nobody else; only these routes exist here.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use policies::guard::judge::Channel;
use policies::guard::wire::MAX_BODY;
use policies::guard::{Problem, State as ActionState};
use tokio::net::UnixStream;

use super::messages::{Reply, Request};
use super::{Guard, shown};
use crate::failpoint;

/// The routes of one worker's channel.
#[derive(Clone)]
pub struct GuardChannel {
    guard: Guard,
    channel: Channel,
}

impl GuardChannel {
    /// The channel of a worker that holds a lease. `expect_spend` is called before the worker
    /// starts, or its spend releases nothing.
    #[must_use]
    pub fn new(guard: Guard, channel: Channel) -> Self {
        Self { guard, channel }
    }

    /// The routes.
    pub fn router(self) -> Router {
        Router::new()
            .route("/v1/actions/{id}/capability", post(capability))
            .route("/v1/capabilities/spend", post(spend))
            .route("/v1/capabilities/{jti}/started", post(started))
            .route("/v1/capabilities/{jti}/outcome", post(outcome))
            .route("/.well-known/jwks.json", get(jwks))
            .with_state(self)
    }

    /// Serves the routes on the core's end of the socketpair until the worker closes its own.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn serve(self, stream: UnixStream) -> Result<(), hyper::Error> {
        hyper::server::conn::http1::Builder::new()
            .serve_connection(
                TokioIo::new(stream),
                TowerToHyperService::new(self.router()),
            )
            .await
    }

    fn answer(&self, result: Result<String, Problem>) -> Response {
        match result {
            Ok(body) => json(StatusCode::OK, "application/json", body),
            Err(problem) => {
                let status = StatusCode::from_u16(problem.code.status());
                let body = problem.to_json(self.guard.origin()).to_string();
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                json(status, "application/problem+json", body)
            }
        }
    }
}

fn json(status: StatusCode, kind: &'static str, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, kind)], body).into_response()
}

/// The body, or as much more than the limit as the guard needs to refuse it with a leaf.
async fn whole(body: Body) -> Vec<u8> {
    to_bytes(body, MAX_BODY)
        .await
        .map_or_else(|_| vec![b' '; MAX_BODY + 1], |bytes| bytes.to_vec())
}

async fn capability(
    State(at): State<GuardChannel>,
    Path(action): Path<String>,
    body: Body,
) -> Response {
    let (channel, body) = (at.channel.clone(), whole(body).await);
    let collected = at
        .guard
        .ask(|reply| Request::Collect {
            channel,
            action,
            body,
            reply,
        })
        .await;
    if collected.is_ok() {
        failpoint::hit("collected");
    }
    at.answer(collected.map(|collected| {
        let expires_at = shown(collected.capability.expires_at());
        // The one place where the bytes leave: into the answer to the holder.
        let token = collected.capability.into_token();
        serde_json::json!({
            "capability": token.as_str(), "expires_at": expires_at,
            "audit_index": collected.index, "proof": collected.proof,
        })
        .to_string()
    }))
}

async fn spend(State(at): State<GuardChannel>, body: Body) -> Response {
    let (channel, body) = (at.channel.clone(), whole(body).await);
    let receipt = at
        .guard
        .ask(|reply| Request::Spend {
            channel,
            body,
            reply,
        })
        .await;
    at.answer(receipt.map(|receipt| {
        serde_json::json!({
            "jti": receipt.jti, "state": ActionState::Spent,
            "effect_deadline": shown(receipt.effect_deadline), "event": receipt.event,
            "audit_index": receipt.index, "proof": receipt.proof, "consistency": [],
        })
        .to_string()
    }))
}

async fn started(State(at): State<GuardChannel>, Path(jti): Path<String>, body: Body) -> Response {
    let (channel, body) = (at.channel.clone(), whole(body).await);
    let reply = at
        .guard
        .ask(|reply| Request::Started {
            channel,
            jti,
            body,
            reply,
        })
        .await;
    if reply.is_ok() {
        failpoint::hit("started");
    }
    at.answer(reply.map(|reply| state_of(&reply)))
}

async fn outcome(State(at): State<GuardChannel>, Path(jti): Path<String>, body: Body) -> Response {
    let (channel, body) = (at.channel.clone(), whole(body).await);
    failpoint::hit("effect_done");
    let reply = at
        .guard
        .ask(|reply| Request::Outcome {
            channel,
            jti,
            body,
            reply,
        })
        .await;
    at.answer(reply.map(|reply| state_of(&reply)))
}

fn state_of(reply: &Reply) -> String {
    serde_json::json!({
        "state": reply.state, "audit_index": reply.audit_index, "proof": reply.proof,
    })
    .to_string()
}

async fn jwks(State(at): State<GuardChannel>) -> Response {
    json(StatusCode::OK, "application/json", at.guard.jwks())
}
