//! Whatever an operator may meet has its line in `docs/`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{complain, is_test_file, read, root, texts, without_tests};

/// The texts between double quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('"').skip(1).step_by(2).collect()
}

/// The text from `start` to the next `end`.
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text
        .split_once(start)
        .unwrap_or_else(|| panic!("`{start}` is gone"));
    rest.split_once(end).map_or(rest, |(inside, _)| inside)
}

fn demand(page: &str, what: &str, names: &BTreeSet<String>) {
    assert!(!names.is_empty(), "no {what} was found in the sources");
    let text = read(page);
    let missing: Vec<String> = names
        .iter()
        .filter(|name| !text.contains(&format!("`{name}`")))
        .cloned()
        .collect();
    complain(
        &format!("every {what} has its line in {page}, but not"),
        &missing,
    );
}

/// Codes such as `SN-0101` in the text.
fn codes(text: &str) -> BTreeSet<String> {
    text.match_indices("SN-")
        .filter_map(|(at, _)| text.get(at..at + 7))
        .filter(|code| code.chars().skip(3).all(|c| c.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_error_code_has_its_page_and_every_page_its_code() {
    let mut used = BTreeSet::new();
    for (path, text) in texts("rs") {
        if !is_test_file(&path) && !path.starts_with("packaging") {
            used.extend(codes(without_tests(&text)));
        }
    }
    let mut complaints = Vec::new();
    for code in &used {
        let page = format!("docs/errors/{code}.md");
        let Ok(text) = std::fs::read_to_string(root().join(&page)) else {
            complaints.push(format!("{page} is missing"));
            continue;
        };
        if !text.starts_with(&format!("# {code}: ")) {
            complaints.push(format!("{page} does not begin with `# {code}: `"));
        }
        for part in ["**Cause.**", "**Check.**", "**Fix.**"] {
            if !text.contains(part) {
                complaints.push(format!("{page} has no {part}"));
            }
        }
    }
    for (path, _) in texts("md") {
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.starts_with("docs/errors") && !used.contains(&stem) {
            complaints.push(format!(
                "{} is about a code that is not used",
                path.display()
            ));
        }
    }
    complain("codes and pages differ", &complaints);
}

#[test]
fn every_configuration_key_is_documented() {
    let mut keys = BTreeSet::new();
    let mut section = String::new();
    for line in read("daemon/src/config/default.toml").lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = format!("{name}.");
        } else if let Some((key, _)) = line.split_once(" = ")
            && !line.starts_with('#')
        {
            keys.insert(format!("{section}{key}"));
        }
    }
    demand("docs/configure.md", "key with a default", &keys);

    // The keys of named sections stand where the reader closes a section.
    let source = read("daemon/src/config/load.rs");
    let named = source
        .split_once("fn read_intakes")
        .map(|(_, rest)| without_tests(rest))
        .expect("named sections are read after the others");
    let mut keys = BTreeSet::new();
    let sinks = read("daemon/src/config/notify.rs");
    let calls = named.split(".close(").skip(1);
    for call in calls.chain(without_tests(&sinks).split(".close(").skip(1)) {
        let list = between(call, "[", "]");
        keys.extend(quoted(list).into_iter().map(str::to_owned));
    }
    demand("docs/configure.md", "key of a named section", &keys);
}

#[test]
fn every_interlock_is_documented() {
    let source = read("policies/src/interlocks/mod.rs");
    let table = between(&source, "\ninterlocks! {", "\n}");
    let codes = quoted(table)
        .into_iter()
        .filter(|text| text.starts_with("IL-"))
        .map(str::to_owned)
        .collect();
    demand("docs/interlocks.md", "interlock", &codes);
}

#[test]
fn every_redaction_entity_is_documented() {
    let source = read("policies/src/redaction/mod.rs");
    let table = between(&source, "ENTITIES: &[Entity] = &[", "];");
    let names = table
        .lines()
        .filter_map(|line| line.trim().strip_suffix("::ENTITY,"))
        .map(str::to_owned)
        .collect();
    demand("docs/redaction.md", "entity", &names);
}

#[test]
fn every_tool_is_documented() {
    let source = read("daemon/src/tools/mod.rs");
    let table = between(&source, "TOOLS: &[Tool] = &[", "];");
    let names = table
        .lines()
        .filter_map(|line| line.trim().strip_suffix("::TOOL,"))
        .map(|module| {
            let file = read(Path::new("daemon/src/tools").join(format!("{module}.rs")));
            between(&file, "name: \"", "\"").to_owned()
        })
        .collect();
    demand("docs/tools.md", "tool", &names);
}

/// The table of claims in the README has rows such as "| claim | [`test`](file) |".
#[test]
fn every_claim_of_the_readme_has_its_test() {
    let readme = read("README.md");
    let claims = between(&readme, "| claim | test |", "\n\n");
    let mut complaints = Vec::new();
    let mut rows = 0;
    for row in claims.lines().filter(|line| line.contains("](")) {
        rows += 1;
        let name = between(row, "[`", "`]");
        let file = between(row, "](", ")");
        let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
        if !text.contains(&format!("fn {name}(")) {
            complaints.push(format!("`{name}` is not in {file}"));
        }
    }
    assert!(rows >= 10, "the table of claims is gone");
    complain("every claim of the README has its test, but", &complaints);
}

#[test]
fn every_metric_is_documented() {
    let source = read("daemon/src/telemetry/names.rs");
    let names = without_tests(&source)
        .lines()
        .filter_map(|line| line.split_once(" = \"").map(|(_, rest)| rest))
        .filter_map(|rest| rest.split_once("\",").map(|(name, _)| name.to_owned()))
        .collect();
    demand("docs/metrics.md", "metric", &names);
}
