//! The model, where the runner has one.

use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

/// `[model]` of a site; `None`, said aloud, without a model to test with.
pub(crate) fn section() -> Option<String> {
    let Some(path) = std::env::var_os("SENTINEL_TEST_MODEL").map(PathBuf::from) else {
        eprintln!("SKIPPED: `SENTINEL_TEST_MODEL` names no model file");
        return None;
    };
    let digest = Sha256::digest(std::fs::read(&path).unwrap());
    let sha256 = data_encoding::HEXLOWER.encode(&digest);
    Some(of(&path.display().to_string(), &sha256))
}

/// `[model]` with any file and digest.
pub(crate) fn of(file: &str, sha256: &str) -> String {
    format!("\n[model]\nfile = \"{file}\"\nsha256 = \"{sha256}\"\nn_ctx = 4096\n")
}
