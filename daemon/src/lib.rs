//! The imperative shell: sockets, processes, files and wiring around the rules of `policies`.
//!
//! The only crate with async code. It decides nothing: every rule is called from `policies`.
#![forbid(unsafe_code)]

pub mod config;
pub mod console;
pub mod events;
pub mod executors;
pub mod guard;
pub mod identity;
pub mod jobs;
pub mod scrape;
pub mod tools;
