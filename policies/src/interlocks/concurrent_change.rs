//! IL-12: a deploy that neither the evidence nor the approver saw, or something in progress on the target.

use super::Facts;
use crate::claim::Proposal;
use crate::model::{DeployStatus, Millis};

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    let target = &proposal.target().name;
    if facts
        .recent
        .iter()
        .any(|a| a.in_progress && a.target == *target)
    {
        return Some(format!("another action on `{target}` is in progress"));
    }
    let newest = facts.history.as_ref().and_then(|history| {
        let own = history.deploys.iter().filter(|d| d.service == *target);
        own.max_by_key(|d| d.started_at)
    });
    match newest {
        Some(deploy) if deploy.status == DeployStatus::Started => Some(format!(
            "deploy `{}` of `{target}` is in progress",
            deploy.id
        )),
        Some(deploy) if proposal.seen_deploy() != Some(deploy.id.as_str()) => Some(format!(
            "deploy `{}` is newer than what was seen",
            deploy.id
        )),
        Some(_) => None,
        // What was seen may have left the window of the history; something newer would be in it.
        None if facts.history.is_some() => None,
        None => proposal
            .seen_deploy()
            .map(|_| "the deploy history can no longer be read".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, deploy, done, rollback};
    use crate::model::DeployStatus;

    #[test]
    fn the_history_that_was_seen_passes() {
        let (proposal, facts) = rollback();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_newer_deploy_is_refused() {
        let (proposal, mut facts) = rollback();
        let newer = deploy("d9", "1.4.2", Some("1.4.1"), NOW.plus(-1_000));
        facts.history.as_mut().unwrap().deploys.push(newer);
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn a_deploy_or_an_action_in_progress_is_refused() {
        let (proposal, mut facts) = rollback();
        let last = facts.history.as_mut().unwrap().deploys.last_mut().unwrap();
        last.status = DeployStatus::Started;
        assert!(check(&proposal, &facts, NOW).is_some());
        let (proposal, mut facts) = rollback();
        let mut other = done(&proposal, 9, NOW.plus(-7_200_000));
        other.in_progress = true;
        facts.recent.push(other);
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn a_deploy_that_left_the_window_of_the_history_passes() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys.clear();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_history_that_vanished_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.history = None;
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
