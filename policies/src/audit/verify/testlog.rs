//! A log in memory that tests fill with honest or dishonest events.

use std::collections::BTreeMap;

use p256::ecdsa::SigningKey;

use crate::audit::bundle::{Closing, Epoch, LogView, Parts, PiiRow, Wanted, outline, write_bundle};
use crate::audit::{
    Checkpoint, EntryProof, Event, EventType, Hash, NewEvent, PinnedEpoch, Place, Tree, TrustFile,
    VKey, certificate_text, document_digest, hash_text, pii_commitment, seal, sha256, sign_note,
    spki_der,
};
use crate::canon::{Value, b64url};
use crate::model::Millis;

pub(super) const ORIGIN: &str = "plant-7.example/sentinel/1";

/// A key from a label, so that every test run signs the same bytes.
pub(super) fn key(label: &str) -> SigningKey {
    SigningKey::from_slice(&sha256(label.as_bytes())).unwrap()
}

pub(super) fn log_key(epoch: u64) -> SigningKey {
    key(&format!("log {epoch}"))
}

pub(super) fn cap_spki(epoch: u64) -> Vec<u8> {
    spki_der(key(&format!("cap {epoch}")).verifying_key())
}

pub(super) fn log_vkey(epoch: u64) -> VKey {
    VKey::new(ORIGIN, log_key(epoch).verifying_key())
}

pub(super) fn policy(n: u8) -> Hash {
    [n; 32]
}

pub(super) struct TestLog {
    pub(super) events: Vec<String>,
    pub(super) leaves: Vec<Hash>,
    pub(super) epochs: Vec<Epoch>,
    pub(super) docs: BTreeMap<String, String>,
    pub(super) digs: BTreeMap<String, Hash>,
    pub(super) pii: Vec<PiiRow>,
    pub(super) root: Option<String>,
    pub(super) policy: Option<Hash>,
    pub(super) t_hwm: i64,
    /// Replaces the number of the current epoch in events, for dishonest logs.
    pub(super) claimed_epoch: Option<u64>,
}

impl TestLog {
    pub(super) fn new() -> Self {
        Self {
            events: Vec::new(),
            leaves: Vec::new(),
            epochs: vec![open_epoch(1, 0)],
            docs: BTreeMap::new(),
            digs: BTreeMap::new(),
            pii: Vec::new(),
            root: None,
            policy: None,
            t_hwm: 1_780_000_000_000,
            claimed_epoch: None,
        }
    }

    /// Policy, one action from proposal to outcome with personal data, and an unrelated event.
    pub(super) fn filled() -> Self {
        let mut log = Self::new();
        log.load_policy(1);
        log.whole_action("act_a");
        log.push(NewEvent::new(EventType::AdminConfig));
        log
    }

    pub(super) fn size(&self) -> u64 {
        self.leaves.len() as u64
    }

    pub(super) fn push(&mut self, mut new: NewEvent) -> u64 {
        if new.policy.is_none() {
            new.policy = self.policy;
        }
        self.t_hwm += 10;
        let seq = self.size();
        let place = Place {
            seq,
            epoch: self.claimed_epoch.unwrap_or(self.epochs.len() as u64),
            inc: 1,
            boot: "b1".to_owned(),
            t_wall: Millis(self.t_hwm),
            t_hwm: Millis(self.t_hwm),
            prev: self.leaves.last().copied(),
        };
        let text = seal(&new, &place).unwrap();
        self.leaves.push(Event::parse(&text).unwrap().leaf);
        self.events.push(text);
        seq
    }

    pub(super) fn load_policy(&mut self, n: u8) -> u64 {
        self.policy = Some(policy(n));
        let mut new = NewEvent::new(EventType::PolicyLoaded);
        new.data = Value::map([("changed", Value::Bool(true))]);
        self.push(new)
    }

    pub(super) fn propose(&mut self, aid: &str, need: i64) -> u64 {
        let doc = Value::map([
            ("action", Value::from("scale")),
            ("change", Value::map([("incident", Value::from(aid))])),
            ("target", Value::map([("name", Value::from("checkout"))])),
            ("v", Value::Int(1)),
        ]);
        let dig = document_digest(&doc);
        self.docs.insert(hash_text(&dig), doc.to_jcs());
        self.digs.insert(aid.to_owned(), dig);
        let mut new = self.of(EventType::ActionProposed, aid);
        new.data = Value::map([
            ("need", Value::Int(need)),
            ("expires_ms", Value::Int(1)),
            ("initiator", Value::Null),
        ]);
        self.with_pii(&mut new, "intent", "more room");
        self.push(new)
    }

    fn with_pii(&mut self, new: &mut NewEvent, field: &str, value: &str) {
        let salt = sha256(format!("{field}{}", self.size()).as_bytes());
        new.pii
            .insert(field.to_owned(), pii_commitment(field, &salt, value));
        self.pii.push(PiiRow {
            seq: self.size(),
            field: field.to_owned(),
            salt,
            value: value.to_owned(),
        });
    }

    /// An event of an action with its digest and `jti_<aid>`.
    pub(super) fn of(&self, kind: EventType, aid: &str) -> NewEvent {
        let mut new = NewEvent::new(kind);
        new.aid = Some(aid.to_owned());
        new.dig = self.digs.get(aid).copied();
        new.jti = Some(format!("jti_{aid}"));
        if kind == EventType::ExecOutcome {
            new.outcome = Some("succeeded".to_owned());
        }
        new
    }

    pub(super) fn act(&mut self, kind: EventType, aid: &str) -> u64 {
        self.push(self.of(kind, aid))
    }

    pub(super) fn approve(&mut self, aid: &str, person: &str) -> u64 {
        let mut new = self.of(EventType::DecisionApproved, aid);
        new.actor.id = Some(person.to_owned());
        new.outcome = Some("approve".to_owned());
        self.with_pii(&mut new, "subject", person);
        self.with_pii(&mut new, "reason", "looks \"right\"\n");
        self.push(new)
    }

    pub(super) fn whole_action(&mut self, aid: &str) {
        self.propose(aid, 2);
        self.approve(aid, "p_1");
        self.approve(aid, "p_2");
        for kind in [
            EventType::CapIssued,
            EventType::CapRedelivered,
            EventType::SpendOk,
            EventType::ExecStarted,
            EventType::ExecOutcome,
        ] {
            self.act(kind, aid);
        }
    }

    /// Ends the current epoch honestly.
    pub(super) fn rotate(&mut self) {
        let number = self.epochs.len() as u64;
        let mut new = NewEvent::new(EventType::KeyRotated);
        new.data = Value::map([
            ("epoch", Value::Int(number as i64 + 1)),
            ("log_vkey", Value::from(log_vkey(number + 1).to_text())),
            ("cap_spki", Value::from(b64url(&cap_spki(number + 1)))),
        ]);
        let index = self.push(new);
        let closing = Closing {
            to: index + 1,
            rotation: self.events.last().unwrap().clone(),
            proof: Tree::new(&self.leaves).inclusion(index, index + 1).unwrap(),
            note: self
                .head(index + 1)
                .sign(&[&log_key(number), &log_key(number + 1)]),
        };
        self.epochs.last_mut().unwrap().closing = Some(closing);
        self.epochs.push(open_epoch(number + 1, index + 1));
    }

    /// Certifies epoch 1 by these root keys.
    pub(super) fn certify(&mut self, roots: &[&str]) {
        let text = certificate_text(1, &log_vkey(1), key("cap 1").verifying_key());
        let keys: Vec<_> = roots.iter().map(|name| (*name, key(name))).collect();
        let named: Vec<_> = keys.iter().map(|(name, key)| (*name, key)).collect();
        self.root = Some(sign_note(&text, &named));
    }

    pub(super) fn head(&self, size: u64) -> Checkpoint {
        Checkpoint {
            origin: ORIGIN.to_owned(),
            size,
            root: Tree::new(&self.leaves).root(size).unwrap(),
        }
    }

    pub(super) fn parts(&self, wanted: Wanted) -> Parts {
        let head = self.head(self.size());
        let head = head.sign(&[&log_key(self.epochs.len() as u64)]);
        let view = LogView {
            origin: ORIGIN,
            inc: 1,
            tree: &Tree::new(&self.leaves),
            epochs: &self.epochs,
            root: self.root.as_deref(),
            head: &head,
        };
        let mut parts = outline(&view, wanted).unwrap();
        let range = wanted.from as usize..wanted.to as usize;
        parts.events = self.events[range].to_vec();
        let proposed = parts.events.iter().map(|text| Event::parse(text).unwrap());
        let proposed = proposed.filter(|event| event.kind == EventType::ActionProposed);
        parts.docs = proposed
            .map(|event| self.docs[&hash_text(&event.dig.unwrap())].clone())
            .collect();
        parts
    }

    /// The bundle of `[from, to)` without personal data.
    pub(super) fn bundle(&self, from: u64, to: u64) -> String {
        let wanted = Wanted {
            from,
            to,
            ..Wanted::default()
        };
        write_bundle(&self.parts(wanted)).unwrap()
    }

    /// The bundle of the whole log with personal data.
    pub(super) fn whole(&self) -> String {
        let wanted = Wanted {
            from: 0,
            to: self.size(),
            ..Wanted::default()
        };
        let mut parts = self.parts(wanted);
        parts.pii = self.pii.clone();
        write_bundle(&parts).unwrap()
    }

    /// A trust file that pins every epoch.
    pub(super) fn trust(&self) -> TrustFile {
        let pin = |epoch: &Epoch| PinnedEpoch {
            origin: ORIGIN.to_owned(),
            epoch: epoch.epoch,
            from: epoch.from,
            to: epoch.closing.as_ref().map(|end| end.to),
            vkey: epoch.vkey.clone(),
        };
        TrustFile {
            origins: vec![ORIGIN.to_owned()],
            epochs: self.epochs.iter().map(pin).collect(),
            roots: Vec::new(),
            threshold: 0,
        }
    }

    /// The proof of a leaf against a head that a key of `epoch` signs.
    pub(super) fn proof(&self, index: u64, size: u64, epoch: u64) -> EntryProof {
        EntryProof {
            index,
            path: Tree::new(&self.leaves).inclusion(index, size).unwrap(),
            checkpoint: self.head(size).sign(&[&log_key(epoch)]),
        }
    }
}

fn open_epoch(number: u64, from: u64) -> Epoch {
    Epoch {
        epoch: number,
        from,
        vkey: log_vkey(number).to_text(),
        cap_spki: cap_spki(number),
        closing: None,
    }
}

/// Edits the lines of a bundle and gives it a right `end` again.
pub(super) fn edit(bundle: &str, change: impl FnOnce(&mut Vec<String>)) -> String {
    let mut lines: Vec<String> = bundle.lines().map(str::to_owned).collect();
    lines.pop();
    change(&mut lines);
    let mut text = lines.join("\n");
    text.push('\n');
    let end = Value::map([("end", Value::from(hash_text(&sha256(text.as_bytes()))))]);
    text.push_str(&end.to_jcs());
    text.push('\n');
    text
}

/// Replaces the first `from` in the first line of a kind that has it.
pub(super) fn swap(bundle: &str, kind: &str, from: &str, to: &str) -> String {
    let head = format!("{{\"{kind}\":");
    let edited = edit(bundle, |lines| {
        let hit = |line: &&mut String| line.starts_with(&head) && line.contains(from);
        let line = lines.iter_mut().find(hit);
        let line = line.unwrap_or_else(|| panic!("no {kind} line with {from}"));
        *line = line.replacen(from, to, 1);
    });
    assert_ne!(edited, bundle);
    edited
}
