//! `cargo xtask bench`: runs `sentinel bench` of an area and has it write the page of the area.

use std::process::{Command, ExitCode};

use anyhow::{Result, bail};

use crate::place::Place;
use crate::{run, setup};

/// Areas that can be measured.
const AREAS: &[&str] = &["guardrails"];

/// Measures an area. A missed goal stands on the page and is no failure.
pub(crate) fn main(place: &Place, args: &[String]) -> Result<ExitCode> {
    let Some((area, rest)) = args.split_first() else {
        bail!("an area is missing; the areas are {}", AREAS.join(", "));
    };
    if !AREAS.contains(&area.as_str()) {
        bail!(
            "there is no area `{area}`; the areas are {}",
            AREAS.join(", ")
        );
    }
    setup::prerequisites()?;
    let exe = place.sentinel()?;
    let pages = place.root.join("docs/benchmarks");
    std::fs::create_dir_all(&pages)?;
    run::shown(
        Command::new(exe)
            .args(["bench", area])
            .args(rest)
            .arg("--page")
            .arg(pages.join(format!("{area}.md"))),
    )?;
    Ok(ExitCode::SUCCESS)
}
