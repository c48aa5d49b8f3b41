//! `cargo xtask test`: everything CI runs, one part after the other, with one sum at the end.

mod kernels;
mod tally;

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Result, bail};

use crate::place::Place;
use crate::{model, run, setup};
use tally::Tally;

/// One part of the run.
pub(crate) struct Part {
    /// Name for `--only`.
    pub(crate) name: &'static str,
    /// What it does, a fragment.
    pub(crate) summary: &'static str,
    run: fn(&Context<'_>) -> Result<Tally>,
}

/// What the parts share.
struct Context<'a> {
    place: &'a Place,
    nextest: bool,
    model: std::path::PathBuf,
}

/// Every part, cheapest first.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "fmt",
        summary: "formatting of all sources",
        run: |c| single(c.place.cargo().args(["fmt", "--all", "--check"])),
    },
    Part {
        name: "tidy",
        summary: "house rules that no lint can say",
        run: |c| tests(c.place.cargo().args(["test", "--package", "xtask"])),
    },
    Part {
        name: "clippy",
        summary: "lints of all targets, warnings are errors",
        run: |c| {
            single(
                c.place
                    .cargo()
                    .args(["clippy", "--workspace", "--all-targets", "--quiet"])
                    .args(["--", "--deny", "warnings"]),
            )
        },
    },
    Part {
        name: "fast",
        summary: "tests of all crates that need no real time",
        run: fast,
    },
    Part {
        name: "doc",
        summary: "examples in documentation, those that must not compile among them",
        run: |c| {
            tests(with_model(
                c,
                c.place
                    .cargo()
                    .args(["test", "--workspace", "--doc", "--quiet"]),
            ))
        },
    },
    Part {
        name: "build",
        summary: "how llama.cpp was built: flags, and vector instructions in its kernels",
        run: |c| kernels::check(c.place),
    },
    Part {
        name: "slow",
        summary: "tests with real processes in real time: engine, lab, whole system",
        run: slow,
    },
    Part {
        name: "demo",
        summary: "every fault of the lab from its alert to its end",
        run: |c| {
            let (passed, failed) = crate::demo::every_fault(c.place)?;
            Ok(Tally { passed, failed })
        },
    },
];

/// Runs the parts that `args` choose.
pub(crate) fn main(place: &Place, args: &[String]) -> Result<ExitCode> {
    let chosen = choose(args)?;
    setup::prerequisites()?;
    let context = Context {
        place,
        nextest: setup::has_nextest(),
        model: model::ensure(place)?,
    };
    let mut sum = Tally::default();
    let mut lines = Vec::new();
    for part in chosen {
        println!("\n== {}: {}", part.name, part.summary);
        let start = Instant::now();
        let tally = (part.run)(&context).unwrap_or_else(|e| {
            eprintln!("error: {e:#}");
            Tally::of(false)
        });
        lines.push(format!(
            "  {:<9}{:>5} passed, {:>3} failed  {:>6.1} s",
            part.name,
            tally.passed,
            tally.failed,
            start.elapsed().as_secs_f64()
        ));
        sum.add(&tally);
    }
    println!(
        "\n{}\n{} passed, {} failed",
        lines.join("\n"),
        sum.passed,
        sum.failed
    );
    Ok(if sum.failed == 0 && sum.passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn choose(args: &[String]) -> Result<Vec<&'static Part>> {
    let list = match args {
        [] => return Ok(PARTS.iter().collect()),
        [flag, list] if flag == "--only" => list.as_str(),
        [flag] if flag.starts_with("--only=") => flag.trim_start_matches("--only="),
        _ => bail!("usage: cargo xtask test [--only PART,PART]"),
    };
    let names: Vec<&str> = list.split(',').collect();
    for name in &names {
        if !PARTS.iter().any(|p| p.name == *name) {
            let known: Vec<&str> = PARTS.iter().map(|p| p.name).collect();
            bail!(
                "there is no part `{name}`; the parts are {}",
                known.join(", ")
            );
        }
    }
    Ok(PARTS.iter().filter(|p| names.contains(&p.name)).collect())
}

/// A step that counts as one check.
fn single(command: &mut Command) -> Result<Tally> {
    Ok(Tally::of(run::watched(command)?.0.success()))
}

/// A step that counts its tests itself.
fn tests(command: &mut Command) -> Result<Tally> {
    let (status, output) = run::watched(command)?;
    Ok(Tally::read(status.success(), &output))
}

fn with_model<'c>(c: &Context<'_>, command: &'c mut Command) -> &'c mut Command {
    command.env("SENTINEL_TEST_MODEL", &c.model)
}

fn fast(c: &Context<'_>) -> Result<Tally> {
    let mut cargo = c.place.cargo();
    if c.nextest {
        cargo.args(["nextest", "run", "--workspace", "--cargo-quiet"]);
    } else {
        cargo.args(["test", "--workspace", "--all-targets", "--no-fail-fast"]);
    }
    tests(with_model(c, &mut cargo))
}

fn slow(c: &Context<'_>) -> Result<Tally> {
    if !c.nextest {
        println!("`cargo test` ran the slow tests with the fast ones");
        return Ok(Tally::default());
    }
    let mut cargo = c.place.cargo();
    cargo.args([
        "nextest",
        "run",
        "--workspace",
        "--cargo-quiet",
        "--profile",
        "slow",
    ]);
    tests(with_model(c, &mut cargo))
}

#[cfg(test)]
mod tests {
    use super::choose;

    fn names(args: &[&str]) -> Option<Vec<&'static str>> {
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        choose(&args)
            .ok()
            .map(|p| p.iter().map(|p| p.name).collect())
    }

    #[test]
    fn parts_run_in_table_order_however_they_are_named() {
        assert_eq!(
            names(&["--only", "clippy,fmt"]),
            Some(vec!["fmt", "clippy"])
        );
    }

    #[test]
    fn an_unknown_part_is_refused() {
        assert_eq!(names(&["--only", "fmt,frobnicate"]), None);
    }
}
