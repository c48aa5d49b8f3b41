//! IL-09: the action is not one that helps against the class of the cause.

use super::Facts;
use crate::claim::Proposal;
use crate::model::{CauseClass, Millis, RemediationClass};

/// The class table: the pairs of the label table in benchmark.md 4, and a flag for a configuration error.
const fn helps(cause: CauseClass) -> &'static [RemediationClass] {
    use RemediationClass as R;
    match cause {
        CauseClass::BadDeploy => &[R::Rollback],
        CauseClass::ConfigError => &[R::ConfigRevert, R::FeatureFlagDisable],
        CauseClass::StartupConfig => &[R::ConfigRevert],
        CauseClass::ResourceExhaustion => &[R::Resize, R::Restart],
        CauseClass::SchedulingCapacity => &[R::ConfigRevert, R::Scale, R::Reschedule],
        CauseClass::InfrastructureNode => &[R::Reschedule],
        CauseClass::Network => &[R::Restart],
        CauseClass::ExternalDependency => &[R::Failover],
        CauseClass::ExpiredCredential => &[R::RotateCert],
        CauseClass::BadData => &[R::PurgeBadData],
        CauseClass::Load => &[R::Scale],
        CauseClass::None | CauseClass::Inconclusive => &[],
    }
}

pub(super) fn check(proposal: &Proposal, _facts: &Facts, _now: Millis) -> Option<String> {
    let (cause, class) = (proposal.cause_class(), proposal.class());
    (!helps(cause).contains(&class)).then(|| format!("`{class}` is no remedy for `{cause}`"))
}

#[cfg(test)]
mod tests {
    use super::{check, helps};
    use crate::interlocks::fixture::{NOW, restart, rollback, with_cause};
    use crate::model::{CauseClass, RemediationClass};

    #[test]
    fn a_pair_of_the_table_passes() {
        for (proposal, facts) in [restart(), rollback()] {
            assert_eq!(check(&proposal, &facts, NOW), None);
        }
    }

    #[test]
    fn a_restart_is_refused_as_a_remedy_for_a_bad_deploy() {
        let (proposal, facts) = restart();
        let proposal = with_cause(&proposal, CauseClass::BadDeploy);
        assert!(check(&proposal, &facts, NOW).is_some());
    }

    #[test]
    fn only_mutating_classes_are_in_the_table() {
        for &cause in CauseClass::ALL {
            assert!(
                helps(cause)
                    .iter()
                    .copied()
                    .all(RemediationClass::is_mutating)
            );
        }
    }
}
