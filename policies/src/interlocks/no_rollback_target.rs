//! IL-27: there is nothing good to go back to.

use super::{Facts, binds_a_change};
use crate::claim::Proposal;
use crate::model::{DeployStatus, Millis};

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    if !binds_a_change(proposal.class()) {
        return None;
    }
    let deploy = facts.deploy(proposal.deploy()?)?;
    let Some(previous) = &deploy.previous else {
        return Some(format!("deploy `{}` replaced no version", deploy.id));
    };
    if !deploy.previous_available {
        return Some(format!("version `{previous}` is no longer there"));
    }
    let history = facts.history.as_ref()?;
    history
        .deploys
        .iter()
        .filter(|d| d.service == deploy.service && d.version == *previous)
        .any(|d| matches!(d.status, DeployStatus::Failed | DeployStatus::RolledBack))
        .then(|| format!("version `{previous}` failed or was put back before"))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, rollback};
    use crate::model::DeployStatus;

    #[test]
    fn a_release_that_is_still_there_passes() {
        let (proposal, facts) = rollback();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_release_that_is_gone_or_never_was_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys[1].previous_available = false;
        assert!(check(&proposal, &facts, NOW).is_some());
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys[1].previous = None;
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn a_release_that_was_put_back_itself_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys[0].status = DeployStatus::RolledBack;
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
