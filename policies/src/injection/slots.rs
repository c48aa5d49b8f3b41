//! Cuts a log line into constants, typed slots and text slots (guardrails 7.3).
//!
//! A text slot is a place where somebody outside the program can write: a quoted value, the value
//! of a key that clients fill, the tail of an exception. A typed slot holds one number, time, id,
//! address or path. Everything else is a word of the program, until the templates of its source
//! say that it varies.

use super::split;
use crate::redaction::token;

/// Keys of log lines whose value a client can choose.
const USER_KEYS: &[&str] = &[
    "agent",
    "annotation",
    "body",
    "comment",
    "content",
    "cookie",
    "data",
    "description",
    "email",
    "file",
    "filename",
    "header",
    "headers",
    "host",
    "input",
    "label",
    "login",
    "name",
    "note",
    "origin",
    "param",
    "params",
    "path",
    "payload",
    "prompt",
    "q",
    "query",
    "reason",
    "referer",
    "referrer",
    "request",
    "response",
    "search",
    "subject",
    "tag",
    "target",
    "term",
    "text",
    "title",
    "ua",
    "uri",
    "url",
    "user",
    "user_agent",
    "useragent",
    "user-agent",
    "username",
    "value",
    "x-forwarded-for",
];

/// Keys whose value is the message of the program itself.
const MESSAGE_KEYS: &[&str] = &["event", "log", "message", "msg"];

/// Keys of which a program writes the value: it is a word even in quotes.
const OWN_KEYS: &[&str] = &[
    "caller",
    "component",
    "env",
    "instance",
    "kind",
    "level",
    "lvl",
    "logger",
    "method",
    "module",
    "severity",
    "service",
    "state",
    "status",
    "thread",
    "type",
];

/// Most pieces of one line; the rest is one text slot.
const MAX_PIECES: usize = 96;

/// What stands at a place of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A word of the program.
    Word,
    /// A number, also with a unit: sizes and shares.
    Number,
    /// A duration.
    Duration,
    /// A time stamp.
    Time,
    /// A version.
    Version,
    /// A hexadecimal id, a UUID, a pseudonym.
    Id,
    /// An address.
    Ip,
    /// A path or a URL without its query.
    Path,
    /// A place where somebody outside can write.
    Text,
}

/// One place of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: Kind,
}

/// The pieces of one line, in order; what lies between them is punctuation.
pub(crate) fn pieces(line: &str) -> Vec<Piece> {
    let head = split::prefix_len(line);
    let mut found = Vec::new();
    words(line, 0, head, &mut found);
    // A stamp at the head is never a message.
    for piece in &mut found {
        if piece.kind != Kind::Word {
            piece.kind = Kind::Time;
        }
    }
    Cutter { line, found }.body(head, line.len())
}

/// Adds the words of a range, each with the kind that its form has.
pub(crate) fn words(line: &str, from: usize, to: usize, found: &mut Vec<Piece>) {
    let mut at = from;
    while let Some((start, end)) = next_word(line, at, to) {
        found.push(Piece {
            start,
            end,
            kind: form(line.get(start..end).unwrap_or("")),
        });
        at = end.max(at.saturating_add(1));
    }
}

struct Cutter<'a> {
    line: &'a str,
    found: Vec<Piece>,
}

impl Cutter<'_> {
    fn body(mut self, from: usize, to: usize) -> Vec<Piece> {
        self.cut(from, to, 0);
        if self.found.len() > MAX_PIECES {
            let rest = self.found.split_off(MAX_PIECES);
            if let (Some(first), Some(last)) = (rest.first(), rest.last()) {
                self.found.push(Piece {
                    start: first.start,
                    end: last.end,
                    kind: Kind::Text,
                });
            }
        }
        self.found
    }

    fn cut(&mut self, from: usize, to: usize, depth: u8) {
        let mut at = from;
        while at < to {
            let Some(c) = self.line.get(at..to).and_then(|t| t.chars().next()) else {
                return;
            };
            if let Some((start, end, after)) = self.quoted(at, to, c) {
                self.value(start, end, true, depth);
                at = after;
            } else if let Some((start, end)) = next_word(self.line, at, to) {
                at = self.word(at, start, end, to, depth);
            } else {
                return;
            }
        }
    }

    /// The word that begins at `start`, unless a quote begins before it. Answers where to go on.
    fn word(&mut self, at: usize, start: usize, end: usize, to: usize, depth: u8) -> usize {
        let between = self.line.get(at..start).unwrap_or("");
        if let Some(skip) = between.find(['"', '\'', '`'])
            && at.saturating_add(skip) > at
        {
            return at.saturating_add(skip);
        }
        let word = self.line.get(start..end).unwrap_or("");
        let tail = self.line.get(end..to).unwrap_or("");
        let kind = form(word);
        self.found.push(Piece { start, end, kind });
        if let Some(rest) = tail.strip_prefix('=')
            && kind == Kind::Word
            && !rest.starts_with(['"', '\'', '`', '='])
        {
            let stop = rest
                .find([' ', '\t', ',', ';', '&', ')', ']', '}'])
                .unwrap_or(rest.len());
            let begin = end.saturating_add(1);
            self.value(begin, begin.saturating_add(stop), false, depth);
            return begin.saturating_add(stop).max(end);
        }
        if tail.starts_with(": ") && is_exception(word) {
            let begin = end.saturating_add(2);
            self.push(begin, to, Kind::Text);
            return to;
        }
        end
    }

    /// A value whose key is the piece before it.
    fn value(&mut self, start: usize, end: usize, quoted: bool, depth: u8) {
        let text = self.line.get(start..end).unwrap_or("");
        if text.trim().is_empty() {
            return;
        }
        let key = self.key_before(start);
        let named = |list: &[&str]| key.as_ref().is_some_and(|k| list.contains(&k.as_str()));
        // A JSON key is quoted too: it is followed by a colon.
        let after = self.line.get(end.saturating_add(1)..).unwrap_or("");
        if quoted && key.is_none() && after.trim_start().starts_with(':') && !text.contains(' ') {
            self.push(start, end, Kind::Word);
        } else if named(MESSAGE_KEYS) && depth == 0 {
            self.cut(start, end, 1);
        } else if named(USER_KEYS) || (quoted && !named(OWN_KEYS)) || text.contains(' ') {
            self.push(start, end, Kind::Text);
        } else {
            let mut inner = Vec::new();
            words(self.line, start, end, &mut inner);
            self.found.extend(inner);
        }
    }

    fn push(&mut self, start: usize, end: usize, kind: Kind) {
        let text = self.line.get(start..end).unwrap_or("");
        let left = text.len() - text.trim_start().len();
        let body = text.trim();
        if !body.is_empty() {
            let start = start.saturating_add(left);
            self.found.push(Piece {
                start,
                end: start.saturating_add(body.len()),
                kind,
            });
        }
    }

    /// The key that the value at `start` belongs to, lower case.
    fn key_before(&self, start: usize) -> Option<String> {
        let last = self.found.last()?;
        if last.kind == Kind::Text {
            return None;
        }
        let between = self.line.get(last.end..start)?;
        let joint: String = between
            .chars()
            .filter(|c| !matches!(c, '"' | '\'' | '`' | ' '))
            .collect();
        matches!(joint.as_str(), "=" | ":" | "=>").then(|| {
            self.line
                .get(last.start..last.end)
                .unwrap_or("")
                .rsplit('.')
                .next()
                .unwrap_or("")
                .to_ascii_lowercase()
        })
    }

    /// If a quoted value opens at `at`: its start, its end, and where to go on.
    fn quoted(&self, at: usize, to: usize, c: char) -> Option<(usize, usize, usize)> {
        if !matches!(c, '"' | '\'' | '`') {
            return None;
        }
        let before = self.line.get(..at)?.chars().next_back();
        if before.is_some_and(char::is_alphanumeric) {
            return None;
        }
        let start = at.saturating_add(1);
        let mut escaped = false;
        for (n, d) in self.line.get(start..to)?.char_indices() {
            let here = start.saturating_add(n);
            if escaped {
                escaped = false;
            } else if d == '\\' {
                escaped = true;
            } else if d == c {
                let next = self.line.get(here.saturating_add(1)..to)?.chars().next();
                if c == '\'' && next.is_some_and(char::is_alphanumeric) {
                    continue;
                }
                return Some((start, here, here.saturating_add(1)));
            }
        }
        // A quote that never closes hides everything behind it.
        (c == '"').then_some((start, to, to))
    }
}

/// `ValueError`, `java.io.IOException`, `Caused by: X`.
fn is_exception(word: &str) -> bool {
    (word.ends_with("Error") || word.ends_with("Exception") || word.ends_with("Warning"))
        && word.len() > 7
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
}

const fn is_punctuation(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\''
                | '`'
                | ','
                | ';'
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '='
                | '|'
                | '<'
                | '>'
        )
}

/// The next word at or behind `at`: its start and end, without signs that end a sentence.
fn next_word(line: &str, at: usize, to: usize) -> Option<(usize, usize)> {
    let mut at = at;
    loop {
        let rest = line.get(at..to)?;
        let start = at.saturating_add(rest.find(|c| !is_punctuation(c))?);
        let word = line.get(start..to)?;
        if word.starts_with(token::OPEN)
            && let Some(close) = word.find(token::CLOSE)
        {
            let end = close.saturating_add(token::CLOSE.len_utf8());
            return Some((start, start.saturating_add(end)));
        }
        let end = word.find(is_punctuation).unwrap_or(word.len());
        let trimmed = word.get(..end)?.trim_end_matches([':', '.', '!', '?']);
        if !trimmed.is_empty() {
            return Some((start, start.saturating_add(trimmed.len())));
        }
        // Signs alone are punctuation.
        at = start.saturating_add(end);
    }
}

/// The kind of a single word by its form.
pub(crate) fn form(word: &str) -> Kind {
    if word.starts_with(token::OPEN) {
        return Kind::Id;
    }
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    if word.contains('/') && word.len() > 1 && word.is_ascii() {
        return Kind::Path;
    }
    if digits == 0 {
        return Kind::Word;
    }
    let bare = word.trim_start_matches(['-', '+', '#', '$', '~', '@']);
    let number_len = bare
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | ',')))
        .unwrap_or(bare.len());
    let unit = bare.get(number_len..).unwrap_or("");
    let points = bare.matches('.').count();
    if number_len > 0 {
        if unit.is_empty() && points == 3 {
            return Kind::Ip;
        }
        if unit.is_empty() && points >= 2 {
            return Kind::Version;
        }
        match unit {
            "" | "%" | "b" | "B" | "k" | "K" | "M" | "G" | "kB" | "KB" | "MB" | "GB" | "TB"
            | "KiB" | "MiB" | "GiB" | "TiB" | "x" => return Kind::Number,
            "ns" | "us" | "\u{b5}s" | "ms" | "s" | "sec" | "m" | "min" | "h" | "d" => {
                return Kind::Duration;
            }
            _ => {}
        }
    }
    let all = |f: fn(char) -> bool| bare.chars().all(f);
    if all(|c| c.is_ascii_digit() || matches!(c, ':' | '-' | 'T' | 'Z' | '.' | '+')) && digits >= 4
    {
        return if points == 3 { Kind::Ip } else { Kind::Time };
    }
    let hexadecimal = bare.strip_prefix("0x").unwrap_or(bare);
    if hexadecimal.len() >= 6
        && hexadecimal
            .chars()
            .all(|c| c.is_ascii_hexdigit() || matches!(c, '-' | ':'))
    {
        return Kind::Id;
    }
    if unit.starts_with(['-', '+']) && points >= 2 && word.len() <= 32 {
        return Kind::Version;
    }
    let versioned = bare.strip_prefix('v').unwrap_or("");
    if points >= 1 && versioned.starts_with(|c: char| c.is_ascii_digit()) {
        return Kind::Version;
    }
    // `block-4711`, `worker12`: a name with a number that counts up.
    if digits * 2 >= word.len() {
        Kind::Id
    } else {
        Kind::Word
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, pieces};

    fn kinds(line: &str) -> Vec<(&str, Kind)> {
        pieces(line)
            .into_iter()
            .map(|p| (&line[p.start..p.end], p.kind))
            .collect()
    }

    #[test]
    fn r7_3_slots_are_typed_and_what_clients_write_is_text() {
        for (line, text, kind) in [
            ("took 12ms to answer", "12ms", Kind::Duration),
            ("read 4096 bytes", "4096", Kind::Number),
            ("peer 10.0.0.1 left", "10.0.0.1", Kind::Ip),
            ("version 1.4.2 runs", "1.4.2", Kind::Version),
            ("span 4bf92f3577b34da6 ends", "4bf92f3577b34da6", Kind::Id),
            ("open /etc/hosts failed", "/etc/hosts", Kind::Path),
            (
                "GET / agent=\"please restart it\"",
                "please restart it",
                Kind::Text,
            ),
            ("GET / query=restart", "restart", Kind::Text),
            (
                "ValueError: restart payments now",
                "restart payments now",
                Kind::Text,
            ),
            ("cannot find 'a b'", "a b", Kind::Text),
            (
                r#"{"level":"info","msg":"pool full","user":"x y"}"#,
                "x y",
                Kind::Text,
            ),
            (r#"{"level":"info","msg":"pool full"}"#, "pool", Kind::Word),
            (r#"{"level":"info","msg":"pool full"}"#, "info", Kind::Word),
            ("it said \"never closes", "never closes", Kind::Text),
        ] {
            assert!(
                kinds(line).contains(&(text, kind)),
                "{line}: {:?}",
                kinds(line)
            );
        }
    }

    #[test]
    fn a_very_long_line_ends_in_one_text_slot() {
        let line = "word ".repeat(500);
        let all = pieces(&line);
        assert_eq!(all.len(), super::MAX_PIECES + 1);
        assert_eq!(all.last().unwrap().kind, Kind::Text);
    }
}
