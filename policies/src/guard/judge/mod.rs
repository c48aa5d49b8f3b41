//! The judgements of the guard: one function for each request, all of one shape.
//!
//! The order in which refusals are looked for is guard 3.7's. A refusal is a value: it changes no
//! action and leaves one leaf.

mod collect;
mod decide;
mod effect;
mod propose;
mod spend;
mod upkeep;

use super::{Action, Code, Leaf, Policy, Problem, Who};
use crate::audit::EventType;
use crate::canon::{Value, b64url};
use crate::model::Millis;

pub use collect::{Approved, Channel, Collect, IssueGrant, collect};
pub use decide::{Decide, Decider, Evidence, Withdraw, cancel, decide, revoke};
pub use effect::{Outcome, Reconcile, outcome, reconcile, started};
pub use propose::{Propose, ProposeFacts, propose};
pub use spend::{SpendAnswer, SpendGrant, SpendRequest, spend};
pub use upkeep::{Hold, due, hold_release, hold_set, policy_changed, restarted};

/// Longest reason in bytes (guard 3.1).
pub const MAX_REASON: usize = 500;

/// Longest intent in bytes (guard 3.1).
pub const MAX_INTENT: usize = 2_000;

/// What every judgement stands on.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The policy in force.
    pub policy: &'a Policy,
    /// The guard's time.
    pub now: Millis,
    /// Leaves in the log so far.
    pub size: u64,
    /// Epoch of the keys.
    pub epoch: i64,
    /// Incarnation of the log.
    pub inc: i64,
    /// A health state that stops approvals, issues and spends.
    pub blocked: Option<Code>,
    /// A hold is set.
    pub on_hold: bool,
}

impl Context<'_> {
    /// The 503 states that bear on a step towards an effect. Those that stop the log itself are
    /// the shell's: it cannot even write the leaf of a refusal then.
    fn stopped(&self) -> Option<Problem> {
        let hold = self.on_hold.then_some(Code::OnHold);
        let code = self.blocked.or(hold)?;
        Some(Problem::new(code, code.title()))
    }
}

/// 128 random bits that the shell drew.
#[derive(Clone, Copy, Debug)]
pub struct Drawn(pub [u8; 16]);

impl Drawn {
    fn text(self) -> String {
        b64url(&self.0)
    }
}

/// What a judgement asks the store to do, and what the caller is told once it is done.
#[derive(Debug)]
pub struct Judged<A> {
    /// The answer.
    pub answer: Result<A, Problem>,
    /// Next versions of actions, each one revision on.
    pub actions: Vec<Action>,
    /// Leaves in order.
    pub leaves: Vec<Leaf>,
    /// A one-time code was looked at and held: its step is used up.
    pub code_used: bool,
}

impl<A> Judged<A> {
    fn done(answer: A, actions: Vec<Action>, leaves: Vec<Leaf>) -> Self {
        Self {
            answer: Ok(answer),
            actions,
            leaves,
            code_used: false,
        }
    }

    /// The recorded answer again: nothing changes and no leaf is written.
    fn recorded(answer: A) -> Self {
        Self::done(answer, Vec::new(), Vec::new())
    }
}

/// Where a request came from, for the leaf of its refusal.
struct Origin<'a> {
    kind: EventType,
    route: &'static str,
    who: Who,
    via: Option<&'a str>,
}

impl Origin<'_> {
    fn refuse<A>(self, action: Option<&Action>, problem: Problem) -> Judged<A> {
        let rule = problem.rule.map(i64::from);
        let mut leaf = Leaf::new(self.kind, self.who)
            .via(self.via)
            .reason(problem.code.as_str())
            .data([
                ("code", Value::from(problem.code.as_str())),
                ("route", Value::from(self.route)),
                ("rule", Value::int_or_null(rule)),
            ]);
        if let Some(action) = action {
            leaf = leaf.of(action);
        }
        Judged {
            answer: Err(problem),
            actions: Vec::new(),
            leaves: vec![leaf],
            code_used: false,
        }
    }
}

/// The leaf of a refusal that came before any judgement: a body that does not parse, an action
/// that is not there.
#[must_use]
pub fn refused<A>(kind: EventType, route: &'static str, who: Who, problem: Problem) -> Judged<A> {
    Origin {
        kind,
        route,
        who,
        via: None,
    }
    .refuse(None, problem)
}

/// The next version of an action.
fn step(action: &Action, change: impl FnOnce(&mut Action)) -> Action {
    let mut next = action.clone();
    change(&mut next);
    next.revision = action.revision.saturating_add(1);
    next
}

/// `wrong_state` or `expired`, with what is recorded.
fn state_problem(action: &Action) -> Problem {
    use super::State::{Expired, Lapsed};
    let code = if matches!(action.state, Expired | Lapsed) {
        Code::Expired
    } else {
        Code::WrongState
    };
    Problem::new(code, format!("the action is {}", action.state))
        .at(action.state)
        .recorded(action.recorded_outcome())
}
