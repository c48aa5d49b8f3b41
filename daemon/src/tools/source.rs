//! Evidence sources as a worker gets them: the configuration, resolved.

use std::net::SocketAddr;
use std::path::PathBuf;

use policies::model::Edge;
use serde::{Deserialize, Serialize};

use crate::config;

/// One log file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogFile {
    /// Service that writes it.
    pub service: String,
    /// Instance that writes it.
    pub instance: String,
    /// Its path.
    pub path: PathBuf,
}

/// One page of metrics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScrapeTarget {
    /// Service it belongs to.
    pub service: String,
    /// Instance it belongs to.
    pub instance: String,
    /// Address and port.
    pub address: SocketAddr,
    /// Path of the page.
    pub path: String,
}

/// Where the releases of one service lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseFolder {
    /// The service.
    pub name: String,
    /// Folder with one folder for each version.
    pub releases: PathBuf,
    /// Link that shows the version in force.
    pub current: PathBuf,
}

/// One configured source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SourceSpec {
    /// Log files.
    Logs {
        /// The files.
        files: Vec<LogFile>,
    },
    /// Metric pages, scraped into a ring.
    Metrics {
        /// Interval in ms.
        every_ms: i64,
        /// The pages.
        targets: Vec<ScrapeTarget>,
    },
    /// Deploy history and release folders.
    Releases {
        /// File with one deploy record on each line.
        history: PathBuf,
        /// Release folders.
        services: Vec<ReleaseFolder>,
    },
    /// Events of units.
    Units {
        /// File with one event on each line.
        path: PathBuf,
    },
    /// Who calls whom.
    Topology {
        /// Call edges.
        edges: Vec<Edge>,
    },
    /// Runbooks.
    Runbooks {
        /// Folder with Markdown files.
        folder: PathBuf,
    },
}

impl SourceSpec {
    /// The word of the configuration.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Logs { .. } => "logs",
            Self::Metrics { .. } => "metrics",
            Self::Releases { .. } => "releases",
            Self::Units { .. } => "units",
            Self::Topology { .. } => "topology",
            Self::Runbooks { .. } => "runbooks",
        }
    }
}

impl From<&config::Source> for SourceSpec {
    fn from(source: &config::Source) -> Self {
        match source {
            config::Source::Logs { files } => Self::Logs {
                files: files.iter().map(LogFile::from).collect(),
            },
            config::Source::Metrics { every_ms, targets } => Self::Metrics {
                every_ms: *every_ms,
                targets: targets.iter().map(ScrapeTarget::from).collect(),
            },
            config::Source::Releases { history, services } => Self::Releases {
                history: history.clone(),
                services: services.iter().map(ReleaseFolder::from).collect(),
            },
            config::Source::Units { path } => Self::Units { path: path.clone() },
            config::Source::Topology { edges } => Self::Topology {
                edges: edges.clone(),
            },
            config::Source::Runbooks { folder } => Self::Runbooks {
                folder: folder.clone(),
            },
        }
    }
}

impl From<&config::LogFile> for LogFile {
    fn from(file: &config::LogFile) -> Self {
        Self {
            service: file.service.clone(),
            instance: file.instance.clone(),
            path: file.path.clone(),
        }
    }
}

impl From<&config::ScrapeTarget> for ScrapeTarget {
    fn from(target: &config::ScrapeTarget) -> Self {
        Self {
            service: target.service.clone(),
            instance: target.instance.clone(),
            address: target.address,
            path: target.path.clone(),
        }
    }
}

impl From<&config::ReleaseTree> for ReleaseFolder {
    fn from(tree: &config::ReleaseTree) -> Self {
        Self {
            name: tree.service.clone(),
            releases: tree.releases.clone(),
            current: tree.current.clone(),
        }
    }
}
