//! `trigger`: the restart file that a supervisor on the box watches.

use std::path::Path;

use serde_json::Value;

use super::{Effect, Preview, not_replaced, replace_file};

pub(super) fn preview(file: &Path) -> Preview {
    Preview {
        now: Value::Null,
        after: None,
        choices: Vec::new(),
        effect: format!(
            "`{}` is written; the supervisor restarts the service.",
            file.display()
        ),
        inverse: None,
    }
}

/// The content is the identity of the capability: a supervisor that sees the same one again knows
/// that it has restarted already (protocols.md 10.1.2).
pub(super) fn perform(file: &Path, jti: &str) -> Effect {
    match replace_file(file, format!("{jti}\n").as_bytes()) {
        Ok(()) => Effect::succeeded(format!("{} written", file.display())),
        Err(error) => not_replaced(file, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_appears_whole_with_the_identity_of_the_capability() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("restart");
        assert_eq!(perform(&file, "abc").outcome, "succeeded");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "abc\n");
        assert_eq!(perform(&file, "def").outcome, "succeeded");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "def\n");
    }

    #[test]
    fn a_folder_that_is_not_there_is_a_definite_failure() {
        let effect = perform(Path::new("/nowhere/restart"), "abc");
        assert_eq!(
            (effect.outcome.as_str(), effect.code.as_str()),
            ("failed", "not_found")
        );
    }
}
