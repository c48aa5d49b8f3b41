//! What became of the forms that were posted lately: so that the page after a POST is a GET, and
//! the same form sent twice has one outcome (console 3.9).
//!
//! Kept in memory. What a decision came to is the guard's record; a restart loses only the notice.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::backend::{Problem, Verb};

/// Outcomes kept.
const KEPT: usize = 1_024;

/// What a person typed, given back when the form was refused (console 1.8). Never a code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The target's name.
    pub target: String,
    /// The reason.
    pub reason: String,
}

/// What became of one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// What it asked.
    pub verb: Verb,
    /// Why nothing was recorded; `None` when the guard recorded it.
    pub problem: Option<Problem>,
    /// What to give back.
    pub kept: Kept,
}

/// The latest outcomes.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    latest: Mutex<VecDeque<(String, String, Outcome)>>,
}

impl Outcomes {
    /// Keeps the outcome of a form of a login.
    pub(crate) fn keep(&self, login: String, nonce: String, outcome: Outcome) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.len() == KEPT {
            latest.pop_front();
        }
        latest.push_back((login, nonce, outcome));
    }

    /// The outcome of a form, for the login that sent it.
    #[must_use]
    pub(crate) fn find(&self, login: &str, nonce: &str) -> Option<Outcome> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest
            .iter()
            .find(|(by, of, _)| by == login && of == nonce)
            .map(|(_, _, outcome)| outcome.clone())
    }
}
