//! `serve`, `health`, `user add`.

use std::path::PathBuf;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{Globals, approvals, exit, text_of};
use crate::assemble::{self, Error, Options};

/// What `serve` is told.
#[derive(Clone, Debug)]
pub struct ServeArgs {
    /// The scratch folder.
    pub state_dir: PathBuf,
    /// Configuration, if not that of the folder.
    pub config: Option<PathBuf>,
    /// Point at which to die; test builds only.
    pub crash_at: Option<String>,
    /// Fault of the engine child; test builds only.
    pub engine_fault: Option<String>,
}

/// `sentinel serve`: runs until SIGTERM or SIGINT.
pub async fn serve(globals: &Globals, args: ServeArgs) -> u8 {
    #[cfg(debug_assertions)]
    if let Some(point) = &args.crash_at
        && let Err(why) = crate::failpoint::arm(point)
    {
        return globals.fail("serve", "SN-0202", &why, exit::USAGE);
    }
    let options = Options {
        state_dir: args.state_dir,
        config: args.config,
        engine_fault: args.engine_fault,
    };
    let running = match assemble::start(options).await {
        Ok(running) => running,
        Err(Error::Config(problems)) => {
            for problem in problems {
                eprintln!("{}", crate::console::text::show_block(&problem.to_string()));
            }
            return exit::CONFIG;
        }
        Err(e) => return refused(globals, &e),
    };
    let (Ok(mut term), Ok(mut int)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) else {
        return globals.fail(
            "serve",
            "SN-0206",
            "no signal handler can be set",
            exit::INTERNAL,
        );
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    tracing::info!("stopping");
    running.stop();
    exit::DONE
}

fn refused(globals: &Globals, error: &Error) -> u8 {
    let mut detail = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(e) = source {
        detail = format!("{detail}: {e}");
        source = e.source();
    }
    let (code, status) = match error {
        Error::NotScratch(_) | Error::Config(_) => ("SN-0208", exit::CONFIG),
        Error::Store(store::sentinel::Error::Newer { .. }) => ("SN-0209", exit::NEWER),
        Error::Locked { .. } => ("SN-0210", exit::FAILED),
        Error::Key(_) => ("SN-0211", exit::FAILED),
        Error::Guard(_) => ("SN-0212", exit::CONFIG),
        Error::Missing(_) => ("SN-0214", exit::FAILED),
        Error::Io { .. }
        | Error::Store(_)
        | Error::Logins(_)
        | Error::Identity(_)
        | Error::Jobs(_)
        | Error::Conductor(_)
        | Error::Other(_) => ("SN-0213", exit::FAILED),
    };
    globals.fail("serve", code, &detail, status)
}

/// `sentinel health`.
pub async fn health(globals: &Globals) -> u8 {
    match globals.client().get_json("/v1/health").await {
        Ok(data) => {
            let status = text_of(&data, "/status");
            globals.print("health", &data, &status);
            if status == "not_ready" {
                exit::FAILED
            } else {
                exit::DONE
            }
        }
        Err(e) => globals.client_failed("health", &e),
    }
}

/// `sentinel user add NAME`: the password is asked for on a terminal, twice and without showing it,
/// and read from standard input otherwise.
pub async fn user_add(globals: &Globals, name: &str, roles: &[String]) -> u8 {
    const COMMAND: &str = "user add";
    let password = match approvals::new_password(name) {
        Ok(password) => password,
        Err(why) => return globals.fail(COMMAND, "SN-0202", why, exit::USAGE),
    };
    let body = json!({ "name": name, "password": password, "roles": roles });
    match globals.client().post_json("/v1/users", &body).await {
        Ok(data) => {
            let text = format!(
                "{name} was added. Enter this secret in an authenticator app:\n  {}\n  {}",
                text_of(&data, "/totp_secret"),
                text_of(&data, "/totp_url")
            );
            globals.print(COMMAND, &data, &text)
        }
        Err(e) => globals.client_failed(COMMAND, &e),
    }
}
