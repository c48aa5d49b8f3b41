//! `/incidents/{id}`: what is broken, why, and what do you suggest? (console 6.4)

use askama::Template;
use axum::extract::{Path, State};
use axum::response::Response;

use super::message::Failure;
use crate::console::backend::Postmortem;
use crate::console::chrome::Chrome;
use crate::console::view::{Cite, EvidenceItem, Incident, Suggestion};
use crate::console::{Console, Visit, download, html};
use crate::identity::Role;

/// Lines of one piece of evidence on the page (console 7.3).
const LINES: usize = 2_000;

/// The page.
#[derive(Template)]
#[template(path = "incident.html")]
pub struct Page<'a> {
    /// Around it.
    pub chrome: &'a Chrome,
    /// Its data.
    pub incident: &'a Incident,
}

impl<'a> Page<'a> {
    fn refused(&self) -> bool {
        matches!(self.incident.suggestion, Suggestion::Escalate { .. })
    }

    /// Where the reader goes from here: to the decision, or to the action.
    fn next_step(&self) -> Option<(String, &'static str)> {
        let Suggestion::Act {
            action: Some(action),
            ..
        } = &self.incident.suggestion
        else {
            return None;
        };
        Some(if action.state == "pending" {
            let label = if self.chrome.is(Role::Approver) {
                "Review and decide"
            } else {
                "See what waits for approval"
            };
            (format!("/approvals/{}", action.id), label)
        } else {
            let over = self.incident.row.closed_at.is_some();
            let label = if over {
                "See the action"
            } else {
                "Follow the action"
            };
            (format!("/actions/{}", action.id), label)
        })
    }

    /// True when something on the page cites this evidence: it is shown unfolded then.
    fn cited(&self, id: &u32) -> bool {
        let incident = self.incident;
        let lists = incident
            .facts
            .iter()
            .map(|fact| &fact.cites)
            .chain(incident.verdict.iter().map(|verdict| &verdict.cites))
            .chain(
                incident
                    .hypotheses
                    .iter()
                    .filter(|h| h.chosen)
                    .map(|h| &h.supporting),
            );
        lists.flatten().any(|cite: &Cite| cite.evidence == *id)
    }

    /// The numbered lines that are shown.
    fn lines(&self, item: &'a EvidenceItem) -> impl Iterator<Item = (usize, &'a String)> + use<'a> {
        (1..).zip(&item.lines).take(LINES)
    }

    /// How many lines are not shown.
    fn left_out(&self, item: &EvidenceItem) -> Option<usize> {
        item.lines.len().checked_sub(LINES).filter(|left| *left > 0)
    }
}

/// Answers the page.
///
/// # Errors
/// [`Failure`] when there is no such incident or the records cannot be read.
pub async fn get(
    State(console): State<Console>,
    visit: Visit,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let incident = console.backend().incident(&id).await?;
    let incident = incident.ok_or(Failure::NotFound)?;
    let mut chrome = console.chrome(&visit, "incidents").await;
    let id = &incident.row.id;
    chrome.live = Some(match &incident.row.action {
        Some(action) => format!("incident:{id},action:{}", action.id),
        None => format!("incident:{id}"),
    });
    chrome.twin = format!("sentinel incident show {id}");
    html(&Page {
        chrome: &chrome,
        incident: &incident,
    })
}

/// Answers the postmortem as Markdown.
///
/// # Errors
/// [`Failure`] when there is none.
pub async fn markdown(
    State(console): State<Console>,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let text = console.backend().postmortem(&id, Postmortem::Markdown);
    let text = text.await?.ok_or(Failure::NotFound)?;
    download(
        &format!("{id}-postmortem.md"),
        "text/plain; charset=utf-8",
        text,
    )
}

/// Answers the postmortem as JSON.
///
/// # Errors
/// [`Failure`] when there is none.
pub async fn json(
    State(console): State<Console>,
    Path(id): Path<String>,
) -> Result<Response, Failure> {
    let text = console.backend().postmortem(&id, Postmortem::Json);
    let text = text.await?.ok_or(Failure::NotFound)?;
    download(&format!("{id}-postmortem.json"), "application/json", text)
}
