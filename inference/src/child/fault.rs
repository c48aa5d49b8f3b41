//! Faults on demand, so that each row of the failure table is a test (inference 12). Debug builds only.

/// What to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Abort after a few tokens of an answer, as a C++ assertion would.
    CrashMidDecode,
    /// Stop working without a word once a request comes in.
    Hang,
    /// Answer a request with bytes that are no frame.
    GarbageFrame,
    /// Abort while the model is loaded.
    AbortAtLoad,
}

impl Fault {
    /// The fault of that name; `None` for an unknown name and in a release build.
    pub(crate) fn named(name: &str) -> Option<Self> {
        if !cfg!(debug_assertions) {
            return None;
        }
        match name {
            "crash-mid-decode" => Some(Self::CrashMidDecode),
            "hang" => Some(Self::Hang),
            "garbage-frame" => Some(Self::GarbageFrame),
            "abort-at-load" => Some(Self::AbortAtLoad),
            _ => None,
        }
    }
}
