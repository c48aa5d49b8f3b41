//! Reading text files from the end, bounded, and the time stamps at the start of lines.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use policies::model::Millis;

use super::Failure;

/// Longest line that is kept whole.
pub(super) const MAX_LINE: usize = 64 << 10;

/// Reads a whole file of at most `limit` bytes; of a longer one the last `limit` bytes from the
/// start of a line on. The second value tells whether something was left out.
pub(super) fn read_tail(path: &Path, limit: u64) -> Result<(String, bool), Failure> {
    let failed = |e: &std::io::Error| Failure::file(path, e);
    let mut file = File::open(path).map_err(|e| failed(&e))?;
    let length = file.metadata().map_err(|e| failed(&e))?.len();
    let start = length.saturating_sub(limit);
    file.seek(SeekFrom::Start(start)).map_err(|e| failed(&e))?;
    let mut bytes = Vec::new();
    // Bounded by the limit and not by the length: the file may grow while it is read.
    file.take(limit)
        .read_to_end(&mut bytes)
        .map_err(|e| failed(&e))?;
    if start > 0 {
        let first = bytes.iter().position(|b| *b == b'\n').map_or(0, |n| n + 1);
        bytes.drain(..first);
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), start > 0))
}

/// As [`read_tail`], but skips what a log wrote before `from`, found by bisection: its stamps rise.
pub(super) fn read_since(path: &Path, from: Millis, limit: u64) -> Result<(String, bool), Failure> {
    const BLOCK: u64 = 16 << 10;
    let failed = |e: &std::io::Error| Failure::file(path, e);
    let mut file = File::open(path).map_err(|e| failed(&e))?;
    let length = file.metadata().map_err(|e| failed(&e))?.len();
    let (mut low, mut high) = (0, length);
    while high - low > 4 * BLOCK {
        let middle = low + (high - low) / 2;
        file.seek(SeekFrom::Start(middle)).map_err(|e| failed(&e))?;
        let mut block = Vec::new();
        (&mut file)
            .take(BLOCK)
            .read_to_end(&mut block)
            .map_err(|e| failed(&e))?;
        let text = String::from_utf8_lossy(&block);
        match text.lines().skip(1).find_map(stamp) {
            Some(at) if at < from => low = middle,
            _ => high = middle,
        }
    }
    read_tail(path, (length - low).min(limit)).map(|(text, _)| (text, length - low > limit))
}

/// Cuts a line to [`MAX_LINE`] bytes at a character border, with a mark.
pub(super) fn cut(line: &str) -> String {
    if line.len() <= MAX_LINE {
        return line.to_owned();
    }
    let mut end = MAX_LINE;
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let kept = line.get(..end).unwrap_or_default();
    format!("{kept} [cut {} bytes]", line.len() - end)
}

/// The time at the start of a line: RFC 3339, or `2026-01-31 08:00:00[,.]250` taken as UTC; either
/// may stand in brackets.
pub(super) fn stamp(line: &str) -> Option<Millis> {
    let line = line.strip_prefix('[').unwrap_or(line);
    let mut words = line.splitn(3, [' ', ']', '\t']);
    let first = words.next()?;
    if first.len() < 10 || !first.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some(at) = Millis::parse_rfc3339(first) {
        return Some(at);
    }
    let second = words.next()?.replace(',', ".");
    Millis::parse_rfc3339(&format!("{first}T{second}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_time_stamps_are_read_and_other_words_are_not() {
        let at = Millis::parse_rfc3339("2026-01-31T08:00:00.250Z");
        for line in [
            "2026-01-31T08:00:00.250Z ERROR x",
            "[2026-01-31T08:00:00.250Z] ERROR x",
            "2026-01-31 08:00:00,250 ERROR x",
            "2026-01-31 08:00:00.250 ERROR x",
            "2026-01-31T10:00:00.250+02:00 ERROR x",
        ] {
            assert_eq!(stamp(line), at, "{line}");
        }
        for line in [
            "",
            "  File \"app.py\", line 3",
            "2026",
            "12345678901 x",
            "Traceback",
        ] {
            assert_eq!(stamp(line), None, "{line}");
        }
    }

    #[test]
    fn a_long_file_is_read_from_the_end_and_from_a_whole_line_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        std::fs::write(&path, "first line\nsecond line\nthird\n").unwrap();
        assert_eq!(read_tail(&path, 10).unwrap(), ("third\n".to_owned(), true));
        assert!(!read_tail(&path, 1000).unwrap().1);
        let missing = read_tail(&folder.path().join("no.log"), 10).unwrap_err();
        assert_eq!(missing.code, "not_found");
    }

    #[test]
    fn reading_since_an_instant_skips_what_is_far_before_it_and_nothing_after() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let mut text = String::new();
        for n in 0..20_000_i64 {
            text += &format!("{} INFO line {n}\n", Millis(n * 1000));
        }
        std::fs::write(&path, &text).unwrap();
        let from = Millis(15_000_000);
        let (read, cut) = read_since(&path, from, 64 << 20).unwrap();
        assert!(!cut && read.len() < text.len() / 2);
        let after = read.lines().filter(|l| stamp(l) >= Some(from)).count();
        assert_eq!(after, 5_000);
    }

    #[test]
    fn a_long_line_is_cut_at_a_character_border() {
        let line = "é".repeat(MAX_LINE);
        let short = cut(&line);
        assert!(short.len() < MAX_LINE + 40 && short.ends_with(" bytes]"));
    }
}
