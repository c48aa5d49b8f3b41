//! `approval list | show`, `approve`, `deny`, `action show | reconcile`.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

use serde_json::{Value, json};

use super::incidents::path_part;
use super::{Globals, exit, items, text_of};

/// `sentinel approval list`: what waits for a decision.
pub async fn approval_list(globals: &Globals) -> u8 {
    const COMMAND: &str = "approval list";
    let data = match globals.client().get_json("/v1/actions").await {
        Ok(data) => data,
        Err(e) => return globals.client_failed(COMMAND, &e),
    };
    let waiting: Vec<&Value> = items(&data, "/actions")
        .filter(|a| text_of(a, "/state") == "pending")
        .collect();
    let mut text = String::new();
    for action in &waiting {
        let _ = writeln!(
            text,
            "{}  {} {}  {}  expires {}",
            text_of(action, "/id"),
            text_of(action, "/action"),
            text_of(action, "/target/name"),
            text_of(action, "/change"),
            text_of(action, "/expires_at")
        );
    }
    if waiting.is_empty() {
        text.push_str("Nothing waits for approval.");
    }
    globals.print(COMMAND, &json!({ "items": waiting }), &text)
}

/// `sentinel approval show ID`.
pub async fn approval_show(globals: &Globals, id: &str) -> u8 {
    show(globals, "approval show", id).await
}

/// `sentinel action show ID`.
pub async fn action_show(globals: &Globals, id: &str) -> u8 {
    show(globals, "action show", id).await
}

async fn show(globals: &Globals, command: &str, id: &str) -> u8 {
    match globals
        .client()
        .get_json(&format!("/v1/actions/{}", path_part(id)))
        .await
    {
        Ok(data) => {
            let text = shown(&data);
            globals.print(command, &data, &text)
        }
        Err(e) => globals.client_failed(command, &e),
    }
}

/// Every parameter, whole: what exceeds a limit was refused, so nothing is cut here.
fn shown(action: &Value) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} of {} in {}",
        text_of(action, "/action"),
        text_of(action, "/target/name"),
        text_of(action, "/target/namespace")
    );
    for (name, value) in action
        .pointer("/change")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let _ = writeln!(out, "  {name:<12} {}", crate::console::text::show(&value));
    }
    for (label, path) in [
        ("state", "/state"),
        ("digest", "/digest"),
        ("document", "/document"),
        ("requester", "/requester"),
        ("created", "/created_at"),
        ("expires", "/expires_at"),
        ("usable until", "/approval_expires_at"),
        ("approvals", "/approvals/have"),
        ("needed", "/approvals/need"),
        ("jti", "/jti"),
        ("outcome", "/outcome"),
    ] {
        let text = text_of(action, path);
        if !text.is_empty() {
            let _ = writeln!(out, "{label:<12} {text}");
        }
    }
    for by in items(action, "/approvals/by") {
        let _ = writeln!(
            out,
            "approved by  {} ({}) [via {}]",
            text_of(by, "/person"),
            text_of(by, "/assurance"),
            text_of(by, "/via")
        );
    }
    if text_of(action, "/state") == "in_doubt" {
        out.push_str(
            "The action may or may not have happened; it is never run again.\n\
             Check the target, then `sentinel action reconcile ID`.\n",
        );
    }
    out
}

/// What a decision needs.
#[derive(Clone, Debug)]
pub struct Decide {
    /// The action.
    pub id: String,
    /// Subject of the person in the policy, for example `local:alice`.
    pub person: String,
    /// Why.
    pub reason: String,
    /// The digest that was shown, if it is not to be taken from what this command shows.
    pub digest: Option<String>,
    /// The target's name, typed; asked on a terminal when absent.
    pub target: Option<String>,
    /// File descriptor or prompt: the TOTP code comes from standard input.
    pub code_from_stdin: bool,
}

/// `sentinel approve ID`.
pub async fn approve(globals: &Globals, decide: Decide) -> u8 {
    decision(globals, "approve", decide).await
}

/// `sentinel deny ID`. Needs no code.
pub async fn deny(globals: &Globals, decide: Decide) -> u8 {
    decision(globals, "deny", decide).await
}

async fn decision(globals: &Globals, command: &str, decide: Decide) -> u8 {
    let path = format!("/v1/actions/{}", path_part(&decide.id));
    let action = match globals.client().get_json(&path).await {
        Ok(action) => action,
        Err(e) => return globals.client_failed(command, &e),
    };
    if !globals.json {
        eprint!("{}", shown(&action));
    }
    let digest = text_of(&action, "/digest");
    if decide.digest.as_ref().is_some_and(|d| *d != digest) {
        return globals.fail(
            command,
            "digest_mismatch",
            "the action has another digest than the one given",
            exit::CONFLICT,
        );
    }
    let totp = if command == "approve" {
        match typed(globals, command, &decide, &text_of(&action, "/target/name")) {
            Ok(code) => Some(code),
            Err(status) => return status,
        }
    } else {
        None
    };
    let body = json!({
        "person": decide.person,
        "digest": digest,
        "decision_nonce": text_of(&action, "/decision_nonce"),
        "reason": decide.reason,
        "totp": totp,
    });
    match globals
        .client()
        .post_json(&format!("{path}/{command}"), &body)
        .await
    {
        Ok(data) => {
            let text = format!(
                "{}: {} (audit index {})",
                text_of(&data, "/id"),
                text_of(&data, "/state"),
                text_of(&data, "/audit_index")
            );
            globals.print(command, &data, &text)
        }
        Err(e) => globals.client_failed(command, &e),
    }
}

/// What an approval has to type: the name of the target, and a code, which is given back.
fn typed(globals: &Globals, command: &str, decide: &Decide, name: &str) -> Result<String, u8> {
    let missing = |detail: &str| globals.fail(command, "SN-0202", detail, exit::USAGE);
    let typed = decide
        .target
        .clone()
        .or_else(|| ask(&format!("Type the target's name ({name}): ")))
        .ok_or_else(|| missing("the target's name is missing: give --target"))?;
    if typed != name {
        return Err(globals.fail(
            command,
            "SN-0203",
            "that is not the target's name; nothing was recorded",
            exit::FAILED,
        ));
    }
    let code = if decide.code_from_stdin {
        read_line()
    } else {
        ask("Code of your authenticator: ")
    };
    code.ok_or_else(|| {
        missing("the code is missing: give --code-stdin and write it to standard input")
    })
}

/// `sentinel action reconcile ID`: what did an action in doubt do?
pub async fn reconcile(globals: &Globals, decide: Decide, succeeded: bool) -> u8 {
    const COMMAND: &str = "action reconcile";
    let totp = if decide.code_from_stdin {
        read_line()
    } else {
        ask("Code of your authenticator: ")
    };
    let body = json!({
        "person": decide.person,
        "succeeded": succeeded,
        "reason": decide.reason,
        "totp": totp,
    });
    let path = format!("/v1/actions/{}/reconcile", path_part(&decide.id));
    match globals.client().post_json(&path, &body).await {
        Ok(data) => {
            let text = format!("{}: {}", text_of(&data, "/id"), text_of(&data, "/state"));
            globals.print(COMMAND, &data, &text)
        }
        Err(e) => globals.client_failed(COMMAND, &e),
    }
}

/// Asks on a terminal; `None` where there is none.
fn ask(prompt: &str) -> Option<String> {
    if !std::io::stdin().is_terminal() {
        return None;
    }
    eprint!("{prompt}");
    let _ = std::io::stderr().flush();
    read_line()
}

/// One line of standard input.
/// A new password: asked for twice on a terminal, the first line of standard input otherwise.
pub(super) fn new_password(name: &str) -> Result<String, &'static str> {
    const GIVE: &str = "give a password of 14 to 256 bytes on a terminal or on standard input";
    if !std::io::stdin().is_terminal() {
        return read_line().ok_or(GIVE);
    }
    let first = hidden_line(&format!("Password for {name} (14 to 256 bytes): ")).ok_or(GIVE)?;
    let second = hidden_line("The same again: ").ok_or(GIVE)?;
    if first == second {
        Ok(first)
    } else {
        Err("the two passwords differ")
    }
}

/// A line that the terminal does not show while it is typed.
fn hidden_line(prompt: &str) -> Option<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let terminal = std::io::stdin();
    let shown = tcgetattr(&terminal).ok()?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    eprint!("{prompt}");
    tcsetattr(&terminal, OptionalActions::Flush, &hidden).ok()?;
    let line = read_line();
    // A terminal that stays silent would look broken; there is no better answer to a failure here.
    let _ = tcsetattr(&terminal, OptionalActions::Flush, &shown);
    eprintln!();
    line
}

pub(super) fn read_line() -> Option<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok()?;
    let line = line.trim_end_matches(['\r', '\n']).to_owned();
    (!line.is_empty()).then_some(line)
}
