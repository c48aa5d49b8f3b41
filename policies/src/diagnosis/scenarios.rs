//! Whole incidents for the tests, each made of what the tools would have brought.

mod again;
mod cases;
mod world;

use super::ExecutorFact;
use crate::model::{Alert, Millis, Payload};

/// What an investigation of one of the incidents would be given.
pub(crate) struct Site {
    /// The alerts.
    pub(crate) alerts: Vec<Alert>,
    /// Configured executors.
    pub(crate) executors: Vec<ExecutorFact>,
    /// Answers by tool.
    pub(crate) answers: Vec<(&'static str, Payload)>,
    /// When it is looked at.
    pub(crate) now: Millis,
}

/// A callee that was killed at its memory limit and stays down.
pub(crate) fn dependency_down() -> Site {
    let world = cases::dependency_down();
    Site {
        alerts: world.alerts.clone(),
        executors: world.executors.clone(),
        answers: world.payloads(),
        now: world::end(),
    }
}
