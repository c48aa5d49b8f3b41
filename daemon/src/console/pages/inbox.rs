//! `/incidents`: what needs me now? (console 6.3)

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::message::Failure;
use crate::console::chrome::Chrome;
use crate::console::view::Inbox;
use crate::console::{Console, Visit, html};

/// Rows of one page.
const ROWS: usize = 50;

/// The page.
#[derive(Template)]
#[template(path = "inbox.html")]
pub struct Page<'a> {
    /// Around it.
    pub chrome: &'a Chrome,
    /// Its data.
    pub inbox: &'a Inbox,
}

impl Page<'_> {
    /// The answer of the screen in one line.
    fn answer(&self) -> String {
        let open = self.inbox.rows.iter().filter(|r| r.closed_at.is_none());
        match (self.chrome.bar.waiting, open.count()) {
            (0, 0) => "Nothing needs you now.".to_owned(),
            (0, open) => format!("{open} open, nothing waits for your decision."),
            (waiting, open) => format!("{waiting} waiting for a decision, {open} open."),
        }
    }
}

/// Cursor of the address.
#[derive(Debug, Deserialize)]
pub struct Cursor {
    before: Option<String>,
}

/// Answers the page.
///
/// # Errors
/// [`Failure`] when the records cannot be read.
pub async fn get(
    State(console): State<Console>,
    visit: Visit,
    Query(cursor): Query<Cursor>,
) -> Result<Response, Failure> {
    let inbox = console
        .backend()
        .inbox(cursor.before.as_deref(), ROWS)
        .await?;
    let mut chrome = console.chrome(&visit, "incidents").await;
    chrome.live = Some("inbox".to_owned());
    chrome.twin = "sentinel incident list".to_owned();
    html(&Page {
        chrome: &chrome,
        inbox: &inbox,
    })
}
