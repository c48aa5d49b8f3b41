//! Values of sensitive keys: `key = value` in JSON, YAML, logfmt, environment, query strings.

use super::scan::{Hits, byte, is_word, run_end, run_start, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    anchor: Anchor::Bytes(b'=', b':', scan),
};

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
/// Members of a JSON web key that are secret.
const JWK: &[&str] = &["d", "p", "q", "dp", "dq", "qi", "k"];
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
    let jwk = JWK.contains(&key.name) && key.quoted && text.contains("\"kty\"");
    if !jwk && !is_sensitive(key.name) {
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
    let assigned = byte(text, at) == Some(b'=') || key.quoted || value.quoted || key.leads;
    if !assigned && !random_like(content) {
        return;
    }
    hits.add(Kind::Secret, value.start, value.end);
}

struct Key<'a> {
    name: &'a str,
    /// Between quotes.
    quoted: bool,
    /// First on its line but for blanks and a dash, as in YAML.
    leads: bool,
}

const fn is_key(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

/// The key that ends before the separator at `at`.
fn key_before(text: &str, at: usize) -> Option<Key<'_>> {
    let blank = run_start(text, at, 4, |b| b == b' ' || b == b'\t');
    let quotes = run_start(text, blank, 4, |b| {
        matches!(b, b'"' | b'\'' | b'\\' | b'`' | b']')
    });
    let start = run_start(text, quotes, 65, is_key);
    let name = slice(text, start, quotes);
    let dashes = name.len() - name.trim_start_matches('-').len();
    let name = name.trim_start_matches(['-', '.']);
    if name.is_empty() || quotes - start > 64 {
        return None;
    }
    let mark = slice(text, quotes, blank);
    let line = slice(text, 0, start).rsplit('\n').next().unwrap_or("");
    let leads = dashes > 0
        || line.trim().is_empty()
        || line.trim() == "-"
        || line.trim_end().ends_with("export");
    Some(Key {
        name,
        quoted: mark.contains(['"', '\'', '`']),
        leads,
    })
}

/// Splits at `_ - .` and at changes of case, and judges the last segment.
pub(super) fn is_sensitive(name: &str) -> bool {
    let mut segments: Vec<String> = Vec::new();
    let mut lower = false;
    for c in name.chars() {
        let cut = matches!(c, '_' | '-' | '.');
        if cut || (c.is_ascii_uppercase() && lower) || segments.is_empty() {
            segments.push(String::new());
        }
        lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        if !cut && let Some(last) = segments.last_mut() {
            last.push(c.to_ascii_lowercase());
        }
    }
    let mut from_end = segments.iter().rev().filter(|s| !s.is_empty());
    let Some(last) = from_end.next() else {
        return false;
    };
    // A number counts values of the same name: `PASSWORD_2`.
    let last = if last.bytes().all(|b| b.is_ascii_digit()) {
        match from_end.next() {
            Some(before) => before,
            None => return false,
        }
    } else {
        last
    };
    if last == "key" {
        return from_end
            .next()
            .is_some_and(|s| KEY_OF.contains(&s.as_str()));
    }
    SENSITIVE.contains(&last.as_str())
        || ENDINGS
            .iter()
            .any(|end| last.len() > end.len() && last.ends_with(end))
        || ENDINGS.contains(&last.as_str())
}

struct Value {
    start: usize,
    end: usize,
    quoted: bool,
}

/// The value behind the separator at `at`.
fn value_after(text: &str, at: usize) -> Option<Value> {
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
            format!("Server=db;User Id=app;Password={v};Timeout=3"),
            format!("secret => \"{v}\""),
            format!("login failed, password: {v}."),
            format!("accesskey={v}"),
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
    fn keys_that_only_look_sensitive_and_values_that_are_none_stay() {
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
