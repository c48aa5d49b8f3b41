//! A whole bundle, step by step (audit-bundle 3), and its trust (audit-bundle 4.4).

use std::collections::{BTreeMap, BTreeSet};

use super::epochs::{self, Epoch};
use super::lines::{self, Header, Lines, as_hashes, as_index};
use super::{Known, Rule, Step, Verdict, events, replay};
use crate::audit::{
    Checkpoint, Event, EventType, Frontier, Hash, PII_FIELDS, TrustFile, VKey, consistency_root,
    document_digest, hash_from_text, hash_text, pii_commitment, range_hashes, root_of_range,
};
use crate::canon::Value;

/// Verifies a bundle against a trust file and, where given, a remembered head.
pub(super) fn verify(bytes: &[u8], trust: &TrustFile, since: Option<&Checkpoint>) -> Step<Verdict> {
    let lines = lines::read(bytes)?;
    let header = &lines.header;
    if since.is_some_and(|head| head.origin != header.origin) {
        return Err(Rule::SinceFile.at(None));
    }
    let roots = epochs::root_note(&lines, trust)?;
    let keys = lines
        .epochs
        .iter()
        .filter_map(|line| line.get("vkey")?.as_text());
    let known = Known::new(trust, keys.filter_map(VKey::parse));
    let epochs = epochs::judge(&lines, &known)?;
    let events = events::judge(&lines.events, header, &epochs)?;
    let outside = range(&lines).ok_or(Rule::Range.at(None))?;
    let leaves: Vec<Hash> = events.iter().map(|event| event.leaf).collect();
    let root = head(&lines, &epochs, &known, &leaves, &outside).ok_or(Rule::Head.at(None))?;
    closing_roots(header, &epochs, &leaves, outside.0, &root)?;
    docs(&lines.docs, &events)?;
    pii(&lines.pii, &events)?;
    replay::judge(&events)?;
    since_holds(&lines, since, &root).ok_or(Rule::Since.at(None))?;
    let distrust = distrust(header, &epochs, trust, roots);
    Ok(Verdict::over(header.size, root, distrust))
}

type Outside = (Vec<Hash>, Vec<Hash>);

/// `range`: two lists of exactly the length that A, B and size give.
fn range(lines: &Lines) -> Option<Outside> {
    let members = lines.range.exactly(&["left", "right"])?;
    let left = as_hashes(members.get("left")?)?;
    let right = as_hashes(members.get("right")?)?;
    let header = &lines.header;
    let counts = range_hashes(header.from, header.to, header.size).ok()?;
    (counts == (left.len(), right.len())).then_some((left, right))
}

/// `head`: the checkpoint, its signer and its root.
fn head(
    lines: &Lines,
    epochs: &[Epoch],
    known: &Known,
    leaves: &[Hash],
    (left, right): &Outside,
) -> Option<Hash> {
    let header = &lines.header;
    let last = epochs.last().filter(|epoch| epoch.owns(header.to - 1))?;
    let head = known.head(lines.checkpoint.as_text()?, &[&last.vkey])?;
    let root = root_of_range(header.from, leaves, header.size, left, right).ok()?;
    let good = last.to().is_none_or(|to| to == header.size)
        && head.origin == header.origin
        && head.size == header.size
        && head.root == root;
    good.then_some(root)
}

/// `closing`: each closing head inside the range has the root of the leaves before it; the one of
/// `size` that of the checkpoint. The hashes left of the range are the frontier of its start.
fn closing_roots(
    header: &Header,
    epochs: &[Epoch],
    leaves: &[Hash],
    left: Vec<Hash>,
    root: &Hash,
) -> Step<()> {
    let mut frontier = Frontier::from_parts(header.from, left).ok_or(Rule::Range.at(None))?;
    let mut leaves = leaves.iter();
    for end in epochs.iter().filter_map(|epoch| epoch.end.as_ref()) {
        let fail = Rule::Closing.at(Some(end.to - 1));
        if end.to > header.from && end.to <= header.to {
            while frontier.size() < end.to {
                frontier.push(*leaves.next().ok_or(fail)?);
            }
            if frontier.root() != end.root {
                return Err(fail);
            }
        }
        if end.to == header.size && end.root != *root {
            return Err(fail);
        }
    }
    Ok(())
}

/// `doc`: one for every proposed action, and none that the range does not name.
fn docs(docs: &[Value], events: &[Event]) -> Step<()> {
    let digests: Vec<Hash> = docs.iter().map(document_digest).collect();
    let known: BTreeSet<_> = digests.iter().collect();
    for event in events {
        let proposed = event.kind == EventType::ActionProposed;
        if proposed && event.dig.as_ref().is_none_or(|dig| !known.contains(dig)) {
            return Err(Rule::Doc.at(Some(event.seq)));
        }
    }
    let named: BTreeSet<_> = events.iter().filter_map(|event| event.dig).collect();
    let texts: Vec<_> = digests.iter().map(hash_text).collect();
    let good = texts.is_sorted_by(|a, b| a < b) && digests.iter().all(|dig| named.contains(dig));
    good.then_some(()).ok_or(Rule::Doc.at(None))
}

/// `pii`: each value is what its leaf commits to.
fn pii(rows: &[Value], events: &[Event]) -> Step<()> {
    let commitments: BTreeMap<_, _> = events.iter().map(|event| (event.seq, &event.pii)).collect();
    let mut last: Option<(u64, &str)> = None;
    for row in rows {
        let seq = row.get("seq").and_then(as_index);
        let fail = Rule::Pii.at(seq);
        let (field, commitment) = read_pii(row).ok_or(fail)?;
        let seq = seq.ok_or(fail)?;
        let committed = commitments.get(&seq).and_then(|pii| pii.get(field));
        let ascends = last.is_none_or(|last| last < (seq, field));
        if committed != Some(&commitment) || !ascends {
            return Err(fail);
        }
        last = Some((seq, field));
    }
    Ok(())
}

/// The field of a row and the commitment to its value.
fn read_pii(row: &Value) -> Option<(&str, Hash)> {
    let members = row.exactly(&["seq", "field", "salt", "value"])?;
    let text = |name: &str| members.get(name)?.as_text();
    let field = text("field").filter(|field| PII_FIELDS.contains(field))?;
    let salt = hash_from_text(text("salt")?)?;
    Some((field, pii_commitment(field, &salt, text("value")?)))
}

/// `since`: the tree that the caller remembers is a prefix of this one.
fn since_holds(lines: &Lines, since: Option<&Checkpoint>, root: &Hash) -> Option<()> {
    let proof = lines.consistency.as_ref().map(as_hashes);
    let proof = proof.unwrap_or_else(|| Some(Vec::new()))?;
    let Some(old) = since else {
        return Some(());
    };
    let size = lines.header.size;
    (consistency_root(old.size, &old.root, size, root, &proof) == Some(*root)).then_some(())
}

/// Why the trust file does not reach the bundle (audit-bundle 3.12, 4.4).
fn distrust(header: &Header, epochs: &[Epoch], trust: &TrustFile, roots: u64) -> Option<Rule> {
    if !trust.origins.contains(&header.origin) {
        return Some(Rule::OriginUnknown);
    }
    let certified = !trust.roots.is_empty() && roots >= trust.threshold;
    let pinned = |epoch: &Epoch| {
        let vkey = epoch.vkey.to_text();
        let by_entry = trust.epochs.iter().any(|pin| {
            let same_end = match (pin.to, epoch.to()) {
                (Some(a), Some(b)) => a == b,
                (None, _) | (_, None) => true,
            };
            pin.origin == header.origin
                && pin.epoch == epoch.number
                && pin.from == epoch.from
                && pin.vkey == vkey
                && same_end
        });
        by_entry || (epoch.number == 1 && certified)
    };
    let reaches = epochs.iter().any(|e| e.from <= header.from && pinned(e));
    (!reaches).then_some(Rule::EpochUnreached)
}
