//! A leaf as the judges write it: who, what, why. The store gives it its place and swaps people
//! and free text for pseudonyms and commitments (guard 6.1.1, 6.6.1).

use super::{Action, Assurance};
use crate::audit::EventType;
use crate::canon::Value;

/// Who acted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The guard itself.
    Guard,
    /// A caller that is no person.
    Caller(String),
    /// A person of the policy.
    Person {
        /// Person id.
        id: String,
        /// Assurance of this act.
        assurance: Option<Assurance>,
    },
}

/// A leaf that has no place yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its type.
    pub kind: EventType,
    /// The action.
    pub aid: Option<String>,
    /// Digest of the action.
    pub dig: Option<String>,
    /// The capability.
    pub jti: Option<String>,
    /// Who.
    pub who: Who,
    /// The delegate between.
    pub via: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// A code.
    pub reason: Option<String>,
    /// The job.
    pub job: Option<String>,
    /// Its fence.
    pub fence: Option<i64>,
    /// Personal data: field and plain value.
    pub pii: Vec<(&'static str, String)>,
    /// More, by type.
    pub data: Value,
    /// Members of `data` that name a person by id; the store puts the pseudonym in.
    pub people: Vec<(&'static str, String)>,
}

impl Leaf {
    /// A leaf with nothing but a type and an actor.
    #[must_use]
    pub fn new(kind: EventType, who: Who) -> Self {
        Self {
            kind,
            aid: None,
            dig: None,
            jti: None,
            who,
            via: None,
            outcome: None,
            reason: None,
            job: None,
            fence: None,
            pii: Vec::new(),
            data: Value::Map(std::collections::BTreeMap::new()),
            people: Vec::new(),
        }
    }

    /// Names the action, and the capability, job and fence where it has them.
    #[must_use]
    pub fn of(mut self, action: &Action) -> Self {
        self.aid = Some(action.id.clone());
        self.dig = Some(action.digest.clone());
        if let Some(issue) = &action.issue {
            self.jti = Some(issue.claims.jti.clone());
            self.job = Some(issue.job.clone());
            self.fence = Some(issue.fence);
        }
        self
    }

    /// Adds data.
    #[must_use]
    pub fn data<const N: usize>(mut self, members: [(&str, Value); N]) -> Self {
        self.data = Value::map(members);
        self
    }

    /// Adds personal data, unless it is empty.
    #[must_use]
    pub fn pii(mut self, field: &'static str, value: &str) -> Self {
        if !value.is_empty() {
            self.pii.push((field, value.to_owned()));
        }
        self
    }

    /// Adds a member of `data` that names a person.
    #[must_use]
    pub fn person(mut self, member: &'static str, id: Option<&str>) -> Self {
        self.people.extend(id.map(|id| (member, id.to_owned())));
        self
    }

    /// Names the delegate.
    #[must_use]
    pub fn via(mut self, via: Option<&str>) -> Self {
        self.via = via.map(str::to_owned);
        self
    }

    /// Names the outcome.
    #[must_use]
    pub fn outcome(mut self, outcome: &str) -> Self {
        self.outcome = Some(outcome.to_owned());
        self
    }

    /// Names a code.
    #[must_use]
    pub fn reason(mut self, code: &str) -> Self {
        self.reason = Some(code.to_owned());
        self
    }
}
