//! IL-25: a cause outside the code signals, or a check that this site could answer was left out.

use super::{Facts, binds_a_change};
use crate::claim::Proposal;
use crate::diagnosis::{CHECKS, CheckState, ExternalCheck};
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    if !binds_a_change(proposal.class()) {
        return None;
    }
    let done = |name: &str| facts.checks.iter().any(|c| c.name == name);
    if let Some(name) = CHECKS.iter().find(|name| !done(name)) {
        return Some(format!("the check `{name}` was left out"));
    }
    facts
        .checks
        .iter()
        .find_map(|found| objection(found, facts))
}

fn objection(check: &ExternalCheck, facts: &Facts) -> Option<String> {
    let before = |at: Millis| {
        let onset = facts.onset.as_ref();
        onset.is_none_or(|onset| at <= onset.at.plus(onset.resolution_ms))
    };
    match check.state {
        CheckState::Clear => None,
        CheckState::Signal => check
            .onset
            .is_none_or(before)
            .then(|| format!("the check `{}` signals: {}", check.name, check.note)),
        CheckState::Unknown => check
            .answerable
            .then(|| format!("the check `{}` did not answer: {}", check.name, check.note)),
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::diagnosis::CheckState;
    use crate::interlocks::fixture::{NOW, ONSET, rollback};

    #[test]
    fn clear_checks_pass() {
        let (proposal, facts) = rollback();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_check_that_this_site_cannot_answer_passes() {
        let (proposal, mut facts) = rollback();
        facts.checks[0].state = CheckState::Unknown;
        facts.checks[0].answerable = false;
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_signal_that_began_after_the_incident_passes() {
        let (proposal, mut facts) = rollback();
        facts.checks[0].state = CheckState::Signal;
        facts.checks[0].onset = Some(ONSET.plus(300_000));
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_signal_at_the_onset_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.checks[0].state = CheckState::Signal;
        facts.checks[0].onset = Some(ONSET);
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn an_unanswered_or_absent_check_is_refused() {
        let (proposal, mut facts) = rollback();
        facts.checks[0].state = CheckState::Unknown;
        facts.checks[0].answerable = true;
        assert!(check(&proposal, &facts, NOW).is_some());
        let (proposal, mut facts) = rollback();
        facts.checks.remove(0);
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
