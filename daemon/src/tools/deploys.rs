//! `deploys`: the deploy history with the difference of each release to the one before.

use std::collections::BTreeMap;
use std::time::Duration;

use policies::model::{Deploy, DeployHistory, DeployStatus, Millis, Payload};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Failure, Input, Output, ReleaseFolder, Run, SourceSpec, Tool, check, diff, lines, wanted,
    wrong_source,
};
use crate::jobs::Grants;

const MAX_READ: u64 = 8 << 20;
const MAX_DEPLOYS: usize = 200;

pub(super) const TOOL: Tool = Tool {
    name: "deploys",
    summary: "Answers deploys of the window, the version in force and what each release changed.",
    source: "releases",
    schema,
    check: check::<Args>,
    timeout: Duration::from_secs(20),
    max_output: 8 << 20,
    run: Run::Worker { grants, body },
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    services: Vec<String>,
}

/// A record of the deploy feed (protocols.md 5). Members that others add are ignored.
#[derive(Debug, Deserialize)]
struct Record {
    id: String,
    service: String,
    version: String,
    previous_version: Option<String>,
    commit: Option<String>,
    started_at: String,
    finished_at: Option<String>,
    status: DeployStatus,
    #[serde(default)]
    actor: String,
    #[serde(default)]
    message: String,
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
    let SourceSpec::Releases { history, services } = source else {
        return Grants::default();
    };
    let mut read = vec![history.clone()];
    // Reading where a link shows needs no right of its own: the name is not opened.
    read.extend(services.iter().map(|service| service.releases.clone()));
    Grants {
        read,
        write: vec![],
    }
}

fn body(input: &Input<'_>) -> Result<Output, Failure> {
    let args: Args = input.args()?;
    let SourceSpec::Releases { history, services } = input.source else {
        return Err(wrong_source(input, "releases"));
    };
    let (text, cut) = lines::read_tail(history, MAX_READ)?;
    let mut partial = Vec::new();
    let mut deploys = Vec::new();
    let mut malformed = 0;
    let mut first = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Some(deploy) = record(line) else {
            malformed += 1;
            continue;
        };
        first = Some(first.map_or(deploy.started_at, |at: Millis| at.min(deploy.started_at)));
        let end = deploy.finished_at.unwrap_or(deploy.started_at);
        let overlaps = deploy.started_at < input.window.to && end >= input.window.from;
        if overlaps && wanted(&args.services, &deploy.service) {
            deploys.push(deploy);
        }
    }
    if malformed > 0 {
        partial.push(format!("{malformed} malformed records skipped"));
    }
    deploys.sort_by(|a, b| (a.started_at, &a.id).cmp(&(b.started_at, &b.id)));
    let left_out = deploys.len().saturating_sub(MAX_DEPLOYS);
    deploys.drain(..left_out);
    for deploy in &mut deploys {
        let folder = services
            .iter()
            .find(|service| service.name == deploy.service);
        if let Some(folder) = folder {
            compare(deploy, folder, &mut partial);
        }
    }
    let covers_from = match (left_out, deploys.first()) {
        (1.., Some(deploy)) => deploy.started_at,
        _ => first.map_or(input.window.from, |at| at.max(input.window.from)),
    };
    if left_out > 0 {
        partial.push(format!("{left_out} earlier deploys left out"));
    }
    Ok(Output {
        payload: Payload::Deploys {
            history: DeployHistory {
                covers_from,
                covers_to: input.window.to.min(input.now),
                truncated: cut || left_out > 0,
                in_force: in_force(services, &args, &mut partial),
                deploys,
            },
        },
        partial,
    })
}

fn record(line: &str) -> Option<Deploy> {
    let record: Record = serde_json::from_str(line).ok()?;
    let finished_at = match record.finished_at {
        Some(text) => Some(Millis::parse_rfc3339(&text)?),
        None => None,
    };
    Some(Deploy {
        id: record.id,
        service: record.service,
        version: record.version,
        previous_version: record.previous_version,
        commit: record.commit,
        started_at: Millis::parse_rfc3339(&record.started_at)?,
        finished_at,
        status: record.status,
        actor: record.actor,
        message: record.message,
        previous_available: false,
        diff: None,
    })
}

/// A version names one folder; anything that could lead elsewhere names none.
fn plain(version: &str) -> bool {
    !version.is_empty() && !version.contains('/') && !version.starts_with('.')
}

fn compare(deploy: &mut Deploy, folder: &ReleaseFolder, partial: &mut Vec<String>) {
    let Some(previous) = deploy.previous_version.as_deref() else {
        return;
    };
    if !plain(previous) || !plain(&deploy.version) {
        return;
    }
    let old = folder.releases.join(previous);
    deploy.previous_available = old.is_dir();
    if !deploy.previous_available {
        return;
    }
    match diff::releases(&old, &folder.releases.join(&deploy.version)) {
        Ok(found) => {
            if let Some(why) = found.partial {
                partial.push(format!("{}: {why}", deploy.id));
            }
            deploy.diff = Some(found.files);
        }
        Err(error) => partial.push(format!(
            "{}: releases cannot be compared: {error}",
            deploy.id
        )),
    }
}

fn in_force(
    services: &[ReleaseFolder],
    args: &Args,
    partial: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    for service in services.iter().filter(|s| wanted(&args.services, &s.name)) {
        let target = std::fs::read_link(&service.current);
        let version = target
            .ok()
            .and_then(|to| Some(to.file_name()?.to_str()?.to_owned()));
        match version {
            Some(version) => {
                out.insert(service.name.clone(), version);
            }
            None => partial.push(format!("{}: the release link cannot be read", service.name)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use policies::model::Window;

    use super::*;

    fn line(id: &str, version: &str, previous: Option<&str>, at: &str) -> String {
        json!({"id": id, "service": "checkout", "version": version, "previous_version": previous,
            "commit": "abc123", "started_at": format!("2026-01-31T{at}Z"),
            "finished_at": format!("2026-01-31T{at}Z"), "status": "succeeded", "actor": "ci",
            "message": "m", "pipeline": 7})
        .to_string()
    }

    fn answer(window: (&str, &str)) -> (DeployHistory, Vec<String>) {
        let root = tempfile::tempdir().unwrap();
        let releases = root.path().join("releases");
        for (version, text) in [("1.1.0", "a = 1\n"), ("1.2.0", "a = 2\n")] {
            fs::create_dir_all(releases.join(version)).unwrap();
            fs::write(releases.join(version).join("app.py"), text).unwrap();
        }
        let current = root.path().join("current");
        symlink("releases/1.2.0", &current).unwrap();
        let history = root.path().join("deploys.jsonl");
        let text = [
            line("d-1", "1.0.0", None, "05:00:00"),
            line("d-2", "1.1.0", Some("1.0.0"), "06:00:00"),
            "not json".to_owned(),
            line("d-3", "1.2.0", Some("1.1.0"), "08:00:00"),
        ];
        fs::write(&history, text.join("\n")).unwrap();
        let source = SourceSpec::Releases {
            history,
            services: vec![ReleaseFolder {
                name: "checkout".into(),
                releases,
                current,
            }],
        };
        let at = |text: &str| Millis::parse_rfc3339(&format!("2026-01-31T{text}Z")).unwrap();
        let input = Input {
            source: &source,
            args: &json!({}),
            window: Window {
                from: at(window.0),
                to: at(window.1),
            },
            now: at("09:00:00"),
        };
        let output = body(&input).unwrap();
        let Payload::Deploys { history } = output.payload else {
            panic!("another payload");
        };
        (history, output.partial)
    }

    #[test]
    fn each_deploy_carries_its_difference_and_whether_the_release_before_is_there() {
        let (history, partial) = answer(("05:30:00", "10:00:00"));
        let ids: Vec<_> = history.deploys.iter().map(|d| d.id.as_str()).collect();
        assert_eq!(ids, ["d-2", "d-3"]);
        assert!(!history.deploys[0].previous_available && history.deploys[0].diff.is_none());
        let diff = history.deploys[1].diff.as_ref().unwrap();
        assert!(history.deploys[1].previous_available);
        assert_eq!(diff[0].hunks[0].lines, ["-a = 1", "+a = 2"]);
        assert_eq!(history.in_force["checkout"], "1.2.0");
        assert_eq!(partial, ["1 malformed records skipped"]);
    }

    #[test]
    fn the_history_covers_no_more_than_it_knows_and_not_the_future() {
        let (history, _) = answer(("04:00:00", "10:00:00"));
        assert_eq!(history.covers_from.rfc3339(), "2026-01-31T05:00:00.000Z");
        assert_eq!(history.covers_to.rfc3339(), "2026-01-31T09:00:00.000Z");
        assert!(!history.truncated);
        let (history, _) = answer(("07:00:00", "08:30:00"));
        assert_eq!(history.covers_from.rfc3339(), "2026-01-31T07:00:00.000Z");
        assert_eq!(history.deploys.len(), 1);
    }

    #[test]
    fn a_version_that_leads_out_of_the_folder_names_no_release() {
        for bad in ["", "..", "../x", "a/b", ".hidden"] {
            assert!(!plain(bad), "{bad}");
        }
        assert!(plain("1.2.0"));
    }
}
