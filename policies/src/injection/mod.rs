//! The injection filter: instructions to the reader are removed from untrusted text.
//!
//! A first layer that can be bypassed (guardrails 1.2); the guarantees rest on provenance, on
//! lists to choose from and on interlocks. A rule needs two features in one sentence, never a
//! single word. What is removed is the sentence or the quoted value; time stamp, level and fields
//! of the line stay. Judged are the text as it is, without invisible and look-alike characters,
//! with spaced-out words joined, and what base64 and hexadecimal runs decode to.
//!
//! [`Sight`] is the second half: it abstracts the slots of what a model sees, by the templates of
//! each source, and [`joined`] reads the segments of one prompt as one text.

pub(crate) mod joined;
// The lists are read by the line, and one word a line would make them unreadable.
#[rustfmt::skip]
mod lexicon;
mod phrases;
mod request;
mod rules;
pub(crate) mod sight;
pub(crate) mod slots;
mod split;
pub(crate) mod template;
mod terms;
mod words;

pub use sight::Sight;

use crate::claim::RedactKey;
use crate::redaction::token::Minter;
use crate::spotlight;

/// Class of control tokens, which are removed in every mode.
pub(crate) const CTL: &str = "ctl";

/// Which rules apply (guardrails 7.4 and 7.8 c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Log lines, alert texts, event details: all rules.
    Telemetry,
    /// Runbooks and commit messages: orders and requests are their purpose.
    Prose,
    /// Names, metadata, code and diffs.
    Typed,
    /// Control tokens only: an output that is contested, a text of this program.
    Control,
}

/// A filtered text.
#[derive(Debug)]
pub(crate) struct Clean {
    pub(crate) text: String,
    /// Class of each removal.
    pub(crate) classes: Vec<&'static str>,
    /// Bytes removed.
    pub(crate) cut: usize,
}

/// Filters `text`; `None` when nothing has to go. Removals are numbered on from `count`.
pub(crate) fn clean(text: &str, mode: Mode, key: &RedactKey, count: u32) -> Option<Clean> {
    let mut cuts = control(text);
    let judged = mode != Mode::Control;
    if judged && rules::worth_judging(text) {
        for unit in split::units(text, mode) {
            let sentence = text.get(unit.0..unit.1).unwrap_or("");
            if let Some(class) = rules::judge(sentence, mode) {
                cuts.push((unit.0, unit.1, class));
            }
        }
    }
    if judged {
        cuts.extend(rules::encoded(text, mode));
    }
    if cuts.is_empty() {
        return None;
    }
    cuts.sort_unstable();
    let minter = Minter::new(key);
    let mut out = String::with_capacity(text.len());
    let mut classes = Vec::new();
    let (mut at, mut cut, mut number) = (0, 0, count);
    for (start, end, class) in cuts {
        if end <= at {
            continue;
        }
        out.push_str(text.get(at..start).unwrap_or(""));
        cut += end - start.max(at);
        at = end;
        number = number.saturating_add(1);
        out.push_str(&if class == CTL {
            minter.close("removed:ctl")
        } else {
            minter.close(&format!("removed:instr{number}"))
        });
        classes.push(class);
    }
    out.push_str(text.get(at..).unwrap_or(""));
    Some(Clean {
        text: out,
        classes,
        cut,
    })
}

fn control(text: &str) -> Vec<(usize, usize, &'static str)> {
    spotlight::control_spans(text)
        .into_iter()
        .map(|(start, end)| (start, end, CTL))
        .collect()
}

#[cfg(test)]
mod tests;
