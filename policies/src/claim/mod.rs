//! The types that carry a claim forward (design.md 1).
//!
//! Each stage has one constructor and the constructors live in this crate. `RawOutput` becomes
//! [`Evidence`] only through `admit`, [`Evidence`] reaches a model only inside a [`Prompt`], and
//! what a model says comes back only as a [`Draft`].

mod cleared;
mod draft;
mod evidence;
mod prompt;
mod proposal;
mod raw;
mod rca;
pub(crate) mod support;

pub use cleared::{Cleared, Escalation};
pub use draft::{Draft, DraftSchema};
pub use evidence::{AdmitStats, Evidence, EvidenceMeta, LineOf, Provenance, StoredEvidence};
pub use prompt::{Boundary, OwnText, Part, Prompt, PromptBuilder, Role, Trust};
pub use proposal::{Proposal, ProposalDocument};
pub use raw::{RawOutput, RedactKey};
pub use rca::Rca;

pub use crate::injection::Sight;

pub(crate) use evidence::{LineRole, Parts};
pub(crate) use proposal::ProposalParts;

/// Something that was not let through. A value, not an error: `?` must not swallow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Stable code, for example `out.schema` or `evidence.malformed`.
    pub code: &'static str,
    /// Reason for people; never contains the refused text.
    pub reason: String,
}

impl Refused {
    pub(crate) fn new(code: &'static str, reason: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
        }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}
