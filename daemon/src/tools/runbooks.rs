//! `runbooks`: text search over the sections of Markdown runbooks (BM25).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use policies::model::{Payload, RunbookSection, front_matter};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Failure, Input, Output, Run, SourceSpec, Tool, lines, wrong_source};
use crate::jobs::Grants;

const MAX_FILES: usize = 500;
const MAX_FILE: u64 = 1 << 20;
const MAX_SECTION: usize = 8 << 10;
/// A word of the heading counts as often as this many in the text.
const HEADING_WEIGHT: usize = 3;
/// The usual parameters of BM25.
const K1: f64 = 1.2;
const B: f64 = 0.75;

pub(super) const TOOL: Tool = Tool {
    name: "runbooks",
    summary: "Answers the runbook sections that fit some words best.",
    source: "runbooks",
    schema,
    check,
    timeout: Duration::from_secs(10),
    max_output: 1 << 20,
    run: Run::Worker { grants, body },
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    query: String,
    limit: Option<usize>,
}

fn schema() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": ["query"],
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 500},
            "limit": {"type": "integer", "minimum": 1, "maximum": 20},
        },
        "examples": [{"query": "connection pool exhausted", "limit": 3}],
    })
}

fn check(args: &Value) -> Result<(), String> {
    let args: Args = super::parse_args(args)?;
    if args.query.is_empty() || args.query.len() > 500 {
        return Err("`query` must have 1 to 500 bytes".to_owned());
    }
    if args.limit.is_some_and(|n| n == 0 || n > 20) {
        return Err("`limit` must be 1 to 20".to_owned());
    }
    Ok(())
}

fn grants(source: &SourceSpec) -> Grants {
    match source {
        SourceSpec::Runbooks { folder } => Grants {
            read: vec![folder.clone()],
            write: vec![],
        },
        _ => Grants::default(),
    }
}

fn body(input: &Input<'_>) -> Result<Output, Failure> {
    let args: Args = input.args()?;
    let SourceSpec::Runbooks { folder } = input.source else {
        return Err(wrong_source(input, "runbooks"));
    };
    let mut partial = Vec::new();
    let mut sections = Vec::new();
    for name in documents(folder, &mut partial)? {
        match lines::read_tail(&folder.join(&name), MAX_FILE) {
            Ok((_, true)) => partial.push(format!("{name} is too large and was left out")),
            Ok((text, false)) => {
                let (conditions, errors) = front_matter(&name, &text);
                partial.extend(errors.iter().map(ToString::to_string));
                let first = sections.len();
                split(&name, &text, &mut sections);
                for section in sections.iter_mut().skip(first) {
                    section.preconditions.clone_from(&conditions);
                }
            }
            Err(failure) => partial.push(format!("{name}: {failure}")),
        }
    }
    rank(&mut sections, &args.query);
    sections.truncate(args.limit.unwrap_or(5));
    Ok(Output {
        payload: Payload::Runbooks { sections },
        partial,
    })
}

fn documents(folder: &Path, partial: &mut Vec<String>) -> Result<Vec<String>, Failure> {
    let failed = |e: &std::io::Error| Failure::file(folder, e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| failed(&e))? {
        let entry = entry.map_err(|e| failed(&e))?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if let Ok(name) = entry.file_name().into_string()
            && is_file
            && name.ends_with(".md")
        {
            names.push(name);
        }
    }
    names.sort();
    if names.len() > MAX_FILES {
        partial.push(format!("{} runbooks left out", names.len() - MAX_FILES));
        names.truncate(MAX_FILES);
    }
    Ok(names)
}

/// Splits at `#` headings outside code fences; the heading path joins the levels above.
fn split(document: &str, text: &str, out: &mut Vec<RunbookSection>) {
    let mut path: Vec<String> = Vec::new();
    let mut section = fresh(document, &path, 1);
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let level = line.bytes().take_while(|b| *b == b'#').count();
        let title = line.get(level..).unwrap_or_default();
        if !fenced && (1..=6).contains(&level) && title.starts_with(' ') {
            close(section, out);
            path.truncate(level - 1);
            path.push(title.trim().trim_end_matches('#').trim().to_owned());
            section = fresh(document, &path, number + 1);
        } else if section.text.len() + line.len() < MAX_SECTION {
            section.text += line;
            section.text.push('\n');
        }
    }
    close(section, out);
}

fn fresh(document: &str, path: &[String], line: usize) -> RunbookSection {
    RunbookSection {
        document: document.to_owned(),
        heading: path.join(" > "),
        line: u32::try_from(line).unwrap_or(u32::MAX),
        text: String::new(),
        score: 0.0,
        preconditions: None,
    }
}

fn close(mut section: RunbookSection, out: &mut Vec<RunbookSection>) {
    section.text = section.text.trim().to_owned();
    if !section.text.is_empty() {
        out.push(section);
    }
}

/// Lower-case words and numbers of two characters or more, without a plural `s`.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() >= 2)
        .map(|word| {
            let word = word.to_lowercase();
            match word.strip_suffix('s') {
                Some(stem) if stem.len() >= 3 && !stem.ends_with('s') => stem.to_owned(),
                _ => word,
            }
        })
}

/// Scores, drops what has no word in common, and sorts best first.
fn rank(sections: &mut Vec<RunbookSection>, query: &str) {
    let counted: Vec<(BTreeMap<String, usize>, usize)> = sections.iter().map(count).collect();
    let total: usize = counted.iter().map(|(_, length)| length).sum();
    let number = counted.len() as f64;
    let average = (total as f64 / number.max(1.0)).max(1.0);
    let mut asked: Vec<String> = words(query).collect();
    asked.sort();
    asked.dedup();
    for word in asked {
        let with = counted
            .iter()
            .filter(|(bag, _)| bag.contains_key(&word))
            .count() as f64;
        let rarity = (1.0 + (number - with + 0.5) / (with + 0.5)).ln();
        for (section, (bag, length)) in sections.iter_mut().zip(&counted) {
            let often = bag.get(&word).copied().unwrap_or(0) as f64;
            let norm = K1 * (1.0 - B + B * *length as f64 / average);
            section.score += rarity * often * (K1 + 1.0) / (often + norm);
        }
    }
    sections.retain(|section| section.score > 0.0);
    sections.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| (&a.document, a.line).cmp(&(&b.document, b.line)))
    });
}

fn count(section: &RunbookSection) -> (BTreeMap<String, usize>, usize) {
    let mut bag = BTreeMap::new();
    let mut length = 0;
    for (text, weight) in [(&section.heading, HEADING_WEIGHT), (&section.text, 1)] {
        for word in words(text) {
            *bag.entry(word).or_insert(0) += weight;
            length += weight;
        }
    }
    (bag, length)
}

#[cfg(test)]
mod tests {
    use policies::model::{Millis, Window};

    use super::*;

    const CHECKOUT: &str = "\
# Checkout

Owner: shop team.

## Connection pool exhausted

Raise `pool.size` within its bounds.

```
# not a heading
```

## Bad release

Roll back to the release before.
";

    fn search(query: &str) -> Vec<RunbookSection> {
        match answer(query).payload {
            Payload::Runbooks { sections } => sections,
            other => panic!("another payload: {other:?}"),
        }
    }

    fn answer(query: &str) -> Output {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("checkout.md"), CHECKOUT).unwrap();
        std::fs::write(
            folder.path().join("disk.md"),
            "# Disk full\n\nFree space first.\n",
        )
        .unwrap();
        std::fs::write(
            folder.path().join("queue.md"),
            "---\nsentinel: {action: restart, requires: [replicas >= 2, luck]}\n---\n# Queue stuck\n\nWait.\n",
        )
        .unwrap();
        std::fs::write(folder.path().join("notes.txt"), "connection pool").unwrap();
        let source = SourceSpec::Runbooks {
            folder: folder.path().to_owned(),
        };
        let args = json!({"query": query});
        check(&args).unwrap();
        let input = Input {
            source: &source,
            args: &args,
            window: Window {
                from: Millis(0),
                to: Millis(1),
            },
            now: Millis(1),
        };
        body(&input).unwrap()
    }

    #[test]
    fn conditions_come_with_their_sections_and_errors_with_file_and_line() {
        let found = search("queue stuck");
        let conditions = found[0].preconditions.as_ref().unwrap();
        assert_eq!(conditions.requires.len(), 2);
        assert_eq!(found[0].line, 4);
        assert!(search("disk")[0].preconditions.is_none());
        let partial = answer("queue").partial;
        assert_eq!(partial, ["queue.md:2: unknown predicate `luck`"]);
    }

    #[test]
    fn the_section_that_fits_comes_first_with_its_heading_path_and_line() {
        let found = search("pools exhausted");
        assert_eq!(found[0].heading, "Checkout > Connection pool exhausted");
        assert_eq!(
            (found[0].document.as_str(), found[0].line),
            ("checkout.md", 5)
        );
        assert!(found[0].text.contains("# not a heading"));
        assert_eq!(search("release")[0].heading, "Checkout > Bad release");
        assert_eq!(search("disk")[0].document, "disk.md");
    }

    #[test]
    fn words_that_occur_nowhere_find_nothing() {
        assert_eq!(search("kubernetes"), []);
        assert!(check(&json!({"query": ""})).is_err());
        assert!(check(&json!({"query": "x", "limit": 21})).is_err());
    }
}
