//! Read-only tools: one file each, one line each in [`TOOLS`].
//!
//! A tool reads one kind of source and answers one `Payload`. Those that open files run in a worker
//! (design.md 3); those that only look into core's own memory run in core. Nothing here judges
//! what was read: the bytes leave as `RawOutput`.

mod deploys;
mod diff;
mod lines;
mod logs;
mod metrics;
mod runbooks;
mod source;
mod topology;
mod units;

use std::time::Duration;

use policies::model::{Millis, Payload, Window};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::jobs::Grants;
use crate::scrape::MetricsRing;

pub use source::{LogFile, ReleaseFolder, ScrapeTarget, SourceSpec};

/// All tools, by name.
pub const TOOLS: &[Tool] = &[
    deploys::TOOL,
    logs::TOOL,
    metrics::TOOL,
    runbooks::TOOL,
    topology::TOOL,
    units::TOOL,
];

/// The tool of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// One read-only tool.
#[derive(Debug)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it answers, one sentence.
    pub summary: &'static str,
    /// Kind of source it reads.
    pub source: &'static str,
    /// JSON Schema of its arguments.
    pub schema: fn() -> Value,
    /// Says what is wrong with arguments before anything is started.
    pub check: fn(&Value) -> Result<(), String>,
    /// Longest time it may take.
    pub timeout: Duration,
    /// Most bytes it may answer.
    pub max_output: usize,
    /// How it runs.
    pub run: Run,
}

/// Where the body of a tool runs.
#[derive(Debug)]
pub enum Run {
    /// In a process of its own that can open the granted paths only.
    Worker {
        /// The paths.
        grants: fn(&SourceSpec) -> Grants,
        /// The body.
        body: fn(&Input<'_>) -> Result<Output, Failure>,
    },
    /// In core, because the source is core's own memory or configuration.
    Core(fn(&Input<'_>, &MetricsRing) -> Result<Output, Failure>),
}

/// What a tool works on.
#[derive(Debug)]
pub struct Input<'a> {
    /// The source.
    pub source: &'a SourceSpec,
    /// Checked arguments.
    pub args: &'a Value,
    /// The window asked for.
    pub window: Window,
    /// Now.
    pub now: Millis,
}

impl Input<'_> {
    /// The arguments as the tool's own type.
    ///
    /// # Errors
    /// When they are not; [`Tool::check`] would have said so.
    pub fn args<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        parse_args(self.args).map_err(|detail| Failure::new("invalid_arguments", detail))
    }
}

/// What a tool answers.
#[derive(Debug)]
pub struct Output {
    /// The answer.
    pub payload: Payload,
    /// Why it is not complete; empty when it is.
    pub partial: Vec<String>,
}

impl Output {
    /// A complete answer.
    #[must_use]
    pub fn whole(payload: Payload) -> Self {
        Self {
            payload,
            partial: Vec::new(),
        }
    }
}

/// The source did not answer, which is not the same as an empty answer (protocols.md 5.2).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {detail}")]
pub struct Failure {
    /// One of [`FAILURE_CODES`].
    pub code: &'static str,
    /// For a person.
    pub detail: String,
}

impl Failure {
    /// A failure with its code.
    #[must_use]
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
        }
    }

    /// A file that could not be read.
    #[must_use]
    pub fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => "not_found",
            std::io::ErrorKind::PermissionDenied => "not_granted",
            _ => "unreadable",
        };
        Self::new(code, format!("`{}`: {error}", path.display()))
    }
}

/// Every code of a failed call.
pub const FAILURE_CODES: &[&str] = &[
    "cancelled",
    "changed_since",
    "crashed",
    "guard_unavailable",
    "invalid_arguments",
    "invalid_change",
    "malformed",
    "no_release",
    "no_worker",
    "not_begun",
    "not_durable",
    "not_found",
    "not_granted",
    "out_of_bounds",
    "sandbox",
    "timeout",
    "too_large",
    "unknown_executor",
    "unknown_source",
    "unknown_tool",
    "unreadable",
    "wrong_source",
];

/// The code of the table that a worker's word names; an unknown word is a crash of the worker.
#[must_use]
pub fn failure_code(word: &str) -> &'static str {
    FAILURE_CODES
        .iter()
        .find(|code| **code == word)
        .copied()
        .unwrap_or("crashed")
}

/// The bytes of a payload, if the tool may answer that many.
///
/// # Errors
/// When it may not, or a number has no form in JSON.
pub fn encode(tool: &Tool, payload: &Payload) -> Result<Vec<u8>, Failure> {
    let bytes =
        serde_json::to_vec(payload).map_err(|e| Failure::new("malformed", e.to_string()))?;
    if bytes.len() > tool.max_output {
        let detail = format!("{} bytes, the limit is {}", bytes.len(), tool.max_output);
        return Err(Failure::new("too_large", detail));
    }
    Ok(bytes)
}

fn parse_args<T: DeserializeOwned>(args: &Value) -> Result<T, String> {
    T::deserialize(args).map_err(|e| e.to_string())
}

fn check<T: DeserializeOwned>(args: &Value) -> Result<(), String> {
    parse_args::<T>(args).map(drop)
}

/// An empty list of services means all of them.
fn wanted(services: &[String], service: &str) -> bool {
    services.is_empty() || services.iter().any(|s| s == service)
}

fn inside(window: Window, at: Millis) -> bool {
    window.from <= at && at < window.to
}

fn wrong_source(input: &Input<'_>, wanted: &'static str) -> Failure {
    let kind = input.source.kind();
    Failure::new(
        "wrong_source",
        format!("the source is of kind `{kind}`, not `{wanted}`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_sorted_described_and_limited() {
        assert!(TOOLS.is_sorted_by_key(|tool| tool.name));
        for tool in TOOLS {
            assert!(tool.summary.ends_with('.'), "{}", tool.name);
            assert!(tool.timeout <= Duration::from_secs(30), "{}", tool.name);
            assert!(tool.max_output <= 8 << 20, "{}", tool.name);
        }
    }

    #[test]
    fn schemas_are_closed_and_each_tool_refuses_what_its_schema_does_not_name() {
        for tool in TOOLS {
            let schema = (tool.schema)();
            assert_eq!(schema["type"], "object", "{}", tool.name);
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            let stray = serde_json::json!({"stray": 1});
            assert!((tool.check)(&stray).is_err(), "{}", tool.name);
            assert!((tool.check)(&Value::Null).is_err(), "{}", tool.name);
        }
    }

    #[test]
    fn the_example_of_each_schema_is_taken() {
        for tool in TOOLS {
            let schema = (tool.schema)();
            for example in schema["examples"].as_array().unwrap() {
                assert_eq!((tool.check)(example), Ok(()), "{}", tool.name);
                for key in example.as_object().unwrap().keys() {
                    assert!(schema["properties"][key].is_object(), "{} {key}", tool.name);
                }
            }
        }
    }

    #[test]
    fn failure_codes_are_sorted_and_unknown_words_count_as_a_crash() {
        assert!(FAILURE_CODES.is_sorted());
        assert_eq!(failure_code("not_found"), "not_found");
        assert_eq!(failure_code("surprise"), "crashed");
    }
}
