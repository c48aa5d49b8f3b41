//! What lies behind an approval: who would perform it, how long that may take, what stands around
//! the target, and what a dry run says. It informs the person who decides and judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use policies::guard::Policy;
use policies::model::Edge;

use super::document::{Document, spelled};
use super::view::{ActionContext, DryRun};
use crate::config::{Config, Source};
use crate::executors::{ExecutorKind, ExecutorSpec, Preview};
use crate::jobs::Scheduler;

/// How long a page waits for a dry run. A person waits for the page.
const WAIT: Duration = Duration::from_secs(4);

/// The site as far as an approval needs it.
pub struct Reach {
    executors: Vec<ExecutorSpec>,
    edges: Vec<Edge>,
    instances: BTreeMap<String, BTreeSet<String>>,
    policy: Policy,
    scheduler: Scheduler,
}

impl Reach {
    /// Over the configuration and the policy that are in force.
    #[must_use]
    pub fn new(config: &Config, policy: Policy, scheduler: Scheduler) -> Self {
        let mut edges = Vec::new();
        let mut instances: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut runs = |service: &str, instance: &str| {
            let of_service = instances.entry(service.to_owned()).or_default();
            of_service.insert(instance.to_owned());
        };
        for source in config.sources.values() {
            match source {
                Source::Topology { edges: some } => edges.extend(some.iter().cloned()),
                Source::Logs { files } => {
                    files.iter().for_each(|f| runs(&f.service, &f.instance));
                }
                Source::Metrics { targets, .. } => {
                    targets.iter().for_each(|t| runs(&t.service, &t.instance));
                }
                Source::Releases { .. } | Source::Units { .. } | Source::Runbooks { .. } => {}
            }
        }
        let executors = config.executors.iter();
        Self {
            executors: executors
                .map(|(name, executor)| ExecutorSpec::configured(name, executor))
                .collect(),
            edges,
            instances,
            policy,
            scheduler,
        }
    }

    /// The executor that an action goes to, as the conductor chooses it.
    fn executor(&self, document: &Document) -> Option<&ExecutorSpec> {
        self.executors.iter().find(|executor| {
            executor.action.as_str() == document.action && executor.service == document.target_name
        })
    }

    /// Executor, time limit and blast radius of an action.
    #[must_use]
    pub fn around(&self, document: &Document) -> ActionContext {
        ActionContext {
            executor: self.executor(document).map(executor_words),
            limit_s: self
                .policy
                .action(&document.action)
                .map(|rule| rule.effect_timeout_s),
            blast: self.blast(&document.target_name),
            ..ActionContext::default()
        }
    }

    /// What may notice: the instances of the target, and everything that calls it, however many
    /// calls lie between.
    fn blast(&self, target: &str) -> Vec<String> {
        let named = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        let runs = match self.instances.get(target) {
            Some(names) => format!("Runs as {}.", named(names)),
            None => "Its instances are not known: no log or metrics source names them.".to_owned(),
        };
        let callers = callers(&self.edges, target);
        let called = if self.edges.is_empty() {
            "What depends on it is not known: no call graph is configured.".to_owned()
        } else if callers.is_empty() {
            "Nothing in the call graph calls it.".to_owned()
        } else {
            format!(
                "Called, directly or through others, by {}.",
                named(&callers)
            )
        };
        vec![runs, called]
    }

    /// Asks the executor what the change of the signed document would do. Changes nothing.
    pub async fn dry_run(&self, document: &Document) -> DryRun {
        let failed = |code: &str, detail: &str| DryRun::Failed {
            code: code.to_owned(),
            detail: detail.to_owned(),
        };
        let Some(executor) = self.executor(document) else {
            return failed("no_executor", "No executor of this site performs it.");
        };
        let looking = self
            .scheduler
            .preview(&executor.name, Some(document.change.clone()));
        match tokio::time::timeout(WAIT, looking).await {
            Ok(Ok(preview)) => seen(preview, document),
            Ok(Err(failure)) => failed(failure.code, &failure.detail),
            Err(_) => failed(
                "timeout",
                "The executor's target could not be read in time.",
            ),
        }
    }
}

fn executor_words(executor: &ExecutorSpec) -> String {
    let how = match &executor.kind {
        ExecutorKind::Symlink { link, .. } => format!("moves the link {}", link.display()),
        ExecutorKind::Value { file, key, .. } => format!("sets {key} in {}", file.display()),
        ExecutorKind::Trigger { file } => format!("writes {}", file.display()),
    };
    format!("{}, which {how}", executor.name)
}

/// Everything that reaches `target` over calls, without itself.
fn callers(edges: &[Edge], target: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![target];
    while let Some(callee) = open.pop() {
        for edge in edges.iter().filter(|edge| edge.callee == callee) {
            if edge.caller != target && found.insert(edge.caller.clone()) {
                open.push(&edge.caller);
            }
        }
    }
    found
}

fn seen(preview: Preview, document: &Document) -> DryRun {
    let inverse = preview.inverse.as_ref();
    DryRun::Seen {
        now: Some(preview.now)
            .filter(|now| !now.is_null())
            .as_ref()
            .map(spelled),
        after: preview.after.as_ref().map(spelled),
        effect: preview.effect,
        inverse: inverse.map(|change| document.sentence_with(change.get("from"), change.get("to"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn edge(caller: &str, callee: &str) -> Edge {
        Edge {
            caller: caller.to_owned(),
            callee: callee.to_owned(),
        }
    }

    #[test]
    fn everything_that_calls_the_target_through_others_is_within_its_blast_radius() {
        let edges = [
            edge("web", "checkout"),
            edge("checkout", "payments"),
            edge("payments", "ledger"),
            edge("payments", "checkout"),
        ];
        let found: Vec<_> = callers(&edges, "payments").into_iter().collect();
        assert_eq!(found, ["checkout", "web"]);
        assert!(callers(&edges, "web").is_empty());
    }

    #[test]
    fn a_dry_run_says_now_after_and_the_way_back() {
        let change = serde_json::json!({"from": "1.8.0", "to": "1.7.2"});
        let document = Document::of("rollback", "checkout", change);
        let preview = |now: Value, after, inverse| Preview {
            now,
            after,
            choices: Vec::new(),
            effect: "The link is replaced.".to_owned(),
            inverse,
        };
        let back = serde_json::json!({"from": "1.7.2", "to": "1.8.0"});
        assert_eq!(
            seen(
                preview("1.8.0".into(), Some("1.7.2".into()), Some(back)),
                &document
            ),
            DryRun::Seen {
                now: Some("1.8.0".to_owned()),
                after: Some("1.7.2".to_owned()),
                effect: "The link is replaced.".to_owned(),
                inverse: Some("Roll back checkout from 1.7.2 to 1.8.0".to_owned()),
            }
        );
        let DryRun::Seen {
            now,
            after,
            inverse,
            ..
        } = seen(preview(Value::Null, None, None), &document)
        else {
            panic!("it failed");
        };
        assert_eq!((now, after, inverse), (None, None, None));
    }
}
