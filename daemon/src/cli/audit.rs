//! `audit export | trust | verify`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use policies::audit::verify::{
    Outcome, Request, Rule, TrustInput, Verdict, verify as verify_request,
};
use serde_json::json;

use super::{Globals, exit, say};

/// What `audit export` is told.
#[derive(Clone, Debug)]
pub struct ExportArgs {
    /// First index.
    pub from: u64,
    /// First index after; the head when absent.
    pub to: Option<u64>,
    /// Include names and reasons.
    pub with_pii: bool,
    /// Where to write; standard output when absent.
    pub out: Option<PathBuf>,
}

/// `sentinel audit export`.
pub async fn export(globals: &Globals, args: ExportArgs) -> u8 {
    const COMMAND: &str = "audit export";
    let mut target = format!(
        "/v1/audit/export?from={}&with_pii={}",
        args.from, args.with_pii
    );
    if let Some(to) = args.to {
        let _ = write!(target, "&to={to}");
    }
    let bundle = match globals.client().get(&target).await {
        Ok(bundle) => bundle,
        Err(e) => return globals.client_failed(COMMAND, &e),
    };
    let Some(out) = args.out else {
        say(bundle.trim_end_matches('\n'));
        return exit::DONE;
    };
    match write_whole(&out, bundle.as_bytes()) {
        Ok(()) => {
            let data = json!({ "bundle": out, "bytes": bundle.len() });
            globals.print(COMMAND, &data, &format!("{}", out.display()))
        }
        Err(e) => globals.fail(
            COMMAND,
            "SN-0204",
            &format!("cannot write `{}`: {e}", out.display()),
            exit::IO,
        ),
    }
}

/// Under another name first, so that no half of a file is left.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    std::fs::write(&part, bytes)?;
    std::fs::File::open(&part)?.sync_all()?;
    std::fs::rename(&part, path)
}

/// `sentinel audit trust`: the trust file of the box's own log.
pub async fn trust(globals: &Globals) -> u8 {
    match globals.client().get("/v1/audit/trust").await {
        Ok(text) => {
            say(text.trim_end());
            exit::DONE
        }
        Err(e) => globals.client_failed("audit trust", &e),
    }
}

/// What `audit verify` is told.
#[derive(Clone, Debug)]
pub struct VerifyArgs {
    /// Bundle or proof.
    pub file: PathBuf,
    /// Event, with a proof.
    pub event: Option<PathBuf>,
    /// Trust file.
    pub trust: Option<PathBuf>,
    /// An older signed head.
    pub since: Option<PathBuf>,
    /// Configuration that may name a trust file.
    pub config: Option<PathBuf>,
}

/// `sentinel audit verify`: offline, with the frozen exit codes of audit-bundle.md 6.
pub fn verify(globals: &Globals, args: &VerifyArgs) -> u8 {
    let chosen = args
        .trust
        .clone()
        .or_else(|| configured_trust(args))
        .or_else(|| {
            let run = PathBuf::from("/run/sentinel/guard-trust.json");
            run.exists().then_some(run)
        });
    let read = |path: &PathBuf| std::fs::read(path).ok();
    let file = read(&args.file);
    let event = args.event.as_ref().map(read);
    let since = args.since.as_ref().map(read);
    let trust = chosen.as_ref().map(read);
    let verdict = verify_request(&Request {
        file: file.as_deref(),
        event: event.as_ref().map(Option::as_deref),
        since: since.as_ref().map(Option::as_deref),
        trust: match &trust {
            None => TrustInput::None,
            Some(bytes) => TrustInput::File(bytes.as_deref()),
        },
    });
    let path = chosen.as_ref().map(|p| p.display().to_string());
    if let Some(path) = &path {
        eprintln!("trust: {path}");
    }
    if globals.json {
        say(&verdict.to_json(path.as_deref()).to_string());
    } else {
        say(&verdict.to_line());
        eprintln!("sentinel: {}", in_words(&verdict));
    }
    verdict.exit()
}

/// The verdict as a sentence; the line on standard output is for programs.
fn in_words(verdict: &Verdict) -> String {
    let rule = verdict.rule.map_or("", Rule::as_str);
    match (verdict.outcome, rule) {
        (Outcome::Valid, _) => {
            let size = verdict.size.unwrap_or(0);
            format!(
                "the log is whole and signed by a key of the trust file; its head has {size} entries"
            )
        }
        (Outcome::Input, "no_trust") => {
            "no trust file was given or found; give one with --trust".to_owned()
        }
        (Outcome::Input, "trust_file") => {
            "the trust file cannot be read, or is no trust file".to_owned()
        }
        (Outcome::Input, _) => {
            format!("a file cannot be read or is not what it should be (rule `{rule}`)")
        }
        (Outcome::Untrusted, _) => {
            format!("the log is whole, but its signer is not trusted (rule `{rule}`)")
        }
        (Outcome::Invalid, _) => {
            format!("the log was changed, cut or put together (rule `{rule}`)")
        }
    }
}

fn configured_trust(args: &VerifyArgs) -> Option<PathBuf> {
    let config = args
        .config
        .clone()
        .unwrap_or_else(|| PathBuf::from("/etc/sentinel/sentinel.toml"));
    crate::config::load(&config).config?.trust_file
}
