//! One table of words: each state as word, tone and icon (console 1.4), each class in plain English.

/// How a state looks: never by colour alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The word.
    pub word: String,
    /// CSS class: `ok`, `info`, `warn`, `bad`, `idle`.
    pub tone: &'static str,
    /// Name of the icon.
    pub icon: &'static str,
}

fn look(word: &str, tone: &'static str, icon: &'static str) -> Look {
    Look {
        word: word.to_owned(),
        tone,
        icon,
    }
}

/// The look of a state of an incident, an action or a hypothesis.
#[must_use]
pub fn state(word: &str) -> Look {
    match word {
        "pending" | "awaiting_approval" | "waiting_approval" => {
            look("waits for a person", "warn", "person")
        }
        "approved" | "issued" => look("approved, not performed yet", "info", "wait"),
        "spent" | "executing" | "running" => look("being performed", "info", "run"),
        "succeeded" => look("succeeded", "ok", "ok"),
        "reconciled_succeeded" => look("reconciled: it happened", "ok", "ok"),
        "failed" => look("failed", "bad", "stop"),
        "reconciled_failed" => look("reconciled: it did not happen", "bad", "stop"),
        "in_doubt" => look("in doubt", "bad", "warn"),
        "denied" => look("denied", "idle", "stop"),
        "expired" => look("expired, nothing was done", "idle", "wait"),
        "lapsed" => look("approved but never performed", "idle", "wait"),
        "revoked" => look("revoked, nothing was done", "idle", "stop"),
        "cancelled" => look("cancelled, nothing was done", "idle", "stop"),
        "superseded" => look("replaced by another proposal", "idle", "ring"),
        "epoch_void" => look("void: the store was restored", "idle", "stop"),
        "opened" | "open" | "investigating" | "settling" | "collecting" => {
            look("investigating", "info", "run")
        }
        "diagnosing" | "drafting" => look("diagnosing", "info", "run"),
        "verifying" => look("watching for recovery", "info", "run"),
        "recovered" | "resolved" => look("resolved", "ok", "ok"),
        "closed" => look("closed", "idle", "ok"),
        "escalated" => look("escalated to a person", "warn", "person"),
        "no_action" => look("nothing to do", "ok", "ok"),
        "not_recovered" => look("not fixed", "bad", "warn"),
        "supported" => look("supported", "ok", "ok"),
        "refuted" => look("refuted", "idle", "stop"),
        "untested" => look("untested", "idle", "ring"),
        other => Look {
            word: plain(other),
            tone: "idle",
            icon: "ring",
        },
    }
}

/// The look of a severity.
#[must_use]
pub fn severity(word: &str) -> Look {
    match word {
        "critical" => look("critical", "bad", "stop"),
        "error" => look("error", "bad", "warn"),
        "warning" => look("warning", "warn", "warn"),
        "info" => look("info", "info", "dot"),
        _ => look("severity unknown", "idle", "ring"),
    }
}

/// A class word as a reader says it: `bad_deploy` becomes `bad deploy`.
#[must_use]
pub fn plain(class: &str) -> String {
    class.replace('_', " ")
}

/// The verb of an action, for its sentence.
#[must_use]
pub fn verb(action: &str) -> String {
    match action {
        "rollback" => "Roll back".to_owned(),
        "resize" => "Resize".to_owned(),
        "restart" => "Restart".to_owned(),
        "scale" => "Scale".to_owned(),
        "config_revert" => "Put back the configuration of".to_owned(),
        other => format!("Perform {} on", plain(other)),
    }
}

/// Where an action stands, in one sentence (guard 4.5: no success wording on a non-success).
#[must_use]
pub fn standing(state: &str) -> &'static str {
    match state {
        "pending" => "Nothing has been done yet.",
        "approved" => "Approved; not started.",
        "issued" => "Approved; the executor has collected its permission and has not used it.",
        "spent" => "The permission is used; the effect is under way or about to begin.",
        "succeeded" => "The executor reported that it did exactly this.",
        "failed" => "The executor reported that it failed.",
        "in_doubt" => {
            "It may or may not have happened. It is never run again: look at the target, then \
             reconcile with what you found."
        }
        "reconciled_succeeded" => "A person looked and recorded that it happened.",
        "reconciled_failed" => "A person looked and recorded that it did not happen.",
        "denied" => "A person denied it. It was not and will not be performed.",
        "expired" => "Nobody decided in time. Nothing was done.",
        "lapsed" => "Approved but never performed: its time ran out first.",
        "revoked" => "The approval was taken back before it was used. Nothing was done.",
        "cancelled" => "The requester took it back. Nothing was done.",
        "superseded" => "Another proposal took its place. Nothing was done.",
        "epoch_void" => "Void: the store was restored. Nothing was done.",
        _ => "Its state is recorded at the guard.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every state of guard 4.1.
    const STATES: [&str; 15] = [
        "pending",
        "approved",
        "issued",
        "spent",
        "succeeded",
        "failed",
        "in_doubt",
        "reconciled_succeeded",
        "reconciled_failed",
        "denied",
        "expired",
        "cancelled",
        "superseded",
        "lapsed",
        "revoked",
    ];

    /// guard 4.5
    #[test]
    fn only_a_success_is_worded_or_coloured_as_a_success() {
        for name in STATES.iter().chain(&["epoch_void"]) {
            let good = matches!(*name, "succeeded" | "reconciled_succeeded");
            let look = state(name);
            assert_eq!(look.tone == "ok", good, "{name}");
            assert!(good || !look.word.contains("succeeded"), "{name}");
            assert_ne!(standing(name), standing("no such state"), "{name}");
        }
    }

    #[test]
    fn an_unknown_state_is_shown_by_its_own_word() {
        assert_eq!(state("half_open").word, "half open");
        assert_eq!(verb("purge_bad_data"), "Perform purge bad data on");
    }
}
