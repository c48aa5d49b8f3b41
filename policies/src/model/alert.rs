//! An alert as every source is normalised to (protocols.md 4.1.5).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Millis;

/// Firing or resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertStatus {
    /// The condition holds.
    Firing,
    /// The condition is over.
    Resolved,
}

/// How bad the source says it is. `Unknown` is treated as a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Not said, or not understood.
    Unknown,
    /// For information.
    Info,
    /// Someone should look.
    Warning,
    /// Something fails.
    Error,
    /// Users are hurt.
    Critical,
}

impl Severity {
    /// The word in lists and in notifications.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// What had to be assumed while an alert was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertFlag {
    /// No start time was given: the time of receipt stands for it.
    TimeAssumed,
    /// The start lay more than five minutes ahead and was clamped.
    ClockSkew,
    /// No label names a service.
    ServiceUnknown,
    /// The source left alerts of this group out.
    PartialGroup,
}

/// One alert. Its texts are outside text that has passed the redactor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// Name of the intake that took it.
    pub source: String,
    /// Keyed digest of (tenant, source kind, native key), 64 hexadecimal digits.
    pub dedup_key: String,
    /// Firing or resolved.
    pub status: AlertStatus,
    /// Severity by the source.
    pub severity: Severity,
    /// Name of the alert.
    pub name: String,
    /// The service it is about; empty with [`AlertFlag::ServiceUnknown`].
    pub service: String,
    /// Environment, empty when not given.
    pub environment: String,
    /// Start of the condition.
    pub starts_at: Millis,
    /// End of the condition; `None` while it holds.
    pub ends_at: Option<Millis>,
    /// When it came in.
    pub received_at: Millis,
    /// One line.
    pub summary: String,
    /// More lines.
    pub description: String,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// All annotations.
    pub annotations: BTreeMap<String, String>,
    /// The group that the source put it into, empty when none.
    pub group_key: String,
    /// What was assumed.
    pub flags: Vec<AlertFlag>,
}
