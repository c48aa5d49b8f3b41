//! The difference of two release folders as hunks that name the function they lie in.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

use policies::model::{FileDiff, Hunk};
use similar::{ChangeTag, TextDiff};

/// Most files that are looked at in one release.
const MAX_FILES: usize = 2_000;
/// Largest file that is compared.
const MAX_FILE: u64 = 1 << 20;
/// Deepest folder.
const MAX_DEPTH: usize = 8;
/// Most bytes of hunks (protocols.md 5, git: 64 KiB).
const MAX_DIFF: usize = 64 << 10;
/// Folders that hold nothing a person wrote.
const SKIPPED: &[&str] = &[".git", "__pycache__", "node_modules"];
/// Words that open a function or a type in common languages.
const OPENERS: &[&str] = &[
    "async def ",
    "class ",
    "def ",
    "fn ",
    "func ",
    "function ",
    "impl ",
    "interface ",
    "private ",
    "protected ",
    "pub fn ",
    "public ",
    "static ",
    "struct ",
    "sub ",
    "type ",
];

/// What was found, and whether all of it is there.
#[derive(Debug, PartialEq)]
pub(super) struct ReleaseDiff {
    /// Changed files by path.
    pub files: Vec<FileDiff>,
    /// Why it is not whole.
    pub partial: Option<String>,
}

/// Compares two release folders.
///
/// # Errors
/// When one of them cannot be read.
pub(super) fn releases(old: &Path, new: &Path) -> std::io::Result<ReleaseDiff> {
    let mut paths = BTreeSet::new();
    let mut partial = None;
    for root in [old, new] {
        if !list(root, "", 0, &mut paths)? {
            partial = Some(format!("a release has more than {MAX_FILES} files"));
        }
    }
    let mut files = Vec::new();
    let mut bytes = 0;
    for path in paths {
        let (Some(before), Some(after)) = (text(&old.join(&path))?, text(&new.join(&path))?) else {
            files.push(FileDiff {
                path,
                hunks: vec![unreadable_hunk()],
            });
            continue;
        };
        if before == after {
            continue;
        }
        let mut hunks = hunks(&before, &after);
        bytes += size(&hunks);
        if bytes > MAX_DIFF {
            partial = Some(format!("the difference is longer than {MAX_DIFF} bytes"));
            while bytes > MAX_DIFF && !hunks.is_empty() {
                bytes -= hunks.pop().map_or(0, |hunk| size(&[hunk]));
            }
        }
        files.push(FileDiff { path, hunks });
    }
    Ok(ReleaseDiff { files, partial })
}

fn unreadable_hunk() -> Hunk {
    Hunk {
        header: "@@ not text or too large to compare @@".to_owned(),
        lines: Vec::new(),
    }
}

fn size(hunks: &[Hunk]) -> usize {
    let lines = |hunk: &Hunk| hunk.lines.iter().map(|line| line.len() + 1).sum::<usize>();
    hunks
        .iter()
        .map(|hunk| hunk.header.len() + lines(hunk))
        .sum()
}

/// Adds the files below `folder`; false when there are too many. Links are not followed: they may
/// lead out of the release.
fn list(
    folder: &Path,
    prefix: &str,
    depth: usize,
    out: &mut BTreeSet<String>,
) -> std::io::Result<bool> {
    let mut whole = true;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH && !SKIPPED.contains(&name.as_str()) {
            whole &= list(&entry.path(), &format!("{prefix}{name}/"), depth + 1, out)?;
        } else if kind.is_file() {
            if out.len() >= MAX_FILES {
                return Ok(false);
            }
            out.insert(format!("{prefix}{name}"));
        }
    }
    Ok(whole)
}

/// The text of a file, empty when it is missing, `None` when it is no text or too large.
fn text(path: &Path) -> std::io::Result<Option<String>> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Some(String::new())),
        Err(e) => return Err(e),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE || bytes.contains(&0) {
        return Ok(None);
    }
    Ok(String::from_utf8(bytes).ok())
}

fn hunks(before: &str, after: &str) -> Vec<Hunk> {
    let diff = TextDiff::from_lines(before, after);
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let mut out = Vec::new();
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        let mut lines = Vec::new();
        // The function of the first change; the outer `Option` says that it was looked for.
        let mut function = None;
        for change in hunk.iter_changes() {
            let (sign, file, at) = match change.tag() {
                ChangeTag::Equal => (' ', &new, None),
                ChangeTag::Delete => ('-', &old, change.old_index()),
                ChangeTag::Insert => ('+', &new, change.new_index()),
            };
            let text = change.to_string_lossy();
            let text = text.trim_end_matches(['\n', '\r']);
            lines.push(format!("{sign}{}", super::lines::cut(text)));
            if let (None, Some(at)) = (&function, at) {
                function = Some(enclosing(file, at));
            }
        }
        let range = hunk.header().to_string();
        let header = match function.flatten() {
            Some(function) => format!("{} {function}", range.trim_end()),
            None => range.trim_end().to_owned(),
        };
        out.push(Hunk { header, lines });
    }
    out
}

/// The head of the function or type that a line lies in: the nearest line above that is indented
/// less and opens one, or the line itself.
fn enclosing(lines: &[&str], at: usize) -> Option<String> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = lines.get(at)?;
    if opens(own) {
        return Some(own.trim().to_owned());
    }
    let mut limit = if own.trim().is_empty() {
        usize::MAX
    } else {
        indent(own)
    };
    for line in lines.get(..at)?.iter().rev() {
        if line.trim().is_empty() || indent(line) >= limit {
            continue;
        }
        if opens(line) {
            return Some(line.trim().to_owned());
        }
        limit = indent(line);
        if limit == 0 {
            return None;
        }
    }
    None
}

fn opens(line: &str) -> bool {
    let line = line.trim_start();
    OPENERS.iter().any(|word| line.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
import json


class Prices:
    def total(self, items):
        return sum(items)

    def discount(self, total, percent):
        # Percent is checked by the caller.
        if percent:
            total = total - total * percent / 100
        return total


LIMIT = 3
";

    fn folders() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let (old, new) = (root.path().join("1"), root.path().join("2"));
        for folder in [&old, &new] {
            fs::create_dir_all(folder.join("lib/__pycache__")).unwrap();
            fs::write(folder.join("app.py"), BEFORE).unwrap();
            fs::write(folder.join("lib/same.py"), "x = 1\n").unwrap();
        }
        (root, old, new)
    }

    #[test]
    fn a_hunk_names_the_function_that_its_first_change_lies_in() {
        let (_root, old, new) = folders();
        let after = BEFORE.replace("total * percent / 100", "total / (percent - 10)");
        fs::write(new.join("app.py"), after).unwrap();
        fs::write(new.join("lib/__pycache__/x.pyc"), [0, 1]).unwrap();
        let diff = releases(&old, &new).unwrap();
        assert_eq!(diff.partial, None);
        assert_eq!(diff.files.len(), 1);
        let hunk = &diff.files[0].hunks[0];
        assert_eq!(
            hunk.header,
            "@@ -8,7 +8,7 @@ def discount(self, total, percent):"
        );
        assert!(
            hunk.lines
                .contains(&"-            total = total - total * percent / 100".to_owned())
        );
        assert!(
            hunk.lines
                .contains(&"+            total = total - total / (percent - 10)".to_owned())
        );
    }

    #[test]
    fn a_change_outside_every_function_names_none() {
        let (_root, old, new) = folders();
        fs::write(new.join("app.py"), BEFORE.replace("LIMIT = 3", "LIMIT = 4")).unwrap();
        let diff = releases(&old, &new).unwrap();
        assert_eq!(diff.files[0].hunks[0].header, "@@ -12,4 +12,4 @@");
    }

    #[test]
    fn new_removed_and_binary_files_are_shown() {
        let (_root, old, new) = folders();
        fs::write(new.join("added.py"), "def added():\n    return 1\n").unwrap();
        fs::remove_file(new.join("lib/same.py")).unwrap();
        fs::write(new.join("logo.png"), [137, 80, 0, 0]).unwrap();
        let diff = releases(&old, &new).unwrap();
        let paths: Vec<_> = diff.files.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(paths, ["added.py", "lib/same.py", "logo.png"]);
        assert!(diff.files[0].hunks[0].header.ends_with("def added():"));
        assert_eq!(diff.files[1].hunks[0].lines, ["-x = 1"]);
        assert!(diff.files[2].hunks[0].lines.is_empty());
    }

    #[test]
    fn equal_releases_differ_in_nothing_and_a_missing_one_is_an_error() {
        let (root, old, new) = folders();
        assert_eq!(releases(&old, &new).unwrap().files, []);
        assert!(releases(&root.path().join("0"), &new).is_err());
    }

    #[test]
    fn a_long_difference_is_cut_and_says_so() {
        let (_root, old, new) = folders();
        let long: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        fs::write(new.join("long.txt"), long).unwrap();
        let diff = releases(&old, &new).unwrap();
        assert!(diff.partial.is_some());
        assert!(size(&diff.files[0].hunks) <= MAX_DIFF);
    }
}
