//! From candidates to a ranked list and a conclusion.

use std::collections::BTreeMap;

use super::{Case, Confidence, Culprit, Diagnosis, RULES_VERSION, Verdict};
use crate::model::CauseClass;

/// Diagnoses a case. The same case gives the same diagnosis, byte for byte.
#[must_use]
pub fn diagnose(case: &Case<'_>) -> Diagnosis {
    let missing = case
        .failed_tools
        .iter()
        .map(|t| format!("the answer of `{}` from `{}`", t.tool, t.source));
    Diagnosis {
        rules: RULES_VERSION,
        at: case.now,
        onset: None,
        facts: Vec::new(),
        hypotheses: Vec::new(),
        verdict: Verdict {
            hypothesis: None,
            cause_class: CauseClass::Inconclusive,
            culprit: Culprit::none(),
            confidence: Confidence::Low,
        },
        missing: missing.collect(),
        checks: Vec::new(),
        allowed: Vec::new(),
        seen_deploys: BTreeMap::new(),
    }
}
