//! `/approvals/{id}`: shall exactly this happen? (console 6.5)

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::message::Failure;
use crate::console::backend::{Problem, Verb};
use crate::console::chrome::Chrome;
use crate::console::document::Document;
use crate::console::form::Posted;
use crate::console::notice::{self, Notice};
use crate::console::outcomes::Kept;
use crate::console::view::{Action, Check};
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
        "pending" => action.expires_at.map(|at| ("Waits until", at)),
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
        return Some(format!(
            "{} A decision is not possible any more.",
            words::standing(&action.state)
        ));
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

/// Address of the page.
#[derive(Debug, Deserialize)]
pub struct After {
    done: Option<String>,
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
    let action = console
        .backend()
        .action(&id)
        .await?
        .ok_or(Failure::NotFound)?;
    let document = Document::read(&action.document, &action.digest)
        .map_err(|error| Problem::new("digest_mismatch", error.to_string()))?;
    let person = console.backend().person_of(visit.name()).await?;
    let mut chrome = console.chrome(&visit, "approvals").await;
    chrome.twin = format!("sentinel approval show {}", action.id);
    let outcome = after
        .done
        .and_then(|nonce| console.outcomes().find(&visit.key(), &nonce));
    let decide = match closed(&action, &chrome, person.as_deref()) {
        Some(why) => Decide::Closed { why },
        None => Decide::Offer {
            approve_form: console.form(&visit, &format!("/approvals/{}/approve", action.id))?,
            deny_form: console.form(&visit, &format!("/approvals/{}/deny", action.id))?,
        },
    };
    // A page with forms is exchanged only where its state is shown: what a person is typing stays.
    chrome.live = Some(format!("action:{}", action.id));
    let notice = outcome
        .as_ref()
        .map(|outcome| notice::after_decision(outcome, &action, person.as_deref()));
    html(&Page {
        chrome: &chrome,
        standing: standing(&action),
        notice,
        kept: outcome.map(|outcome| outcome.kept).unwrap_or_default(),
        decide,
        action: &action,
        document: &document,
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
