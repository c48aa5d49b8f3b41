//! The real side of the console's seam: the store and the guard.

use std::sync::Arc;

use policies::machine::Record;
use policies::model::{IncidentId, Millis};
use store::sentinel::Db;

use super::adapt::{self, ActionStates};
use super::backend::{Backend, Decision, Postmortem, Problem, Reply, Verb};
use super::document::Document;
use super::reach::Reach;
use super::view::{Action, ActionContext, BarFacts, DryRun, GuardState, Inbox, Incident};
use crate::guard::{
    ActionView, DecisionRequest, DelegateHandle, Guard, ReconcileRequest, RevokeRequest,
    TotpRefusal,
};
use crate::identity::{self, FactorFuture, SecondFactor};

/// The console's way to the records.
pub struct Records {
    db: Arc<Db>,
    guard: Guard,
    via: DelegateHandle,
    reach: Reach,
    model: Box<dyn Fn() -> String + Send + Sync>,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Records")
    }
}

impl Records {
    /// Over a store and a guard; `via` is the identity `internal:console`, `reach` knows what an
    /// action would touch, `model` says in words how the model is.
    pub fn new(
        db: Arc<Db>,
        guard: Guard,
        via: DelegateHandle,
        reach: Reach,
        model: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Self {
            db,
            guard,
            via,
            reach,
            model: Box::new(model),
        }
    }

    async fn states(&self) -> Result<ActionStates, Problem> {
        let actions = self.guard.actions(None).await?;
        Ok(actions
            .into_iter()
            .map(|action| (action.id, action.state))
            .collect())
    }

    fn record(&self, id: &IncidentId) -> Result<Option<Record>, Problem> {
        let Some(state) = self.db.state(id)? else {
            return Ok(None);
        };
        parsed("incident", &state).map(Some)
    }

    fn incident_of(
        &self,
        id: &IncidentId,
        actions: &ActionStates,
    ) -> Result<Option<Incident>, Problem> {
        let Some(stored) = self.db.incident(id)? else {
            return Ok(None);
        };
        let evidence = self.db.evidence(id)?;
        let parts = adapt::Parts {
            alerts: stored.alerts,
            record: self.record(id)?,
            evidence: evidence
                .iter()
                .map(|(_, body)| parsed("evidence", body))
                .collect::<Result<_, _>>()?,
            postmortem: self.db.postmortem(id)?.is_some(),
        };
        Ok(Some(adapt::incident(adapt::row(stored, actions), parts)))
    }

    /// What core knows about an action beside the guard's record: from the investigation that its
    /// own document names.
    fn context(&self, view: &ActionView) -> Result<ActionContext, Problem> {
        let Ok(document) = Document::read(&view.document, &view.digest) else {
            return Ok(ActionContext::default());
        };
        let around = self.reach.around(&document);
        let id = document.incident.and_then(|id| id.parse().ok());
        let record = match id {
            Some(id) => self.record(&id)?,
            None => None,
        };
        Ok(match record {
            Some(record) => adapt::context(&record, around),
            None => around,
        })
    }

    fn shown(&self, view: ActionView) -> Result<Action, Problem> {
        let context = self.context(&view)?;
        Ok(adapt::action(view, context))
    }
}

impl Backend for Records {
    fn bar(&self) -> Reply<'_, BarFacts> {
        Box::pin(async {
            let pending = self
                .guard
                .actions(Some(policies::guard::State::Pending))
                .await?;
            let health = self.guard.health().await?;
            let newest = self.db.incident_list(1, None)?;
            Ok(BarFacts {
                waiting: pending.len(),
                last_incident: newest.first().map(|row| row.opened_at),
                model: (self.model)(),
                guard: health
                    .states
                    .into_iter()
                    .map(|state| GuardState {
                        state: state.state,
                        cause: state.cause,
                    })
                    .collect(),
            })
        })
    }

    fn inbox<'a>(&'a self, before: Option<&'a str>, limit: usize) -> Reply<'a, Inbox> {
        Box::pin(async move {
            let before = before.and_then(|text| text.parse().ok()).map(Millis);
            let actions = self.states().await?;
            let stored = self.db.incident_list(limit + 1, before)?;
            let more = stored.len() > limit;
            let mut rows: Vec<_> = stored
                .into_iter()
                .take(limit)
                .map(|row| adapt::row(row, &actions))
                .collect();
            let next = rows
                .last()
                .filter(|_| more)
                .map(|row| row.opened_at.0.to_string());
            // Stable, so the newest comes first within its rank.
            rows.sort_by_key(adapt::rank);
            Ok(Inbox { rows, next })
        })
    }

    fn incident<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Incident>> {
        Box::pin(async move {
            let Ok(id) = id.parse::<IncidentId>() else {
                return Ok(None);
            };
            let actions = self.states().await?;
            self.incident_of(&id, &actions)
        })
    }

    fn postmortem<'a>(&'a self, id: &'a str, form: Postmortem) -> Reply<'a, Option<String>> {
        Box::pin(async move {
            let Ok(id) = id.parse::<IncidentId>() else {
                return Ok(None);
            };
            let stored = self.db.postmortem(&id)?;
            Ok(stored.map(|stored| match form {
                Postmortem::Markdown => stored.markdown,
                Postmortem::Json => stored.json,
            }))
        })
    }

    fn actions(&self) -> Reply<'_, Vec<Action>> {
        Box::pin(async {
            let views = self.guard.actions(None).await?;
            Ok(views
                .into_iter()
                .map(|view| adapt::action(view, ActionContext::default()))
                .collect())
        })
    }

    fn action<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Action>> {
        Box::pin(async move {
            let view = self.guard.action(id).await?;
            view.map(|view| self.shown(view)).transpose()
        })
    }

    fn dry_run<'a>(&'a self, document: &'a Document) -> Reply<'a, DryRun> {
        Box::pin(async move { Ok(self.reach.dry_run(document).await) })
    }

    fn decide(&self, decision: Decision) -> Reply<'_, ()> {
        Box::pin(async move {
            let verb = decision.verb;
            match verb {
                Verb::Approve => self.guard.approve(&self.via, request(decision)).await?,
                Verb::Deny => self.guard.deny(&self.via, request(decision)).await?,
                Verb::Revoke => self.guard.revoke(&self.via, revocation(decision)).await?,
                Verb::Happened | Verb::DidNotHappen => {
                    let finding = finding(decision, verb == Verb::Happened);
                    self.guard.reconcile(&self.via, finding).await?
                }
            };
            Ok(())
        })
    }

    fn person_of<'a>(&'a self, account: &'a str) -> Reply<'a, Option<String>> {
        Box::pin(async move { Ok(self.guard.person_of_subject(&subject(account)).await?) })
    }
}

/// The guard keeps and checks the second factor (guard 2.2.2).
impl SecondFactor for Guard {
    fn enroll<'a>(&'a self, name: &'a str, secret: [u8; 20]) -> FactorFuture<'a, ()> {
        Box::pin(async move {
            self.enroll_totp(&subject(name), &secret)
                .await
                .map_err(|problem| identity::Error::Factor(problem.detail))
        })
    }

    fn locked<'a>(&'a self, name: &'a str) -> FactorFuture<'a, Option<Millis>> {
        Box::pin(async move {
            self.codes_locked(&subject(name))
                .await
                .map_err(|problem| identity::Error::Factor(problem.detail))
        })
    }

    fn check<'a>(&'a self, name: &'a str, code: &'a str) -> FactorFuture<'a, bool> {
        Box::pin(async move {
            match self.check_totp(&subject(name), code).await {
                Ok(()) => Ok(true),
                Err(TotpRefusal::Invalid) => Ok(false),
                Err(TotpRefusal::Unavailable(why)) => Err(identity::Error::Factor(why)),
            }
        })
    }
}

fn request(decision: Decision) -> DecisionRequest {
    DecisionRequest {
        action_id: decision.action,
        digest: decision.digest,
        decision_nonce: decision.nonce,
        approver: subject(&decision.person),
        reason: decision.reason,
        totp: decision.totp,
    }
}

fn revocation(decision: Decision) -> RevokeRequest {
    RevokeRequest {
        action_id: decision.action,
        approver: Some(subject(&decision.person)),
        reason: decision.reason,
    }
}

fn finding(decision: Decision, succeeded: bool) -> ReconcileRequest {
    ReconcileRequest {
        action_id: decision.action,
        succeeded,
        approver: subject(&decision.person),
        reason: decision.reason,
        evidence_sha256: None,
        totp: decision.totp,
    }
}

/// The subject of a local account in the policy.
fn subject(account: &str) -> String {
    format!("local:{account}")
}

fn parsed<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T, Problem> {
    serde_json::from_str(text)
        .map_err(|error| Problem::new("record_unreadable", format!("a stored {what}: {error}")))
}

impl From<policies::guard::Problem> for Problem {
    fn from(problem: policies::guard::Problem) -> Self {
        Self::new(problem.code.as_str(), problem.detail)
    }
}

impl From<store::sentinel::Error> for Problem {
    fn from(error: store::sentinel::Error) -> Self {
        Self::new("store_unavailable", error.to_string())
    }
}
