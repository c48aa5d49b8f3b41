//! One entry by its proof (audit-bundle 5).

use super::lines::origin_is_of;
use super::{Known, Rule, Step, Verdict};
use crate::audit::note::Checkpoint;
use crate::audit::{EntryProof, Event, Hash, Note, PinnedEpoch, TrustFile, VKey, inclusion_root};

/// Verifies an entry.
pub(super) fn verify(proof: &[u8], event: &[u8], trust: &TrustFile) -> Step<Verdict> {
    let known = Known::new(trust, std::iter::empty());
    let (proof, head, note) = read(proof, &known).ok_or(Rule::Proof.at(None))?;
    let at = Some(proof.index);
    let event = read_event(event, &proof, &head.origin).ok_or(Rule::Event.at(at))?;
    let root: Option<Hash> = inclusion_root(event.leaf, proof.index, head.size, &proof.path);
    if root != Some(head.root) {
        return Err(Rule::Proof.at(at));
    }
    let untrusted = |rule| Ok(Verdict::over(head.size, head.root, Some(rule)));
    if !trust.origins.contains(&head.origin) {
        return untrusted(Rule::OriginUnknown);
    }
    let mut owners = trust
        .epochs
        .iter()
        .filter(|pin| pin.origin == head.origin && owns(pin, proof.index))
        .peekable();
    if owners.peek().is_none() {
        return untrusted(Rule::EpochUnreached);
    }
    let Some(owner) = owners.find(|pin| has_signed(pin, &note)) else {
        return untrusted(Rule::KeyUntrusted);
    };
    let in_range = head.size > owner.from && owner.to.is_none_or(|to| head.size <= to);
    if owner.epoch != event.epoch || !in_range {
        return Err(Rule::EpochRange.at(at));
    }
    Ok(Verdict::over(head.size, head.root, None))
}

/// The proof and its head, if the form and the note are good.
fn read(proof: &[u8], known: &Known) -> Option<(EntryProof, Checkpoint, Note)> {
    let proof = EntryProof::parse(std::str::from_utf8(proof).ok()?).ok()?;
    let (head, note) = Checkpoint::parse(&proof.checkpoint).ok()?;
    known.judge(&note)?;
    Some((proof, head, note))
}

/// The event of the proof's index and of the incarnation that the origin names.
fn read_event(event: &[u8], proof: &EntryProof, origin: &str) -> Option<Event> {
    let text = std::str::from_utf8(event).ok()?;
    let event = Event::parse(text.strip_suffix('\n').unwrap_or(text)).ok()?;
    (event.seq == proof.index && origin_is_of(origin, event.inc)).then_some(event)
}

fn owns(pin: &PinnedEpoch, index: u64) -> bool {
    pin.from <= index && pin.to.is_none_or(|to| index < to)
}

fn has_signed(pin: &PinnedEpoch, note: &Note) -> bool {
    let key = VKey::parse(&pin.vkey).filter(|key| key.name() == pin.origin);
    key.is_some_and(|key| note.signers(&[&key]).is_ok_and(|signed| signed == [true]))
}
