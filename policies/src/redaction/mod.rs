//! The redactor: personal data and secrets become keyed pseudonyms (guardrails 2 to 4).
//!
//! The way of a text:
//!
//! 1. `encoding`: bytes become text; UTF-16 is decoded, invalid UTF-8 is replaced.
//! 2. `stream`, `frame`, `prefix`: lines become logical messages. What a collector cut, folded or
//!    wrapped is joined without prefixes and envelopes, with a way back to every source byte.
//!    A line in which `gate` sees no anchor, and which continues nothing, is copied at once.
//! 3. `search`: the message is scanned as it stands and in its decoded views (`escapes`, `unicode`,
//!    `basen`, `array`, with `map` leading back), composed to a depth of three within a budget.
//! 4. `scan` and the entity files: anchors lead to validators, which are hand-written and linear.
//! 5. `message`: what was found is united and replaced; the result is searched again, and a message
//!    that still holds a find is dropped whole.

mod array;
mod auth;
mod barekeys;
mod basen;
mod checksum;
mod content;
mod context;
mod cut;
mod email;
mod encoding;
mod entropy;
mod escapes;
mod frame;
mod gate;
pub mod generate;
mod iban;
mod json;
mod jwt;
mod keys;
mod map;
mod message;
mod natid;
mod network;
mod open;
mod options;
mod pan;
mod phone;
mod prefix;
mod privkey;
mod scan;
mod search;
mod secret;
mod ssn;
mod stream;
mod term;
pub(crate) mod token;
mod unicode;
mod urlcred;

use std::collections::BTreeMap;

use serde::Serialize;
use unicode_normalization::UnicodeNormalization as _;

pub use options::{Allowed, Error, Options, Pack, Profile, Rules};
pub use stream::Redactor;

use crate::claim::RedactKey;

/// What was found; the order is the strength that names a united span (guardrails 2.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Privkey,
    Key(&'static str),
    Jwt,
    Auth,
    Cookie,
    Urlcred,
    Secret,
    Pan(&'static str),
    Iban,
    Ssn,
    Natid(&'static str),
    Email,
    Phone,
    Term,
    Entropy,
    Network(&'static str),
}

impl Kind {
    /// Name in tokens and reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Privkey => "privkey",
            Self::Key(family) => family,
            Self::Jwt => "jwt",
            Self::Auth => "auth",
            Self::Cookie => "cookie",
            Self::Urlcred => "urlcred",
            Self::Secret => "secret",
            Self::Pan(_) => "pan",
            Self::Iban => "iban",
            Self::Ssn => "ssn",
            Self::Natid(_) => "natid",
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Term => "term",
            Self::Entropy => "entropy",
            Self::Network(what) => what,
        }
    }

    /// Class of the pseudonym: one value has one id however it was found.
    const fn class(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Pan(_) => "pan",
            Self::Iban => "iban",
            Self::Phone => "phone",
            Self::Network(_) => "network",
            Self::Privkey
            | Self::Key(_)
            | Self::Jwt
            | Self::Auth
            | Self::Cookie
            | Self::Urlcred
            | Self::Secret
            | Self::Ssn
            | Self::Natid(_)
            | Self::Term
            | Self::Entropy => "opaque",
        }
    }

    /// Hint after the id; it holds no personal data.
    fn hint(self, value: &str, minter: &token::Minter) -> String {
        match self {
            Self::Pan(brand) => format!("brand={brand}"),
            Self::Natid(pack) => format!("pack={pack}"),
            Self::Jwt => jwt::algorithm(value).map_or_else(String::new, |alg| format!("alg={alg}")),
            Self::Network(_) => network::class_and_subnet(value)
                .map_or_else(String::new, |(class, subnet)| {
                    format!("net={class},sub={}", minter.short(&subnet))
                }),
            Self::Privkey
            | Self::Key(_)
            | Self::Auth
            | Self::Cookie
            | Self::Urlcred
            | Self::Secret
            | Self::Iban
            | Self::Ssn
            | Self::Email
            | Self::Phone
            | Self::Term
            | Self::Entropy => String::new(),
        }
    }

    /// The spelling that the id is computed from.
    fn canonical(self, text: &str) -> String {
        match self {
            Self::Email | Self::Term => text.nfkc().collect::<String>().to_lowercase(),
            Self::Phone => phone::canonical(text),
            Self::Network(_) => network::canonical(text),
            Self::Pan(_) | Self::Ssn => text.chars().filter(char::is_ascii_digit).collect(),
            Self::Iban | Self::Natid(_) => text
                .chars()
                .filter(char::is_ascii_alphanumeric)
                .map(|c| c.to_ascii_uppercase())
                .collect(),
            Self::Privkey => text.split_whitespace().collect(),
            Self::Auth => auth::canonical(text),
            Self::Key(_)
            | Self::Jwt
            | Self::Cookie
            | Self::Urlcred
            | Self::Secret
            | Self::Entropy => text.to_owned(),
        }
    }
}

/// What leads a scanner to a place in the text.
pub(crate) enum Anchor {
    /// Literals, any letter case. The scanner gets the place and which literal it was.
    Literals(
        &'static [&'static str],
        fn(&str, usize, &'static str, &mut scan::Hits),
    ),
    /// Runs of ASCII digits. The scanner gets their start and end.
    Digits(fn(&str, usize, usize, &mut scan::Hits)),
    /// A scanner that searches for itself.
    Text(fn(&str, &mut scan::Hits)),
    /// One or two single bytes.
    Bytes(u8, u8, fn(&str, usize, &mut scan::Hits)),
}

/// One entity: a file of this folder.
pub(crate) struct Entity {
    /// Name of its file.
    pub(crate) name: &'static str,
    /// What leads to it.
    pub(crate) anchor: Anchor,
}

/// Every entity. To add one: one file and one line here.
pub(crate) const ENTITIES: &[Entity] = &[
    privkey::ENTITY,
    keys::ENTITY,
    barekeys::ENTITY,
    jwt::ENTITY,
    auth::ENTITY,
    urlcred::ENTITY,
    secret::ENTITY,
    pan::ENTITY,
    iban::ENTITY,
    ssn::ENTITY,
    natid::ENTITY,
    email::ENTITY,
    phone::ENTITY,
    term::ENTITY,
    entropy::ENTITY,
    network::ENTITY,
];

/// Names of all entities, as docs/redaction.md explains them.
pub fn entities() -> impl Iterator<Item = &'static str> {
    ENTITIES.iter().map(|entity| entity.name)
}

/// What a run of the redactor did, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Bytes read.
    pub bytes_in: u64,
    /// Bytes written.
    pub bytes_out: u64,
    /// Lines read.
    pub lines: u64,
    /// Messages scanned.
    pub messages: u64,
    /// Bytes visited by scanners and decoders.
    pub work_units: u64,
    /// Values replaced by kind.
    pub counts: BTreeMap<&'static str, u64>,
    /// Messages or runs dropped by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Values that stayed because the site allows them.
    pub allowed: u64,
    /// Brackets in the form of a token that were no token of this key.
    pub forged: u64,
    /// What was replaced where.
    pub findings: Vec<Finding>,
}

/// One replaced value; it never contains the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Line, from 1.
    pub line: u64,
    /// First byte in the source.
    pub start: u64,
    /// End in the source.
    pub end: u64,
    /// Kind.
    pub kind: &'static str,
    /// The rule that found it.
    pub rule: &'static str,
    /// The decoders that led to it, outermost first.
    pub views: Vec<&'static str>,
    /// False when the checksum of a key is wrong.
    pub verified: bool,
    /// What stands there now.
    pub token: String,
}

impl Report {
    /// Number of values replaced.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    fn count(&mut self, kind: &'static str) {
        let slot = self.counts.entry(kind).or_default();
        *slot = slot.saturating_add(1);
    }

    fn drop_for(&mut self, reason: &'static str) {
        let slot = self.dropped.entry(reason).or_default();
        *slot = slot.saturating_add(1);
    }

    /// True when nothing was found, dropped or forged.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty() && self.dropped.is_empty() && self.forged == 0
    }
}

/// Redacts a whole text. Line i of the result is line i of the text.
#[must_use]
pub fn redact(text: &str, key: &RedactKey) -> (String, Report) {
    let mut redactor = Redactor::new(key);
    let out = redactor.text(text);
    (out, redactor.into_report())
}

/// True when `name` is the name of a secret and `value` is one.
pub(crate) fn is_sensitive_field(name: &str, value: &str) -> bool {
    secret::is_sensitive(name) && value.len() > 1 && !secret::is_placeholder(value)
}

/// Runs of base64 and hexadecimal digits that decode to text, with that text.
pub(crate) fn decoded_runs(text: &str) -> Vec<(usize, usize, String)> {
    basen::texts(text)
}

#[cfg(test)]
mod entity_tests;
#[cfg(test)]
mod identifier_tests;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_complaints;
#[cfg(test)]
mod tests_matrix;
#[cfg(test)]
mod tests_rules;
