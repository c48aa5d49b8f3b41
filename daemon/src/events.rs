//! The bus of changes that live pages follow (console 5.3, 5.5).
//!
//! An event says which object changed and nothing about it: ids only, never text from outside.
//! A ring keeps the last 4096, so a page that was away for a moment learns what it missed; one
//! that was away for longer is told to read everything again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use policies::model::Millis;
use tokio::sync::broadcast;

/// Events kept.
const RING: usize = 4096;
/// Events that a slow reader may lag behind before it has to read everything again.
const LAG: usize = 512;

/// Something changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Number, rising by one.
    pub seq: u64,
    /// `inbox`, `incident`, `approval`, `action`, `health`, `notice`.
    pub kind: &'static str,
    /// Id of the object.
    pub object: String,
    /// When.
    pub at: Millis,
}

/// A place to read on from.
#[derive(Debug)]
pub struct Subscription {
    /// Events after the wanted place, oldest first; `None` when it is unknown or too old.
    pub missed: Option<Vec<Event>>,
    /// What comes next.
    pub live: broadcast::Receiver<Event>,
}

/// The bus.
#[derive(Clone)]
pub struct Bus {
    shared: Arc<Shared>,
}

struct Shared {
    /// The start of this process: numbers of another one mean nothing here.
    epoch: i64,
    now: Box<dyn Fn() -> Millis + Send + Sync>,
    ring: Mutex<Ring>,
    live: broadcast::Sender<Event>,
}

struct Ring {
    next: u64,
    events: VecDeque<Event>,
}

impl std::fmt::Debug for Bus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bus({})", self.head())
    }
}

impl Bus {
    /// A new bus; its epoch is the time it was made.
    #[must_use]
    pub fn new(now: impl Fn() -> Millis + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::new(Shared {
                epoch: now().0,
                now: Box::new(now),
                ring: Mutex::new(Ring {
                    next: 1,
                    events: VecDeque::with_capacity(RING),
                }),
                live: broadcast::channel(LAG).0,
            }),
        }
    }

    /// Says that an object changed.
    pub fn publish(&self, kind: &'static str, object: String) {
        let at = (self.shared.now)();
        let mut ring = self.ring();
        let event = Event {
            seq: ring.next,
            kind,
            object,
            at,
        };
        ring.next += 1;
        if ring.events.len() == RING {
            ring.events.pop_front();
        }
        ring.events.push_back(event.clone());
        // Sent under the lock, so that no subscriber sees an event twice or misses one. Without
        // any subscriber there is nobody to tell.
        let _ = self.shared.live.send(event);
    }

    /// The id of the newest event, `<epoch>-<seq>`: what a page that is read now has seen.
    #[must_use]
    pub fn head(&self) -> String {
        let next = self.ring().next;
        self.id_of(next - 1)
    }

    /// The id of an event.
    #[must_use]
    pub fn id(&self, event: &Event) -> String {
        self.id_of(event.seq)
    }

    /// Reads on after an id; without one, from now on.
    #[must_use]
    pub fn subscribe_after(&self, after: Option<&str>) -> Subscription {
        let ring = self.ring();
        let live = self.shared.live.subscribe();
        let missed = match after {
            None => Some(Vec::new()),
            Some(id) => self.seq_of(id).and_then(|seq| ring.after(seq)),
        };
        Subscription { missed, live }
    }

    fn id_of(&self, seq: u64) -> String {
        format!("{}-{seq}", self.shared.epoch)
    }

    fn seq_of(&self, id: &str) -> Option<u64> {
        let (epoch, seq) = id.rsplit_once('-')?;
        (epoch.parse() == Ok(self.shared.epoch))
            .then(|| seq.parse().ok())
            .flatten()
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // Nothing panics between the two writes of `publish`.
        self.shared
            .ring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn after(&self, seq: u64) -> Option<Vec<Event>> {
        let oldest = self.events.front().map_or(self.next, |event| event.seq);
        (seq < self.next && seq + 1 >= oldest).then(|| {
            self.events
                .iter()
                .filter(|event| event.seq > seq)
                .cloned()
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus() -> Bus {
        Bus::new(|| Millis(7))
    }

    fn seqs(subscription: &Subscription) -> Option<Vec<u64>> {
        let missed = subscription.missed.as_ref()?;
        Some(missed.iter().map(|event| event.seq).collect())
    }

    #[test]
    fn a_reader_that_was_away_gets_what_it_missed_and_then_what_comes() {
        let bus = bus();
        bus.publish("incident", "inc_a".to_owned());
        let seen = bus.head();
        bus.publish("action", "act_b".to_owned());
        let mut subscription = bus.subscribe_after(Some(&seen));
        assert_eq!(seqs(&subscription), Some(vec![2]));
        bus.publish("inbox", String::new());
        assert_eq!(subscription.live.try_recv().unwrap().seq, 3);
        assert_eq!(seqs(&bus.subscribe_after(Some(&bus.head()))), Some(vec![]));
        assert_eq!(seqs(&bus.subscribe_after(None)), Some(vec![]));
    }

    #[test]
    fn an_id_that_is_unknown_or_too_old_means_reading_everything_again() {
        let bus = bus();
        for _ in 0..=RING {
            bus.publish("inbox", String::new());
        }
        assert_eq!(seqs(&bus.subscribe_after(Some("7-0"))), None);
        assert!(seqs(&bus.subscribe_after(Some("7-1"))).is_some());
        for id in ["", "7", "8-1", "7-99999", "7-x"] {
            assert_eq!(seqs(&bus.subscribe_after(Some(id))), None, "{id}");
        }
    }
}
