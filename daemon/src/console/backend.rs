//! What the console asks of the rest of core: records to show, decisions to hand on.
//!
//! A seam, so that every page can be rendered from plain data; `console::records` is the real side.
//! The console never mints, executes or alters anything: what is not in this trait it cannot do.

use std::future::Future;
use std::pin::Pin;

use super::document::Document;
use super::view::{Action, BarFacts, DryRun, Inbox, Incident};

/// A future of the seam.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send + 'a>>;

/// Why something was refused or could not be had. A refusal of the guard keeps the guard's code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {detail}")]
pub struct Problem {
    /// Stable code.
    pub code: String,
    /// What happened.
    pub detail: String,
}

impl Problem {
    /// A problem.
    #[must_use]
    pub fn new(code: &str, detail: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            detail: detail.into(),
        }
    }
}

/// What a person decides about an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Yes, exactly this.
    Approve,
    /// No, for good.
    Deny,
    /// Take the approval back before it is used.
    Revoke,
    /// It was in doubt, and it happened.
    Happened,
    /// It was in doubt, and it did not happen.
    DidNotHappen,
}

impl Verb {
    /// What a person did.
    #[must_use]
    pub const fn past(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Deny => "denied",
            Self::Revoke => "revoked",
            Self::Happened => "found that it happened",
            Self::DidNotHappen => "found that it did not happen",
        }
    }
}

/// A decision as a person sent it.
#[derive(Clone, PartialEq, Eq)]
pub struct Decision {
    /// Which way.
    pub verb: Verb,
    /// Id of the action.
    pub action: String,
    /// Digest that the page showed.
    pub digest: String,
    /// Nonce of the action.
    pub nonce: String,
    /// Account name of the person.
    pub person: String,
    /// Why.
    pub reason: String,
    /// Code of the authenticator, where the form asks one.
    pub totp: Option<String>,
}

impl std::fmt::Debug for Decision {
    /// Without the code.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Decision({:?} {} by {})",
            self.verb, self.action, self.person
        )
    }
}

/// The form of a postmortem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Postmortem {
    /// Markdown.
    Markdown,
    /// JSON.
    Json,
}

/// The seam.
pub trait Backend: Send + Sync {
    /// What the bar of every page says.
    fn bar(&self) -> Reply<'_, BarFacts>;
    /// Incidents, most urgent first, `limit` of them, after a cursor.
    fn inbox<'a>(&'a self, before: Option<&'a str>, limit: usize) -> Reply<'a, Inbox>;
    /// One incident.
    fn incident<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Incident>>;
    /// The stored postmortem of an incident.
    fn postmortem<'a>(&'a self, id: &'a str, form: Postmortem) -> Reply<'a, Option<String>>;
    /// Actions, newest first.
    fn actions(&self) -> Reply<'_, Vec<Action>>;
    /// One action.
    fn action<'a>(&'a self, id: &'a str) -> Reply<'a, Option<Action>>;
    /// What performing a document would do now. Changes nothing.
    fn dry_run<'a>(&'a self, document: &'a Document) -> Reply<'a, DryRun>;
    /// Hands a decision to the guard. `Ok` only if it is recorded.
    fn decide(&self, decision: Decision) -> Reply<'_, ()>;
    /// The policy's name for the person of a local account, if the policy knows one.
    fn person_of<'a>(&'a self, account: &'a str) -> Reply<'a, Option<String>>;
}
