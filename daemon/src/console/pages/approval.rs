//! `/approvals/{id}`: shall exactly this happen? (console 6.5)

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;

use super::message::Failure;
use crate::console::backend::Verb;
use crate::console::chrome::Chrome;
use crate::console::deciding::{After, Opened};
use crate::console::document::Document;
use crate::console::form::Posted;
use crate::console::notice::{self, Notice};
use crate::console::outcomes::Kept;
use crate::console::view::{Action, Check, DryRun};
use crate::console::{Console, Visit, clock, deciding, html, words};
use crate::identity::Role;

/// Whether this person gets the two forms.
#[derive(Debug, PartialEq, Eq)]
pub enum Decide {
    /// Yes, with their form tokens.
    Offer {
        /// Of the first form.
        approve_form: String,
        /// Of the second form.
        deny_form: String,
    },
    /// No.
    Closed {
        /// Why.
        why: String,
    },
}

/// The page.
#[derive(Template)]
#[template(path = "approval.html")]
pub struct Page<'a> {
    /// Around it.
    pub chrome: &'a Chrome,
    /// The record.
    pub action: &'a Action,
    /// Its canonical bytes, read.
    pub document: &'a Document,
    /// One sentence on where it stands.
    pub standing: String,
    /// What became of the form that led here.
    pub notice: Option<Notice>,
    /// What the person had typed.
    pub kept: Kept,
    /// Forms, or the reason for none.
    pub decide: Decide,
    /// What the executor says, as long as the action may still be performed.
    pub dry_run: Option<DryRun>,
}

impl Page<'_> {
    fn refusing(&self) -> Vec<&Check> {
        self.checks(false)
    }

    fn passing(&self) -> Vec<&Check> {
        self.checks(true)
    }

    fn checks(&self, passed: bool) -> Vec<&Check> {
        let checks = self.action.context.checks.iter();
        checks.filter(|check| check.passed == passed).collect()
    }

    fn incident_path(&self) -> String {
        self.document
            .incident
            .as_ref()
            .map_or_else(String::new, |id| format!("/incidents/{id}"))
    }
}

/// Where an action stands, with the time until which that holds.
#[must_use]
pub fn standing(action: &Action) -> String {
    let open = match action.state.as_str() {
        "pending" => action
            .expires_at
            .map(|at| ("It waits for a decision until", at)),
        "approved" | "issued" => action.approval_expires_at.map(|at| ("Usable until", at)),
        _ => None,
    };
    let words = words::standing(&action.state);
    match open {
        Some((until, at)) => format!("{words} {until} {}.", clock::absolute(&at)),
        None => words.to_owned(),
    }
}

/// Why this person gets no form, if so. The guard judges again; this only spares the reader a
/// form that cannot succeed.
#[must_use]
pub fn closed(action: &Action, chrome: &Chrome, person: Option<&str>) -> Option<String> {
    if action.state != "pending" {
        return Some("It does not wait for a decision any more.".to_owned());
    }
    if !chrome.is(Role::Approver) {
        return Some(
            "Deciding needs the role approver, which your account does not hold.".to_owned(),
        );
    }
    let Some(person) = person else {
        return Some("The guard's policy names no person with your account.".to_owned());
    };
    if action.initiator.as_deref() == Some(person) || action.requester == person {
        return Some("You asked for this action, so somebody else has to decide.".to_owned());
    }
    if action.decisions.iter().any(|d| d.person == person) {
        return Some("Your decision is recorded. It needs another person.".to_owned());
    }
    None
}

/// Answers the page.
///
/// # Errors
/// [`Failure`] when there is no such action or its record is broken.
pub async fn get(
    State(console): State<Console>,
    visit: Visit,
    Path(id): Path<String>,
    Query(after): Query<After>,
) -> Result<Response, Failure> {
    let opened = deciding::open(&console, &visit, &id, after, "sentinel approval show").await?;
    let Opened {
        chrome,
        action,
        document,
        outcome,
    } = opened;
    let person = console.backend().person_of(visit.name()).await?;
    let dry_run = match action.state.as_str() {
        "pending" | "approved" | "issued" => Some(dry_run(&console, &document).await),
        _ => None,
    };
    let decide = match closed(&action, &chrome, person.as_deref()) {
        Some(why) => Decide::Closed { why },
        None => Decide::Offer {
            approve_form: console.form(&visit, &format!("/approvals/{}/approve", action.id))?,
            deny_form: console.form(&visit, &format!("/approvals/{}/deny", action.id))?,
        },
    };
    let notice = outcome
        .as_ref()
        .map(|outcome| notice::after_decision(outcome, &action, person.as_deref()));
    html(&Page {
        chrome: &chrome,
        standing: standing(&action),
        notice,
        kept: outcome.map(|outcome| outcome.kept).unwrap_or_default(),
        decide,
        dry_run,
        action: &action,
        document: &document,
    })
}

/// A dry run that cannot be had is shown as one that failed: it takes nothing else off the page.
async fn dry_run(console: &Console, document: &Document) -> DryRun {
    let seen = console.backend().dry_run(document).await;
    seen.unwrap_or_else(|problem| DryRun::Failed {
        code: problem.code,
        detail: problem.detail,
    })
}

/// Takes an approval.
///
/// # Errors
/// [`Failure`] when there is no such action.
pub async fn approve(
    State(console): State<Console>,
    visit: Visit,
    Path(id): Path<String>,
    form: Posted,
) -> Result<Response, Failure> {
    deciding::decide(&console, &visit, &id, &form, Verb::Approve).await
}

/// Takes a denial.
///
/// # Errors
/// [`Failure`] when there is no such action.
pub async fn deny(
    State(console): State<Console>,
    visit: Visit,
    Path(id): Path<String>,
    form: Posted,
) -> Result<Response, Failure> {
    deciding::decide(&console, &visit, &id, &form, Verb::Deny).await
}

/// Takes an approval back.
///
/// # Errors
/// [`Failure`] when there is no such action.
pub async fn revoke(
    State(console): State<Console>,
    visit: Visit,
    Path(id): Path<String>,
    form: Posted,
) -> Result<Response, Failure> {
    deciding::decide(&console, &visit, &id, &form, Verb::Revoke).await
}
