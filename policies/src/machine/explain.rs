//! The model's part: it explains, and chooses within what the evidence allows.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use super::{Effect, Env, Machine, ModelNote, ModelReply, Phase, Step};
use crate::claim::{
    Boundary, Draft, DraftSchema, OwnText, Prompt, PromptBuilder, Rca, RedactKey, Refused, Sight,
};
use crate::diagnosis::{Cite, Diagnosis};
use crate::event::{GuardrailEvent, Layer};
use crate::model::EvidenceId;

/// Most tokens of an answer: a summary of 400 characters and the frame around it.
const MAX_TOKENS: u32 = 256;
/// Most facts, hypotheses and evidence lines in the prompt.
const MAX_FACTS: usize = 12;
/// Most hypotheses named in the prompt.
const MAX_HYPOTHESES: usize = 4;
/// Most lines of one piece of evidence.
const MAX_LINES: usize = 6;
/// Most characters of evidence in all.
const MAX_EVIDENCE_CHARS: usize = 2_400;

impl Machine {
    pub(super) fn ask_model(&mut self, env: &Env<'_>, step: &mut Step) {
        let Some(diagnosis) = self.record.diagnosis.clone() else {
            return;
        };
        let why_not = if env.model_unavailable.is_empty() && diagnosis.allowed.is_empty() {
            "the evidence leaves nothing to choose"
        } else {
            env.model_unavailable
        };
        if !why_not.is_empty() {
            self.without_model(why_not, env, step);
            return;
        }
        let schema = draft_schema(&diagnosis);
        match self.prompt(&diagnosis, &schema, env) {
            Ok(prompt) => {
                step.events.extend(prompt.events().iter().cloned());
                step.effects.push(Effect::AskModel {
                    prompt,
                    schema: Draft::json_schema(&schema),
                    max_tokens: MAX_TOKENS,
                });
            }
            Err(refused) => {
                step.events.push(event(&refused));
                self.without_model(refused.code, env, step);
            }
        }
    }

    fn without_model(&mut self, why: &str, env: &Env<'_>, step: &mut Step) {
        self.record.model = Some(ModelNote {
            name: String::new(),
            tokens_in: 0,
            tokens_out: 0,
            ms: 0,
            unavailable: why.to_owned(),
            hypothesis: None,
            summary: String::new(),
            citations: Vec::new(),
        });
        self.note(env.now, "model", format!("diagnosed by rules alone: {why}"));
        self.propose(env, step);
    }

    fn prompt(
        &self,
        diagnosis: &Diagnosis,
        schema: &DraftSchema,
        env: &Env<'_>,
    ) -> Result<Prompt, Refused> {
        let onset = diagnosis.onset.as_ref().map(|o| o.at);
        let sight = Sight::new(&self.evidence, onset, env.inventory, env.key);
        let mut facts = OwnText::new().say("Facts found by the analysis:\n");
        for fact in diagnosis.facts.iter().take(MAX_FACTS) {
            let id = fact.cites.first().map_or(EvidenceId(0), |c| c.evidence);
            facts = facts
                .say("- ")
                .quoting(&fact.text, &sight, id, env.key)
                .say("\n");
        }
        facts = facts.say("Hypotheses:\n");
        let offered = diagnosis
            .hypotheses
            .iter()
            .filter(|h| schema.hypotheses.contains(&h.id));
        for hypothesis in offered.take(MAX_HYPOTHESES) {
            facts = facts
                .say("- ")
                .admit(&hypothesis.id, env.key)
                .say(" ")
                .cause(hypothesis.cause_class)
                .say(" of ")
                .admit(&hypothesis.service, env.key)
                .say(": ")
                .quoting(&hypothesis.explanation, &sight, EvidenceId(0), env.key)
                .say("\n");
        }
        let mut builder = PromptBuilder::new(boundary(env.key), sight)
            .system(env.system_prompt)
            .trusted(facts);
        let mut left = MAX_EVIDENCE_CHARS;
        for id in &schema.citations {
            let Some(evidence) = self.evidence.iter().find(|e| e.id() == *id) else {
                continue;
            };
            let lines: Vec<u32> = cited_lines(diagnosis, *id)
                .into_iter()
                .take_while(|n| {
                    let length = evidence.line(*n).map_or(0, |l| l.chars().count());
                    let fits = length <= left;
                    left = left.saturating_sub(length);
                    fits
                })
                .collect();
            if !lines.is_empty() {
                builder = builder.untrusted(evidence, lines);
            }
        }
        builder.trusted(OwnText::new().say(env.question)).build()
    }

    pub(super) fn model_answered(
        &mut self,
        reply: Result<ModelReply, String>,
        env: &Env<'_>,
        step: &mut Step,
    ) {
        if self.record.phase != Phase::Explaining {
            return;
        }
        let Some(diagnosis) = self.record.diagnosis.clone() else {
            return;
        };
        let reply = match reply {
            Ok(reply) => reply,
            Err(code) => {
                self.without_model(&code, env, step);
                return;
            }
        };
        let parsed = if boundary(env.key).occurs_in(&reply.text) {
            Err(Refused::new(
                "out.schema",
                "the answer contains the boundary of this incident",
            ))
        } else {
            Draft::parse(&reply.text, &draft_schema(&diagnosis), env.key)
        };
        let facts = || diagnosis.facts.iter().map(|f| f.text.as_str());
        let texts: Vec<&str> = facts()
            .chain(diagnosis.hypotheses.iter().map(|h| h.explanation.as_str()))
            .collect();
        let draft = match parsed {
            Ok(draft) => draft.supported_by(&self.evidence, &texts, env.inventory),
            Err(refused) => {
                step.events.push(event(&refused));
                self.without_model(refused.code, env, step);
                return;
            }
        };
        step.events.extend(draft.events().iter().cloned());
        let rca = Rca::with_draft(diagnosis, &draft);
        self.record.cause_class = Some(rca.cause_class());
        self.note(
            env.now,
            "model",
            format!(
                "{} chose {} and cited {} pieces of evidence",
                reply.name,
                draft.hypothesis(),
                draft.citations().len()
            ),
        );
        self.record.model = Some(ModelNote {
            name: reply.name,
            tokens_in: reply.tokens_in,
            tokens_out: reply.tokens_out,
            ms: reply.ms,
            unavailable: String::new(),
            hypothesis: Some(draft.hypothesis().to_owned()),
            summary: draft.summary().to_owned(),
            citations: draft.citations().to_vec(),
        });
        self.propose(env, step);
    }

    /// The root cause as it stands: made anew from the diagnosis and the recorded draft, which is
    /// checked again.
    pub(super) fn rca(&self, env: &Env<'_>) -> Option<Rca> {
        let diagnosis = self.record.diagnosis.clone()?;
        let draft = self.record.model.as_ref().and_then(|m| {
            let text = json!({
                "hypothesis": m.hypothesis.as_ref()?,
                "summary": m.summary,
                "citations": m.citations.iter().map(ToString::to_string).collect::<Vec<_>>(),
            });
            Draft::restore(&text.to_string(), &draft_schema(&diagnosis), env.key).ok()
        });
        Some(match draft {
            Some(draft) => Rca::with_draft(diagnosis, &draft),
            None => Rca::from_rules(diagnosis),
        })
    }
}

/// What the model may answer: the hypotheses within reach of the first, and the evidence that
/// supports any of them.
fn draft_schema(diagnosis: &Diagnosis) -> DraftSchema {
    let mut citations: Vec<EvidenceId> = diagnosis
        .hypotheses
        .iter()
        .filter(|h| diagnosis.allowed.contains(&h.id))
        .flat_map(|h| h.supporting.iter().map(|c| c.evidence))
        .collect();
    citations.sort_unstable();
    citations.dedup();
    DraftSchema {
        hypotheses: diagnosis.allowed.clone(),
        citations,
    }
}

/// The lines of one piece of evidence that the analysis cites, in order.
fn cited_lines(diagnosis: &Diagnosis, id: EvidenceId) -> Vec<u32> {
    let all = diagnosis.facts.iter().flat_map(|f| &f.cites).chain(
        diagnosis
            .hypotheses
            .iter()
            .filter(|h| diagnosis.allowed.contains(&h.id))
            .flat_map(|h| &h.supporting),
    );
    let mut lines: Vec<u32> = all
        .filter(|c: &&Cite| c.evidence == id)
        .filter_map(|c| c.line)
        .collect();
    lines.sort_unstable();
    lines.dedup();
    lines.truncate(MAX_LINES);
    lines
}

/// The boundary of the incident: 80 bits of its own key, so it is random, stays the same across
/// the steps and is stored nowhere.
fn boundary(key: &RedactKey) -> Boundary {
    let mut mac = match Hmac::<Sha256>::new_from_slice(key.bytes()) {
        Ok(mac) => mac,
        Err(e) => unreachable!("HMAC takes a key of any length: {e}"),
    };
    mac.update(b"boundary/1");
    let mut bits = [0_u8; 10];
    bits.iter_mut()
        .zip(mac.finalize().into_bytes())
        .for_each(|(to, from)| *to = from);
    Boundary::from_random(bits)
}

pub(super) fn event(refused: &Refused) -> GuardrailEvent {
    GuardrailEvent::once(Layer::Schema, refused.code)
}
