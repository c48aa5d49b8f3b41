//! Files that others could change or read (operations 1, 1.8, 5.2).

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::load::whole_file;
use super::problem::Problem;

/// Files of a state folder that nobody else may read.
const PRIVATE: &[&str] = &[
    "etc/guard-kek",
    "etc/redact-key",
    "epoch.key",
    "guard.db",
    "guard.db-wal",
    "sentinel.db",
    "sentinel.db-wal",
    "sentinel.db-shm",
    "anchor/head",
];

/// The files of a state folder that are more open than they should be; an absent one is not.
#[must_use]
pub fn open_files(state: &Path) -> Vec<Problem> {
    let private = PRIVATE.iter().map(|name| (*name, 0o077, "600"));
    private
        .chain([("etc/policy.toml", 0o022, "go-w")])
        .filter_map(|(name, mask, fix)| look(&state.join(name), mask, fix))
        .collect()
}

/// The configuration file may be written by its owner alone.
pub(super) fn writable(file: &Path) -> Option<Problem> {
    look(file, 0o022, "go-w")
}

fn look(file: &Path, mask: u32, fix: &str) -> Option<Problem> {
    let mode = std::fs::metadata(file).ok()?.mode();
    let open = mode & mask;
    (open != 0).then(|| {
        let may = if open & 0o022 == 0 { "read" } else { "written" };
        let shown = file.display();
        let message = format!("may be {may} by others (mode {:03o})", mode & 0o777);
        Problem {
            help: format!("chmod {fix} {shown}"),
            ..whole_file(&shown.to_string(), "SN-0113", message)
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::{PRIVATE, open_files};

    #[test]
    fn each_file_that_others_could_read_or_change_is_named_with_its_chmod() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["etc", "anchor"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let set = |name: &str, mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, "x").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for name in PRIVATE {
            set(name, 0o600);
        }
        set("etc/policy.toml", 0o644);
        assert_eq!(open_files(dir.path()), vec![]);
        for (name, mode, fix) in [
            ("guard.db", 0o666, "chmod 600 "),
            ("etc/redact-key", 0o640, "chmod 600 "),
            ("etc/policy.toml", 0o664, "chmod go-w "),
        ] {
            set(name, mode);
            let found = open_files(dir.path());
            let [one] = found.as_slice() else {
                panic!("{name}: {found:?}");
            };
            assert_eq!(one.code, "SN-0113");
            assert!(one.file.ends_with(name), "{}", one.file);
            assert!(one.help.starts_with(fix), "{}", one.help);
            std::fs::remove_file(dir.path().join(name)).unwrap();
        }
    }

    #[test]
    fn a_configuration_that_others_could_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sentinel.toml");
        std::fs::write(&path, "schema = 1\n").unwrap();
        for (mode, taken) in [(0o644, true), (0o664, false), (0o646, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(
                crate::config::load(&path).config.is_some(),
                taken,
                "{mode:o}"
            );
        }
    }
}
