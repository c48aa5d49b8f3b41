//! What the daemon does not start with, and what it says of it.

use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Site, Wishes};

/// A site whose daemon ran once and was killed.
fn site() -> Site {
    let mut site = Site::new(&Wishes::default());
    site.start(&[]);
    site.kill();
    site
}

#[test]
fn a_lost_database_beside_the_signed_log_is_no_fresh_start() {
    let mut site = site();
    let state = site.state();
    for name in ["sentinel.db", "sentinel.db-wal", "sentinel.db-shm"] {
        let _ = std::fs::remove_file(state.join(name));
    }
    let (status, said) = site.refused();
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("SN-0214") && said.contains("sentinel.db"),
        "{said}"
    );
    assert!(!state.join("sentinel.db").exists());
}

#[test]
fn another_redaction_key_than_that_of_the_data_is_refused() {
    let mut site = site();
    std::fs::write(site.state().join("etc/redact-key"), [9; 32]).unwrap();
    let (status, said) = site.refused();
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("SN-0211") && said.contains("redact-key"),
        "{said}"
    );
}

#[test]
fn a_database_that_others_may_write_is_refused_with_the_chmod() {
    let mut site = site();
    let file = site.state().join("guard.db");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let (status, said) = site.refused();
    assert_eq!(status, Some(4), "{said}");
    let fix = format!("chmod 600 {}", file.display());
    assert!(said.contains("SN-0113") && said.contains(&fix), "{said}");
}

#[test]
fn a_guard_without_its_key_starts_and_says_so() {
    let mut site = site();
    std::fs::write(site.state().join("epoch.key"), [7; 100]).unwrap();
    site.start(&[]);
    let said = site.stderr();
    let line = said.lines().find(|l| l.contains("SN-0215")).unwrap();
    assert!(
        line.contains("key_unavailable") && line.contains("ERROR"),
        "{line}"
    );
    let health = site.get("/v1/health").unwrap();
    assert_eq!(health["status"], "not_ready");
    let parts = health["parts"].as_array().unwrap();
    assert!(
        parts.iter().any(|p| p["code"] == "key_unavailable"),
        "{health}"
    );
}
