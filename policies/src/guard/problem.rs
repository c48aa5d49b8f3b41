//! The refusals of the guard: codes, HTTP status and what a refused caller is told (guard 3.2, 3.3).

use std::fmt;

use serde::Serialize;

use super::State;

macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident = $text:literal, $status:literal, $title:literal;)+) => {
        /// Why the guard refused. The words are stable: they stand in leaves and on every wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $($(#[$meta])* $variant,)+ }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// The HTTP status that goes with it.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// A short title for people.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }
        }
    };
}

codes! {
    /// The structure of the request is wrong.
    Malformed = "malformed", 400, "The request is not well formed";
    /// No identity of the policy has this peer.
    Unauthenticated = "unauthenticated", 401, "The caller is not known";
    /// The role of the caller does not include this route.
    RoleForbidden = "role_forbidden", 403, "The role of the caller does not allow this";
    /// The policy does not permit it.
    NotPermitted = "not_permitted", 403, "The policy does not permit this";
    /// The requester or initiator of an action decides nothing about it.
    SelfDecision = "self_decision", 403, "Nobody decides about an action of their own";
    /// The evidence is weaker than the policy asks.
    AssuranceTooLow = "assurance_too_low", 403, "The evidence is weaker than the policy asks";
    /// The evidence does not hold.
    EvidenceInvalid = "evidence_invalid", 403, "The evidence does not hold";
    /// The capability failed a rule of 5.3.
    CapabilityInvalid = "capability_invalid", 403, "The capability is not valid";
    /// Not the holder of the capability.
    HolderMismatch = "holder_mismatch", 403, "Another holder was issued this capability";
    /// The parameters are not those that were approved.
    ParamsMismatch = "params_mismatch", 403, "The parameters are not those that were approved";
    /// Nothing of this name is visible to the caller.
    NotFound = "not_found", 404, "Nothing of this name is here";
    /// The digest or nonce is not that of the action.
    DigestMismatch = "digest_mismatch", 409, "The digest is not that of the action";
    /// The state of the action does not allow it.
    WrongState = "wrong_state", 409, "The state of the action does not allow this";
    /// The person has decided otherwise.
    AlreadyDecided = "already_decided", 409, "This person has already decided";
    /// The capability went to another holder.
    AlreadyIssued = "already_issued", 409, "The capability was already issued";
    /// The capability is used up.
    AlreadySpent = "already_spent", 409, "The capability was already spent";
    /// A newer lease of the job exists.
    StaleFence = "stale_fence", 409, "A newer lease of the job exists";
    /// The same action was denied a short time ago.
    Cooldown = "cooldown", 409, "The same action was denied a short time ago";
    /// An earlier action on the target has an unknown outcome.
    InDoubtOpen = "in_doubt_open", 409, "An earlier action on this target has an unknown outcome";
    /// Too late.
    Expired = "expired", 410, "The deadline has passed";
    /// Larger than the limit.
    TooLarge = "too_large", 413, "The request is too large";
    /// The parameters do not have the types of the policy.
    ParamsInvalid = "params_invalid", 422, "The parameters do not have the types of the policy";
    /// Too many requests of this caller.
    Quota = "quota", 429, "The quota of the caller is used up";
    /// A hold is set.
    OnHold = "on_hold", 503, "All actions are on hold";
    /// The clock runs behind the log.
    ClockRegressed = "clock_regressed", 503, "The clock runs behind the log";
    /// The database is older than an anchor.
    RolledBack = "rolled_back", 503, "The database is older than its anchor";
    /// The second copy of the log cannot be written.
    AuditBlocked = "audit_blocked", 503, "The second copy of the log cannot be written";
    /// The signing key cannot be read.
    KeyUnavailable = "key_unavailable", 503, "The signing key cannot be read";
    /// The guard is stopping.
    ShuttingDown = "shutting_down", 503, "The guard is stopping";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A refusal. It is a value and not an error of the program: it says what is *recorded*,
/// never what was asked for (guard 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Why.
    pub code: Code,
    /// One sentence for people, without secrets.
    pub detail: String,
    /// State of the action, when there is one that the caller may see.
    pub state: Option<State>,
    /// Outcome that is on record: `approve`, `deny`, `succeeded`...
    pub recorded_outcome: Option<String>,
    /// Number of the rule of guard 5.3 that failed.
    pub rule: Option<u8>,
    /// When to try again.
    pub retry_after_s: Option<u64>,
    /// Index of the leaf of this refusal; `None` where no own leaf was written.
    pub audit_index: Option<u64>,
}

impl Problem {
    /// A refusal with a code and a sentence.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            state: None,
            recorded_outcome: None,
            rule: None,
            retry_after_s: None,
            audit_index: None,
        }
    }

    /// Adds the recorded state of the action.
    #[must_use]
    pub fn at(mut self, state: State) -> Self {
        self.state = Some(state);
        self
    }

    /// Adds the recorded outcome.
    #[must_use]
    pub fn recorded(mut self, outcome: Option<String>) -> Self {
        self.recorded_outcome = outcome;
        self
    }

    /// Adds the number of the rule of guard 5.3.
    #[must_use]
    pub fn rule(mut self, rule: u8) -> Self {
        self.rule = Some(rule);
        self
    }

    /// The body of `application/problem+json` (guard 3.2); `origin` is that of the log.
    #[must_use]
    pub fn to_json(&self, origin: &str) -> serde_json::Value {
        let instance = self
            .audit_index
            .map(|index| format!("urn:sentinel:audit:{origin}:{index}"));
        serde_json::json!({
            "type": format!("urn:sentinel:problem:{}", self.code),
            "title": self.code.title(),
            "status": self.code.status(),
            "detail": self.detail,
            "instance": instance,
            "code": self.code.as_str(),
            "state": self.state,
            "recorded_outcome": self.recorded_outcome,
            "rule": self.rule,
            "retry_after_s": self.retry_after_s,
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::{Code, Problem};
    use crate::guard::State;

    /// guard 3.2
    #[test]
    fn a_problem_tells_the_recorded_state_and_names_its_leaf() {
        let mut problem = Problem::new(Code::WrongState, "the action was denied")
            .at(State::Denied)
            .recorded(Some("deny".to_owned()));
        problem.audit_index = Some(7);
        let json = problem.to_json("plant-7.example/sentinel/1");
        assert_eq!(json["type"], "urn:sentinel:problem:wrong_state");
        assert_eq!(json["status"], 409);
        assert_eq!(json["state"], "denied");
        assert_eq!(json["recorded_outcome"], "deny");
        assert_eq!(
            json["instance"],
            "urn:sentinel:audit:plant-7.example/sentinel/1:7"
        );
        assert_eq!(json["rule"], serde_json::Value::Null);
    }

    /// guard 3.3
    #[test]
    fn every_refusal_code_has_a_status_of_a_refusal_and_a_word_of_its_own() {
        for (n, code) in Code::ALL.iter().enumerate() {
            assert!((400..=503).contains(&code.status()));
            let same = Code::ALL
                .iter()
                .filter(|c| c.as_str() == code.as_str())
                .count();
            assert_eq!(same, 1, "code number {n} shares its word");
        }
    }
}
