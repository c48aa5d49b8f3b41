//! Commands that need no daemon: `check`, `redact`, `version`.

use std::io::{Read as _, Write as _};
use std::path::Path;

use policies::claim::RedactKey;
use policies::guard::Policy;
use policies::redaction::Redactor;
use serde_json::{Value, json};

use super::{Globals, exit, say};
use crate::config::{self, Level};

/// `sentinel check`: configuration and policy, every problem at once.
pub fn check(globals: &Globals, config: &Path, policy: Option<&Path>) -> u8 {
    let loaded = config::load(config);
    let mut failed = loaded.problems.iter().any(|p| p.level == Level::Error);
    let mut problems: Vec<Value> = loaded.problems.iter().map(|p| json!(p)).collect();
    let mut lines: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    let beside = config.with_file_name("policy.toml");
    let policy = policy.map_or(beside, Path::to_path_buf);
    for problem in state_of(config).map_or_else(Vec::new, config::open_files) {
        failed = true;
        lines.push(problem.to_string());
        problems.push(json!(problem));
    }
    // `serve` does not start without a policy, so a configuration without one is not valid.
    for message in policy_problems(&policy) {
        failed = true;
        lines.push(format!("{}: error[SN-0112]: {message}", policy.display()));
        problems.push(
            json!({ "level": "error", "code": "SN-0112", "file": policy, "message": message }),
        );
    }
    if globals.json {
        let data = json!({ "valid": !failed });
        say(&json!({ "v": 1, "command": "check", "data": data, "problems": problems }).to_string());
    } else {
        for line in &lines {
            eprintln!("{}", crate::console::text::show_block(line));
        }
        if !failed {
            say(&format!("{}: valid", config.display()));
        }
    }
    if failed { exit::CONFIG } else { exit::DONE }
}

/// The state folder of a scratch run whose `etc` holds the configuration.
fn state_of(config: &Path) -> Option<&Path> {
    let etc = config.parent()?;
    (etc.file_name()? == "etc").then(|| etc.parent())?
}

fn policy_problems(path: &Path) -> Vec<String> {
    match std::fs::read_to_string(path) {
        Err(e) => vec![format!("cannot be read: {e}")],
        Ok(text) => match Policy::parse(&text) {
            Ok(_) => Vec::new(),
            Err(e) => e.problems.iter().map(ToString::to_string).collect(),
        },
    }
}

/// What `redact` is told.
#[derive(Clone, Debug)]
pub struct RedactArgs {
    /// Only say whether something would be redacted.
    pub check: bool,
    /// A file with 32 bytes of key; a fresh one otherwise.
    pub key: Option<std::path::PathBuf>,
    /// Report as JSON on standard error.
    pub report: bool,
}

/// `sentinel redact`: standard input to standard output. Exit 0 done, 1 with `--check` and
/// something found, 2 something was dropped, 74 input or output.
pub fn redact(args: &RedactArgs) -> u8 {
    let mut key = [0_u8; 32];
    let made = match &args.key {
        Some(path) => std::fs::read(path)
            .ok()
            .and_then(|b| b.try_into().ok())
            .map(|k| key = k),
        None => getrandom::fill(&mut key).ok(),
    };
    if made.is_none() {
        eprintln!("sentinel: SN-0205: the key must be a file of 32 bytes");
        return exit::IO;
    }
    let mut redactor = Redactor::new(&RedactKey::from_bytes(key));
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut buffer = vec![0_u8; 64 * 1024];
    let (tail, report) = loop {
        match input.read(&mut buffer) {
            Ok(0) => break redactor.finish(),
            Ok(n) => {
                let text = redactor.push(buffer.get(..n).unwrap_or_default());
                if !args.check && (output.write_all(&text).is_err() || output.flush().is_err()) {
                    return exit::IO;
                }
            }
            Err(e) => {
                eprintln!("sentinel: SN-0206: cannot read standard input: {e}");
                return exit::IO;
            }
        }
    };
    if !args.check && (output.write_all(&tail).is_err() || output.flush().is_err()) {
        return exit::IO;
    }
    if args.report {
        let data = json!(report);
        eprintln!(
            "{}",
            json!({ "v": 1, "command": "redact", "data": data, "problems": [] })
        );
    }
    if args.check && !report.is_clean() {
        exit::FAILED
    } else if report.dropped.is_empty() {
        exit::DONE
    } else {
        2
    }
}

/// `sentinel version`.
pub fn version(globals: &Globals) -> u8 {
    let version = env!("CARGO_PKG_VERSION");
    let data = json!({
        "version": version,
        "rules": policies::diagnosis::RULES_VERSION,
        "licence": "Apache-2.0",
    });
    globals.print("version", &data, &format!("sentinel {version}"))
}
