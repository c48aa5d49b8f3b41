//! Deaths on demand, so that tests can kill core at every stage border.
//!
//! Compiled into test builds alone: in a release build [`hit`] is empty and the flag that arms it
//! does not exist.

#[cfg(debug_assertions)]
use std::sync::OnceLock;

/// Every point, in the order in which one incident passes them.
pub const POINTS: &[&str] = &[
    "webhook_stored",
    "incident_saved",
    "tools_running",
    "evidence_saved",
    "diagnosed",
    "model_asked",
    "before_propose",
    "after_propose",
    "awaiting_approval",
    "approval_seen",
    "rechecked",
    "before_collect",
    "collected",
    "spent",
    "released",
    "started",
    "effect_done",
    "job_ended",
    "verifying",
    "before_close",
];

#[cfg(debug_assertions)]
static ARMED: OnceLock<String> = OnceLock::new();

/// Arms one point for the rest of this process.
///
/// # Errors
/// The name is none of [`POINTS`].
#[cfg(debug_assertions)]
pub fn arm(point: &str) -> Result<(), String> {
    if !POINTS.contains(&point) {
        return Err(format!(
            "no such point `{point}`; one of: {}",
            POINTS.join(", ")
        ));
    }
    let _ = ARMED.set(point.to_owned());
    Ok(())
}

/// Kills this process by SIGKILL if `point` is armed.
#[cfg(debug_assertions)]
pub fn hit(point: &str) {
    if ARMED.get().is_some_and(|armed| armed == point) {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// Nothing in a release build.
#[cfg(not(debug_assertions))]
pub fn hit(_point: &str) {}
