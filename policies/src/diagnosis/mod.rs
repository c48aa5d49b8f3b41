//! Deterministic diagnosis (benchmark.md 9): from evidence to a ranked list of hypotheses.
//!
//! It runs before any token of a model and alone when there is none. No literal in here is the name
//! of a service, host, metric or path of any site: kinds of metrics are inferred from units, shape
//! and general suffixes (D17). Adding an engine is a file and a line in [`ENGINES`].

mod board;
mod case;
mod checks;
mod configuration;
mod deploys;
mod detect;
mod exhaustion;
mod graph;
mod healthy;
mod hunks;
mod kinds;
mod link;
mod logs;
mod onset;
mod outside;
mod rates;
mod remedy;
mod resources;
#[cfg(test)]
pub(crate) mod scenarios;
mod signals;
mod signature;
mod types;
mod units;
mod verdict;
mod versions;
mod view;
mod weights;

pub use case::{Case, ExecutorFact, ToolFailure};
pub use types::{
    CheckState, Cite, Confidence, Culprit, CulpritKind, Diagnosis, ExternalCheck, Fact, Hypothesis,
    Onset, ParamValue, RULES_VERSION, Remedy, Verdict,
};
pub use verdict::diagnose;

/// The causes outside the code that are looked for before a change is blamed (benchmark.md D12,
/// guard rails 11.2.5).
pub const CHECKS: &[&str] = &[
    "credential",
    "provider",
    "name_resolution",
    "node",
    "disk",
    "quota",
    "traffic",
    "bad_data",
    "clock",
    "scheduled_job",
    "old_instances",
    "config_change",
];

/// One engine. It reads the evidence and what earlier engines wrote on the board.
pub(crate) struct Engine {
    /// Its name, for reports on which engine decides.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the table test"))]
    name: &'static str,
    run: for<'v> fn(&'v view::View<'v>, &mut board::Board<'v>),
}

macro_rules! engines {
    ($($name:ident,)+) => {
        /// Every engine, in the order in which they run: measurements, then the onset, then what
        /// depends on it, then candidates; resources after changes, since a change that explains
        /// the failure weakens them.
        pub(crate) const ENGINES: &[Engine] = &[$(Engine { name: stringify!($name), run: $name::run },)+];
    };
}

engines! {
    signals,
    graph,
    units,
    resources,
    versions,
    onset,
    logs,
    signature,
    checks,
    deploys,
    configuration,
    exhaustion,
    outside,
    healthy,
}

#[cfg(test)]
mod tests {
    use super::{CHECKS, ENGINES};

    #[test]
    fn engines_and_checks_have_names_of_their_own() {
        let engines = ENGINES.iter().map(|e| e.name);
        for names in [engines.collect::<Vec<_>>(), CHECKS.to_vec()] {
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), names.len());
        }
    }

    #[test]
    fn measurements_come_before_the_onset_and_the_onset_before_candidates() {
        let place = |name: &str| ENGINES.iter().position(|e| e.name == name).unwrap();
        assert!(place("signals") < place("onset") && place("onset") < place("logs"));
        assert!(place("checks") < place("deploys") && place("deploys") < place("exhaustion"));
    }
}
