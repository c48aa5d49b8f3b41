//! `logs`: lines of log files in the window, the important ones first when there are too many.

use std::time::Duration;

use policies::model::{LogLine, LogSource, Millis, Payload};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Failure, Input, LogFile, Output, Run, SourceSpec, Tool, lines, wanted, wrong_source};
use crate::jobs::Grants;

const MAX_READ: u64 = 16 << 20;
const MAX_TEXT: usize = 3 << 20;
const DEFAULT_LIMIT: usize = 2_000;

pub(super) const TOOL: Tool = Tool {
    name: "logs",
    summary: "Answers log lines of services, oldest first, with the lines that continue them.",
    source: "logs",
    schema,
    check,
    timeout: Duration::from_secs(10),
    max_output: 8 << 20,
    run: Run::Worker { grants, body },
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    services: Vec<String>,
    contains: Option<String>,
    #[serde(default)]
    min_level: Level,
    limit: Option<usize>,
}

/// How loud a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    #[default]
    Any,
    Warn,
    Error,
}

fn schema() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {
            "services": {"type": "array", "items": {"type": "string"}, "maxItems": 64,
                "description": "only these services; all when absent"},
            "contains": {"type": "string", "maxLength": 200, "description": "only entries with this text"},
            "min_level": {"enum": ["any", "warn", "error"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 5000, "description": "most lines"},
        },
        "examples": [{}, {"services": ["checkout"], "contains": "timeout", "min_level": "warn", "limit": 500}],
    })
}

fn grants(source: &SourceSpec) -> Grants {
    match source {
        SourceSpec::Logs { files } => Grants {
            read: files.iter().map(|file| file.path.clone()).collect(),
            write: vec![],
        },
        _ => Grants::default(),
    }
}

/// A stamped line with the lines that follow it without a stamp of their own (a stack trace).
struct Entry {
    at: Option<Millis>,
    source: usize,
    level: Level,
    lines: Vec<String>,
}

fn body(input: &Input<'_>) -> Result<Output, Failure> {
    let args: Args = input.args()?;
    let SourceSpec::Logs { files } = input.source else {
        return Err(wrong_source(input, "logs"));
    };
    let chosen: Vec<&LogFile> = files
        .iter()
        .filter(|file| wanted(&args.services, &file.service))
        .collect();
    let mut partial = Vec::new();
    let mut entries = Vec::new();
    let mut unread = 0;
    let mut last_failure = None;
    for (source, file) in chosen.iter().enumerate() {
        match lines::read_since(&file.path, input.window.from, MAX_READ) {
            Ok((text, cut)) => {
                if cut {
                    partial.push(format!(
                        "{}: only the last {MAX_READ} bytes were read",
                        file.instance
                    ));
                }
                collect(&text, source, input, &args, &mut entries);
            }
            Err(failure) => {
                unread += 1;
                partial.push(format!("{}: {failure}", file.instance));
                last_failure = Some(failure);
            }
        }
    }
    // Not one file answered: that is no empty answer.
    if let (true, Some(failure)) = (unread == chosen.len(), last_failure) {
        return Err(failure);
    }
    entries.sort_by_key(|entry| entry.at);
    let left_out = keep_the_loudest(&mut entries, args.limit.unwrap_or(DEFAULT_LIMIT));
    if left_out > 0 {
        partial.push(format!("{left_out} quieter or older lines left out"));
    }
    Ok(Output {
        payload: payload(&chosen, entries),
        partial,
    })
}

fn payload(chosen: &[&LogFile], entries: Vec<Entry>) -> Payload {
    let mut out = Vec::new();
    for entry in entries {
        let mut at = entry.at;
        for text in entry.lines {
            out.push(LogLine {
                at: at.take(),
                source: entry.source,
                text,
            });
        }
    }
    let sources = chosen.iter().map(|file| LogSource {
        service: file.service.clone(),
        instance: file.instance.clone(),
    });
    Payload::Logs {
        sources: sources.collect(),
        lines: out,
    }
}

fn collect(text: &str, source: usize, input: &Input<'_>, args: &Args, entries: &mut Vec<Entry>) {
    let mut open: Option<Entry> = None;
    let mut close = |entry: Option<Entry>| {
        let Some(entry) = entry else { return };
        let inside = entry.at.is_none_or(|at| super::inside(input.window, at));
        let text = args.contains.as_deref().unwrap_or_default();
        let contains = entry.lines.iter().any(|line| line.contains(text));
        if inside && contains && entry.level >= args.min_level {
            entries.push(entry);
        }
    };
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let at = lines::stamp(line);
        match (&mut open, at) {
            (Some(entry), None) => {
                entry.level = entry.level.max(level(line));
                entry.lines.push(lines::cut(line));
            }
            _ => {
                let fresh = Entry {
                    at,
                    source,
                    level: level(line),
                    lines: vec![lines::cut(line)],
                };
                close(open.replace(fresh));
            }
        }
    }
    close(open);
}

/// By the words that log frameworks write; only the head of a line counts, not its message.
fn level(line: &str) -> Level {
    let head = line.split_whitespace().take(5);
    let mut level = Level::Any;
    for word in head {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        level = level.max(match word {
            "ERROR" | "FATAL" | "CRITICAL" | "PANIC" | "Traceback" | "panicked" => Level::Error,
            "WARN" | "WARNING" => Level::Warn,
            _ => Level::Any,
        });
    }
    level
}

/// Keeps at most `limit` lines and [`MAX_TEXT`] bytes: louder entries before quieter ones, later
/// before earlier ones. The order of what stays is kept. Answers how many lines went.
fn keep_the_loudest(entries: &mut Vec<Entry>, limit: usize) -> usize {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&n| {
        entries
            .get(n)
            .map(|entry| (std::cmp::Reverse(entry.level), std::cmp::Reverse(n)))
    });
    let mut keep = vec![false; entries.len()];
    let (mut lines, mut bytes, mut left_out) = (0, 0, 0);
    for n in order {
        let Some(entry) = entries.get(n) else {
            continue;
        };
        lines += entry.lines.len();
        bytes += entry.lines.iter().map(String::len).sum::<usize>();
        if lines <= limit && bytes <= MAX_TEXT {
            if let Some(slot) = keep.get_mut(n) {
                *slot = true;
            }
        } else {
            left_out += entry.lines.len();
        }
    }
    let mut kept = keep.into_iter();
    entries.retain(|_| kept.next().unwrap_or(false));
    left_out
}

fn check(args: &Value) -> Result<(), String> {
    let args: Args = super::parse_args(args)?;
    match args.limit {
        Some(0) => Err("`limit` must be at least 1".to_owned()),
        Some(n) if n > 5_000 => Err("`limit` must be at most 5000".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use policies::model::Window;

    use super::*;

    const CHECKOUT: &str = "\
2026-01-31T08:00:00.000Z INFO checkout-1 request done route=/pay code=200
2026-01-31T08:00:01.000Z ERROR checkout-1 request failed route=/pay
Traceback (most recent call last):
  File \"app.py\", line 41, in price
ZeroDivisionError: division by zero
2026-01-31T08:00:02.000Z INFO checkout-1 request done route=/pay code=200
";
    const PAYMENTS: &str = "2026-01-31T08:00:01.500Z WARN payments-1 slow upstream\n";

    fn answer(args: &Value, window: (&str, &str)) -> (Vec<LogSource>, Vec<LogLine>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        for (service, text) in [("checkout", CHECKOUT), ("payments", PAYMENTS)] {
            let path = folder.path().join(service);
            std::fs::write(&path, text).unwrap();
            files.push(LogFile {
                service: service.into(),
                instance: format!("{service}-1"),
                path,
            });
        }
        files.push(LogFile {
            service: "gone".into(),
            instance: "gone-1".into(),
            path: folder.path().join("gone"),
        });
        let source = SourceSpec::Logs { files };
        let at = |text: &str| Millis::parse_rfc3339(&format!("2026-01-31T{text}Z")).unwrap();
        let input = Input {
            source: &source,
            args,
            window: Window {
                from: at(window.0),
                to: at(window.1),
            },
            now: at("09:00:00"),
        };
        let output = body(&input).unwrap();
        let Payload::Logs { sources, lines } = output.payload else {
            panic!("another payload");
        };
        (sources, lines, output.partial)
    }

    #[test]
    fn lines_of_all_files_are_merged_by_time_and_a_trace_stays_with_its_line() {
        let (sources, lines, partial) = answer(&json!({}), ("08:00:00.500", "08:00:02"));
        assert_eq!(sources.len(), 3);
        let texts: Vec<_> = lines
            .iter()
            .map(|l| l.text.split(' ').next_back().unwrap())
            .collect();
        assert_eq!(texts, ["route=/pay", "last):", "price", "zero", "upstream"]);
        assert!(lines[0].at.is_some() && lines[1].at.is_none());
        assert_eq!(lines[4].source, 1);
        assert!(partial.len() == 1 && partial[0].starts_with("gone-1: not_found"));
    }

    #[test]
    fn the_loud_entries_stay_when_there_are_too_many() {
        let (_, lines, partial) = answer(&json!({"limit": 4}), ("08:00:00", "09:00:00"));
        assert_eq!(lines.len(), 4);
        assert!(lines[0].text.contains("ERROR"));
        assert!(
            partial
                .iter()
                .any(|p| p == "3 quieter or older lines left out")
        );
    }

    #[test]
    fn level_text_and_service_select_entries() {
        let window = ("08:00:00", "09:00:00");
        assert_eq!(answer(&json!({"min_level": "error"}), window).1.len(), 4);
        assert_eq!(
            answer(&json!({"contains": "ZeroDivision"}), window).1.len(),
            4
        );
        assert_eq!(
            answer(&json!({"services": ["payments"]}), window).1.len(),
            1
        );
        assert!(check(&json!({"limit": 0})).is_err() && check(&json!({"limit": 5001})).is_err());
    }

    #[test]
    fn no_readable_file_at_all_is_a_failure_and_not_an_empty_answer() {
        let source = SourceSpec::Logs {
            files: vec![LogFile {
                service: "a".into(),
                instance: "a-1".into(),
                path: "/nowhere/a.log".into(),
            }],
        };
        let input = Input {
            source: &source,
            args: &json!({}),
            window: Window {
                from: Millis(0),
                to: Millis(1),
            },
            now: Millis(1),
        };
        assert_eq!(body(&input).unwrap_err().code, "not_found");
    }
}
