//! Rules about the texts themselves.

use crate::{complain, files, is_test_file, read, root, texts, without_tests};

const MAX_LINES: usize = 800;
const MAX_BLOB: u64 = 256 << 10;

#[test]
fn no_source_has_more_than_800_lines_beside_its_tests() {
    let complaints: Vec<String> = texts("rs")
        .iter()
        .filter(|(path, _)| !is_test_file(path))
        .map(|(path, text)| (path, without_tests(text).lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{}: {lines}", path.display()))
        .collect();
    complain(
        "a source of more than 800 lines has more than one subject",
        &complaints,
    );
}

#[test]
fn no_file_is_larger_than_256_kib_outside_the_benchmark() {
    let complaints: Vec<String> = files()
        .iter()
        .filter(|path| !path.starts_with("benchmark"))
        .filter_map(|path| {
            let bytes = std::fs::metadata(root().join(path)).ok()?.len();
            (bytes > MAX_BLOB).then(|| format!("{}: {bytes} bytes", path.display()))
        })
        .collect();
    complain("large files do not belong into git", &complaints);
}

/// Words are split, so that this file does not hold them.
#[test]
fn no_text_names_a_workplace_or_leaves_work_undone() {
    // The redactor looks for folders of people, so it may name them.
    let home = concat!("/ho", "me/");
    let banned = [
        concat!("/wo", "rk/"),
        home,
        concat!("sha", "red/spec"),
        concat!("plan", ".md"),
        concat!("sub", "agent"),
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("todo", "!("),
        concat!("unimple", "mented!("),
    ];
    let mut complaints = Vec::new();
    for path in files() {
        if path.ends_with("Cargo.lock") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else {
            continue;
        };
        for (number, line) in (1..).zip(text.lines()) {
            let found = banned.iter().filter(|word| line.contains(**word));
            let redactor = path.starts_with("policies/src/redaction");
            for word in found.filter(|word| !(redactor && **word == home)) {
                complaints.push(format!("{}:{number}: `{word}`", path.display()));
            }
        }
    }
    complain("what is committed speaks of the product only", &complaints);
}

#[test]
fn no_test_is_ignored() {
    let ignored = concat!("#[igno", "re");
    let mut complaints = Vec::new();
    for (path, text) in texts("rs") {
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim_start().starts_with(ignored) {
                complaints.push(format!("{}:{number}", path.display()));
            }
        }
    }
    complain(
        "a slow test belongs into the slow profile of nextest, but ignored are",
        &complaints,
    );
}

#[test]
fn no_template_switches_the_escaper_off() {
    let mut complaints = Vec::new();
    for (path, text) in texts("html") {
        for (number, line) in (1..).zip(text.lines()) {
            let packed: String = line.chars().filter(|c| !c.is_whitespace()).collect();
            if packed.contains("|safe")
                || packed.contains("{%autoescape")
                || packed.contains("escape(\"none\"")
            {
                complaints.push(format!("{}:{number}", path.display()));
            }
        }
    }
    complain(
        "every value in a page passes the filter of the console",
        &complaints,
    );
}

/// `Spent` is built from a receipt, and a receipt is made where the capability is consumed
/// (design 1). That the compiler enforces it rests on these two structs having no public field and
/// no derived way to be made or copied.
#[test]
fn only_the_store_makes_the_receipt_of_a_spend() {
    let home = "store/src/guard/spent.rs";
    let source = read(home);
    for name in ["Receipt", "Spent"] {
        let (before, rest) = source
            .split_once(&format!("pub struct {name} {{"))
            .unwrap_or_else(|| panic!("`{name}` is not defined in {home}"));
        let body = rest.split('}').next().unwrap_or_default();
        assert!(
            !body.contains("pub ") && !body.contains("pub(crate)"),
            "a field of `{name}` can be set outside its module"
        );
        let attributes = before.rsplit("\n\n").next().unwrap_or_default();
        for derived in ["Clone", "Copy", "Default", "Serialize", "Deserialize"] {
            assert!(!attributes.contains(derived), "`{name}` derives {derived}");
        }
        let elsewhere: Vec<String> = texts("rs")
            .into_iter()
            .filter(|(path, text)| {
                path.as_os_str() != home
                    && !path.starts_with("packaging/xtask")
                    && text.contains(&format!("struct {name} {{"))
            })
            .map(|(path, _)| path.display().to_string())
            .collect();
        complain(
            &format!("`{name}` has one definition, in {home}, but also"),
            &elsewhere,
        );
    }
}
