//! IL-20: no deploy history, no rollback.

use super::{EVIDENCE_MAX_AGE_MS, Facts, WINDOW_MS, binds_a_change};
use crate::claim::Proposal;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, now: Millis) -> Option<String> {
    if !binds_a_change(proposal.class()) {
        return None;
    }
    let Some(history) = &facts.history else {
        let failed = facts.failed_tools.iter().find(|t| t.tool == "deploys");
        return Some(failed.map_or_else(
            || "no deploy history was read".to_owned(),
            |tool| format!("the deploy history did not answer: `{}`", tool.code),
        ));
    };
    if history.truncated {
        return Some("the deploy history is truncated".to_owned());
    }
    if now.since(history.covers_to) > EVIDENCE_MAX_AGE_MS {
        return Some("the deploy history ends before now".to_owned());
    }
    let onset = facts.onset.as_ref()?;
    (history.covers_from > onset.at.plus(-WINDOW_MS))
        .then(|| "the deploy history begins less than 30 minutes before the onset".to_owned())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, restart, rollback};

    #[test]
    fn a_complete_history_passes() {
        let (proposal, facts) = rollback();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_restart_needs_no_history() {
        let (proposal, mut facts) = restart();
        facts.history = None;
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn rollback_is_refused_when_deploy_history_is_missing() {
        let (proposal, mut facts) = rollback();
        facts.history = None;
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn rollback_is_refused_when_deploy_history_is_truncated_or_short() {
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().truncated = true;
        assert!(check(&proposal, &facts, NOW).is_some());
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().covers_from = NOW.plus(-600_000);
        assert!(check(&proposal, &facts, NOW).is_some());
        let (proposal, mut facts) = rollback();
        facts.history.as_mut().unwrap().covers_to = NOW.plus(-3_600_000);
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
