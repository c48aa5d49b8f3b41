//! `value`: one value in one TOML file, the rest of the file untouched.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toml_edit::{DocumentMut, Item};

use super::{
    Effect, Failure, Preview, changed_since, invalid, member, not_replaced, replace_file, swapped,
    text,
};

const MAX_FILE: usize = 1 << 20;

pub(super) fn preview(
    file: &Path,
    key: &str,
    bounds: (i64, i64),
    change: Option<&Value>,
) -> Result<Preview, Failure> {
    let now = json_of(item(&read(file)?.1, key)?)?;
    let after = match change {
        Some(change) => Some(json_of(item(&changed(file, key, bounds, change)?.1, key)?)?),
        None => None,
    };
    Ok(Preview {
        now,
        after,
        choices: vec![json!(bounds.0), json!(bounds.1)],
        effect: "One value of the file is replaced; the supervisor restarts the service."
            .to_owned(),
        inverse: change.and_then(swapped),
    })
}

pub(super) fn perform(file: &Path, key: &str, bounds: (i64, i64), change: &Value) -> Effect {
    let (before, document) = match changed(file, key, bounds, change) {
        Ok(done) => done,
        Err(failure) => return Effect::failed(&failure),
    };
    // The backup is whole before the file changes.
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".sentinel-backup");
    if let Err(error) = replace_file(&file.with_file_name(name), before.as_bytes()) {
        return Effect::failed(&Failure::file(file, &error.1));
    }
    match replace_file(file, document.to_string().as_bytes()) {
        Ok(()) => Effect::succeeded(format!("{}: {change}", file.display())),
        Err(error) => not_replaced(file, error),
    }
}

/// The text of the file and the document after the change.
fn changed(
    file: &Path,
    key: &str,
    bounds: (i64, i64),
    change: &Value,
) -> Result<(String, DocumentMut), Failure> {
    if text(change, "key")? != key {
        return Err(invalid("`key` is not the configured one"));
    }
    let (from, to) = (member(change, "from")?, member(change, "to")?);
    if let Some(number) = to.as_i64()
        && !(bounds.0..=bounds.1).contains(&number)
    {
        return Err(Failure::new("out_of_bounds", format!("`{number}`")));
    }
    let (before, mut document) = read(file)?;
    let now = json_of(item(&document, key)?)?;
    if now != *from {
        return Err(changed_since(from, &now));
    }
    let mut fresh = match to {
        Value::Number(n) => n.as_i64().map(toml_edit::Value::from),
        Value::String(text) => Some(toml_edit::Value::from(text.as_str())),
        Value::Bool(truth) => Some(toml_edit::Value::from(*truth)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
    .ok_or_else(|| invalid("`to` is no whole number, text or truth value"))?;
    if std::mem::discriminant(&now) != std::mem::discriminant(to) {
        return Err(invalid("`to` is of another type than what is there"));
    }
    let place = key
        .split('.')
        .try_fold(document.as_item_mut(), |item, part| item.get_mut(part))
        .ok_or_else(|| invalid("the key is gone"))?;
    if let Some(old) = place.as_value() {
        // Comments and spaces around the old value stay.
        *fresh.decor_mut() = old.decor().clone();
    }
    *place = Item::Value(fresh);
    Ok((before, document))
}

fn read(file: &Path) -> Result<(String, DocumentMut), Failure> {
    let text = fs::read_to_string(file).map_err(|e| Failure::file(file, &e))?;
    if text.len() > MAX_FILE {
        return Err(Failure::new("too_large", format!("`{}`", file.display())));
    }
    let document = text
        .parse::<DocumentMut>()
        .map_err(|e| Failure::new("malformed", e.message().to_owned()))?;
    Ok((text, document))
}

fn item<'a>(document: &'a DocumentMut, key: &str) -> Result<&'a Item, Failure> {
    key.split('.')
        .try_fold(document.as_item(), |item, part| item.get(part))
        .ok_or_else(|| Failure::new("not_found", format!("the file has no value `{key}`")))
}

fn json_of(item: &Item) -> Result<Value, Failure> {
    match item.as_value() {
        Some(toml_edit::Value::Integer(n)) => Ok(Value::from(*n.value())),
        Some(toml_edit::Value::String(text)) => Ok(Value::from(text.value().as_str())),
        Some(toml_edit::Value::Boolean(truth)) => Ok(Value::from(*truth.value())),
        _ => Err(invalid("the value is no whole number, text or truth value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Pools.\nname = \"checkout\"\n\n[pool]\nsize = 8 # small\nwait = true\n";

    fn file() -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("config.toml");
        fs::write(&path, FILE).unwrap();
        (root, path)
    }

    fn change(from: Value, to: Value) -> Value {
        json!({"incident": "inc_a", "key": "pool.size", "from": from, "to": to})
    }

    #[test]
    fn one_value_changes_and_comments_stay_and_the_old_file_is_kept() {
        let (_root, path) = file();
        let effect = perform(&path, "pool.size", (4, 64), &change(json!(8), json!(16)));
        assert_eq!(effect.outcome, "succeeded");
        let now = fs::read_to_string(&path).unwrap();
        assert_eq!(now, FILE.replace("size = 8 # small", "size = 16 # small"));
        let backup = path.with_file_name("config.toml.sentinel-backup");
        assert_eq!(fs::read_to_string(backup).unwrap(), FILE);
    }

    #[test]
    fn nothing_changes_when_the_value_the_bounds_or_the_type_differ() {
        let (_root, path) = file();
        let other_key = json!({"key": "name", "from": "checkout", "to": "x"});
        for (change, code) in [
            (change(json!(9), json!(16)), "changed_since"),
            (change(json!(8), json!(65)), "out_of_bounds"),
            (change(json!(8), json!(3)), "out_of_bounds"),
            (change(json!(8), json!("16")), "invalid_change"),
            (change(json!(8), json!(1.5)), "invalid_change"),
            (change(json!(8), Value::Null), "invalid_change"),
            (other_key, "invalid_change"),
        ] {
            let effect = perform(&path, "pool.size", (4, 64), &change);
            assert_eq!(
                (effect.outcome.as_str(), effect.code.as_str()),
                ("failed", code)
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), FILE);
        }
    }

    #[test]
    fn the_dry_run_reads_now_and_after_and_writes_nothing() {
        let (_root, path) = file();
        let seen = preview(&path, "pool.size", (4, 64), None).unwrap();
        assert_eq!((seen.now, seen.after), (json!(8), None));
        let change = change(json!(8), json!(16));
        let seen = preview(&path, "pool.size", (4, 64), Some(&change)).unwrap();
        assert_eq!(seen.after, Some(json!(16)));
        assert_eq!(seen.inverse.unwrap()["to"], json!(8));
        assert_eq!(fs::read_to_string(&path).unwrap(), FILE);
        assert_eq!(
            preview(&path, "pool.depth", (4, 64), None)
                .unwrap_err()
                .code,
            "not_found"
        );
    }
}
