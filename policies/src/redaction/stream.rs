//! The redactor over a stream of bytes.
//!
//! Bytes are cut into lines and lines into messages; what cannot be decided yet is held back, so
//! the output does not depend on where the input was cut. The last message is always held: only
//! the next line says whether it is complete.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::encoding::{Decoder, text_of};
use super::frame::Frame;
use super::gate;
use super::message::{self, Message};
use super::open::may_go_on;
use super::options::Rules;
use super::token::Minter;
use super::{Kind, Report};
use crate::claim::RedactKey;

/// Most that is held back; a longer message or line is dropped.
const MAX_HELD: usize = 64 * 1024;
/// Most lines that are held back.
const MAX_LINES: usize = 512;

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
    decoder: Decoder,
    /// The held message, and behind it a line that has not ended.
    buffer: Zeroizing<Vec<u8>>,
    /// Length of the held message in the buffer.
    held: usize,
    /// How far the buffer was searched for line ends.
    searched: usize,
    frame: Frame,
    /// Source bytes before the buffer.
    offset: u64,
    /// The line that is coming in is too long and is being dropped.
    overlong: bool,
    /// An anchor was seen in the held message.
    flagged: bool,
    /// The held message goes on after it was dropped.
    dropping: bool,
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
            decoder: Decoder::default(),
            buffer: Zeroizing::default(),
            held: 0,
            searched: 0,
            frame: Frame::default(),
            offset: 0,
            overlong: false,
            flagged: false,
            dropping: false,
        }
    }

    /// Takes more bytes and returns what can no longer change. Invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = String::new();
        self.report.bytes_in = self.report.bytes_in.saturating_add(bytes.len() as u64);
        self.decoder.push(bytes, &mut self.buffer);
        self.lines(&mut out);
        self.written(out)
    }

    /// Ends the stream.
    #[must_use]
    pub fn finish(mut self) -> (Vec<u8>, Report) {
        let mut out = String::new();
        self.end(&mut out);
        let bytes = self.written(out);
        (bytes, self.report)
    }

    /// A whole text of its own; nothing is held back after it.
    pub(crate) fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        self.report.bytes_in = self.report.bytes_in.saturating_add(text.len() as u64);
        self.decoder.push(text.as_bytes(), &mut self.buffer);
        self.lines(&mut out);
        self.end(&mut out);
        self.report.bytes_out = self.report.bytes_out.saturating_add(out.len() as u64);
        out
    }

    /// A value that is a secret because of where it stands.
    pub(crate) fn whole_secret(&mut self, value: &str) -> String {
        let (clean, _) = self.minter.defuse(value);
        let kind = Kind::Secret;
        let token = self.minter.pseudonym(kind.name(), "", kind.class(), &clean);
        self.report.count(kind.name());
        token
    }

    pub(crate) fn into_report(self) -> Report {
        self.report
    }

    fn written(&mut self, out: String) -> Vec<u8> {
        self.report.bytes_out = self.report.bytes_out.saturating_add(out.len() as u64);
        out.into_bytes()
    }

    /// Ends the input: what is held is decided.
    fn end(&mut self, out: &mut String) {
        self.decoder.end(&mut self.buffer);
        self.lines(out);
        let buffer = std::mem::take(&mut self.buffer);
        if std::mem::take(&mut self.overlong) {
            self.drop_line(&[], out);
        } else if self.held < buffer.len() {
            self.line(&buffer, self.held, buffer.len(), out);
        }
        self.flush(&buffer, buffer.len(), out);
        self.offset = self.offset.saturating_add(self.decoder.source_len(&buffer));
        self.searched = 0;
        self.dropping = false;
        self.decoder = Decoder::default();
    }

    /// Takes the whole lines of the buffer.
    fn lines(&mut self, out: &mut String) {
        let mut buffer = std::mem::take(&mut self.buffer);
        // Everything before the held message has left; the open line follows it.
        let mut start = self.held;
        let from = self.searched.max(start);
        let ends = memchr::memchr_iter(b'\n', buffer.get(from..).unwrap_or(&[]));
        for end in ends.map(|at| from + at + 1) {
            if std::mem::take(&mut self.overlong) {
                self.drop_line(buffer.get(start..end).unwrap_or(&[]), out);
            } else {
                self.line(&buffer, start, end, out);
            }
            start = end;
        }
        if self.overlong || buffer.len() - start > MAX_HELD {
            self.flush(&buffer, start, out);
            self.overlong = true;
            // The half of a line end that came is kept until the other half comes.
            start = buffer.len() - usize::from(buffer.ends_with(b"\r"));
        }
        let gone = start - self.held;
        let bytes = self.decoder.source_len(buffer.get(..gone).unwrap_or(&[]));
        self.offset = self.offset.saturating_add(bytes);
        buffer.drain(..gone);
        self.searched = buffer.len();
        self.buffer = buffer;
    }

    /// One whole line: it continues the held message before it or ends it.
    fn line(&mut self, buffer: &[u8], start: usize, end: usize, out: &mut String) {
        let line = buffer.get(start..end).unwrap_or(&[]);
        if line.len() > MAX_HELD {
            self.flush(buffer, start, out);
            self.drop_line(line, out);
            return;
        }
        let text = text_of(line);
        let flagged = gate::is_flagged(&text, &self.rules);
        if self.held > 0 {
            let message = text_of(buffer.get(start - self.held..start).unwrap_or(&[]));
            let quiet = !flagged && !self.flagged;
            let apart = quiet && self.frame.parts.is_empty() && !may_go_on(&message);
            if !apart && self.frame.takes(&message, &text, self.flagged) {
                if self.held + line.len() <= MAX_HELD && self.frame.parts.len() <= MAX_LINES {
                    self.held += line.len();
                    self.flagged |= flagged;
                    return;
                }
                if self.frame.is_bound() {
                    self.overflow(&message, line.len(), out);
                    return;
                }
                self.frame.parts.pop();
            }
            self.flush(buffer, start, out);
        }
        self.frame.begin();
        self.held = line.len();
        self.flagged = flagged;
    }

    /// The held message cannot be held any longer, and what follows belongs to it: all of it goes.
    fn overflow(&mut self, message: &str, line: usize, out: &mut String) {
        if !std::mem::replace(&mut self.dropping, true) {
            self.report.drop_for("budget");
            self.report.messages = self.report.messages.saturating_add(1);
            out.push_str(&self.minter.close("dropped:budget"));
        }
        self.blank(message, out);
        self.frame.keep_last();
        self.held = line;
    }

    fn blank(&mut self, text: &str, out: &mut String) {
        out.extend(text.chars().filter(|c| matches!(c, '\n' | '\r')));
        let lines = text.split_inclusive('\n').count();
        self.report.lines = self.report.lines.saturating_add(lines as u64);
    }

    /// Ends the held message, which lies before `end`.
    fn flush(&mut self, buffer: &[u8], end: usize, out: &mut String) {
        let start = end - std::mem::take(&mut self.held);
        if start == end {
            return;
        }
        let bytes = buffer.get(start..end).unwrap_or(&[]);
        if std::mem::take(&mut self.dropping) {
            self.blank(&text_of(bytes), out);
            return;
        }
        let before = self.decoder.source_len(buffer.get(..start).unwrap_or(&[]));
        let mut offset = self.offset.saturating_add(before);
        if !self.flagged && self.frame.is_apart() {
            out.push_str(&text_of(bytes));
            self.report.messages = self.report.messages.saturating_add(1);
            let lines = self.frame.parts.len().max(1) as u64;
            self.report.lines = self.report.lines.saturating_add(lines);
            self.report.work_units = self.report.work_units.saturating_add(bytes.len() as u64);
            return;
        }
        if !self.frame.is_broken() {
            self.message(bytes, offset, out);
            return;
        }
        for line in bytes.split_inclusive(|&b| b == b'\n') {
            self.frame.begin();
            self.message(line, offset, out);
            offset = offset.saturating_add(self.decoder.source_len(line));
        }
    }

    /// One message, whose lines the frame holds.
    fn message(&mut self, bytes: &[u8], offset: u64, out: &mut String) {
        let text = text_of(bytes);
        self.frame.ensure(&text);
        let message = Message {
            text: &text,
            frame: &self.frame,
            line: self.report.lines.saturating_add(1),
        };
        let done = message::redact(message, &self.minter, &self.rules, &mut self.report);
        out.push_str(done.text.as_deref().unwrap_or(&text));
        for mut finding in done.findings {
            for at in [&mut finding.start, &mut finding.end] {
                let inside = usize::try_from(*at).unwrap_or(usize::MAX);
                *at = offset.saturating_add(self.decoder.source_offset(bytes, &text, inside));
            }
            self.report.findings.push(finding);
        }
        let lines = self.frame.parts.len() as u64;
        self.report.messages = self.report.messages.saturating_add(1);
        self.report.lines = self.report.lines.saturating_add(lines);
    }

    /// A line that is too long.
    fn drop_line(&mut self, line: &[u8], out: &mut String) {
        self.report.drop_for("budget");
        self.report.messages = self.report.messages.saturating_add(1);
        self.report.lines = self.report.lines.saturating_add(1);
        out.push_str(&self.minter.close("dropped:budget"));
        if line.ends_with(b"\r\n") {
            out.push('\r');
        }
        if line.ends_with(b"\n") {
            out.push('\n');
        }
    }
}
