//! IL-22: the deploy began more than thirty minutes before the onset.

use super::{Facts, WINDOW_MS, binds_a_change};
use crate::claim::Proposal;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    if !binds_a_change(proposal.class()) {
        return None;
    }
    let onset = facts.onset.as_ref()?;
    let deploy = facts.deploy(proposal.deploy()?)?;
    (deploy.started_at < onset.at.plus(-WINDOW_MS)).then(|| {
        format!(
            "deploy `{}` began more than 30 minutes before the onset",
            deploy.id
        )
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, ONSET, rollback};

    #[test]
    fn a_deploy_half_an_hour_before_the_onset_passes() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys[1].started_at = ONSET.plus(-1_800_000);
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn an_older_deploy_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys[1].started_at = ONSET.plus(-1_800_001);
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
