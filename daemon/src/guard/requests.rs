//! One function for each request of a batch: read what the judgement needs, judge, hand it on.

use policies::audit::EventType;
use policies::canon::Value;
use policies::guard::judge::{
    self, Channel, Collect, Decide, Decider, Evidence, Hold, Judged, Propose, Reconcile,
    SpendAnswer, Withdraw,
};
use policies::guard::totp::Checked;
use policies::guard::{Action, Capability, Code, Peer, Problem, Verdict, Who, wire};
use policies::model::Millis;
use store::guard::{Batch, Error};

use super::after::{After, Finish, Telling, told};
use super::judge::{Desk, Work};
use super::messages::{
    Collected, DecisionRequest, HoldRequest, ProposeRequest, ReconcileRequest, Reply, ReplyTo,
    RevokeRequest, SpendReceipt,
};
use super::writer::{Expected, draw};

impl Desk {
    pub(super) fn propose(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        peer: &Peer,
        request: ProposeRequest,
        reply: ReplyTo<Reply>,
    ) -> Result<Finish, Error> {
        let judged = judge::propose(
            &self.context(batch, work),
            peer,
            &proposal(request),
            (draw(), draw()),
            |requester, doc| batch.propose_facts(requester, doc),
        )?;
        self.settle(batch, work, judged, reply, plain)
    }

    pub(super) fn cancel(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        peer: &Peer,
        action: &str,
        reply: ReplyTo<Reply>,
    ) -> Result<Finish, Error> {
        let who = || Who::Caller(peer.to_string());
        let judged = match batch.action(action)? {
            Some(action) => judge::cancel(&self.context(batch, work), peer, &action),
            None => unknown(EventType::ActionRefused, "cancel", who()),
        };
        self.settle(batch, work, judged, reply, plain)
    }

    pub(super) fn revoke(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        decider: &Decider,
        request: RevokeRequest,
        reply: ReplyTo<Reply>,
    ) -> Result<Finish, Error> {
        let withdraw = Withdraw {
            approver: request.approver,
            reason: request.reason,
        };
        let judged = match batch.action(&request.action_id)? {
            Some(action) => judge::revoke(&self.context(batch, work), decider, &action, &withdraw),
            None => unknown(EventType::DecisionRefused, "revoke", caller(decider)),
        };
        self.settle(batch, work, judged, reply, plain)
    }

    pub(super) fn reconcile(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        decider: &Decider,
        request: ReconcileRequest,
        reply: ReplyTo<Reply>,
    ) -> Result<Finish, Error> {
        let (evidence, looked) =
            self.evidence(batch, &request.approver, request.totp.as_deref(), work.now)?;
        let order = Reconcile {
            succeeded: request.succeeded,
            approver: Some(request.approver),
            reason: request.reason,
            evidence_sha256: request.evidence_sha256,
            evidence,
        };
        let judged = match batch.action(&request.action_id)? {
            Some(action) => judge::reconcile(&self.context(batch, work), decider, &action, &order),
            None => unknown(EventType::ExecRefused, "reconcile", caller(decider)),
        };
        note_code(batch, &judged, looked, work.now)?;
        self.settle(batch, work, judged, reply, plain)
    }

    pub(super) fn hold_request(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        decider: &Decider,
        set: bool,
        request: HoldRequest,
        reply: ReplyTo<()>,
    ) -> Result<Finish, Error> {
        let (evidence, looked) =
            self.evidence(batch, &request.approver, request.totp.as_deref(), work.now)?;
        let hold = Hold {
            approver: Some(request.approver),
            reason: request.reason,
            evidence,
        };
        let ctx = self.context(batch, work);
        let judged = if set {
            judge::hold_set(&ctx, decider, &hold)
        } else {
            judge::hold_release(&ctx, decider, &hold)
        };
        note_code(batch, &judged, looked, work.now)?;
        // Setting it a second time leaves no leaf and keeps the first reason.
        if judged.answer.is_ok() && !judged.leaves.is_empty() {
            let text = set.then(|| format!("{}: {}", work.now, hold.reason));
            batch.set_meta("hold", text.as_deref())?;
            self.hold = text;
        }
        self.settle(batch, work, judged, reply, |(), _| {
            Box::new(|_: &mut After<'_>| Ok(()))
        })
    }

    pub(super) fn started(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        channel: &Channel,
        jti: &str,
        body: &[u8],
        reply: ReplyTo<Reply>,
    ) -> Result<Finish, Error> {
        let judged = match wire::started(body) {
            Err(problem) => refused(EventType::ExecRefused, "started", problem),
            Ok((job, fence)) => {
                let found = batch.action_of_jti(jti)?.map(|(action, _)| action);
                let ctx = self.context(batch, work);
                judge::started(&ctx, channel, found.as_ref(), &job, fence)
            }
        };
        self.settle(batch, work, judged, reply, plain)
    }

    pub(super) fn outcome(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        channel: &Channel,
        jti: &str,
        body: &[u8],
        reply: ReplyTo<Reply>,
    ) -> Result<Finish, Error> {
        let judged = match wire::outcome(body) {
            Err(problem) => refused(EventType::ExecRefused, "outcome", problem),
            Ok(order) => {
                let found = batch.action_of_jti(jti)?.map(|(action, _)| action);
                judge::outcome(channel, found.as_ref(), &order)
            }
        };
        self.settle(batch, work, judged, reply, plain)
    }

    pub(super) fn decide(
        &mut self,
        batch: &mut Batch<'_>,
        work: &mut Work<'_>,
        decider: &Decider,
        verdict: Verdict,
        request: DecisionRequest,
        reply: ReplyTo<Reply>,
    ) -> Result<Finish, Error> {
        let (evidence, looked) =
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
        note_code(batch, &judged, looked, work.now)?;
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
    ) -> Result<(Evidence, Option<Looked>), Error> {
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
        let kept = batch.totp(&subject)?;
        let checked = kept.map_or(Checked::Wrong, |kept| kept.check(code, now));
        let (evidence, step) = match checked {
            Checked::Step(step) => (Evidence::Local { holds: true }, Some(step)),
            Checked::Wrong => (Evidence::Local { holds: false }, None),
            Checked::Locked(until) => return Ok((Evidence::Locked { until }, None)),
        };
        Ok((evidence, Some(Looked { subject, step })))
    }

    pub(super) fn collect(
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

    pub(super) fn spend(
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

fn plain(action: Action, index: Option<u64>) -> Telling<Reply> {
    told(action, index, None)
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

/// A code that was compared, and the step that it holds for.
struct Looked {
    subject: String,
    step: Option<i64>,
}

/// Uses the step of a code up, or counts a wrong one. A request that was refused or answered before
/// its code mattered does neither: it says nothing about the code.
fn note_code<A>(
    batch: &Batch<'_>,
    judged: &Judged<A>,
    looked: Option<Looked>,
    now: Millis,
) -> Result<(), Error> {
    let wrong = matches!(&judged.answer, Err(p) if p.code == Code::EvidenceInvalid);
    match looked {
        Some(Looked {
            subject,
            step: Some(step),
        }) if judged.code_used => {
            batch.use_totp_step(&subject, step)?;
        }
        Some(Looked {
            subject,
            step: None,
        }) if wrong => batch.code_failed(&subject, now)?,
        _ => {}
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
