//! After the commit: what a request is answered with, and who gets the `Spent`.

use std::sync::PoisonError;

use policies::guard::{Action, Code, Decision, Problem, SpendGrant};
use store::guard::{Committed, EpochKeys, Error, GuardDb, Spent};

use super::messages::{RecordedDecision, Reply, ReplyTo, SpendReceipt};
use super::view;
use super::writer::Expected;

/// How a batch ended.
pub(super) enum Sealed<'a> {
    /// Committed, copied, signed.
    Done {
        db: &'a GuardDb,
        keys: &'a EpochKeys,
        committed: &'a mut Committed,
    },
    /// Nothing may be told but this.
    Failed(Problem),
}

/// What is left to do for one request once the batch has ended.
pub(super) type Finish = Box<dyn FnOnce(Sealed<'_>)>;

/// What a committed batch gives to its answers.
pub(super) struct After<'a> {
    db: &'a GuardDb,
    pub(super) keys: &'a EpochKeys,
    committed: &'a mut Committed,
}

/// Makes an answer after the commit.
pub(super) type Telling<T> = Box<dyn FnOnce(&mut After<'_>) -> Result<T, Problem>>;

impl After<'_> {
    pub(super) fn proof(&self, index: u64) -> Result<String, Problem> {
        self.db.proof(index).map_err(|e| unreadable(&e))
    }

    /// Hands the `Spent` to whoever waits for it, before the executor hears of it.
    pub(super) fn release(
        &mut self,
        grant: SpendGrant,
        expected: &Expected,
    ) -> Result<SpendReceipt, Problem> {
        let lost = || Problem::new(Code::AuditBlocked, "the spend has no receipt");
        let receipt = self.committed.receipt(grant.jti()).ok_or_else(lost)?;
        let told = SpendReceipt {
            jti: grant.jti().to_owned(),
            effect_deadline: grant.effect_deadline(),
            event: receipt.event().to_owned(),
            index: receipt.index(),
            proof: self.proof(receipt.index())?,
        };
        let spent = Spent::new(grant, receipt).ok_or_else(lost)?;
        let waiting = expected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&(spent.job().to_owned(), spent.fence()));
        // Where nobody waits nothing is released; the deadline makes it `in_doubt`.
        if waiting.is_none_or(|sender| sender.send(spent).is_err()) {
            tracing::warn!(jti = %told.jti, "a capability was spent that nobody waits for");
        }
        Ok(told)
    }

    pub(super) fn receipt_again(&self, action: &Action) -> Result<SpendReceipt, Problem> {
        let lost = || Problem::new(Code::WrongState, "there is no receipt");
        let spend = action.spend.as_ref().ok_or_else(lost)?;
        let issue = action.issue.as_ref().ok_or_else(lost)?;
        let events = self
            .db
            .events(spend.index, spend.index.saturating_add(1))
            .map_err(|e| unreadable(&e))?;
        Ok(SpendReceipt {
            jti: issue.claims.jti.clone(),
            effect_deadline: spend.effect_deadline,
            event: events.into_iter().next().ok_or_else(lost)?,
            index: spend.index,
            proof: self.proof(spend.index)?,
        })
    }
}

fn unreadable(error: &Error) -> Problem {
    Problem::new(Code::AuditBlocked, error.to_string())
}

pub(super) fn send<T>(reply: ReplyTo<T>, sealed: Sealed<'_>, telling: Telling<T>) {
    let answer = match sealed {
        Sealed::Failed(problem) => Err(problem),
        Sealed::Done {
            db,
            keys,
            committed,
        } => telling(&mut After {
            db,
            keys,
            committed,
        }),
    };
    // A caller that has gone away reads the record later.
    let _ = reply.send(answer);
}

/// The answer of most routes: what is recorded, with the proof of its leaf.
pub(super) fn told(
    action: Action,
    index: Option<u64>,
    decision: Option<Decision>,
) -> Telling<Reply> {
    Box::new(move |after: &mut After<'_>| {
        let index = index.unwrap_or(action.index);
        Ok(Reply {
            proof: after.proof(index)?,
            audit_index: index,
            id: action.id.clone(),
            state: action.state,
            digest: action.digest.clone(),
            approvals: view::approvals(&action),
            expires_at: action.expires_at.rfc3339(),
            decision: decision.map(|d| RecordedDecision {
                outcome: d.verdict.as_str().to_owned(),
                person: d.person,
                assurance: d.assurance.as_str().to_owned(),
                via: d.via,
            }),
        })
    })
}
