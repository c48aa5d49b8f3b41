//! IL-23: the deploy began after the onset, compared at the resolution of the signal and never
//! finer than a minute, since the first changed sample may bear the minute before the deploy.

use super::{Facts, binds_a_change};
use crate::claim::Proposal;
use crate::model::Millis;

const FINEST_MS: i64 = 60_000;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    if !binds_a_change(proposal.class()) {
        return None;
    }
    let onset = facts.onset.as_ref()?;
    let deploy = facts.deploy(proposal.deploy()?)?;
    let resolution = onset.resolution_ms.max(FINEST_MS);
    (deploy.started_at > onset.at.plus(resolution))
        .then(|| format!("deploy `{}` began after the onset", deploy.id))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, ONSET, rollback};

    #[test]
    fn a_deploy_within_the_minute_of_the_onset_passes() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys[1].started_at = ONSET.plus(60_000);
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_deploy_after_the_onset_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys[1].started_at = ONSET.plus(60_001);
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
