//! Interventions of the guardrails as data (guardrails 12). They never carry the original text.

use serde::{Deserialize, Serialize};

use crate::model::{EvidenceId, Millis};

/// The layer that intervened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The redactor.
    Redact,
    /// The injection filter.
    Inject,
    /// Checks against telemetry that lies.
    Poison,
    /// The wrapping of untrusted text.
    Spotlight,
    /// The shape of what a model says.
    Schema,
    /// Citations.
    Cite,
    /// Claims without support.
    Claim,
    /// Interlocks.
    Interlock,
}

impl Layer {
    /// The word used in metric labels and documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Redact => "redact",
            Self::Inject => "inject",
            Self::Poison => "poison",
            Self::Spotlight => "spotlight",
            Self::Schema => "schema",
            Self::Cite => "cite",
            Self::Claim => "claim",
            Self::Interlock => "interlock",
        }
    }
}

/// Every code, in the order of the specification; the codes of interlocks (`IL-nn`) come on top.
pub const CODES: &[&str] = &[
    "redact.hit",
    "redact.dropped",
    "redact.forged",
    "redact.allowed",
    "redact.recheck",
    "inject.removed",
    "inject.field",
    "inject.split",
    "inject.origin",
    "inject.contested",
    "inject.ctl",
    "poison.novel",
    "poison.uncorroborated",
    "poison.taint",
    "out.schema",
    "out.target",
    "out.url",
    "out.redacted",
    "cite.normalised",
    "cite.malformed",
    "cite.unknown",
    "cite.line",
    "claim.unsupported",
];

/// One intervention. Equal (code, rule) pairs of one output are one event with a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardrailEvent {
    /// Layer that intervened.
    pub layer: Layer,
    /// Stable code, for example `redact.hit`.
    pub code: String,
    /// What in detail: a kind of entity, a class of instruction, a reason.
    pub rule: String,
    /// How often.
    pub count: u32,
    /// The evidence it happened in, if any.
    pub evidence: Option<EvidenceId>,
    /// Number inside the incident, from 1; 0 outside of one.
    #[serde(default)]
    pub seq: u32,
    /// When the incident took note of it.
    #[serde(default)]
    pub at: Option<Millis>,
    /// Phase of the investigation.
    #[serde(default)]
    pub step: String,
}

impl GuardrailEvent {
    /// An intervention that happened once and in no evidence.
    #[must_use]
    pub fn once(layer: Layer, code: &str) -> Self {
        Self {
            layer,
            code: code.to_owned(),
            rule: String::new(),
            count: 1,
            evidence: None,
            seq: 0,
            at: None,
            step: String::new(),
        }
    }

    /// What was decided.
    #[must_use]
    pub fn decision(&self) -> &'static str {
        match self.code.as_str() {
            "redact.hit" | "redact.recheck" | "out.redacted" => "replaced",
            "redact.dropped" | "cite.malformed" | "cite.unknown" | "out.url" => "dropped",
            "redact.forged" => "defused",
            "redact.allowed" => "let_through",
            "inject.removed" | "inject.split" | "inject.ctl" => "removed",
            "inject.field" | "inject.origin" | "inject.contested" => "abstracted",
            "cite.normalised" | "cite.line" => "normalised",
            "claim.unsupported" | "poison.novel" => "marked",
            _ => "refused",
        }
    }
}

/// Gathers events, one per (layer, code, rule), in a stable order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    counts: std::collections::BTreeMap<(Layer, &'static str, String), u32>,
}

impl Tally {
    pub(crate) fn add(&mut self, layer: Layer, code: &'static str, rule: &str, count: u32) {
        if count > 0 {
            let slot = self
                .counts
                .entry((layer, code, rule.to_owned()))
                .or_default();
            *slot = slot.saturating_add(count);
        }
    }

    pub(crate) fn events(self, evidence: Option<EvidenceId>) -> Vec<GuardrailEvent> {
        self.counts
            .into_iter()
            .map(|((layer, code, rule), count)| GuardrailEvent {
                layer,
                rule,
                count,
                evidence,
                ..GuardrailEvent::once(layer, code)
            })
            .collect()
    }
}
