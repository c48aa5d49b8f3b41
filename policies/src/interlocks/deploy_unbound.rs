//! IL-21: the rollback is bound to one deploy record of the target, with its versions, and that
//! deploy is part of what runs now.
//!
//! A later deploy of the same service may run on top: then the version in force is that one's, and
//! the chain from the deploy to it must be unbroken.

use super::facts::{DeployFact, HistoryFact};
use super::{Facts, binds_a_change};
use crate::claim::Proposal;
use crate::diagnosis::ParamValue;
use crate::model::{DeployStatus, Millis};

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    if !binds_a_change(proposal.class()) {
        return None;
    }
    let Some(id) = proposal.deploy() else {
        return Some("the proposal names no deploy".to_owned());
    };
    let (Some(history), Some(deploy)) = (&facts.history, facts.deploy(id)) else {
        return Some(format!("there is no deploy record `{id}` in evidence"));
    };
    if deploy.service != proposal.target().name {
        return Some(format!("deploy `{id}` is one of `{}`", deploy.service));
    }
    let Some(in_force) = history.in_force.get(&deploy.service) else {
        return Some("the version in force is not known".to_owned());
    };
    if text(proposal, "from") != Some(in_force.as_str()) {
        return Some(format!(
            "`{in_force}` is in force, and not what is to be replaced"
        ));
    }
    if text(proposal, "to") != deploy.previous.as_deref() {
        return Some(format!("deploy `{id}` did not replace that version"));
    }
    (!runs(history, deploy, in_force))
        .then(|| format!("deploy `{id}` is no longer part of what runs"))
}

fn runs(history: &HistoryFact, deploy: &DeployFact, in_force: &str) -> bool {
    if matches!(
        deploy.status,
        DeployStatus::Failed | DeployStatus::RolledBack
    ) {
        return false;
    }
    let mut later: Vec<&DeployFact> = history
        .deploys
        .iter()
        .filter(|d| d.service == deploy.service && d.started_at > deploy.started_at)
        .filter(|d| !matches!(d.status, DeployStatus::Failed | DeployStatus::RolledBack))
        .collect();
    later.sort_by_key(|d| d.started_at);
    let mut top = deploy.version.as_str();
    for next in later {
        if next.previous.as_deref() != Some(top) || Some(&next.version) == deploy.previous.as_ref()
        {
            return false;
        }
        top = next.version.as_str();
    }
    top == in_force
}

fn text<'a>(proposal: &'a Proposal, name: &str) -> Option<&'a str> {
    match proposal.change().get(name) {
        Some(ParamValue::Text(text)) => Some(text),
        Some(ParamValue::Int(_) | ParamValue::Bool(_)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, deploy, rollback};

    #[test]
    fn the_deploy_in_force_passes() {
        let (proposal, facts) = rollback();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_deploy_without_a_record_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys.clear();
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn a_deploy_of_another_service_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys[1].service = "basket".to_owned();
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn versions_that_are_not_those_of_the_record_are_refused() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().deploys[1].previous = Some("1.3.9".to_owned());
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn a_deploy_that_was_undone_since_is_refused() {
        let (proposal, mut facts) = rollback();
        let history = facts.history.as_mut().unwrap();
        let undo = deploy("d9", "1.4.0", Some("1.4.1"), NOW.plus(-1_000));
        history.deploys.push(undo);
        history
            .in_force
            .insert("till".to_owned(), "1.4.0".to_owned());
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
