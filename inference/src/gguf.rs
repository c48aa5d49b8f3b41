//! The header of a GGUF file, checked in Rust before any C++ sees the file (inference 4.3).
//!
//! The check owns no model knowledge beyond what it takes to refuse a broken or hostile file and to say how much
//! memory the context will need. It reads the header once, front to back, with every count bounded first.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

const MAX_ENTRIES: u64 = 1 << 20;
const MAX_KEY: u64 = 256;
const MAX_STRING: u64 = 16 << 20;
const MAX_ARRAY: u64 = 1 << 24;
const MAX_ALIGNMENT: u64 = 4_096;

/// Architectures that the engine is known to run.
const ARCHITECTURES: &[&str] = &[
    "gemma", "gemma2", "gemma3", "granite", "llama", "mistral3", "phi3", "qwen2", "qwen3",
    "smollm3",
];

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It ends too early or cannot be read.
    #[error("the model file cannot be read to the end of its header")]
    Read(#[from] std::io::Error),
    /// It is not what it should be.
    #[error("the model file is refused: {0}")]
    Refused(&'static str),
    /// The architecture is not one that the engine is known to run.
    #[error("the model architecture `{0}` is not known")]
    Architecture(String),
}

/// What the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// `general.architecture`.
    pub architecture: String,
    /// Bytes of context memory per token with 16-bit elements.
    pub kv_bytes_per_token: u64,
    /// Context that the model was trained on.
    pub context_length: u64,
}

struct Reader<R> {
    from: R,
    position: u64,
}

impl<R: Read> Reader<R> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut buffer = [0; N];
        self.from.read_exact(&mut buffer)?;
        self.position += N as u64;
        Ok(buffer)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Error> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn text(&mut self, max: u64, what: &'static str) -> Result<String, Error> {
        let length = self.u64()?;
        if length > max {
            return Err(Error::Refused(what));
        }
        let mut buffer = Vec::new();
        let got = self.from.by_ref().take(length).read_to_end(&mut buffer)?;
        if got as u64 != length {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        self.position += length;
        String::from_utf8(buffer).map_err(|_| Error::Refused(what))
    }

    fn skip(&mut self, count: u64) -> Result<(), Error> {
        let copied = std::io::copy(&mut self.from.by_ref().take(count), &mut std::io::sink())?;
        if copied != count {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
        }
        self.position += count;
        Ok(())
    }

    /// Reads one value; numbers and texts come back, arrays are only checked.
    fn value(&mut self, kind: u32) -> Result<Value, Error> {
        Ok(match kind {
            0 => Value::Number(u64::from(self.bytes::<1>().map(u8::from_le_bytes)?)),
            2 => Value::Number(u64::from(self.bytes().map(u16::from_le_bytes)?)),
            4 => Value::Number(u64::from(self.u32()?)),
            10 => Value::Number(self.u64()?),
            8 => Value::Text(self.text(MAX_STRING, "a text is too long or not UTF-8")?),
            9 => {
                let (inner, count) = (self.u32()?, self.u64()?);
                self.array(inner, count)?;
                Value::Other
            }
            _ => {
                self.skip(width(kind)?)?;
                Value::Other
            }
        })
    }

    fn array(&mut self, kind: u32, count: u64) -> Result<(), Error> {
        if count > MAX_ARRAY {
            return Err(Error::Refused("an array is too long"));
        }
        match kind {
            8 => {
                for _ in 0..count {
                    let length = self.u64()?;
                    if length > MAX_STRING {
                        return Err(Error::Refused("a text is too long or not UTF-8"));
                    }
                    self.skip(length)?;
                }
                Ok(())
            }
            9 => Err(Error::Refused("an array of arrays")),
            _ => self.skip(width(kind)? * count),
        }
    }
}

enum Value {
    Number(u64),
    Text(String),
    Other,
}

fn width(kind: u32) -> Result<u64, Error> {
    match kind {
        0 | 1 | 7 => Ok(1),
        2 | 3 => Ok(2),
        4..=6 => Ok(4),
        10..=12 => Ok(8),
        _ => Err(Error::Refused("a value of an unknown type")),
    }
}

/// Elements and bytes of one block of a tensor type, for the types that ggml defines.
fn block(kind: u32) -> Result<(u64, u64), Error> {
    Ok(match kind {
        0 | 26 => (1, 4),
        1 | 25 | 30 => (1, 2),
        24 => (1, 1),
        27 | 28 => (1, 8),
        2 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        9 => (32, 36),
        10 => (256, 84),
        11 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        15 => (256, 292),
        16 => (256, 66),
        17 => (256, 74),
        18 => (256, 98),
        19 => (256, 50),
        20 => (32, 18),
        21 => (256, 110),
        22 => (256, 82),
        23 => (256, 136),
        29 => (256, 56),
        _ => return Err(Error::Refused("a tensor of an unknown type")),
    })
}

/// Reads and checks the header of a file of `size` bytes.
///
/// # Errors
/// [`Error`] when the file is broken, hostile, split, or of an architecture that is not known.
pub fn check(from: impl Read, size: u64) -> Result<Header, Error> {
    let mut reader = Reader { from, position: 0 };
    if &reader.bytes::<4>()? != b"GGUF" {
        return Err(Error::Refused("not a GGUF file"));
    }
    if !matches!(reader.u32()?, 2 | 3) {
        return Err(Error::Refused("a GGUF version other than 2 and 3"));
    }
    let (tensors, keys) = (reader.u64()?, reader.u64()?);
    if tensors > MAX_ENTRIES || keys > MAX_ENTRIES || tensors == 0 {
        return Err(Error::Refused(
            "the number of tensors or keys is out of bounds",
        ));
    }
    let mut facts = BTreeMap::new();
    for _ in 0..keys {
        let key = reader.text(MAX_KEY, "a key is too long or not UTF-8")?;
        let kind = reader.u32()?;
        let value = reader.value(kind)?;
        if facts.insert(key, value).is_some() {
            return Err(Error::Refused("a key is there twice"));
        }
    }
    let number = |key: &str| match facts.get(key) {
        Some(Value::Number(number)) => Some(*number),
        Some(Value::Text(_) | Value::Other) | None => None,
    };
    if number("split.count").is_some_and(|count| count > 1) {
        return Err(Error::Refused("a split file"));
    }
    let alignment = number("general.alignment").unwrap_or(32);
    if !alignment.is_power_of_two() || !(8..=MAX_ALIGNMENT).contains(&alignment) {
        return Err(Error::Refused("the alignment is out of bounds"));
    }
    let architecture = match facts.get("general.architecture") {
        Some(Value::Text(name)) => name.clone(),
        Some(Value::Number(_) | Value::Other) | None => {
            return Err(Error::Refused("no architecture"));
        }
    };
    if !ARCHITECTURES.contains(&architecture.as_str()) {
        return Err(Error::Architecture(architecture.chars().take(32).collect()));
    }
    check_tensors(&mut reader, tensors, alignment, size)?;
    let field = |name: &str| number(&format!("{architecture}.{name}"));
    let kv_bytes_per_token =
        kv_bytes(field)
            .filter(|bytes| *bytes <= 64 << 20)
            .ok_or(Error::Refused(
                "the sizes of the model are missing or out of bounds",
            ))?;
    Ok(Header {
        kv_bytes_per_token,
        context_length: field("context_length").unwrap_or(0),
        architecture,
    })
}

/// 2 x layers x heads x head size x 2 bytes (inference 4.6).
fn kv_bytes(field: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let layers = field("block_count")?;
    let heads = field("attention.head_count")?;
    let kv_heads = field("attention.head_count_kv").unwrap_or(heads);
    let head = match field("attention.key_length") {
        Some(length) => length,
        None => field("embedding_length")?.checked_div(heads)?,
    };
    2_u64
        .checked_mul(layers)?
        .checked_mul(kv_heads)?
        .checked_mul(head)?
        .checked_mul(2)
        .filter(|bytes| *bytes > 0)
}

fn check_tensors<R: Read>(
    reader: &mut Reader<R>,
    tensors: u64,
    alignment: u64,
    size: u64,
) -> Result<(), Error> {
    let overflow = || Error::Refused("the size of a tensor overflows");
    let mut names = BTreeSet::new();
    let mut end = 0_u64;
    for _ in 0..tensors {
        let name = reader.text(MAX_KEY, "a tensor name is too long or not UTF-8")?;
        if !names.insert(name) {
            return Err(Error::Refused("a tensor is there twice"));
        }
        let dims = reader.u32()?;
        if !(1..=4).contains(&dims) {
            return Err(Error::Refused("a tensor has more than four dimensions"));
        }
        let mut elements = 1_u64;
        let mut row = 1;
        for index in 0..dims {
            let length = reader.u64()?;
            if index == 0 {
                row = length;
            }
            elements = elements.checked_mul(length).ok_or_else(overflow)?;
        }
        let (per_block, block_bytes) = block(reader.u32()?)?;
        if elements == 0 || row % per_block != 0 {
            return Err(Error::Refused("a tensor does not fill its blocks"));
        }
        let bytes = (elements / per_block)
            .checked_mul(block_bytes)
            .ok_or_else(overflow)?;
        let offset = reader.u64()?;
        if offset % alignment != 0 {
            return Err(Error::Refused("a tensor is not aligned"));
        }
        end = end.max(offset.checked_add(bytes).ok_or_else(overflow)?);
    }
    let data = reader.position.next_multiple_of(alignment);
    if data.checked_add(end).is_none_or(|last| last > size) {
        return Err(Error::Refused("a tensor lies outside the file"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{Error, Header, check};

    fn text(to: &mut Vec<u8>, text: &str) {
        to.extend((text.len() as u64).to_le_bytes());
        to.extend(text.as_bytes());
    }

    fn key_u32(to: &mut Vec<u8>, key: &str, value: u32) {
        text(to, key);
        to.extend(4_u32.to_le_bytes());
        to.extend(value.to_le_bytes());
    }

    /// A header with one tensor of 32 x 2 `Q8_0` and the size of the file that belongs to it.
    fn sample(architecture: &str, twice: bool) -> (Vec<u8>, u64) {
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend(1_u64.to_le_bytes());
        file.extend(if twice { 7_u64 } else { 6_u64 }.to_le_bytes());
        text(&mut file, "general.architecture");
        file.extend(8_u32.to_le_bytes());
        text(&mut file, architecture);
        key_u32(&mut file, "llama.block_count", 30);
        key_u32(&mut file, "llama.attention.head_count", 9);
        key_u32(&mut file, "llama.attention.head_count_kv", 3);
        key_u32(&mut file, "llama.embedding_length", 576);
        text(&mut file, "tokens");
        file.extend(9_u32.to_le_bytes());
        file.extend(8_u32.to_le_bytes());
        file.extend(2_u64.to_le_bytes());
        text(&mut file, "a");
        text(&mut file, "b");
        if twice {
            key_u32(&mut file, "llama.block_count", 30);
        }
        text(&mut file, "w");
        file.extend(2_u32.to_le_bytes());
        file.extend(32_u64.to_le_bytes());
        file.extend(2_u64.to_le_bytes());
        file.extend(8_u32.to_le_bytes());
        file.extend(0_u64.to_le_bytes());
        let size = (file.len() as u64).next_multiple_of(32) + 68;
        (file, size)
    }

    #[test]
    fn a_good_header_tells_the_memory_per_token() {
        let (file, size) = sample("llama", false);
        assert_eq!(
            check(Cursor::new(file), size).unwrap(),
            Header {
                architecture: "llama".to_owned(),
                kv_bytes_per_token: 23_040,
                context_length: 0,
            }
        );
    }

    #[test]
    fn every_truncation_of_a_good_header_is_refused() {
        let (file, size) = sample("llama", false);
        for end in 0..file.len() {
            assert!(check(Cursor::new(&file[..end]), size).is_err(), "{end}");
        }
    }

    #[test]
    fn a_file_is_refused_when_its_tensors_lie_outside_of_it() {
        let (file, size) = sample("llama", false);
        assert!(matches!(
            check(Cursor::new(file), size - 1),
            Err(Error::Refused("a tensor lies outside the file"))
        ));
    }

    #[test]
    fn unknown_architectures_and_doubled_keys_are_refused() {
        let (file, size) = sample("clip", false);
        assert!(matches!(
            check(Cursor::new(file), size),
            Err(Error::Architecture(name)) if name == "clip"
        ));
        let (file, size) = sample("llama", true);
        assert!(matches!(
            check(Cursor::new(file), size),
            Err(Error::Refused("a key is there twice"))
        ));
    }

    #[test]
    fn no_single_changed_byte_panics_the_check() {
        let (file, size) = sample("llama", false);
        for at in 0..file.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bad = file.clone();
                bad[at] = value;
                let _ = check(Cursor::new(bad), size);
            }
        }
    }
}
