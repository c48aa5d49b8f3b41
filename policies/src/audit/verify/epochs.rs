//! Steps 3 and 4: the root certificate and the epoch lines (audit-bundle 3.3, 3.4).

use std::collections::BTreeSet;

use super::lines::{Header, Lines, as_hashes, as_index};
use super::{Known, Rule, Step};
use crate::audit::event::is_spki;
use crate::audit::{
    Checkpoint, Event, EventType, Hash, Note, TrustFile, VKey, certificate_text, inclusion_root,
    verifying_key,
};
use crate::canon::{Value, unb64url};

/// An epoch whose line, closing head and rotation hold.
pub(super) struct Epoch {
    pub(super) number: u64,
    pub(super) from: u64,
    pub(super) vkey: VKey,
    pub(super) end: Option<End>,
}

/// How an epoch ended.
pub(super) struct End {
    pub(super) to: u64,
    pub(super) rotation: Value,
    proof: Vec<Hash>,
    note: String,
    /// The closing root, known after `closing`.
    pub(super) root: Hash,
}

impl Epoch {
    /// One past the last index; `None` while it is open.
    pub(super) fn to(&self) -> Option<u64> {
        self.end.as_ref().map(|end| end.to)
    }

    /// Whether an index lies in it.
    pub(super) fn owns(&self, index: u64) -> bool {
        self.from <= index && self.to().is_none_or(|to| index < to)
    }
}

/// `root_note`: how many distinct roots of the trust file signed the certificate.
pub(super) fn root_note(lines: &Lines, trust: &TrustFile) -> Step<u64> {
    let Some(value) = &lines.root else {
        return Ok(0);
    };
    let count = || {
        let note = Note::parse(value.as_text()?).ok()?;
        let first = lines.epochs.first()?;
        if note.text() != expected_certificate(&lines.header, first)? {
            return None;
        }
        let roots: Vec<_> = trust.roots.iter().collect();
        let signed = note.signers(&roots).ok()?;
        let good = roots.iter().zip(signed).filter(|(_, signed)| *signed);
        let distinct: BTreeSet<_> = good.map(|(root, _)| root.to_text()).collect();
        Some(distinct.len() as u64)
    };
    count().ok_or(Rule::RootNote.at(None))
}

/// The only text that a certificate of this bundle may have; it certifies epoch 1 alone.
fn expected_certificate(header: &Header, first: &Value) -> Option<String> {
    let number = first.get("epoch").and_then(as_index)?;
    let vkey = VKey::parse(first.get("vkey")?.as_text()?)?;
    let cap = verifying_key(&unb64url(first.get("cap_spki")?.as_text()?)?)?;
    (number == 1 && vkey.name() == header.origin).then(|| certificate_text(number, &vkey, &cap))
}

/// The epoch lines in order, each: `epoch`, `closing`, `rotation`.
pub(super) fn judge(lines: &Lines, known: &Known) -> Step<Vec<Epoch>> {
    let mut epochs: Vec<Epoch> = Vec::new();
    for (i, value) in lines.epochs.iter().enumerate() {
        let next = lines.epochs.get(i + 1);
        let line = read(value, &lines.header).ok_or(Rule::Epoch.at(None))?;
        let fits = follows(epochs.last(), &line, &lines.header)
            && places(&line, next.is_none(), &lines.header);
        if !fits {
            return Err(Rule::Epoch.at(None));
        }
        epochs.push(close(line, next, &lines.header, known)?);
    }
    Ok(epochs)
}

/// Members and types of a line.
fn read(value: &Value, header: &Header) -> Option<Epoch> {
    let members = value.exactly(&[
        "epoch", "from", "to", "vkey", "cap_spki", "rotation", "proof", "closing",
    ])?;
    let get = |name: &str| members.get(name);
    let vkey = VKey::parse(get("vkey")?.as_text()?).filter(|k| k.name() == header.origin)?;
    get("cap_spki")?.as_text().filter(|text| is_spki(text))?;
    let ends = ["to", "rotation", "proof", "closing"].map(get);
    let end = match ends {
        [
            Some(Value::Null),
            Some(Value::Null),
            Some(Value::Null),
            Some(Value::Null),
        ] => None,
        [
            Some(to),
            Some(rotation @ Value::Map(_)),
            Some(proof),
            Some(Value::Text(note)),
        ] => Some(End {
            to: as_index(to)?,
            rotation: rotation.clone(),
            proof: as_hashes(proof)?,
            note: note.clone(),
            root: [0; 32],
        }),
        _ => return None,
    };
    Some(Epoch {
        number: get("epoch").and_then(as_index).filter(|n| *n >= 1)?,
        from: get("from").and_then(as_index)?,
        vkey,
        end,
    })
}

/// The number and the first index that the line before gives (audit-bundle 2.3 for the first).
fn follows(before: Option<&Epoch>, line: &Epoch, header: &Header) -> bool {
    match before {
        Some(before) => line.number == before.number + 1 && before.to() == Some(line.from),
        None => (line.from == 0) == (line.number == 1) && line.from <= header.from,
    }
}

/// The last index of the line against the bundle's size and range (audit-bundle 2.1).
fn places(line: &Epoch, last: bool, header: &Header) -> bool {
    match line.to() {
        None => last,
        Some(to) => {
            let final_line = last || line.owns(header.to - 1);
            line.from < to && to <= header.size && (!final_line || to == header.size)
        }
    }
}

/// `closing` and `rotation` of a line that has ended.
fn close(line: Epoch, next: Option<&Value>, header: &Header, known: &Known) -> Step<Epoch> {
    let Some(end) = &line.end else {
        return Ok(line);
    };
    let index = Some(end.to - 1);
    let head = closing_head(&line, end, next, known)
        .filter(|head| head.origin == header.origin && head.size == end.to)
        .ok_or(Rule::Closing.at(index))?;
    if !rotates(&line, end, &head.root, next, header) {
        return Err(Rule::Rotation.at(index));
    }
    let end = line.end.map(|end| End {
        root: head.root,
        ..end
    });
    Ok(Epoch { end, ..line })
}

fn closing_head(
    line: &Epoch,
    end: &End,
    next: Option<&Value>,
    known: &Known,
) -> Option<Checkpoint> {
    let next_key = match next {
        Some(next) => Some(VKey::parse(next.get("vkey")?.as_text()?)?),
        None => None,
    };
    let must: Vec<_> = std::iter::once(&line.vkey).chain(&next_key).collect();
    known.head(&end.note, &must)
}

fn rotates(line: &Epoch, end: &End, root: &Hash, next: Option<&Value>, header: &Header) -> bool {
    let Ok(event) = Event::from_value(&end.rotation) else {
        return false;
    };
    let is_last_leaf = event.kind == EventType::KeyRotated
        && event.seq == end.to - 1
        && event.epoch == line.number
        && event.inc == header.inc
        && inclusion_root(event.leaf, event.seq, end.to, &end.proof) == Some(*root);
    let names = |next: &Value| {
        let same = |data: &str, member: &str| {
            let stated = next.get(member);
            stated.is_some() && stated == event.data.get(data)
        };
        same("epoch", "epoch") && same("log_vkey", "vkey") && same("cap_spki", "cap_spki")
    };
    is_last_leaf && next.is_none_or(names)
}
