//! The one table of weights that scores are summed from (D15).

macro_rules! weights {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $points:literal,)+) => {
        /// A named reason for or against a hypothesis.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Weight { $($(#[doc = $doc])+ $variant,)+ }

        impl Weight {
            /// Every weight, in the order of the table.
            #[cfg(test)]
            pub(super) const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its name.
            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Its points.
            pub(super) const fn points(self) -> i32 {
                match self { $(Self::$variant => $points,)+ }
            }
        }
    };
}

weights! {
    /// A changed function or line stands in the trace of the failure.
    LinkedFrame "linked_frame" 45,
    /// A changed function or line stands in the trace, above the place where it ends.
    LinkedCaller "linked_caller" 25,
    /// A changed line carries the key or name that the failure names.
    LinkedKey "linked_key" 40,
    /// A changed limit predicts the resource that ran out.
    LinkedQuantity "linked_quantity" 40,
    /// A changed line carries the failing route or words of the failure.
    LinkedSymbol "linked_symbol" 25,
    /// At the same time the new version fails and the old one does not.
    VersionSplit "version_split" 40,
    /// The change began within the window before the onset.
    BeforeOnset "before_onset" 15,
    /// A setting changed at the onset without a deploy.
    ConfigChanged "config_changed" 45,
    /// The blamed service itself fails since the onset.
    OwnFailures "own_failures" 15,
    /// Its log shows a kind of failure that was not there before.
    NovelFailure "novel_failure" 10,
    /// A resource of it is used up, measured.
    Exhausted "exhausted" 45,
    /// It was killed at its memory limit.
    KilledAtLimit "killed_at_limit" 50,
    /// It is down now.
    StaysDown "stays_down" 20,
    /// Its own log names the resource.
    NamesResource "names_resource" 20,
    /// Those who call it fail on these calls.
    CallersFail "callers_fail" 15,
    /// No recorded change explains the failure.
    NoChange "no_change" 10,
    /// Demand at the edge has at least doubled before the failure.
    DemandDoubled "demand_doubled" 55,
    /// Only calls to one outside party fail.
    OutsideFails "outside_fails" 45,
    /// A dated limit was reached at the onset.
    DateReached "date_reached" 60,
    /// The signal that alarmed is back in its band.
    BackInBand "back_in_band" 60,
    /// Nothing that was measured has changed for good.
    NothingLasts "nothing_lasts" 20,
    /// The source of the alert says that it is over.
    AlertOver "alert_over" 15,
    /// The failures are those of a callee, handed on.
    Forwarded "forwarded" -40,
    /// Instances of the old version fail as much.
    OldFailsToo "old_fails_too" -40,
    /// A linked change explains it better.
    ChangeExplains "change_explains" -40,
    /// The change ran for longer than the window before anything failed.
    RanFineSince "ran_fine_since" -40,
    /// Demand at the edge has at least doubled, which explains it.
    DemandExplains "demand_explains" -50,
    /// It was no different before the failure.
    WasSoBefore "was_so_before" -30,
    /// It began clearly after the onset.
    BeganLater "began_later" -30,
}

/// A hypothesis with fewer points decides nothing.
pub(super) const FLOOR: i32 = 45;

/// A lead of fewer points than this over the next one decides nothing.
pub(super) const MARGIN: i32 = 10;

/// A model may choose among hypotheses that are no further behind than this.
pub(super) const OPEN_RANGE: i32 = 20;

/// Points from which on the confidence may be high.
pub(super) const HIGH: i32 = 80;

/// Points from which on the confidence may be medium.
pub(super) const MEDIUM: i32 = 60;

#[cfg(test)]
mod tests {
    use super::Weight;

    #[test]
    fn every_weight_has_a_name_of_its_own_and_counts() {
        let mut names: Vec<_> = Weight::ALL.iter().map(|w| w.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Weight::ALL.len());
        assert!(Weight::ALL.iter().all(|w| w.points() != 0));
    }
}
