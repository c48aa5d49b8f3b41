//! IL-07: the deciding evidence does not reach from the onset to within ten minutes of now.

use super::{EVIDENCE_MAX_AGE_MS, Facts};
use crate::claim::Proposal;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, now: Millis) -> Option<String> {
    let hypothesis = facts.hypothesis(proposal.hypothesis())?;
    let pieces = || {
        hypothesis
            .supporting
            .iter()
            .filter_map(|c| facts.pieces.get(&c.evidence))
    };
    let newest = pieces().map(|p| p.to).max()?;
    if now.since(newest) > EVIDENCE_MAX_AGE_MS {
        return Some("the newest deciding evidence is older than ten minutes".to_owned());
    }
    let oldest = pieces().map(|p| p.from).min()?;
    let onset = facts.onset.as_ref()?;
    (oldest > onset.at.plus(onset.resolution_ms))
        .then(|| "the deciding evidence begins after the onset".to_owned())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, restart};

    #[test]
    fn evidence_from_the_onset_until_now_passes() {
        let (proposal, facts) = restart();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn evidence_of_an_hour_ago_is_refused() {
        let (proposal, facts) = restart();
        assert!(check(&proposal, &facts, NOW.plus(3_600_000)).is_some());
    }

    #[test]
    fn evidence_that_begins_after_the_onset_is_refused() {
        let (proposal, mut facts) = restart();
        for piece in facts.pieces.values_mut() {
            piece.from = NOW.plus(-1_000);
        }
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
