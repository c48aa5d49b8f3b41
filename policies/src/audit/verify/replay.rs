//! Step 10: the state machine of each action, replayed (audit-bundle 3.10, guard 4.1).

use std::collections::{BTreeMap, BTreeSet};

use super::{Rule, Step};
use crate::audit::{Event, EventType, Hash};

/// How far an action has come.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    /// Pending; approved once as many persons as `need` are counted.
    Open {
        persons: BTreeSet<String>,
    },
    Issued {
        jti: String,
    },
    Spent {
        started: bool,
    },
    InDoubt,
    End,
}

struct Action {
    dig: Option<Hash>,
    need: usize,
    stage: Stage,
}

impl Action {
    fn pending(&self) -> bool {
        matches!(&self.stage, Stage::Open { persons } if persons.len() < self.need)
    }

    fn approved(&self) -> bool {
        matches!(&self.stage, Stage::Open { persons } if persons.len() >= self.need)
    }

    fn issued(&self) -> bool {
        matches!(self.stage, Stage::Issued { .. })
    }

    /// The step that an event takes; `None` where the table does not allow it.
    fn step(&mut self, event: &Event) -> Option<()> {
        use EventType as T;
        if event.dig.is_some() && event.dig != self.dig {
            return None;
        }
        match event.kind {
            T::DecisionApproved => self.count(event.actor.as_deref()?),
            T::CapIssued => {
                let jti = event.jti.clone().filter(|_| self.approved())?;
                self.stage = Stage::Issued { jti };
                Some(())
            }
            T::CapRedelivered => self.has_issued(event).then_some(()),
            T::SpendOk => self.go(self.has_issued(event), Stage::Spent { started: false }),
            T::ExecStarted => {
                let fresh = self.stage == Stage::Spent { started: false };
                self.go(fresh, Stage::Spent { started: true })
            }
            T::ExecOutcome if event.outcome.as_deref() == Some("unknown") => {
                self.go(self.spent(), Stage::InDoubt)
            }
            T::ExecOutcome => self.go(self.spent(), Stage::End),
            T::ExecInDoubt => self.go(self.spent(), Stage::InDoubt),
            T::ExecReconciled => self.go(self.stage == Stage::InDoubt, Stage::End),
            T::DecisionDenied | T::ActionCancelled | T::ActionExpired | T::ActionSuperseded => {
                self.go(self.pending(), Stage::End)
            }
            T::DecisionRevoked | T::CapLapsed => {
                self.go(self.approved() || self.issued(), Stage::End)
            }
            T::ActionVoided => {
                let open = matches!(self.stage, Stage::Open { .. });
                self.go(open || self.issued(), Stage::End)
            }
            _ => Some(()),
        }
    }

    fn go(&mut self, allowed: bool, stage: Stage) -> Option<()> {
        if allowed {
            self.stage = stage;
        }
        allowed.then_some(())
    }

    fn count(&mut self, person: &str) -> Option<()> {
        let need = self.need;
        match &mut self.stage {
            Stage::Open { persons } if persons.len() < need => {
                persons.insert(person.to_owned()).then_some(())
            }
            _ => None,
        }
    }

    fn has_issued(&self, event: &Event) -> bool {
        matches!(&self.stage, Stage::Issued { jti } if event.jti.as_ref() == Some(jti))
    }

    fn spent(&self) -> bool {
        matches!(self.stage, Stage::Spent { .. })
    }
}

/// Whether the table of audit-bundle 3.10 has a row for a type that concerns an action.
const fn has_a_row(kind: EventType) -> bool {
    use EventType as T;
    matches!(
        kind,
        T::ActionProposed
            | T::DecisionApproved
            | T::CapIssued
            | T::CapRedelivered
            | T::SpendOk
            | T::ExecStarted
            | T::ExecOutcome
            | T::ExecInDoubt
            | T::ExecReconciled
            | T::DecisionDenied
            | T::ActionCancelled
            | T::ActionExpired
            | T::ActionSuperseded
            | T::DecisionRevoked
            | T::CapLapsed
            | T::ActionVoided
    )
}

const fn is_refusal(kind: EventType) -> bool {
    use EventType as T;
    matches!(
        kind,
        T::ActionRefused | T::DecisionRefused | T::CapRefused | T::SpendRefused | T::ExecRefused
    )
}

/// Replays the events of a range.
pub(super) fn judge(events: &[Event]) -> Step<()> {
    let proposals = events
        .iter()
        .filter(|e| e.kind == EventType::ActionProposed);
    let mut replay = Replay {
        from_start: events.first().is_some_and(|event| event.seq == 0),
        proposed: proposals.filter_map(|e| e.aid.as_deref()).collect(),
        ..Replay::default()
    };
    for event in events {
        replay.take(event).ok_or(Rule::Replay.at(Some(event.seq)))?;
    }
    Ok(())
}

#[derive(Default)]
struct Replay<'a> {
    from_start: bool,
    proposed: BTreeSet<&'a str>,
    actions: BTreeMap<&'a str, Action>,
    spent: BTreeSet<(&'static str, &'a str)>,
    policy: Option<Hash>,
}

impl<'a> Replay<'a> {
    fn take(&mut self, event: &'a Event) -> Option<()> {
        let changed = event.policy != self.policy;
        self.policy = event.policy;
        if event.kind == EventType::PolicyLoaded && changed {
            self.forget_approvals();
        }
        if is_refusal(event.kind) {
            return Some(());
        }
        if event.kind == EventType::SpendOk {
            self.spend_once(event)?;
        }
        let Some(aid) = event.aid.as_deref() else {
            return (!has_a_row(event.kind)).then_some(());
        };
        if event.kind == EventType::ActionProposed {
            return self.propose(aid, event);
        }
        match self.actions.get_mut(aid) {
            Some(action) => action.step(event),
            // An action from before the range is not replayed; without a "before" there is none.
            None => {
                let before = !self.from_start && !self.proposed.contains(aid);
                (before || !has_a_row(event.kind)).then_some(())
            }
        }
    }

    fn propose(&mut self, aid: &'a str, event: &Event) -> Option<()> {
        let action = Action {
            dig: event.dig,
            need: event.need()?,
            stage: Stage::Open {
                persons: BTreeSet::new(),
            },
        };
        self.actions.insert(aid, action).is_none().then_some(())
    }

    /// No second `spend.ok` of a capability or of an action.
    fn spend_once(&mut self, event: &'a Event) -> Option<()> {
        let (jti, aid) = (event.jti.as_deref()?, event.aid.as_deref()?);
        let fresh = self.spent.insert(("jti", jti)) & self.spent.insert(("aid", aid));
        fresh.then_some(())
    }

    fn forget_approvals(&mut self) {
        for action in self.actions.values_mut().filter(|action| action.pending()) {
            action.stage = Stage::Open {
                persons: BTreeSet::new(),
            };
        }
    }
}
