//! The guard's rules: who may change what, and how often (guard.md).
//!
//! A pure state machine. [`judge`] takes the policy in force, the recorded action, a request,
//! `now` and random bits, and gives back the next version of the action, the leaves that say so
//! and the answer; it performs nothing. The store commits all of it in one transaction or none.
//! Nothing here reads evidence, model text or interlock results (guard 1.2).

mod action;
mod capability;
mod clock;
mod doc;
mod holder;
pub mod judge;
mod jws;
mod leaf;
pub mod lockout;
pub mod policy;
mod problem;
mod state;
#[cfg(test)]
mod testing;
pub mod totp;
pub mod wire;

pub use action::{Action, Decision, Ending, Issue, Spend, Verdict, json_of};
pub use capability::{Capability, Claims, MAX_LIFE_S, TrustedKey, judge_use, verify, verify_for};
pub use clock::{Reading, Timekeeper};
pub use doc::{ActionDoc, challenge, digest_of};
pub use holder::{HolderKey, Purpose, check_proof};
pub use judge::{Approved, IssueGrant, SpendGrant};
pub use jws::{jwks, public_jwk, thumbprint};
pub use leaf::{Leaf, Who};
pub use policy::{Assurance, Peer, Policy, Role};
pub use problem::{Code, Problem};
pub use state::{State, UnknownState};
