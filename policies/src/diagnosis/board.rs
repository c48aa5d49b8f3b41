//! What the engines have found so far. Each engine reads what earlier ones wrote.

use std::collections::{BTreeMap, BTreeSet};

use super::detect::Shape;
use super::graph::Graph;
use super::logs::Template;
use super::rates::Bins;
use super::resources::Resource;
use super::signature::Signature;
use super::units::Down;
use super::versions::Split;
use super::view::Tool;
use super::weights::Weight;
use super::{Cite, Culprit, ExternalCheck, Fact, Onset, Remedy};
use crate::model::{CauseClass, Millis};

/// What the counters of one service or instance say.
#[derive(Clone, Debug)]
pub(super) struct Signals {
    /// Requests that it answered.
    pub(super) bins: Bins,
    /// Share of failed requests.
    pub(super) failing: Shape,
    /// Mean duration.
    pub(super) latency: Shape,
    /// Newest sample.
    pub(super) last_seen: Millis,
    /// True when its samples end well before those of others.
    pub(super) stopped: bool,
    /// The series of failed requests, or of all when none failed.
    pub(super) cites: Vec<Cite>,
    /// The series of durations.
    pub(super) latency_cites: Vec<Cite>,
}

/// Who made an observation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Voice {
    pub(super) tool: Tool,
    pub(super) component: String,
}

/// One reason for or against a candidate.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) weight: Weight,
    pub(super) cites: Vec<Cite>,
    /// Set when it is an observation of the blamed service itself.
    pub(super) voices: Vec<Voice>,
}

/// A hypothesis in the making.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) class: CauseClass,
    pub(super) service: String,
    pub(super) culprit: Culprit,
    pub(super) marks: Vec<Mark>,
    pub(super) missing: Vec<String>,
    pub(super) rejected: Option<String>,
    pub(super) explanation: String,
    pub(super) change_evidence: Vec<Cite>,
    pub(super) remedy: Remedy,
}

impl Candidate {
    pub(super) fn new(class: CauseClass, service: &str, culprit: Culprit, remedy: Remedy) -> Self {
        Self {
            class,
            service: service.to_owned(),
            culprit,
            marks: Vec::new(),
            missing: Vec::new(),
            rejected: None,
            explanation: String::new(),
            change_evidence: Vec::new(),
            remedy,
        }
    }

    /// Adds a reason that is no observation of the blamed service.
    pub(super) fn mark(&mut self, weight: Weight, cites: &[Cite]) {
        self.observe(weight, cites, Vec::new());
    }

    /// Adds an observation of the blamed service.
    pub(super) fn observe(&mut self, weight: Weight, cites: &[Cite], voices: Vec<Voice>) {
        self.marks.push(Mark {
            weight,
            cites: cites.to_vec(),
            voices,
        });
    }

    /// Two independent observations of the blamed service, at least one by a machine (guard 8.2).
    pub(super) fn corroborated(&self) -> bool {
        let for_it = self.marks.iter().filter(|m| m.weight.points() > 0);
        let voices: BTreeSet<&Voice> = for_it.flat_map(|m| &m.voices).collect();
        let machine = |v: &&Voice| matches!(v.tool, Tool::Metrics | Tool::Units);
        voices.len() >= 2 && voices.iter().any(machine)
    }

    pub(super) fn score(&self) -> i32 {
        self.marks.iter().map(|m| m.weight.points()).sum()
    }
}

/// Findings.
#[derive(Default)]
pub(super) struct Board<'v> {
    /// Width of the bins of `signals`.
    pub(super) width_ms: i64,
    pub(super) services: BTreeMap<&'v str, Signals>,
    pub(super) instances: BTreeMap<(&'v str, &'v str), Signals>,
    pub(super) graph: Graph<'v>,
    pub(super) onset: Option<Onset>,
    pub(super) templates: Vec<Template<'v>>,
    pub(super) signatures: Vec<Signature<'v>>,
    pub(super) down: Vec<Down<'v>>,
    pub(super) resources: Vec<Resource<'v>>,
    pub(super) splits: Vec<Split<'v>>,
    pub(super) checks: Vec<ExternalCheck>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) facts: Vec<Fact>,
    pub(super) missing: BTreeSet<String>,
}

impl Board<'_> {
    /// Adds a line to the facts card.
    pub(super) fn fact(&mut self, text: String, cites: &[Cite]) {
        self.facts.push(Fact {
            text,
            cites: cites.to_vec(),
        });
    }

    /// True when a service fails or is slow since some moment, and still is.
    pub(super) fn fails_lastingly(&self, service: &str) -> bool {
        self.services.get(service).is_some_and(Signals::fails)
    }

    /// The voices of a service's own counters: one for each instance that shows the failure.
    pub(super) fn metric_voices(&self, service: &str) -> Vec<Voice> {
        self.instances
            .iter()
            .filter(|((name, _), signals)| *name == service && signals.fails())
            .map(|((_, instance), _)| Voice {
                tool: Tool::Metrics,
                component: (*instance).to_owned(),
            })
            .collect()
    }
}

impl Signals {
    /// Share of failed requests that is a failure without any baseline.
    const ALWAYS: f64 = 0.05;

    /// True when it fails, is slow or went silent, and still is.
    pub(super) fn fails(&self) -> bool {
        self.stopped || self.fails_now() || self.is_slow()
    }

    /// True when requests fail and have not come back.
    pub(super) fn fails_now(&self) -> bool {
        match &self.failing {
            Shape::Changed(change) => change.lasts() && change.rose(),
            Shape::Steady(_) | Shape::NoBaseline => self.recent_share() >= Self::ALWAYS,
        }
    }

    /// True when requests take at least twice as long as before.
    pub(super) fn is_slow(&self) -> bool {
        self.latency
            .change()
            .is_some_and(|c| c.lasts() && c.after >= 2.0 * c.before)
    }

    /// When the failing or slow signal began.
    pub(super) fn began(&self) -> Option<Millis> {
        let lasting = |shape: &Shape| {
            shape
                .change()
                .filter(|c| c.lasts() && c.rose())
                .map(|c| c.at)
        };
        let failing = lasting(&self.failing);
        let slow = lasting(&self.latency).filter(|_| self.is_slow());
        let silent = self.stopped.then_some(self.last_seen);
        [failing, slow, silent].into_iter().flatten().min()
    }

    /// Share of failed requests in the newest bins.
    pub(super) fn recent_share(&self) -> f64 {
        let recent = self.bins.values().rev().take(5);
        let (total, failed) = recent.fold((0.0, 0.0), |(t, f), b| (t + b.total, f + b.failed));
        if total > 0.0 { failed / total } else { 0.0 }
    }
}
