//! The command line as types. What is here works; there is nothing else.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Incident response for boxes that may never reach the internet.
#[derive(Debug, Parser)]
#[command(name = "sentinel", version, about, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Control socket of the daemon (a scratch run has it at STATE_DIR/run/control.sock).
    #[arg(long, global = true, default_value = "/run/sentinel/control.sock")]
    pub(crate) socket: PathBuf,
    /// Print one JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the daemon in a scratch folder.
    Serve(Serve),
    /// The engine child; started by `serve` alone.
    #[command(hide = true)]
    Infer {
        /// `chat`.
        #[arg(long)]
        role: String,
        /// Fault to inject; test builds only.
        #[arg(long)]
        fault: Option<String>,
    },
    /// A worker; started by `serve` alone.
    #[command(hide = true)]
    Worker,
    /// The small shop of real processes that breaks on demand.
    #[command(subcommand)]
    Lab(Lab),
    /// Measures a part of the program and says which goals it meets.
    #[command(subcommand)]
    Bench(Bench),
    /// Check a configuration and the policy beside it.
    Check {
        /// The configuration.
        #[arg(long, default_value = "/etc/sentinel/sentinel.toml")]
        config: PathBuf,
        /// The policy; policy.toml beside the configuration otherwise.
        #[arg(long)]
        policy: Option<PathBuf>,
    },
    /// Is the daemon well?
    Health,
    /// Incidents.
    #[command(subcommand)]
    Incident(Incident),
    /// What waits for a decision.
    #[command(subcommand)]
    Approval(Approval),
    /// Approve an action, exactly as shown.
    Approve(Decision),
    /// Deny an action, for good.
    Deny(Decision),
    /// Actions after the decision.
    #[command(subcommand)]
    Action(Action),
    /// The signed log.
    #[command(subcommand)]
    Audit(Audit),
    /// People of the console.
    #[command(subcommand)]
    User(User),
    /// Remove personal data and secrets from standard input.
    Redact {
        /// Write nothing; exit 1 when something would be redacted.
        #[arg(long)]
        check: bool,
        /// File with 32 bytes of key, so that tokens agree between runs.
        #[arg(long)]
        key: Option<PathBuf>,
    },
    /// Explain a code that was printed.
    Explain {
        /// For example SN-0102 or IL-24.
        code: String,
    },
    /// Print the version.
    Version,
}

/// `serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// State folder of a scratch run; made if it does not exist. It holds etc/sentinel.toml and
    /// etc/policy.toml.
    #[arg(long)]
    pub(crate) state_dir: PathBuf,
    /// Configuration, if not that of the folder.
    #[arg(long)]
    pub(crate) config: Option<PathBuf>,
    /// Die at this point.
    #[cfg(debug_assertions)]
    #[arg(long, hide = true)]
    pub(crate) crash_at: Option<String>,
    /// Fault of the engine child.
    #[cfg(debug_assertions)]
    #[arg(long, hide = true)]
    pub(crate) engine_fault: Option<String>,
}

/// Areas.
#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// The guardrails: leaks, false finds, destroyed identifiers, speed, removed instructions:
    /// `bench guardrails --external DIR --mode prose --json FILE`.
    Guardrails {
        /// Folder with one folder of rows and files for each source.
        #[arg(long)]
        external: Option<PathBuf>,
        /// How the rows of the sources are read.
        #[arg(long, default_value = "telemetry", value_parser = ["telemetry", "prose"])]
        mode: String,
        /// Write the page to this file.
        #[arg(long)]
        page: Option<PathBuf>,
        /// With `--json`: write the figures to this file, and what became of each row of the sources
        /// to rows.jsonl beside it.
        #[arg(requires = "json")]
        file: Option<PathBuf>,
        /// A hundredth of the draws, to see that it works.
        #[arg(long)]
        quick: bool,
    },
}

/// `lab`.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Make a lab in an empty folder and start it.
    Up {
        /// The folder.
        dir: PathBuf,
        /// Also write a ready scratch site for `serve --state-dir` into this folder.
        #[arg(long)]
        site: Option<PathBuf>,
        /// Address of the site's console and API.
        #[arg(long, default_value = "127.0.0.1:8470")]
        listen: String,
        /// Address of the site's metrics page.
        #[arg(long, default_value = "127.0.0.1:9470")]
        metrics_listen: String,
        /// Model file of the site.
        #[arg(long, requires = "sha256")]
        model: Option<PathBuf>,
        /// SHA-256 of the model file.
        #[arg(long)]
        sha256: Option<String>,
    },
    /// Break it: bad-deploy, pool-exhausted, dependency-down, disk-full, healthy-noise.
    Fault {
        /// The fault.
        name: String,
        /// The lab's folder.
        dir: PathBuf,
    },
    /// Put everything back.
    Heal {
        /// The lab's folder.
        dir: PathBuf,
    },
    /// What runs and how well.
    Status {
        /// The lab's folder.
        dir: PathBuf,
    },
    /// Restart a service.
    Restart {
        /// The service.
        name: String,
        /// The lab's folder.
        dir: PathBuf,
    },
    /// End it.
    Down {
        /// The lab's folder.
        dir: PathBuf,
    },
    /// The supervisor; started by `lab up` alone.
    #[command(hide = true)]
    Supervise {
        /// The lab's folder.
        dir: PathBuf,
    },
}

/// `incident`.
#[derive(Debug, Subcommand)]
pub(crate) enum Incident {
    /// List the newest.
    List,
    /// Show one: facts, hypotheses, proposal, timeline.
    Show {
        /// The incident.
        id: String,
    },
    /// Print the postmortem of a closed one.
    Postmortem {
        /// The incident.
        id: String,
    },
}

/// `approval`.
#[derive(Debug, Subcommand)]
pub(crate) enum Approval {
    /// List what waits.
    List,
    /// Show every parameter of one.
    Show {
        /// The action.
        id: String,
    },
}

/// `approve`, `deny`.
#[derive(Debug, Args)]
pub(crate) struct Decision {
    /// The action.
    pub(crate) id: String,
    /// Who decides, as the policy names them, for example local:alice.
    #[arg(long = "as")]
    pub(crate) person: String,
    /// Why.
    #[arg(long, default_value = "")]
    pub(crate) reason: String,
    /// Refuse unless this is the digest.
    #[arg(long)]
    pub(crate) digest: Option<String>,
    /// Name of the target, instead of typing it.
    #[arg(long)]
    pub(crate) target: Option<String>,
    /// Read the authenticator's code from standard input.
    #[arg(long)]
    pub(crate) code_stdin: bool,
}

/// `action`.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Show one.
    Show {
        /// The action.
        id: String,
    },
    /// Say what an action in doubt has done.
    Reconcile {
        /// The decision.
        #[command(flatten)]
        decision: Decision,
        /// `succeeded` or `failed`.
        #[arg(long, value_parser = ["succeeded", "failed"])]
        result: String,
    },
}

/// `audit`.
#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Write a bundle that anyone can verify offline.
    Export {
        /// First index.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// First index after the range.
        #[arg(long)]
        to: Option<u64>,
        /// Include names and reasons.
        #[arg(long)]
        with_pii: bool,
        /// File to write; standard output otherwise.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Print the trust file of this box's log.
    Trust,
    /// Verify a bundle, or a proof with its event. Needs no daemon.
    Verify {
        /// Bundle or proof.
        file: PathBuf,
        /// Event, with a proof.
        event: Option<PathBuf>,
        /// Trust file.
        #[arg(long)]
        trust: Option<PathBuf>,
        /// An older signed head that must still be contained.
        #[arg(long)]
        since: Option<PathBuf>,
        /// Configuration that may name a trust file.
        #[arg(long)]
        config: Option<PathBuf>,
    },
}

/// `user`.
#[derive(Debug, Subcommand)]
pub(crate) enum User {
    /// Add a person; the password comes from standard input.
    Add {
        /// Account name.
        name: String,
        /// Roles: viewer, responder, approver, auditor, admin.
        #[arg(long, value_delimiter = ',', default_value = "viewer")]
        roles: Vec<String>,
    },
}
