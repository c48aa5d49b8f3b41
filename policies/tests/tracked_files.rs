//! No tracked file holds a value (guardrails 13.1): nothing real-looking is in the repository.

#![allow(
    clippy::disallowed_types,
    clippy::expect_used,
    reason = "the test reads the files of the clone and asks git for their names"
)]

use std::path::Path;
use std::process::Command;

use sentinel_policies::claim::RedactKey;
use sentinel_policies::redaction::redact;

/// In a program `secret = secret(&path)` is an assignment and no leak, and so are the headers and
/// URLs of its tests with their one-word passwords, and a row of letters is a sample of an encoding;
/// these kinds are looked for everywhere else.
const OF_CODE: &[&str] = &["secret", "auth", "cookie", "urlcred", "entropy"];

#[test]
fn no_tracked_file_holds_a_value_of_any_kind_but_email_and_phone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("policies lies below the root");
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .expect("git answers");
    assert!(output.status.success());
    let key = RedactKey::from_bytes([7; 32]);
    let mut found = Vec::new();
    let names = String::from_utf8_lossy(&output.stdout);
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        let Ok(text) = std::fs::read_to_string(root.join(name)) else {
            continue;
        };
        let is_code = name.ends_with(".rs") || name.ends_with(".snap");
        for one in redact(&text, &key).1.findings {
            let excepted =
                matches!(one.kind, "email" | "phone") || (is_code && OF_CODE.contains(&one.kind));
            if !excepted {
                found.push(format!("{name}:{}: {}", one.line, one.kind));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
