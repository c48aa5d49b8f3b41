//! The figures as a page of Markdown.

use std::fmt::Write as _;

use super::Figures;

/// Renders the page. It is written by the command and by nobody else.
pub(super) fn render(figures: &Figures) -> String {
    let mut out = String::from(
        "# Guardrails, measured\n\nWritten by `cargo xtask bench guardrails`; do not edit. Misses are published like the rest.\n\n\
         ## Gates\n\n| goal | bound | measured | met |\n|---|---|---|---|\n",
    );
    for gate in &figures.gates {
        let met = if gate.met { "yes" } else { "**no**" };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {met} |",
            gate.goal, gate.bound, gate.measured
        );
    }
    leaks(&mut out, figures);
    clean(&mut out, figures);
    speed(&mut out, figures);
    external(&mut out, figures);
    out
}

fn leaks(out: &mut String, figures: &Figures) {
    let leaks = &figures.leaks;
    let ways: std::collections::BTreeSet<&String> =
        leaks.table.values().flat_map(|row| row.keys()).collect();
    let _ = writeln!(
        out,
        "\n## Leaks\n\nValues of which six characters or more were left, of those planted, by kind and by encoding class \
         or framing. 0 of n is written as `n`.\n"
    );
    let names: Vec<&str> = ways.iter().map(|w| w.as_str()).collect();
    let _ = writeln!(out, "| kind | {} |", names.join(" | "));
    let _ = writeln!(out, "|---{}|", "|---".repeat(names.len()));
    for (kind, row) in &leaks.table {
        let cells: Vec<String> = ways
            .iter()
            .map(|way| match row.get(*way) {
                None => String::new(),
                Some((0, all)) => all.to_string(),
                Some((leaked, all)) => format!("**{leaked}/{all}**"),
            })
            .collect();
        let _ = writeln!(out, "| `{kind}` | {} |", cells.join(" | "));
    }
    if !leaks.first.is_empty() {
        let _ = writeln!(out, "\nThe first leaks, to be drawn again:\n");
        for one in &leaks.first {
            let _ = writeln!(out, "- {one}");
        }
    }
}

fn clean(out: &mut String, figures: &Figures) {
    let clean = &figures.clean;
    let _ = writeln!(
        out,
        "\n## Clean logs\n\n{} identifiers that must survive, {} MB of generated logs of many systems.\n",
        clean.identifiers,
        clean.bytes / 1_000_000
    );
    if clean.destroyed.is_empty() && clean.found.is_empty() {
        let _ = writeln!(out, "Nothing was found and nothing was changed.");
    }
    for (class, count) in &clean.destroyed {
        let _ = writeln!(out, "- `{class}`: {count} changed");
    }
    for (kind, count) in &clean.found {
        let _ = writeln!(out, "- `{kind}`: {count} false finds");
    }
}

fn speed(out: &mut String, figures: &Figures) {
    let speed = &figures.speed;
    let _ = writeln!(
        out,
        "\n## Speed\n\nOne core, medians of five in one run. The ratios count; the rates are those of the machine.\n\n\
         | pass over clean logs | MB/s |\n|---|---|\n| redactor | {:.0} |\n| redactor, dense logs | {:.0} |\n\
         | search for line feeds (memchr) | {:.0} |\n| the same rules in one alternation (regex) | {:.1} |\n\
         | the same rules in one search (regex-automata) | {:.1} |\n| the same rules one by one (regex) | {:.1} |\n",
        speed.clean_mb_s,
        speed.dense_mb_s,
        speed.memchr_mb_s,
        speed.alternation_mb_s,
        speed.many_mb_s,
        speed.separate_mb_s
    );
    let clean_ns = 1e3 / speed.clean_mb_s;
    let _ = writeln!(
        out,
        "| text made to be slow | times a clean byte | work units a byte |\n|---|---|---|"
    );
    for one in &speed.adversaries {
        let _ = writeln!(
            out,
            "| {} | {:.1} | {:.1} |",
            one.name,
            one.ns_per_byte / clean_ns,
            one.work_per_byte
        );
    }
}

fn external(out: &mut String, figures: &Figures) {
    if figures.external.is_empty() {
        return;
    }
    let mode = match figures.mode {
        super::Mode::Telemetry => "telemetry",
        super::Mode::Prose => "prose",
    };
    let _ = writeln!(
        out,
        "\n## Sources of others\n\nRead as {mode}; prose files always as prose. Touched: something was removed or the \
         slot was abstracted.\n\n| source | attacks touched | benign rows touched | sentences removed | log lines touched | values found |\n\
         |---|---|---|---|---|---|"
    );
    let of = |part: usize, all: usize| {
        if all == 0 {
            String::new()
        } else {
            format!("{part} of {all}")
        }
    };
    for source in &figures.external {
        let entities: Vec<String> = source
            .entities
            .iter()
            .map(|(kind, (found, all))| format!("{kind} {found} of {all}"))
            .collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            source.name,
            of(source.attacks_touched, source.attacks),
            of(source.benign_touched, source.benign),
            of(source.sentences_removed, source.sentences),
            of(source.lines_touched, source.lines),
            entities.join(", ")
        );
    }
    let _ = writeln!(
        out,
        "\n| source | language | attacks touched |\n|---|---|---|"
    );
    for source in &figures.external {
        for (language, (all, hit)) in &source.languages {
            let _ = writeln!(out, "| {} | {language} | {} |", source.name, of(*hit, *all));
        }
    }
}
