//! How llama.cpp was built (inference 10.3): by six flags of ours, never by ggml's defaults, which
//! depend on the machine and on `SOURCE_DATE_EPOCH`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::tally::Tally;
use crate::place::Place;
use crate::run;

const ON: [&str; 6] = [
    "GGML_SSE42",
    "GGML_AVX",
    "GGML_AVX2",
    "GGML_FMA",
    "GGML_F16C",
    "GGML_BMI2",
];

/// The kernel that the test model spends its time in.
const KERNEL: &str = "ggml_vec_dot_q4_1_q8_1";

/// Checks every build of llama.cpp in the target folder that is complete.
pub(super) fn check(place: &Place) -> Result<Tally> {
    let builds = builds(&place.target.join("debug/build"))?;
    let mut sum = Tally::default();
    for out in &builds {
        println!("{}", out.display());
        for (what, ok) in judge(out)? {
            println!("  {} {what}", if ok { "ok    " } else { "FAILED" });
            sum.add(&Tally::of(ok));
        }
    }
    if sum == Tally::default() {
        println!("  FAILED there is no build of llama.cpp; part `fast` makes one");
        return Ok(Tally::of(false));
    }
    Ok(sum)
}

fn builds(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(e) => return Err(e).with_context(|| format!("`{}`", folder.display())),
    };
    for entry in entries.flatten() {
        let out = entry.path().join("out");
        let ours = entry
            .file_name()
            .to_string_lossy()
            .starts_with("llama-cpp-sys-2-");
        if ours && out.join("build/CMakeCache.txt").is_file() && library(&out).is_some() {
            found.push(out);
        }
    }
    found.sort();
    Ok(found)
}

fn library(out: &Path) -> Option<PathBuf> {
    ["lib/libggml-cpu.a", "lib64/libggml-cpu.a"]
        .iter()
        .map(|name| out.join(name))
        .find(|path| path.is_file())
}

fn judge(out: &Path) -> Result<Vec<(String, bool)>> {
    let cache = std::fs::read_to_string(out.join("build/CMakeCache.txt"))?;
    let mut found = flags(&cache);
    let library = library(out).context("`libggml-cpu.a` is missing")?;
    let code = run::read(
        Command::new("objdump")
            .arg(format!("--disassemble={KERNEL}"))
            .arg("--no-show-raw-insn")
            .arg(library),
    )?;
    for instruction in ["ymm", "vfmadd"] {
        found.push((
            format!("`{KERNEL}` has {instruction}"),
            code.contains(instruction),
        ));
    }
    Ok(found)
}

/// `NAME:BOOL=ON` for the six and `OFF` for the native build.
fn flags(cache: &str) -> Vec<(String, bool)> {
    let value = |name: &str| {
        cache.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.split(':').next() == Some(name)).then_some(value)
        })
    };
    let mut found: Vec<_> = ON
        .iter()
        .map(|name| (format!("{name} is ON"), value(name) == Some("ON")))
        .collect();
    found.push((
        "GGML_NATIVE is OFF".to_owned(),
        value("GGML_NATIVE") == Some("OFF"),
    ));
    found
}

#[cfg(test)]
mod tests {
    use super::flags;

    #[test]
    fn a_flag_that_is_off_or_absent_fails() {
        let cache = "GGML_AVX:BOOL=ON\nGGML_AVX2:BOOL=OFF\nGGML_NATIVE:BOOL=OFF\n";
        let failed: Vec<String> = flags(cache)
            .into_iter()
            .filter(|(_, ok)| !ok)
            .map(|(what, _)| what)
            .collect();
        assert_eq!(
            failed,
            [
                "GGML_SSE42 is ON",
                "GGML_AVX2 is ON",
                "GGML_FMA is ON",
                "GGML_F16C is ON",
                "GGML_BMI2 is ON"
            ]
        );
    }
}
