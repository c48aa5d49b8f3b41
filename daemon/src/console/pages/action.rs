//! `/actions/{id}`: did it happen, and did it help? (console 6.6)

use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::Response;

use super::approval::standing;
use super::message::Failure;
use crate::console::backend::Verb;
use crate::console::chrome::Chrome;
use crate::console::deciding::{After, Opened};
use crate::console::document::Document;
use crate::console::form::Posted;
use crate::console::notice::{self, Notice};
use crate::console::view::Action;
use crate::console::{Console, Visit, clock, deciding, html};
use crate::identity::Role;

/// One step of the way of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    /// CSS class.
    pub tone: &'static str,
    /// Name of the icon.
    pub icon: &'static str,
    /// When, or that it has not come.
    pub when: String,
    /// More.
    pub text: String,
}

/// The page.
#[derive(Template)]
#[template(path = "action.html")]
pub struct Page<'a> {
    /// Around it.
    pub chrome: &'a Chrome,
    /// The record.
    pub action: &'a Action,
    /// Its canonical bytes, read.
    pub document: &'a Document,
    /// One sentence on where it stands.
    pub standing: String,
    /// The steps.
    pub steps: Vec<Step>,
    /// What became of the form that led here.
    pub notice: Option<Notice>,
    /// The form that fits the state.
    pub offer: Offer,
    /// The reason that the person had typed.
    pub reason: String,
}

impl<'a> Page<'a> {
    /// The page of one action.
    #[must_use]
    pub fn new(chrome: &'a Chrome, action: &'a Action, document: &'a Document) -> Self {
        Self {
            chrome,
            action,
            document,
            standing: standing(action),
            steps: steps(action),
            notice: None,
            offer: Offer::Nothing,
            reason: String::new(),
        }
    }
}

/// The way of an action, as far as its record goes.
#[must_use]
pub fn steps(action: &Action) -> Vec<Step> {
    let mut steps = vec![
        done(
            "Proposed",
            clock::absolute(&action.created_at),
            format!("by {}", action.requester),
        ),
        decided(action),
        step(
            "Issued",
            action.jti.is_some(),
            "the executor collected its permission",
        ),
        step("Spent", was_spent(action), "the permission is used up"),
        match &action.started {
            Some(at) => done("Started", clock::absolute(at), String::new()),
            None => open("Started"),
        },
    ];
    steps.push(ended(action));
    if action.context.recovery.is_some() {
        steps.push(probed(action.context.recovered));
    }
    steps
}

fn was_spent(action: &Action) -> bool {
    matches!(
        action.state.as_str(),
        "spent"
            | "succeeded"
            | "failed"
            | "in_doubt"
            | "reconciled_succeeded"
            | "reconciled_failed"
    )
}

fn decided(action: &Action) -> Step {
    let people: Vec<_> = action
        .decisions
        .iter()
        .map(|d| match d.via.as_str() {
            "" => d.person.clone(),
            via => format!("{} ({}, via {via})", d.person, d.assurance),
        })
        .collect();
    let people = people.join(", ");
    let at = action.decisions.iter().filter_map(|d| d.at).next_back();
    let when = at.as_ref().map(clock::absolute).unwrap_or_default();
    match action.state.as_str() {
        "pending" => Step {
            name: "Approved",
            tone: "warn",
            icon: "person",
            when: format!("{} of {} so far", action.have, action.need),
            text: people,
        },
        "denied" => bad("Denied", when, people),
        "expired" | "cancelled" | "superseded" => open("Approved"),
        _ => done("Approved", when, people),
    }
}

fn ended(action: &Action) -> Step {
    let text = action.outcome.clone();
    let text = text
        .filter(|outcome| *outcome != action.state)
        .unwrap_or_default();
    match action.state.as_str() {
        "succeeded" | "reconciled_succeeded" => done("Outcome: succeeded", String::new(), text),
        "failed" | "reconciled_failed" => bad("Outcome: failed", String::new(), text),
        "in_doubt" => Step {
            tone: "warn",
            icon: "warn",
            ..bad("Outcome: in doubt", String::new(), text)
        },
        _ => open("Outcome"),
    }
}

/// What was measured is said at the head of the page; the step says how it came out.
fn probed(recovered: Option<bool>) -> Step {
    let text = String::new();
    match recovered {
        Some(true) => done("Probe: recovered", String::new(), text),
        Some(false) => bad("Probe: not fixed", String::new(), text),
        None => Step {
            tone: "warn",
            icon: "warn",
            ..bad("Probe: not measured", String::new(), text)
        },
    }
}

fn step(name: &'static str, reached: bool, text: &str) -> Step {
    if reached {
        done(name, String::new(), text.to_owned())
    } else {
        open(name)
    }
}

fn done(name: &'static str, when: String, text: String) -> Step {
    Step {
        name,
        tone: "ok",
        icon: "ok",
        when,
        text,
    }
}

fn bad(name: &'static str, when: String, text: String) -> Step {
    Step {
        name,
        tone: "bad",
        icon: "stop",
        when,
        text,
    }
}

fn open(name: &'static str) -> Step {
    Step {
        name,
        tone: "idle",
        icon: "ring",
        when: "not reached".to_owned(),
        text: String::new(),
    }
}

/// The form that a person gets below the action, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// None.
    #[default]
    Nothing,
    /// Take the approval back.
    Revoke {
        /// Form token.
        form: String,
    },
    /// Say what happened.
    Reconcile {
        /// Form token.
        form: String,
    },
}

/// Which form fits the state, for a person who may decide. The guard judges again.
fn offer(console: &Console, visit: &Visit, action: &Action) -> Result<Offer, Failure> {
    let may = visit
        .session()
        .is_some_and(|session| session.roles.contains(&Role::Approver));
    let id = &action.id;
    Ok(match action.state.as_str() {
        "approved" | "issued" if may => Offer::Revoke {
            form: console.form(visit, &format!("/approvals/{id}/revoke"))?,
        },
        "in_doubt" if may => Offer::Reconcile {
            form: console.form(visit, &format!("/actions/{id}/reconcile"))?,
        },
        _ => Offer::Nothing,
    })
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
    let opened = deciding::open(&console, &visit, &id, after, "sentinel action show").await?;
    let Opened {
        chrome,
        action,
        document,
        outcome,
    } = opened;
    let notice = outcome
        .as_ref()
        .map(|outcome| notice::after_decision(outcome, &action, None));
    html(&Page {
        notice,
        offer: offer(&console, &visit, &action)?,
        reason: outcome
            .map(|outcome| outcome.kept.reason)
            .unwrap_or_default(),
        ..Page::new(&chrome, &action, &document)
    })
}

/// Takes what a person found out about an action in doubt.
///
/// # Errors
/// [`Failure`] when the form says neither, or there is no such action.
pub async fn reconcile(
    State(console): State<Console>,
    visit: Visit,
    Path(id): Path<String>,
    form: Posted,
) -> Result<Response, Failure> {
    let verb = match form.text("found") {
        "happened" => Verb::Happened,
        "did_not_happen" => Verb::DidNotHappen,
        _ => return Err(Failure::BadForm),
    };
    deciding::decide(&console, &visit, &id, &form, verb).await
}
