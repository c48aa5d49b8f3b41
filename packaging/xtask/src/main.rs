//! `cargo xtask`: sets up a machine, runs everything that CI runs, and drives the demo.
//!
//! It owns no rule of the product and links none of its crates: it does what a developer could do
//! by hand, in one command. It must stay small enough to compile in seconds.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what a command-line tool is for"
)]

mod bench;
mod demo;
mod model;
mod place;
mod run;
mod setup;
mod test;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  setup                 check for what a build needs, install what is missing, fetch the test model
  test [--only PARTS]   everything CI runs; PARTS is a list such as `fmt,clippy`
  bench AREA [ARGUMENTS]
                        measure a part (guardrails) and write docs/benchmarks/AREA.md;
                        further arguments go to `sentinel bench AREA`
  demo [--fault NAME] [--yes] [--json]
                        break a small shop for real and lead the incident to its end;
                        with --yes the second person decides by the console's own forms
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<ExitCode> {
    let place = place::Place::find()?;
    let Some((command, rest)) = args.split_first() else {
        bail!("a command is missing\n\n{USAGE}");
    };
    match command.as_str() {
        "setup" => {
            if let Some(extra) = rest.first() {
                bail!("`setup` takes no argument, but got `{extra}`");
            }
            setup::prerequisites()?;
            model::ensure(&place)?;
            Ok(ExitCode::SUCCESS)
        }
        "test" => test::main(&place, rest),
        "bench" => bench::main(&place, rest),
        "demo" => demo::main(&place, rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}\nParts of `test`, in the order they run:\n");
            for part in test::PARTS {
                println!("  {:<9}{}", part.name, part.summary);
            }
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("there is no command `{other}`\n\n{USAGE}"),
    }
}
