//! Executors as a worker gets them: the configuration, resolved (protocols.md 10.1).

use std::path::{Path, PathBuf};

use policies::model::RemediationClass;
use serde::{Deserialize, Serialize};

use crate::config;
use crate::jobs::Grants;

/// One configured executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutorSpec {
    /// Its name in the configuration.
    pub name: String,
    /// The action it performs, also its name in the policy.
    pub action: RemediationClass,
    /// The service it works on.
    pub service: String,
    /// How.
    pub kind: ExecutorKind,
}

/// The kinds that exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ExecutorKind {
    /// Moves a link from one release folder to another.
    Symlink {
        /// The link.
        link: PathBuf,
        /// Folder with one folder for each release.
        releases: PathBuf,
    },
    /// Changes one value in one TOML file.
    Value {
        /// The file.
        file: PathBuf,
        /// Dotted path of the value.
        key: String,
        /// Least value that is written.
        min: i64,
        /// Greatest value that is written.
        max: i64,
    },
    /// Writes the restart file that a supervisor on the box watches.
    Trigger {
        /// The file.
        file: PathBuf,
    },
}

impl From<&config::ExecutorKind> for ExecutorKind {
    fn from(kind: &config::ExecutorKind) -> Self {
        match kind {
            config::ExecutorKind::Symlink { link, releases } => Self::Symlink {
                link: link.clone(),
                releases: releases.clone(),
            },
            config::ExecutorKind::Value {
                file,
                key,
                min,
                max,
            } => Self::Value {
                file: file.clone(),
                key: key.clone(),
                min: *min,
                max: *max,
            },
            config::ExecutorKind::Trigger { file } => Self::Trigger { file: file.clone() },
        }
    }
}

impl ExecutorSpec {
    /// The executor of that name in the configuration.
    #[must_use]
    pub fn configured(name: &str, executor: &config::Executor) -> Self {
        Self {
            name: name.to_owned(),
            action: executor.action,
            service: executor.target.clone(),
            kind: ExecutorKind::from(&executor.kind),
        }
    }

    /// Paths that a look at it needs.
    #[must_use]
    pub fn preview_grants(&self) -> Grants {
        let read = match &self.kind {
            ExecutorKind::Symlink { releases, .. } => vec![releases.clone()],
            ExecutorKind::Value { file, .. } | ExecutorKind::Trigger { file } => vec![file.clone()],
        };
        Grants {
            read,
            write: vec![],
        }
    }

    /// Paths that the effect needs: the folder of the one file or link that is replaced.
    #[must_use]
    pub fn effect_grants(&self) -> Grants {
        let mut grants = self.preview_grants();
        let changed = match &self.kind {
            ExecutorKind::Symlink { link, .. } => link,
            ExecutorKind::Value { file, .. } | ExecutorKind::Trigger { file } => file,
        };
        grants.write.extend(changed.parent().map(Path::to_path_buf));
        grants
    }
}
