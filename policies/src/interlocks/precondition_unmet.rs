//! IL-30: a condition of a runbook that was found for this incident and this action is false.

use super::Facts;
use super::preconditions::Truth;
use crate::claim::Proposal;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    facts
        .conditions
        .iter()
        .filter(|c| c.action == proposal.class() && c.target == proposal.target().name)
        .find(|c| c.met == Truth::False)
        .map(|c| format!("{} is not met", c.place))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, condition, restart};
    use crate::interlocks::preconditions::Truth;
    use crate::model::RemediationClass;

    #[test]
    fn a_condition_that_is_met_or_of_another_action_passes() {
        let (proposal, mut facts) = restart();
        facts.conditions = vec![
            condition(&proposal, proposal.class(), Truth::True),
            condition(&proposal, RemediationClass::Scale, Truth::False),
        ];
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_condition_that_is_false_is_refused() {
        let (proposal, mut facts) = restart();
        facts.conditions = vec![condition(&proposal, proposal.class(), Truth::False)];
        assert!(check(&proposal, &facts, NOW).unwrap().contains("till.md:4"));
    }
}
