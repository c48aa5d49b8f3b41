//! `/approvals`: what waits for a decision? (console 6.5)

use askama::Template;
use axum::extract::State;
use axum::response::Response;

use super::message::Failure;
use crate::console::chrome::Chrome;
use crate::console::document::Document;
use crate::console::view::Action;
use crate::console::{Console, Visit, html};

/// Settled actions on the page.
const SETTLED: usize = 20;

/// One action with its sentence.
#[derive(Debug)]
pub struct Item<'a> {
    /// The record.
    pub action: &'a Action,
    /// The sentence of its canonical bytes.
    pub sentence: String,
}

impl<'a> Item<'a> {
    /// Reads the sentence out of the record.
    #[must_use]
    pub fn new(action: &'a Action) -> Self {
        let sentence = match Document::read(&action.document, &action.digest) {
            Ok(document) => document.sentence(),
            Err(error) => format!("{}: {error}", action.id),
        };
        Self { action, sentence }
    }
}

/// The page.
#[derive(Template)]
#[template(path = "approvals.html")]
pub struct Page<'a> {
    /// Around it.
    pub chrome: &'a Chrome,
    /// What waits.
    pub waiting: Vec<Item<'a>>,
    /// What does not wait any more.
    pub settled: Vec<Item<'a>>,
}

impl<'a> Page<'a> {
    /// The page over all actions.
    #[must_use]
    pub fn new(chrome: &'a Chrome, actions: &'a [Action]) -> Self {
        let (waiting, settled): (Vec<_>, Vec<_>) =
            actions.iter().partition(|action| action.state == "pending");
        Self {
            chrome,
            waiting: waiting.into_iter().map(Item::new).collect(),
            settled: settled.into_iter().take(SETTLED).map(Item::new).collect(),
        }
    }
}

/// Answers the page.
///
/// # Errors
/// [`Failure`] when the records cannot be read.
pub async fn get(State(console): State<Console>, visit: Visit) -> Result<Response, Failure> {
    let actions = console.backend().actions().await?;
    let mut chrome = console.chrome(&visit, "approvals").await;
    chrome.live = Some("inbox".to_owned());
    chrome.twin = "sentinel approval list".to_owned();
    html(&Page::new(&chrome, &actions))
}
