//! The provider interface: what a model is asked, what it answers, and how it fails.
//!
//! A provider takes a [`Prompt`] and nothing else: text that has not passed the guardrails has no way in. Output is
//! always constrained by a schema of the narrow kind that [`crate::schema`] allows, so it is finite by construction.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use policies::claim::Prompt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A source of completions. Calls block; an async caller uses a blocking thread.
pub trait Provider: Send + Sync {
    /// Completes one prompt under the schema of the request.
    ///
    /// # Errors
    /// Every failure is an [`Error`] with a stable code; none of them may end an incident (inference 12).
    fn complete(&self, prompt: &Prompt, request: &CompletionRequest) -> Result<Completion, Error>;

    /// What the provider can do right now.
    fn state(&self) -> EngineState;
}

/// What to ask for.
#[derive(Clone, Debug)]
pub struct CompletionRequest {
    /// Schema of the answer (inference 6.4).
    pub schema: Value,
    /// Upper limit of answer tokens.
    pub max_tokens: u32,
    /// Time from the call to the last token.
    pub deadline: Duration,
    /// Who may share cached context: the tenant and incident. Requests of different sessions share the system text only.
    pub session: String,
}

/// An answer that is valid under the schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// The JSON text.
    pub text: String,
    /// Token counts.
    pub usage: Usage,
    /// Durations.
    pub timings: Timings,
    /// Name of the model file and the start of its digest.
    pub model: String,
    /// Why the answer ended.
    pub finish: Finish,
}

/// Token counts of one request: `prompt = cached + evaluated`, `completion >= forced` (inference 11.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Of these, taken over from the context as it was.
    pub cached: u32,
    /// Of these, computed for this request.
    pub evaluated: u32,
    /// Tokens of the answer.
    pub completion: u32,
    /// Of these, forced by the schema and never sampled.
    pub forced: u32,
}

/// Durations of one request in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timings {
    /// Waiting for the engine.
    pub queue_ms: u64,
    /// Computing the prompt.
    pub prefill_ms: u64,
    /// Computing the answer.
    pub decode_ms: u64,
    /// From arrival to the first token of the answer.
    pub ttft_ms: u64,
    /// Processor time of the engine process.
    pub cpu_ms: u64,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The schema is complete.
    Stop,
    /// The token limit came first.
    Length,
    /// The caller went away.
    Cancelled,
    /// The deadline passed.
    Deadline,
}

/// What a provider can do right now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EngineState {
    /// The model is being checked and loaded.
    Loading,
    /// Requests are answered.
    Ready,
    /// The process died and comes back after a pause.
    Restarting,
    /// It died too often and is left alone for a while.
    Degraded,
    /// It cannot work with what it was given; only a reload helps.
    Unavailable {
        /// Why.
        code: Code,
    },
    /// It was stopped.
    Stopped,
}

impl EngineState {
    /// The word for health pages.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Ready => "ready",
            Self::Restarting => "restarting",
            Self::Degraded => "degraded",
            Self::Unavailable { .. } => "unavailable",
            Self::Stopped => "stopped",
        }
    }
}

macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident = $text:literal,)+) => {
        /// Stable failure codes (inference 12).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Code { $($(#[$meta])* $variant,)+ }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word on the wire, in events and in the postmortem.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}

codes! {
    /// The processor lacks an instruction set that the kernels are built for.
    CpuUnsupported = "cpu_unsupported",
    /// The sandbox could not be put in force.
    SandboxFailed = "sandbox_failed",
    /// There is no model file.
    ModelMissing = "model_missing",
    /// The model file is not what it should be.
    ModelCorrupt = "model_corrupt",
    /// The model does not fit.
    ModelTooLarge = "model_too_large",
    /// The model has no chat template.
    TemplateMissing = "template_missing",
    /// The chat template cannot be rendered safely.
    TemplateUnsupported = "template_unsupported",
    /// Too many requests wait.
    Busy = "busy",
    /// The prompt and the answer do not fit into the context.
    ContextOverflow = "context_overflow",
    /// The measured speed cannot meet the deadline.
    DeadlineUnreachable = "deadline_unreachable",
    /// The deadline passed.
    Deadline = "deadline",
    /// The caller went away.
    Cancelled = "cancelled",
    /// The schema is outside the allowed kind.
    SchemaRefused = "schema_refused",
    /// The grammar failed.
    GrammarError = "grammar_error",
    /// The answer hit the token limit before the schema was complete.
    Truncated = "truncated",
    /// The answer is not valid under the schema.
    SchemaInvalid = "schema_invalid",
    /// A frame could not be understood.
    BadFrame = "bad_frame",
    /// A decode call failed.
    DecodeFailed = "decode_failed",
    /// The engine process died while the request was in flight.
    EngineCrashed = "engine_crashed",
    /// The engine cannot take requests now.
    EngineUnavailable = "engine_unavailable",
    /// This prompt was in flight at two crashes and is not sent again.
    Quarantined = "quarantined",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed request or start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {detail}")]
pub struct Error {
    /// Stable code.
    pub code: Code,
    /// One line for a person. It holds no prompt text and no answer text.
    pub detail: String,
    /// What was used up, if the request ran.
    pub usage: Option<Usage>,
}

impl Error {
    /// An error without usage.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            usage: None,
        }
    }
}

/// Ends a request early. Clones share one switch.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ends the request at the next border of a chunk or token.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// True once [`Self::cancel`] was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn every_code_has_the_same_word_in_json_and_in_text() {
        for &code in Code::ALL {
            assert_eq!(serde_json::to_string(&code).unwrap(), format!("\"{code}\""));
        }
    }
}
