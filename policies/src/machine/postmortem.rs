//! The postmortem of a closed incident, as Markdown and as JSON, from the record alone.
//!
//! Text from outside (alert names, log lines, the model's summary) has passed the redactor; here it
//! is escaped so that it stays text in any Markdown reader.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Record;
use crate::claim::Evidence;
use crate::diagnosis::{Cite, Hypothesis, ParamValue};
use crate::event::GuardrailEvent;
use crate::model::Millis;

/// Renders both forms.
#[must_use]
pub fn render(record: &Record, evidence: &[Evidence], now: Millis) -> (String, Value) {
    (
        markdown(record, evidence, now),
        as_json(record, evidence, now),
    )
}

fn as_json(record: &Record, evidence: &[Evidence], now: Millis) -> Value {
    let pieces: Vec<Value> = evidence
        .iter()
        .map(|e| {
            json!({
                "id": e.id().to_string(),
                "tool": e.meta().tool,
                "source": e.meta().source,
                "window": e.meta().window,
                "partial": e.meta().partial,
                "lines": e.lines().len(),
                "stats": e.stats(),
            })
        })
        .collect();
    json!({
        "v": 1,
        "incident": record.id,
        "tenant": record.tenant,
        "outcome": record.outcome,
        "opened_at": record.opened_at.rfc3339(),
        "closed_at": now.rfc3339(),
        "cause_class": record.cause_class,
        "culprit": record.hypothesis().map(|h| h.culprit.id.clone()),
        "onset": record.diagnosis.as_ref().and_then(|d| d.onset.clone()),
        "facts": record.diagnosis.as_ref().map(|d| d.facts.clone()),
        "hypotheses": record.diagnosis.as_ref().map(|d| d.hypotheses.clone()),
        "missing": record.diagnosis.as_ref().map(|d| d.missing.clone()),
        "model": record.model,
        "proposal": record.proposal,
        "clearances": record.clearances,
        "action": record.action,
        "job": record.job,
        "verification": record.verification,
        "guardrails": record.events,
        "failed_tools": record.failed_tools,
        "evidence": pieces,
        "timeline": record.timeline,
        "seconds": record.seconds(now),
    })
}

fn markdown(record: &Record, evidence: &[Evidence], now: Millis) -> String {
    let mut out = String::new();
    let name = record
        .alerts
        .first()
        .map_or("(no alert)", |a| a.name.as_str());
    let outcome = record.outcome.map_or("open", super::Outcome::as_str);
    let _ = writeln!(out, "# Postmortem {}: {}\n", record.id, inline(name));
    let _ = writeln!(out, "- Outcome: **{outcome}**");
    let _ = writeln!(out, "- Opened {}, closed {now}", record.opened_at);
    if let Some(onset) = record.diagnosis.as_ref().and_then(|d| d.onset.as_ref()) {
        let _ = writeln!(
            out,
            "- Onset {} ({}, [{}])",
            onset.at,
            inline(&onset.signal),
            onset.evidence
        );
    }
    cause(&mut out, record);
    proposal(&mut out, record);
    section(
        &mut out,
        "Facts",
        record
            .diagnosis
            .iter()
            .flat_map(|d| &d.facts)
            .map(|f| format!("{} {}", inline(&f.text), cites(&f.cites))),
    );
    section(
        &mut out,
        "Hypotheses",
        record
            .diagnosis
            .iter()
            .flat_map(|d| &d.hypotheses)
            .map(hypothesis),
    );
    section(
        &mut out,
        "Guardrail interventions",
        record.events.iter().map(intervention),
    );
    section(&mut out, "Evidence", evidence.iter().map(piece));
    section(
        &mut out,
        "Tools that failed",
        record.failed_tools.iter().map(|t| {
            format!(
                "{} on {}: {}",
                inline(&t.tool),
                inline(&t.source),
                inline(&t.code)
            )
        }),
    );
    section(
        &mut out,
        "Timeline",
        record
            .timeline
            .iter()
            .map(|t| format!("{} {}: {}", t.at, t.kind, inline(&t.text))),
    );
    out
}

fn intervention(event: &GuardrailEvent) -> String {
    let place = event
        .evidence
        .map_or_else(String::new, |id| format!(" in {id}"));
    let rule = if event.rule.is_empty() {
        String::new()
    } else {
        format!(" ({})", inline(&event.rule))
    };
    let layer = event.layer.as_str();
    format!("{layer} {}{rule}: {}{place}", event.code, event.count)
}

fn piece(evidence: &Evidence) -> String {
    let meta = evidence.meta();
    let partial = meta
        .partial
        .as_ref()
        .map_or_else(String::new, |p| format!(", partial: {}", inline(p)));
    format!(
        "{}: {} on {}, {} lines{partial}",
        evidence.id(),
        inline(&meta.tool),
        inline(&meta.source),
        evidence.lines().len()
    )
}

fn cause(out: &mut String, record: &Record) {
    out.push_str("\n## Cause\n\n");
    match record.hypothesis() {
        Some(h) => {
            let _ = writeln!(
                out,
                "**{}** of {}: {} {}",
                h.cause_class,
                inline(&h.service),
                inline(&h.explanation),
                cites(&h.supporting)
            );
        }
        None => {
            let class = record.cause_class.map_or("inconclusive", |c| c.as_str());
            let _ = writeln!(out, "**{class}**");
        }
    }
    for missing in record.diagnosis.iter().flat_map(|d| &d.missing) {
        let _ = writeln!(out, "- missing: {}", inline(missing));
    }
    match &record.model {
        Some(m) if m.unavailable.is_empty() => {
            let _ = writeln!(
                out,
                "\nModel {} ({} tokens in, {} out): {}",
                inline(&m.name),
                m.tokens_in,
                m.tokens_out,
                inline(&m.summary)
            );
        }
        Some(m) => {
            let _ = writeln!(
                out,
                "\nDiagnosed by rules; the model was not available: {}",
                inline(&m.unavailable)
            );
        }
        None => {}
    }
}

fn proposal(out: &mut String, record: &Record) {
    let Some(p) = &record.proposal else {
        return;
    };
    out.push_str("\n## Action\n\n");
    let _ = writeln!(
        out,
        "{} of {}",
        p.class,
        inline(if p.target.is_empty() { "-" } else { &p.target })
    );
    if let Some(advice) = p.advice {
        let _ = writeln!(out, "- advice: {advice}");
    }
    for (key, value) in &p.change {
        let _ = writeln!(out, "- {}: {}", inline(key), inline(&value_text(value)));
    }
    for clearance in &record.clearances {
        let word = if clearance.cleared {
            "cleared"
        } else {
            "refused"
        };
        let _ = writeln!(out, "- interlocks {word} at {}", clearance.at);
        for (code, reason) in clearance.codes.iter().zip(&clearance.reasons) {
            let _ = writeln!(out, "  - {code}: {}", inline(reason));
        }
    }
    if let Some(a) = &record.action {
        let by = if a.decided_by.is_empty() {
            String::new()
        } else {
            format!(", decided by {}", inline(&a.decided_by.join(", ")))
        };
        let _ = writeln!(out, "- guard action {}: {}{by}", inline(&a.id), a.state);
    }
    if let Some(job) = &record.job {
        let _ = writeln!(out, "- job: {} {}", inline(&job.outcome), inline(&job.code));
    }
    if let Some(v) = &record.verification {
        let word = match v.recovered {
            Some(true) => "recovered",
            Some(false) => "not recovered",
            None => "unknown",
        };
        let _ = writeln!(out, "- probe: {word} ({})", inline(&v.metric));
    }
}

fn value_text(value: &ParamValue) -> String {
    match value {
        ParamValue::Int(n) => n.to_string(),
        ParamValue::Bool(b) => b.to_string(),
        ParamValue::Text(t) => t.clone(),
    }
}

fn hypothesis(h: &Hypothesis) -> String {
    let rejected = h
        .rejected
        .as_ref()
        .map_or_else(String::new, |why| format!(" (rejected: {})", inline(why)));
    format!(
        "{} {} of {}, score {}: {} {}{rejected}",
        h.id,
        h.cause_class,
        inline(&h.service),
        h.score,
        inline(&h.explanation),
        cites(&h.supporting)
    )
}

fn cites(cites: &[Cite]) -> String {
    cites
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

fn section(out: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {title}\n");
    for item in items {
        let _ = writeln!(out, "- {item}");
    }
}

/// Text from outside on one line, with everything that Markdown or HTML would act on escaped.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '!' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '&' => out.push_str("&amp;"),
            c if c.is_control() => {
                let _ = write!(out, "\\\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::inline;

    #[test]
    fn outside_text_stays_text_in_markdown() {
        assert_eq!(
            inline("a <b> [x](y) `z`\n# h"),
            "a \\<b\\> \\[x\\](y) \\`z\\` \\# h"
        );
        assert_eq!(inline("\u{1b}[31m"), "\\\\u{1b}\\[31m");
    }
}
