//! Canonical bytes: the strict JSON parser of guard 5.1.1, RFC 8785 (JCS) and base64url.
//!
//! What is hashed or signed anywhere in the product passes through here. The parser refuses what
//! JSON libraries silently repair (duplicate keys, lone surrogates, `2^53+1`, `-0`, a byte order
//! mark), so that a text has one meaning and [`Value::to_jcs`] of it has one spelling.

mod b64;
mod jcs;
mod parse;

use std::collections::BTreeMap;

pub use b64::{b64std, b64url, unb64std, unb64url};
pub use parse::{Error, Limits, What, parse};

/// The largest integer that JSON may hold here: 2^53 - 1 (guard 5.1.1).
pub const MAX_INT: i64 = (1 << 53) - 1;

/// A JSON value whose only numbers are integers within +-[`MAX_INT`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Value>),
    /// An object.
    Map(BTreeMap<String, Value>),
}

impl Value {
    /// An object from its members.
    pub fn map<K: Into<String>>(members: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(members.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }

    /// A string, or `null` where there is none.
    pub fn text_or_null<T: Into<String>>(text: Option<T>) -> Self {
        text.map_or(Self::Null, |t| Self::Text(t.into()))
    }

    /// An integer, or `null` where there is none.
    #[must_use]
    pub fn int_or_null(number: Option<i64>) -> Self {
        number.map_or(Self::Null, Self::Int)
    }

    /// The RFC 8785 text of this value.
    #[must_use]
    pub fn to_jcs(&self) -> String {
        let mut out = String::new();
        jcs::write(self, &mut out);
        out
    }

    /// The member `key` of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_map()?.get(key)
    }

    /// The string, if this is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if this is one.
    #[must_use]
    pub const fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The truth value, if this is one.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The items, if this is an array.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            _ => None,
        }
    }

    /// The members, if this is an object.
    #[must_use]
    pub const fn as_map(&self) -> Option<&BTreeMap<String, Self>> {
        match self {
            Self::Map(members) => Some(members),
            _ => None,
        }
    }

    /// Whether this is `null`.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The members of an object that has exactly these keys, no more and no fewer.
    #[must_use]
    pub fn exactly(&self, keys: &[&str]) -> Option<&BTreeMap<String, Self>> {
        let members = self.as_map()?;
        let all = members.len() == keys.len() && keys.iter().all(|k| members.contains_key(*k));
        all.then_some(members)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}
