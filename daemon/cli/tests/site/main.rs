//! The whole binary on a miniature site: what it takes in, what it must never write down, and what
//! it does without its model.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test"
)]

mod commands;
mod degraded;
mod intake;
mod leak;
mod notify;
mod refusal;
#[path = "../support/mod.rs"]
mod support;
