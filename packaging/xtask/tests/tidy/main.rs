//! House rules that no lint can say (design 7). Each test reads the sources as text or asks cargo.

// Helpers of a test fail by panicking.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod crates;
mod docs;
mod sources;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Root of the clone.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("xtask lies two folders below the root")
}

/// What is in git, or would be after `git add`, as paths from the root.
fn files() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root())
        .output()
        .expect("git answers");
    assert!(
        output.status.success(),
        "`git ls-files` fails outside a clone"
    );
    let mut files: Vec<PathBuf> = output
        .stdout
        .split(|b| *b == 0)
        .filter(|name| !name.is_empty())
        .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
        .filter(|path| root().join(path).is_file())
        .collect();
    files.sort();
    files
}

/// Files with this ending, with their text.
fn texts(extension: &str) -> Vec<(PathBuf, String)> {
    files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .map(|path| {
            let text = read(&path);
            (path, text)
        })
        .collect()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("`{}`: {e}", path.display()))
}

/// True when the whole file is a test or serves tests.
fn is_test_file(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.components().any(|c| c.as_os_str() == "tests")
        || stem == "tests"
        || stem == "testing"
        || stem == "fixture"
        || stem == "fixtures"
        || stem == "testlog"
        || stem.starts_with("tests_")
        || stem.ends_with("_tests")
}

/// The part of a source before its test module.
fn without_tests(text: &str) -> &str {
    let inline = text.match_indices("#[cfg(test)]").find(|(at, attribute)| {
        let rest = text.get(at + attribute.len()..).unwrap_or_default();
        // `mod tests;` names another file; `mod tests {` holds the tests to the end of this one.
        let line = rest
            .lines()
            .find(|l| l.trim_start().starts_with("mod ") || l.contains(" mod "));
        line.is_some_and(|l| l.trim_end().ends_with('{'))
    });
    inline.map_or(text, |(at, _)| text.get(..at).unwrap_or(text))
}

/// Fails with every complaint at once.
fn complain(rule: &str, complaints: &[String]) {
    assert!(
        complaints.is_empty(),
        "{rule}:\n  {}",
        complaints.join("\n  ")
    );
}
