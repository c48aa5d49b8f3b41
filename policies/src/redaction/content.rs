//! What a line says: its text without the prefix, the envelope and the line end.

use super::prefix::{self, Prefix};
use super::scan::{byte, run_end, slice};

/// Content of a line.
pub(super) struct Content {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) prefix: Prefix,
}

/// The line without its prefix, its line end and, in a record of a collector, its envelope.
pub(super) fn content(line: &str) -> Content {
    let end = line.trim_end_matches(['\r', '\n']).len();
    let prefix = prefix::of(slice(line, 0, end));
    let (from, to) = envelope(line, prefix.length, end).unwrap_or((prefix.length, end));
    Content { from, to, prefix }
}

/// The text of a JSON record: the string of the member that holds the message, without the
/// escaped line end.
fn envelope(line: &str, from: usize, end: usize) -> Option<(usize, usize)> {
    const MEMBERS: &[&str] = &[
        "\"log\":",
        "\"message\":",
        "\"msg\":",
        "\"MESSAGE\":",
        "\"textPayload\":",
        "\"line\":",
    ];
    if byte(line, from) != Some(b'{') || byte(line, end.checked_sub(1)?) != Some(b'}') {
        return None;
    }
    let record = slice(line, from, end);
    let at = MEMBERS
        .iter()
        .find_map(|m| record.find(m).map(|n| from + n + m.len()))?;
    let quote = run_end(line, at, |b| b == b' ');
    if byte(line, quote) != Some(b'"') {
        return None;
    }
    let start = quote + 1;
    let mut escaped = false;
    let length = slice(line, start, end).bytes().position(|b| {
        let closes = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        closes
    })?;
    let text = slice(line, start, start + length);
    Some((
        start,
        start + text.strip_suffix("\\n").unwrap_or(text).len(),
    ))
}

/// A record of the container runtime whose text has no line end.
pub(super) fn docker_partial(line: &str) -> bool {
    line.starts_with("{\"log\":\"")
        && line.contains("\",\"stream\":\"")
        && !line.contains("\\n\",\"stream\":\"")
}
