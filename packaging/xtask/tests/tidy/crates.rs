//! Who may import whom (design 2).

use std::process::Command;

use serde_json::Value;

use crate::{complain, root};

/// Package, then the packages of the workspace that it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("sentinel-policies", &[]),
    ("sentinel-inference", &["sentinel-policies"]),
    ("sentinel-store", &["sentinel-policies"]),
    (
        "sentinel-daemon",
        &["sentinel-inference", "sentinel-policies", "sentinel-store"],
    ),
    (
        "sentinel-benchmark",
        &[
            "sentinel-daemon",
            "sentinel-inference",
            "sentinel-policies",
            "sentinel-store",
        ],
    ),
    ("sentinel", &["sentinel-benchmark", "sentinel-daemon"]),
    ("xtask", &[]),
];

/// The tests of the executable see the whole system, so they may use every crate.
const WHOLE_SYSTEM: &str = "sentinel";

fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(args)
        .current_dir(root())
        .output()
        .expect("cargo answers");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn crates_depend_on_each_other_only_in_the_direction_of_the_design() {
    let text = cargo(&["metadata", "--no-deps", "--format-version", "1", "--locked"]);
    let metadata: Value = serde_json::from_str(&text).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let mut complaints = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = MAY_USE.iter().find(|(n, _)| *n == name) else {
            complaints.push(format!("`{name}` has no row in the table of this test"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"] == "dev" && name == WHOLE_SYSTEM;
            let ours = MAY_USE.iter().any(|(n, _)| *n == used);
            if ours && !for_tests && !allowed.contains(&used) {
                complaints.push(format!("`{name}` must not depend on `{used}`"));
            }
        }
    }
    complain("the direction of dependencies", &complaints);
    assert_eq!(packages.len(), MAY_USE.len(), "a row has no package");
}

#[test]
fn policies_reach_no_runtime_no_system_and_no_randomness() {
    let tree = |depth: &str| {
        cargo(&[
            "tree",
            "--package",
            "sentinel-policies",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--depth",
            depth,
            "--locked",
        ])
    };
    let find = |tree: &str, banned: &[&str]| -> Vec<String> {
        tree.lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| banned.contains(name))
            .map(str::to_owned)
            .collect()
    };
    let mut found = find(
        &tree("99"),
        &[
            "tokio", "mio", "rustix", "nix", "socket2", "hyper", "rusqlite", "uuid",
        ],
    );
    // The elliptic curve crate can make keys and brings a source of randomness for that; without a
    // direct dependency, `policies` cannot name it.
    found.extend(find(
        &tree("1"),
        &["rand", "rand_core", "getrandom", "libc"],
    ));
    complain("`policies` is pure, but it pulls in", &found);
}

#[test]
fn no_second_stack_of_cryptography_is_linked() {
    let lock = crate::read("Cargo.lock");
    let found: Vec<String> = ["openssl-sys", "ring", "aws-lc-sys", "native-tls", "rustls"]
        .iter()
        .filter(|name| lock.contains(&format!("name = \"{name}\"\n")))
        .map(|name| (*name).to_owned())
        .collect();
    complain(
        "docs/adr/0001 allows one implementation of cryptography, but there is",
        &found,
    );
}
