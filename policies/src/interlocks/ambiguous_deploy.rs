//! IL-26: another deploy or change, of any service, has equal or stronger evidence.

use super::{Facts, binds_a_change};
use crate::claim::Proposal;
use crate::diagnosis::{CulpritKind, Hypothesis};
use crate::model::{CauseClass, Millis};

pub(super) fn check(proposal: &Proposal, facts: &Facts, _now: Millis) -> Option<String> {
    if !binds_a_change(proposal.class()) {
        return None;
    }
    let own = facts.hypothesis(proposal.hypothesis())?;
    facts
        .hypotheses
        .iter()
        .filter(|other| other.id != own.id && other.rejected.is_none())
        .filter(|other| blames_a_change(other) && other.culprit != own.culprit)
        .find(|other| other.score >= own.score)
        .map(|other| format!("`{}` has evidence as strong", other.culprit.id))
}

fn blames_a_change(hypothesis: &Hypothesis) -> bool {
    matches!(
        hypothesis.culprit.kind,
        CulpritKind::Commit | CulpritKind::Deploy
    ) || hypothesis.cause_class == CauseClass::ConfigError
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::interlocks::fixture::{NOW, rival, rollback};

    #[test]
    fn a_weaker_rival_does_not_block() {
        let (proposal, mut facts) = rollback();
        let score = facts.hypotheses[0].score;
        facts.hypotheses.push(rival("d3", score - 1));
        assert_eq!(check(&proposal, &facts, NOW), None);
    }

    #[test]
    fn an_equal_rival_is_refused() {
        let (proposal, mut facts) = rollback();
        let score = facts.hypotheses[0].score;
        facts.hypotheses.push(rival("d3", score));
        assert!(check(&proposal, &facts, NOW).unwrap().contains("d3"));
    }
}
