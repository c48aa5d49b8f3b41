//! IL-03: no supported cause, or the verdict is `inconclusive` or `none`.

use super::Facts;
use crate::claim::Proposal;
use crate::model::{CauseClass, Millis};

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    if matches!(facts.verdict, CauseClass::None | CauseClass::Inconclusive) {
        return Some(format!("the verdict of the rules is `{}`", facts.verdict));
    }
    let Some(hypothesis) = facts.hypothesis(proposal.hypothesis()) else {
        return Some("no hypothesis stands behind the proposal".to_owned());
    };
    if let Some(why) = &hypothesis.rejected {
        return Some(format!("hypothesis {} was set aside: {why}", hypothesis.id));
    }
    hypothesis
        .supporting
        .is_empty()
        .then(|| format!("no evidence supports hypothesis {}", hypothesis.id))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, restart};
    use crate::model::CauseClass;

    #[test]
    fn a_cause_with_support_passes() {
        let (proposal, facts) = restart();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_verdict_that_names_no_cause_is_refused() {
        for verdict in [CauseClass::None, CauseClass::Inconclusive] {
            let (proposal, mut facts) = restart();
            facts.verdict = verdict;
            assert!(check(&proposal, &facts, NOW).is_some());
        }
    }

    #[test]
    fn a_cause_without_evidence_or_set_aside_is_refused() {
        let (proposal, mut facts) = restart();
        facts.hypotheses[0].supporting.clear();
        assert!(check(&proposal, &facts, NOW).is_some());
        let (proposal, mut facts) = restart();
        facts.hypotheses[0].rejected = Some("a victim".to_owned());
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
