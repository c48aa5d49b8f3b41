//! What each fault must come to. The agent knows nothing of this table.

use std::path::Path;

use serde_json::Value;

/// What is to blame.
pub(super) enum Culprit {
    /// The deploy of this service that brought the version in force when the alert fired.
    DeployOf(&'static str),
    /// A service.
    Service(&'static str),
    /// Nothing.
    None,
}

/// One row.
pub(super) struct Row {
    /// Name of the fault.
    pub(super) fault: &'static str,
    cause_class: &'static str,
    culprit: Culprit,
    action: &'static str,
    /// The service that is acted on; none where nothing is executed.
    pub(super) target: Option<&'static str>,
}

impl Row {
    /// True when a person is asked and something is changed.
    pub(super) fn executes(&self) -> bool {
        self.target.is_some()
    }
}

/// Every row.
pub(super) const ROWS: &[Row] = &[
    Row {
        fault: "bad-deploy",
        cause_class: "bad_deploy",
        culprit: Culprit::DeployOf("checkout"),
        action: "rollback",
        target: Some("checkout"),
    },
    Row {
        fault: "pool-exhausted",
        cause_class: "resource_exhaustion",
        culprit: Culprit::Service("checkout"),
        action: "resize",
        target: Some("checkout"),
    },
    Row {
        fault: "dependency-down",
        cause_class: "resource_exhaustion",
        culprit: Culprit::Service("payments"),
        action: "restart",
        target: Some("payments"),
    },
    Row {
        fault: "disk-full",
        cause_class: "resource_exhaustion",
        culprit: Culprit::Service("inventory"),
        action: "escalate",
        target: None,
    },
    Row {
        fault: "healthy-noise",
        cause_class: "none",
        culprit: Culprit::None,
        action: "no_action",
        target: None,
    },
];

/// Everything in the result that is not as the row says; empty when it holds.
pub(super) fn judge(row: &Row, result: &Value, lab: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expect = |name: &str, wanted: Value| {
        let found = result.get(name).cloned().unwrap_or_default();
        if found != wanted {
            wrong.push(format!("`{name}` is {found}, not {wanted}"));
        }
    };
    expect("cause_class", row.cause_class.into());
    expect("action", row.action.into());
    expect("audit_verified", true.into());
    match &row.culprit {
        Culprit::Service(name) => expect("culprit", (*name).into()),
        Culprit::None => expect("culprit", "none".into()),
        Culprit::DeployOf(service) => {
            let deploy = last_deploy(lab, service);
            let member = |name: &str| deploy.as_ref().and_then(|d| d.get(name)).cloned();
            expect("culprit", member("id").unwrap_or_default());
            let parameters = result.get("parameters").cloned().unwrap_or_default();
            if parameters.get("to") != member("previous_version").as_ref() {
                wrong.push(format!(
                    "`parameters` {parameters} do not name the release before"
                ));
            }
        }
    }
    let mut expect = |name: &str, wanted: Value| {
        let found = result.get(name).cloned().unwrap_or_default();
        if found != wanted {
            wrong.push(format!("`{name}` is {found}, not {wanted}"));
        }
    };
    if row.executes() {
        expect("job_outcome", "succeeded".into());
        expect("recovered", true.into());
        expect("approver", "bob".into());
    } else {
        for name in [
            "parameters",
            "approver",
            "capability_jti",
            "job_outcome",
            "recovered",
        ] {
            expect(name, Value::Null);
        }
    }
    let present = |name: &str| result.get(name).is_some_and(|v| !v.is_null());
    if row.executes() && !(present("capability_jti") && present("parameters")) {
        wrong.push("`capability_jti` or `parameters` is missing".to_owned());
    }
    if row.action == "escalate" && !present("advice") {
        wrong.push("`advice` is missing".to_owned());
    }
    if row.action != "no_action" && result.pointer("/citations/0").is_none() {
        wrong.push("nothing is cited".to_owned());
    }
    wrong
}

/// The last deploy of a service, as the shop recorded it.
fn last_deploy(lab: &Path, service: &str) -> Option<Value> {
    let text = std::fs::read_to_string(lab.join("deploys.jsonl")).ok()?;
    text.lines()
        .rev()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|deploy| deploy.get("service").and_then(Value::as_str) == Some(service))
}

#[cfg(test)]
mod tests {
    use super::{ROWS, judge};
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn a_result_that_executes_nothing_must_say_so() {
        let row = ROWS.iter().find(|r| r.fault == "healthy-noise").unwrap();
        let good = json!({
            "cause_class": "none", "culprit": "none", "action": "no_action",
            "audit_verified": true, "citations": [],
        });
        assert_eq!(
            judge(row, &good, Path::new("/nonexistent")),
            Vec::<String>::new()
        );
        let mut bad = good;
        bad["recovered"] = json!(true);
        assert_eq!(judge(row, &bad, Path::new("/nonexistent")).len(), 1);
    }
}
