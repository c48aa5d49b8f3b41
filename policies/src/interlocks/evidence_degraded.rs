//! IL-06: a deciding citation is degraded. What is left without such pieces must still be two
//! pieces, and the change that a rollback rests on must have been read whole.
//!
//! A log that was cut to its loudest lines or a target that missed scrapes is incomplete, which the
//! diagnosis weighs; it is not degraded.

use std::collections::BTreeSet;

use super::Facts;
use crate::claim::Proposal;
use crate::diagnosis::Cite;
use crate::model::Millis;

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    let hypothesis = facts.hypothesis(proposal.hypothesis())?;
    if let Some(cite) = hypothesis
        .change_evidence
        .iter()
        .find(|c| degraded(facts, c) || cut(facts, c))
    {
        return Some(format!("the change cited as {cite} was not read whole"));
    }
    let cited: BTreeSet<_> = hypothesis.supporting.iter().map(|c| c.evidence).collect();
    let whole: BTreeSet<_> = hypothesis
        .supporting
        .iter()
        .filter(|c| !degraded(facts, c))
        .map(|c| c.evidence)
        .collect();
    (whole.len() < 2 && whole.len() < cited.len())
        .then(|| "without the degraded pieces the evidence no longer decides".to_owned())
}

fn degraded(facts: &Facts, cite: &Cite) -> bool {
    facts
        .pieces
        .get(&cite.evidence)
        .is_none_or(|piece| piece.degraded)
}

fn cut(facts: &Facts, cite: &Cite) -> bool {
    facts
        .pieces
        .get(&cite.evidence)
        .is_none_or(|piece| piece.partial)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, rollback};

    #[test]
    fn whole_pieces_pass() {
        let (proposal, facts) = rollback();
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn a_change_that_was_cut_is_refused() {
        let (proposal, mut facts) = rollback();
        let cited = facts.hypotheses[0].change_evidence[0].evidence;
        facts.pieces.get_mut(&cited).unwrap().partial = true;
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn a_log_that_was_cut_to_its_loudest_lines_passes() {
        let (proposal, mut facts) = rollback();
        let symptom = facts.hypotheses[0].supporting[0].evidence;
        facts.pieces.get_mut(&symptom).unwrap().partial = true;
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn too_few_whole_pieces_are_refused() {
        let (proposal, mut facts) = rollback();
        facts.hypotheses[0].change_evidence.clear();
        for piece in facts.pieces.values_mut() {
            piece.degraded = true;
        }
        assert!(check(&proposal, &facts, NOW).is_some());
    }
}
