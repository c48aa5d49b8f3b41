//! From a posted form to a decision at the guard, and back to a page that shows what is recorded.

use axum::response::Response;
use serde::Deserialize;

use super::backend::{Decision, Problem, Verb};
use super::chrome::Chrome;
use super::document::Document;
use super::form::Posted;
use super::outcomes::{Kept, Outcome};
use super::pages::message::Failure;
use super::view::Action;
use super::{Console, Visit, see_other};

/// Address of an action's pages: which form led there.
#[derive(Debug, Deserialize)]
pub struct After {
    done: Option<String>,
}

/// What both pages of an action are made of.
pub(crate) struct Opened {
    /// Around the page.
    pub chrome: Chrome,
    /// The record.
    pub action: Action,
    /// Its canonical bytes, read.
    pub document: Document,
    /// What became of the form that led here.
    pub outcome: Option<Outcome>,
}

/// Reads an action for one of its pages, whose CLI twin is `twin` and the id.
pub(crate) async fn open(
    console: &Console,
    visit: &Visit,
    id: &str,
    after: After,
    twin: &str,
) -> Result<Opened, Failure> {
    let (action, document) = read(console, id).await?;
    let mut chrome = console.chrome(visit, "approvals").await;
    chrome.live = Some(format!("action:{}", action.id));
    chrome.twin = format!("{twin} {}", action.id);
    let outcome = after
        .done
        .and_then(|nonce| console.outcomes().find(&visit.key(), &nonce));
    Ok(Opened {
        chrome,
        action,
        document,
        outcome,
    })
}

/// An action and its canonical bytes, which must belong together.
async fn read(console: &Console, id: &str) -> Result<(Action, Document), Failure> {
    let action = console.backend().action(id).await?;
    let action = action.ok_or(Failure::NotFound)?;
    let document = Document::read(&action.document, &action.digest)
        .map_err(|error| Problem::new("digest_mismatch", error.to_string()))?;
    Ok((action, document))
}

/// Hands the form on, keeps what became of it, and leads to the page that says so.
pub(crate) async fn decide(
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
        let problem = hand_on(console, visit, &action, form, verb).await.err();
        let kept = match problem {
            Some(_) => Kept {
                target: form.text("target").to_owned(),
                reason: form.text("reason").to_owned(),
            },
            None => Kept::default(),
        };
        let outcome = Outcome {
            verb,
            problem,
            kept,
        };
        console
            .outcomes()
            .keep(visit.key(), nonce.to_owned(), outcome);
    }
    let page = match verb {
        Verb::Approve | Verb::Deny => "approvals",
        Verb::Revoke | Verb::Happened | Verb::DidNotHappen => "actions",
    };
    see_other(&format!("/{page}/{id}?done={nonce}"))
}

async fn hand_on(
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
    if verb != Verb::Approve && reason.is_empty() {
        return Err(Problem::new("reason_missing", "This needs a reason."));
    }
    let decision = Decision {
        verb,
        action: action.id.clone(),
        digest: form.text("digest").to_owned(),
        nonce: form.text("decision_nonce").to_owned(),
        person: visit.name().to_owned(),
        reason: reason.to_owned(),
        totp: Some(form.text("totp").trim().to_owned()).filter(|code| !code.is_empty()),
    };
    console.backend().decide(decision).await
}
