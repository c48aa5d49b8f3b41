//! Sentinel's model providers: the embedded engine in a child process of its own, and the interface that core uses.
//!
//! This crate owns everything between an admitted prompt and an answer that is valid under its schema. It must not
//! know incidents, and it opens no socket from the engine process. Core never initialises llama.cpp: that happens
//! only in [`run_child`], the body of `sentinel infer`.

mod child;
mod engine;
mod frame;
pub mod gguf;
pub mod prompts;
mod provider;
pub mod schema;

pub use child::run_child;
pub use engine::{Engine, EngineEvent, EngineOptions, Limits};
pub use frame::{ProbeResult, Ready};
pub use provider::{
    Cancel, Code, Completion, CompletionRequest, EngineState, Error, Finish, Provider, Timings,
    Usage,
};

/// Lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
