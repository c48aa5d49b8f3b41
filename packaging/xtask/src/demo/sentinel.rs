//! The built binary, run as a person would run it, with a limit on its time.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The binary and the socket of the site.
pub(super) struct Sentinel {
    /// The executable.
    pub(super) exe: PathBuf,
    /// Control socket of the site.
    pub(super) socket: PathBuf,
}

impl Sentinel {
    /// Runs a subcommand that asks the daemon, and gives back `data` of its answer.
    pub(super) fn ask(&self, args: &[&str]) -> Result<Value> {
        self.ask_with(args, "")
    }

    /// The same, with a text on its standard input.
    pub(super) fn ask_with(&self, args: &[&str], input: &str) -> Result<Value> {
        let socket = self.socket.to_string_lossy();
        let mut all = args.to_vec();
        all.extend(["--socket", &socket, "--json"]);
        data(&self.run(&all, input, Duration::from_secs(60))?)
    }

    /// Runs a subcommand of the lab and gives back `data` of its answer.
    pub(super) fn lab(&self, args: &[&str]) -> Result<Value> {
        let mut all = vec!["lab"];
        all.extend(args);
        all.push("--json");
        data(&self.run(&all, "", Duration::from_secs(60))?)
    }

    /// What `args` print, if they succeed in time.
    pub(super) fn run(&self, args: &[&str], input: &str, limit: Duration) -> Result<String> {
        run(&self.exe, args, input, limit)
    }
}

fn data(text: &str) -> Result<Value> {
    let answer: Value =
        serde_json::from_str(text).with_context(|| format!("no JSON object: {text}"))?;
    answer
        .get("data")
        .cloned()
        .with_context(|| format!("no member `data`: {text}"))
}

fn run(exe: &Path, args: &[&str], input: &str, limit: Duration) -> Result<String> {
    let text = format!("sentinel {}", args.join(" "));
    let mut child = Command::new(exe)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{text}` cannot be started"))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A child that ended early says why itself.
        let _ = pipe.write_all(input.as_bytes());
    }
    let out = child.stdout.take();
    let err = child.stderr.take();
    let read = |from: Option<Box<dyn Read + Send>>| {
        let mut text = Vec::new();
        if let Some(mut from) = from {
            let _ = from.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    let out = std::thread::spawn(move || read(out.map(|o| Box::new(o) as _)));
    let err = std::thread::spawn(move || read(err.map(|e| Box::new(e) as _)));
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            bail!("`{text}` has not ended after {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let out = out.join().unwrap_or_default();
    let err = err.join().unwrap_or_default();
    if !status.success() {
        bail!("`{text}` ended with {status}: {}", err.trim());
    }
    Ok(out)
}
