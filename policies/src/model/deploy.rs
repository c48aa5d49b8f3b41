//! Deploy history: what changed, when, and how it differs from what ran before.

use serde::{Deserialize, Serialize};

use super::Millis;

/// How a deploy ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeployStatus {
    /// Begun, not finished.
    Started,
    /// Finished.
    Succeeded,
    /// Did not finish.
    Failed,
    /// Put back later.
    RolledBack,
}

/// One deploy record (protocols.md 5, deploy feed) with its difference to the release before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deploy {
    /// Id of the record.
    pub id: String,
    /// Service it changed.
    pub service: String,
    /// Version it brought.
    pub version: String,
    /// Version that ran before; `None` for a first deploy.
    pub previous_version: Option<String>,
    /// Commit it carries, if known.
    pub commit: Option<String>,
    /// Begin.
    pub started_at: Millis,
    /// End; `None` while it runs.
    pub finished_at: Option<Millis>,
    /// Outcome.
    pub status: DeployStatus,
    /// Who started it.
    pub actor: String,
    /// Free text of the deploy (commit message). Untrusted and never evidence of a cause.
    pub message: String,
    /// True when the release before is still there, whole, to go back to.
    pub previous_available: bool,
    /// Changed files; empty when the releases are equal, `None` when one could not be read.
    pub diff: Option<Vec<FileDiff>>,
}

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileDiff {
    /// Path inside the release.
    pub path: String,
    /// Hunks in file order.
    pub hunks: Vec<Hunk>,
}

/// One hunk of a unified diff.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hunk {
    /// `@@ ... @@` line, with the enclosing function when known.
    pub header: String,
    /// Lines with their leading ` `, `-` or `+`.
    pub lines: Vec<String>,
}

/// What a deploy source answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeployHistory {
    /// From when on the history is complete.
    pub covers_from: Millis,
    /// Until when.
    pub covers_to: Millis,
    /// True when records were left out.
    pub truncated: bool,
    /// Version in force for each service: what the release link shows now.
    pub in_force: std::collections::BTreeMap<String, String>,
    /// Oldest first.
    pub deploys: Vec<Deploy>,
}
