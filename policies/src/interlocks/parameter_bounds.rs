//! IL-10: a number lies outside the bounds of the site, is nothing at all, or is too big a step.

use super::Facts;
use crate::claim::Proposal;
use crate::diagnosis::{ExecutorFact, ParamValue};
use crate::model::{Millis, RemediationClass};

/// A number may at most double or be halved in one step.
const STEP_FACTOR: i64 = 2;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    match proposal.class() {
        RemediationClass::Resize | RemediationClass::Scale => judge_number(proposal, facts),
        RemediationClass::Rollback
        | RemediationClass::ConfigRevert
        | RemediationClass::FeatureFlagDisable
        | RemediationClass::Restart
        | RemediationClass::Reschedule
        | RemediationClass::Failover
        | RemediationClass::RotateCert
        | RemediationClass::PurgeBadData
        | RemediationClass::RollForward
        | RemediationClass::Escalate
        | RemediationClass::NoAction => None,
    }
}

fn judge_number(proposal: &Proposal, facts: &Facts) -> Option<String> {
    let (Some(from), Some(to)) = (int(proposal, "from"), int(proposal, "to")) else {
        return Some("`from` and `to` are not both numbers".to_owned());
    };
    let Some(executor) = facts.executors.iter().find(|e| serves(e, proposal)) else {
        return Some("this site sets no bounds for that value".to_owned());
    };
    if to < 1 {
        return Some(format!("{to} would leave nothing"));
    }
    if let Some((min, max)) = executor.bounds
        && !(min..=max).contains(&to)
    {
        return Some(format!("{to} is outside the bounds {min} to {max}"));
    }
    if executor.current.is_some_and(|now| now != from) {
        return Some(format!("the value in force is not {from}"));
    }
    let too_big = to > from.saturating_mul(STEP_FACTOR) || to.saturating_mul(STEP_FACTOR) < from;
    too_big.then(|| format!("from {from} to {to} is more than a factor of {STEP_FACTOR}"))
}

fn serves(executor: &ExecutorFact, proposal: &Proposal) -> bool {
    let key = match proposal.change().get("key") {
        Some(ParamValue::Text(key)) => Some(key),
        Some(ParamValue::Int(_) | ParamValue::Bool(_)) | None => None,
    };
    executor.class == proposal.class()
        && executor.target == proposal.target().name
        && executor.key.as_ref() == key
}

fn int(proposal: &Proposal, name: &str) -> Option<i64> {
    match proposal.change().get(name) {
        Some(ParamValue::Int(number)) => Some(*number),
        Some(ParamValue::Text(_) | ParamValue::Bool(_)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, resize, restart};

    #[test]
    fn a_number_inside_the_bounds_passes() {
        let (proposal, facts) = resize(8, 12);
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn an_action_without_a_number_passes() {
        let (proposal, facts) = restart();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_number_outside_the_bounds_is_refused() {
        let (proposal, facts) = resize(40, 65);
        assert!(check(&proposal, &facts, NOW).unwrap().contains("bounds"));
    }

    #[test]
    fn a_step_beyond_the_double_is_refused() {
        let (proposal, facts) = resize(8, 17);
        assert!(check(&proposal, &facts, NOW).unwrap().contains("factor"));
        let (proposal, facts) = resize(16, 7);
        assert!(check(&proposal, &facts, NOW).unwrap().contains("factor"));
    }

    #[test]
    fn zero_is_refused() {
        let (proposal, facts) = resize(1, 0);
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn a_value_that_changed_meanwhile_is_refused() {
        let (proposal, mut facts) = resize(8, 12);
        facts.executors[0].current = Some(10);
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
