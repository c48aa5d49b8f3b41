//! IL-08: no alert of the incident is active any more.

use super::Facts;
use crate::claim::Proposal;
use crate::model::Millis;

pub(super) fn check(_proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    (!facts.alert_active).then(|| "no alert of the incident is firing any more".to_owned())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, restart};

    #[test]
    fn a_firing_alert_passes() {
        let (proposal, facts) = restart();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn an_alert_that_is_over_is_refused() {
        let (proposal, mut facts) = restart();
        facts.alert_active = false;
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
