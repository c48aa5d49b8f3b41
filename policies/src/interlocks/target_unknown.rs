//! IL-02: the target is not in the inventory. Logs are no inventory.

use super::Facts;
use crate::claim::Proposal;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    let target = &proposal.target().name;
    (!facts.inventory.contains(target)).then(|| format!("`{target}` is no service of this site"))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, restart};

    #[test]
    fn a_service_of_the_site_passes() {
        let (proposal, facts) = restart();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_service_that_only_logs_know_is_refused() {
        let (proposal, mut facts) = restart();
        facts.inventory.remove("ledger");
        assert!(facts.investigated.contains("ledger"));
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
