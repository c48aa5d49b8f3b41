//! Step 5: each event at its index (audit-bundle 3.5).

use super::epochs::Epoch;
use super::lines::Header;
use super::{Rule, Step};
use crate::audit::{Event, EventType, Hash, hash_text, leaf_hash};
use crate::canon::Value;

/// Judges the events in index order: `event`, `prev`, `clock`, `epoch_range`.
pub(super) fn judge(values: &[Value], header: &Header, epochs: &[Epoch]) -> Step<Vec<Event>> {
    let chain = Chain::new(values, header.from);
    let mut events: Vec<Event> = Vec::with_capacity(values.len());
    for (k, value) in (header.from..).zip(values) {
        let at = Some(k);
        let epoch = epochs.iter().find(|epoch| epoch.owns(k));
        let event = Event::from_value(value)
            .ok()
            .filter(|event| event.seq == k && event.inc == header.inc)
            .filter(|event| ends_its_epoch(event, value, epoch))
            .ok_or(Rule::Event.at(at))?;
        if !chain.holds(k) {
            return Err(Rule::Prev.at(Some(chain.edited(k))));
        }
        if events
            .last()
            .is_some_and(|before| event.t_hwm < before.t_hwm)
        {
            return Err(Rule::Clock.at(at));
        }
        if epoch.is_none_or(|epoch| epoch.number != event.epoch) {
            return Err(Rule::EpochRange.at(at));
        }
        events.push(event);
    }
    Ok(events)
}

/// The last leaf of an epoch, and no other, is the rotation that its line shows.
fn ends_its_epoch(event: &Event, value: &Value, epoch: Option<&Epoch>) -> bool {
    let end = epoch.and_then(|epoch| epoch.end.as_ref());
    match end.filter(|end| end.to == event.seq + 1) {
        Some(end) => event.kind == EventType::KeyRotated && end.rotation == *value,
        None => event.kind != EventType::KeyRotated,
    }
}

/// The `prev` members against the leaf hashes. Raw values: the neighbour that tells which of two
/// leaves was edited may itself be malformed.
struct Chain {
    from: u64,
    /// The `prev` text (`None`: null or no text) and the leaf hash of each event.
    links: Vec<(Option<String>, Hash)>,
}

impl Chain {
    fn new(values: &[Value], from: u64) -> Self {
        let link = |value: &Value| {
            let prev = value.get("prev").and_then(Value::as_text);
            (
                prev.map(str::to_owned),
                leaf_hash(value.to_jcs().as_bytes()),
            )
        };
        Self {
            from,
            links: values.iter().map(link).collect(),
        }
    }

    fn link(&self, k: u64) -> Option<&(Option<String>, Hash)> {
        self.links
            .get(usize::try_from(k.checked_sub(self.from)?).ok()?)
    }

    /// Whether `prev` of `k` is what it should be; true past the end, where nothing mismatches.
    fn holds(&self, k: u64) -> bool {
        let Some((prev, _)) = self.link(k) else {
            return true;
        };
        match k.checked_sub(1).and_then(|before| self.link(before)) {
            Some((_, leaf)) => prev.as_deref() == Some(&hash_text(leaf)),
            None => prev.is_none() == (k == 0),
        }
    }

    /// The leaf that was edited, given that `k` is the lowest mismatch.
    fn edited(&self, k: u64) -> u64 {
        if k == self.from || !self.holds(k + 1) {
            k
        } else {
            k - 1
        }
    }
}
