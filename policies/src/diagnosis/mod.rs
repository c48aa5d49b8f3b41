//! Deterministic diagnosis (benchmark.md 9): from evidence to a ranked list of hypotheses.
//!
//! It runs before any token of a model and alone when there is none. No literal in here is the name
//! of a service, host, metric or path of any site: kinds of metrics are inferred from units, shape
//! and general suffixes (D17).

mod case;
mod types;
mod verdict;

pub use case::{Case, ExecutorFact, ToolFailure};
pub use types::{
    CheckState, Cite, Confidence, Culprit, CulpritKind, Diagnosis, ExternalCheck, Fact, Hypothesis,
    Onset, ParamValue, RULES_VERSION, Remedy, Verdict,
};
pub use verdict::diagnose;

/// The causes outside the code that are looked for before a change is blamed (benchmark.md D12,
/// guard rails 11.2.5).
pub const CHECKS: &[&str] = &[
    "credential",
    "provider",
    "name_resolution",
    "node",
    "disk",
    "quota",
    "traffic",
    "bad_data",
    "clock",
    "scheduled_job",
    "old_instances",
    "config_change",
];
