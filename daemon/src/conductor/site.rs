//! What the configuration says about the site, in the words of `policies`.

use std::collections::BTreeSet;

use policies::diagnosis::ExecutorFact;
use policies::machine::SourceFact;

use crate::config::{Config, ExecutorKind, Source};

/// Facts that do not change while the daemon runs.
#[derive(Clone, Debug)]
pub struct SiteFacts {
    /// Every service that the configuration names.
    pub inventory: Vec<String>,
    /// Sources with their tools; alerts and call graph first, since they are free.
    pub sources: Vec<SourceFact>,
    /// Executors; `current` is filled in when it is looked up.
    pub executors: Vec<ExecutorFact>,
}

impl SiteFacts {
    /// Reads them off a configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let mut inventory = BTreeSet::new();
        let mut sources = Vec::new();
        for (name, source) in &config.sources {
            let tool = match source {
                Source::Topology { edges } => {
                    inventory.extend(
                        edges
                            .iter()
                            .flat_map(|e| [e.caller.clone(), e.callee.clone()]),
                    );
                    "topology"
                }
                Source::Units { .. } => "units",
                Source::Metrics { targets, .. } => {
                    inventory.extend(targets.iter().map(|t| t.service.clone()));
                    "metrics"
                }
                Source::Logs { files } => {
                    inventory.extend(files.iter().map(|f| f.service.clone()));
                    "logs"
                }
                Source::Releases { services, .. } => {
                    inventory.extend(services.iter().map(|s| s.service.clone()));
                    "deploys"
                }
                Source::Runbooks { .. } => "runbooks",
            };
            sources.push(SourceFact {
                name: name.clone(),
                tool: tool.to_owned(),
            });
        }
        let executors = config
            .executors
            .iter()
            .map(|(name, e)| {
                let (key, bounds) = match &e.kind {
                    ExecutorKind::Value { key, min, max, .. } => {
                        (Some(key.clone()), Some((*min, *max)))
                    }
                    ExecutorKind::Symlink { .. } | ExecutorKind::Trigger { .. } => (None, None),
                };
                ExecutorFact {
                    name: name.clone(),
                    class: e.action,
                    target: e.target.clone(),
                    key,
                    bounds,
                    current: None,
                }
            })
            .collect();
        Self {
            inventory: inventory.into_iter().collect(),
            sources,
            executors,
        }
    }
}
