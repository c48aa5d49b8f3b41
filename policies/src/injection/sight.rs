//! What a model sees of evidence (guardrails 7.3 and 7.7): slots that outsiders fill are abstracted.
//!
//! People see the whole redacted value. A model sees its length, the typed values in it and words
//! that were known before: constants of older templates, names of the inventory and of metrics,
//! technical terms. A verb of action is never among them.

use std::collections::{BTreeMap, BTreeSet};

use super::slots::{self, Kind};
use super::template::Templates;
use super::{Mode, joined::Segment, lexicon, rules, split, terms};
use crate::claim::{Evidence, LineRole, Provenance, RedactKey};
use crate::event::{GuardrailEvent, Layer, Tally};
use crate::model::{EvidenceId, Millis, Payload};
use crate::redaction::token::Minter;

/// Weak signals of one origin after which its slots are shown without their words.
const WEAK_LIMIT: u32 = 3;
/// Most words and values shown of one slot.
const MAX_SHOWN: usize = 12;
/// Longest value or word that is shown.
const MAX_VALUE: usize = 64;

/// What is known when a prompt is built: templates, vocabulary, and origins that lost trust.
#[derive(Debug)]
pub struct Sight {
    minter: Minter,
    templates: BTreeMap<(EvidenceId, String), Templates>,
    words: BTreeSet<String>,
    muted: BTreeSet<String>,
    removed: u32,
    tally: Tally,
}

impl Sight {
    /// Learns from all evidence of a run. `onset` divides known templates from new ones.
    #[must_use]
    pub fn new(
        evidence: &[Evidence],
        onset: Option<Millis>,
        inventory: &[String],
        key: &RedactKey,
    ) -> Self {
        let mut sight = Self {
            minter: Minter::new(key),
            templates: BTreeMap::new(),
            words: terms::TERMS.iter().map(|w| (*w).to_owned()).collect(),
            muted: BTreeSet::new(),
            removed: evidence
                .iter()
                .fold(0, |n: u32, e| n.saturating_add(e.stats().removed)),
            tally: Tally::default(),
        };
        sight
            .words
            .extend(inventory.iter().map(|w| w.to_lowercase()));
        for piece in evidence {
            sight.learn(piece, onset);
        }
        sight.weigh(evidence);
        sight
    }

    fn learn(&mut self, evidence: &Evidence, onset: Option<Millis>) {
        for (service, templates) in mine(evidence.payload(), onset) {
            self.words
                .extend(templates.constants().map(str::to_lowercase));
            self.templates.insert((evidence.id(), service), templates);
        }
        match evidence.payload() {
            Payload::Metrics { series, .. } => {
                for one in series {
                    let names = [&one.name, &one.service, &one.instance];
                    self.words.extend(names.map(|n| n.to_lowercase()));
                    self.words
                        .extend(one.labels.keys().map(|n| n.to_lowercase()));
                }
            }
            Payload::Deploys { history } => {
                let hunks = history
                    .deploys
                    .iter()
                    .flat_map(|d| d.diff.iter().flatten())
                    .flat_map(|file| &file.hunks);
                for line in hunks.flat_map(|h| &h.lines) {
                    self.words.extend(identifiers(line));
                }
            }
            Payload::Topology { edges } => {
                for edge in edges {
                    self.words.insert(edge.caller.to_lowercase());
                    self.words.insert(edge.callee.to_lowercase());
                }
            }
            Payload::Alerts { .. }
            | Payload::Logs { .. }
            | Payload::Units { .. }
            | Payload::Runbooks { .. } => {}
        }
    }

    /// Counts weak signals per origin; too many take its words away.
    fn weigh(&mut self, evidence: &[Evidence]) {
        let mut weak: BTreeMap<String, u32> = BTreeMap::new();
        for piece in evidence {
            for number in 1..=u32::try_from(piece.lines().len()).unwrap_or(u32::MAX) {
                let outside = match piece.role(number) {
                    Some(LineRole::Log(_) | LineRole::Told | LineRole::Label(_)) => true,
                    Some(LineRole::Machine | LineRole::Prose) | None => false,
                };
                let text = piece.line(number).unwrap_or("");
                if outside && rules::is_weak(text) {
                    let slot = weak.entry(origin(piece, number)).or_default();
                    *slot = slot.saturating_add(1);
                }
            }
        }
        for (origin, count) in weak {
            if count >= WEAK_LIMIT {
                self.muted.insert(origin);
                self.tally.add(Layer::Inject, "inject.origin", "weak", 1);
            }
        }
    }

    /// What was done so far.
    pub(crate) fn events(&self) -> Vec<GuardrailEvent> {
        self.tally.clone().events(None)
    }

    /// How many removals the evidence has already.
    pub(crate) const fn removed_before(&self) -> u32 {
        self.removed
    }

    /// The token that stands for text removed from several segments.
    pub(crate) fn removed(&self, number: u32) -> String {
        self.minter.close(&format!("removed:instr{number}"))
    }

    /// Line `number` of `evidence` as a model may see it, and how many slots were abstracted.
    pub(crate) fn segment(&mut self, evidence: &Evidence, number: u32) -> Option<(Segment, u32)> {
        let line = evidence.line(number)?;
        let origin = origin(evidence, number);
        let muted = self.muted.contains(&origin);
        let contested = evidence.stats().contested;
        let mut out = Shown {
            sight: self,
            id: evidence.id(),
            bare: muted || contested,
            text: String::with_capacity(line.len()),
            fields: 0,
            novel: false,
        };
        let role = evidence.role(number).unwrap_or(LineRole::Told);
        let mut at = None;
        let mode = match role {
            LineRole::Machine => {
                out.text.push_str(line);
                Mode::Typed
            }
            LineRole::Prose => {
                out.sentences(line, Mode::Prose, contested);
                Mode::Prose
            }
            LineRole::Log(index) => {
                if let Payload::Logs { sources, lines } = evidence.payload()
                    && let Some(log) = lines.get(index)
                {
                    at = log.at;
                    let service = sources.get(log.source).map_or("", |s| s.service.as_str());
                    let templates = self.templates.get(&(evidence.id(), service.to_owned()));
                    let body = line.strip_suffix(log.text.as_str()).map_or(0, str::len);
                    out.text.push_str(line.get(..body).unwrap_or(""));
                    out.log(line.get(body..).unwrap_or(""), templates, contested);
                }
                Mode::Telemetry
            }
            LineRole::Label(value) => {
                out.text.push_str(line.get(..value).unwrap_or(""));
                out.slot(line.get(value..).unwrap_or(""));
                Mode::Telemetry
            }
            LineRole::Told if muted => {
                out.slot(line);
                Mode::Telemetry
            }
            LineRole::Told => {
                out.sentences(line, Mode::Telemetry, contested);
                Mode::Telemetry
            }
        };
        let (text, fields, novel) = (out.text, out.fields, out.novel);
        self.tally
            .add(Layer::Poison, "poison.novel", "template", u32::from(novel));
        let segment = Segment {
            origin,
            at,
            mode,
            text,
        };
        Some((segment, fields))
    }

    /// A log line of which no template is known, and how many slots were abstracted.
    pub(crate) fn line(&self, text: &str, id: EvidenceId) -> (String, u32) {
        let mut out = Shown {
            sight: self,
            id,
            bare: false,
            text: String::with_capacity(text.len()),
            fields: 0,
            novel: false,
        };
        out.log(text, Some(&Templates::default()), false);
        (out.text, out.fields)
    }

    /// Own text that may quote a log line: what stands in its quotes is a slot.
    pub(crate) fn quoting(&self, text: &str, id: EvidenceId) -> String {
        let mut out = Shown {
            sight: self,
            id,
            bare: false,
            text: String::with_capacity(text.len()),
            fields: 0,
            novel: false,
        };
        let mut at = 0;
        for piece in slots::pieces(text) {
            if piece.kind == Kind::Text {
                out.text.push_str(text.get(at..piece.start).unwrap_or(""));
                out.slot(text.get(piece.start..piece.end).unwrap_or(""));
                at = piece.end;
            }
        }
        out.text.push_str(text.get(at..).unwrap_or(""));
        out.text
    }

    /// True when a word tells something and orders nothing.
    fn is_shown(&self, word: &str) -> bool {
        let lower = word.to_lowercase();
        if word.len() > MAX_VALUE || lexicon::is_action(&lower) {
            return false;
        }
        self.words.contains(&lower) || terms::is_exception(word)
    }
}

/// Templates of each service of one answer.
pub(crate) fn mine(payload: &Payload, onset: Option<Millis>) -> BTreeMap<String, Templates> {
    let Payload::Logs { sources, lines } = payload else {
        return BTreeMap::new();
    };
    let mut services: Vec<&str> = sources.iter().map(|s| s.service.as_str()).collect();
    // Lines whose source is unknown are a source of their own.
    services.push("");
    services.sort_unstable();
    services.dedup();
    services
        .into_iter()
        .map(|service| {
            let mine = lines.iter().filter(|line| {
                sources.get(line.source).map_or("", |s| s.service.as_str()) == service
            });
            let templates = Templates::mine(mine.map(|line| (line.at, line.text.as_str())), onset);
            (service.to_owned(), templates)
        })
        .collect()
}

/// Who emitted a line: the source and, in logs, the component.
fn origin(evidence: &Evidence, number: u32) -> String {
    let source = &evidence.meta().source;
    match (evidence.role(number), evidence.payload()) {
        (Some(LineRole::Log(index)), Payload::Logs { sources, lines }) => {
            let emitter = lines.get(index).and_then(|l| sources.get(l.source));
            format!("{source}/{}", emitter.map_or("", |s| s.service.as_str()))
        }
        _ => source.clone(),
    }
}

/// Names of code in a line of a diff.
fn identifiers(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| {
            (4..=32).contains(&word.len())
                && (word.contains('_') || word.bytes().skip(1).any(|b| b.is_ascii_uppercase()))
                && word.matches('_').count() <= 2
        })
        .map(str::to_lowercase)
}

struct Shown<'a> {
    sight: &'a Sight,
    id: EvidenceId,
    /// Only the length of a slot is shown.
    bare: bool,
    text: String,
    fields: u32,
    /// A line of a template that was not known before the onset.
    novel: bool,
}

impl Shown<'_> {
    fn log(&mut self, text: &str, templates: Option<&Templates>, contested: bool) {
        let Some(templates) = templates else {
            self.slot(text);
            return;
        };
        if contested && rules::judge_line(text, Mode::Telemetry) {
            let head = split::prefix_len(text);
            self.text.push_str(text.get(..head).unwrap_or(""));
            self.slot(text.get(head..).unwrap_or(""));
            return;
        }
        let mut at = 0;
        for range in templates.ranges(text) {
            let piece = range.piece;
            self.novel |= range.provenance == Provenance::Novel;
            if piece.kind == Kind::Text {
                self.text.push_str(text.get(at..piece.start).unwrap_or(""));
                self.slot(text.get(piece.start..piece.end).unwrap_or(""));
                at = piece.end;
            }
        }
        self.text.push_str(text.get(at..).unwrap_or(""));
    }

    /// Free text of people and rules; in a contested output what was found is a slot.
    fn sentences(&mut self, text: &str, mode: Mode, contested: bool) {
        if contested && rules::judge_line(text, mode) {
            self.slot(text);
        } else {
            self.text.push_str(text);
        }
    }

    /// A slot: its length, and what may be shown of it.
    fn slot(&mut self, text: &str) {
        let mut inner = Vec::new();
        slots::words(text, 0, text.len(), &mut inner);
        let shown: Vec<&str> = inner
            .iter()
            .filter_map(|piece| {
                let word = text.get(piece.start..piece.end)?;
                let keep = match piece.kind {
                    Kind::Word => self.sight.is_shown(word),
                    Kind::Path => is_plain_path(word),
                    Kind::Id => word.len() <= MAX_VALUE && !word.contains(['+', '_']),
                    Kind::Number | Kind::Duration | Kind::Time | Kind::Version | Kind::Ip => {
                        word.len() <= MAX_VALUE
                    }
                    Kind::Text => false,
                };
                keep.then_some(match piece.kind {
                    Kind::Path => word.split(['?', '#']).next().unwrap_or(""),
                    _ => word,
                })
            })
            .collect();
        // One or two plain words say what failed and order nothing.
        if !self.bare && !shown.is_empty() && shown.len() == inner.len() && inner.len() <= 2 {
            self.text.push_str(text);
            return;
        }
        self.fields = self.fields.saturating_add(1);
        let body = format!("field:text,{}b,{}", text.len(), self.id);
        self.text.push_str(&self.sight.minter.close(&body));
        if !self.bare && !shown.is_empty() {
            let shown: Vec<&str> = shown.into_iter().take(MAX_SHOWN).collect();
            self.text.push('(');
            self.text.push_str(&shown.join(" "));
            self.text.push(')');
        }
    }
}

/// A path whose parts are names and not sentences.
fn is_plain_path(word: &str) -> bool {
    let plain = word.split(['?', '#']).next().unwrap_or("");
    plain.len() <= MAX_VALUE
        && plain.split('/').all(|part| {
            part.matches(['-', '_', '.', '+', '~']).count() <= 2
                && !part.contains('%')
                && !part
                    .split(['-', '_', '.', '+'])
                    .any(|w| lexicon::is_action(&w.to_lowercase()))
        })
}
