//! The guard as a service: one writer thread owns the database and the signing keys; everybody
//! else holds a [`Guard`] and asks (guard 1.4, 6.3.1).
//!
//! It decides nothing: `policies::guard` judges, `store::guard` commits. A reply leaves only after
//! what it says is durable, signed, copied and (for a spend) anchored.

mod after;
mod channel;
mod clock;
mod files;
mod judge;
mod messages;
mod options;
mod read;
mod requests;
mod view;
mod writer;

use std::sync::{Arc, PoisonError, mpsc};

use policies::audit::EventType;
use policies::guard::judge::{Channel, Decider};
use policies::guard::{Code, Peer, Problem, Verdict};
use policies::model::Millis;
use tokio::sync::{broadcast, oneshot};

pub use channel::GuardChannel;
pub use clock::Clock;
pub use messages::{
    ActionChanged, DecisionRequest, Export, Health, HealthState, HoldRequest, ProposeRequest,
    ReconcileRequest, RecordedDecision, Reply, RevokeRequest,
};
pub use options::{Error, GuardOptions};
pub use store::guard::Spent;
pub use view::{ActionView, Approval, Approvals};

use messages::Request;
use writer::Expected;

/// Proves that its owner speaks for one requester. Made in `assemble` only.
#[derive(Clone, Debug)]
pub struct AgentHandle(Peer);

/// Proves that its owner hands in decisions of people. Made in `assemble` only.
#[derive(Clone, Debug)]
pub struct DelegateHandle(Peer);

impl AgentHandle {
    /// The handle of a part of core: `internal:NAME` in the policy.
    #[must_use]
    pub fn internal(name: &str) -> Self {
        Self(Peer::Internal(name.to_owned()))
    }
}

impl DelegateHandle {
    /// The handle of a part of core: `internal:NAME` in the policy.
    #[must_use]
    pub fn internal(name: &str) -> Self {
        Self(Peer::Internal(name.to_owned()))
    }

    fn decider(&self) -> Decider {
        Decider::Peer(self.0.clone())
    }
}

/// A handle to the guard. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    requests: mpsc::Sender<Request>,
    changes: broadcast::Sender<ActionChanged>,
    expected: Expected,
    facts: Arc<Facts>,
}

/// What does not change while the guard runs.
struct Facts {
    origin: String,
    jwks: String,
    trust: String,
}

/// Why a one-time code was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TotpRefusal {
    /// No secret, a wrong code, or one that was used before.
    #[error("the code is wrong, too old or was used before")]
    Invalid,
    /// The guard does not answer.
    #[error("the guard does not answer: {0}")]
    Unavailable(String),
}

impl Guard {
    /// Opens the guard: policy, database, keys, files for readers, writer thread. Actions that were
    /// spent and have no outcome become `in_doubt` here (guard 7.6).
    ///
    /// # Errors
    /// [`Error`]: what keeps it from starting at all. What only stops changes is told by
    /// [`Guard::health`].
    pub fn open(options: GuardOptions) -> Result<Self, Error> {
        let started = writer::start(options)?;
        Ok(Self {
            requests: started.requests,
            changes: started.changes,
            expected: started.expected,
            facts: Arc::new(Facts {
                origin: started.origin,
                jwks: started.jwks,
                trust: started.trust,
            }),
        })
    }

    /// Proposes an action. It never returns a capability (guard 3.1).
    ///
    /// # Errors
    /// The refusal.
    pub async fn propose(
        &self,
        agent: &AgentHandle,
        request: ProposeRequest,
    ) -> Result<Reply, Problem> {
        let peer = agent.0.clone();
        self.ask(|reply| Request::Propose {
            peer,
            request,
            reply,
        })
        .await
    }

    /// Records an approval; `Ok` only if it is recorded.
    ///
    /// # Errors
    /// The refusal.
    pub async fn approve(
        &self,
        via: &DelegateHandle,
        request: DecisionRequest,
    ) -> Result<Reply, Problem> {
        self.decide(via, Verdict::Approve, request).await
    }

    /// Records a denial; `Ok` only if it is recorded.
    ///
    /// # Errors
    /// The refusal.
    pub async fn deny(
        &self,
        via: &DelegateHandle,
        request: DecisionRequest,
    ) -> Result<Reply, Problem> {
        self.decide(via, Verdict::Deny, request).await
    }

    async fn decide(
        &self,
        via: &DelegateHandle,
        verdict: Verdict,
        request: DecisionRequest,
    ) -> Result<Reply, Problem> {
        let decider = via.decider();
        self.ask(|reply| Request::Decide {
            decider,
            verdict,
            request,
            reply,
        })
        .await
    }

    /// The requester takes its pending action back.
    ///
    /// # Errors
    /// The refusal.
    pub async fn cancel(&self, agent: &AgentHandle, action: &str) -> Result<Reply, Problem> {
        let (peer, action) = (agent.0.clone(), action.to_owned());
        self.ask(|reply| Request::Cancel {
            peer,
            action,
            reply,
        })
        .await
    }

    /// A person takes an approval back.
    ///
    /// # Errors
    /// The refusal.
    pub async fn revoke(
        &self,
        via: &DelegateHandle,
        request: RevokeRequest,
    ) -> Result<Reply, Problem> {
        let decider = via.decider();
        self.ask(|reply| Request::Revoke {
            decider,
            request,
            reply,
        })
        .await
    }

    /// The requester gives an approved action up, because its interlocks no longer hold.
    ///
    /// # Errors
    /// The refusal.
    pub async fn revoke_by_agent(
        &self,
        agent: &AgentHandle,
        action: &str,
        reason: &str,
    ) -> Result<Reply, Problem> {
        let decider = Decider::Peer(agent.0.clone());
        let request = RevokeRequest {
            action_id: action.to_owned(),
            approver: None,
            reason: reason.to_owned(),
        };
        self.ask(|reply| Request::Revoke {
            decider,
            request,
            reply,
        })
        .await
    }

    /// A person says what became of an action in doubt.
    ///
    /// # Errors
    /// The refusal.
    pub async fn reconcile(
        &self,
        via: &DelegateHandle,
        request: ReconcileRequest,
    ) -> Result<Reply, Problem> {
        let decider = via.decider();
        self.ask(|reply| Request::Reconcile {
            decider,
            request,
            reply,
        })
        .await
    }

    /// Stops all actions.
    ///
    /// # Errors
    /// The refusal.
    pub async fn hold_set(
        &self,
        via: &DelegateHandle,
        request: HoldRequest,
    ) -> Result<(), Problem> {
        let decider = via.decider();
        self.ask(|reply| Request::Hold {
            decider,
            set: true,
            request,
            reply,
        })
        .await
    }

    /// Lets actions run again.
    ///
    /// # Errors
    /// The refusal.
    pub async fn hold_release(
        &self,
        via: &DelegateHandle,
        request: HoldRequest,
    ) -> Result<(), Problem> {
        let decider = via.decider();
        self.ask(|reply| Request::Hold {
            decider,
            set: false,
            request,
            reply,
        })
        .await
    }

    /// One action.
    ///
    /// # Errors
    /// The guard does not answer, or its record fails its check.
    pub async fn action(&self, id: &str) -> Result<Option<ActionView>, Problem> {
        let id = id.to_owned();
        self.ask(|reply| Request::Action { id, reply }).await
    }

    /// The newest actions (at most 500), in a state or in any.
    ///
    /// # Errors
    /// As [`Guard::action`].
    pub async fn actions(
        &self,
        state: Option<policies::guard::State>,
    ) -> Result<Vec<ActionView>, Problem> {
        self.ask(|reply| Request::Actions { state, reply }).await
    }

    /// The person of the policy that a subject (`local:NAME`) belongs to.
    ///
    /// # Errors
    /// The guard does not answer.
    pub async fn person_of_subject(&self, subject: &str) -> Result<Option<String>, Problem> {
        let subject = subject.to_owned();
        self.ask(|reply| Request::PersonOf { subject, reply }).await
    }

    /// Checks a one-time code of a subject (`local:NAME`) for a login, and uses its step up.
    ///
    /// # Errors
    /// Why it was not taken.
    pub async fn check_totp(&self, subject: &str, code: &str) -> Result<(), TotpRefusal> {
        let (subject, code) = (subject.to_owned(), code.to_owned());
        match self
            .ask(|reply| Request::CheckTotp {
                subject,
                code,
                reply,
            })
            .await
        {
            Ok(true) => Ok(()),
            Ok(false) => Err(TotpRefusal::Invalid),
            Err(problem) => Err(TotpRefusal::Unavailable(problem.detail)),
        }
    }

    /// Until when no one-time code of a subject is looked at, because too many were wrong.
    ///
    /// # Errors
    /// The guard does not answer.
    pub async fn codes_locked(&self, subject: &str) -> Result<Option<Millis>, Problem> {
        let subject = subject.to_owned();
        self.ask(|reply| Request::CodesLocked { subject, reply })
            .await
    }

    /// Sets the secret of a subject's one-time codes.
    ///
    /// # Errors
    /// The guard does not answer.
    pub async fn enroll_totp(&self, subject: &str, secret: &[u8]) -> Result<(), Problem> {
        let (subject, secret) = (subject.to_owned(), secret.to_vec());
        self.ask(|reply| Request::EnrollTotp {
            subject,
            secret,
            reply,
        })
        .await
    }

    /// Raises the fence of a job. The scheduler kills the worker of the fence before first.
    ///
    /// # Errors
    /// The guard does not answer.
    pub async fn next_fence(&self, job: &str) -> Result<i64, Problem> {
        let job = job.to_owned();
        self.ask(|reply| Request::NextFence { job, reply }).await
    }

    /// Where the next `Spent` of a (job, fence) goes. Registered before the worker gets its
    /// channel; an effect is released by nothing else.
    #[must_use]
    pub fn expect_spend(&self, job: &str, fence: i64) -> oneshot::Receiver<Spent> {
        let (sender, receiver) = oneshot::channel();
        self.expected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((job.to_owned(), fence), sender);
        receiver
    }

    /// Appends a leaf of the rest of core: `kind` a type of the last list of guard 6.1.2, `body` a
    /// JSON object of ids, codes, hashes and whole numbers. Gives its index.
    ///
    /// # Errors
    /// `malformed`, or the state that stops the log.
    pub async fn append(&self, kind: &str, body: &str) -> Result<u64, Problem> {
        let kind = EventType::parse(kind)
            .filter(|kind| files::is_of_core(*kind))
            .ok_or_else(|| Problem::new(Code::Malformed, "no type of the rest of core"))?;
        let body = body.to_owned();
        self.ask(|reply| Request::Append { kind, body, reply })
            .await
    }

    /// A bundle of a range of the log (audit-bundle 2); the export leaves its own leaf.
    ///
    /// # Errors
    /// `malformed` where the range is none of the log.
    pub async fn export(&self, wanted: Export) -> Result<String, Problem> {
        self.ask(|reply| Request::Export { wanted, reply }).await
    }

    /// The leaf of an index and its `.tlog-proof`.
    ///
    /// # Errors
    /// `not_found`.
    pub async fn entry(&self, index: u64) -> Result<(String, String), Problem> {
        self.ask(|reply| Request::Entry { index, reply }).await
    }

    /// What holds, and how large the log is.
    ///
    /// # Errors
    /// The guard does not answer.
    pub async fn health(&self) -> Result<Health, Problem> {
        self.ask(|reply| Request::Health { reply }).await
    }

    /// Reads the policy file again. An invalid one keeps the policy in force.
    ///
    /// # Errors
    /// `malformed` with all problems of the file.
    pub async fn reload_policy(&self) -> Result<(), Problem> {
        self.ask(|reply| Request::ReloadPolicy { reply }).await
    }

    /// The trust file of this log (audit-bundle 4.1).
    #[must_use]
    pub fn trust(&self) -> String {
        self.facts.trust.clone()
    }

    /// The public keys that capabilities are checked with.
    #[must_use]
    pub fn jwks(&self) -> String {
        self.facts.jwks.clone()
    }

    /// Name of the log.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.facts.origin
    }

    /// Every change of an action from now on.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<ActionChanged> {
        self.changes.subscribe()
    }

    /// The routes of one remediate worker's channel.
    #[must_use]
    pub fn channel(&self, job: &str, fence: i64) -> GuardChannel {
        GuardChannel::new(
            self.clone(),
            Channel {
                job: job.to_owned(),
                fence,
            },
        )
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(messages::ReplyTo<T>) -> Request,
    ) -> Result<T, Problem> {
        let gone = || Problem::new(Code::ShuttingDown, "the guard does not run");
        let (sender, receiver) = oneshot::channel();
        self.requests.send(request(sender)).map_err(|_| gone())?;
        receiver.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Who waits for which spend.
type ExpectedMap = std::collections::BTreeMap<(String, i64), oneshot::Sender<Spent>>;

/// The time of a message, for people.
fn shown(at: Millis) -> String {
    at.rfc3339()
}

#[cfg(test)]
mod tests;
