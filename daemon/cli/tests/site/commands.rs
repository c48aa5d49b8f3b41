//! The command line as a newcomer meets it: what `check` says, and what a closed pipe does.

use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::support::site::exe;

fn check(dir: &std::path::Path) -> (Option<i32>, String) {
    let output = Command::new(exe())
        .args(["check", "--config"])
        .arg(dir.join("sentinel.toml"))
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), errors)
}

#[test]
fn check_refuses_what_serve_refuses_for_want_of_a_policy() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sentinel.toml"), "schema = 1\n").unwrap();
    let (code, errors) = check(dir.path());
    assert_eq!(code, Some(4), "{errors}");
    assert!(errors.contains("policy.toml: error[SN-0112]"), "{errors}");
}

#[test]
fn check_shows_the_line_and_the_place_below_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let text = "schema = 1\n[http]\nlistn = \"127.0.0.1:1\"\n";
    std::fs::write(dir.path().join("sentinel.toml"), text).unwrap();
    let (code, errors) = check(dir.path());
    assert_eq!(code, Some(4), "{errors}");
    let place = "\n    3 | listn = \"127.0.0.1:1\"\n      | ^^^^^ did you mean `listen`?";
    assert!(errors.contains(place), "{errors}");
}

#[test]
fn a_reader_that_goes_away_ends_a_command_quietly() {
    let mut child = Command::new(exe())
        .args(["explain", "SN-0102"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    let mut pipe = child.stderr.take().unwrap();
    pipe.read_to_string(&mut errors).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), errors.as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_is_an_error_and_no_half_answer() {
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = Command::new(exe())
        .args(["explain", "SN-0102"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(74), "{errors}");
    assert!(errors.contains("SN-0206"), "{errors}");
}
