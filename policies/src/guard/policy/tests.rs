use super::{Kind, Peer, Policy};
use crate::canon::Value;
use crate::guard::testing::POLICY;

/// guard 2.4
#[test]
fn the_example_of_the_specification_is_taken() {
    let policy = Policy::parse(POLICY).unwrap();
    assert_eq!(policy.site(), "plant-7.example");
    assert!(policy.forbids("scale", "payments-core"));
    assert!(!policy.forbids("scale", "acme"));
    let conductor = Peer::Internal("conductor".to_owned());
    assert_eq!(policy.identity(&conductor).unwrap().id, "agent/rca");
    assert_eq!(policy.person_of_subject("local:alice").unwrap().id, "alice");
}

/// guard 2.4.2
#[test]
fn comments_do_not_change_the_hash_of_a_policy_and_a_bound_does() {
    let one = Policy::parse(POLICY).unwrap();
    let commented = Policy::parse(&format!("# a comment\n{POLICY}")).unwrap();
    assert_eq!(one.hash(), commented.hash());
    let wider = Policy::parse(&POLICY.replace("max = 50", "max = 51")).unwrap();
    assert_ne!(one.hash(), wider.hash());
}

/// guard 2.1.3, 2.4.3: start refused, all problems listed.
#[test]
fn every_problem_of_a_policy_is_listed_at_once() {
    let text = POLICY
        .replace("approvals = 1", "approvals = 0")
        .replace("group:oncall", "group:nobody")
        .replace("effect_timeout_s = 120", "effect_timeout_s = 901");
    let problems = Policy::parse(&text).unwrap_err().problems;
    assert_eq!(problems.len(), 9, "{problems:?}");
}

/// guard 10 H2
#[test]
fn a_requester_that_is_also_listed_as_delegate_is_refused_at_start() {
    let text = POLICY.replace(
        "role = \"delegate\", peer = \"internal:console\"",
        "role = \"delegate\", peer = \"internal:conductor\"",
    );
    let problems = Policy::parse(&text).unwrap_err().problems;
    assert_eq!(problems, ["peer `internal:conductor` is listed twice"]);
}

/// guard 2.1.3, 2.4
#[test]
fn unknown_roles_keys_and_peers_are_refused() {
    for (from, to) in [
        ("role = \"agent\"", "role = \"boss\""),
        ("version = 1", "version = 2"),
        ("version = 1", "version = 1\nextra = true"),
        ("uid:1301", "uid:01301"),
        ("uid:1301", "pid:1"),
        ("min = 0, max = 50", "min = 1, max = 0"),
        ("min = 0, max = 50", "min = 0, max = 9007199254740992"),
        ("min = 0, max = 50", "min = 0, max = 5, step = 1"),
        ("pending_ttl_h = 72", "pending_ttl_h = 73"),
        ("approval_ttl_s = 600", "approval_ttl_s = 601"),
        (
            "executors = [\"internal:worker\"]",
            "executors = [\"agent/rca\"]",
        ),
        (
            "{ namespace = { type = \"name\" }",
            "{ namespace = { type = \"bool\" }",
        ),
        ("{ type = \"id\" }", "{ type = \"text\" }"),
        ("subjects = [\"local:alice\"", "subjects = [\"local:ben\""),
    ] {
        assert!(POLICY.contains(from), "{from}");
        let text = POLICY.replace(from, to);
        assert!(Policy::parse(&text).is_err(), "{to} was taken");
    }
}

/// guard 2.4.3, 5.1.3
#[test]
fn a_type_admits_its_own_values_and_nothing_else() {
    let int = Kind::Int { min: 0, max: 50 };
    let text = |t: &str| Value::Text(t.to_owned());
    assert!(int.admits(&Value::Int(50)));
    assert!(!int.admits(&Value::Int(51)) && !int.admits(&text("40")));
    let name = Kind::Name {};
    for good in ["a", "checkout-1", "a.b"] {
        assert!(name.admits(&text(good)), "{good}");
    }
    let long = "a".repeat(64);
    for bad in [
        "",
        "-a",
        "a-",
        "A",
        "check\u{43e}ut",
        "a_b",
        " a",
        "a\n",
        &long,
    ] {
        assert!(!name.admits(&text(bad)), "{bad}");
    }
    let id = Kind::Id {};
    assert!(id.admits(&text("deploy:2026-01.A_b")));
    for bad in ["", ".a", "a b", "a/b", "a;rm", "'--", "caf\u{e9}"] {
        assert!(!id.admits(&text(bad)), "{bad}");
    }
    assert!(Kind::Sha256 {}.admits(&text(&"0a".repeat(32))));
    assert!(!Kind::Sha256 {}.admits(&text(&"0A".repeat(32))));
    assert!(!Kind::Bool {}.admits(&Value::Null));
}
