//! IL-24: a rollback needs a cited, linked change of that deploy and, beside it, a cited symptom.

use super::{Facts, binds_a_change};
use crate::claim::Proposal;
use crate::diagnosis::CulpritKind;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    if !binds_a_change(proposal.class()) {
        return None;
    }
    let Some(hypothesis) = facts.hypothesis(proposal.hypothesis()) else {
        return Some("no hypothesis names a change".to_owned());
    };
    let names_it = hypothesis.culprit.kind == CulpritKind::Deploy
        && proposal.deploy() == Some(hypothesis.culprit.id.as_str());
    if !names_it || hypothesis.change_evidence.is_empty() {
        return Some("no change of that deploy is linked to the failing path".to_owned());
    }
    let symptom = |c| !hypothesis.change_evidence.contains(c);
    (!hypothesis.supporting.iter().any(symptom)).then(|| "no symptom is cited".to_owned())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, rollback};

    #[test]
    fn a_linked_change_and_a_symptom_pass() {
        let (proposal, facts) = rollback();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn nearness_in_time_without_a_linked_change_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.hypotheses[0].change_evidence.clear();
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn a_change_without_a_symptom_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.hypotheses[0].supporting = facts.hypotheses[0].change_evidence.clone();
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn the_change_of_another_deploy_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.hypotheses[0].culprit.id = "d1".to_owned();
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
