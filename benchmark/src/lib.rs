//! The benchmark and the lab.

pub mod lab;
