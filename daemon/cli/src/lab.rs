//! `lab`: prints what `benchmark::lab` answers.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the command line prints"
)]

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use benchmark::lab::{self, LabSite, ModelFile, Person, UpOptions};
use daemon::cli::{self, exit};
use serde_json::{Value, json};

use crate::args::Lab;

/// Runs one subcommand.
pub(crate) fn run(command: Lab) -> u8 {
    match body(command) {
        Ok(Some(value)) => {
            let answer = json!({ "v": 1, "command": "lab", "data": value, "problems": [] });
            cli::say(&answer.to_string());
            exit::DONE
        }
        Ok(None) => exit::DONE,
        Err(e) => {
            eprintln!("sentinel: lab: {e:#}");
            exit::FAILED
        }
    }
}

fn body(command: Lab) -> anyhow::Result<Option<Value>> {
    Ok(match command {
        Lab::Up {
            dir,
            site,
            listen,
            metrics_listen,
            model,
            sha256,
        } => {
            let model = model.zip(sha256).map(|(file, sha256)| ModelFile {
                file,
                sha256,
                n_ctx: 4096,
            });
            Some(up(&dir, site, &listen, &metrics_listen, model)?)
        }
        Lab::Fault { name, dir } => Some(lab::fault(&dir, &name)?),
        Lab::Heal { dir } => Some(lab::heal(&dir)?),
        Lab::Status { dir } => Some(lab::status(&dir)?),
        Lab::Restart { name, dir } => {
            lab::restart(&dir, &name)?;
            None
        }
        Lab::Down { dir } => Some(lab::down(&dir)?),
        Lab::Supervise { dir } => {
            lab::supervise(&dir)?;
            None
        }
    })
}

fn up(
    dir: &Path,
    site: Option<PathBuf>,
    listen: &str,
    metrics_listen: &str,
    model: Option<ModelFile>,
) -> anyhow::Result<Value> {
    let exe = std::env::current_exe().context("cannot find the program's own file")?;
    let Some(site) = site else {
        return Ok(serde_json::to_value(lab::up(
            dir,
            &UpOptions::default(),
            &exe,
        )?)?);
    };
    let etc = site.join("etc");
    std::fs::create_dir_all(&etc).with_context(|| format!("cannot make `{}`", etc.display()))?;
    let etc = etc.canonicalize()?;
    let credential = etc.join("intake-token");
    let mut token = [0_u8; 32];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut token)?;
    let text: String = token.iter().map(|b| format!("{b:02x}")).collect();
    std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&credential)
        .and_then(|mut f| f.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write `{}`", credential.display()))?;
    let options = UpOptions {
        intake_url: Some(format!("http://{listen}/v1/intake/alertmanager")),
        credential: Some(credential.clone()),
    };
    let state = lab::up(dir, &options, &exe)?;
    let person = |name: &str| Person {
        id: name.to_owned(),
        subjects: vec![format!("local:{name}")],
        groups: vec!["oncall".to_owned()],
    };
    LabSite {
        lab: dir.canonicalize()?,
        ports: state.ports.clone(),
        listen: listen.to_owned(),
        metrics_listen: metrics_listen.to_owned(),
        credential,
        persons: vec![person("alice"), person("bob")],
        model,
    }
    .write_site(&etc)?;
    Ok(serde_json::to_value(state)?)
}
