//! The policy: who may propose, approve and execute what (guard 2.2, 2.4).
//!
//! Default deny. [`Policy::parse`] is the only constructor, so a `Policy` in hand is a valid one.

mod check;
mod file;
mod types;

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

pub use file::{ActionRule, Forbid, Identity, Issuer, Limits, Person, Root, TargetSchema};
pub use types::{Assurance, Kind, Peer, Role, is_id};

use crate::canon;

/// The executor name of Sentinel's own remediate workers.
pub const INTERNAL_WORKER: &str = "internal:worker";

/// Why a policy is not taken: every problem of the file, in its order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the policy has {} problem(s): {}", problems.len(), problems.join("; "))]
pub struct Error {
    /// One sentence each.
    pub problems: Vec<String>,
}

/// A validated policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    file: file::File,
    hash: String,
}

impl Policy {
    /// Reads and validates a policy file.
    ///
    /// # Errors
    /// All problems of the file at once: its syntax, or everything that guard 2.3 and 2.4 refuse.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let file: file::File = toml::from_str(text).map_err(|e| Error {
            problems: vec![e.to_string().trim().to_owned()],
        })?;
        let problems = check::problems(&file);
        if !problems.is_empty() {
            return Err(Error { problems });
        }
        let hash = hash(&file)?;
        Ok(Self { file, hash })
    }

    /// SHA-256 of the normalised policy, base64url (guard 2.4.2).
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Name of the site: the log's origin starts with it.
    #[must_use]
    pub fn site(&self) -> &str {
        &self.file.site
    }

    /// Quotas and the cool-down.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.file.limits
    }

    /// Root keys, if the site has any.
    #[must_use]
    pub fn root(&self) -> Option<&Root> {
        self.file.root.as_ref()
    }

    /// The identity that a peer is.
    #[must_use]
    pub fn identity(&self, peer: &Peer) -> Option<&Identity> {
        self.file.identity.iter().find(|i| i.peer == *peer)
    }

    /// The rule of an action by its name.
    #[must_use]
    pub fn action(&self, name: &str) -> Option<&ActionRule> {
        self.file.action.iter().find(|a| a.name == name)
    }

    /// A person by id.
    #[must_use]
    pub fn person(&self, id: &str) -> Option<&Person> {
        self.file.person.iter().find(|p| p.id == id)
    }

    /// The person that a subject belongs to.
    #[must_use]
    pub fn person_of_subject(&self, subject: &str) -> Option<&Person> {
        self.file
            .person
            .iter()
            .find(|p| p.subjects.iter().any(|s| s == subject))
    }

    /// True where a `forbid` entry matches; it wins over any permission (guard 2.4.1).
    #[must_use]
    pub fn forbids(&self, action: &str, namespace: &str) -> bool {
        let hit = |pattern: &str, text: &str| pattern == "*" || pattern == text;
        self.file
            .forbid
            .iter()
            .any(|f| hit(&f.action, action) && hit(&f.namespace, namespace))
    }

    /// True where `person` is among those who decide about `rule`.
    #[must_use]
    pub fn may_approve(&self, rule: &ActionRule, person: &Person) -> bool {
        rule.may_approve
            .iter()
            .any(|group| person.is_in(group.trim_start_matches("group:")))
    }

    /// True where `person` decides about at least one action.
    #[must_use]
    pub fn approves_anything(&self, person: &Person) -> bool {
        self.file.action.iter().any(|r| self.may_approve(r, person))
    }

    /// The groups of `must_include` that none of `approvers` (person ids) is in.
    #[must_use]
    pub fn missing_groups<'a>(
        &self,
        rule: &'a ActionRule,
        approvers: &BTreeSet<&str>,
    ) -> Vec<&'a str> {
        rule.must_include
            .iter()
            .map(|group| group.trim_start_matches("group:"))
            .filter(|group| {
                !approvers
                    .iter()
                    .any(|id| self.person(id).is_some_and(|p| p.is_in(group)))
            })
            .collect()
    }
}

/// Comments and layout do not count, since the bytes that are hashed are made from the typed file.
fn hash(file: &file::File) -> Result<String, Error> {
    let limits = canon::Limits {
        max_bytes: 1 << 22,
        max_depth: 10,
    };
    let problem = |text: String| Error {
        problems: vec![text],
    };
    let json = serde_json::to_vec(file).map_err(|e| problem(e.to_string()))?;
    let value = canon::parse(&json, limits).map_err(|e| problem(e.to_string()))?;
    Ok(canon::b64url(&Sha256::digest(value.to_jcs().as_bytes())))
}

#[cfg(test)]
mod tests;
