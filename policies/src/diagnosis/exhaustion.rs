//! Resources that are used up, and units that were killed for them, as candidates.

use std::collections::BTreeSet;

use super::board::{Board, Candidate, Voice};
use super::deploys;
use super::kinds::ResourceKind;
use super::remedy;
use super::resources::Resource;
use super::units::{Down, Way};
use super::view::{Tool, View};
use super::weights::Weight;
use super::{CheckState, Cite, Culprit, Remedy};
use crate::model::{CauseClass, RemediationClass};

/// Memory this full at the last sample explains a kill.
const NEAR_LIMIT: f64 = 0.85;

/// Judges every service of the path with a used up resource or a killed unit.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    let mut services: BTreeSet<&str> = board.down.iter().map(|d| d.service).collect();
    let full = board.resources.iter().filter(|r| r.since.is_some());
    services.extend(full.map(|r| r.service));
    for service in services {
        if let Some(candidate) = judge(view, board, service) {
            board.candidates.push(candidate);
        }
    }
}

fn judge(view: &View<'_>, board: &mut Board<'_>, service: &str) -> Option<Candidate> {
    let full = board
        .resources
        .iter()
        .filter(|r| r.service == service && r.since.is_some())
        .max_by(|a, b| a.demand.total_cmp(&b.demand))
        .cloned();
    let down = board.down.iter().find(|d| d.service == service).cloned();
    let memory = board
        .resources
        .iter()
        .find(|r| r.service == service && r.kind == ResourceKind::Memory)
        .cloned();
    let killed = down.as_ref().filter(|d| explains_kill(d, memory.as_ref()));
    if killed.is_none() && full.is_none() {
        let down = down?;
        board
            .missing
            .insert(format!("what ended `{}` at {}", down.instance, down.at));
        return None;
    }
    let remedy = match (killed, full.as_ref()) {
        (Some(_), _) => remedy::restart(view, service),
        (None, Some(resource)) => against(view, resource),
        (None, None) => return None,
    };
    let class = CauseClass::ResourceExhaustion;
    let mut candidate = Candidate::new(class, service, Culprit::service(service), remedy);
    if let Some(down) = killed {
        weigh_kill(&mut candidate, down, memory.as_ref());
    } else if let Some(resource) = &full {
        weigh_full(&mut candidate, board, resource);
    }
    weigh_around(&mut candidate, view, board, service);
    if !board.graph.on_path(service) {
        candidate.rejected = Some("its service is not on the failing path".to_owned());
    }
    Some(candidate)
}

fn explains_kill(down: &Down<'_>, memory: Option<&Resource<'_>>) -> bool {
    match down.way {
        Way::OutOfMemory => true,
        Way::Killed => memory.is_some_and(|m| m.share >= NEAR_LIMIT),
        Way::Ended => false,
    }
}

/// What helps against a resource that is used up while its service runs on.
fn against(view: &View<'_>, resource: &Resource<'_>) -> Remedy {
    match resource.kind {
        ResourceKind::Pool => remedy::resize(view, resource),
        ResourceKind::Memory | ResourceKind::Descriptors => remedy::restart(view, resource.service),
        // A person decides what may be deleted or where more space comes from.
        ResourceKind::Disk => remedy::advise(resource.service, Some(RemediationClass::Resize)),
    }
}

fn weigh_kill(candidate: &mut Candidate, down: &Down<'_>, memory: Option<&Resource<'_>>) {
    let voice = |tool| {
        vec![Voice {
            tool,
            component: down.instance.to_owned(),
        }]
    };
    candidate.observe(Weight::KilledAtLimit, &down.cites, voice(Tool::Units));
    candidate.observe(Weight::StaysDown, &down.cites, voice(Tool::Units));
    let mut text = format!(
        "`{}` was killed at its memory limit at {}",
        down.instance, down.at
    );
    if let Some(memory) = memory.filter(|m| m.share >= NEAR_LIMIT) {
        candidate.observe(Weight::NamesResource, &memory.cites, voice(Tool::Metrics));
        text.push_str(&format!(
            ", with {:.0} % in use before",
            memory.share * 100.0
        ));
    }
    text.push_str(", and has not come back");
    candidate.explanation = text;
}

fn weigh_full(candidate: &mut Candidate, board: &Board<'_>, resource: &Resource<'_>) {
    let voice = |tool, component: &str| Voice {
        tool,
        component: component.to_owned(),
    };
    let metrics = board
        .resources
        .iter()
        .filter(|r| r.service == resource.service && r.kind == resource.kind && r.since.is_some());
    let (mut voices, mut cites) = (Vec::new(), Vec::new());
    for one in metrics {
        voices.push(voice(Tool::Metrics, one.instance));
        cites.extend(&one.cites);
    }
    candidate.observe(Weight::Exhausted, &cites, voices);
    let named = board
        .signatures
        .iter()
        .find(|s| s.service == resource.service && s.resources.contains(&resource.kind));
    if let Some(signature) = named {
        let voices = signature
            .instances
            .iter()
            .map(|i| voice(Tool::Logs, i))
            .collect();
        let cites: Vec<Cite> = signature.cites.iter().take(2).copied().collect();
        candidate.observe(Weight::NamesResource, &cites, voices);
    }
    let later = match (&board.onset, resource.since) {
        (Some(onset), Some(since)) => since > onset.at.plus(onset.resolution_ms),
        (None, _) | (_, None) => false,
    };
    if later {
        candidate.mark(Weight::BeganLater, &resource.cites);
    }
    let mut text = format!(
        "the {} of `{}` is used up to {:.0} %",
        resource.kind.words(),
        resource.service,
        resource.share * 100.0
    );
    if resource.tells_waiting {
        text.push_str(" while others wait for it");
    }
    if resource.always {
        let why = format!(
            "the {} of `{}` before it was used up",
            resource.kind.words(),
            resource.service
        );
        candidate.missing.push(why);
        candidate.mark(Weight::WasSoBefore, &resource.cites);
    }
    candidate.explanation = text;
}

/// Symptoms of the service, of its callers, and changes that would explain it better.
fn weigh_around(candidate: &mut Candidate, view: &View<'_>, board: &Board<'_>, service: &str) {
    deploys::weigh_symptoms(candidate, board, service);
    let callers = board.graph.failing_callers(service);
    if !callers.is_empty() {
        let cites: Vec<Cite> = callers.into_iter().flat_map(|(_, cites)| cites).collect();
        candidate.mark(Weight::CallersFail, &cites);
    }
    let demand = board
        .checks
        .iter()
        .find(|c| c.name == "traffic" && c.state == CheckState::Signal);
    if let Some(demand) = demand {
        candidate.mark(Weight::DemandExplains, &demand.cites);
    }
    let change = board.candidates.iter().find(|c| {
        let blames = matches!(c.class, CauseClass::BadDeploy | CauseClass::ConfigError);
        let near = c.marks.iter().any(|m| m.weight == Weight::BeforeOnset);
        let stands = c.rejected.is_none() && !c.change_evidence.is_empty();
        blames && c.service == service && stands && near
    });
    match (change, view.history_cite) {
        (Some(change), _) => candidate.mark(Weight::ChangeExplains, &change.change_evidence),
        // Only a history that was read can say that nothing changed.
        (None, Some(history)) => candidate.mark(Weight::NoChange, &[history]),
        (None, None) => {}
    }
}
