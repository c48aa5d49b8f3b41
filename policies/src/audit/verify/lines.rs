//! Steps 1 and 2: lines, their order, the end hash and the header (audit-bundle 3.1, 3.2).

use std::collections::BTreeMap;

use super::{Rule, Step};
use crate::audit::bundle::MAX_LINE_BYTES;
use crate::audit::{Hash, hash_from_text, sha256};
use crate::canon::{self, Limits, Value};

/// The kinds of lines in the order of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Bundle,
    Root,
    Epoch,
    Range,
    Event,
    Doc,
    Pii,
    Consistency,
    Checkpoint,
    End,
}

impl Kind {
    const ALL: [(Self, &'static str, usize, usize); 10] = [
        (Self::Bundle, "bundle", 1, 1),
        (Self::Root, "root", 0, 1),
        (Self::Epoch, "epoch", 1, usize::MAX),
        (Self::Range, "range", 1, 1),
        // Their number is judged with the header that states it.
        (Self::Event, "event", 0, usize::MAX),
        (Self::Doc, "doc", 0, usize::MAX),
        (Self::Pii, "pii", 0, usize::MAX),
        (Self::Consistency, "consistency", 0, 1),
        (Self::Checkpoint, "checkpoint", 1, 1),
        (Self::End, "end", 1, 1),
    ];

    fn parse(word: &str) -> Option<Self> {
        let known = Self::ALL.iter().find(|(_, name, ..)| *name == word);
        known.map(|(kind, ..)| *kind)
    }
}

/// A bundle whose lines, order, end and header hold; the values are not yet judged.
pub(super) struct Lines {
    pub(super) header: Header,
    pub(super) root: Option<Value>,
    pub(super) epochs: Vec<Value>,
    pub(super) range: Value,
    pub(super) events: Vec<Value>,
    pub(super) docs: Vec<Value>,
    pub(super) pii: Vec<Value>,
    pub(super) consistency: Option<Value>,
    pub(super) checkpoint: Value,
}

/// The first line.
pub(super) struct Header {
    pub(super) origin: String,
    pub(super) inc: u64,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) size: u64,
}

/// Judges steps 1 and 2.
pub(super) fn read(bytes: &[u8]) -> Step<Lines> {
    let lines = split(bytes)?;
    let mut groups = group(lines)?;
    let mut all = |kind| groups.remove(&kind).unwrap_or_default();
    let mut one = |kind| all(kind).pop();
    let end = one(Kind::End);
    judge_end(bytes, end.as_ref())?;
    let header = one(Kind::Bundle).as_ref().and_then(header);
    let header = header.ok_or(Rule::Bundle.at(None))?;
    let (root, consistency) = (one(Kind::Root), one(Kind::Consistency));
    let (range, checkpoint) = (one(Kind::Range), one(Kind::Checkpoint));
    let lines = Lines {
        root,
        epochs: all(Kind::Epoch),
        range: range.unwrap_or(Value::Null),
        events: all(Kind::Event),
        docs: all(Kind::Doc),
        pii: all(Kind::Pii),
        consistency,
        checkpoint: checkpoint.unwrap_or(Value::Null),
        header,
    };
    if lines.events.len() as u64 != lines.header.to - lines.header.from {
        return Err(Rule::Bundle.at(None));
    }
    Ok(lines)
}

/// `line`: each parses, has one known kind and re-serialises to itself.
fn split(bytes: &[u8]) -> Step<Vec<(Kind, Value)>> {
    let fail = Rule::Line.at(None);
    let limits = Limits {
        max_bytes: MAX_LINE_BYTES,
        max_depth: 8,
    };
    let body = bytes.strip_suffix(b"\n").ok_or(fail)?;
    body.split(|b| *b == b'\n')
        .map(|line| {
            let value = canon::parse(line, limits).map_err(|_| fail)?;
            if value.to_jcs().as_bytes() != line {
                return Err(fail);
            }
            let Value::Map(mut members) = value else {
                return Err(fail);
            };
            let (kind, value) = members.pop_first().ok_or(fail)?;
            let kind = Kind::parse(&kind).ok_or(fail)?;
            members.is_empty().then_some((kind, value)).ok_or(fail)
        })
        .collect()
}

/// `order`: kinds and counts.
fn group(lines: Vec<(Kind, Value)>) -> Step<BTreeMap<Kind, Vec<Value>>> {
    let fail = Rule::Order.at(None);
    let mut groups: BTreeMap<Kind, Vec<Value>> = BTreeMap::new();
    let mut last = Kind::Bundle;
    for (kind, value) in lines {
        if kind < last {
            return Err(fail);
        }
        last = kind;
        groups.entry(kind).or_default().push(value);
    }
    let fits = Kind::ALL.iter().all(|(kind, _, least, most)| {
        let count = groups.get(kind).map_or(0, Vec::len);
        (*least..=*most).contains(&count)
    });
    fits.then_some(groups).ok_or(fail)
}

/// `end`: the hash of all bytes before the last line.
fn judge_end(bytes: &[u8], end: Option<&Value>) -> Step<()> {
    let fail = Rule::End.at(None);
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let before = body
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let before = bytes.get(..before).unwrap_or_default();
    let stated = end.and_then(Value::as_text).and_then(hash_from_text);
    (stated == Some(sha256(before))).then_some(()).ok_or(fail)
}

fn header(value: &Value) -> Option<Header> {
    let members = value.exactly(&["v", "origin", "inc", "from", "to", "size"])?;
    let number = |name: &str| members.get(name).and_then(as_index);
    let header = Header {
        origin: members.get("origin")?.as_text()?.to_owned(),
        inc: number("inc")?,
        from: number("from")?,
        to: number("to")?,
        size: number("size")?,
    };
    let good = members.get("v")?.as_int() == Some(1)
        && header.inc >= 1
        && header.from < header.to
        && header.to <= header.size
        && origin_is_of(&header.origin, header.inc);
    good.then_some(header)
}

/// Whether an origin is that of an incarnation.
pub(super) fn origin_is_of(origin: &str, inc: u64) -> bool {
    origin.ends_with(&format!("/sentinel/{inc}"))
}

/// A number that is not negative.
pub(super) fn as_index(value: &Value) -> Option<u64> {
    u64::try_from(value.as_int()?).ok()
}

/// A list of hashes.
pub(super) fn as_hashes(value: &Value) -> Option<Vec<Hash>> {
    let items = value.as_list()?.iter();
    items.map(|item| hash_from_text(item.as_text()?)).collect()
}
