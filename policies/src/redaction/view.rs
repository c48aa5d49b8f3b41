//! Decoded views of a message (guardrails 2.2): what hides behind an encoding is found too.
//!
//! Percent escapes, backslash escapes, invisible and full-width characters have an offset map, so
//! exactly the found part is replaced. A run of base64 or hexadecimal digits is replaced whole.
//! Views are decoded once per class and to depth two.

use std::sync::LazyLock;

use data_encoding::Encoding;

use super::scan::{Hits, byte, is_base64, run_end, scan, slice};
use crate::spotlight::is_invisible;

/// Longest run that is decoded.
const MAX_RUN: usize = 16 * 1024;
/// Depth of nesting.
const MAX_DEPTH: u8 = 2;

/// Scans all views of `text`.
pub(super) fn scan_views(text: &str, hits: &mut Hits, work: &mut u64) {
    nested(text, hits, work, 0);
}

fn nested(text: &str, hits: &mut Hits, work: &mut u64, depth: u8) {
    if depth >= MAX_DEPTH {
        return;
    }
    for decode in [percent, backslash, folded] {
        if let Some(view) = decode(text) {
            *work = work.saturating_add(view.text.len() as u64);
            let mut inner = Hits::new(hits.rules);
            scan(&view.text, &mut inner);
            nested(&view.text, &mut inner, work, depth + 1);
            for hit in inner.all {
                let (start, end) = view.source(hit.start, hit.end, text.len());
                if hit.rest {
                    hits.add_rest(hit.kind, start, end);
                } else if !hit.verified {
                    hits.add_unverified(hit.kind, start, end);
                } else {
                    hits.add(hit.kind, start, end);
                }
            }
        }
    }
    runs(text, hits, work, depth);
}

/// A decoded text and where each of its bytes came from.
struct View {
    text: String,
    /// Source offset of each byte of `text`.
    from: Vec<usize>,
}

impl View {
    fn with_capacity(n: usize) -> Self {
        Self {
            text: String::with_capacity(n),
            from: Vec::with_capacity(n),
        }
    }

    fn push(&mut self, c: char, at: usize) {
        self.text.push(c);
        self.from.resize(self.text.len(), at);
    }

    /// The source range of a range of the view.
    fn source(&self, start: usize, end: usize, length: usize) -> (usize, usize) {
        let first = self.from.get(start).copied().unwrap_or(length);
        let last = self.from.get(end).copied().unwrap_or(length);
        (first, last)
    }
}

/// `%41` and the like, when there are at least two.
fn percent(text: &str) -> Option<View> {
    if memchr::memchr_iter(b'%', text.as_bytes()).take(2).count() < 2 {
        return None;
    }
    let mut view = View::with_capacity(text.len());
    let mut changed = 0;
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|t| t.chars().next()) {
        let value = (c == '%')
            .then(|| u8::from_str_radix(slice(text, at + 1, at + 3), 16).ok())
            .flatten()
            .filter(|_| {
                slice(text, at + 1, at + 3)
                    .bytes()
                    .all(|b| b.is_ascii_hexdigit())
            });
        match value {
            // Bytes of non-ASCII characters are left for what they are: anchors are ASCII.
            Some(b) => {
                view.push(
                    if b.is_ascii() {
                        char::from(b)
                    } else {
                        '\u{fffd}'
                    },
                    at,
                );
                changed += 1;
                at += 3;
            }
            None => {
                view.push(c, at);
                at += c.len_utf8();
            }
        }
    }
    (changed >= 2).then_some(view)
}

/// `\n`, `\"`, `\/`, `\x41`, `\u0041`, `\u{41}`.
fn backslash(text: &str) -> Option<View> {
    memchr::memchr(b'\\', text.as_bytes())?;
    let mut view = View::with_capacity(text.len());
    let mut changed = false;
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|t| t.chars().next()) {
        if c == '\\'
            && let Some((decoded, length)) = escape(text, at + 1)
        {
            view.push(decoded, at);
            at += 1 + length;
            changed = true;
        } else {
            view.push(c, at);
            at += c.len_utf8();
        }
    }
    changed.then_some(view)
}

/// The character that the escape after a backslash stands for, and its length.
fn escape(text: &str, at: usize) -> Option<(char, usize)> {
    let hex = |start: usize, end: usize| {
        let digits = slice(text, start, end);
        (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
            .and_then(char::from_u32)
    };
    match byte(text, at)? {
        // A line end inside a message would end the scan of a line, so a blank stands for it.
        b'n' | b'r' | b't' | b'f' | b'b' => Some((' ', 1)),
        b @ (b'"' | b'\'' | b'\\' | b'/' | b'@' | b'.' | b'-' | b':' | b'=') => {
            Some((char::from(b), 1))
        }
        b'x' => Some((hex(at + 1, at + 3)?, 3)),
        b'u' if byte(text, at + 1) == Some(b'{') => {
            let end = run_end(text, at + 2, |b| b.is_ascii_hexdigit());
            (byte(text, end) == Some(b'}') && end - at <= 8)
                .then(|| hex(at + 2, end))
                .flatten()
                .map(|c| (c, end + 1 - at))
        }
        b'u' => Some((hex(at + 1, at + 5)?, 5)),
        _ => None,
    }
}

/// Without invisible characters, full-width and other digits and letters as ASCII.
fn folded(text: &str) -> Option<View> {
    if text
        .bytes()
        .all(|b| (b' '..0x7f).contains(&b) || matches!(b, b'\t' | b'\n' | b'\r'))
    {
        return None;
    }
    let mut view = View::with_capacity(text.len());
    let mut changed = false;
    for (at, c) in text.char_indices() {
        let hidden = is_invisible(c) || (c.is_control() && !matches!(c, '\t' | '\n' | '\r'));
        if hidden {
            changed = true;
            continue;
        }
        let plain = to_ascii(c);
        changed |= plain != c;
        view.push(plain, at);
    }
    changed.then_some(view)
}

/// The ASCII character that `c` stands for in another script or width.
fn to_ascii(c: char) -> char {
    let n = u32::from(c);
    let offset = |zero: u32, ascii: char| char::from_u32(n - zero + u32::from(ascii)).unwrap_or(c);
    match n {
        0xff01..=0xff5e => offset(0xff01, '!'),
        0x660..=0x669 => offset(0x660, '0'),
        0x6f0..=0x6f9 => offset(0x6f0, '0'),
        0x966..=0x96f => offset(0x966, '0'),
        0x1d7ce..=0x1d7ff => char::from_u32((n - 0x1d7ce) % 10 + u32::from('0')).unwrap_or(c),
        0x2010..=0x2015 | 0x2212 => '-',
        0xa0 | 0x2000..=0x200a | 0x202f | 0x3000 => ' ',
        0x2024 | 0x3002 => '.',
        _ => c,
    }
}

/// Scans what runs of base64 and hexadecimal digits decode to; a hit covers the whole run.
fn runs(text: &str, hits: &mut Hits, work: &mut u64, depth: u8) {
    for (start, end, decoded) in decoded_runs(text) {
        *work = work.saturating_add(decoded.len() as u64);
        let mut inner = Hits::new(hits.rules);
        scan(&decoded, &mut inner);
        nested(&decoded, &mut inner, work, depth + 1);
        if let Some(kind) = inner.all.iter().map(|hit| hit.kind).min() {
            hits.add(kind, start, end);
        }
    }
}

/// Start, end (with padding) and content of the runs that decode to text.
pub(super) fn decoded_runs(text: &str) -> Vec<(usize, usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = run_end(text, at, is_base64);
        if (24..=MAX_RUN).contains(&(end - at)) {
            let run = slice(text, at, end);
            let padded = run_end(text, end, |b| b == b'=').min(end + 2);
            for decoded in [unhex(run), unbase64(run)].into_iter().flatten() {
                found.push((at, padded, decoded));
            }
        }
        at = end + 1;
    }
    found
}

fn unhex(run: &str) -> Option<String> {
    if run.len() < 32 || !run.len().is_multiple_of(2) || !run.bytes().all(|b| b.is_ascii_hexdigit())
    {
        return None;
    }
    printable(
        data_encoding::HEXLOWER_PERMISSIVE
            .decode(run.as_bytes())
            .ok()?,
    )
}

/// Base64 without padding; a cut run may leave bits over.
static LENIENT_BASE64: LazyLock<Option<Encoding>> = LazyLock::new(|| {
    let mut spec = data_encoding::BASE64_NOPAD.specification();
    spec.check_trailing_bits = false;
    spec.encoding().ok()
});

/// Decodes either alphabet. The run may begin behind letters that belong to a label, so each of
/// the four alignments is tried until one decodes to text.
fn unbase64(run: &str) -> Option<String> {
    let standard: Vec<u8> = run
        .bytes()
        .map(|b| match b {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        })
        .collect();
    (0..4_usize).find_map(|skip| {
        let part = standard.get(skip..)?;
        let whole = part.len() - part.len() % 4;
        let keep = match part.len() % 4 {
            1 => whole,
            _ => part.len(),
        };
        let decoded = LENIENT_BASE64.as_ref()?.decode(part.get(..keep)?).ok()?;
        printable(decoded)
    })
}

/// The bytes as text if at least nine of ten of them can be printed.
fn printable(bytes: Vec<u8>) -> Option<String> {
    let good = bytes
        .iter()
        .filter(|b| (b' '..0x7f).contains(*b) || matches!(b, b'\n' | b'\r' | b'\t'))
        .count();
    (good * 10 >= bytes.len() * 9 && !bytes.is_empty())
        .then(|| String::from_utf8_lossy(&bytes).into_owned())
}
