//! Executors: what a remediate worker does to a target, and the dry run that shows it before.
//!
//! One file each. An executor has no choices left: it does what its checked arguments say or
//! nothing. `from` differing from what is there is `changed_since`, without an effect
//! (protocols.md 10.1.1).

mod spec;
mod spender;
mod symlink;
mod trigger;
mod value;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::Failure;

pub use spec::{ExecutorKind, ExecutorSpec};
pub(crate) use spender::remediate;
pub use spender::{Order, Release};

/// What an executor would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preview {
    /// What is in force now; null where there is nothing to read.
    pub now: Value,
    /// What would be in force after the change that was asked about.
    pub after: Option<Value>,
    /// What else there is to choose: releases, or the least and the greatest value.
    pub choices: Vec<Value>,
    /// What happens around it, one sentence.
    pub effect: String,
    /// The change that leads back; `None` when nothing does.
    pub inverse: Option<Value>,
}

/// What became of an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effect {
    /// `succeeded`, `failed` (nothing was changed) or `unknown`.
    pub outcome: String,
    /// Why.
    pub code: String,
    /// What was seen before and after, for the record.
    pub evidence: String,
}

impl Effect {
    fn succeeded(evidence: impl Into<String>) -> Self {
        Self {
            outcome: "succeeded".to_owned(),
            code: "done".to_owned(),
            evidence: evidence.into(),
        }
    }

    /// Definitely nothing was changed.
    fn failed(failure: &Failure) -> Self {
        Self {
            outcome: "failed".to_owned(),
            code: failure.code.to_owned(),
            evidence: failure.detail.clone(),
        }
    }

    /// Nobody knows what was changed.
    fn unknown(code: &str, evidence: impl Into<String>) -> Self {
        Self {
            outcome: "unknown".to_owned(),
            code: code.to_owned(),
            evidence: evidence.into(),
        }
    }
}

/// Looks at the target and says what the change would do. Changes nothing.
///
/// # Errors
/// When the target cannot be read or the change is not one for this executor.
pub fn preview(executor: &ExecutorSpec, change: Option<&Value>) -> Result<Preview, Failure> {
    match &executor.kind {
        ExecutorKind::Symlink { link, releases } => symlink::preview(link, releases, change),
        ExecutorKind::Value {
            file,
            key,
            min,
            max,
        } => value::preview(file, key, (*min, *max), change),
        ExecutorKind::Trigger { file } => Ok(trigger::preview(file)),
    }
}

/// Performs the change, once.
fn perform(executor: &ExecutorSpec, change: &Value, jti: &str) -> Effect {
    match &executor.kind {
        ExecutorKind::Symlink { link, releases } => symlink::perform(link, releases, change),
        ExecutorKind::Value {
            file,
            key,
            min,
            max,
        } => value::perform(file, key, (*min, *max), change),
        ExecutorKind::Trigger { file } => trigger::perform(file, jti),
    }
}

fn invalid(detail: impl Into<String>) -> Failure {
    Failure::new("invalid_change", detail)
}

fn changed_since(wanted: &Value, found: &Value) -> Failure {
    Failure::new(
        "changed_since",
        format!("`{wanted}` was to be replaced, but `{found}` is there"),
    )
}

fn member<'a>(change: &'a Value, name: &str) -> Result<&'a Value, Failure> {
    change
        .get(name)
        .ok_or_else(|| invalid(format!("`{name}` is missing")))
}

fn text<'a>(change: &'a Value, name: &str) -> Result<&'a str, Failure> {
    member(change, name)?
        .as_str()
        .ok_or_else(|| invalid(format!("`{name}` is no text")))
}

/// The change that leads back: `from` and `to` exchanged.
fn swapped(change: &Value) -> Option<Value> {
    let mut back = change.as_object()?.clone();
    let (from, to) = (back.get("from")?.clone(), back.get("to")?.clone());
    back.insert("from".to_owned(), to);
    back.insert("to".to_owned(), from);
    Some(Value::Object(back))
}

/// A name beside `path` that nobody else uses: the worker is alone with its lease, and what an
/// earlier one left behind is removed.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.sentinel"));
    match fs::remove_file(&beside) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(beside),
    }
}

/// Puts `prepared` in the place of `path` in one step and makes that durable. The first value of
/// an error tells whether the step may have been taken.
fn replace(prepared: &Path, path: &Path) -> Result<(), (bool, io::Error)> {
    fs::rename(prepared, path).map_err(|e| (false, e))?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|e| (true, e))
}

/// Writes a file beside `path` and puts it there in one step.
fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), (bool, io::Error)> {
    let before = |e| (false, e);
    let prepared = beside(path).map_err(before)?;
    let mode = fs::metadata(path).ok().map(|meta| meta.permissions());
    let mut file = File::create(&prepared).map_err(before)?;
    file.write_all(bytes).map_err(before)?;
    if let Some(mode) = mode {
        // By the open file: the worker's filter knows no change of mode by path.
        file.set_permissions(mode).map_err(before)?;
    }
    file.sync_all().map_err(before)?;
    replace(&prepared, path)
}

/// The effect of a replacement that did not go through.
fn not_replaced(path: &Path, (begun, error): (bool, io::Error)) -> Effect {
    if begun {
        Effect::unknown("not_durable", error.to_string())
    } else {
        Effect::failed(&Failure::file(path, &error))
    }
}
