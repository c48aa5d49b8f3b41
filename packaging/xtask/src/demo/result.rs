//! The one object that the demo ends with, put together from what the binary prints and from the
//! shop itself.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::faults::Row;
use super::site::Site;

/// The error ratio below which the shop is well; the alert fires above it.
const WELL: f64 = 0.02;

/// The end of one run.
pub(super) struct Done {
    /// Last line of `--json`.
    pub(super) object: Value,
    /// What is not as it must be.
    pub(super) problems: Vec<String>,
}

impl Done {
    /// Collects everything about a closed incident.
    pub(super) fn collect(
        site: &Site,
        row: &Row,
        incident: &str,
        shown: &Value,
        mut stages: Map<String, Value>,
    ) -> Result<Self> {
        let mut problems = Vec::new();
        let record = shown
            .get("record")
            .context("`incident show` has no `record`")?;
        let at = |path: &str| record.pointer(path).cloned().unwrap_or_default();
        let executed = !at("/job").is_null();
        let recovered = if executed {
            let seen = at("/verification/recovered");
            let measured = is_well(site, &mut problems)?;
            match seen {
                Value::Bool(seen) => Value::Bool(seen && measured),
                other => other,
            }
        } else {
            Value::Null
        };
        stages.extend(stage_seconds(record));
        let audit = audit(site)?;
        postmortem(site, incident, &mut problems);
        let hypothesis = standing_hypothesis(record);
        let citations = citations(record, hypothesis, shown, &mut problems);
        let only_if_executed = |value: Value| if executed { value } else { Value::Null };
        let object = json!({
            "incident_id": incident,
            "fault": row.fault,
            "cause_class": at("/cause_class"),
            "culprit": culprit(hypothesis),
            "action": at("/proposal/class"),
            "advice": at("/proposal/advice"),
            "parameters": only_if_executed(at("/proposal/change")),
            "citations": citations,
            "approver": at("/action/decided_by/0"),
            "capability_jti": at("/action/jti"),
            "job_outcome": at("/job/outcome"),
            "job_code": at("/job/code"),
            "interlocks": refused(record),
            "recovered": recovered,
            "outcome": at("/outcome"),
            "audit_entries": audit.entries,
            "audit_verified": audit.verified,
            "bundle": site.folder.join("audit.bundle").display().to_string(),
            "trust": site.folder.join("guard-trust.json").display().to_string(),
            "model": {
                "name": at("/model/name"),
                "tokens_in": at("/model/tokens_in"),
                "tokens_out": at("/model/tokens_out"),
                "unavailable": at("/model/unavailable"),
            },
            "seconds": stages,
        });
        Ok(Self { object, problems })
    }

    /// Adds the time of the whole run.
    pub(super) fn finish(&mut self, total: Value) {
        if let Some(stages) = self
            .object
            .get_mut("seconds")
            .and_then(Value::as_object_mut)
        {
            stages.insert("total".to_owned(), total);
        }
    }

    /// For people.
    pub(super) fn summary(&self) -> String {
        let names = [
            "incident_id",
            "cause_class",
            "culprit",
            "action",
            "advice",
            "parameters",
            "citations",
            "approver",
            "job_outcome",
            "recovered",
            "audit_entries",
            "audit_verified",
            "bundle",
            "trust",
        ];
        let mut out = String::new();
        for name in names {
            let value = self.object.get(name).cloned().unwrap_or_default();
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            out.push_str(&format!("  {name:<15} {text}\n"));
        }
        out
    }
}

/// Codes of the interlocks that refused, at either look.
fn refused(record: &Value) -> Vec<Value> {
    let looks = record.get("clearances").and_then(Value::as_array);
    looks
        .into_iter()
        .flatten()
        .filter_map(|look| look.get("codes")?.as_array())
        .flatten()
        .cloned()
        .collect()
}

/// The model's choice within what the evidence allows, else the verdict of the rules.
fn standing_hypothesis(record: &Value) -> Option<&Value> {
    let chosen = record
        .pointer("/model/hypothesis")
        .filter(|v| v.is_string())
        .or_else(|| record.pointer("/diagnosis/verdict/hypothesis"))?;
    let list = record.pointer("/diagnosis/hypotheses")?.as_array()?;
    list.iter().find(|h| h.get("id") == Some(chosen))
}

fn culprit(hypothesis: Option<&Value>) -> Value {
    let id = hypothesis
        .and_then(|h| h.pointer("/culprit/id"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    if id.is_empty() {
        json!("none")
    } else {
        json!(id)
    }
}

/// Ids of the cited evidence, each of which must exist.
fn citations(
    record: &Value,
    hypothesis: Option<&Value>,
    shown: &Value,
    problems: &mut Vec<String>,
) -> Vec<String> {
    let number = |cite: &Value| cite.get("evidence").unwrap_or(cite).as_u64();
    let lists = [
        record.pointer("/proposal/citations"),
        hypothesis.and_then(|h| h.get("supporting")),
        record.pointer("/model/citations"),
    ];
    let mut cited = BTreeSet::new();
    for list in lists.into_iter().flatten() {
        cited.extend(list.as_array().into_iter().flatten().filter_map(number));
    }
    let evidence = shown.get("evidence").and_then(Value::as_array);
    let known: BTreeSet<u64> = evidence
        .into_iter()
        .flatten()
        .filter_map(|e| e.get("id").and_then(Value::as_u64))
        .collect();
    for id in cited.difference(&known) {
        problems.push(format!("E{id} is cited but does not exist"));
    }
    cited.iter().map(|id| format!("E{id}")).collect()
}

/// Seconds of each stage; one that was entered twice is summed.
fn stage_seconds(record: &Value) -> Map<String, Value> {
    let mut sums: Vec<(String, i64)> = Vec::new();
    let stages: Vec<(String, i64)> = record
        .get("stages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|s| Some((s.get(0)?.as_str()?.to_owned(), s.get(1)?.as_i64()?)))
        .collect();
    for pair in stages.windows(2) {
        let [(name, from), (_, to)] = pair else {
            continue;
        };
        match sums.iter_mut().find(|(n, _)| n == name) {
            Some((_, sum)) => *sum += to - from,
            None => sums.push((name.clone(), to - from)),
        }
    }
    let exact = |ms: i64| f64::from(i32::try_from(ms).unwrap_or(i32::MAX)) / 1000.0;
    sums.into_iter()
        .map(|(name, ms)| (name, Value::from(exact(ms))))
        .collect()
}

/// Looks at the shop's own numbers, not at what Sentinel says about them.
fn is_well(site: &Site, problems: &mut Vec<String>) -> Result<bool> {
    let lab = site.lab.to_string_lossy().into_owned();
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let status = site.sentinel.lab(&["status", &lab])?;
        let ratio = status
            .pointer("/services/checkout/error_ratio")
            .and_then(Value::as_f64);
        if ratio.is_some_and(|r| r <= WELL) {
            return Ok(true);
        }
        if Instant::now() > deadline {
            problems.push(format!(
                "the shop is not well: its error ratio is {ratio:?}"
            ));
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

struct Audit {
    entries: Value,
    verified: bool,
}

/// Exports the log and its trust file, and has them verified as an outsider would.
fn audit(site: &Site) -> Result<Audit> {
    let bundle = site.folder.join("audit.bundle");
    let trust = site.folder.join("guard-trust.json");
    let (bundle_text, trust_text) = (bundle.to_string_lossy(), trust.to_string_lossy());
    site.sentinel
        .ask(&["audit", "export", "--out", &bundle_text])?;
    let socket = site.sentinel.socket.to_string_lossy();
    let limit = Duration::from_secs(60);
    let text = site
        .sentinel
        .run(&["audit", "trust", "--socket", &socket], "", limit)?;
    std::fs::write(&trust, text).with_context(|| format!("`{trust_text}`"))?;
    let verdict = site.sentinel.run(
        &[
            "audit",
            "verify",
            &bundle_text,
            "--trust",
            &trust_text,
            "--json",
        ],
        "",
        limit,
    )?;
    let verdict: Value = serde_json::from_str(&verdict).context("the verdict is no JSON")?;
    let verdict = verdict.get("data").unwrap_or(&verdict);
    Ok(Audit {
        entries: verdict.get("size").cloned().unwrap_or_default(),
        verified: verdict.get("result").and_then(Value::as_str) == Some("valid"),
    })
}

fn postmortem(site: &Site, incident: &str, problems: &mut Vec<String>) {
    let socket = site.sentinel.socket.to_string_lossy();
    let args = ["incident", "postmortem", incident, "--socket", &socket];
    let path = site.folder.join("postmortem.md");
    let written = site
        .sentinel
        .run(&args, "", Duration::from_secs(60))
        .and_then(|text| Ok(std::fs::write(&path, text)?));
    if let Err(e) = written {
        problems.push(format!("there is no postmortem: {e:#}"));
    }
}

#[cfg(test)]
mod tests {
    use super::{citations, stage_seconds};
    use serde_json::json;

    #[test]
    fn a_stage_that_was_entered_twice_is_summed() {
        let record = json!({"stages": [["a", 0], ["b", 1000], ["a", 1500], ["closed", 4000]]});
        let seconds = stage_seconds(&record);
        assert_eq!(json!(seconds), json!({"a": 3.5, "b": 0.5}));
    }

    #[test]
    fn evidence_that_is_cited_must_exist() {
        let record = json!({"proposal": {"citations": [{"evidence": 1, "line": 4}, {"evidence": 7, "line": null}]}});
        let shown = json!({"evidence": [{"id": 1}]});
        let mut problems = Vec::new();
        assert_eq!(
            citations(&record, None, &shown, &mut problems),
            ["E1", "E7"]
        );
        assert_eq!(problems, ["E7 is cited but does not exist"]);
    }
}
