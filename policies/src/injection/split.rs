//! Cuts a text into the units that can be removed: sentences, quoted values, bare field values.

use super::Mode;

/// Words that begin an order when a colon follows; the colon does not end the sentence then.
const MARKERS: &[&str] = &[
    "agent",
    "ai",
    "assistant",
    "attention",
    "human",
    "important",
    "instruction",
    "instructions",
    "note",
    "prompt",
    "reminder",
    "system",
    "urgent",
    "user",
    "warning",
];

/// Log levels; they stay with the prefix of a line.
const LEVELS: &[&str] = &[
    "trace", "debug", "info", "notice", "warn", "warning", "error", "err", "critical", "crit",
    "fatal", "alert", "emerg", "panic", "severe", "fine",
];

/// Start and end of every unit, in order. Text between units (prefixes, keys, quotes) stays.
pub(super) fn units(text: &str, mode: Mode) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        let skip = match mode {
            Mode::Telemetry => prefix_len(body),
            Mode::Prose | Mode::Typed | Mode::Control => 0,
        };
        line_units(text, at + skip, at + body.len(), &mut found);
        at += line.len();
    }
    found
}

/// Length of time stamp, level, instance and the like at the start of a log line.
pub(super) fn prefix_len(line: &str) -> usize {
    let mut length = 0;
    for word in line.split_inclusive(' ').take(8) {
        let bare = word
            .trim()
            .trim_matches(|c: char| matches!(c, '[' | ']' | ':' | '|' | '-' | '(' | ')' | ','));
        let digits = bare.bytes().filter(u8::is_ascii_digit).count();
        let letters = bare.bytes().filter(u8::is_ascii_alphabetic).count();
        // A time stamp has more digits than letters, an instance a dash and a digit.
        let stamp = digits > 0
            && (digits > letters || bare.contains('-'))
            && bare.len() < 48
            && bare
                .bytes()
                .all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'='));
        let level = LEVELS.contains(&bare.to_ascii_lowercase().as_str());
        if !(stamp || level || bare.is_empty()) {
            break;
        }
        length += word.len();
    }
    length
}

fn line_units(text: &str, from: usize, end: usize, found: &mut Vec<(usize, usize)>) {
    let mut start = from;
    let mut chars = text
        .get(from..end)
        .unwrap_or("")
        .char_indices()
        .map(|(n, c)| (from + n, c))
        .peekable();
    let mut previous = ' ';
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |&(_, c)| c);
        let quote = matches!(c, '"' | '`')
            || (c == '\'' && (!previous.is_alphanumeric() || !next.is_alphanumeric()));
        let stop = match c {
            '.' | '!' | '?' | ';' => next.is_whitespace() || chars.peek().is_none(),
            ':' => next.is_whitespace() && !ends_with_marker(text.get(start..at).unwrap_or("")),
            '=' => is_field(text.get(start..at).unwrap_or("")),
            '|' | '{' | '}' => true,
            _ => quote,
        };
        if stop {
            if c == '=' {
                // The key stays: the unit before it ends where the key begins.
                let before = text.get(start..at).unwrap_or("");
                let key = before
                    .rsplit(char::is_whitespace)
                    .next()
                    .unwrap_or("")
                    .len();
                push(text, start, at - key, found);
                start = at + 1;
            } else {
                // The sign that ends a sentence goes with it, a quote or colon stays.
                let with_sign = matches!(c, '.' | '!' | '?');
                push(
                    text,
                    start,
                    if with_sign { at + c.len_utf8() } else { at },
                    found,
                );
                start = at + c.len_utf8();
            }
        }
        previous = c;
    }
    push(text, start, end, found);
}

/// True when the text before `=` ends with a bare key.
fn is_field(before: &str) -> bool {
    let key = before.rsplit(char::is_whitespace).next().unwrap_or("");
    !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

fn ends_with_marker(before: &str) -> bool {
    let word = before
        .rsplit(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or("");
    MARKERS.contains(&word.to_ascii_lowercase().as_str())
}

fn push(text: &str, start: usize, end: usize, found: &mut Vec<(usize, usize)>) {
    let Some(unit) = text.get(start..end) else {
        return;
    };
    let left = unit.len() - unit.trim_start().len();
    let body = unit.trim();
    // A unit of a few bytes holds no two features.
    if body.len() >= 8 {
        found.push((start + left, start + left + body.len()));
    }
}
