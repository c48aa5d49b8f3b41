//! `topology`: who calls whom, as configured.

use std::time::Duration;

use policies::model::Payload;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Failure, Input, Output, Run, SourceSpec, Tool, check, wrong_source};
use crate::scrape::MetricsRing;

pub(super) const TOOL: Tool = Tool {
    name: "topology",
    summary: "Answers which service calls which.",
    source: "topology",
    schema,
    check: check::<Args>,
    timeout: Duration::from_secs(1),
    max_output: 256 << 10,
    run: Run::Core(run),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {}

fn schema() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "properties": {}, "examples": [{}],
    })
}

fn run(input: &Input<'_>, _: &MetricsRing) -> Result<Output, Failure> {
    let Args {} = input.args()?;
    let SourceSpec::Topology { edges } = input.source else {
        return Err(wrong_source(input, "topology"));
    };
    Ok(Output::whole(Payload::Topology {
        edges: edges.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use policies::model::{Edge, Millis, Window};

    use super::*;

    #[test]
    fn the_configured_edges_are_answered_as_they_are() {
        let edge = Edge {
            caller: "checkout".into(),
            callee: "payments".into(),
        };
        let source = SourceSpec::Topology {
            edges: vec![edge.clone()],
        };
        let window = Window {
            from: Millis(0),
            to: Millis(1),
        };
        let input = Input {
            source: &source,
            args: &json!({}),
            window,
            now: Millis(1),
        };
        let output = run(&input, &MetricsRing::default()).unwrap();
        assert_eq!(output.payload, Payload::Topology { edges: vec![edge] });
    }
}
