//! The members of `policy.toml` (guard 2.4).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::types::{Assurance, Kind, Peer, Role};

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) version: i64,
    pub(super) site: String,
    #[serde(default)]
    pub(super) limits: Limits,
    #[serde(default)]
    pub(super) root: Option<Root>,
    #[serde(default)]
    pub(super) issuer: Vec<Issuer>,
    #[serde(default)]
    pub(super) identity: Vec<Identity>,
    #[serde(default)]
    pub(super) person: Vec<Person>,
    #[serde(default)]
    pub(super) forbid: Vec<Forbid>,
    #[serde(default)]
    pub(super) action: Vec<ActionRule>,
}

/// Quotas and the cool-down after a denial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Pending actions of one requester.
    pub pending_per_requester: i64,
    /// Proposals of one requester in an hour.
    pub proposals_per_requester_per_hour: i64,
    /// Leaves for refusals of one caller in a minute.
    pub refused_leaves_per_caller_per_minute: i64,
    /// Hours for which a denied digest is refused.
    pub deny_cooldown_h: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pending_per_requester: 20,
            proposals_per_requester_per_hour: 60,
            refused_leaves_per_caller_per_minute: 30,
            deny_cooldown_h: 24,
        }
    }
}

/// Root keys of the log (guard 6.4.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// Keys as vkey texts.
    pub keys: Vec<String>,
    /// How many of them must sign.
    pub threshold: i64,
}

/// An issuer of id_tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    /// Short name, used in subjects.
    pub id: String,
    /// Exact `iss`.
    pub iss: String,
    /// Client ids.
    pub aud: Vec<String>,
    /// Algorithms.
    pub algs: Vec<String>,
    /// File of pinned keys.
    pub jwks_file: String,
}

/// A caller of the guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Name in leaves.
    pub id: String,
    /// Its one role.
    pub role: Role,
    /// How it is recognised.
    pub peer: Peer,
    /// Tenants that an agent proposes for.
    #[serde(default)]
    pub tenants: Vec<String>,
}

/// A person who decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// The one id that approvals are counted by.
    pub id: String,
    /// Names under which the person logs in.
    pub subjects: Vec<String>,
    /// Groups.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Local user, if any.
    #[serde(default)]
    pub uid: Option<u32>,
}

impl Person {
    /// True where the person belongs to `group`.
    #[must_use]
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// A prohibition; `*` stands for any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forbid {
    /// Action name or `*`.
    pub action: String,
    /// Tenant or `*`.
    #[serde(default = "any")]
    pub namespace: String,
}

fn any() -> String {
    "*".to_owned()
}

/// Types of the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSchema {
    /// The tenant.
    pub namespace: Kind,
    /// The service.
    pub name: Kind,
}

/// The rule of one action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionRule {
    /// Name of the action.
    pub name: String,
    /// Identities that propose it.
    pub may_propose: Vec<String>,
    /// `group:NAME` of those who decide.
    pub may_approve: Vec<String>,
    /// Identities that execute it, or `internal:worker`.
    pub executors: Vec<String>,
    /// How many distinct people must approve.
    pub approvals: i64,
    /// `group:NAME` of which at least one approver must be a member.
    #[serde(default)]
    pub must_include: Vec<String>,
    /// Floor for approvals.
    pub min_assurance: Assurance,
    /// How long it may wait for a decision.
    #[serde(default = "pending_ttl_h")]
    pub pending_ttl_h: i64,
    /// How long an approval lasts.
    #[serde(default = "approval_ttl_s")]
    pub approval_ttl_s: i64,
    /// How long the effect may take.
    pub effect_timeout_s: i64,
    /// Types of the target.
    pub target: TargetSchema,
    /// Types of the parameters.
    pub change: BTreeMap<String, Kind>,
}

fn pending_ttl_h() -> i64 {
    72
}

fn approval_ttl_s() -> i64 {
    600
}
