//! The imperative shell: sockets, processes, files and wiring around the rules of `policies`.
//!
//! The only crate with async code. It decides nothing: every rule is called from `policies`.
#![forbid(unsafe_code)]

pub mod assemble;
pub mod cli;
pub mod clock;
pub mod conductor;
pub mod config;
pub mod console;
pub mod control;
pub mod events;
pub mod executors;
pub mod failpoint;
pub mod guard;
pub mod health;
pub mod identity;
pub mod intake;
pub mod jobs;
pub mod keys;
mod listen;
pub mod notify;
pub mod scrape;
pub mod telemetry;
pub mod tools;
