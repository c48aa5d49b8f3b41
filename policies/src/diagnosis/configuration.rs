//! Settings that changed near the onset without a deploy, as candidates.

use super::board::{Board, Candidate};
use super::deploys::{self, WINDOW_MS};
use super::remedy;
use super::view::{UnitRow, View};
use super::weights::Weight;
use super::{Culprit, CulpritKind};
use crate::model::{CauseClass, RemediationClass};

/// The changes of settings on the failing path inside the window before the onset.
pub(super) fn changes<'v, 'b: 'v>(
    view: &'v View<'v>,
    board: &'b Board<'_>,
) -> impl Iterator<Item = &'v UnitRow<'v>> {
    let onset = board.onset.as_ref();
    view.units.iter().filter(move |row| {
        row.event.event == "config_changed"
            && board.graph.on_path(&row.event.service)
            && onset.is_some_and(|onset| {
                let at = row.event.at;
                at >= onset.at.plus(-WINDOW_MS) && at <= onset.at.plus(onset.resolution_ms)
            })
    })
}

/// Judges each change of a setting.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    let mut found: Vec<Candidate> = Vec::new();
    for row in changes(view, board) {
        let service = row.event.service.as_str();
        if found.iter().any(|c| c.service == service) {
            continue;
        }
        let culprit = Culprit {
            kind: CulpritKind::Object,
            id: format!("{service}/configuration"),
        };
        let remedy = remedy::advise(service, Some(RemediationClass::ConfigRevert));
        let mut candidate = Candidate::new(CauseClass::ConfigError, service, culprit, remedy);
        candidate.explanation = format!(
            "the configuration of `{service}` changed at {}",
            row.event.at
        );
        candidate.mark(Weight::ConfigChanged, &[row.cite]);
        deploys::weigh_symptoms(&mut candidate, board, service);
        if !board.fails_lastingly(service) {
            candidate.rejected = Some("its service does not fail".to_owned());
        }
        found.push(candidate);
    }
    board.candidates.extend(found);
}
