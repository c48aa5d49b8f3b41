//! Log lines put together to records, and records mined into templates (D1, D2).

use std::collections::{BTreeMap, BTreeSet};

use super::Cite;
use super::board::Board;
use super::view::{LogRow, View};
use crate::model::Millis;

/// Most records of one template that are remembered line by line.
const EXAMPLES: usize = 3;
/// Most templates that are kept.
const TEMPLATES_MAX: usize = 4_000;
/// A template is surging from this ratio of its rates on.
const SURGE: f64 = 3.0;

/// How bad a record says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Quiet,
    Warning,
    Error,
}

/// One stamped line and the unstamped lines that belong to it.
pub(super) struct Record<'v> {
    pub(super) at: Millis,
    pub(super) service: &'v str,
    pub(super) instance: &'v str,
    pub(super) level: Level,
    pub(super) rows: Vec<&'v LogRow<'v>>,
}

impl<'v> Record<'v> {
    /// The first line.
    pub(super) fn head(&self) -> Option<&'v LogRow<'v>> {
        self.rows.first().copied()
    }
}

/// A kind of record.
#[derive(Clone, Debug)]
pub(super) struct Template<'v> {
    pub(super) service: &'v str,
    pub(super) text: String,
    pub(super) level: Level,
    pub(super) before: u32,
    pub(super) after: u32,
    pub(super) last: Millis,
    pub(super) instances: BTreeSet<&'v str>,
    pub(super) cites: Vec<Cite>,
}

impl Template<'_> {
    /// True when it was never seen before the onset.
    pub(super) const fn is_novel(&self) -> bool {
        self.before == 0 && self.after > 0
    }
}

/// Joins lines to records, oldest first.
pub(super) fn records<'v>(view: &'v View<'v>) -> Vec<Record<'v>> {
    let mut open: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut records: Vec<Record<'_>> = Vec::new();
    let stamping: BTreeSet<&str> = view
        .logs
        .iter()
        .filter(|row| row.stamped)
        .map(|row| row.source.instance.as_str())
        .collect();
    for row in &view.logs {
        let key = (row.source.service.as_str(), row.source.instance.as_str());
        let stamps = stamping.contains(row.source.instance.as_str());
        let begins = row.stamped || (!stamps && !row.text.starts_with([' ', '\t']));
        let joined = open.get(&key).and_then(|at| records.get_mut(*at));
        match joined {
            Some(record) if !begins => {
                record.rows.push(row);
                record.level = record.level.max(level_of_continuation(row.text));
            }
            Some(_) | None => {
                open.insert(key, records.len());
                records.push(Record {
                    at: row.at,
                    service: key.0,
                    instance: key.1,
                    level: level(row.text),
                    rows: vec![row],
                });
            }
        }
    }
    records
}

/// The level that a line names near its begin, or in a field.
pub(super) fn level(text: &str) -> Level {
    let words = text.split(|c: char| !c.is_ascii_alphabetic());
    for word in words.filter(|w| w.len() >= 3).take(12) {
        match word.to_ascii_uppercase().as_str() {
            "ERROR" | "ERR" | "FATAL" | "CRITICAL" | "CRIT" | "SEVERE" | "PANIC" | "ALERT"
            | "EMERG" => return Level::Error,
            "WARN" | "WARNING" => return Level::Warning,
            "INFO" | "DEBUG" | "TRACE" | "NOTICE" => return Level::Quiet,
            _ => {}
        }
    }
    level_of_continuation(text)
}

fn level_of_continuation(text: &str) -> Level {
    if text.contains("Traceback") || text.contains("Exception") || text.contains("panicked at") {
        Level::Error
    } else {
        Level::Quiet
    }
}

/// The line with everything that varies between records of one kind taken out. Bounded work: one
/// pass.
pub(super) fn mask(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut quote: Option<char> = None;
    let mut word = String::new();
    for c in text.chars() {
        if let Some(end) = quote {
            if c == end {
                quote = None;
                masked.push('*');
            }
            continue;
        }
        if c.is_whitespace()
            || matches!(
                c,
                '"' | '\'' | '`' | ',' | ';' | '=' | '(' | ')' | '[' | ']'
            )
        {
            flush(&mut masked, &mut word);
            let opens =
                matches!(c, '"' | '`') || (c == '\'' && !masked.ends_with(char::is_alphanumeric));
            if opens {
                quote = Some(c);
            } else {
                masked.push(c);
            }
            continue;
        }
        word.push(c);
    }
    flush(&mut masked, &mut word);
    masked
}

fn flush(masked: &mut String, word: &mut String) {
    let varies = word.bytes().any(|b| b.is_ascii_digit()) || word.contains('/') && word.len() > 1;
    if varies {
        masked.push('*');
    } else {
        masked.push_str(word);
    }
    word.clear();
}

/// Mines the templates and counts each before and after the onset.
pub(super) fn run<'v>(view: &'v View<'v>, board: &mut Board<'v>) {
    let split = board
        .onset
        .as_ref()
        .map(|o| o.at.plus(-board.width_ms.max(1_000)));
    let mut templates: BTreeMap<(&str, String), Template<'_>> = BTreeMap::new();
    for record in records(view) {
        let Some(head) = record.head() else { continue };
        let key = (record.service, mask(head.text));
        if templates.len() >= TEMPLATES_MAX && !templates.contains_key(&key) {
            continue;
        }
        let text = key.1.clone();
        let template = templates.entry(key).or_insert_with(|| Template {
            service: record.service,
            text,
            level: record.level,
            before: 0,
            after: 0,
            last: record.at,
            instances: BTreeSet::new(),
            cites: Vec::new(),
        });
        template.level = template.level.max(record.level);
        template.last = template.last.max(record.at);
        template.instances.insert(record.instance);
        if split.is_some_and(|split| record.at < split) {
            template.before = template.before.saturating_add(1);
        } else {
            template.after = template.after.saturating_add(1);
            if template.cites.len() < EXAMPLES {
                template.cites.push(head.cite);
            }
        }
    }
    board.templates = templates.into_values().collect();
    report(view, board);
}

/// Seconds of log before and after the onset.
fn spans(view: &View<'_>, onset: Millis) -> Option<(f64, f64)> {
    let first = view.logs.first()?.at;
    let last = view.logs.last()?.at;
    let seconds = |from: Millis, to: Millis| {
        #[expect(
            clippy::cast_precision_loss,
            reason = "a rate needs no more than 52 bits"
        )]
        let ms = to.since(from).max(1_000) as f64;
        ms / 1_000.0
    };
    Some((seconds(first, onset), seconds(onset, last)))
}

/// True when a template came up or surged with the onset.
pub(super) fn is_fresh(template: &Template<'_>, spans: Option<(f64, f64)>) -> bool {
    let Some((before_s, after_s)) = spans else {
        return template.is_novel();
    };
    let before = f64::from(template.before) / before_s;
    let after = f64::from(template.after) / after_s;
    template.is_novel() || (template.after >= 3 && after >= SURGE * before)
}

fn report(view: &View<'_>, board: &mut Board<'_>) {
    let Some(onset) = board.onset.as_ref().map(|o| o.at) else {
        return;
    };
    let spans = spans(view, onset);
    let mut fresh: Vec<&Template<'_>> = board
        .templates
        .iter()
        .filter(|t| t.level > Level::Quiet && is_fresh(t, spans))
        .collect();
    fresh.sort_by(|a, b| b.after.cmp(&a.after).then_with(|| a.text.cmp(&b.text)));
    let lines: Vec<(String, Vec<Cite>)> = fresh
        .iter()
        .take(5)
        .map(|t| {
            let kind = if t.is_novel() { "new" } else { "surging" };
            let text = format!(
                "`{}` logs a {kind} kind of line {} times since the onset, {} times before",
                t.service, t.after, t.before
            );
            (text, t.cites.clone())
        })
        .collect();
    for (text, cites) in lines {
        board.fact(text, &cites);
    }
}

/// The fresh templates of the board as a set of keys.
pub(super) fn fresh_keys<'b>(
    view: &View<'_>,
    board: &'b Board<'_>,
) -> BTreeSet<(&'b str, &'b str)> {
    let spans = board.onset.as_ref().and_then(|o| spans(view, o.at));
    board
        .templates
        .iter()
        .filter(|t| is_fresh(t, spans))
        .map(|t| (t.service, t.text.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Level, level, mask};

    #[test]
    fn what_varies_is_masked_and_the_rest_stays() {
        let a = mask("GET /orders/17 failed after 31 ms id=9f3c \"some text\"");
        let b = mask("GET /orders/9 failed after 4 ms id=77aa \"other\"");
        assert_eq!(a, b);
        assert_ne!(a, mask("PUT /orders/9 failed after 4 ms id=77aa \"other\""));
        assert_eq!(mask("can't open 'x'"), "can't open *");
    }

    #[test]
    fn the_level_is_read_from_words_and_fields() {
        assert_eq!(level("2026-01-31T08:00:00Z ERROR till-1 no"), Level::Error);
        assert_eq!(
            level("{\"level\":\"warn\",\"msg\":\"error\"}"),
            Level::Warning
        );
        assert_eq!(level("level=info msg=\"error counter\""), Level::Quiet);
    }
}
