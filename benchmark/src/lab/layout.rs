//! Where things lie in a lab directory.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The services of the shop, in the order in which they are started.
pub const SERVICES: [&str; 3] = ["payments", "inventory", "checkout"];

/// Each instance with its service, in the order in which they are started.
pub const INSTANCES: [(&str, &str); 4] = [
    ("payments", "payments-1"),
    ("inventory", "inventory-1"),
    ("checkout", "checkout-1"),
    ("checkout", "checkout-2"),
];

/// Who calls whom.
pub(super) const EDGES: [(&str, &str); 2] = [("checkout", "payments"), ("checkout", "inventory")];

/// The paths of one lab directory.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout below `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    /// The lab directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Folder of a service.
    #[must_use]
    pub fn service(&self, service: &str) -> PathBuf {
        self.root.join("services").join(service)
    }

    /// Folder that holds one folder for each release of a service.
    #[must_use]
    pub fn releases(&self, service: &str) -> PathBuf {
        self.service(service).join("releases")
    }

    /// The link that names the release in force.
    #[must_use]
    pub fn current(&self, service: &str) -> PathBuf {
        self.service(service).join("current")
    }

    /// Configuration file of a service.
    #[must_use]
    pub fn config(&self, service: &str) -> PathBuf {
        self.service(service).join("config.toml")
    }

    /// File whose change restarts a service.
    #[must_use]
    pub fn restart(&self, service: &str) -> PathBuf {
        self.service(service).join("restart")
    }

    /// Data folder of a service.
    #[must_use]
    pub fn data(&self, service: &str) -> PathBuf {
        self.service(service).join("data")
    }

    /// Log file of an instance.
    #[must_use]
    pub fn log(&self, instance: &str) -> PathBuf {
        self.root.join("logs").join(format!("{instance}.log"))
    }

    /// Deploy history, one JSON object a line.
    #[must_use]
    pub fn deploys(&self) -> PathBuf {
        self.root.join("deploys.jsonl")
    }

    /// What the supervisor did and saw, one JSON object a line.
    #[must_use]
    pub fn units(&self) -> PathBuf {
        self.root.join("units.jsonl")
    }

    /// Folder of the runbooks.
    #[must_use]
    pub fn runbooks(&self) -> PathBuf {
        self.root.join("runbooks")
    }

    /// What runs now, written by the supervisor.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root.join("state.json")
    }

    /// Options of the supervisor, written by `up`.
    #[must_use]
    pub fn options(&self) -> PathBuf {
        self.root.join("lab.json")
    }

    /// Held with an exclusive lock while a supervisor runs.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Name of the control socket inside the lab directory.
    pub const SOCKET: &'static str = "lab.sock";

    /// The version that the release link of a service names.
    ///
    /// # Errors
    /// When the link cannot be read or names nothing.
    pub fn version_in_force(&self, service: &str) -> anyhow::Result<String> {
        let link = self.current(service);
        let target =
            fs::read_link(&link).with_context(|| format!("cannot read `{}`", link.display()))?;
        let name = target.file_name().and_then(|n| n.to_str());
        Ok(name
            .with_context(|| format!("`{}` names no release", link.display()))?
            .to_owned())
    }
}

/// Replaces a file by writing beside it and renaming, so that a reader sees the old or the new text.
///
/// # Errors
/// When the folder cannot be written.
pub fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let fresh = path.with_extension("new");
    fs::write(&fresh, text).with_context(|| format!("cannot write `{}`", fresh.display()))?;
    fs::rename(&fresh, path).with_context(|| format!("cannot replace `{}`", path.display()))
}

/// Points a link at another target by one rename.
///
/// # Errors
/// When the folder cannot be written.
pub fn relink(link: &Path, target: &Path) -> anyhow::Result<()> {
    let fresh = link.with_extension("new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error)?,
        _ => {}
    }
    std::os::unix::fs::symlink(target, &fresh)
        .with_context(|| format!("cannot write `{}`", fresh.display()))?;
    fs::rename(&fresh, link).with_context(|| format!("cannot replace `{}`", link.display()))
}

/// Appends one line to a file in one write.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn append_line(path: &Path, line: &str) -> anyhow::Result<()> {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot open `{}`", path.display()))?;
    file.write_all(format!("{line}\n").as_bytes())
        .with_context(|| format!("cannot write `{}`", path.display()))
}
