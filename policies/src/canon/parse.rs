//! The strict JSON parser (guard 5.1.1, audit-bundle 1.2).

use std::collections::BTreeMap;

use super::{MAX_INT, Value};

/// How much a text may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest text in bytes.
    pub max_bytes: usize,
    /// Deepest nesting of arrays and objects; `{}` has depth 1.
    pub max_depth: usize,
}

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It is longer than the limit.
    TooLong,
    /// It is nested deeper than the limit.
    TooDeep,
    /// It is no UTF-8.
    Utf8,
    /// It starts with a byte order mark.
    Bom,
    /// It ends inside a value.
    End,
    /// A byte that has no place here.
    Byte,
    /// Something follows the value.
    Trailing,
    /// A key that the object has already.
    DuplicateKey,
    /// An escape that JSON does not have, or a lone surrogate.
    Escape,
    /// An unescaped control character in a string.
    Control,
    /// A number that is no integer within +-(2^53-1), or not in its one spelling.
    Number,
}

impl What {
    const fn text(self) -> &'static str {
        match self {
            Self::TooLong => "text longer than the limit",
            Self::TooDeep => "nesting deeper than the limit",
            Self::Utf8 => "not UTF-8",
            Self::Bom => "byte order mark",
            Self::End => "unexpected end",
            Self::Byte => "unexpected byte",
            Self::Trailing => "text after the value",
            Self::DuplicateKey => "duplicate key",
            Self::Escape => "bad escape or lone surrogate",
            Self::Control => "unescaped control character",
            Self::Number => "number that is no plain integer within 2^53-1",
        }
    }
}

/// Why a text is not strict JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} at byte {offset}", .what.text())]
pub struct Error {
    /// Byte offset of the problem.
    pub offset: usize,
    /// What is wrong there.
    pub what: What,
    /// The keys of the objects around the problem, outermost first. The guard answers a bad
    /// number inside `change` otherwise than one elsewhere (guard 3.3).
    pub path: Vec<String>,
}

/// Parses one JSON value that fills `bytes` (white space around tokens is allowed).
///
/// # Errors
/// The first thing in the text that guard 5.1.1 or `limits` refuse.
pub fn parse(bytes: &[u8], limits: Limits) -> Result<Value, Error> {
    let fail = |offset, what| Error {
        offset,
        what,
        path: Vec::new(),
    };
    if bytes.len() > limits.max_bytes {
        return Err(fail(limits.max_bytes, What::TooLong));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return Err(fail(0, What::Bom));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| fail(e.valid_up_to(), What::Utf8))?;
    let mut parser = Parser {
        text,
        at: 0,
        depth_left: limits.max_depth,
        path: Vec::new(),
    };
    let value = parser.value()?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(parser.fail(What::Trailing));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth_left: usize,
    path: Vec<String>,
}

impl Parser<'_> {
    fn fail(&self, what: What) -> Error {
        self.fail_at(self.at, what)
    }

    fn fail_at(&self, offset: usize, what: What) -> Error {
        Error {
            offset,
            what,
            path: self.path.clone(),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, Error> {
        let byte = self.peek().ok_or_else(|| self.fail(What::End))?;
        self.at += 1;
        Ok(byte)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes `byte` if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        let hit = self.peek() == Some(byte);
        self.at += usize::from(hit);
        hit
    }

    fn expect_byte(&mut self, byte: u8) -> Result<(), Error> {
        if self.take(byte) {
            return Ok(());
        }
        Err(match self.peek() {
            Some(_) => self.fail(What::Byte),
            None => self.fail(What::End),
        })
    }

    fn value(&mut self) -> Result<Value, Error> {
        self.skip_space();
        match self.peek() {
            None => Err(self.fail(What::End)),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => Ok(Value::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) => Err(self.fail(What::Byte)),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Error> {
        for byte in word.bytes() {
            self.expect_byte(byte)?;
        }
        Ok(value)
    }

    fn nested(&mut self, body: fn(&mut Self) -> Result<Value, Error>) -> Result<Value, Error> {
        let Some(left) = self.depth_left.checked_sub(1) else {
            return Err(self.fail(What::TooDeep));
        };
        self.depth_left = left;
        self.at += 1;
        let value = body(self)?;
        self.depth_left += 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, Error> {
        let mut members = BTreeMap::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Value::Map(members));
        }
        loop {
            self.skip_space();
            let start = self.at;
            let key = self.string()?;
            if members.contains_key(&key) {
                return Err(self.fail_at(start, What::DuplicateKey));
            }
            self.skip_space();
            self.expect_byte(b':')?;
            self.path.push(key.clone());
            let value = self.value()?;
            self.path.pop();
            members.insert(key, value);
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Map(members));
            }
            self.expect_byte(b',')?;
        }
    }

    fn array(&mut self) -> Result<Value, Error> {
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::List(items));
            }
            self.expect_byte(b',')?;
        }
    }

    fn string(&mut self) -> Result<String, Error> {
        self.expect_byte(b'"')?;
        let mut out = String::new();
        loop {
            let start = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            // Both ends lie at ASCII bytes, so the slice is on character borders.
            out.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.next()? {
                b'"' => return Ok(out),
                b'\\' => out.push(self.escape()?),
                _ => return Err(self.fail_at(self.at - 1, What::Control)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let start = self.at - 1;
        Ok(match self.next()? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex4(start)?;
                let code = if (0xd800..0xdc00).contains(&first) {
                    if !(self.take(b'\\') && self.take(b'u')) {
                        return Err(self.fail_at(start, What::Escape));
                    }
                    let second = self.hex4(start)?;
                    if !(0xdc00..0xe000).contains(&second) {
                        return Err(self.fail_at(start, What::Escape));
                    }
                    0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                } else {
                    first
                };
                char::from_u32(code).ok_or_else(|| self.fail_at(start, What::Escape))?
            }
            _ => return Err(self.fail_at(start, What::Escape)),
        })
    }

    fn hex4(&mut self, start: usize) -> Result<u32, Error> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = char::from(self.next()?).to_digit(16);
            code = code * 16 + digit.ok_or_else(|| self.fail_at(start, What::Escape))?;
        }
        Ok(code)
    }

    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        while matches!(
            self.peek(),
            Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
        ) {
            self.at += 1;
        }
        let token = self.text.get(start..self.at).unwrap_or_default();
        // The token is judged before it is converted: libraries map 2^53+1 to 2^53 silently.
        integer(token)
            .map(Value::Int)
            .ok_or_else(|| self.fail_at(start, What::Number))
    }
}

/// The integer that `-?(0|[1-9][0-9]*)` spells, without `-0` and within +-(2^53-1).
fn integer(token: &str) -> Option<i64> {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let plain =
        !digits.is_empty() && digits.len() <= 16 && digits.bytes().all(|b| b.is_ascii_digit());
    let lead = digits.len() > 1 && digits.starts_with('0');
    if !plain || lead || token == "-0" {
        return None;
    }
    let number: i64 = token.parse().ok()?;
    (-MAX_INT..=MAX_INT).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        max_bytes: 1000,
        max_depth: 4,
    };

    fn what(text: &[u8]) -> What {
        parse(text, LIMITS).unwrap_err().what
    }

    #[test]
    fn guard_5_1_1_every_refused_text_has_its_reason() {
        let cases: &[(&[u8], What)] = &[
            (b"\xef\xbb\xbf{}", What::Bom),
            (b"\"\xff\"", What::Utf8),
            (b"", What::End),
            (b"{\"a\":1,\"a\":1}", What::DuplicateKey),
            (b"{\"a\":1,\"\\u0061\":1}", What::DuplicateKey),
            (b"[{\"b\":{\"a\":1,\"a\":2}}]", What::DuplicateKey),
            (b"[[[[[]]]]]", What::TooDeep),
            (b"-0", What::Number),
            (b"01", What::Number),
            (b"1.0", What::Number),
            (b"4e1", What::Number),
            (b"-", What::Number),
            (b"1-1", What::Number),
            (b"9007199254740992", What::Number),
            (b"9007199254740993", What::Number),
            (b"-9007199254740992", What::Number),
            (b"99999999999999999999999999", What::Number),
            (b"NaN", What::Byte),
            (b"{} {}", What::Trailing),
            (b"[1,]", What::Byte),
            (b"{\"a\":1,}", What::Byte),
            (b"{a:1}", What::Byte),
            (b"\"\\ud800\"", What::Escape),
            (b"\"\\udc00\"", What::Escape),
            (b"\"\\ud800\\u0041\"", What::Escape),
            (b"\"\\x\"", What::Escape),
            (b"\"\\u12g4\"", What::Escape),
            (b"\"\t\"", What::Control),
            (b"\"abc", What::End),
            (b"nul", What::End),
            (b"+1", What::Byte),
            (b"'a'", What::Byte),
        ];
        for (text, wanted) in cases {
            let shown = String::from_utf8_lossy(text);
            assert_eq!(what(text), *wanted, "{shown}");
        }
        assert_eq!(what(&[b' '; 1001]), What::TooLong);
    }

    #[test]
    fn plain_texts_parse() {
        let value = parse(
            b" {\"a\" : [ -1, 9007199254740991, true, null ], \"b\":\"\\ud83d\\ude00\\/\"}\n",
            LIMITS,
        )
        .unwrap();
        assert_eq!(
            value.to_jcs(),
            "{\"a\":[-1,9007199254740991,true,null],\"b\":\"\u{1f600}/\"}"
        );
        assert!(parse(b"[[[[]]]]", LIMITS).is_ok());
    }

    #[test]
    fn an_error_says_where_it_is() {
        let error = parse(b"{\"v\":1,\"change\":{\"replicas\":4e1}}", LIMITS).unwrap_err();
        assert_eq!((error.what, error.offset), (What::Number, 28));
        assert_eq!(error.path, ["change", "replicas"]);
    }
}
