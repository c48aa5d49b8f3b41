//! Classes of change (D9): what a hunk could alter, judged from its lines alone.

use std::collections::{BTreeMap, BTreeSet};

use super::signature;
use crate::model::{FileDiff, Hunk};

/// What a hunk changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChangeClass {
    /// Comment, test, docs, renaming, move, formatting, added log or metric, response text.
    Neutral,
    /// Statements of a program.
    Code,
    /// A number: bounds, limits, time-outs, sizes.
    Quantity,
    /// Versions of dependencies.
    Dependency,
    /// Values of configuration.
    Configuration,
}

/// A hunk with its class and the words of its changed lines.
#[derive(Clone, Debug)]
pub(super) struct ReadHunk {
    pub(super) class: ChangeClass,
    /// Identifiers and names in changed lines.
    pub(super) words: BTreeSet<String>,
    /// Functions that the hunk lies in.
    pub(super) functions: BTreeSet<String>,
    /// First and last line of it in the new file.
    pub(super) span: Option<(u32, u32)>,
    /// The changed lines, without their sign.
    pub(super) changed: Vec<String>,
}

/// Reads a hunk of a file.
pub(super) fn read(file: &FileDiff, hunk: &Hunk) -> ReadHunk {
    let with = |sign: char| -> Vec<&str> {
        hunk.lines
            .iter()
            .filter_map(|l| l.strip_prefix(sign))
            .collect()
    };
    let (removed, added) = (with('-'), with('+'));
    let changed: Vec<&str> = removed.iter().chain(&added).copied().collect();
    ReadHunk {
        class: class(&file.path, &removed, &added, hunk),
        words: changed
            .iter()
            .flat_map(|l| tokens(l))
            .map(str::to_owned)
            .collect(),
        functions: functions(hunk),
        span: span(&hunk.header),
        changed: changed.iter().map(|l| (*l).to_owned()).collect(),
    }
}

/// Identifiers of a line.
fn tokens(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|w| w.len() >= 2 && !w.bytes().all(|b| b.is_ascii_digit()))
}

fn class(path: &str, removed: &[&str], added: &[&str], hunk: &Hunk) -> ChangeClass {
    if is_prose_or_test(path) {
        return ChangeClass::Neutral;
    }
    let removed = code_lines(removed);
    let added = code_lines(added);
    if removed.is_empty() && added.is_empty() || in_doc_text(hunk) {
        return ChangeClass::Neutral;
    }
    if same_but_for_form(&removed, &added)
        || renamed(&removed, &added)
        || told_only(&removed, &added)
    {
        return ChangeClass::Neutral;
    }
    if is_manifest(path) {
        return ChangeClass::Dependency;
    }
    if is_configuration(path) {
        return ChangeClass::Configuration;
    }
    if differs_in_numbers(&removed, &added) {
        return ChangeClass::Quantity;
    }
    ChangeClass::Code
}

fn extension(path: &str) -> String {
    let base = signature::base(path);
    base.rsplit_once('.')
        .map_or(String::new(), |(_, e)| e.to_ascii_lowercase())
}

fn is_prose_or_test(path: &str) -> bool {
    let prose = ["md", "rst", "txt", "adoc"];
    let base = signature::base(path).to_ascii_lowercase();
    let manifest = is_manifest(path);
    let test = path
        .split(['/', '\\'])
        .any(|part| matches!(part, "test" | "tests" | "spec" | "docs"))
        || base.starts_with("test_")
        || ["_test.", ".test.", ".spec."]
            .iter()
            .any(|mark| base.contains(mark));
    test || (!manifest && prose.contains(&extension(path).as_str())) || base == "license"
}

fn is_manifest(path: &str) -> bool {
    let base = signature::base(path).to_ascii_lowercase();
    let named = [
        "package.json",
        "package-lock.json",
        "cargo.toml",
        "cargo.lock",
        "go.mod",
        "go.sum",
        "pom.xml",
        "build.gradle",
        "gemfile",
        "gemfile.lock",
        "pyproject.toml",
        "poetry.lock",
        "yarn.lock",
        "composer.json",
    ];
    named.contains(&base.as_str()) || (base.starts_with("requirements") && extension(path) == "txt")
}

fn is_configuration(path: &str) -> bool {
    let kinds = [
        "toml",
        "yaml",
        "yml",
        "json",
        "ini",
        "cfg",
        "conf",
        "env",
        "properties",
    ];
    kinds.contains(&extension(path).as_str())
}

/// Lines that a machine would execute or read.
fn code_lines<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let comment = ["#", "//", "/*", "*", "--", ";", "\"\"\"", "'''", "<!--"];
    lines
        .iter()
        .map(|l| l.trim())
        .filter(|l| !l.is_empty() && !comment.iter().any(|mark| l.starts_with(mark)))
        .collect()
}

/// True when all changed lines stand between the quotes of a documentation text.
fn in_doc_text(hunk: &Hunk) -> bool {
    let mut inside = false;
    let mut any = false;
    for line in &hunk.lines {
        let quotes = line.matches("\"\"\"").count() + line.matches("'''").count();
        let changed = line.starts_with(['+', '-']);
        any |= changed;
        if changed && !inside && quotes == 0 {
            return false;
        }
        if quotes % 2 == 1 {
            inside = !inside;
        }
    }
    any
}

/// True when only white space or the order of lines differs.
fn same_but_for_form(removed: &[&str], added: &[&str]) -> bool {
    let joined = |lines: &[&str]| -> String {
        let text = lines.concat();
        text.chars().filter(|c| !c.is_whitespace()).collect()
    };
    let sorted = |lines: &[&str]| -> Vec<String> {
        let mut lines: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
        lines.sort_unstable();
        lines
    };
    !removed.is_empty() && (joined(removed) == joined(added) || sorted(removed) == sorted(added))
}

/// Pieces of a line: words, and everything between them.
fn pieces(lines: &[&str]) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut word = String::new();
    for c in lines.join("\n").chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
        } else {
            if !word.is_empty() {
                pieces.push(std::mem::take(&mut word));
            }
            if !c.is_whitespace() {
                pieces.push(c.to_string());
            }
        }
    }
    if !word.is_empty() {
        pieces.push(word);
    }
    pieces
}

/// True when one set of local names was exchanged for another, one for one. A name that is read
/// from outside (quoted, called, a member) is no local name.
fn renamed(removed: &[&str], added: &[&str]) -> bool {
    let (old, new) = (pieces(removed), pieces(added));
    if old.is_empty() || old.len() != new.len() {
        return false;
    }
    let mut map: BTreeMap<&str, &str> = BTreeMap::new();
    let mut back: BTreeMap<&str, &str> = BTreeMap::new();
    for (i, (a, b)) in old.iter().zip(&new).enumerate() {
        let one_to_one = *map.entry(a).or_insert(b) == b && *back.entry(b).or_insert(a) == a;
        if !one_to_one {
            return false;
        }
        if a != b {
            let before = i
                .checked_sub(1)
                .and_then(|j| old.get(j))
                .map_or("", String::as_str);
            let after = old.get(i.saturating_add(1)).map_or("", String::as_str);
            let bare = |w: &str| w.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
            let outside =
                matches!(before, "." | "\"" | "'" | "`") || matches!(after, "(" | "\"" | "'");
            if !bare(a) || !bare(b) || outside || is_word_of_language(a) || is_word_of_language(b) {
                return false;
            }
        }
    }
    // The new name must be assigned or declared in the hunk, else it is another thing.
    map.iter().filter(|(a, b)| a != b).all(|(_, b)| {
        let declared = |pair: &[String]| {
            pair.first().map(String::as_str) == Some(b)
                && pair.get(1).is_some_and(|next| next == "=" || next == ":")
        };
        new.windows(2).any(declared)
    })
}

fn is_word_of_language(word: &str) -> bool {
    matches!(
        word,
        "if" | "else"
            | "elif"
            | "for"
            | "while"
            | "return"
            | "raise"
            | "try"
            | "except"
            | "not"
            | "and"
            | "or"
            | "in"
            | "is"
            | "true"
            | "false"
            | "null"
            | "none"
            | "let"
            | "mut"
            | "const"
            | "var"
            | "def"
            | "fn"
            | "func"
            | "function"
            | "class"
            | "break"
            | "continue"
            | "throw"
            | "catch"
            | "match"
            | "case"
            | "switch"
            | "await"
            | "async"
            | "yield"
    )
}

/// True when lines that only tell something were added, removed or reworded: logging, counting,
/// text with blanks in it.
fn told_only(removed: &[&str], added: &[&str]) -> bool {
    let tells = |line: &&str| {
        let line = line.to_ascii_lowercase();
        let marks = [
            "log.",
            "logger",
            "logging.",
            "console.log",
            "print(",
            "println",
            "metrics.",
            ".inc()",
        ];
        marks.iter().any(|m| line.contains(m))
            && !line.contains("raise")
            && !line.contains("return")
    };
    if removed.iter().chain(added).all(tells) {
        return true;
    }
    let plain =
        |lines: &[&str]| -> Vec<String> { lines.iter().map(|l| without_prose(l)).collect() };
    !removed.is_empty() && plain(removed) == plain(added)
}

/// The line with texts that read like prose taken out: quoted, with a blank, and no query.
fn without_prose(line: &str) -> String {
    let parts: Vec<&str> = line.split('"').collect();
    let mut plain = String::new();
    for (i, part) in parts.iter().enumerate() {
        let query = ["select ", "insert ", "update ", "delete ", "where ", "%"];
        let lower = part.to_ascii_lowercase();
        let prose =
            i % 2 == 1 && part.trim().contains(' ') && !query.iter().any(|q| lower.contains(q));
        plain.push_str(if prose { "" } else { part });
        plain.push('"');
    }
    plain
}

/// True when old and new lines differ in numbers only.
fn differs_in_numbers(removed: &[&str], added: &[&str]) -> bool {
    let (old, new) = (pieces(removed), pieces(added));
    let number = |w: &str| w.bytes().next().is_some_and(|b| b.is_ascii_digit());
    old.len() == new.len()
        && !old.is_empty()
        && old
            .iter()
            .zip(&new)
            .all(|(a, b)| a == b || (number(a) && number(b)))
}

/// Names of functions that the hunk lies in or begins.
fn functions(hunk: &Hunk) -> BTreeSet<String> {
    let heading = hunk.header.rsplit("@@").next().unwrap_or("");
    let bodies = hunk.lines.iter().map(|l| l.get(1..).unwrap_or(""));
    std::iter::once(heading)
        .chain(bodies)
        .filter_map(function)
        .collect()
}

/// The name in `def name(`, `fn name(`, `func (r) name(`, `function name(`.
fn function(line: &str) -> Option<String> {
    let line = line.trim();
    let marks = ["def ", "fn ", "func ", "function "];
    let rest = marks.iter().find_map(|mark| {
        let at = line.find(mark)?;
        line.get(at.saturating_add(mark.len())..)
    })?;
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(receiver) => receiver.split_once(')')?.1.trim_start(),
        None => rest,
    };
    let name: String = rest
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    (!name.is_empty()).then_some(name)
}

/// The lines of the new file that `@@ -a,b +c,d @@` names.
fn span(header: &str) -> Option<(u32, u32)> {
    let rest = header.split_once('+')?.1;
    let numbers: String = rest
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .collect();
    let (first, count) = numbers.split_once(',').unwrap_or((numbers.as_str(), "1"));
    let first: u32 = first.parse().ok()?;
    let count: u32 = count.parse().ok()?;
    Some((first, first.saturating_add(count.saturating_sub(1))))
}

#[cfg(test)]
mod tests {
    use super::{ChangeClass, read};
    use crate::model::{FileDiff, Hunk};

    fn class(path: &str, lines: &[&str]) -> ChangeClass {
        let hunk = Hunk {
            header: "@@ -10,3 +10,3 @@ def price(order):".to_owned(),
            lines: lines.iter().map(|l| (*l).to_owned()).collect(),
        };
        let file = FileDiff {
            path: path.to_owned(),
            hunks: vec![hunk.clone()],
        };
        read(&file, &hunk).class
    }

    #[test]
    fn what_changes_no_behaviour_is_neutral() {
        let neutral: &[(&str, &[&str])] = &[
            ("a.py", &["-# old words", "+# new words"]),
            ("README.md", &["-x", "+y"]),
            ("tests/a.py", &["-assert x", "+assert y"]),
            ("a.py", &["-total = a+b", "+total = a + b"]),
            (
                "a.py",
                &[
                    "-amount = cost * 2",
                    "-send(amount)",
                    "+value = cost * 2",
                    "+send(value)",
                ],
            ),
            ("a.py", &["+log.info(\"sent\")"]),
            (
                "a.py",
                &[
                    "-reply(200, \"thank you\")",
                    "+reply(200, \"thank you very much\")",
                ],
            ),
            (
                "a.py",
                &[
                    " def price(order):",
                    "     \"\"\"Old",
                    "-    text",
                    "+    words",
                    "     \"\"\"",
                ],
            ),
        ];
        for (path, lines) in neutral {
            assert_eq!(class(path, lines), ChangeClass::Neutral, "{lines:?}");
        }
    }

    #[test]
    fn what_changes_behaviour_is_told_by_kind() {
        let cases: &[(&str, &[&str], ChangeClass)] = &[
            (
                "a.py",
                &["-if x is None:", "-    return 0"],
                ChangeClass::Code,
            ),
            (
                "a.py",
                &["-rate = order[\"tax\"]", "+rate = order[\"zone\"]"],
                ChangeClass::Code,
            ),
            (
                "a.py",
                &["-check(order)", "+verify(order)"],
                ChangeClass::Code,
            ),
            (
                "a.py",
                &["-pool = Pool(16)", "+pool = Pool(2)"],
                ChangeClass::Quantity,
            ),
            (
                "requirements.txt",
                &["-lib==1.0", "+lib==2.0"],
                ChangeClass::Dependency,
            ),
            (
                "config.toml",
                &["-limit = 4", "+limit = 2"],
                ChangeClass::Configuration,
            ),
        ];
        for (path, lines, wanted) in cases {
            assert_eq!(class(path, lines), *wanted, "{lines:?}");
        }
    }

    #[test]
    fn the_function_and_the_span_of_a_hunk_are_read() {
        let hunk = Hunk {
            header: "@@ -10,3 +12,5 @@ def price(order):".to_owned(),
            lines: vec!["+def tax(order):".to_owned()],
        };
        let file = FileDiff {
            path: "a.py".to_owned(),
            hunks: Vec::new(),
        };
        let read = read(&file, &hunk);
        assert_eq!(read.span, Some((12, 16)));
        assert!(read.functions.contains("price") && read.functions.contains("tax"));
    }
}
