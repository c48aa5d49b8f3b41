//! Bytes become text (guardrails 2.1.1): UTF-16 is decoded, invalid UTF-8 becomes U+FFFD.

use std::borrow::Cow;

/// How much of a stream is looked at to tell UTF-16.
const HEAD: usize = 1024;

/// How the units of a stream are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// Not known yet.
    #[default]
    Open,
    /// Bytes of UTF-8.
    Narrow,
    /// UTF-16, low byte first or high byte first.
    Little,
    Big,
}

/// Turns a stream into UTF-8 as far as it is none.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    mode: Mode,
    /// Bytes that are not decided: the head of the stream, or half a character.
    pending: Vec<u8>,
}

impl Decoder {
    /// Takes bytes and appends what they stand for.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self.mode {
            Mode::Narrow => out.extend_from_slice(bytes),
            Mode::Little | Mode::Big => {
                self.pending.extend_from_slice(bytes);
                self.units(out);
            }
            Mode::Open => {
                self.pending.extend_from_slice(bytes);
                // The first line or the first kilobyte decides, however it arrives.
                let line = memchr::memchr(b'\n', &self.pending).map(|at| at + 1);
                let head = line.unwrap_or(HEAD).min(HEAD);
                if self.pending.len() >= head {
                    self.decide(head, out);
                }
            }
        }
    }

    /// The stream ends.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if self.mode == Mode::Open && !self.pending.is_empty() {
            self.decide(self.pending.len(), out);
        }
        if !std::mem::take(&mut self.pending).is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }

    fn decide(&mut self, head: usize, out: &mut Vec<u8>) {
        let bytes = self.pending.get(..head).unwrap_or(&[]);
        self.mode = match bytes {
            [0xff, 0xfe, ..] => Mode::Little,
            [0xfe, 0xff, ..] => Mode::Big,
            _ => wide_mode(bytes).unwrap_or(Mode::Narrow),
        };
        if self.mode == Mode::Narrow {
            out.append(&mut self.pending);
        } else {
            self.units(out);
        }
    }

    /// Decodes whole characters of UTF-16.
    fn units(&mut self, out: &mut Vec<u8>) {
        let units: Vec<u16> = pairs(&self.pending, self.mode == Mode::Little).collect();
        let cut = units.last().is_some_and(|u| (0xd800..0xdc00).contains(u));
        let whole = units.get(..units.len() - usize::from(cut)).unwrap_or(&[]);
        for c in char::decode_utf16(whole.iter().copied()) {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.pending.drain(..whole.len() * 2);
    }

    /// Bytes of the source that decoded bytes came from.
    pub(super) fn source_len(&self, decoded: &[u8]) -> u64 {
        match self.mode {
            Mode::Open | Mode::Narrow => decoded.len() as u64,
            Mode::Little | Mode::Big => {
                2 * String::from_utf8_lossy(decoded).encode_utf16().count() as u64
            }
        }
    }

    /// Offset in the source of the character at `at` of `text`, which is what `bytes` say.
    pub(super) fn source_offset(&self, bytes: &[u8], text: &str, at: usize) -> u64 {
        let before = text.get(..at).unwrap_or(text);
        if self.mode != Mode::Narrow && self.mode != Mode::Open {
            return self.source_len(before.as_bytes());
        }
        if bytes == text.as_bytes() {
            return at as u64;
        }
        let mut characters = before.chars().count();
        let mut offset = 0;
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                if characters == 0 {
                    return offset;
                }
                characters -= 1;
                offset += c.len_utf8() as u64;
            }
            if characters > 0 && !chunk.invalid().is_empty() {
                characters -= 1;
                offset += chunk.invalid().len() as u64;
            }
        }
        offset
    }
}

fn pairs(bytes: &[u8], little: bool) -> impl Iterator<Item = u16> {
    bytes.chunks_exact(2).map(move |pair| match pair {
        [a, b] if little => u16::from_le_bytes([*a, *b]),
        [a, b] => u16::from_be_bytes([*a, *b]),
        _ => 0xfffd,
    })
}

/// UTF-16 without a mark: nine of ten bytes of one parity are zero.
fn wide_mode(bytes: &[u8]) -> Option<Mode> {
    let zeros = |skip: usize| {
        let row = bytes.iter().skip(skip).step_by(2);
        row.filter(|&&b| b == 0).count()
    };
    let half = bytes.len() / 2;
    if half < 2 || memchr::memchr(0, bytes).is_none() {
        return None;
    }
    if zeros(1) * 10 >= half * 9 && zeros(0) * 10 < half {
        Some(Mode::Little)
    } else if zeros(0) * 10 >= half * 9 && zeros(1) * 10 < half {
        Some(Mode::Big)
    } else {
        None
    }
}

/// What a message of a stream of UTF-8 says. A line of it can be UTF-16 all the same.
pub(super) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(0, bytes).is_none() {
        return String::from_utf8_lossy(bytes);
    }
    let mut text = String::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        match wide_mode(content) {
            Some(mode) => {
                let units = pairs(content, mode == Mode::Little);
                let decoded = char::decode_utf16(units);
                text.extend(decoded.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
                if content.len() < line.len() {
                    text.push('\n');
                }
            }
            None => text.push_str(&String::from_utf8_lossy(line)),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::{Decoder, text_of};

    fn decode(chunks: &[&[u8]]) -> String {
        let mut decoder = Decoder::default();
        let mut out = Vec::new();
        for chunk in chunks {
            decoder.push(chunk, &mut out);
        }
        decoder.end(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn utf_16_is_told_by_its_mark_or_its_zeros_wherever_it_is_cut() {
        let text = "password=x\nnext \u{1f600} line\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let marked = [&[0xff, 0xfe][..], &little].concat();
        for (bytes, expected) in [
            (little, text.to_owned()),
            (big, text.to_owned()),
            (marked, format!("\u{feff}{text}")),
        ] {
            for cut in 0..bytes.len() {
                let (a, b) = bytes.split_at(cut);
                assert_eq!(decode(&[a, b]), expected, "{cut}");
            }
        }
    }

    #[test]
    fn one_wide_line_of_a_narrow_stream_is_read() {
        let wide: Vec<u8> = "password=x"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let bytes = [&wide[..], b"\n"].concat();
        assert_eq!(text_of(&bytes), "password=x\n");
        assert_eq!(text_of(b"a\0b"), "a\0b");
    }

    #[test]
    fn every_maximal_invalid_part_is_one_replacement() {
        assert_eq!(text_of(b"a\xf0\x9f\x98b\xffc"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(
            Decoder::default().source_offset(b"a\xf0\x9f\x98b", "a\u{fffd}b", 4),
            4
        );
    }
}
