//! `units`: what the supervisor of units says happened.

use std::time::Duration;

use policies::model::{Payload, UnitEvent};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Failure, Input, Output, Run, SourceSpec, Tool, check, inside, lines, wanted, wrong_source,
};
use crate::jobs::Grants;

const MAX_READ: u64 = 8 << 20;
const MAX_EVENTS: usize = 2_000;

pub(super) const TOOL: Tool = Tool {
    name: "units",
    summary: "Answers starts, stops, kills and changes of state of service units.",
    source: "units",
    schema,
    check: check::<Args>,
    timeout: Duration::from_secs(10),
    max_output: 2 << 20,
    run: Run::Worker { grants, body },
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    services: Vec<String>,
}

fn schema() -> Value {
    json!({
        "type": "object", "additionalProperties": false,
        "properties": {"services": {"type": "array", "items": {"type": "string"}, "maxItems": 64,
            "description": "only these services; all when absent"}},
        "examples": [{}, {"services": ["checkout"]}],
    })
}

fn grants(source: &SourceSpec) -> Grants {
    match source {
        SourceSpec::Units { path } => Grants {
            read: vec![path.clone()],
            write: vec![],
        },
        _ => Grants::default(),
    }
}

fn body(input: &Input<'_>) -> Result<Output, Failure> {
    let args: Args = input.args()?;
    let SourceSpec::Units { path } = input.source else {
        return Err(wrong_source(input, "units"));
    };
    let (text, cut) = lines::read_tail(path, MAX_READ)?;
    let mut malformed = 0_usize;
    let mut events: Vec<UnitEvent> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str::<UnitEvent>(line) {
            Ok(event)
                if inside(input.window, event.at) && wanted(&args.services, &event.service) =>
            {
                events.push(event);
            }
            Ok(_) => {}
            Err(_) => malformed += 1,
        }
    }
    events.sort_by_key(|event| event.at);
    let mut partial = Vec::new();
    if events.len() > MAX_EVENTS {
        let left_out = events.len() - MAX_EVENTS;
        events.drain(..left_out);
        partial.push(format!("{left_out} earlier events left out"));
    }
    if cut {
        partial.push(format!("only the last {MAX_READ} bytes were read"));
    }
    if malformed > 0 {
        partial.push(format!("{malformed} malformed lines skipped"));
    }
    Ok(Output {
        payload: Payload::Units { events },
        partial,
    })
}

#[cfg(test)]
mod tests {
    use policies::model::{Millis, Window};

    use super::*;

    #[test]
    fn events_of_the_window_are_answered_and_a_broken_line_makes_it_partial() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("units.jsonl");
        let line = |at: i64, service: &str, event: &str| {
            json!({"at": at, "service": service, "instance": format!("{service}-1"),
                "event": event, "state": "active", "detail": ""})
            .to_string()
        };
        let text = [
            line(5, "payments", "oom_killed"),
            "{broken".to_owned(),
            line(4, "payments", "started"),
            line(50, "payments", "started"),
            line(6, "inventory", "started"),
        ];
        std::fs::write(&path, text.join("\n")).unwrap();
        let source = SourceSpec::Units { path };
        let args = json!({"services": ["payments"]});
        let input = Input {
            source: &source,
            args: &args,
            window: Window {
                from: Millis(0),
                to: Millis(50),
            },
            now: Millis(60),
        };
        let output = body(&input).unwrap();
        let Payload::Units { events } = output.payload else {
            panic!("another payload");
        };
        let seen: Vec<_> = events.iter().map(|e| (e.at.0, e.event.as_str())).collect();
        assert_eq!(seen, [(4, "started"), (5, "oom_killed")]);
        assert_eq!(output.partial, ["1 malformed lines skipped"]);
    }
}
