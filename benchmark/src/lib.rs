//! The benchmark and the lab.

pub mod guardrails;
pub mod lab;
