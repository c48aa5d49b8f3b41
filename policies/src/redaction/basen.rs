//! Runs of hexadecimal, base32 and base64 digits and what they decode to (V4, V5).
//!
//! A run may be folded over lines and may begin behind a label, so every alignment is tried. Most
//! runs of a log are paths, ids and digests: they end at a look at one group in four.

use std::io::Read as _;

use flate2::read::{GzDecoder, ZlibDecoder};

use super::scan::{byte, is_base64, run_end, slice};

/// Shortest run that is decoded.
const MIN_RUN: usize = 16;
/// Shortest run of hexadecimal digits.
const MIN_HEX: usize = 32;
/// Shortest run that may begin behind a label.
const MIN_SHIFTED: usize = 24;
/// Shortest row of printable bytes that makes a run worth a look.
const MIN_STRETCH: usize = 12;
/// Most that is inflated.
const MAX_INFLATED: u64 = 64 * 1024;

/// What a run stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Text.
    Text(String),
    /// A private key in DER or OpenSSH form.
    PrivateKey,
    /// More than may be inflated.
    TooLarge,
}

/// A run and its content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Name of the decoder.
    pub(super) class: &'static str,
    pub(super) content: Content,
    /// Bytes that were decoded to find it.
    pub(super) decoded: u64,
}

/// Runs of `text` that decode to something. `wanted` says which ranges are looked at.
pub(super) fn runs(text: &str, wanted: impl Fn(usize, usize) -> bool) -> Vec<Run> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = next_run(text, at) {
        let (end, folded) = group_end(text, start);
        at = end + 1;
        if end - start < MIN_RUN || !wanted(start, end) {
            continue;
        }
        if folded {
            let whole: Vec<u8> = slice(text, start, end)
                .bytes()
                .filter(|&b| is_base64(b))
                .collect();
            for mut run in decode(&whole) {
                (run.start, run.end) = (start, padded(text, end));
                found.push(run);
            }
        } else {
            for mut run in decode(slice(text, start, end).as_bytes()) {
                run.start += start;
                run.end = padded(text, end);
                found.push(run);
            }
        }
    }
    found
}

/// Start, end and content of the runs that decode to text.
pub(super) fn texts(text: &str) -> Vec<(usize, usize, String)> {
    let found = runs(text, |_, _| true).into_iter();
    found
        .filter_map(|run| match run.content {
            Content::Text(content) => Some((run.start, run.end, content)),
            Content::PrivateKey | Content::TooLarge => None,
        })
        .collect()
}

/// Start of the next run of at least `MIN_RUN` digits: such a run covers one byte in sixteen.
fn next_run(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from + MIN_RUN - 1;
    while let Some(&b) = bytes.get(at) {
        if is_base64(b) {
            let head = bytes.get(from..at).unwrap_or(&[]);
            let start = at - head.iter().rev().take_while(|&&b| is_base64(b)).count();
            let end = run_end(text, at, is_base64);
            if end - start >= MIN_RUN {
                return Some(start);
            }
            at = end;
        }
        at += MIN_RUN;
    }
    None
}

/// End of the run that begins at `start`, over the lines it was folded to.
fn group_end(text: &str, start: usize) -> (usize, bool) {
    let mut end = run_end(text, start, is_base64);
    let mut folded = false;
    let mut width = end - start;
    while width >= MIN_RUN {
        let line_end = run_end(text, end, |b| b == b'\r');
        if byte(text, line_end) != Some(b'\n') {
            break;
        }
        let next = run_end(text, line_end + 1, |b| b == b' ' || b == b'\t');
        let stop = run_end(text, next, is_base64);
        let padding = run_end(text, stop, |b| b == b'=');
        let alone = matches!(
            byte(text, padding),
            None | Some(b'\n' | b'\r' | b'"' | b'\'')
        );
        // The last line of a group is the only short one.
        if stop == next || !alone || stop - next > width.max(128) {
            break;
        }
        let last = folded && stop - next < width;
        width = stop - next;
        end = stop;
        folded = true;
        if last {
            break;
        }
    }
    (end, folded)
}

/// End of the padding behind a run.
fn padded(text: &str, end: usize) -> usize {
    run_end(text, end, |b| b == b'=').min(end + 6)
}

/// Everything that a run without line ends decodes to; offsets are into `run`.
fn decode(run: &[u8]) -> Vec<Run> {
    let mut found = Vec::new();
    hexadecimal(run, &mut found);
    base64(run, &mut found);
    base32(run, &mut found);
    found
}

/// Value of a base64 digit of either alphabet; 64 for other bytes.
static BASE64: [u8; 256] = {
    let mut table = [64_u8; 256];
    let mut b = 0_u8;
    loop {
        let value = match b {
            b'A'..=b'Z' => b - b'A',
            b'a'..=b'z' => b - b'a' + 26,
            b'0'..=b'9' => b - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => 64,
        };
        #[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
        {
            table[b as usize] = value;
        }
        if b == 255 {
            break table;
        }
        b += 1;
    }
};

fn value64(b: u8) -> u32 {
    u32::from(BASE64.get(usize::from(b)).copied().unwrap_or(64))
}

/// The three bytes of the group at `at`.
fn group64(run: &[u8], at: usize) -> Option<[u8; 3]> {
    let four = run.get(at..at + 4)?;
    let bits = four
        .iter()
        .fold(0, |bits, &b| bits << 6 | (value64(b) & 63));
    let [_, a, b, c] = bits.to_be_bytes();
    Some([a, b, c])
}

fn base64(run: &[u8], found: &mut Vec<Run>) {
    let shifts = if run.len() >= MIN_SHIFTED { 4 } else { 1 };
    for skip in 0..shifts {
        let packed = pack_start(run, skip);
        if let Some(start) = packed {
            push_packed(&bytes64(run, start), start, found);
        }
        if !(stretch(run.len(), skip, 4, 3, |at| {
            group64(run, at).map(|g| g.into_iter().all(is_printable))
        }) || skip == 0 && is_wide(run))
        {
            continue;
        }
        let start = text_start(run, skip, |at| bytes64(run, at));
        push(bytes64(run, start), start, "base64", found);
    }
    if der_like(run) {
        push_packed(&bytes64(run, 0), 0, found);
    }
}

/// All bytes from the digit at `start` on; a cut last group gives what it has.
fn bytes64(run: &[u8], start: usize) -> Vec<u8> {
    let digits = run.get(start..).unwrap_or(&[]);
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.chunks(4) {
        let bits = chunk
            .iter()
            .fold(0, |bits, &b| bits << 6 | (value64(b) & 63));
        let [_, a, b, c] = (bits << (6 * (4 - chunk.len()))).to_be_bytes();
        out.extend([a, b, c].into_iter().take(chunk.len() * 3 / 4));
    }
    out
}

/// True when a row of at least `MIN_STRETCH` printable bytes is in sight. Groups of `digits`
/// digits hold `bytes` bytes; only every so many is looked at until one is printable.
fn stretch(
    length: usize,
    skip: usize,
    digits: usize,
    bytes: usize,
    printable: impl Fn(usize) -> Option<bool>,
) -> bool {
    let needed = MIN_STRETCH.min(length.saturating_sub(skip) / digits * bytes) / bytes;
    let step = digits * needed.max(1);
    let good = |at: usize| printable(at) == Some(true);
    let mut at = skip + step - digits;
    while at + digits <= length {
        if good(at) {
            let mut row = 1;
            let mut back = at;
            while row < needed && back >= skip + digits && good(back - digits) {
                back -= digits;
                row += 1;
            }
            let mut ahead = at + digits;
            while row < needed && good(ahead) {
                ahead += digits;
                row += 1;
            }
            if row >= needed && needed > 1 {
                return true;
            }
        }
        at += step;
    }
    false
}

const fn is_printable(b: u8) -> bool {
    matches!(b, b' '..=0x7e | b'\t' | b'\n' | b'\r')
}

/// Nine of ten bytes are printable or part of UTF-8.
fn is_text(bytes: &[u8]) -> bool {
    let good: usize = bytes
        .utf8_chunks()
        .flat_map(|chunk| chunk.valid().chars())
        .filter(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r'))
        .map(char::len_utf8)
        .sum();
    good * 10 >= bytes.len() * 9 && !bytes.is_empty()
}

/// Where the encoded text begins: at the run, or behind the label that it is glued to.
fn text_start(run: &[u8], skip: usize, bytes: impl Fn(usize) -> Vec<u8>) -> usize {
    let labels = run
        .iter()
        .enumerate()
        .filter(|(at, b)| matches!(b, b'-' | b'_' | b'/' | b'+') && at % 4 == (skip + 3) % 4)
        .map(|(at, _)| at + 1)
        .take(8);
    let mut starts = (skip == 0).then_some(0).into_iter().chain(labels);
    // Without a clean start the run goes from its first digit of this alignment.
    let clean = |at: &usize| {
        let decoded = bytes(*at);
        decoded.first().is_some_and(|&b| is_printable(b)) && is_text(&decoded)
    };
    starts.find(clean).unwrap_or(skip)
}

fn push(bytes: Vec<u8>, start: usize, class: &'static str, found: &mut Vec<Run>) {
    let decoded = bytes.len() as u64;
    let text = match wide(&bytes) {
        Some(text) => text,
        None => String::from_utf8_lossy(&bytes)
            .chars()
            .map(|c| {
                if c.is_control() && !matches!(c, '\t' | '\n' | '\r') {
                    '\u{fffd}'
                } else {
                    c
                }
            })
            .collect(),
    };
    found.push(Run {
        start,
        end: 0,
        class,
        content: Content::Text(text),
        decoded,
    });
}

/// UTF-16 without a mark: every other byte is zero.
fn wide(bytes: &[u8]) -> Option<String> {
    let zeros = |offset: usize| {
        bytes
            .iter()
            .skip(offset)
            .step_by(2)
            .filter(|&&b| b == 0)
            .count()
    };
    let half = bytes.len() / 2;
    let little = if zeros(1) * 10 >= half * 9 {
        true
    } else if zeros(0) * 10 >= half * 9 {
        false
    } else {
        return None;
    };
    let units = bytes.chunks_exact(2).map(|pair| match pair {
        [a, b] if little => u16::from_le_bytes([*a, *b]),
        [a, b] => u16::from_be_bytes([*a, *b]),
        _ => 0xfffd,
    });
    (half >= 4).then(|| {
        char::decode_utf16(units)
            .map(|c| c.unwrap_or('\u{fffd}'))
            .collect()
    })
}

/// Base64 of UTF-16 of ASCII text: more than every fifth digit is `A`.
fn is_wide(run: &[u8]) -> bool {
    run.iter().filter(|&&b| b == b'A').count() * 5 > run.len()
}

/// Where a gzip or zlib stream begins at this alignment.
fn pack_start(run: &[u8], skip: usize) -> Option<usize> {
    if let Some(at) = memchr::memmem::find(run, b"H4sI")
        && at % 4 == skip
    {
        return Some(at);
    }
    let head = run.get(skip..skip + 2)?;
    (skip == 0
        && head.first() == Some(&b'e')
        && matches!(head.get(1), Some(b'A' | b'F' | b'J' | b'N')))
    .then_some(skip)
}

fn der_like(run: &[u8]) -> bool {
    run.starts_with(b"MI")
        || run.starts_with(b"MC")
        || run.starts_with(b"MH")
        || run.starts_with(b"b3BlbnNzaC1rZXk")
}

/// Bytes that are no text: packed text, or a private key.
fn push_packed(bytes: &[u8], start: usize, found: &mut Vec<Run>) {
    let content = if is_private_key(bytes) {
        Content::PrivateKey
    } else {
        match inflate(bytes) {
            Some(content) => content,
            None => return,
        }
    };
    let decoded = match &content {
        Content::Text(text) => (bytes.len() + text.len()) as u64,
        Content::PrivateKey => bytes.len() as u64,
        Content::TooLarge => bytes.len() as u64 + MAX_INFLATED,
    };
    found.push(Run {
        start,
        end: 0,
        class: "packed",
        content,
        decoded,
    });
}

fn inflate(bytes: &[u8]) -> Option<Content> {
    let mut out = Vec::new();
    // A cut stream ends with an error behind what it gave.
    let _ = match bytes {
        [0x1f, 0x8b, 8, ..] => GzDecoder::new(bytes)
            .take(MAX_INFLATED + 1)
            .read_to_end(&mut out),
        [0x78, second, ..] if (0x7800 + u32::from(*second)).is_multiple_of(31) => {
            ZlibDecoder::new(bytes)
                .take(MAX_INFLATED + 1)
                .read_to_end(&mut out)
        }
        _ => return None,
    };
    if out.len() as u64 > MAX_INFLATED {
        return Some(Content::TooLarge);
    }
    is_text(&out).then(|| Content::Text(String::from_utf8_lossy(&out).into_owned()))
}

/// PKCS#8, PKCS#1, SEC1 and OpenSSH bodies by their first members.
fn is_private_key(bytes: &[u8]) -> bool {
    if bytes.starts_with(b"openssh-key-v1\0") {
        return true;
    }
    let body = match bytes {
        [0x30, 0x82, _, _, rest @ ..] | [0x30, 0x81, _, rest @ ..] => rest,
        [0x30, length, rest @ ..] if *length < 0x80 => rest,
        _ => return false,
    };
    matches!(
        body,
        [2, 1, 0, 0x30, _, 6, ..]
            | [2, 1, 0, 0x30, 0x81, _, 6, ..]
            | [2, 1, 0, 2, 0x81 | 0x82, ..]
            | [2, 1, 0, 2, 0x40..=0x7f, ..]
            | [2, 1, 1, 4, 0x1c..=0x42, ..]
    )
}

fn hexadecimal(run: &[u8], found: &mut Vec<Run>) {
    let mut at = 0;
    while at + MIN_HEX <= run.len() {
        let length = run
            .get(at..)
            .unwrap_or(&[])
            .iter()
            .take_while(|b| b.is_ascii_hexdigit())
            .count();
        if length >= MIN_HEX {
            hex_run(run.get(at..at + length).unwrap_or(&[]), at, found);
        }
        at += length + 1;
    }
}

fn hex_run(run: &[u8], start: usize, found: &mut Vec<Run>) {
    let nibble = |at: usize| run.get(at).and_then(|&b| char::from(b).to_digit(16));
    let pair = |at: usize| {
        let value = nibble(at)? * 16 + nibble(at + 1)?;
        u8::try_from(value).ok()
    };
    let bytes =
        |skip: usize| -> Vec<u8> { (skip..run.len()).step_by(2).filter_map(pair).collect() };
    if matches!((pair(0), pair(1)), (Some(0x1f | 0x78 | 0x30 | 0x6f), _)) {
        push_packed(&bytes(0), start, found);
    }
    for skip in 0..2 {
        if stretch(run.len(), skip, 2, 1, |at| pair(at).map(is_printable)) {
            push(bytes(skip), start, "hex", found);
        }
    }
}

/// Capital or small letters and `2` to `7`; only such runs are tried.
fn base32(run: &[u8], found: &mut Vec<Run>) {
    let upper = |b: &u8| b.is_ascii_uppercase() || (b'2'..=b'7').contains(b);
    let lower = |b: &u8| b.is_ascii_lowercase() || (b'2'..=b'7').contains(b);
    if !run.iter().all(upper) && !run.iter().all(lower) {
        return;
    }
    let value = |b: u8| match b {
        b'2'..=b'7' => u64::from(b - b'2') + 26,
        _ => u64::from(b.to_ascii_uppercase().saturating_sub(b'A')),
    };
    let shifts = if run.len() >= MIN_SHIFTED { 8 } else { 1 };
    for skip in 0..shifts {
        let mut out = Vec::with_capacity(run.len() * 5 / 8);
        for chunk in run.get(skip..).unwrap_or(&[]).chunks(8) {
            let bits = chunk.iter().fold(0_u64, |bits, &b| bits << 5 | value(b));
            let all = (bits << (5 * (8 - chunk.len()))).to_be_bytes();
            out.extend(all.into_iter().skip(3).take(chunk.len() * 5 / 8));
        }
        if out.len() >= 10 && is_text(&out) {
            push(out, 0, "base32", found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Content, runs, texts};

    #[test]
    fn paths_ids_and_digests_decode_to_nothing() {
        for text in [
            "/usr/lib/python3/dist-packages/yaml/loader",
            "4bf92f3577b34da6a3ce929d0e0e4736",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "550e8400-e29b-41d4-a716-446655440000",
            "z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg",
            "com/example/shop/CheckoutServiceImplementation",
        ] {
            assert_eq!(texts(text), Vec::new(), "{text}");
        }
    }

    #[test]
    fn every_alphabet_is_decoded_at_every_alignment() {
        let plain = "the word behind the label";
        for label in ["", "a", "ab", "abc", "x-", "xy_", "xyz/", "data-"] {
            let encoded = data_encoding::BASE64_NOPAD.encode(plain.as_bytes());
            let text = format!("({label}{encoded})");
            assert!(
                texts(&text).iter().any(|(_, _, t)| t.ends_with(plain)),
                "{text} {:?}",
                texts(&text)
            );
            let hex = data_encoding::HEXLOWER.encode(plain.as_bytes());
            assert!(
                texts(&format!("x{hex}"))
                    .iter()
                    .any(|(_, _, t)| t.contains(plain))
            );
        }
        for encoded in [
            data_encoding::BASE32.encode(plain.as_bytes()),
            data_encoding::BASE32_NOPAD
                .encode(plain.as_bytes())
                .to_lowercase(),
            data_encoding::BASE64URL.encode(plain.as_bytes()),
        ] {
            assert_eq!(
                texts(&encoded),
                [(0, encoded.len(), plain.to_owned())],
                "{encoded}"
            );
        }
    }

    #[test]
    fn a_label_with_a_separator_stays_beside_the_run() {
        let encoded = data_encoding::BASE64_NOPAD.encode(b"the word behind the label");
        let text = format!("/decode/{encoded}");
        assert_eq!(
            texts(&text).first().map(|t| (t.0, t.1)),
            Some((8, text.len()))
        );
    }

    #[test]
    fn a_folded_run_is_one_run() {
        let plain = "a longer text that a mailer folds after a fixed number of letters";
        let encoded = data_encoding::BASE64.encode(plain.as_bytes());
        for width in [16, 20, 32, 64] {
            let lines: Vec<&str> = encoded
                .as_bytes()
                .chunks(width)
                .map(|c| std::str::from_utf8(c).unwrap())
                .collect();
            for fold in ["\n", "\r\n", "\n  "] {
                let text = lines.join(fold);
                assert_eq!(texts(&text), [(0, text.len(), plain.to_owned())], "{text}");
            }
        }
    }

    #[test]
    fn packed_text_is_inflated_to_a_bound() {
        use std::io::Write as _;
        let pack = |size: usize| {
            let mut packer =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            packer.write_all(&vec![b'a'; size]).unwrap();
            data_encoding::BASE64.encode(&packer.finish().unwrap())
        };
        assert_eq!(texts(&pack(600))[0].2, "a".repeat(600));
        let bomb = runs(&pack(1 << 20), |_, _| true);
        assert!(bomb.iter().any(|run| run.content == Content::TooLarge));
    }

    #[test]
    fn utf_16_inside_base64_is_read() {
        let bytes: Vec<u8> = "password=x"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let encoded = data_encoding::BASE64.encode(&bytes);
        assert!(
            texts(&encoded).iter().any(|t| t.2 == "password=x"),
            "{encoded}"
        );
    }
}
