//! Readiness (operations 8.1): which parts work. Anonymous callers get one word.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use inference::{Engine, EngineState, Provider};
use serde::Serialize;
use store::sentinel::Db;

use crate::guard::Guard;
use crate::telemetry::{self, names};

/// State of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Works.
    Ok,
    /// Works less well; incidents are still diagnosed.
    Degraded,
    /// Does not work.
    Failed,
}

impl State {
    const ALL: [Self; 3] = [Self::Ok, Self::Degraded, Self::Failed];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Failed => "failed",
        }
    }
}

/// One part and how it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// `store`, `guard`, `model`.
    pub part: &'static str,
    /// State.
    pub state: State,
    /// Code of what is wrong; empty when nothing is.
    pub code: String,
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `ready`, `degraded` or `not_ready`.
    pub status: &'static str,
    /// Parts.
    pub parts: Vec<Part>,
}

/// Looks at the parts when it is asked.
#[derive(Clone)]
pub struct Health {
    /// `sentinel.db`.
    pub db: Arc<Db>,
    /// The guard.
    pub guard: Guard,
    /// The engine, if a model is configured.
    pub engine: Option<Arc<Engine>>,
    /// Why a configured model could not be started; empty otherwise.
    pub engine_refused: String,
}

impl Health {
    /// Looks at every part.
    pub async fn report(&self) -> Report {
        let store = match self.db.open_incidents() {
            Ok(_) => part("store", State::Ok, ""),
            Err(_) => part("store", State::Failed, "store_failed"),
        };
        let guard = match self.guard.health().await {
            Ok(health) => match health.states.first() {
                None => part("guard", State::Ok, ""),
                Some(first) if first.state == "policy_rejected" || first.state == "on_hold" => {
                    part("guard", State::Degraded, &first.state)
                }
                Some(first) => part("guard", State::Failed, &first.state),
            },
            Err(problem) => part("guard", State::Failed, problem.code.as_str()),
        };
        let parts = vec![store, guard, self.model()];
        for one in &parts {
            for state in State::ALL {
                let here = if one.state == state { 1.0 } else { 0.0 };
                telemetry::gauge(names::PART_STATE, &[one.part, state.as_str()], here);
            }
        }
        let failed = parts
            .iter()
            .any(|p| p.part != "model" && p.state == State::Failed);
        let status = if failed {
            "not_ready"
        } else if parts.iter().all(|p| p.state == State::Ok) {
            "ready"
        } else {
            "degraded"
        };
        Report { status, parts }
    }

    /// A missing or broken model never stops the daemon: the rules still diagnose.
    fn model(&self) -> Part {
        match self.engine.as_ref().map(|e| e.state()) {
            None if self.engine_refused.is_empty() => part("model", State::Ok, "none"),
            None => part("model", State::Degraded, &self.engine_refused),
            Some(EngineState::Ready) => part("model", State::Ok, ""),
            Some(EngineState::Loading) => part("model", State::Degraded, "loading"),
            Some(EngineState::Restarting) => part("model", State::Degraded, "restarting"),
            Some(EngineState::Degraded) => part("model", State::Degraded, "engine_degraded"),
            Some(EngineState::Unavailable { code }) => {
                part("model", State::Degraded, code.as_str())
            }
            Some(EngineState::Stopped) => part("model", State::Degraded, "stopped"),
        }
    }
}

fn part(part: &'static str, state: State, code: &str) -> Part {
    Part {
        part,
        state,
        code: code.to_owned(),
    }
}

/// `/healthz` and `/readyz` for anonymous callers.
pub fn router(health: Health) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route(
            "/readyz",
            get(move || {
                let health = health.clone();
                async move {
                    let report = health.report().await;
                    let code = if report.status == "not_ready" {
                        StatusCode::SERVICE_UNAVAILABLE
                    } else {
                        StatusCode::OK
                    };
                    (code, format!("{}\n", report.status)).into_response()
                }
            }),
        )
}
