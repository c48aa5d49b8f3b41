//! Fixtures of the tests of this module.

use std::collections::BTreeMap;

use super::judge::{self, Context, Decide, Decider, Drawn, Evidence, Judged, ProposeFacts};
use super::{Action, HolderKey, Peer, Policy, Verdict};
use crate::canon::Value;
use crate::model::Millis;

/// The example of guard 2.4.3 with a second person, a second action that needs two approvals
/// and a third that needs a code.
pub(crate) const POLICY: &str = r#"
version = 1
site = "plant-7.example"
limits = { pending_per_requester = 3, proposals_per_requester_per_hour = 60, refused_leaves_per_caller_per_minute = 30, deny_cooldown_h = 24 }
issuer = [{ id = "corp", iss = "https://idp.plant-7.example", aud = ["sentinel-console"], algs = ["ES256"], jwks_file = "/etc/sentinel/jwks.d/corp.json" }]
identity = [
  { id = "agent/rca", role = "agent", peer = "internal:conductor", tenants = ["acme", "payments-core"] },
  { id = "console", role = "delegate", peer = "internal:console" },
  { id = "control", role = "delegate", peer = "internal:control" },
  { id = "executor/scada", role = "executor", peer = "uid:1301" },
]
person = [
  { id = "alice", subjects = ["local:alice", "oidc:corp:7f31c0"], groups = ["oncall"] },
  { id = "ben", subjects = ["local:ben"], groups = ["oncall", "managers"], uid = 1400 },
  { id = "carol", subjects = ["local:carol"], groups = [] },
]
forbid = [{ action = "*", namespace = "payments-core" }]
[[action]]
name = "scale"
may_propose = ["agent/rca"]
may_approve = ["group:oncall"]
executors = ["internal:worker"]
approvals = 1
must_include = []
min_assurance = "delegated"
pending_ttl_h = 72
approval_ttl_s = 600
effect_timeout_s = 120
target = { namespace = { type = "name" }, name = { type = "name" } }
change = { incident = { type = "id" }, replicas = { type = "int", min = 0, max = 50 } }
[[action]]
name = "drain"
may_propose = ["agent/rca"]
may_approve = ["group:oncall"]
executors = ["internal:worker"]
approvals = 2
must_include = ["group:managers"]
min_assurance = "delegated"
effect_timeout_s = 120
target = { namespace = { type = "name" }, name = { type = "name" } }
change = { incident = { type = "id" } }
[[action]]
name = "restart"
may_propose = ["agent/rca"]
may_approve = ["group:oncall"]
executors = ["internal:worker"]
approvals = 1
min_assurance = "local"
effect_timeout_s = 120
target = { namespace = { type = "name" }, name = { type = "name" } }
change = { incident = { type = "id" } }
"#;

/// When everything happens.
pub(crate) const T0: Millis = Millis(1_780_000_000_250);

pub(crate) fn policy() -> Policy {
    Policy::parse(POLICY).unwrap()
}

pub(crate) fn at(policy: &Policy, now: Millis) -> Context<'_> {
    Context {
        policy,
        now,
        size: 10,
        epoch: 1,
        inc: 1,
        blocked: None,
        on_hold: false,
    }
}

pub(crate) fn agent() -> Peer {
    Peer::Internal("conductor".to_owned())
}

pub(crate) fn console() -> Decider {
    Decider::Peer(Peer::Internal("console".to_owned()))
}

pub(crate) fn scale(replicas: i64) -> judge::Propose {
    propose(
        "scale",
        [
            ("incident", Value::from("inc-42")),
            ("replicas", Value::Int(replicas)),
        ],
    )
}

pub(crate) fn propose<const N: usize>(name: &str, change: [(&str, Value); N]) -> judge::Propose {
    judge::Propose {
        action: name.to_owned(),
        target: Value::map(
            [("namespace", "acme"), ("name", "checkout")].map(|(k, v)| (k, Value::from(v))),
        ),
        change: Value::map(change),
        intent: "because".to_owned(),
        initiator: None,
    }
}

pub(crate) fn drawn(seed: u8) -> Drawn {
    Drawn([seed; 16])
}

/// A pending action.
pub(crate) fn pending(policy: &Policy, request: &judge::Propose) -> Action {
    let facts = |_: &str, _: &super::ActionDoc| Ok::<_, ()>(ProposeFacts::default());
    let bits = (drawn(1), drawn(2));
    let judged = judge::propose(&at(policy, T0), &agent(), request, bits, facts).unwrap();
    one(judged)
}

/// The one action that a judgement changed.
pub(crate) fn one<A>(mut judged: Judged<A>) -> Action {
    assert_eq!(judged.actions.len(), 1);
    judged.actions.remove(0)
}

pub(crate) fn decision(action: &Action, subject: &str, verdict: Verdict) -> Decide {
    Decide {
        verdict,
        digest: action.digest.clone(),
        nonce: action.nonce.clone(),
        approver: Some(subject.to_owned()),
        reason: "looks right".to_owned(),
        evidence: Evidence::None,
    }
}

/// An approved action.
pub(crate) fn approved(policy: &Policy) -> Action {
    let action = pending(policy, &scale(6));
    let decide = decision(&action, "local:alice", Verdict::Approve);
    one(judge::decide(&at(policy, T0), &console(), &action, &decide))
}

pub(crate) fn holder() -> HolderKey {
    HolderKey::from_random(&[9; 32]).unwrap()
}

pub(crate) fn change_of(action: &Action) -> BTreeMap<String, Value> {
    action.doc.change().clone()
}
