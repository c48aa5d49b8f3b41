//! What a person is told after a decision was sent: what is recorded, never what was asked
//! (guard 3.2, console 1.5).

use super::backend::Verb;
use super::outcomes::Outcome;
use super::view::Action;

/// A notice above the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// CSS class.
    pub tone: &'static str,
    /// Heading.
    pub title: String,
    /// Whether anything was recorded, and what.
    pub recorded: String,
    /// More.
    pub detail: String,
    /// Stable code.
    pub code: String,
    /// What to do now.
    pub fix: &'static str,
}

/// The notice for an outcome, worded from the stored record.
#[must_use]
pub(crate) fn after_decision(outcome: &Outcome, action: &Action, person: Option<&str>) -> Notice {
    match &outcome.problem {
        None => recorded(outcome.verb, action, person),
        Some(problem) => {
            let (title, fix) = refusal(&problem.code);
            Notice {
                tone: "bad",
                title: title.to_owned(),
                recorded: "No decision of yours was recorded by this.".to_owned(),
                detail: problem.detail.clone(),
                code: problem.code.clone(),
                fix,
            }
        }
    }
}

fn recorded(verb: Verb, action: &Action, person: Option<&str>) -> Notice {
    let own = action
        .decisions
        .iter()
        .find(|d| d.verb == verb && Some(d.person.as_str()) == person);
    let entry = action
        .audit_index
        .map_or_else(String::new, |index| format!(" Audit entry {index}."));
    // The words follow the record: an approval that is not among the recorded ones is not called one.
    let by = own.map_or_else(String::new, |own| match own.via.as_str() {
        "" => own.person.clone(),
        via => format!("{} ({}, via {via})", own.person, own.assurance),
    });
    let state = action.state.as_str();
    let (tone, title, recorded) = match (verb, own, state) {
        (Verb::Approve, Some(_), _) => (
            "ok",
            "Approval recorded",
            format!("Recorded: approved by {by}."),
        ),
        (Verb::Deny, Some(_), _) => (
            "ok",
            "Denial recorded",
            format!("Recorded: denied by {by}. It will not be performed."),
        ),
        (Verb::Revoke, _, "revoked")
        | (Verb::Happened, _, "reconciled_succeeded")
        | (Verb::DidNotHappen, _, "reconciled_failed") => {
            ("ok", "Recorded", "What you said is on record.".to_owned())
        }
        _ => (
            "warn",
            "The record says something else",
            "The guard took it, but the action has gone another way since.".to_owned(),
        ),
    };
    let recorded = format!("{recorded}{entry}");
    let detail = match action.need.saturating_sub(action.have) {
        missing if action.state == "pending" && missing > 0 => {
            format!(
                "It needs {missing} more {}.",
                if missing == 1 { "person" } else { "people" }
            )
        }
        // Where it stands is the page's to say: that goes on changing, a notice does not.
        _ => String::new(),
    };
    Notice {
        tone,
        title: title.to_owned(),
        recorded,
        detail,
        code: action.state.clone(),
        fix: "",
    }
}

/// Title and next step of each refusal.
fn refusal(code: &str) -> (&'static str, &'static str) {
    match code {
        "target_mismatch" => (
            "The target's name did not match",
            "Compare the target with what you mean, then type its name as shown.",
        ),
        "reason_missing" => ("The reason is missing", "Say why, then deny again."),
        "digest_mismatch" => (
            "The action is not the one you were shown",
            "Read the parameters on this page again before you decide.",
        ),
        "expired" => (
            "Too late: it expired",
            "If it is still needed, a new proposal comes from the incident.",
        ),
        "already_decided" => (
            "You decided otherwise before",
            "Revoking is the way back from an approval.",
        ),
        "wrong_state" => (
            "It is not waiting any more",
            "See below who decided, when, and what.",
        ),
        "self_decision" => (
            "You may not decide on what you asked for",
            "Another person of the policy has to decide.",
        ),
        "not_permitted" => (
            "The policy does not let you decide this",
            "The policy file names who may.",
        ),
        "assurance_too_low" => (
            "This action asks for stronger proof of who you are",
            "Send the code of your authenticator with the decision.",
        ),
        "evidence_invalid" => (
            "The code was not accepted",
            "Wait for the next code: one that was used, at login too, is not taken again.",
        ),
        "quota" => (
            "Too many wrong codes",
            "Wait until the time above, then send the next code. A denial needs none.",
        ),
        "in_doubt_open" => (
            "An earlier action on this target is in doubt",
            "Reconcile that one first.",
        ),
        "on_hold" => (
            "All actions are on hold",
            "A person who may approve releases the hold with a reason.",
        ),
        "malformed" => ("The form was incomplete", "Fill it in again on this page."),
        "audit_blocked" | "clock_regressed" | "rolled_back" | "forked" | "key_unavailable"
        | "no_space" | "policy_rejected" | "guard_unavailable" | "shutting_down" => (
            "The guard takes no decisions now",
            "Its state is in the banner; nothing runs until it is well.",
        ),
        _ => ("The guard refused", "The code says why."),
    }
}
