//! One pass over a text: anchors lead to validators, validators report spans.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::options::Rules;
use super::{Anchor, ENTITIES, Kind};

/// A span that a validator accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: Kind,
    /// False when the checksum of the value is wrong.
    pub(crate) verified: bool,
}

/// Work of one call of a validator that looks at its neighbourhood only: most end at the first
/// bytes, and those of digits at the length of the run.
const CALL: u64 = 4;
const DIGITS_CALL: u64 = 1;

/// Collects spans under the settings of a site.
#[derive(Debug)]
pub(crate) struct Hits<'r> {
    pub(crate) all: Vec<Hit>,
    pub(crate) rules: &'r Rules,
    /// Bytes visited by validators.
    pub(crate) work: u64,
    /// Most they may visit; the scan ends there, and its caller drops the text.
    pub(crate) limit: u64,
}

impl<'r> Hits<'r> {
    pub(crate) const fn new(rules: &'r Rules) -> Self {
        Self {
            all: Vec::new(),
            rules,
            work: 0,
            limit: u64::MAX,
        }
    }

    pub(crate) fn add(&mut self, kind: Kind, start: usize, end: usize) {
        self.push(kind, start, end, true);
    }

    /// A validator that looks further than the neighbourhood of its anchor says how far.
    pub(crate) const fn spend(&mut self, bytes: usize) {
        self.work = self.work.saturating_add(bytes as u64);
    }

    /// Counts a call of a validator; false when no more is allowed.
    const fn call(&mut self, work: u64) -> bool {
        self.work = self.work.saturating_add(work);
        self.work <= self.limit
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize, verified: bool) {
        if start < end {
            self.all.push(Hit {
                start,
                end,
                kind,
                verified,
            });
        }
    }

    /// A find whose checksum is wrong.
    pub(crate) fn add_unverified(&mut self, kind: Kind, start: usize, end: usize) {
        self.push(kind, start, end, false);
    }
}

type LiteralScan = fn(&str, usize, &'static str, &mut Hits);

/// All literals of all entities in one automaton.
struct Literals {
    automaton: Option<AhoCorasick>,
    scans: Vec<(&'static str, LiteralScan)>,
}

static LITERALS: LazyLock<Literals> = LazyLock::new(|| {
    let mut scans: Vec<(&'static str, LiteralScan)> = Vec::new();
    for entity in ENTITIES {
        if let Anchor::Literals(words, scan) = &entity.anchor {
            scans.extend(words.iter().map(|&word| (word, *scan)));
        }
    }
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .match_kind(MatchKind::Standard)
        .build(scans.iter().map(|(word, _)| word))
        .ok();
    Literals { automaton, scans }
});

/// Everything that any entity finds in `text`, as far as the limit of `hits` allows.
pub(crate) fn scan(text: &str, hits: &mut Hits) {
    if let Some(automaton) = &LITERALS.automaton {
        for found in automaton.find_overlapping_iter(text) {
            if !hits.call(CALL) {
                return;
            }
            if let Some((word, scan)) = LITERALS.scans.get(found.pattern().as_usize()) {
                scan(text, found.start(), word, hits);
            }
        }
    } else {
        // The table of literals is fixed and small; a build without an automaton cannot be
        // trusted to have looked, so everything counts as a find.
        hits.add(Kind::Secret, 0, text.len());
    }
    let runs = digit_runs(text);
    for entity in ENTITIES {
        match &entity.anchor {
            Anchor::Literals(..) => {}
            Anchor::Text(scan) => scan(text, hits),
            Anchor::Digits(scan) => {
                for &(start, end) in &runs {
                    if !hits.call(DIGITS_CALL) {
                        return;
                    }
                    scan(text, start, end, hits);
                }
            }
            Anchor::Bytes(a, b, scan) => {
                for at in memchr::memchr2_iter(*a, *b, text.as_bytes()) {
                    if !hits.call(CALL) {
                        return;
                    }
                    scan(text, at, hits);
                }
            }
        }
    }
}

/// Starts and ends of the runs of two or more ASCII digits.
fn digit_runs(text: &str) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let mut start = None;
    for (at, byte) in text.bytes().enumerate() {
        match (byte.is_ascii_digit(), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                if at > from + 1 {
                    runs.push((from, at));
                }
                start = None;
            }
            _ => {}
        }
    }
    if let Some(from) = start
        && text.len() > from + 1
    {
        runs.push((from, text.len()));
    }
    runs
}

/// The byte before `at`.
pub(crate) fn before(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at.checked_sub(1)?).copied()
}

/// The byte at `at`.
pub(crate) fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

/// `text[start..end]`, empty when that is no range of characters.
pub(crate) fn slice(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or("")
}

/// End of the run of bytes from `start` that `good` accepts.
pub(crate) fn run_end(text: &str, start: usize, good: impl Fn(u8) -> bool) -> usize {
    text.as_bytes()
        .get(start..)
        .and_then(|rest| rest.iter().position(|&b| !good(b)))
        .map_or(text.len(), |n| start + n)
}

/// The same, at most `max` bytes long.
pub(crate) fn run_within(text: &str, start: usize, max: usize, good: impl Fn(u8) -> bool) -> usize {
    let rest = text.as_bytes().get(start..).unwrap_or(&[]);
    start + rest.iter().take(max).take_while(|&&b| good(b)).count()
}

/// Start of the run of bytes before `end` that `good` accepts, at most `max` bytes long.
pub(crate) fn run_start(text: &str, end: usize, max: usize, good: impl Fn(u8) -> bool) -> usize {
    let bytes = text.as_bytes().get(..end).unwrap_or(&[]);
    let length = bytes
        .iter()
        .rev()
        .take(max)
        .take_while(|&&b| good(b))
        .count();
    end.saturating_sub(length)
}

/// True for bytes that belong to a word: ASCII letters and digits, `_`, and all of non-ASCII.
pub(crate) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// True for the letters of base64 in both alphabets, without padding.
pub(crate) const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}
