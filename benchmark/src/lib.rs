//! benchmark
