//! Jobs: every look outside and every change runs in a process of its own (design.md 3).
//!
//! The scheduler starts a worker for each job, gives it the paths and connections of that job and
//! kills it at its deadline. It decides nothing: which tool is called with what is the
//! investigation's business, and whether a change may run is the guard's.

pub(crate) mod channel;
pub mod dial;
mod process;
mod remediate;
mod sandbox;
mod scheduler;
mod selfcheck;
pub(crate) mod wire;
mod worker;

pub use channel::MAX_FDS;
pub use process::{Killer, Spawner, Worker, WorkerExe};
pub use remediate::JobOutcome;
pub use sandbox::Grants;
pub use scheduler::{
    Clock, Error, JobRecord, Observer, Scheduler, SchedulerOptions, ToolAnswer, ToolCall,
};
pub use selfcheck::{Attempt, Attempts};
pub use worker::worker_main;
