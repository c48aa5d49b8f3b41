//! Causes outside the site's own code and resources, as candidates: an outside party, demand, a date.
//!
//! Each rests on its external check and is advice to a person at this site.

use super::board::{Board, Candidate};
use super::remedy;
use super::view::View;
use super::weights::Weight;
use super::{CheckState, Culprit, CulpritKind, ExternalCheck};
use crate::model::{CauseClass, RemediationClass};

/// Turns signalling checks into candidates.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    let loud = view.loud.first().copied().unwrap_or("");
    let found: Vec<Candidate> = board
        .checks
        .iter()
        .filter(|check| check.state == CheckState::Signal)
        .filter_map(|check| candidate(check, loud, board))
        .collect();
    board.candidates.extend(found);
    name_what_is_dark(view, board);
}

fn candidate(check: &ExternalCheck, loud: &str, board: &Board<'_>) -> Option<Candidate> {
    let object = |id: &str| Culprit {
        kind: CulpritKind::Object,
        id: id.to_owned(),
    };
    let (class, weight, culprit, advice) = match check.name.as_str() {
        "provider" => {
            let peer = board.graph.calls.iter().find(|(_, c)| c.fail())?.0.1;
            let class = CauseClass::ExternalDependency;
            (
                class,
                Weight::OutsideFails,
                object(peer),
                RemediationClass::Failover,
            )
        }
        "traffic" => {
            let culprit = Culprit::service(loud);
            (
                CauseClass::Load,
                Weight::DemandDoubled,
                culprit,
                RemediationClass::Scale,
            )
        }
        "credential" => {
            let class = CauseClass::ExpiredCredential;
            (
                class,
                Weight::DateReached,
                object("credential"),
                RemediationClass::RotateCert,
            )
        }
        _ => return None,
    };
    let mut candidate = Candidate::new(class, loud, culprit, remedy::advise(loud, Some(advice)));
    candidate.explanation = check.note.clone();
    candidate.mark(weight, &check.cites);
    super::deploys::weigh_own_failures(&mut candidate, board, loud);
    Some(candidate)
}

/// A callee that fails by its caller's word alone, and that nothing was read about, is what to look
/// at next.
fn name_what_is_dark(view: &View<'_>, board: &mut Board<'_>) {
    let dark: Vec<String> = board
        .graph
        .calls
        .iter()
        .filter(|(_, calls)| calls.fail())
        .map(|((_, callee), _)| *callee)
        .filter(|callee| view.is_ours(callee))
        .filter(|callee| !board.services.contains_key(callee))
        .filter(|callee| !view.units.iter().any(|row| row.event.service == *callee))
        .map(|callee| format!("metrics and unit state of `{callee}`"))
        .collect();
    board.missing.extend(dark);
}
