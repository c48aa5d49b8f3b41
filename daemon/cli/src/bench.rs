//! `bench`: prints what `benchmark` measured.
#![allow(clippy::print_stderr, reason = "the command line prints")]

use benchmark::guardrails::{self, Mode, Options};
use daemon::cli::{self, exit};
use serde_json::json;

use crate::args::Bench;

/// Runs one area. A missed gate is a figure and no failure of the command.
pub(crate) fn run(command: Bench, as_json: bool) -> u8 {
    let Bench::Guardrails {
        external,
        mode,
        page,
        file,
        quick,
    } = command;
    let shown = as_json && file.is_none();
    let options = Options {
        external,
        mode: if mode == "prose" {
            Mode::Prose
        } else {
            Mode::Telemetry
        },
        rows: file.as_ref().map(|f| f.with_file_name("rows.jsonl")),
        json: file,
        page,
        quick,
    };
    match guardrails::run(&options) {
        Ok(figures) => {
            if shown {
                let answer = json!({ "v": 1, "command": "bench", "data": figures, "problems": [] });
                cli::say(&answer.to_string());
            } else {
                for gate in &figures.gates {
                    let met = if gate.met { "met   " } else { "MISSED" };
                    cli::say(&format!(
                        "{met} {}: {} ({})",
                        gate.goal, gate.measured, gate.bound
                    ));
                }
            }
            exit::DONE
        }
        Err(e) => {
            eprintln!("sentinel: bench: {e:#}");
            exit::FAILED
        }
    }
}
