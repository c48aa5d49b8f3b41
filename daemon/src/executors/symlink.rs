//! `symlink`: the link that shows the release in force is moved to another release.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use super::{
    Effect, Failure, Preview, beside, changed_since, invalid, not_replaced, replace, swapped, text,
};

pub(super) fn preview(
    link: &Path,
    releases: &Path,
    change: Option<&Value>,
) -> Result<Preview, Failure> {
    let now = shown(link)?;
    let after = match change {
        Some(change) => Some(Value::from(checked(link, releases, change)?)),
        None => None,
    };
    let mut choices = Vec::new();
    for entry in fs::read_dir(releases).map_err(|e| Failure::file(releases, &e))? {
        let entry = entry.map_err(|e| Failure::file(releases, &e))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            choices.extend(entry.file_name().into_string());
        }
    }
    choices.sort();
    Ok(Preview {
        now: Value::from(now),
        after,
        choices: choices.into_iter().map(Value::from).collect(),
        effect: "The release link is replaced; the supervisor restarts the service.".to_owned(),
        inverse: change.and_then(swapped),
    })
}

pub(super) fn perform(link: &Path, releases: &Path, change: &Value) -> Effect {
    let to = match checked(link, releases, change) {
        Ok(to) => to,
        Err(failure) => return Effect::failed(&failure),
    };
    // The new link is spelled as the old one was: relative stays relative.
    let target = match fs::read_link(link) {
        Ok(old) => old.with_file_name(&to),
        Err(error) => return Effect::failed(&Failure::file(link, &error)),
    };
    let made = beside(link).and_then(|new| symlink(&target, &new).map(|()| new));
    let replaced = match made {
        Ok(new) => replace(&new, link),
        Err(error) => Err((false, error)),
    };
    match replaced {
        Ok(()) => Effect::succeeded(format!("{} -> {}", link.display(), target.display())),
        Err(error) => not_replaced(link, error),
    }
}

/// The version that the link shows.
fn shown(link: &Path) -> Result<String, Failure> {
    let target = fs::read_link(link).map_err(|e| Failure::file(link, &e))?;
    let name = target.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned)
        .ok_or_else(|| Failure::new("unreadable", "the link shows no release"))
}

/// The release to go to, if the link still shows `from` and the release is there.
fn checked(link: &Path, releases: &Path, change: &Value) -> Result<String, Failure> {
    let (from, to) = (text(change, "from")?, text(change, "to")?);
    if to.is_empty() || to.contains('/') || to.starts_with('.') {
        return Err(invalid("`to` names no release"));
    }
    let now = shown(link)?;
    if now != from {
        return Err(changed_since(&Value::from(from), &Value::from(now)));
    }
    // The folder itself, not what a link of that name leads to.
    match fs::symlink_metadata(releases.join(to)) {
        Ok(meta) if meta.is_dir() => Ok(to.to_owned()),
        _ => Err(Failure::new("no_release", format!("`{to}` is not there"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Site {
        root: tempfile::TempDir,
    }

    impl Site {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            for version in ["1.0", "1.1"] {
                fs::create_dir_all(root.path().join("releases").join(version)).unwrap();
            }
            symlink("releases/1.1", root.path().join("current")).unwrap();
            Self { root }
        }

        fn perform(&self, from: &str, to: &str) -> Effect {
            let (link, releases) = (
                self.root.path().join("current"),
                self.root.path().join("releases"),
            );
            perform(&link, &releases, &json!({"from": from, "to": to}))
        }

        fn shows(&self) -> String {
            let target = fs::read_link(self.root.path().join("current")).unwrap();
            target.to_str().unwrap().to_owned()
        }
    }

    #[test]
    fn the_link_moves_to_the_release_and_stays_relative() {
        let site = Site::new();
        assert_eq!(site.perform("1.1", "1.0").outcome, "succeeded");
        assert_eq!(site.shows(), "releases/1.0");
        let left = fs::read_dir(site.root.path()).unwrap().count();
        assert_eq!(left, 2);
    }

    #[test]
    fn nothing_changes_when_the_link_shows_something_else_or_the_release_is_gone() {
        let site = Site::new();
        for (from, to, code) in [
            ("1.0", "1.0", "changed_since"),
            ("1.1", "0.9", "no_release"),
            ("1.1", "../../etc", "invalid_change"),
            ("1.1", "..", "invalid_change"),
        ] {
            let effect = site.perform(from, to);
            assert_eq!(
                (effect.outcome.as_str(), effect.code.as_str()),
                ("failed", code)
            );
            assert_eq!(site.shows(), "releases/1.1");
        }
    }

    #[test]
    fn the_dry_run_shows_now_after_choices_and_the_way_back() {
        let site = Site::new();
        let (link, releases) = (
            site.root.path().join("current"),
            site.root.path().join("releases"),
        );
        let change = json!({"incident": "inc_a", "deploy": "d-2", "from": "1.1", "to": "1.0"});
        let seen = preview(&link, &releases, Some(&change)).unwrap();
        assert_eq!((seen.now, seen.after), (json!("1.1"), Some(json!("1.0"))));
        assert_eq!(seen.choices, [json!("1.0"), json!("1.1")]);
        let back = json!({"incident": "inc_a", "deploy": "d-2", "from": "1.0", "to": "1.1"});
        assert_eq!(seen.inverse, Some(back));
        assert_eq!(site.shows(), "releases/1.1");
    }
}
