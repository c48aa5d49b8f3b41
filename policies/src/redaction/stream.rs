//! The redactor over a stream of bytes.
//!
//! Bytes are cut into lines and lines into messages; what cannot be decided yet is held back, so
//! the output does not depend on where the input was cut.

use std::sync::Arc;

use super::options::Rules;
use super::privkey::{Block, Next, opens};
use super::token::Minter;
use super::{Report, message};
use crate::claim::RedactKey;

/// Longest line that is scanned; a longer one is dropped.
const MAX_LINE: usize = 1024 * 1024;
/// Longest open block: beyond it the block is scanned as it stands.
const MAX_BLOCK_LINES: usize = 512;
const MAX_BLOCK_BYTES: usize = 64 * 1024;

/// Redacts a stream. Push bytes, take the text that is ready, finish.
///
/// ```
/// use sentinel_policies::{claim::RedactKey, redaction::Redactor};
/// let key = RedactKey::from_bytes([7; 32]);
/// let mut redactor = Redactor::new(&key);
/// let mut out = redactor.push(b"password=");
/// out.extend(redactor.push(b"hunter2\n"));
/// let (rest, report) = redactor.finish();
/// out.extend(rest);
/// assert!(out.starts_with("password=\u{2039}secret:".as_bytes()));
/// assert_eq!(report.total(), 1);
/// ```
pub struct Redactor {
    minter: Minter,
    rules: Arc<Rules>,
    report: Report,
    /// Bytes of a line that has not ended.
    tail: Vec<u8>,
    /// The unfinished line is too long and is being dropped.
    overlong: bool,
    /// Lines of a block that has not ended.
    held: String,
    held_lines: usize,
    block: Option<Block>,
}

impl Redactor {
    /// Begins a stream with the shipped settings.
    #[must_use]
    pub fn new(key: &RedactKey) -> Self {
        Self::with_rules(key, Arc::default())
    }

    /// Begins a stream with the settings of a site.
    #[must_use]
    pub fn with_rules(key: &RedactKey, rules: Arc<Rules>) -> Self {
        Self {
            minter: Minter::new(key),
            rules,
            report: Report::default(),
            tail: Vec::new(),
            overlong: false,
            held: String::new(),
            held_lines: 0,
            block: None,
        }
    }

    /// Takes more bytes and returns what can no longer change. Invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = String::new();
        let mut rest = bytes;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at_checked(at + 1).unwrap_or((rest, &[]));
            rest = after;
            if self.tail.is_empty() && !self.overlong {
                self.bytes_line(line, &mut out);
            } else {
                self.extend_tail(line);
                self.end_tail(&mut out);
            }
        }
        self.extend_tail(rest);
        self.report.bytes_out = self.report.bytes_out.saturating_add(out.len() as u64);
        out.into_bytes()
    }

    /// Ends the stream.
    #[must_use]
    pub fn finish(mut self) -> (Vec<u8>, Report) {
        let mut out = String::new();
        self.end_tail(&mut out);
        self.end(&mut out);
        self.report.bytes_out = self.report.bytes_out.saturating_add(out.len() as u64);
        (out.into_bytes(), self.report)
    }

    /// Takes whole lines that are text already.
    pub(super) fn push_text(&mut self, text: &str, out: &mut String) {
        for line in text.split_inclusive('\n') {
            self.line(line, out);
        }
    }

    /// Ends an open block.
    pub(super) fn end(&mut self, out: &mut String) {
        if self.block.take().is_some() {
            self.flush(out);
        }
    }

    /// A whole text of its own; nothing is held back after it.
    pub(crate) fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        self.push_text(text, &mut out);
        self.end(&mut out);
        out
    }

    /// A value that is a secret because of where it stands.
    pub(crate) fn whole_secret(&mut self, value: &str) -> String {
        let (clean, _) = self.minter.defuse(value);
        let kind = super::Kind::Secret;
        let token = self.minter.pseudonym(kind.name(), "", kind.class(), &clean);
        self.report.count(kind.name());
        token
    }

    pub(crate) fn into_report(self) -> Report {
        self.report
    }

    fn extend_tail(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.overlong || self.tail.len() + bytes.len() > MAX_LINE {
            self.overlong = true;
            self.report.bytes_in = self
                .report
                .bytes_in
                .saturating_add((self.tail.len() + bytes.len()) as u64);
            let ended = bytes.ends_with(b"\n");
            self.tail.clear();
            if ended {
                self.tail.push(b'\n');
                self.report.bytes_in = self.report.bytes_in.saturating_sub(1);
            }
        } else {
            self.tail.extend_from_slice(bytes);
        }
    }

    fn end_tail(&mut self, out: &mut String) {
        let line = std::mem::take(&mut self.tail);
        if std::mem::take(&mut self.overlong) {
            self.end(out);
            let end = String::from_utf8_lossy(&line);
            self.report.bytes_in = self.report.bytes_in.saturating_add(line.len() as u64);
            self.report.lines = self.report.lines.saturating_add(1);
            self.report.drop_for("budget");
            out.push_str(&message::dropped(&end, &self.minter, "dropped:budget"));
        } else if !line.is_empty() {
            self.bytes_line(&line, out);
        }
    }

    fn bytes_line(&mut self, line: &[u8], out: &mut String) {
        match std::str::from_utf8(line) {
            Ok(text) => self.line(text, out),
            Err(_) => {
                let bytes_in = self.report.bytes_in.saturating_add(line.len() as u64);
                self.line(&String::from_utf8_lossy(line), out);
                self.report.bytes_in = bytes_in;
            }
        }
    }

    /// One line with its end.
    fn line(&mut self, line: &str, out: &mut String) {
        if line.len() > MAX_LINE {
            self.tail = if line.ends_with('\n') {
                vec![b'\n']
            } else {
                Vec::new()
            };
            self.report.bytes_in = self
                .report
                .bytes_in
                .saturating_add((line.len() - self.tail.len()) as u64);
            self.overlong = true;
            self.end_tail(out);
            return;
        }
        self.report.bytes_in = self.report.bytes_in.saturating_add(line.len() as u64);
        if let Some(block) = self.block {
            let fits = self.held_lines < MAX_BLOCK_LINES
                && self.held.len() + line.len() <= MAX_BLOCK_BYTES;
            let next = if fits {
                block.next(line)
            } else {
                Next::Outside
            };
            match next {
                Next::Inside | Next::Last => {
                    self.hold(line);
                    if next == Next::Last {
                        self.reopen_or_flush(line, out);
                    }
                    return;
                }
                Next::Outside => self.end(out),
            }
        }
        if let Some(block) = opens(line) {
            self.block = Some(block);
            self.hold(line);
            return;
        }
        self.message(line, 1, out);
    }

    /// The last line of a block can open another.
    fn reopen_or_flush(&mut self, line: &str, out: &mut String) {
        self.block = opens(line);
        if self.block.is_none() {
            self.flush(out);
        }
    }

    fn hold(&mut self, line: &str) {
        self.held.push_str(line);
        self.held_lines += 1;
    }

    fn flush(&mut self, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let lines = std::mem::take(&mut self.held_lines);
        self.message(&held, lines, out);
    }

    fn message(&mut self, text: &str, lines: usize, out: &mut String) {
        let done = message::redact(text, &self.minter, &self.rules, &mut self.report);
        out.push_str(done.text.as_deref().unwrap_or(text));
        self.report.messages = self.report.messages.saturating_add(1);
        self.report.lines = self.report.lines.saturating_add(lines as u64);
    }
}
