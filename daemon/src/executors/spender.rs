//! The remediate worker: collect, verify against its own arguments, spend, wait for the release,
//! start, act once, tell the outcome (guard 7.2).
//!
//! The capability lives in this process's memory only. Nothing is retried after the effect may have
//! begun: what is not known is told as `unknown`.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use policies::canon::{self, b64url};
use policies::guard::{HolderKey, Purpose, TrustedKey, verify_for};
use policies::model::{Millis, Target};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;
use zeroize::Zeroizing;

use super::{Effect, ExecutorSpec, Failure, perform};
use crate::jobs::channel::Channel;
use crate::jobs::wire::MAX_FRAME;

/// Longest answer of the guard.
const MAX_REPLY: usize = 64 << 10;
/// How long one request to the guard may take.
const REQUEST: Duration = Duration::from_secs(10);

/// What a remediate worker is told: its own arguments, which the capability must match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The action at the guard.
    pub aid: String,
    /// Name of the action.
    pub action: String,
    /// What it works on.
    pub target: Target,
    /// Its parameters.
    pub change: Value,
    /// The job.
    pub job: String,
    /// Its fence.
    pub fence: i64,
    /// End of the lease in ms from the time the order is read.
    pub lease_ms: u64,
    /// The guard's public keys (`guard-jwks.json`).
    pub jwks: String,
    /// What performs it.
    pub executor: ExecutorSpec,
}

/// The frame that lets a worker that has spent begin. Only the scheduler's function that takes a
/// `Spent` sends it; the credential of a target would be in it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The capability that was spent.
    pub jti: String,
}

/// The way ended before an effect could begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: String,
    pub(crate) detail: String,
}

impl Refused {
    fn new(code: &str, detail: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            detail: detail.into(),
        }
    }

    /// From a problem of guard 3.2. Its text is the guard's own.
    fn problem(status: StatusCode, body: &Value) -> Self {
        let code = body["code"].as_str().unwrap_or("guard_unavailable");
        let detail = body["detail"].as_str().unwrap_or_default();
        Self::new(code, format!("{status}: {detail}"))
    }
}

/// Runs an order to its end. An `Err` says that nothing was begun and nothing will be.
pub(crate) fn remediate(
    channel: &mut Channel,
    runtime: &Runtime,
    guard: UnixStream,
    order: &Order,
) -> Result<Effect, Refused> {
    let lease = boot_time().saturating_add(i64::try_from(order.lease_ms).unwrap_or(i64::MAX));
    let mut client = runtime.block_on(Client::open(guard))?;
    let spent = runtime.block_on(collect_and_spend(&mut client, order))?;
    let wait = Instant::now() + Duration::from_millis(order.lease_ms);
    let release: Release = channel
        .recv(MAX_FRAME, Some(wait))
        .map_err(|e| Refused::new("not_begun", format!("no release: {e}")))?;
    if release.jti != spent.jti {
        return Err(Refused::new(
            "not_begun",
            "the release is for another capability",
        ));
    }
    let caller = json!({"job": order.job, "fence": order.fence});
    let path = |step: &str| format!("/v1/capabilities/{}/{step}", spent.jti);
    let started = runtime.block_on(client.post(&path("started"), &caller));
    let effect = if let Err(refused) = started {
        // Not acknowledged, so not begun, whatever the guard has recorded.
        Effect::failed(&Failure::new("not_begun", refused.detail))
    } else if boot_time() >= spent.deadline.min(lease) {
        Effect::failed(&Failure::new("not_begun", "the time to begin was over"))
    } else {
        perform(&order.executor, &order.change, &spent.jti)
    };
    let evidence = b64url(&Sha256::digest(effect.evidence.as_bytes()));
    let mut told = caller;
    told["outcome"] = json!(effect.outcome);
    told["code"] = json!(effect.code);
    told["evidence_sha256"] = json!(evidence);
    // Once more where the answer was lost; an identical repeat is answered as recorded (guard 7.6).
    for _ in 0..2 {
        if runtime
            .block_on(client.post(&path("outcome"), &told))
            .is_ok()
        {
            break;
        }
    }
    Ok(effect)
}

struct SpentHere {
    jti: String,
    /// End of the time to begin, on the boot-time clock.
    deadline: i64,
}

async fn collect_and_spend(client: &mut Client, order: &Order) -> Result<SpentHere, Refused> {
    let key = holder_key()?;
    let keys = TrustedKey::from_jwks(order.jwks.as_bytes())
        .ok_or_else(|| Refused::new("capability_invalid", "the guard's keys do not parse"))?;
    let change = canonical(&order.change)?;
    let (job, fence) = (order.job.as_str(), order.fence);
    let proof = key.prove(Purpose::Collect { aid: &order.aid }, job, fence);
    let body = json!({"job": job, "fence": fence, "holder_proof": proof});
    let path = format!("/v1/actions/{}/capability", order.aid);
    let mut reply = client.post(&path, &body).await?;
    let token = match reply["capability"].take() {
        Value::String(token) => Zeroizing::new(token),
        _ => {
            return Err(Refused::new(
                "capability_invalid",
                "there is none in the reply",
            ));
        }
    };
    let own = (order.action.as_str(), &order.target, &change);
    let claims = verify_for(&token, &keys, wall_time(), own, &key.jkt())
        .map_err(|problem| Refused::new(problem.code.as_str(), problem.detail.clone()))?;
    if claims.aid != order.aid {
        return Err(Refused::new(
            "params_mismatch",
            "the capability is for another action",
        ));
    }
    let purpose = Purpose::Spend {
        jti: &claims.jti,
        token: &token,
    };
    let body = json!({
        "capability": token.as_str(), "action": order.action, "target": order.target,
        "change": order.change, "job": job, "fence": fence,
        "holder_proof": key.prove(purpose, job, fence), "seen": null,
    });
    // Taken before the request: the deadline of the guard begins to run no earlier.
    let before = boot_time();
    let reply = client.post("/v1/capabilities/spend", &body).await?;
    Ok(SpentHere {
        deadline: before.saturating_add(budget(&reply)?),
        jti: claims.jti,
    })
}

/// How long after the spend the effect may begin: from the guard's two times, so that neither
/// clock needs to agree with this process's.
fn budget(reply: &Value) -> Result<i64, Refused> {
    let missing = || Refused::new("not_begun", "the receipt of the spend has no deadline");
    let deadline = reply["effect_deadline"]
        .as_str()
        .and_then(Millis::parse_rfc3339);
    let event: Option<Value> = reply["event"]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let spent = event.and_then(|event| event["t_hwm"].as_i64());
    Ok(deadline
        .ok_or_else(missing)?
        .since(Millis(spent.ok_or_else(missing)?)))
}

fn holder_key() -> Result<HolderKey, Refused> {
    loop {
        let mut bytes = Zeroizing::new([0_u8; 32]);
        getrandom::fill(bytes.as_mut())
            .map_err(|e| Refused::new("not_begun", format!("no randomness: {e}")))?;
        if let Some(key) = HolderKey::from_random(&bytes) {
            return Ok(key);
        }
    }
}

/// The parameters by the strict rules of guard 5.1.
fn canonical(change: &Value) -> Result<BTreeMap<String, canon::Value>, Refused> {
    let limits = canon::Limits {
        max_bytes: 16 << 10,
        max_depth: 4,
    };
    canon::parse(change.to_string().as_bytes(), limits)
        .ok()
        .and_then(|value| value.as_map().cloned())
        .ok_or_else(|| Refused::new("params_invalid", "the order's parameters are not canonical"))
}

/// Milliseconds of the clock that runs while the box sleeps and that nobody can set.
fn boot_time() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec
        .saturating_mul(1000)
        .saturating_add(time.tv_nsec / 1_000_000)
}

fn wall_time() -> Millis {
    let time = clock_gettime(ClockId::Realtime);
    Millis(
        time.tv_sec
            .saturating_mul(1000)
            .saturating_add(time.tv_nsec / 1_000_000),
    )
}

/// HTTP on the inherited channel.
struct Client {
    sender: SendRequest<Full<Bytes>>,
}

impl Client {
    async fn open(stream: UnixStream) -> Result<Self, Refused> {
        let lost = |e: &dyn std::error::Error| Refused::new("guard_unavailable", e.to_string());
        stream.set_nonblocking(true).map_err(|e| lost(&e))?;
        let stream = tokio::net::UnixStream::from_std(stream).map_err(|e| lost(&e))?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| lost(&e))?;
        tokio::spawn(connection);
        Ok(Self { sender })
    }

    /// The body of a 2xx answer.
    async fn post(&mut self, path: &str, body: &Value) -> Result<Value, Refused> {
        let unavailable = |text: String| Refused::new("guard_unavailable", text);
        let exchange = async {
            let request = Request::post(path)
                .header(HOST, "guard")
                .header(CONTENT_TYPE, "application/json")
                .body(Full::new(Bytes::from(body.to_string())))
                .map_err(|e| unavailable(e.to_string()))?;
            let lost = |e: hyper::Error| unavailable(e.to_string());
            self.sender.ready().await.map_err(lost)?;
            let response = self.sender.send_request(request).await.map_err(lost)?;
            let status = response.status();
            let bytes = Limited::new(response.into_body(), MAX_REPLY)
                .collect()
                .await
                .map_err(|e| unavailable(e.to_string()))?
                .to_bytes();
            let value: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            if status.is_success() {
                Ok(value)
            } else {
                Err(Refused::problem(status, &value))
            }
        };
        tokio::time::timeout(REQUEST, exchange)
            .await
            .unwrap_or_else(|_| Err(unavailable("no answer in time".to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_begin_comes_from_the_guards_own_two_times() {
        let event = json!({"t_hwm": 1_780_000_000_000_i64}).to_string();
        let reply = json!({"effect_deadline": "2026-05-28T20:28:40.000Z", "event": event});
        assert_eq!(budget(&reply), Ok(120_000));
        assert!(budget(&json!({"effect_deadline": "2026-05-28T20:28:40.000Z"})).is_err());
    }

    #[test]
    fn parameters_that_have_no_canonical_form_are_refused_before_anything_is_asked() {
        assert!(canonical(&json!({"to": 1.5})).is_err());
        assert!(canonical(&json!([1])).is_err());
        assert_eq!(
            canonical(&json!({"to": 5})).unwrap()["to"],
            canon::Value::Int(5)
        );
    }
}
