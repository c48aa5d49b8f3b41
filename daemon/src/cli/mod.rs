//! Bodies of the subcommands. Standard output is data, standard error is for people
//! (operations 2.3, 2.4); this is the one module that prints.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the command line prints"
)]

mod approvals;
mod audit;
mod explain;
mod incidents;
mod local;
mod serve;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::console::text::show;
use crate::control::{Client, ClientError};

pub use approvals::{Decide, action_show, approval_list, approval_show, approve, deny, reconcile};
pub use audit::{ExportArgs, VerifyArgs, export, trust, verify};
pub use explain::explain;
pub use incidents::{incident_list, incident_show, postmortem};
pub use inference::run_child as infer;
pub use local::{RedactArgs, check, redact, version};
pub use serve::{ServeArgs, health, serve, user_add};

/// Exit codes (operations 3).
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// Refused or failed.
    pub const FAILED: u8 = 1;
    /// The configuration is invalid.
    pub const CONFIG: u8 = 4;
    /// No daemon answers.
    pub const UNREACHABLE: u8 = 5;
    /// Not permitted.
    pub const FORBIDDEN: u8 = 6;
    /// Conflict: digest, state, already decided.
    pub const CONFLICT: u8 = 7;
    /// Not found.
    pub const NOT_FOUND: u8 = 9;
    /// The data is newer than this program.
    pub const NEWER: u8 = 10;
    /// Wrong usage.
    pub const USAGE: u8 = 64;
    /// A bug.
    pub const INTERNAL: u8 = 70;
    /// Input or output.
    pub const IO: u8 = 74;
}

/// Writes a line to standard output. A reader that went away ends the command quietly, and a disk
/// that is full with exit code 74: half an answer must not look like a whole one.
pub fn say(line: &str) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    if let Err(e) = writeln!(out, "{line}").and_then(|()| out.flush()) {
        if e.kind() == std::io::ErrorKind::BrokenPipe {
            std::process::exit(i32::from(exit::DONE));
        }
        eprintln!("sentinel: SN-0206: cannot write to standard output: {e}");
        std::process::exit(i32::from(exit::IO));
    }
}

/// What every command is told.
#[derive(Clone, Debug)]
pub struct Globals {
    /// One JSON object on standard output.
    pub json: bool,
    /// The control socket.
    pub socket: PathBuf,
}

impl Globals {
    fn client(&self) -> Client {
        Client::new(&self.socket)
    }

    /// Prints the envelope of `--json`, or `text`. Texts that may hold outside text have passed
    /// the console's filter, so no terminal escape survives.
    fn print(&self, command: &str, data: &Value, text: &str) -> u8 {
        if self.json {
            say(&json!({ "v": 1, "command": command, "data": data, "problems": [] }).to_string());
        } else {
            say(text.trim_end());
        }
        exit::DONE
    }

    fn fail(&self, command: &str, code: &str, detail: &str, status: u8) -> u8 {
        let (code, detail) = (show(code), show(detail));
        if self.json {
            let problem = json!({ "code": code.to_string(), "detail": detail.to_string() });
            eprintln!(
                "{}",
                json!({ "v": 1, "command": command, "data": null, "problems": [problem] })
            );
        } else {
            eprintln!("sentinel: {code}: {detail}");
        }
        status
    }

    fn client_failed(&self, command: &str, error: &ClientError) -> u8 {
        match error {
            ClientError::Unreachable { .. } => {
                self.fail(command, "SN-0201", &error.to_string(), exit::UNREACHABLE)
            }
            ClientError::Refused {
                status,
                code,
                detail,
            } => {
                let exit = match status {
                    401 | 403 => exit::FORBIDDEN,
                    404 => exit::NOT_FOUND,
                    409 | 410 => exit::CONFLICT,
                    _ => exit::FAILED,
                };
                self.fail(command, code, detail, exit)
            }
        }
    }
}

/// A member of a JSON object as filtered text; empty where it is absent or null.
fn text_of(value: &Value, path: &str) -> String {
    let found = value.pointer(path).unwrap_or(&Value::Null);
    match found {
        Value::Null => String::new(),
        Value::String(s) => show(s).to_string(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            show(&other.to_string()).to_string()
        }
    }
}

/// Items of an array member.
fn items<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    value
        .pointer(path)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}
