//! IL-01: no tool of this run returned evidence about the target.

use super::Facts;
use crate::claim::Proposal;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    let target = &proposal.target().name;
    (!facts.investigated.contains(target))
        .then(|| format!("no tool of this run returned evidence about `{target}`"))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, restart};

    #[test]
    fn a_target_that_was_looked_at_passes() {
        let (proposal, facts) = restart();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_target_that_nothing_was_read_about_is_refused() {
        let (proposal, mut facts) = restart();
        facts.investigated.remove("ledger");
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
