//! Every rule of Sentinel, and nothing else: pure functions and sans-IO state machines.
//!
//! This crate owns the domain nouns ([`model`]) and every constructor of the claim pipeline
//! (design.md 1). It must not use tokio, files, sockets, the clock, randomness or the iteration
//! order of a hash map: `now`, ids, keys and random bits are arguments, so that the same input
//! gives the same bytes on every machine.
#![forbid(unsafe_code)]

pub mod admit;
pub mod audit;
pub mod canon;
pub mod citations;
pub mod claim;
pub mod diagnosis;
pub mod event;
pub mod guard;
mod injection;
pub mod intake;
pub mod interlocks;
pub mod machine;
pub mod model;
mod provenance;
pub mod redaction;
mod spotlight;
