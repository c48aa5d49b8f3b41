//! The one binary. Parses arguments, chooses a subcommand, and ends with its exit code; bodies are
//! in `daemon::cli` and `benchmark`.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod lab;

use std::process::ExitCode;

use args::{Action, Approval, Audit, Cli, Command, Decision, Incident, User};
use clap::Parser as _;
use daemon::cli::{self, Decide, ExportArgs, Globals, RedactArgs, ServeArgs, VerifyArgs, exit};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            let usage = e.use_stderr();
            let _ = e.print();
            return ExitCode::from(if usage { exit::USAGE } else { exit::DONE });
        }
    };
    let globals = Globals {
        json: cli.json,
        socket: cli.socket,
    };
    // Children come first: they sandbox themselves and may not find a runtime's threads running.
    match cli.command {
        Command::Infer { role, fault } => inference_child(&role, fault.as_deref()),
        Command::Worker => daemon::jobs::worker_main(),
        Command::Lab(command) => ExitCode::from(lab::run(command)),
        Command::Bench(command) => ExitCode::from(bench::run(command, cli.json)),
        command => match tokio_runtime() {
            Ok(runtime) => ExitCode::from(runtime.block_on(run(&globals, command))),
            Err(e) => {
                let _ = std::io::Write::write_fmt(
                    &mut std::io::stderr(),
                    format_args!("sentinel: cannot start threads: {e}\n"),
                );
                ExitCode::from(exit::INTERNAL)
            }
        },
    }
}

fn inference_child(role: &str, fault: Option<&str>) -> ExitCode {
    cli::infer(role, fault)
}

fn tokio_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
}

async fn run(globals: &Globals, command: Command) -> u8 {
    match command {
        Command::Serve(args) => cli::serve(globals, serve(args)).await,
        Command::Check { config, policy } => cli::check(globals, &config, policy.as_deref()),
        Command::Health => cli::health(globals).await,
        Command::Incident(Incident::List) => cli::incident_list(globals).await,
        Command::Incident(Incident::Show { id }) => cli::incident_show(globals, &id).await,
        Command::Incident(Incident::Postmortem { id }) => cli::postmortem(globals, &id).await,
        Command::Approval(Approval::List) => cli::approval_list(globals).await,
        Command::Approval(Approval::Show { id }) => cli::approval_show(globals, &id).await,
        Command::Approve(decision) => cli::approve(globals, decide(decision)).await,
        Command::Deny(decision) => cli::deny(globals, decide(decision)).await,
        Command::Action(Action::Show { id }) => cli::action_show(globals, &id).await,
        Command::Action(Action::Reconcile { decision, result }) => {
            cli::reconcile(globals, decide(decision), result == "succeeded").await
        }
        Command::Audit(Audit::Export {
            from,
            to,
            with_pii,
            out,
        }) => {
            cli::export(
                globals,
                ExportArgs {
                    from,
                    to,
                    with_pii,
                    out,
                },
            )
            .await
        }
        Command::Audit(Audit::Trust) => cli::trust(globals).await,
        Command::Audit(Audit::Verify {
            file,
            event,
            trust,
            since,
            config,
        }) => cli::verify(
            globals,
            &VerifyArgs {
                file,
                event,
                trust,
                since,
                config,
            },
        ),
        Command::User(User::Add { name, roles }) => cli::user_add(globals, &name, &roles).await,
        Command::Redact { check, key } => cli::redact(&RedactArgs {
            check,
            key,
            report: globals.json,
        }),
        Command::Explain { code } => cli::explain(globals, &code),
        Command::Version => cli::version(globals),
        Command::Infer { .. } | Command::Worker | Command::Lab(_) | Command::Bench(_) => {
            exit::USAGE
        }
    }
}

fn serve(args: args::Serve) -> ServeArgs {
    #[cfg(debug_assertions)]
    let (crash_at, engine_fault) = (args.crash_at, args.engine_fault);
    #[cfg(not(debug_assertions))]
    let (crash_at, engine_fault) = (None, None);
    ServeArgs {
        state_dir: args.state_dir,
        config: args.config,
        crash_at,
        engine_fault,
    }
}

fn decide(decision: Decision) -> Decide {
    Decide {
        id: decision.id,
        person: decision.person,
        reason: decision.reason,
        digest: decision.digest,
        target: decision.target,
        code_from_stdin: decision.code_stdin,
    }
}
