//! What joins a change to a failure (D10). Nearness in time or name alone is no link.

use std::collections::BTreeSet;

use super::Cite;
use super::board::Board;
use super::hunks::{self, ChangeClass, ReadHunk};
use super::kinds;
use super::signature::{self, Signature};
use super::view::{DeployRow, View};
use super::weights::Weight;

/// The strongest link of a deploy to the failing path.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) weight: Weight,
    /// The hunk.
    pub(super) change: Cite,
    /// The symptom that it explains.
    pub(super) symptom: Vec<Cite>,
    /// True when the link does not rest on text that users could have written, so that it may carry
    /// a rollback (guard rails 11.2.4).
    pub(super) firm: bool,
    /// In words.
    pub(super) why: String,
    pub(super) class: ChangeClass,
}

/// Links a deploy's hunks to the signatures of its service, to its failing routes and to its
/// resources, and gives the strongest link.
pub(super) fn strongest(view: &View<'_>, board: &Board<'_>, row: &DeployRow<'_>) -> Option<Link> {
    let service = row.deploy.service.as_str();
    let routes = failing_routes(view, board, service);
    let mut links = Vec::new();
    for (f, file) in row.deploy.diff.iter().flatten().enumerate() {
        for (h, hunk) in file.hunks.iter().enumerate() {
            let read = hunks::read(file, hunk);
            if read.class == ChangeClass::Neutral {
                continue;
            }
            let cite = row.hunk(f, h);
            let own = board.signatures.iter().filter(|s| s.service == service);
            links.extend(own.filter_map(|s| to_signature(&file.path, &read, s, cite)));
            links.extend(to_routes(&read, &routes, cite));
            links.extend(to_resource(board, service, &read, cite));
        }
    }
    links
        .into_iter()
        .max_by_key(|l| (l.weight.points(), l.firm))
}

fn to_signature(path: &str, hunk: &ReadHunk, failure: &Signature<'_>, cite: Cite) -> Option<Link> {
    let link = |weight, firm, why: String| Link {
        weight,
        change: cite,
        symptom: failure.cites.clone(),
        firm,
        why,
        class: hunk.class,
    };
    let file = signature::base(path);
    let is_changed = |frame: &signature::Frame| {
        let near = |line: u32| {
            let (first, last) = hunk.span.unwrap_or((u32::MAX, 0));
            first <= line.saturating_add(3) && line <= last.saturating_add(3)
        };
        let function = frame
            .function
            .as_ref()
            .is_some_and(|f| hunk.functions.contains(f));
        frame.file == file && (function || frame.line.is_some_and(near))
    };
    if failure.frames.last().is_some_and(is_changed) {
        let why = format!("it changed `{file}` where the trace of the failure ends");
        return Some(link(Weight::LinkedFrame, true, why));
    }
    if failure.frames.iter().any(is_changed) {
        let why = format!("it changed `{file}` in a place that the trace of the failure passes");
        return Some(link(Weight::LinkedCaller, true, why));
    }
    if let Some(name) = failure.names.iter().find(|n| hunk.words.contains(*n)) {
        let why = format!("it changed a line about `{name}`, which the failure names");
        return Some(link(Weight::LinkedKey, false, why));
    }
    let ident = failure.idents.iter().find(|i| hunk.words.contains(*i))?;
    let why = format!("it changed a line about `{ident}`, which the failure names");
    Some(link(Weight::LinkedSymbol, false, why))
}

/// The routes of a service that fail by its own counters.
fn failing_routes<'v>(
    view: &'v View<'_>,
    board: &Board<'_>,
    service: &str,
) -> Vec<(&'v str, Cite)> {
    let onset = board.onset.as_ref().map(|o| o.at);
    view.series
        .iter()
        .filter(|r| r.series.service == service && kinds::is_served(r.series))
        .filter(|r| kinds::status(r.series).is_some_and(kinds::is_failure))
        .filter(|r| r.series.points.last().map(|p| p.0) >= onset)
        .filter_map(|r| Some((kinds::route(r.series)?, r.cite)))
        .filter(|(route, _)| route.len() > 1)
        .collect()
}

fn to_routes(hunk: &ReadHunk, routes: &[(&str, Cite)], cite: Cite) -> Option<Link> {
    let (route, symptom) = routes.iter().find(|(route, _)| {
        let plain = route.split([':', '{', '<']).next().unwrap_or(route);
        let plain = plain.trim_end_matches('/');
        plain.len() > 2 && hunk.changed.iter().any(|line| line.contains(plain))
    })?;
    Some(Link {
        weight: Weight::LinkedSymbol,
        change: cite,
        symptom: vec![*symptom],
        firm: true,
        why: format!("it changed a line about the failing route `{route}`"),
        class: hunk.class,
    })
}

/// A changed number, or a changed setting, whose words are those of a resource that ran out.
fn to_resource(board: &Board<'_>, service: &str, hunk: &ReadHunk, cite: Cite) -> Option<Link> {
    if !matches!(
        hunk.class,
        ChangeClass::Quantity | ChangeClass::Configuration | ChangeClass::Code
    ) {
        return None;
    }
    let parts: BTreeSet<String> = hunk
        .words
        .iter()
        .flat_map(|w| kinds::words(&w.replace('_', " ")))
        .collect();
    let resource = board
        .resources
        .iter()
        .filter(|r| r.service == service && r.since.is_some())
        .find(|r| {
            r.stem
                .iter()
                .filter(|w| w.len() >= 4)
                .any(|w| parts.contains(w))
        })?;
    Some(Link {
        weight: Weight::LinkedQuantity,
        change: cite,
        symptom: resource.cites.clone(),
        firm: true,
        why: format!("it changed the {} that is used up", resource.kind.words()),
        class: hunk.class,
    })
}
