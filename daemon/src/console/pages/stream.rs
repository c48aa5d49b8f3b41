//! `/events`: what changes while a page is open (console 5.3 to 5.7).

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::message::Failure;
use crate::console::{Console, Visit};
use crate::events::Event;

/// Time between two signs of life.
const BEAT: Duration = Duration::from_secs(2);
/// Streams of one login.
const PER_LOGIN: usize = 8;
/// Streams of all.
const ALL: usize = 128;
/// Events that wait for a slow reader; beyond that the stream ends and is opened anew.
const WAITING: usize = 64;
/// Topics of one stream.
const TOPICS: usize = 16;

/// The open streams, counted by login.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    open: Arc<Mutex<BTreeMap<[u8; 32], usize>>>,
}

/// The right to one open stream.
#[derive(Debug)]
struct Seat {
    streams: Streams,
    login: [u8; 32],
}

impl Streams {
    fn sit(&self, login: [u8; 32]) -> Option<Seat> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.values().sum::<usize>() >= ALL {
            return None;
        }
        let own = open.entry(login).or_insert(0);
        if *own >= PER_LOGIN {
            return None;
        }
        *own += 1;
        Some(Seat {
            streams: self.clone(),
            login,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self
            .streams
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.login) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.login);
            }
        }
    }
}

/// Address of the stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Address {
    topics: String,
    after: String,
}

/// What a stream is about.
#[derive(Clone, Debug)]
pub struct Topics(Vec<String>);

impl Topics {
    /// Reads a list with commas.
    #[must_use]
    pub fn read(text: &str) -> Self {
        Self(text.split(',').take(TOPICS).map(str::to_owned).collect())
    }

    /// True when the event belongs to one of the topics.
    #[must_use]
    pub fn wants(&self, kind: &str, object: &str) -> bool {
        self.0.iter().any(|topic| match topic.split_once(':') {
            Some(("incident", id)) => kind == "incident" && id == object,
            Some(("action", id)) => matches!(kind, "action" | "approval") && id == object,
            Some(_) => false,
            None if topic == "inbox" => {
                matches!(kind, "inbox" | "incident" | "action" | "approval")
            }
            None => topic == "health" && matches!(kind, "health" | "notice"),
        })
    }
}

/// Opens a stream.
///
/// # Errors
/// [`Failure`] without a login, or when too many are open.
pub async fn get(
    State(console): State<Console>,
    visit: Visit,
    Query(address): Query<Address>,
) -> Result<Response, Failure> {
    let session = visit.session().ok_or(Failure::Unauthenticated)?;
    let seat = console.streams().sit(session.id);
    let seat = seat.ok_or(Failure::TooManyStreams)?;
    let (to_reader, events) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        // An error means that the reader is gone.
        let _ = follow(&console, &seat, &address, &to_reader).await;
    });
    Ok(Sse::new(ReceiverStream::new(events)).into_response())
}

type ToReader = mpsc::Sender<Result<sse::Event, Infallible>>;

/// The reader is gone.
struct Gone;

async fn follow(
    console: &Console,
    seat: &Seat,
    address: &Address,
    to_reader: &ToReader,
) -> Result<(), Gone> {
    let topics = Topics::read(&address.topics);
    let after = Some(address.after.as_str()).filter(|after| !after.is_empty());
    let mut subscription = console.bus().subscribe_after(after);
    match subscription.missed.take() {
        None => send(to_reader, own(console, "resync")).await?,
        Some(missed) => {
            for event in missed {
                forward(console, &topics, &event, to_reader).await?;
            }
        }
    }
    let mut beat = tokio::time::interval(BEAT);
    loop {
        tokio::select! {
            event = subscription.live.recv() => match event {
                Ok(event) => forward(console, &topics, &event, to_reader).await?,
                Err(RecvError::Lagged(_)) => send(to_reader, own(console, "resync")).await?,
                Err(RecvError::Closed) => return send(to_reader, own(console, "bye")).await,
            },
            _ = beat.tick() => {
                match console.identity().holds(&seat.login, console.now()) {
                    Ok(true) => send(to_reader, own(console, "hb")).await?,
                    Ok(false) | Err(_) => return send(to_reader, own(console, "bye")).await,
                }
            }
        }
    }
}

async fn forward(
    console: &Console,
    topics: &Topics,
    event: &Event,
    to_reader: &ToReader,
) -> Result<(), Gone> {
    if !topics.wants(event.kind, &event.object) {
        return Ok(());
    }
    let id = console.bus().id(event);
    let data = json!({
        "id": id, "kind": event.kind, "object": event.object, "version": event.seq,
        "at": event.at.rfc3339(),
    });
    let event = sse::Event::default()
        .id(id)
        .event(event.kind)
        .data(data.to_string());
    send(to_reader, event).await
}

/// An event of the stream itself.
fn own(console: &Console, kind: &'static str) -> sse::Event {
    let id = console.bus().head();
    let data = json!({
        "id": id, "kind": kind, "object": "", "version": 0, "at": console.now().rfc3339(),
    });
    sse::Event::default().event(kind).data(data.to_string())
}

async fn send(to_reader: &ToReader, event: sse::Event) -> Result<(), Gone> {
    to_reader.send(Ok(event)).await.map_err(|_| Gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_gets_what_its_topics_name() {
        let topics = Topics::read("incident:inc_a,action:act_b");
        assert!(topics.wants("incident", "inc_a"));
        assert!(topics.wants("approval", "act_b"));
        assert!(!topics.wants("incident", "inc_c"));
        assert!(!topics.wants("health", ""));
        assert!(Topics::read("inbox").wants("incident", "inc_c"));
        assert!(!Topics::read("").wants("inbox", ""));
    }

    #[test]
    fn a_login_has_eight_streams_and_gets_a_seat_back_when_one_ends() {
        let streams = Streams::default();
        let mut seats: Vec<_> = (0..PER_LOGIN)
            .map(|_| streams.sit([1; 32]).unwrap())
            .collect();
        assert!(streams.sit([1; 32]).is_none());
        assert!(streams.sit([2; 32]).is_some());
        seats.pop();
        assert!(streams.sit([1; 32]).is_some());
    }
}
