//! What a message ends in, and which next line goes on with it.

use std::borrow::Cow;

use super::content::content;
use super::frame::Join;
use super::privkey::{Block, Next, opens, prefix_len};
use super::scan::{byte, is_base64, run_end, run_start, slice};
use super::{escapes, secret, unicode};

/// What a message ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// Nothing.
    No,
    /// The collector cut the line.
    Partial,
    /// A key block.
    Block(Block),
    /// A quoted value of a sensitive key.
    Quote(u8),
    /// A sensitive key whose value is on the next line.
    Promise,
    /// A block of lines indented deeper than this.
    Indented(usize),
    /// An escaped line end.
    Escaped,
    /// A run of digits of this width; the line may have been cut at a column too.
    Run(usize, Option<Column>),
    /// A line that may have been cut at a column; `exact` when it is as wide as columns are.
    Column(Column),
    /// A stack trace.
    Trace,
}

/// A column at which lines are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Any byte may stand at the cut: the line has no time that would tell the next record.
    exact: bool,
}

/// Widths at which terminals and loggers cut.
const COLUMNS: &[usize] = &[
    40, 48, 50, 60, 64, 65, 70, 72, 74, 75, 76, 77, 78, 79, 80, 90, 100, 110, 118, 119, 120, 128,
    130, 132, 140, 150, 160, 180, 200, 240, 250, 255, 256, 300, 400, 500, 511, 512, 1000, 1023,
    1024, 2000, 2047, 2048, 4000, 4095, 4096, 8000, 8191, 8192, 16000, 16383, 16384, 32767, 32768,
];
/// Most lines that a quoted value may span.
const MAX_QUOTED: usize = 64;

/// A line that continues a message; offsets are into the line.
pub(super) struct Joined {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) join: Join,
}

/// What is held when the next line comes.
pub(super) struct Held<'a> {
    /// The last line.
    pub(super) last: &'a str,
    /// Number of lines.
    pub(super) lines: usize,
}

impl Held<'_> {
    /// True when the last line holds nothing but digits; a label can look like them on the first.
    fn is_digits(&self) -> bool {
        let whole = content(self.last);
        let body = slice(self.last, whole.from, whole.to);
        self.lines > 1 && body.bytes().all(is_base64)
    }
}

impl Open {
    /// How `line` continues what ends in this, and what that ends in then; `None` in place of the
    /// end leaves it to be judged.
    pub(super) fn continues(self, held: &Held<'_>, line: &str) -> Option<(Joined, Option<Self>)> {
        let whole = content(line);
        let body = slice(line, whole.from, whole.to);
        let from = |skip: usize, join| Joined {
            from: whole.from + skip,
            to: whole.to,
            join,
        };
        let rest_of_column = |column: Column| {
            let unmarked = whole.prefix.length == 0 && whole.to > 0;
            let goes_on = unmarked && column_goes_on(held.last, line, whole.to, column.exact);
            let join = if column.exact {
                Join::Direct
            } else {
                Join::Guess
            };
            goes_on.then(|| (from(0, join), None))
        };
        match self {
            Self::No => None,
            Self::Partial => same_stream(held.last, line).then(|| (from(0, Join::Direct), None)),
            Self::Block(block) => {
                let (skip, next) = block_goes_on(block, body)?;
                Some((from(skip, Join::Line), Some(next)))
            }
            Self::Quote(quote) => {
                let closed = memchr::memchr(quote, body.as_bytes()).is_some();
                (held.lines < MAX_QUOTED).then(|| (from(0, Join::Blank), (!closed).then_some(self)))
            }
            Self::Promise => is_promised(body).then(|| (from(0, Join::Blank), None)),
            Self::Indented(indent) => {
                let own = run_end(body, 0, |b| b == b' ');
                (own > indent).then(|| (from(own, Join::Direct), Some(self)))
            }
            Self::Escaped => {
                let own = run_end(body, 0, |b| b == b' ' || b == b'\t');
                Some((from(own, Join::Direct), None))
            }
            Self::Run(width, column) => run_goes_on(body, width, held.is_digits())
                .map(|last| (from(0, Join::Direct), last.then_some(Self::No)))
                .or_else(|| rest_of_column(column?)),
            Self::Column(column) => rest_of_column(column),
            Self::Trace => is_trace(body).then(|| (from(0, Join::Line), Some(self))),
        }
    }
}

/// False when a line without an anchor surely ends in nothing open.
pub(super) fn may_go_on(line: &str) -> bool {
    let end = line.trim_end_matches(['\r', '\n']);
    let bytes = end.as_bytes();
    let tail = bytes.get(bytes.len().saturating_sub(16)..).unwrap_or(&[]);
    let head = bytes.get(..bytes.len().min(64)).unwrap_or(&[]);
    end.ends_with('\\')
        || COLUMNS.contains(&end.len())
        || (tail.len() == 16 && tail.iter().all(|&b| is_base64(b)))
        || is_trace(end)
        || end.starts_with("{\"log\":")
        || memchr::memmem::find(head, b" P ").is_some()
        || memchr::memmem::find(head, b" P:").is_some()
        || head.ends_with(b" P")
}

/// Bytes before the body of a block, and what the block ends in after it.
fn block_goes_on(block: Block, body: &str) -> Option<(usize, Open)> {
    let plain = decoded(body);
    let next = match block.next(&plain) {
        Next::Outside => return None,
        Next::Inside => Open::Block(block),
        Next::Last => opens(&plain).map_or(Open::No, Open::Block),
    };
    // A prefix of an unknown class is told by the body behind it, unless that is encoded.
    let skip = match plain {
        Cow::Borrowed(body) => prefix_len(body),
        Cow::Owned(_) => 0,
    };
    Some((skip, next))
}

/// True for a value alone on its line: no key, no list, no brackets.
fn is_promised(body: &str) -> bool {
    let value = body.trim_start();
    let key = run_end(value, 0, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'"' | b'\'')
    });
    let named = matches!(byte(value, key), Some(b':' | b'='));
    !value.is_empty() && !named && !value.starts_with(['-', '{', '}', '[', ']', '#'])
}

/// Records of another stream of the same container do not continue a part.
fn same_stream(last: &str, line: &str) -> bool {
    let errors = |line: &str| line.contains(" stderr ") || line.contains("\"stream\":\"stderr\"");
    !line.trim().is_empty() && errors(last) == errors(line)
}

/// The column at which a line may have been cut.
pub(super) fn column(line: &str, body: &str, stamped: bool) -> Option<Column> {
    let end = line.trim_end_matches(['\r', '\n']);
    let width = if line.is_ascii() {
        end.len()
    } else {
        end.chars().count()
    };
    // Redaction changes widths, and it must find the same messages again.
    let cut = COLUMNS.contains(&width) && !line.contains(super::token::OPEN) && !is_record(line);
    let inner = body.bytes().last().is_some_and(is_inner);
    (cut && (!stamped || inner)).then_some(Column { exact: !stamped })
}

/// True when `line` can be the rest of the line before it.
fn column_goes_on(last: &str, line: &str, length: usize, exact: bool) -> bool {
    length <= last.trim_end_matches(['\r', '\n']).len()
        && !line.contains(super::token::OPEN)
        && !is_trace(line)
        && !is_record(line)
        && line
            .bytes()
            .next()
            .is_some_and(|b| exact || (is_inner(b) && b != b'#'))
}

/// Longest line whose escapes are undone to see what it opens.
const MAX_DECODED: usize = 8 * 1024;

/// A line with its escapes undone and its look-alikes folded.
pub(super) fn decoded(body: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(body);
    if body.len() > MAX_DECODED {
        return text;
    }
    for _ in 0..2 {
        match escapes::peel(&text) {
            Some(view) => text = Cow::Owned(view.text),
            None => break,
        }
    }
    match unicode::fold(&text) {
        Some(folded) => Cow::Owned(folded.glued.text),
        None => text,
    }
}

pub(super) fn block_or_value(body: &str) -> Option<Open> {
    if let Some(block) = opens(body) {
        return Some(Open::Block(block));
    }
    let bytes = body.as_bytes();
    let mut open = None;
    for at in memchr::memchr2_iter(b'=', b':', bytes) {
        let end = at - run_of_blanks_before(body, at);
        let end = end - usize::from(end > 0 && matches!(byte(body, end - 1), Some(b'"' | b'\'')));
        let start = run_start(body, end, 64, |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
        });
        if start == end || !secret::is_sensitive(slice(body, start, end)) {
            continue;
        }
        let value = run_end(body, at + 1, |b| matches!(b, b' ' | b'>' | b'\t'));
        let rest = slice(body, value, body.len());
        open = match rest.bytes().next() {
            None => Some(Open::Promise),
            Some(quote @ (b'"' | b'\'' | b'`')) => {
                let closed = memchr::memchr(quote, bytes.get(value + 1..).unwrap_or(&[])).is_some();
                (!closed).then_some(Open::Quote(quote))
            }
            Some(b'|' | b'>') if rest.len() <= 2 => {
                Some(Open::Indented(run_end(body, 0, |b| b == b' ' || b == b'-')))
            }
            Some(_) => None,
        };
    }
    open
}

fn run_of_blanks_before(body: &str, at: usize) -> usize {
    at - run_start(body, at, 4, |b| b == b' ' || b == b'\t')
}

/// A frame of a stack trace, or a line between frames.
pub(super) fn is_trace(body: &str) -> bool {
    let inner = body.trim_start_matches([' ', '\t']);
    let indented = inner.len() < body.len();
    (indented
        && (inner.starts_with("at ") || inner.starts_with("File \"") || inner.starts_with("... ")))
        || inner.starts_with("Caused by: ")
        || (body.starts_with("    ") && inner.len() + 4 == body.len())
}

/// True for the last line of a folded run, false for another one: it holds nothing but digits.
fn run_goes_on(body: &str, width: usize, pure: bool) -> Option<bool> {
    let own = body.trim();
    let digits = own.trim_end_matches('=');
    // A short word in small letters is the next line of a text.
    let word = digits.len() < 16 && own.bytes().all(|b| b.is_ascii_lowercase());
    let folded = !digits.is_empty()
        && !word
        && digits.bytes().all(is_base64)
        && digits.len() <= width.max(128)
        && (digits.len() >= 16 || width >= 32 || digits.len() < own.len());
    // All lines but the last are of one width.
    let short = digits.len() < 16 || (pure && digits.len() < width);
    folded.then_some(digits.len() < own.len() || short)
}

/// A line of logfmt or a JSON record begins a record of its own and is none that was cut.
fn is_record(line: &str) -> bool {
    let line = line.trim_end();
    let key = run_end(line, 0, |b| b.is_ascii_lowercase());
    (line.starts_with('{') && line.ends_with('}'))
        || (byte(line, key) == Some(b'=')
            && matches!(
                slice(line, 0, key),
                "time" | "ts" | "t" | "at" | "level" | "date"
            ))
}

/// Bytes that can stand inside a value.
const fn is_inner(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || b >= 0x80
        || matches!(
            b,
            b'-' | b'_'
                | b'/'
                | b'+'
                | b'='
                | b'@'
                | b'.'
                | b':'
                | b'%'
                | b'\\'
                | b'~'
                | b'#'
                | b'!'
                | b'$'
                | b'&'
                | b'*'
        )
}
