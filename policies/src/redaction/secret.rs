//! Values of sensitive keys: `key = value` in JSON, YAML, logfmt, environment, query strings.

use super::scan::{Hits, byte, is_word, run_end, run_start, run_within, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "secret",
    anchor: Anchor::Bytes(b'=', b':', scan),
};

/// Every key whose value can be a find holds one of these.
pub(super) fn stems() -> impl Iterator<Item = &'static str> {
    let others = ["key", "kty", "auth"];
    SENSITIVE.iter().chain(ENDINGS).copied().chain(others)
}

/// Last segments that make a key sensitive.
const SENSITIVE: &[&str] = &[
    "apikey",
    "authtoken",
    "cred",
    "credential",
    "credentials",
    "creds",
    "cvc",
    "cvv",
    "pass",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwort",
    "kennwort",
    "contrasena",
    "senha",
    "motdepasse",
    "psk",
    "pwd",
    "secret",
    "secrets",
    "token",
];
/// Endings that make a key of one run of letters sensitive (`dbpassword`, `accesstoken`).
const ENDINGS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "secretkey",
    "accesskey",
    "privatekey",
    "accountkey",
    "sharedkey",
    "signingkey",
    "encryptionkey",
    "masterkey",
];
/// Words before `key` that make it a secret.
const KEY_OF: &[&str] = &[
    "access",
    "account",
    "api",
    "encryption",
    "master",
    "private",
    "secret",
    "shared",
    "signing",
];
/// Words that stand where a value could, and are none.
const WORDS: &[&str] = &[
    "null",
    "none",
    "nil",
    "true",
    "false",
    "undefined",
    "empty",
    "redacted",
    "masked",
    "hidden",
    "removed",
    "required",
    "missing",
    "invalid",
    "expired",
    "unset",
    "n/a",
    "na",
    "not",
    "is",
    "was",
    "must",
    "has",
    "string",
    "changeme",
    "unknown",
    "default",
    "optional",
    "yes",
    "no",
    "ok",
    "valid",
    "failed",
    "denied",
    "granted",
    "incorrect",
    "wrong",
    "rejected",
    "refused",
    "accepted",
    "set",
    "str",
    "bytes",
];

fn scan(text: &str, at: usize, hits: &mut Hits) {
    let Some(key) = key_before(text, at) else {
        return;
    };
    let rare = match key.name {
        "auth" | "_auth" => return docker_auth(text, at, hits),
        "value" => names_variable(text, at),
        "d" | "p" | "q" | "dp" | "dq" | "qi" | "k" => is_jwk(text, at, &key),
        _ => false,
    };
    let jwk = rare && key.name != "value";
    if !rare && !is_sensitive(key.name) {
        let plural =
            key.name.ends_with(['s', 'S']) && is_sensitive(key.name.trim_end_matches(['s', 'S']));
        if plural {
            list(text, at, hits);
        }
        return;
    }
    if list(text, at, hits) {
        return;
    }
    let Some(value) = value_after(text, at) else {
        return;
    };
    hits.spend(value.end.saturating_sub(at));
    let content = slice(text, value.start, value.end);
    if content.len() < 2 || is_placeholder(content) {
        return;
    }
    let assigned =
        byte(text, at) == Some(b'=') || key.quoted || value.quoted || leads(text, key.start);
    if !assigned && !random_like(content) {
        return;
    }
    let kind = if jwk { Kind::Privkey } else { Kind::Secret };
    hits.add(kind, value.start, value.end);
}

/// `"passwords": ["one", "two"]`: every element that is quoted.
fn list(text: &str, at: usize, hits: &mut Hits) -> bool {
    let open = run_end(text, at + 1, |b| b == b' ');
    if byte(text, open) != Some(b'[') {
        return false;
    }
    let mut next = open + 1;
    for _ in 0..64 {
        let quote = run_end(text, next, |b| matches!(b, b' ' | b','));
        let Some(q @ (b'"' | b'\'')) = byte(text, quote) else {
            break;
        };
        let end = quoted_end(text, quote + 1, q, 0);
        if end > quote + 2 && !is_placeholder(slice(text, quote + 1, end)) {
            hits.add(Kind::Secret, quote + 1, end);
        }
        next = end + 1;
    }
    next > open + 1
}

/// `"auth": "..."` of a registry login, whose value decodes to a user and a password.
fn docker_auth(text: &str, at: usize, hits: &mut Hits) {
    let Some(value) = value_after(text, at) else {
        return;
    };
    let decoded = data_encoding::BASE64.decode(slice(text, value.start, value.end).as_bytes());
    if decoded.is_ok_and(|bytes| bytes.len() > 3 && bytes.is_ascii() && bytes.contains(&b':')) {
        hits.add(Kind::Auth, value.start, value.end);
    }
}

/// `{"name":"DB_PASSWORD","value":"..."}`: a sensitive name precedes the key `value`.
fn names_variable(text: &str, at: usize) -> bool {
    let from = run_start(text, at, 96, |b| b != b'{' && b != b'\n');
    let Some((_, rest)) = slice(text, from, at).split_once("name") else {
        return false;
    };
    let rest = rest.trim_start_matches(['"', '\'', '\\', ' ', ':', '=']);
    is_sensitive(slice(rest, 0, run_end(rest, 0, is_key)))
}

/// A member of a JSON web key.
fn is_jwk(text: &str, at: usize, key: &Key<'_>) -> bool {
    let from = run_start(text, at, 2048, |b| b != b'{');
    let to = run_within(text, at, 2048, |b| b != b'}');
    key.quoted
        && memchr::memmem::find(text.as_bytes().get(from..to).unwrap_or(&[]), b"kty").is_some()
}

pub(super) struct Key<'a> {
    pub(super) name: &'a str,
    /// Between quotes.
    quoted: bool,
    /// Where it begins, with dashes.
    start: usize,
}

const fn is_key(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

/// The key that ends before the separator at `at`.
pub(super) fn key_before(text: &str, at: usize) -> Option<Key<'_>> {
    let blank = run_start(text, at, 4, |b| b == b' ' || b == b'\t');
    let quotes = run_start(text, blank, 4, |b| {
        matches!(b, b'"' | b'\'' | b'\\' | b'`' | b']')
    });
    let start = run_start(text, quotes, 65, is_key);
    let name = slice(text, start, quotes);
    let name = name.trim_start_matches(['-', '.']);
    if name.is_empty() {
        return None;
    }
    let mark = slice(text, quotes, blank);
    Some(Key {
        name,
        start,
        quoted: mark.contains(['"', '\'', '`']),
    })
}

/// True for a key that is first on its line but for blanks and dashes, as in YAML, or for `export`.
fn leads(text: &str, start: usize) -> bool {
    let from = run_start(text, start, 64, |b| b != b'\n');
    let before = slice(text, from, start).trim();
    before.chars().all(|c| c == '-') && (before.is_empty() || start - from < 64)
        || before.ends_with("export")
        || byte(text, start) == Some(b'-')
}

/// Judges the last segment of a key; segments are cut at `_ - .` and before a capital letter that
/// follows a small one or a digit. Nearly every key of a log is refused here, so that nothing is
/// allocated.
pub(super) fn is_sensitive(name: &str) -> bool {
    let mut segments = Segments(name.as_bytes());
    let Some(mut last) = segments.next() else {
        return false;
    };
    // A number counts values of the same name: `PASSWORD_2`.
    if last.iter().all(u8::is_ascii_digit) {
        match segments.next() {
            Some(before) => last = before,
            None => return false,
        }
    }
    let is = |segment: &[u8], word: &str| segment.eq_ignore_ascii_case(word.as_bytes());
    if is(last, "key") {
        return segments
            .next()
            .is_some_and(|before| KEY_OF.iter().any(|word| is(before, word)));
    }
    let Some(ending) = last.last().map(u8::to_ascii_lowercase) else {
        return false;
    };
    let ends = |words: &[&str]| {
        words
            .iter()
            .any(|word| word.as_bytes().last() == Some(&ending))
    };
    // One letter decides for most keys.
    b"acdeklnstvy".contains(&ending)
        && ((ends(SENSITIVE) && SENSITIVE.iter().any(|word| is(last, word)))
            || ENDINGS.iter().any(|end| {
                last.len()
                    .checked_sub(end.len())
                    .and_then(|at| last.get(at..))
                    .is_some_and(|tail| is(tail, end))
            }))
}

/// The segments of a key, the last one first.
struct Segments<'a>(&'a [u8]);

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let cut = |b: &u8| matches!(b, b'_' | b'-' | b'.');
        while let [rest @ .., last] = self.0
            && cut(last)
        {
            self.0 = rest;
        }
        if self.0.is_empty() {
            return None;
        }
        let mut start = self.0.len() - 1;
        while let Some(before) = start.checked_sub(1).and_then(|at| self.0.get(at)) {
            let hump = self.0.get(start).is_some_and(u8::is_ascii_uppercase)
                && (before.is_ascii_lowercase() || before.is_ascii_digit());
            if cut(before) || hump {
                break;
            }
            start -= 1;
        }
        let (rest, segment) = self.0.split_at_checked(start)?;
        self.0 = rest;
        Some(segment)
    }
}

pub(super) struct Value {
    pub(super) start: usize,
    pub(super) end: usize,
    quoted: bool,
}

/// The value behind the separator at `at`.
pub(super) fn value_after(text: &str, at: usize) -> Option<Value> {
    // `==`, `!=`, `::` and `://` assign nothing.
    let doubled = matches!(byte(text, at + 1), Some(b'=' | b':' | b'/') if byte(text, at + 1) == byte(text, at) || byte(text, at + 2) == Some(b'/'));
    let compared = at
        .checked_sub(1)
        .and_then(|p| byte(text, p))
        .is_some_and(|b| matches!(b, b'=' | b':' | b'!' | b'<' | b'>'));
    if doubled || (compared && slice(text, at.saturating_sub(1), at + 1) != ":=") {
        return None;
    }
    let from = if matches!(byte(text, at + 1), Some(b'>' | b'=')) {
        at + 2
    } else {
        at + 1
    };
    let from = run_end(text, from, |b| b == b' ' || b == b'\t');
    let slashes = run_end(text, from, |b| b == b'\\') - from;
    if let Some(q @ (b'"' | b'\'' | b'`')) = byte(text, from + slashes) {
        let start = from + slashes + 1;
        let end = quoted_end(text, start, q, slashes);
        return Some(Value {
            start,
            end,
            quoted: true,
        });
    }
    let end = bare_end(text, from);
    Some(Value {
        start: from,
        end,
        quoted: false,
    })
}

/// End of a quoted value: the same quote behind as many backslashes, or the end of the line.
fn quoted_end(text: &str, start: usize, quote: u8, slashes: usize) -> usize {
    let mut run = 0;
    for (n, b) in text.bytes().skip(start).enumerate() {
        if b == b'\n' {
            return start + n;
        }
        if b == quote && (run == slashes || (run == 0 && slashes == 0)) {
            return start + n - run;
        }
        run = if b == b'\\' { run + 1 } else { 0 };
    }
    text.len()
}

/// End of a bare value. A list separator ends it only before something that is not its rest.
fn bare_end(text: &str, start: usize) -> usize {
    let mut at = start;
    let mut open = 0_u32;
    while let Some(b) = byte(text, at) {
        let closes = matches!(b, b')' | b']' | b'}' | b'>');
        let stop = match b {
            b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'`' => true,
            b',' | b';' | b'&' => begins_field(text, at + 1),
            // A bracket that the value opened belongs to it.
            _ if closes && open > 0 => {
                open -= 1;
                false
            }
            _ if closes => byte(text, at + 1).is_none_or(|n| !is_word(n)),
            b'(' | b'[' | b'{' | b'<' => {
                open += 1;
                false
            }
            b'\\' => matches!(byte(text, at + 1), Some(b'"' | b'n' | b'r' | b't')),
            _ => b < b' ' || b == 0x7f,
        };
        if stop {
            break;
        }
        at += 1;
    }
    // The end of a sentence is no part of the value.
    start
        + slice(text, start, at)
            .trim_end_matches(['.', ',', ';', ':', '!', '?'])
            .len()
}

/// True when a new field, a blank or the end of the text follows a list separator.
fn begins_field(text: &str, at: usize) -> bool {
    match byte(text, at) {
        None | Some(b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'{' | b'}' | b')') => true,
        Some(_) => {
            let end = run_end(text, at, is_key);
            end > at && matches!(byte(text, end), Some(b'=' | b':'))
        }
    }
}

/// True for texts that stand for a value: variables, masks, words like `null`, genuine tokens.
pub(super) fn is_placeholder(value: &str) -> bool {
    let v = value.trim();
    if v.is_empty() || WORDS.contains(&v.to_ascii_lowercase().as_str()) {
        return true;
    }
    // Brackets that are left in the text are those of genuine tokens (guardrails 4.3).
    if v.starts_with('\u{2039}') && v.find('\u{203a}') == v.len().checked_sub('\u{203a}'.len_utf8())
    {
        return true;
    }
    let variable = (v.starts_with("${") && v.ends_with('}'))
        || (v.starts_with("$(") && v.ends_with(')'))
        || (v.starts_with("{{") && v.ends_with("}}"))
        || (v.starts_with('<') && v.ends_with('>') && !v.contains(char::is_whitespace))
        || (v.starts_with("%(") && v.ends_with(")s"))
        || v == "%s"
        || v == "{}"
        || v == "[]"
        || v == "[REDACTED]"
        || v == "[FILTERED]"
        || (v.starts_with('$')
            && v.len() > 1
            && v.bytes()
                .skip(1)
                .all(|b| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit()));
    let mut letters = v.chars();
    let first = letters.next().unwrap_or(' ');
    let mask = matches!(first, '*' | 'x' | 'X' | '.' | '-' | '\u{2022}' | '#')
        && letters.all(|c| c == first);
    variable || mask
}

/// A value without an assignment around it must look like one: six or more characters with a
/// digit beside a letter, or with a sign that prose does not have.
pub(super) fn random_like(value: &str) -> bool {
    let digit = value.bytes().any(|b| b.is_ascii_digit());
    let letter = value.bytes().any(|b| b.is_ascii_alphabetic());
    let sign = value
        .bytes()
        .any(|b| matches!(b, b'!' | b'$' | b'%' | b'&' | b'#' | b'^' | b'~'));
    value.len() >= 6 && letter && (digit || sign)
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives};

    #[test]
    fn values_of_sensitive_keys_are_found_in_every_notation() {
        let v = ["s3", "cr3t", "!pw"].concat();
        for text in [
            format!("password={v}"),
            format!("DB_PASSWORD={v} PORT=1"),
            format!("{{\"password\":\"{v}\"}}"),
            format!("{{\"clientSecret\": \"{v}\", \"a\": 1}}"),
            format!("{{\\\"password\\\":\\\"{v}\\\"}}"),
            format!("api_key: {v}"),
            format!("  token: '{v}'"),
            format!("GET /x?access_token={v}&page=2"),
            format!("Server=db,User Id=app,Password={v}, Timeout=3"),
            format!("secret => \"{v}\""),
            format!("login failed, password: {v}."),
            format!("accesskey={v}"),
            format!("{{\"name\":\"DB_PASSWORD\",\"value\":\"{v}\"}}"),
            format!("{{\"passwords\": [\"{v}\"]}}"),
        ] {
            assert_found(&text, &v, "secret");
        }
    }

    #[test]
    fn a_separator_inside_a_value_does_not_leave_its_tail() {
        let v = ["ab", ",cd;ef", ")gh"].concat();
        assert_found(&format!("password={v} next=1"), &v, "secret");
    }

    #[test]
    fn c09_keys_that_only_look_sensitive_and_values_that_are_none_stay() {
        for text in [
            "secretary=ann",
            "token_count=5120",
            "authorization_status=granted",
            "tokens=12",
            "max_tokens: 512",
            "key=value",
            "primary_key=7",
            "password=",
            "password=x",
            "password: null",
            "password=${DB_PASSWORD}",
            "password=***",
            "token: required",
            "SyntaxError: Unexpected token: foo",
            "token == other",
            "Token::new",
            "secret://vault/path",
            "password_file=/run/secrets/db",
            "secret_name=db-creds",
            "password: <hidden>",
            "pass: %s",
            "the password is wrong",
        ] {
            assert_survives(text);
        }
    }

    #[test]
    fn a_number_in_json_becomes_a_string() {
        let (out, _) = crate::redaction::redact(
            "{\"pin_token\":123456,\"a\":1}",
            &crate::redaction::testing::key(),
        );
        assert!(
            serde_json::from_str::<serde_json::Value>(&out).is_ok(),
            "{out}"
        );
    }
}
