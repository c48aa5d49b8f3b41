//! Requests inside a batch: read what the judgement needs, judge, write what it says, and keep what
//! to answer for after the commit.

use std::collections::BTreeMap;

use policies::audit::EventType;
use policies::canon::{self, Value};
use policies::guard::judge::{Context, Judged};
use policies::guard::{Action, Code, Leaf, Policy, Problem, TrustedKey, Who};
use policies::model::Millis;
use store::guard::{Batch, Error};

use super::after::{After, Finish, Telling, send};
use super::messages::{ReplyTo, Request};
use super::writer::Expected;

const MINUTE_MS: i64 = 60_000;

/// What judgements stand on between batches.
pub(super) struct Desk {
    pub(super) policy: Policy,
    pub(super) keys: Vec<TrustedKey>,
    pub(super) hold: Option<String>,
    pub(super) expected: Expected,
    refusals: BTreeMap<String, (i64, i64)>,
    excess: BTreeMap<&'static str, i64>,
    excess_from: Millis,
}

impl Desk {
    pub(super) fn new(
        policy: Policy,
        keys: Vec<TrustedKey>,
        hold: Option<String>,
        expected: Expected,
    ) -> Self {
        Self {
            policy,
            keys,
            hold,
            expected,
            refusals: BTreeMap::new(),
            excess: BTreeMap::new(),
            excess_from: Millis(0),
        }
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(super) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    pub(super) fn hold(&self) -> Option<&str> {
        self.hold.as_deref()
    }

    /// Refusals that could not be logged are counted for the first roll-up (guard 3.4).
    pub(super) fn count_stopped(&mut self, requests: usize, code: Code) {
        let count = i64::try_from(requests).unwrap_or(i64::MAX);
        if count > 0 {
            *self.excess.entry(code.as_str()).or_default() += count;
        }
    }

    /// The roll-up of a minute, where something is to be told.
    pub(super) fn rollup(&mut self, now: Millis) -> Option<Leaf> {
        if self.excess.is_empty() || now.since(self.excess_from) < MINUTE_MS {
            return None;
        }
        let counts = std::mem::take(&mut self.excess);
        let from = std::mem::replace(&mut self.excess_from, now);
        let counts = Value::map(counts.into_iter().map(|(code, n)| (code, Value::Int(n))));
        Some(Leaf::new(EventType::RefusedRollup, Who::Guard).data([
            ("counts", counts),
            ("from_ms", Value::Int(from.0)),
            ("to_ms", Value::Int(now.0)),
        ]))
    }

    /// Keeps the leaves of refusals of one caller within the policy's limit (guard 3.4).
    fn is_excess(&mut self, leaf: &Leaf, code: Code, now: Millis) -> bool {
        let caller = match &leaf.who {
            Who::Guard => "guard".to_owned(),
            Who::Caller(id) => id.clone(),
            Who::Person { id, .. } => format!("person {id}"),
        };
        let minute = now.0.div_euclid(MINUTE_MS);
        self.refusals.retain(|_, (of, _)| *of == minute);
        let (_, count) = self.refusals.entry(caller).or_insert((minute, 0));
        *count += 1;
        if *count <= self.policy.limits().refused_leaves_per_caller_per_minute {
            return false;
        }
        if self.excess.is_empty() {
            self.excess_from = now;
        }
        *self.excess.entry(code.as_str()).or_default() += 1;
        true
    }

    /// Judges one request; an error drops the whole batch.
    pub(super) fn judge(
        &mut self,
        batch: &mut Batch<'_>,
        request: Request,
        now: Millis,
        regressed: bool,
        seen: &mut Vec<Action>,
    ) -> Result<Finish, Error> {
        let mut work = Work {
            now,
            regressed,
            seen,
        };
        let work = &mut work;
        match request {
            Request::Propose {
                peer,
                request,
                reply,
            } => self.propose(batch, work, &peer, request, reply),
            Request::Decide {
                decider,
                verdict,
                request,
                reply,
            } => self.decide(batch, work, &decider, verdict, request, reply),
            Request::Cancel {
                peer,
                action,
                reply,
            } => self.cancel(batch, work, &peer, &action, reply),
            Request::Revoke {
                decider,
                request,
                reply,
            } => self.revoke(batch, work, &decider, request, reply),
            Request::Reconcile {
                decider,
                request,
                reply,
            } => self.reconcile(batch, work, &decider, request, reply),
            Request::Hold {
                decider,
                set,
                request,
                reply,
            } => self.hold_request(batch, work, &decider, set, request, reply),
            Request::Collect {
                channel,
                action,
                body,
                reply,
            } => self.collect(batch, work, &channel, &action, &body, reply),
            Request::Spend {
                channel,
                body,
                reply,
            } => self.spend(batch, work, &channel, &body, reply),
            Request::Started {
                channel,
                jti,
                body,
                reply,
            } => self.started(batch, work, &channel, &jti, &body, reply),
            Request::Outcome {
                channel,
                jti,
                body,
                reply,
            } => self.outcome(batch, work, &channel, &jti, &body, reply),
            Request::Append { kind, body, reply } => append(batch, kind, &body, reply),
            other => {
                let problem = Problem::new(Code::Malformed, "this request changes nothing");
                Ok(Box::new(move |_| other.refuse(&problem)))
            }
        }
    }

    pub(super) fn context<'a>(&'a self, batch: &Batch<'_>, work: &Work<'_>) -> Context<'a> {
        Context {
            policy: &self.policy,
            now: work.now,
            size: batch.size(),
            epoch: i64::try_from(batch.epoch()).unwrap_or(i64::MAX),
            inc: i64::try_from(batch.inc()).unwrap_or(i64::MAX),
            blocked: work.regressed.then_some(Code::ClockRegressed),
            on_hold: self.hold.is_some(),
        }
    }

    /// Writes a judgement and keeps its answer for after the commit.
    pub(super) fn settle<A: 'static, T: 'static>(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        judged: Judged<A>,
        reply: ReplyTo<T>,
        answer: impl FnOnce(A, Option<u64>) -> Telling<T>,
    ) -> Result<Finish, Error> {
        let mut leaves = judged.leaves;
        if let Err(problem) = &judged.answer {
            leaves.retain(|leaf| !self.is_excess(leaf, problem.code, work.now));
        }
        let applied = batch.apply(judged.actions, leaves)?;
        work.seen.extend(applied.actions);
        let index = applied.index;
        Ok(match judged.answer {
            Ok(value) => {
                let telling = answer(value, index);
                Box::new(move |sealed| send(reply, sealed, telling))
            }
            Err(mut problem) => {
                problem.audit_index = index;
                Box::new(move |sealed| {
                    send(reply, sealed, Box::new(|_: &mut After<'_>| Err(problem)))
                })
            }
        })
    }
}

/// What one batch shares between its requests.
pub(super) struct Work<'a> {
    pub(super) now: Millis,
    regressed: bool,
    seen: &'a mut Vec<Action>,
}

/// A leaf of the rest of core: ids, codes, hashes and whole numbers only.
fn append(
    batch: &mut Batch<'_>,
    kind: EventType,
    body: &str,
    reply: ReplyTo<u64>,
) -> Result<Finish, Error> {
    let limits = canon::Limits {
        max_bytes: 8 << 10,
        max_depth: 4,
    };
    let parsed = canon::parse(body.as_bytes(), limits).ok();
    let Some(data) = parsed.filter(|value| value.as_map().is_some()) else {
        let problem = Problem::new(Code::Malformed, "the body is no object of ids and numbers");
        return Ok(Box::new(move |sealed| {
            send(reply, sealed, Box::new(|_: &mut After<'_>| Err(problem)));
        }));
    };
    let mut leaf = Leaf::new(kind, Who::Caller("core".to_owned()));
    leaf.data = data;
    let index = batch
        .apply(Vec::new(), vec![leaf])?
        .index
        .unwrap_or_default();
    Ok(Box::new(move |sealed| {
        send(reply, sealed, Box::new(move |_: &mut After<'_>| Ok(index)));
    }))
}
