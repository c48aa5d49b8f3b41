//! What a build needs beside the Rust toolchain: each thing is looked for before it is installed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run;

/// One thing that must be on the machine.
struct Need {
    /// Debian package that brings it.
    package: &'static str,
    /// What it is for, shown before it is installed.
    why: &'static str,
    /// Whether it is there.
    present: fn() -> bool,
}

const NEEDS: &[Need] = &[
    Need {
        package: "build-essential",
        why: "links Rust programs and compiles SQLite and llama.cpp (cc, g++, objdump)",
        present: || {
            run::answers("cc", &["--version"])
                && run::answers("c++", &["--version"])
                && run::answers("objdump", &["--version"])
        },
    },
    Need {
        package: "cmake",
        why: "configures the build of llama.cpp",
        present: || run::answers("cmake", &["--version"]),
    },
    Need {
        package: "clang",
        why: "gives the binding generator of llama.cpp its headers",
        present: || run::answers("clang", &["--version"]),
    },
    Need {
        package: "libclang-dev",
        why: "is the library the binding generator of llama.cpp loads",
        present: libclang_is_present,
    },
    Need {
        package: "ccache",
        why: "keeps compiled llama.cpp files, so that a second build takes seconds",
        present: || run::answers("ccache", &["--version"]),
    },
    Need {
        package: "python3",
        why: "runs the services of the lab and unpacks the test model",
        present: || run::answers("python3", &["--version"]),
    },
    Need {
        package: "python3-venv",
        why: "gives a pip of its own to fetch the package of the test model",
        present: || run::answers("python3", &["-c", "import venv, ensurepip"]),
    },
];

fn libclang_is_present() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let named = |dir: &Path| {
        std::fs::read_dir(dir).is_ok_and(|entries| {
            entries.flatten().any(|e| {
                let name = e.file_name().to_string_lossy().into_owned();
                name.starts_with("libclang.so") || name.starts_with("libclang-")
            })
        })
    };
    let llvm = std::fs::read_dir("/usr/lib").is_ok_and(|entries| {
        entries.flatten().any(|e| {
            e.file_name().to_string_lossy().starts_with("llvm-") && named(&e.path().join("lib"))
        })
    });
    llvm || named(Path::new("/usr/lib64")) || named(Path::new("/usr/lib/x86_64-linux-gnu"))
}

/// Installs what is missing. When nothing is, nothing is run.
pub(crate) fn prerequisites() -> Result<()> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|n| !(n.present)()).collect();
    if missing.is_empty() {
        println!("setup: everything a build needs is here");
        return Ok(());
    }
    for need in &missing {
        println!("setup: installing {}: it {}", need.package, need.why);
    }
    let packages: Vec<&str> = missing.iter().map(|n| n.package).collect();
    if !run::answers("apt-get", &["--version"]) {
        bail!(
            "apt-get is not here; install by hand what these Debian packages hold: {}",
            packages.join(", ")
        );
    }
    run::shown(apt(&["update"])?.env("DEBIAN_FRONTEND", "noninteractive"))?;
    let mut install = apt(&["install", "-y", "--no-install-recommends"])?;
    run::shown(
        install
            .args(&packages)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )?;
    for need in missing {
        if !(need.present)() {
            bail!(
                "{} is installed, but what it brings is not found",
                need.package
            );
        }
    }
    Ok(())
}

/// `apt-get` with the right to install.
fn apt(args: &[&str]) -> Result<Command> {
    let uid = run::read(Command::new("id").arg("-u")).context("the user is unknown")?;
    let mut command = if uid.trim() == "0" {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg("apt-get");
        sudo
    };
    command.args(args);
    Ok(command)
}

/// Says which test runner there is.
pub(crate) fn has_nextest() -> bool {
    let found = run::answers("cargo", &["nextest", "--version"]);
    if !found {
        println!(
            "setup: cargo-nextest is not here; `cargo test` runs the same tests, slow ones among them"
        );
    }
    found
}
