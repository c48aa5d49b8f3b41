//! IL-05: the cause is not corroborated on the blamed component itself (guard rails 8.2).

use super::Facts;
use crate::claim::Proposal;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    let hypothesis = facts.hypothesis(proposal.hypothesis())?;
    (!hypothesis.corroborated).then(|| {
        format!(
            "fewer than two independent observations of `{}`, one of them by a machine",
            hypothesis.service
        )
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, restart};

    #[test]
    fn two_independent_observations_pass() {
        let (proposal, facts) = restart();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn one_voice_alone_is_refused() {
        let (proposal, mut facts) = restart();
        facts.hypotheses[0].corroborated = false;
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
