//! What core and a worker say to each other.

use policies::model::{Millis, Window};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sandbox::Grants;
use super::selfcheck::Attempts;
use crate::executors::{Effect, ExecutorSpec, Order, Preview};
use crate::tools::SourceSpec;

/// Most bytes of a frame that core sends.
pub(crate) const MAX_FRAME: usize = 4 << 20;

/// The first frame: what this worker is for. It does nothing else in its life.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Job {
    /// One call of a read-only tool. Answered by [`ToolReply`], and a frame of bytes if it is good.
    Tool {
        grants: Grants,
        tool: String,
        source: SourceSpec,
        args: Value,
        window: Window,
        now: Millis,
    },
    /// Scrape rounds until core goes away: each `Round` is answered by a `RoundAnswer`.
    Scrape,
    /// Look at what an executor would do. Answered by [`PreviewReply`].
    Preview {
        grants: Grants,
        executor: ExecutorSpec,
        change: Option<Value>,
    },
    /// Collect, spend, then wait for the release. Answered by [`EffectReply`].
    Remediate { grants: Grants, order: Order },
    /// Try what must not work. Answered by a list of attempts.
    SelfCheck { grants: Grants, attempts: Attempts },
}

impl Job {
    pub(crate) fn grants(&self) -> Grants {
        match self {
            Self::Tool { grants, .. }
            | Self::Preview { grants, .. }
            | Self::Remediate { grants, .. }
            | Self::SelfCheck { grants, .. } => grants.clone(),
            Self::Scrape => Grants::default(),
        }
    }
}

/// The head of a worker's answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Reply<T> {
    /// Done.
    Done(T),
    /// Not done.
    Failed { code: String, detail: String },
}

/// Answer of a tool; the payload follows as a frame of its own.
pub(crate) type ToolReply = Reply<ToolDone>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolDone {
    pub(crate) partial: Vec<String>,
}

/// Answer of a dry run.
pub(crate) type PreviewReply = Reply<Preview>;

/// Answer of an order.
pub(crate) type EffectReply = Reply<Effect>;
