//! The writer of bundles (audit-bundle 2). It lays out what it is given; a wrong log gives a
//! bundle that [`super::verify`] refuses.

use std::collections::BTreeMap;

use super::{Error, Hash, Tree, document_digest, hash_text, sha256};
use crate::canon::{self, Limits, MAX_INT, Value, b64url};

/// The longest line of a bundle in bytes.
pub const MAX_LINE_BYTES: usize = 65_536;

/// The end of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// One past the last index.
    pub to: u64,
    /// The last leaf, `key.rotated`, as JCS.
    pub rotation: String,
    /// Its path in the tree of size `to`.
    pub proof: Vec<Hash>,
    /// The closing head, signed by this and the next log key.
    pub note: String,
}

/// An epoch of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// The number, from 1 in each incarnation.
    pub epoch: u64,
    /// The first index.
    pub from: u64,
    /// The log key.
    pub vkey: String,
    /// The SPKI DER of the capability key.
    pub cap_spki: Vec<u8>,
    /// How it ended; `None` while it is open.
    pub closing: Option<Closing>,
}

/// Personal data that a leaf commits to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PiiRow {
    /// The leaf.
    pub seq: u64,
    /// The field.
    pub field: String,
    /// The salt.
    pub salt: [u8; 32],
    /// The value.
    pub value: String,
}

/// What goes into a bundle of `[from, from + events.len())`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The log.
    pub origin: String,
    /// The incarnation.
    pub inc: u64,
    /// The first index.
    pub from: u64,
    /// The size of the head.
    pub size: u64,
    /// The root certificate, where one exists and the first epoch is epoch 1.
    pub root: Option<String>,
    /// The epochs, up to that of the last event.
    pub epochs: Vec<Epoch>,
    /// The subtree hashes before and after ([`super::Tree::outside`]).
    pub outside: (Vec<Hash>, Vec<Hash>),
    /// The events' JCS texts.
    pub events: Vec<String>,
    /// The documents' JCS texts, in any order.
    pub docs: Vec<String>,
    /// The personal data, in any order.
    pub pii: Vec<PiiRow>,
    /// The proof from the size of `--since`.
    pub consistency: Option<Vec<Hash>>,
    /// The signed head of `size`.
    pub checkpoint: String,
}

/// A log of one incarnation, as the owner of the tables sees it.
#[derive(Debug, Clone, Copy)]
pub struct LogView<'a> {
    /// The log.
    pub origin: &'a str,
    /// The incarnation.
    pub inc: u64,
    /// The tree.
    pub tree: &'a Tree,
    /// Every epoch.
    pub epochs: &'a [Epoch],
    /// The root certificate, where one exists.
    pub root: Option<&'a str>,
    /// The newest head, a note.
    pub head: &'a str,
}

/// What an export asks for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted {
    /// The first index.
    pub from: u64,
    /// One past the last index.
    pub to: u64,
    /// The size of the head that the reader remembers.
    pub since: Option<u64>,
    /// The first epoch to show; epoch 1 where absent.
    pub epochs_from: Option<u64>,
}

/// Lays out a bundle: head, epochs, subtree hashes and consistency. The caller adds the texts of
/// events, documents and personal data.
///
/// # Errors
/// The range is empty or outside the tree, `since` is larger than the head, or `epochs_from` is
/// later than the epoch of the first index.
pub fn outline(log: &LogView<'_>, wanted: Wanted) -> Result<Parts, Error> {
    let Wanted { from, to, .. } = wanted;
    let tree = log.tree;
    let out = |index| Error::Range {
        index,
        size: tree.size(),
    };
    if from >= to || to > tree.size() {
        return Err(out(to));
    }
    let first_number = wanted.epochs_from.unwrap_or(1);
    let shown = log
        .epochs
        .iter()
        .filter(|e| e.epoch >= first_number && e.from < to);
    let epochs: Vec<Epoch> = shown.cloned().collect();
    let first = epochs.first().ok_or(Error::Member("epochs_from"))?;
    if first.epoch != first_number || first.from > from {
        return Err(Error::Member("epochs_from"));
    }
    let closing = epochs.last().and_then(|last| last.closing.as_ref());
    let size = closing.map_or(tree.size(), |end| end.to);
    let consistency = wanted
        .since
        .map(|old| tree.consistency(old, size))
        .transpose()?;
    Ok(Parts {
        origin: log.origin.to_owned(),
        inc: log.inc,
        from,
        size,
        root: log.root.filter(|_| first.epoch == 1).map(str::to_owned),
        outside: tree.outside(from, to, size)?,
        events: Vec::new(),
        docs: Vec::new(),
        pii: Vec::new(),
        consistency,
        checkpoint: closing.map_or(log.head, |end| end.note.as_str()).to_owned(),
        epochs,
    })
}

/// Writes a bundle.
///
/// # Errors
/// An event or a document is not strict JSON, a number does not fit, or a line is too long.
pub fn write_bundle(parts: &Parts) -> Result<String, Error> {
    let mut out = Writer(String::new());
    out.line("bundle", header(parts)?)?;
    if let Some(note) = &parts.root {
        out.line("root", Value::from(note.as_str()))?;
    }
    for epoch in &parts.epochs {
        out.line("epoch", epoch_value(epoch)?)?;
    }
    let (left, right) = &parts.outside;
    out.line(
        "range",
        Value::map([("left", hashes(left)), ("right", hashes(right))]),
    )?;
    for event in &parts.events {
        out.line("event", json(event)?)?;
    }
    let mut docs = BTreeMap::new();
    for text in &parts.docs {
        let value = json(text)?;
        docs.insert(hash_text(&document_digest(&value)), value);
    }
    for doc in docs.into_values() {
        out.line("doc", doc)?;
    }
    let mut pii: Vec<_> = parts.pii.iter().collect();
    pii.sort_by_key(|row| (row.seq, row.field.as_str()));
    for row in pii {
        let members = [
            ("seq", int(row.seq)?),
            ("field", Value::from(row.field.as_str())),
            ("salt", Value::from(b64url(&row.salt))),
            ("value", Value::from(row.value.as_str())),
        ];
        out.line("pii", Value::map(members))?;
    }
    if let Some(proof) = &parts.consistency {
        out.line("consistency", hashes(proof))?;
    }
    out.line("checkpoint", Value::from(parts.checkpoint.as_str()))?;
    let end = hash_text(&sha256(out.0.as_bytes()));
    out.line("end", Value::from(end))?;
    Ok(out.0)
}

struct Writer(String);

impl Writer {
    fn line(&mut self, kind: &str, value: Value) -> Result<(), Error> {
        let line = Value::map([(kind, value)]).to_jcs();
        if line.len() > MAX_LINE_BYTES {
            return Err(Error::TooLarge(line.len()));
        }
        self.0.push_str(&line);
        self.0.push('\n');
        Ok(())
    }
}

fn header(parts: &Parts) -> Result<Value, Error> {
    let to = parts.from.saturating_add(parts.events.len() as u64);
    Ok(Value::map([
        ("v", Value::Int(1)),
        ("origin", Value::from(parts.origin.as_str())),
        ("inc", int(parts.inc)?),
        ("from", int(parts.from)?),
        ("to", int(to)?),
        ("size", int(parts.size)?),
    ]))
}

fn epoch_value(epoch: &Epoch) -> Result<Value, Error> {
    let (to, rotation, proof, closing) = match &epoch.closing {
        None => (Value::Null, Value::Null, Value::Null, Value::Null),
        Some(end) => (
            int(end.to)?,
            json(&end.rotation)?,
            hashes(&end.proof),
            Value::from(end.note.as_str()),
        ),
    };
    Ok(Value::map([
        ("epoch", int(epoch.epoch)?),
        ("from", int(epoch.from)?),
        ("to", to),
        ("vkey", Value::from(epoch.vkey.as_str())),
        ("cap_spki", Value::from(b64url(&epoch.cap_spki))),
        ("rotation", rotation),
        ("proof", proof),
        ("closing", closing),
    ]))
}

fn json(text: &str) -> Result<Value, Error> {
    let limits = Limits {
        max_bytes: MAX_LINE_BYTES,
        max_depth: 7,
    };
    canon::parse(text.as_bytes(), limits).map_err(Error::Json)
}

fn int(number: u64) -> Result<Value, Error> {
    let number = i64::try_from(number).ok().filter(|n| *n <= MAX_INT);
    number.map(Value::Int).ok_or(Error::Member("number"))
}

fn hashes(list: &[Hash]) -> Value {
    Value::List(list.iter().map(|h| Value::from(hash_text(h))).collect())
}
