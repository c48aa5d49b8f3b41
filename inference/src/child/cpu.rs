//! The processor check (inference 10.3): the kernels are built for x86-64-v3, and a processor without it would die
//! with SIGILL somewhere inside ggml. So this comes before anything of ggml is touched.

use crate::provider::{Code, Error};

macro_rules! features {
    ($($name:tt),+) => {
        [$(($name, std::arch::is_x86_feature_detected!($name)),)+]
    };
}

/// The features that the kernels use.
///
/// # Errors
/// `cpu_unsupported` with the names of those that are missing.
pub(crate) fn check() -> Result<Vec<String>, Error> {
    let features = features!["sse4.2", "avx", "avx2", "fma", "f16c", "bmi2"];
    let missing: Vec<&str> = features
        .iter()
        .filter(|(_, there)| !there)
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        Ok(features
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect())
    } else {
        Err(Error::new(
            Code::CpuUnsupported,
            format!("the processor lacks {}", missing.join(", ")),
        ))
    }
}
