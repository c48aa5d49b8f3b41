//! `/approvals/{id}`: shall exactly this happen? (console 6.5)

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::message::Failure;
use crate::console::backend::{Decision, Problem, Verb};
use crate::console::chrome::Chrome;
use crate::console::document::Document;
use crate::console::form::Posted;
use crate::console::notice::{self, Notice};
use crate::console::outcomes::{Kept, Outcome};
use crate::console::view::Action;
use crate::console::{Console, Visit, clock, html, see_other, words};
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
    decide(&console, &visit, &id, &form, Verb::Approve).await
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
    decide(&console, &visit, &id, &form, Verb::Deny).await
}

async fn decide(
    console: &Console,
    visit: &Visit,
    id: &str,
    form: &Posted,
    verb: Verb,
) -> Result<Response, Failure> {
    let nonce = form.nonce();
    // The same form again, by a second tap or a reload: what was recorded is the answer.
    if console.outcomes().find(&visit.key(), nonce).is_none() {
        let action = console
            .backend()
            .action(id)
            .await?
            .ok_or(Failure::NotFound)?;
        let problem = judge(console, visit, &action, form, verb).await.err();
        let kept = match problem {
            Some(_) => Kept {
                target: form.text("target").to_owned(),
                reason: form.text("reason").to_owned(),
            },
            None => Kept::default(),
        };
        console.outcomes().keep(
            visit.key(),
            nonce.to_owned(),
            Outcome {
                verb,
                problem,
                kept,
            },
        );
    }
    see_other(&format!("/approvals/{id}?done={nonce}"))
}

async fn judge(
    console: &Console,
    visit: &Visit,
    action: &Action,
    form: &Posted,
    verb: Verb,
) -> Result<(), Problem> {
    let document = Document::read(&action.document, &action.digest)
        .map_err(|error| Problem::new("digest_mismatch", error.to_string()))?;
    if verb == Verb::Approve && form.text("target").trim() != document.target_name {
        return Err(Problem::new(
            "target_mismatch",
            "The name that was typed is not the name of the target.",
        ));
    }
    let reason = form.text("reason").trim();
    if verb == Verb::Deny && reason.is_empty() {
        return Err(Problem::new("reason_missing", "A denial needs a reason."));
    }
    let decision = Decision {
        verb,
        action: action.id.clone(),
        digest: form.text("digest").to_owned(),
        nonce: form.text("decision_nonce").to_owned(),
        person: visit.name().to_owned(),
        reason: reason.to_owned(),
        totp: (verb == Verb::Approve).then(|| form.text("totp").trim().to_owned()),
    };
    console.backend().decide(decision).await
}
