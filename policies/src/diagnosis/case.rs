//! What a diagnosis works on.

use serde::{Deserialize, Serialize};

use crate::claim::Evidence;
use crate::model::{Alert, Millis, RemediationClass};

/// Everything that is known at one moment. Nothing else enters a diagnosis.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    /// The moment.
    pub now: Millis,
    /// The alerts of the incident, oldest first, as they stand now.
    pub alerts: &'a [Alert],
    /// What the tools of this run brought.
    pub evidence: &'a [Evidence],
    /// The services of this site.
    pub inventory: &'a [String],
    /// What this site could do, whether or not it should.
    pub capabilities: &'a [ExecutorFact],
    /// Tools that were asked and did not answer.
    pub failed_tools: &'a [ToolFailure],
}

/// One enabled executor, as far as the rules need to know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorFact {
    /// Its name in the configuration.
    pub name: String,
    /// The class of action that it performs.
    pub class: RemediationClass,
    /// The service that it works on.
    pub target: String,
    /// The setting that it writes, for a value executor.
    pub key: Option<String>,
    /// Lowest and highest value allowed at this site.
    pub bounds: Option<(i64, i64)>,
    /// The value that stands there now.
    pub current: Option<i64>,
}

/// A tool call that brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFailure {
    /// Tool.
    pub tool: String,
    /// Source that was asked.
    pub source: String,
    /// Reason code of the scheduler.
    pub code: String,
}
