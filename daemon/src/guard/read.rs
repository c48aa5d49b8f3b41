//! Requests that change no action: records, people, codes, fences, exports.

use policies::audit::EventType;
use policies::audit::bundle::{Wanted, write_bundle};
use policies::canon::Value;
use policies::guard::totp::Checked;
use policies::guard::{Code, Leaf, Problem, Who};
use policies::model::Millis;
use store::guard::Error;

use super::messages::{Export, Health, HealthState, Request};
use super::view::ActionView;
use super::writer::Writer;

/// Most actions of one answer.
const MOST: u32 = 500;

fn unreadable(error: &Error) -> Problem {
    tracing::error!(%error, "the guard's records cannot be read");
    Problem::new(Code::AuditBlocked, error.to_string())
}

impl Writer {
    /// Answers a request that is no change. A caller that has gone away is no failure.
    pub(super) fn read(&mut self, request: Request) {
        match request {
            Request::Action { id, reply } => {
                let found = self.db.action(&id).map_err(|e| unreadable(&e));
                let _ = reply.send(found.map(|action| action.as_ref().map(ActionView::of)));
            }
            Request::Actions { state, reply } => {
                let found = self.db.actions(state, MOST).map_err(|e| unreadable(&e));
                let _ = reply.send(found.map(|all| all.iter().map(ActionView::of).collect()));
            }
            Request::PersonOf { subject, reply } => {
                let person = self.desk.policy().person_of_subject(&subject);
                let _ = reply.send(Ok(person.map(|p| p.id.clone())));
            }
            Request::CheckTotp {
                subject,
                code,
                reply,
            } => {
                let _ = reply.send(self.check_totp(&subject, &code));
            }
            Request::CodesLocked { subject, reply } => {
                let _ = reply.send(self.codes_locked(&subject).map_err(|e| unreadable(&e)));
            }
            Request::EnrollTotp {
                subject,
                secret,
                reply,
            } => {
                let done = self.db.enroll_totp(&subject, &secret);
                let _ = reply.send(done.map_err(|e| unreadable(&e)));
            }
            Request::NextFence { job, reply } => {
                let _ = reply.send(self.db.next_fence(&job).map_err(|e| unreadable(&e)));
            }
            Request::Entry { index, reply } => {
                let _ = reply.send(self.entry(index));
            }
            Request::Health { reply } => {
                let _ = reply.send(Ok(self.health()));
            }
            Request::Export { wanted, reply } => {
                let _ = reply.send(self.export(wanted));
            }
            other => other.refuse(&Problem::new(Code::Malformed, "this request is a change")),
        }
    }

    /// A login's code: accepted once, and counted where it is wrong, across logins and approvals
    /// (guard 2.2.2).
    fn check_totp(&mut self, subject: &str, code: &str) -> Result<bool, Problem> {
        let (now, _, _) = self.now();
        let kept = self.db.totp(subject).map_err(|e| unreadable(&e))?;
        match kept.map_or(Checked::Wrong, |kept| kept.check(code, now)) {
            Checked::Step(step) => self.db.use_totp_step(subject, step),
            Checked::Wrong => self.db.code_failed(subject, now).map(|()| false),
            Checked::Locked(_) => return Ok(false),
        }
        .map_err(|e| unreadable(&e))
        .and_then(|held| {
            if !held && self.db.fault().is_none() {
                self.tell_locked(subject)?;
            }
            Ok(held)
        })
    }

    /// A decision leaves a leaf for each wrong code; a login only where it starts a delay.
    fn tell_locked(&mut self, subject: &str) -> Result<(), Problem> {
        let Some(until) = self.codes_locked(subject).map_err(|e| unreadable(&e))? else {
            return Ok(());
        };
        let person = self.desk.policy().person_of_subject(subject);
        let who = person.map_or(Who::Guard, |person| Who::Person {
            id: person.id.clone(),
            assurance: None,
        });
        let leaf = Leaf::new(EventType::AuthLocked, who).data([("until_ms", Value::Int(until.0))]);
        self.own_batch(|batch, _| batch.apply(Vec::new(), vec![leaf]).map(|_| ()))
    }

    fn codes_locked(&mut self, subject: &str) -> Result<Option<Millis>, Error> {
        let (now, _, _) = self.now();
        let kept = self.db.totp(subject)?;
        Ok(kept.and_then(|kept| kept.locked_until(now)))
    }

    fn entry(&self, index: u64) -> Result<(String, String), Problem> {
        if index >= self.db.size() {
            return Err(Problem::new(Code::NotFound, Code::NotFound.title()));
        }
        let read = || Ok((self.db.events(index, index + 1)?, self.db.proof(index)?));
        let (events, proof) = read().map_err(|e| unreadable(&e))?;
        Ok((events.concat(), proof))
    }

    fn health(&self) -> Health {
        let mut states: Vec<HealthState> = self
            .db
            .fault()
            .map(|fault| HealthState {
                state: fault.code.as_str().to_owned(),
                cause: fault.cause.clone(),
            })
            .into_iter()
            .collect();
        if self.is_regressed() {
            states.push(HealthState {
                state: Code::ClockRegressed.as_str().to_owned(),
                cause: "the wall clock is behind the newest leaf".to_owned(),
            });
        }
        if let Some(cause) = self.desk.hold() {
            states.push(HealthState {
                state: Code::OnHold.as_str().to_owned(),
                cause: cause.to_owned(),
            });
        }
        Health {
            ok: states.is_empty(),
            states,
            inc: self.db.inc(),
            epoch: self.db.epoch(),
            size: self.db.size(),
        }
    }

    /// The head is fixed first, so the leaf of an export is not in its own bundle
    /// (audit-bundle 2.6).
    fn export(&mut self, wanted: Export) -> Result<String, Problem> {
        let to = wanted.to.unwrap_or_else(|| self.db.size());
        let range = Wanted {
            from: wanted.from,
            to,
            since: wanted.since,
            epochs_from: None,
        };
        let bad = |e: &dyn std::fmt::Display| Problem::new(Code::Malformed, e.to_string());
        let parts = match self.db.bundle(range, wanted.with_pii) {
            Ok(parts) => parts,
            Err(Error::Event(error)) => return Err(bad(&error)),
            Err(error) => return Err(unreadable(&error)),
        };
        let text = write_bundle(&parts).map_err(|e| bad(&e))?;
        if self.db.fault().is_none() {
            let int = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
            let leaf = Leaf::new(EventType::AuditExported, Who::Guard).data([
                ("from", int(wanted.from)),
                ("to", int(to)),
                ("with_pii", Value::Bool(wanted.with_pii)),
            ]);
            self.own_batch(|batch, _| batch.apply(Vec::new(), vec![leaf]).map(|_| ()))?;
        }
        Ok(text)
    }
}
