//! One event of the log: how it is made and when it is well formed (guard 6.1, audit-bundle 2.4).

use std::collections::BTreeMap;

use super::keys::VKey;
use super::{Error, EventType, Hash, hash_from_text, hash_text, leaf_hash, sha256, verifying_key};
use crate::canon::{self, Limits, Value, unb64url};
use crate::model::Millis;

/// The longest event in JCS bytes (guard 6.1.1).
pub const MAX_EVENT_BYTES: usize = 16_384;

/// The fields that an event may commit to (audit-bundle 2).
pub const PII_FIELDS: [&str; 4] = ["id_token", "intent", "reason", "subject"];

const MEMBERS: [&str; 21] = [
    "v", "seq", "epoch", "inc", "boot", "t_wall", "t_hwm", "type", "aid", "dig", "jti", "actor",
    "via", "outcome", "reason", "policy", "job", "fence", "pii", "data", "prev",
];

/// Who acted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor {
    /// `p_...` for a person, else the name of the caller.
    pub id: Option<String>,
    /// Who vouches for the person.
    pub issuer: Option<String>,
    /// How sure the guard is of the person.
    pub assurance: Option<String>,
    /// What kind of evidence showed it.
    pub evidence: Option<String>,
}

/// The content of an event before it has a place in the log. Ids, codes and hashes only: free
/// text goes to the `pii` table, and its commitment here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// What happened.
    pub kind: EventType,
    /// The action.
    pub aid: Option<String>,
    /// The digest of the action document.
    pub dig: Option<Hash>,
    /// The capability.
    pub jti: Option<String>,
    /// Who did it.
    pub actor: Actor,
    /// The delegate that brought it.
    pub via: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// A code that says why.
    pub reason: Option<String>,
    /// The hash of the policy in force after the event.
    pub policy: Option<Hash>,
    /// The job.
    pub job: Option<String>,
    /// The fence of its lease.
    pub fence: Option<i64>,
    /// Commitments by field.
    pub pii: BTreeMap<String, Hash>,
    /// More, by type: an object.
    pub data: Value,
}

impl NewEvent {
    /// An event of a type with everything else absent.
    #[must_use]
    pub fn new(kind: EventType) -> Self {
        Self {
            kind,
            aid: None,
            dig: None,
            jti: None,
            actor: Actor::default(),
            via: None,
            outcome: None,
            reason: None,
            policy: None,
            job: None,
            fence: None,
            pii: BTreeMap::new(),
            data: Value::Map(BTreeMap::new()),
        }
    }
}

/// Where an event stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The leaf index.
    pub seq: u64,
    /// The epoch that owns it.
    pub epoch: u64,
    /// The incarnation.
    pub inc: u64,
    /// The boot id.
    pub boot: String,
    /// The wall clock.
    pub t_wall: Millis,
    /// The high-water time, which never falls.
    pub t_hwm: Millis,
    /// The leaf hash of the event before; `None` for the first only.
    pub prev: Option<Hash>,
}

/// Gives an event its place: the JCS text that is hashed, stored and exported.
///
/// # Errors
/// A member is not as the format demands, or the text is longer than 16 KiB.
pub fn seal(new: &NewEvent, place: &Place) -> Result<String, Error> {
    let int = |number: u64, name| {
        i64::try_from(number)
            .map(Value::Int)
            .map_err(|_| Error::Member(name))
    };
    let hash = |hash: Option<&Hash>| Value::text_or_null(hash.map(hash_text));
    let text = |text: &Option<String>| Value::text_or_null(text.as_deref());
    let actor = [
        ("id", text(&new.actor.id)),
        ("issuer", text(&new.actor.issuer)),
        ("assurance", text(&new.actor.assurance)),
        ("evidence", text(&new.actor.evidence)),
    ];
    let pii = new
        .pii
        .iter()
        .map(|(k, v)| (k.as_str(), Value::from(hash_text(v))));
    let value = Value::map([
        ("v", Value::Int(1)),
        ("seq", int(place.seq, "seq")?),
        ("epoch", int(place.epoch, "epoch")?),
        ("inc", int(place.inc, "inc")?),
        ("boot", Value::from(place.boot.as_str())),
        ("t_wall", Value::Int(place.t_wall.0)),
        ("t_hwm", Value::Int(place.t_hwm.0)),
        ("type", Value::from(new.kind.as_str())),
        ("aid", text(&new.aid)),
        ("dig", hash(new.dig.as_ref())),
        ("jti", text(&new.jti)),
        ("actor", Value::map(actor)),
        ("via", text(&new.via)),
        ("outcome", text(&new.outcome)),
        ("reason", text(&new.reason)),
        ("policy", hash(new.policy.as_ref())),
        ("job", text(&new.job)),
        ("fence", Value::int_or_null(new.fence)),
        ("pii", Value::map(pii)),
        ("data", new.data.clone()),
        ("prev", hash(place.prev.as_ref())),
    ]);
    // Parsing the own text back asserts that what is signed is what a verifier accepts.
    // One level is left for the line of a bundle around it, one for an epoch line around that.
    Event::parse_within(&value.to_jcs(), 6).map(|event| event.jcs)
}

/// A well-formed event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The leaf index.
    pub seq: u64,
    /// The epoch that owns it.
    pub epoch: u64,
    /// The incarnation.
    pub inc: u64,
    /// The high-water time.
    pub t_hwm: i64,
    /// What happened.
    pub kind: EventType,
    /// The action.
    pub aid: Option<String>,
    /// The digest of the action document.
    pub dig: Option<Hash>,
    /// The capability.
    pub jti: Option<String>,
    /// Who did it.
    pub actor: Option<String>,
    /// How it ended.
    pub outcome: Option<String>,
    /// The policy in force after the event.
    pub policy: Option<Hash>,
    /// Commitments by field.
    pub pii: BTreeMap<String, Hash>,
    /// More, by type.
    pub data: BTreeMap<String, Value>,
    /// The leaf hash of the event before.
    pub prev: Option<Hash>,
    /// The JCS text.
    pub jcs: String,
    /// The leaf hash.
    pub leaf: Hash,
}

impl Event {
    /// Reads an event from its JCS text.
    ///
    /// # Errors
    /// The text is not canonical or not an event of audit-bundle 3.5.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::parse_within(text, 8)
    }

    fn parse_within(text: &str, max_depth: usize) -> Result<Self, Error> {
        let limits = Limits {
            max_bytes: MAX_EVENT_BYTES,
            max_depth,
        };
        if text.len() > MAX_EVENT_BYTES {
            return Err(Error::TooLarge(text.len()));
        }
        let value = canon::parse(text.as_bytes(), limits).map_err(Error::Json)?;
        let event = Self::from_value(&value)?;
        if event.jcs == text {
            Ok(event)
        } else {
            Err(Error::NotCanonical)
        }
    }

    /// Reads an event from a value; its text is the JCS of it.
    ///
    /// # Errors
    /// The value is not an event of audit-bundle 3.5.
    pub fn from_value(value: &Value) -> Result<Self, Error> {
        let members = Members(value.exactly(&MEMBERS).ok_or(Error::Member("event"))?);
        if members.int("v")? != 1 {
            return Err(Error::Member("v"));
        }
        members.text("boot")?;
        members.int("t_wall")?;
        for name in ["via", "reason", "job"] {
            members.text_or_null(name)?;
        }
        members.fence()?;
        let event = Self {
            seq: members.at_least("seq", 0)?,
            epoch: members.at_least("epoch", 1)?,
            inc: members.at_least("inc", 1)?,
            t_hwm: members.int("t_hwm")?,
            kind: EventType::parse(members.text("type")?).ok_or(Error::Member("type"))?,
            aid: members.text_or_null("aid")?,
            dig: members.hash_or_null("dig")?,
            jti: members.text_or_null("jti")?,
            actor: members.actor()?,
            outcome: members.text_or_null("outcome")?,
            policy: members.hash_or_null("policy")?,
            pii: members.pii()?,
            data: members.data()?.clone(),
            prev: members.hash_or_null("prev")?,
            jcs: value.to_jcs(),
            leaf: [0; 32],
        };
        if event.jcs.len() > MAX_EVENT_BYTES {
            return Err(Error::TooLarge(event.jcs.len()));
        }
        event.check_data()?;
        let leaf = leaf_hash(event.jcs.as_bytes());
        Ok(Self { leaf, ..event })
    }

    /// The marked members of audit-bundle 2.4.
    fn check_data(&self) -> Result<(), Error> {
        let data = |name: &str| self.data.get(name);
        let good = match self.kind {
            EventType::KeyRotated => {
                self.data.len() == 3
                    && data("cap_spki")
                        .and_then(Value::as_text)
                        .is_some_and(is_spki)
                    && data("epoch")
                        .and_then(Value::as_int)
                        .is_some_and(|n| n >= 1)
                    && data("log_vkey")
                        .and_then(Value::as_text)
                        .is_some_and(|t| VKey::parse(t).is_some())
            }
            EventType::ActionProposed => data("need")
                .and_then(Value::as_int)
                .is_some_and(|n| (1..=100).contains(&n)),
            EventType::ExecOutcome => matches!(
                self.outcome.as_deref(),
                Some("succeeded" | "failed" | "unknown")
            ),
            EventType::PolicyLoaded => self.policy.is_some(),
            _ => true,
        };
        good.then_some(()).ok_or(Error::Member("data"))
    }

    /// How many approvals a proposed action needs.
    #[must_use]
    pub fn need(&self) -> Option<usize> {
        let need = self.data.get("need").and_then(Value::as_int)?;
        usize::try_from(need).ok()
    }
}

/// Whether a base64url text is the SPKI DER of a P-256 key.
pub(super) fn is_spki(text: &str) -> bool {
    unb64url(text).is_some_and(|der| verifying_key(&der).is_some())
}

/// The members of an event, read by type.
struct Members<'a>(&'a BTreeMap<String, Value>);

impl<'a> Members<'a> {
    fn get(&self, name: &'static str) -> Result<&'a Value, Error> {
        self.0.get(name).ok_or(Error::Member(name))
    }

    fn int(&self, name: &'static str) -> Result<i64, Error> {
        self.get(name)?.as_int().ok_or(Error::Member(name))
    }

    fn at_least(&self, name: &'static str, least: u64) -> Result<u64, Error> {
        let number = u64::try_from(self.int(name)?).map_err(|_| Error::Member(name))?;
        (number >= least)
            .then_some(number)
            .ok_or(Error::Member(name))
    }

    fn text(&self, name: &'static str) -> Result<&'a str, Error> {
        self.get(name)?.as_text().ok_or(Error::Member(name))
    }

    fn text_or_null(&self, name: &'static str) -> Result<Option<String>, Error> {
        match self.get(name)? {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text.clone())),
            _ => Err(Error::Member(name)),
        }
    }

    fn hash_or_null(&self, name: &'static str) -> Result<Option<Hash>, Error> {
        self.text_or_null(name)?
            .map(|text| hash_from_text(&text).ok_or(Error::Member(name)))
            .transpose()
    }

    fn fence(&self) -> Result<(), Error> {
        match self.get("fence")? {
            Value::Null | Value::Int(1..) => Ok(()),
            _ => Err(Error::Member("fence")),
        }
    }

    fn actor(&self) -> Result<Option<String>, Error> {
        let keys = ["id", "issuer", "assurance", "evidence"];
        let actor = self
            .get("actor")?
            .exactly(&keys)
            .ok_or(Error::Member("actor"))?;
        let inner = Members(actor);
        for key in ["issuer", "assurance", "evidence"] {
            inner.text_or_null(key)?;
        }
        inner.text_or_null("id")
    }

    fn pii(&self) -> Result<BTreeMap<String, Hash>, Error> {
        let wrong = Error::Member("pii");
        let pii = self.get("pii")?.as_map().ok_or(wrong.clone())?;
        pii.iter()
            .map(|(field, hash)| {
                let hash = hash.as_text().and_then(hash_from_text);
                let known = PII_FIELDS.contains(&field.as_str());
                hash.filter(|_| known)
                    .map(|hash| (field.clone(), hash))
                    .ok_or(wrong.clone())
            })
            .collect()
    }

    fn data(&self) -> Result<&'a BTreeMap<String, Value>, Error> {
        self.get("data")?.as_map().ok_or(Error::Member("data"))
    }
}

/// The commitment of a leaf to personal data (guard 6.6.1).
#[must_use]
pub fn pii_commitment(field: &str, salt: &[u8; 32], value: &str) -> Hash {
    let mut bytes = Vec::with_capacity(64 + value.len());
    bytes.extend_from_slice(b"sentinel-pii/1\0");
    bytes.extend_from_slice(field.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(salt);
    bytes.extend_from_slice(value.as_bytes());
    sha256(&bytes)
}

/// The digest of an action document: SHA-256 of its JCS bytes (guard 5.1.2).
#[must_use]
pub fn document_digest(document: &Value) -> Hash {
    sha256(document.to_jcs().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(seq: u64) -> Place {
        Place {
            seq,
            epoch: 1,
            inc: 1,
            boot: "b1".to_owned(),
            t_wall: Millis(1),
            t_hwm: Millis(2),
            prev: (seq > 0).then_some([7; 32]),
        }
    }

    #[test]
    fn a_sealed_event_has_every_member_and_reads_back() {
        let mut new = NewEvent::new(EventType::DecisionApproved);
        new.aid = Some("act_1".to_owned());
        new.actor.id = Some("p_1".to_owned());
        new.pii.insert("reason".to_owned(), [1; 32]);
        let text = seal(&new, &place(3)).unwrap();
        let event = Event::parse(&text).unwrap();
        assert_eq!(event.seq, 3);
        assert_eq!(event.actor.as_deref(), Some("p_1"));
        assert_eq!(event.leaf, leaf_hash(text.as_bytes()));
        assert_eq!(event.pii.get("reason"), Some(&[1; 32]));
    }

    #[test]
    fn an_event_without_its_marked_data_is_refused() {
        for kind in [
            EventType::ActionProposed,
            EventType::KeyRotated,
            EventType::ExecOutcome,
            EventType::PolicyLoaded,
        ] {
            let refused = seal(&NewEvent::new(kind), &place(0));
            assert_eq!(refused, Err(Error::Member("data")), "{}", kind.as_str());
        }
    }

    #[test]
    fn an_event_longer_than_16_kib_is_refused() {
        let mut new = NewEvent::new(EventType::AdminConfig);
        new.data = Value::map([("x", Value::from("a".repeat(MAX_EVENT_BYTES)))]);
        assert!(matches!(seal(&new, &place(0)), Err(Error::TooLarge(_))));
    }

    #[test]
    fn a_member_of_another_type_is_refused() {
        let text = seal(&NewEvent::new(EventType::HoldSet), &place(0)).unwrap();
        for (from, to) in [
            ("\"boot\":\"b1\"", "\"boot\":null"),
            ("\"actor\":{\"assurance\":null,", "\"actor\":{"),
            ("\"dig\":null", "\"dig\":\"AAAA\""),
            ("\"epoch\":1", "\"epoch\":0"),
            ("\"fence\":null", "\"fence\":0"),
            ("\"pii\":{}", "\"pii\":{\"name\":null}"),
            ("\"type\":\"hold.set\"", "\"type\":\"hold.kept\""),
            ("\"v\":1", "\"v\":2"),
            ("\"via\":null", "\"via\":null,\"w\":null"),
        ] {
            let edited = text.replacen(from, to, 1);
            assert_ne!(edited, text);
            assert!(Event::parse(&edited).is_err(), "{to}");
        }
        assert_eq!(Event::parse(&format!(" {text}")), Err(Error::NotCanonical));
    }

    #[test]
    fn a_commitment_binds_field_salt_and_value() {
        let base = pii_commitment("reason", &[1; 32], "x");
        assert_ne!(base, pii_commitment("intent", &[1; 32], "x"));
        assert_ne!(base, pii_commitment("reason", &[2; 32], "x"));
        assert_ne!(base, pii_commitment("reason", &[1; 32], "y"));
    }
}
