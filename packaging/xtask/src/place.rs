//! Where things lie: the clone, the folder of build outputs, the cache outside the clone.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run;

/// The folders that every command needs.
#[derive(Debug)]
pub(crate) struct Place {
    /// Root of the clone.
    pub(crate) root: PathBuf,
    /// Where cargo puts its outputs.
    pub(crate) target: PathBuf,
    /// Cache of this user, outside git.
    pub(crate) cache: PathBuf,
}

impl Place {
    /// Finds the clone that this program was built from.
    pub(crate) fn find() -> Result<Self> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest
            .ancestors()
            .nth(2)
            .context("xtask does not lie two folders below the root of a clone")?
            .to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => root.join(dir),
            None => root.join("target"),
        };
        let cache = match std::env::var_os("XDG_CACHE_HOME").filter(|v| !v.is_empty()) {
            Some(dir) => PathBuf::from(dir),
            None => {
                PathBuf::from(std::env::var_os("HOME").context("`HOME` is not set")?).join(".cache")
            }
        };
        Ok(Self {
            root,
            target,
            cache: cache.join("sentinel"),
        })
    }

    /// Builds the program and says where it is.
    pub(crate) fn sentinel(&self) -> Result<PathBuf> {
        println!("building; the first time takes minutes, most of them for llama.cpp");
        run::shown(
            self.cargo()
                .args(["build", "--workspace", "--bin", "sentinel", "--quiet"]),
        )?;
        let exe = self.target.join("debug/sentinel");
        if !exe.is_file() {
            bail!("`{}` was built but is not there", exe.display());
        }
        Ok(exe)
    }

    /// `cargo` in the clone, with the environment that keeps llama.cpp in the compiler cache.
    ///
    /// Every step uses the same environment and the same profile: a variable that differs between
    /// two steps would build llama.cpp again. What the caller has set already stays.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.root);
        let defaults = [
            ("CCACHE_BASEDIR", self.root.as_os_str()),
            ("CCACHE_NOHASHDIR", "1".as_ref()),
            ("CMAKE_C_COMPILER_LAUNCHER", "ccache".as_ref()),
            ("CMAKE_CXX_COMPILER_LAUNCHER", "ccache".as_ref()),
        ];
        for (name, value) in defaults {
            if std::env::var_os(name).is_none() {
                cargo.env(name, value);
            }
        }
        // `cargo run` sets these for its child. They describe xtask and mean nothing to a build.
        for (name, _) in std::env::vars_os() {
            let Some(name) = name.to_str() else { continue };
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                cargo.env_remove(name);
            }
        }
        cargo
    }
}
