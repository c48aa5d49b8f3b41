//! `incident list | show | postmortem`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Globals, exit, items, text_of};
use policies::model::Millis;

/// `sentinel incident list`.
pub async fn incident_list(globals: &Globals) -> u8 {
    const COMMAND: &str = "incident list";
    let data = match globals.client().get_json("/v1/incidents").await {
        Ok(data) => data,
        Err(e) => return globals.client_failed(COMMAND, &e),
    };
    let mut text = String::new();
    for row in items(&data, "/items") {
        let state = match text_of(row, "/outcome") {
            outcome if outcome.is_empty() => text_of(row, "/phase"),
            outcome => outcome,
        };
        let _ = writeln!(
            text,
            "{}  {}  {:<17} {:<8} {:<12} {} ({})",
            text_of(row, "/id"),
            time(row, "/opened_at"),
            state,
            text_of(row, "/severity"),
            text_of(row, "/service"),
            text_of(row, "/title"),
            text_of(row, "/cause_class"),
        );
    }
    if text.is_empty() {
        text.push_str("No incidents.");
    }
    globals.print(COMMAND, &data, &text)
}

fn time(value: &Value, path: &str) -> String {
    value
        .pointer(path)
        .and_then(Value::as_i64)
        .map_or_else(|| "-".to_owned(), |ms| Millis(ms).rfc3339())
}

/// `sentinel incident show ID`.
pub async fn incident_show(globals: &Globals, id: &str) -> u8 {
    const COMMAND: &str = "incident show";
    let data = match globals
        .client()
        .get_json(&format!("/v1/incidents/{}", path_part(id)))
        .await
    {
        Ok(data) => data,
        Err(e) => return globals.client_failed(COMMAND, &e),
    };
    let text = shown(&data);
    globals.print(COMMAND, &data, &text)
}

/// Only characters of ids reach a request line.
pub(super) fn path_part(id: &str) -> String {
    id.chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        .collect()
}

fn shown(data: &Value) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} {}",
        text_of(data, "/incident/id"),
        text_of(data, "/incident/title")
    );
    for (label, path) in [
        ("phase", "/record/phase"),
        ("outcome", "/record/outcome"),
        ("cause", "/record/cause_class"),
        ("onset", "/record/diagnosis/onset/signal"),
        ("action", "/record/proposal/class"),
        ("target", "/record/proposal/target"),
        ("change", "/record/proposal/change"),
        ("guard", "/record/action/state"),
        ("job", "/record/job/outcome"),
        ("recovered", "/record/verification/recovered"),
        ("model", "/record/model/name"),
        ("no model", "/record/model/unavailable"),
        ("summary", "/record/model/summary"),
    ] {
        let text = text_of(data, path);
        if !text.is_empty() {
            let _ = writeln!(out, "  {label:<10} {text}");
        }
    }
    section(&mut out, data, "Facts", "/record/diagnosis/facts", |f| {
        text_of(f, "/text")
    });
    section(
        &mut out,
        data,
        "Hypotheses",
        "/record/diagnosis/hypotheses",
        hypothesis,
    );
    section(&mut out, data, "Interlocks", "/record/clearances", |c| {
        format!(
            "cleared {} {}",
            text_of(c, "/cleared"),
            text_of(c, "/reasons")
        )
    });
    section(&mut out, data, "Evidence", "/record/calls", |c| {
        format!(
            "E{} {} on {}: {}",
            text_of(c, "/id"),
            text_of(c, "/tool"),
            text_of(c, "/source"),
            text_of(c, "/state")
        )
    });
    section(&mut out, data, "Timeline", "/record/timeline", |t| {
        format!(
            "{} {}: {}",
            time(t, "/at"),
            text_of(t, "/kind"),
            text_of(t, "/text")
        )
    });
    out
}

fn hypothesis(h: &Value) -> String {
    let rejected = text_of(h, "/rejected");
    let end = if rejected.is_empty() {
        String::new()
    } else {
        format!(" (rejected: {rejected})")
    };
    format!(
        "{} {} of {}, score {}: {}{end}",
        text_of(h, "/id"),
        text_of(h, "/cause_class"),
        text_of(h, "/service"),
        text_of(h, "/score"),
        text_of(h, "/explanation")
    )
}

fn section(
    out: &mut String,
    data: &Value,
    title: &str,
    path: &str,
    line: impl Fn(&Value) -> String,
) {
    let mut first = true;
    for item in items(data, path) {
        if first {
            let _ = writeln!(out, "{title}:");
            first = false;
        }
        let _ = writeln!(out, "  {}", line(item));
    }
}

/// `sentinel incident postmortem ID`.
pub async fn postmortem(globals: &Globals, id: &str) -> u8 {
    const COMMAND: &str = "incident postmortem";
    match globals
        .client()
        .get_json(&format!("/v1/incidents/{}/postmortem", path_part(id)))
        .await
    {
        Ok(data) => {
            let markdown = data
                .pointer("/markdown")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let body = data.pointer("/json").cloned().unwrap_or(json!(null));
            if globals.json {
                globals.print(COMMAND, &body, "")
            } else {
                super::say(markdown.trim_end());
                exit::DONE
            }
        }
        Err(e) => globals.client_failed(COMMAND, &e),
    }
}
