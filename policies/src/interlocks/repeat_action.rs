//! IL-11: the same action on the same target within thirty minutes in any incident, or before in this one.

use super::{Facts, WINDOW_MS};
use crate::claim::Proposal;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, now: Millis) -> Option<String> {
    let target = &proposal.target().name;
    let same = |class, name: &String| class == proposal.class() && name == target;
    facts
        .recent
        .iter()
        .filter(|done| same(done.class, &done.target))
        .find(|done| done.incident == *proposal.incident() || now.since(done.at) < WINDOW_MS)
        .map(|done| {
            format!(
                "`{}` of `{target}` was already done at {}",
                done.class, done.at
            )
        })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, done, restart};

    #[test]
    fn a_first_action_passes() {
        let (proposal, facts) = restart();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn the_same_action_of_another_incident_an_hour_ago_passes() {
        let (proposal, mut facts) = restart();
        facts.recent.push(done(&proposal, 9, NOW.plus(-3_600_000)));
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn the_same_action_ten_minutes_ago_is_refused() {
        let (proposal, mut facts) = restart();
        facts.recent.push(done(&proposal, 9, NOW.plus(-600_000)));
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn a_second_time_in_one_incident_is_refused() {
        let (proposal, mut facts) = restart();
        facts.recent.push(done(&proposal, 1, NOW.plus(-7_200_000)));
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
