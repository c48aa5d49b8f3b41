//! Requests inside a batch: read what the judgement needs, judge, write what it says, and keep what
//! to answer for after the commit.

use std::collections::BTreeMap;

use policies::audit::EventType;
use policies::canon::{self, Value};
use policies::guard::judge::{
    self, Channel, Collect, Context, Decide, Decider, Evidence, Hold, Judged, Propose, Reconcile,
    SpendAnswer, Withdraw,
};
use policies::guard::{
    Action, Capability, Code, Leaf, Policy, Problem, TrustedKey, Verdict, Who, totp, wire,
};
use policies::model::Millis;
use store::guard::{Batch, Error};

use super::after::{After, Finish, Telling, send, told};
use super::messages::{
    Collected, DecisionRequest, ProposeRequest, Reply, ReplyTo, Request, SpendReceipt,
};
use super::writer::{Expected, draw};

const MINUTE_MS: i64 = 60_000;

/// What judgements stand on between batches.
pub(super) struct Desk {
    policy: Policy,
    keys: Vec<TrustedKey>,
    hold: Option<String>,
    expected: Expected,
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
        match request {
            Request::Propose {
                peer,
                request,
                reply,
            } => {
                let request = proposal(request);
                let judged = judge::propose(
                    &self.context(batch, &work),
                    &peer,
                    &request,
                    (draw(), draw()),
                    |requester, doc| batch.propose_facts(requester, doc),
                )?;
                self.settle(batch, &mut work, judged, reply, |action, index| {
                    told(action, index, None)
                })
            }
            Request::Decide {
                decider,
                verdict,
                request,
                reply,
            } => self.decide(batch, &mut work, &decider, verdict, request, reply),
            Request::Cancel {
                peer,
                action,
                reply,
            } => {
                let judged = match batch.action(&action)? {
                    Some(action) => judge::cancel(&self.context(batch, &work), &peer, &action),
                    None => unknown(
                        EventType::ActionRefused,
                        "cancel",
                        Who::Caller(peer.to_string()),
                    ),
                };
                self.settle(batch, &mut work, judged, reply, |action, index| {
                    told(action, index, None)
                })
            }
            Request::Revoke {
                decider,
                request,
                reply,
            } => {
                let withdraw = Withdraw {
                    approver: request.approver,
                    reason: request.reason,
                };
                let judged = match batch.action(&request.action_id)? {
                    Some(action) => {
                        judge::revoke(&self.context(batch, &work), &decider, &action, &withdraw)
                    }
                    None => unknown(EventType::DecisionRefused, "revoke", caller(&decider)),
                };
                self.settle(batch, &mut work, judged, reply, |action, index| {
                    told(action, index, None)
                })
            }
            Request::Reconcile {
                decider,
                request,
                reply,
            } => {
                let (evidence, step) =
                    self.evidence(batch, &request.approver, request.totp.as_deref(), now)?;
                let order = Reconcile {
                    succeeded: request.succeeded,
                    approver: Some(request.approver),
                    reason: request.reason,
                    evidence_sha256: request.evidence_sha256,
                    evidence,
                };
                let judged = match batch.action(&request.action_id)? {
                    Some(action) => {
                        judge::reconcile(&self.context(batch, &work), &decider, &action, &order)
                    }
                    None => unknown(EventType::ExecRefused, "reconcile", caller(&decider)),
                };
                use_up(batch, judged.code_used, step)?;
                self.settle(batch, &mut work, judged, reply, |action, index| {
                    told(action, index, None)
                })
            }
            Request::Hold {
                decider,
                set,
                request,
                reply,
            } => {
                let (evidence, step) =
                    self.evidence(batch, &request.approver, request.totp.as_deref(), now)?;
                let hold = Hold {
                    approver: Some(request.approver),
                    reason: request.reason,
                    evidence,
                };
                let ctx = self.context(batch, &work);
                let judged = if set {
                    judge::hold_set(&ctx, &decider, &hold)
                } else {
                    judge::hold_release(&ctx, &decider, &hold)
                };
                use_up(batch, judged.code_used, step)?;
                if judged.answer.is_ok() {
                    let text = set.then(|| format!("{now}: {}", hold.reason));
                    batch.set_meta("hold", text.as_deref())?;
                    self.hold = text;
                }
                self.settle(batch, &mut work, judged, reply, |(), _| {
                    Box::new(|_: &mut After<'_>| Ok(()))
                })
            }
            Request::Collect {
                channel,
                action,
                body,
                reply,
            } => self.collect(batch, &mut work, &channel, &action, &body, reply),
            Request::Spend {
                channel,
                body,
                reply,
            } => self.spend(batch, &mut work, &channel, &body, reply),
            Request::Started {
                channel,
                jti,
                body,
                reply,
            } => {
                let judged = match wire::started(&body) {
                    Err(problem) => refused(EventType::ExecRefused, "started", problem),
                    Ok((job, fence)) => {
                        let found = batch.action_of_jti(&jti)?.map(|(action, _)| action);
                        let ctx = self.context(batch, &work);
                        judge::started(&ctx, &channel, found.as_ref(), &job, fence)
                    }
                };
                self.settle(batch, &mut work, judged, reply, |action, index| {
                    told(action, index, None)
                })
            }
            Request::Outcome {
                channel,
                jti,
                body,
                reply,
            } => {
                let judged = match wire::outcome(&body) {
                    Err(problem) => refused(EventType::ExecRefused, "outcome", problem),
                    Ok(order) => {
                        let found = batch.action_of_jti(&jti)?.map(|(action, _)| action);
                        judge::outcome(&channel, found.as_ref(), &order)
                    }
                };
                self.settle(batch, &mut work, judged, reply, |action, index| {
                    told(action, index, None)
                })
            }
            Request::Append { kind, body, reply } => append(batch, kind, &body, reply),
            other => {
                let problem = Problem::new(Code::Malformed, "this request changes nothing");
                Ok(Box::new(move |_| other.refuse(&problem)))
            }
        }
    }

    fn context<'a>(&'a self, batch: &Batch<'_>, work: &Work<'_>) -> Context<'a> {
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
    fn settle<A: 'static, T: 'static>(
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

    fn decide(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        decider: &Decider,
        verdict: Verdict,
        request: DecisionRequest,
        reply: ReplyTo<Reply>,
    ) -> Result<Finish, Error> {
        let (evidence, step) =
            self.evidence(batch, &request.approver, request.totp.as_deref(), work.now)?;
        let order = Decide {
            verdict,
            digest: request.digest,
            nonce: request.decision_nonce,
            approver: Some(request.approver),
            reason: request.reason,
            evidence,
        };
        let judged = match batch.action(&request.action_id)? {
            Some(action) => judge::decide(&self.context(batch, work), decider, &action, &order),
            None => unknown(
                EventType::DecisionRefused,
                verdict.as_str(),
                caller(decider),
            ),
        };
        use_up(batch, judged.code_used, step)?;
        self.settle(batch, work, judged, reply, |(action, decision), index| {
            told(action, index.or(Some(decision.index)), Some(decision))
        })
    }

    /// Looks at a one-time code: of the subject itself, or of the person's local account.
    fn evidence(
        &self,
        batch: &Batch<'_>,
        approver: &str,
        code: Option<&str>,
        now: Millis,
    ) -> Result<(Evidence, Option<(String, i64)>), Error> {
        let Some(code) = code else {
            return Ok((Evidence::None, None));
        };
        let local = |subject: &&String| subject.starts_with("local:");
        let subject = if approver.starts_with("local:") {
            Some(approver.to_owned())
        } else {
            let person = self.policy.person_of_subject(approver);
            person.and_then(|p| p.subjects.iter().find(local)).cloned()
        };
        let Some(subject) = subject else {
            return Ok((Evidence::Local { holds: false }, None));
        };
        let step = batch
            .totp(&subject)?
            .and_then(|(secret, last)| totp::accept(&secret, code, now, last));
        let holds = step.is_some();
        Ok((Evidence::Local { holds }, step.map(|step| (subject, step))))
    }

    fn collect(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        channel: &Channel,
        action: &str,
        body: &[u8],
        reply: ReplyTo<Collected>,
    ) -> Result<Finish, Error> {
        let found: Result<(Collect, Action), Problem> = match wire::collect(body) {
            Err(problem) => Err(problem),
            Ok(order) => batch
                .action(action)?
                .map(|action| (order, action))
                .ok_or_else(|| Problem::new(Code::NotFound, Code::NotFound.title())),
        };
        let judged = match found {
            Err(problem) => refused(EventType::CapRefused, "capability", problem),
            Ok((order, action)) => {
                let known = batch.fence(&channel.job)?;
                let ctx = self.context(batch, work);
                judge::collect(&ctx, channel, &action, &order, known, draw())
            }
        };
        self.settle(batch, work, judged, reply, |grant, index| {
            Box::new(move |after: &mut After<'_>| {
                let index = index.unwrap_or_default();
                let proof = after.proof(index)?;
                Ok(Collected {
                    capability: Capability::mint(grant, &after.keys.cap),
                    index,
                    proof,
                })
            })
        })
    }

    fn spend(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        channel: &Channel,
        body: &[u8],
        reply: ReplyTo<SpendReceipt>,
    ) -> Result<Finish, Error> {
        let judged = match wire::spend(body) {
            Err(problem) => refused(EventType::SpendRefused, "spend", problem),
            Ok(order) => {
                let ctx = self.context(batch, work);
                judge::spend(&ctx, channel, &self.keys, &order, |jti| {
                    batch.action_of_jti(jti)
                })?
            }
        };
        let expected = Expected::clone(&self.expected);
        self.settle(batch, work, judged, reply, move |answer, _| match answer {
            SpendAnswer::Fresh(grant) => {
                Box::new(move |after: &mut After<'_>| after.release(*grant, &expected))
            }
            SpendAnswer::Recorded(action) => {
                Box::new(move |after: &mut After<'_>| after.receipt_again(&action))
            }
        })
    }
}

/// What one batch shares between its requests.
struct Work<'a> {
    now: Millis,
    regressed: bool,
    seen: &'a mut Vec<Action>,
}

fn refused<A>(kind: EventType, route: &'static str, problem: Problem) -> Judged<A> {
    let who = Who::Caller(policies::guard::policy::INTERNAL_WORKER.to_owned());
    judge::refused(kind, route, who, problem)
}

fn unknown<A>(kind: EventType, route: &'static str, who: Who) -> Judged<A> {
    let problem = Problem::new(Code::NotFound, Code::NotFound.title());
    judge::refused(kind, route, who, problem)
}

fn caller(decider: &Decider) -> Who {
    match decider {
        Decider::Peer(peer) => Who::Caller(peer.to_string()),
        Decider::Person(id) => Who::Person {
            id: id.clone(),
            assurance: None,
        },
    }
}

fn use_up(batch: &Batch<'_>, used: bool, step: Option<(String, i64)>) -> Result<(), Error> {
    if let Some((subject, step)) = step.filter(|_| used) {
        batch.use_totp_step(&subject, step)?;
    }
    Ok(())
}

fn proposal(request: ProposeRequest) -> Propose {
    Propose {
        action: request.action,
        target: Value::map([
            ("name", Value::from(request.target.name)),
            ("namespace", Value::from(request.target.namespace)),
        ]),
        change: Value::Map(request.change),
        intent: request.intent,
        initiator: request.initiator,
    }
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
