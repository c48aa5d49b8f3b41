//! Interventions of the guardrails as data (guardrails 12). They never carry the original text.

use serde::{Deserialize, Serialize};

use crate::model::EvidenceId;

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
                code: code.to_owned(),
                rule,
                count,
                evidence,
            })
            .collect()
    }
}
