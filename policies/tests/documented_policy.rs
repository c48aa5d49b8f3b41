//! The policy that the documentation shows is a policy.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

use sentinel_policies::guard::Policy;

#[test]
fn the_policy_of_the_documentation_is_valid() {
    let page = include_str!("../../docs/policy.md");
    let (_, rest) = page.split_once("```toml\n").expect("an example");
    let (text, _) = rest.split_once("```").expect("its end");
    let policy = Policy::parse(text);
    assert!(policy.is_ok(), "{:?}", policy.err().map(|e| e.problems));
}
