//! The interlocks (guard rails 11): pure functions that decide what a person may be asked about.
//!
//! All of them are evaluated and every code that refuses is reported in table order. A proposal is
//! never rewritten, and no other action takes its place. Codes are append-only. Adding one is a
//! file and a line in [`INTERLOCKS`].

mod action_not_for_cause;
mod alert_inactive;
mod ambiguous_deploy;
mod argument_tainted;
mod cause_unsupported;
mod concurrent_change;
mod deploy_after_onset;
mod deploy_unbound;
mod evidence_degraded;
mod evidence_stale;
mod external_cause;
mod facts;
#[cfg(test)]
mod fixture;
mod history_unavailable;
mod no_change_evidence;
mod no_rollback_target;
mod onset_unknown;
mod outside_window;
mod parameter_bounds;
mod precondition_unknown;
mod precondition_unmet;
mod preconditions;
mod repeat_action;
mod target_not_investigated;
mod target_unknown;
mod uncorroborated;

pub use facts::{Facts, RecentAction};

use crate::claim::{Cleared, Escalation, Proposal};
use crate::model::{Millis, RemediationClass};

/// How long before the onset a change may lie, and how long an action may not be repeated.
const WINDOW_MS: i64 = 30 * 60 * 1000;

/// How old deciding evidence may be.
const EVIDENCE_MAX_AGE_MS: i64 = 10 * 60 * 1000;

/// One interlock. `check` gives the reason when it refuses.
pub struct Interlock {
    /// Stable code.
    pub code: &'static str,
    /// Stable name.
    pub name: &'static str,
    /// When it escalates, as a sentence for the operator.
    pub cause: &'static str,
    check: fn(&Proposal, &Facts, Millis) -> Option<String>,
}

macro_rules! interlocks {
    ($($code:literal $name:ident $cause:literal,)+) => {
        /// Every interlock, in the order of their codes.
        pub const INTERLOCKS: &[Interlock] = &[$(Interlock {
            code: $code, name: stringify!($name), cause: $cause, check: $name::check,
        },)+];
    };
}

interlocks! {
    "IL-01" target_not_investigated "No tool of this run returned evidence about the target.",
    "IL-02" target_unknown "The target is not in the inventory.",
    "IL-03" cause_unsupported "No cause is supported, or the verdict is inconclusive or none.",
    "IL-04" argument_tainted "The target or a parameter occurs only in text that anybody can write.",
    "IL-05" uncorroborated "The cause is not corroborated by two independent observations.",
    "IL-06" evidence_degraded "A deciding citation is degraded or contested.",
    "IL-07" evidence_stale "The deciding evidence does not reach from the onset until now.",
    "IL-08" alert_inactive "The alert is resolved or silenced.",
    "IL-09" action_not_for_cause "The action is no remedy for the class of the cause.",
    "IL-10" parameter_bounds "A parameter is outside the bounds of the site or too big a step.",
    "IL-11" repeat_action "The same action was done within 30 minutes or in this incident.",
    "IL-12" concurrent_change "A deploy was not seen, or something is in progress on the target.",
    "IL-20" history_unavailable "The deploy history is missing, failed, truncated or too short.",
    "IL-21" deploy_unbound "The rollback is not bound to a deploy that is part of what runs.",
    "IL-22" outside_window "The deploy began more than 30 minutes before the onset.",
    "IL-23" deploy_after_onset "The deploy began after the onset.",
    "IL-24" no_change_evidence "No change of that deploy is cited and linked to the failing path.",
    "IL-25" external_cause "A cause outside the code signals, or a check of it was left out.",
    "IL-26" ambiguous_deploy "Another change has equal or stronger evidence.",
    "IL-27" no_rollback_target "The previous version is unknown, gone or was unhealthy before.",
    "IL-28" onset_unknown "The onset is unknown.",
    "IL-30" precondition_unmet "A condition of the runbook for this action is false.",
    "IL-31" precondition_unknown "A condition of the runbook for this action cannot be evaluated.",
}

/// What the interlocks say.
#[derive(Debug)]
pub enum Clearance {
    /// A person may be asked to approve it.
    Cleared(Cleared),
    /// It stays with the people.
    Escalate(Escalation),
}

/// Judges a proposal. A class that changes nothing needs no clearance and gets none: it is an
/// [`Escalation`] without codes.
#[must_use]
pub fn judge(proposal: &Proposal, facts: &Facts, now: Millis) -> Clearance {
    let (mut codes, mut reasons) = (Vec::new(), Vec::new());
    if proposal.class().is_mutating() {
        for interlock in INTERLOCKS {
            if let Some(reason) = (interlock.check)(proposal, facts, now) {
                codes.push(interlock.code.to_owned());
                reasons.push(reason);
            }
        }
        if codes.is_empty() {
            return Clearance::Cleared(Cleared::new(proposal.clone(), now));
        }
    } else {
        reasons.push(format!("`{}` changes nothing", proposal.class()));
    }
    Clearance::Escalate(Escalation {
        codes,
        reasons,
        proposal: proposal.clone(),
    })
}

/// True for the classes that undo one recorded change and so must name it (benchmark.md 8.3).
const fn binds_a_change(class: RemediationClass) -> bool {
    match class {
        RemediationClass::Rollback
        | RemediationClass::ConfigRevert
        | RemediationClass::FeatureFlagDisable => true,
        RemediationClass::Restart
        | RemediationClass::Scale
        | RemediationClass::Resize
        | RemediationClass::Reschedule
        | RemediationClass::Failover
        | RemediationClass::RotateCert
        | RemediationClass::PurgeBadData
        | RemediationClass::RollForward
        | RemediationClass::Escalate
        | RemediationClass::NoAction => false,
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{NOW, no_action, resize, restart, rollback};
    use super::{Clearance, INTERLOCKS, judge};

    #[test]
    fn codes_rise_and_none_occurs_twice() {
        let codes: Vec<_> = INTERLOCKS.iter().map(|i| i.code).collect();
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(codes.len(), 23);
    }

    #[test]
    fn a_good_proposal_of_each_kind_is_cleared_unchanged() {
        for (proposal, facts) in [rollback(), resize(8, 12), restart()] {
            match judge(&proposal, &facts, NOW) {
                Clearance::Cleared(cleared) => assert_eq!(cleared.proposal(), &proposal),
                Clearance::Escalate(e) => panic!("refused: {:?} {:?}", e.codes, e.reasons),
            }
        }
    }

    #[test]
    fn every_refusing_code_is_reported_in_order_and_the_proposal_is_kept() {
        let (proposal, mut facts) = rollback();
        facts.alert_active = false;
        facts.history = None;
        facts.onset = None;
        let Clearance::Escalate(escalation) = judge(&proposal, &facts, NOW) else {
            panic!("cleared");
        };
        assert_eq!(
            escalation.codes,
            ["IL-08", "IL-12", "IL-20", "IL-21", "IL-28"]
        );
        assert_eq!(escalation.codes.len(), escalation.reasons.len());
        assert_eq!(escalation.proposal, proposal);
    }

    #[test]
    fn a_class_that_changes_nothing_is_never_cleared() {
        let (proposal, facts) = no_action();
        let Clearance::Escalate(escalation) = judge(&proposal, &facts, NOW) else {
            panic!("cleared");
        };
        assert!(escalation.codes.is_empty());
    }
}
