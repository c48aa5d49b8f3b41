//! A proposal that passed every interlock, and one that did not.

use serde::Serialize;

use super::Proposal;
use crate::model::Millis;

/// A proposal that a person may be asked about. Only the interlocks make one; it is never stored,
/// since it is computed again from fresh facts after a restart and before each use.
#[derive(Debug, PartialEq, Eq)]
pub struct Cleared {
    proposal: Proposal,
    at: Millis,
}

impl Cleared {
    pub(crate) const fn new(proposal: Proposal, at: Millis) -> Self {
        Self { proposal, at }
    }

    /// What was cleared.
    #[must_use]
    pub const fn proposal(&self) -> &Proposal {
        &self.proposal
    }

    /// When.
    #[must_use]
    pub const fn at(&self) -> Millis {
        self.at
    }
}

/// Why a proposal goes to a person as a question and not as an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Escalation {
    /// Codes of the interlocks that refused, in table order; empty when nothing was to be done anyway.
    pub codes: Vec<String>,
    /// A sentence for each.
    pub reasons: Vec<String>,
    /// The proposal as it was, shown as blocked.
    pub proposal: Proposal,
}
