//! IL-28: the onset is unknown.

use super::{Facts, binds_a_change};
use crate::claim::Proposal;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    (binds_a_change(proposal.class()) && facts.onset.is_none())
        .then(|| "no signal shows when the incident began".to_owned())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, restart, rollback};

    #[test]
    fn a_measured_onset_passes() {
        let (proposal, facts) = rollback();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_restart_needs_no_onset() {
        let (proposal, mut facts) = restart();
        facts.onset = None;
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_rollback_without_an_onset_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.onset = None;
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
