//! Keys without a prefix: a mark inside them, or a word before them, tells what they are.

use super::context::has_context;
use super::keys::is_glued;
use super::scan::{Hits, before, byte, is_base64, run_end, run_start, run_within, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "barekeys",
    anchor: Anchor::Literals(
        &[
            ".atlasv1.",
            "Q~",
            "sig=",
            "+ASt",
            "+ABa",
            "+AMC",
            "APIM",
            "ACDb",
            "AIoT",
            "+ASb",
            "+AEh",
            "+ARm",
            "+ACR",
            "AZDO",
            "AzSe",
            "AzFu",
            "accountkey=",
            "sharedaccesskey=",
            "NRAL",
            ":AA",
            "twilio",
            "datadog",
            "dd_api",
            "dd-api",
            "dd_app",
            "dd-app",
            "secretaccesskey",
            "secret_access_key",
            "secret-access-key",
            "secret access key",
            "AKIA",
            "ASIA",
            "--token",
            "bootstrap",
        ],
        scan,
    ),
};

/// Azure's marks: how many letters stand before one, and in the whole key without its padding.
const MARKS: &[(&str, usize, usize)] = &[
    ("+ASt", 76, 86),
    ("+ABa", 76, 86),
    ("+AMC", 76, 86),
    ("APIM", 76, 86),
    ("ACDb", 76, 86),
    ("AIoT", 33, 43),
    ("+ASb", 33, 43),
    ("+AEh", 33, 43),
    ("+ARm", 33, 43),
    ("+ACR", 42, 52),
    ("AZDO", 76, 84),
    ("AzSe", 42, 52),
    ("AzFu", 44, 54),
];

/// How far a value may stand from the word that announces it.
const REACH: usize = 96;

fn scan(text: &str, start: usize, word: &'static str, hits: &mut Hits) {
    let end = start + word.len();
    match word {
        ".atlasv1." => terraform(text, start, end, hits),
        "Q~" => entra(text, start, end, hits),
        "sig=" => signature(text, start, end, hits),
        "accountkey=" => account_key(text, end, 86, 64, hits),
        "sharedaccesskey=" => account_key(text, end, 43, 32, hits),
        "NRAL" => newrelic(text, start, end, hits),
        ":AA" => telegram(text, start, hits),
        "twilio" => announced(text, end, &[32], "key.twilio", hits),
        "datadog" | "dd_api" | "dd-api" | "dd_app" | "dd-app" => {
            announced(text, end, &[32, 40], "key.datadog", hits);
        }
        "AKIA" | "ASIA" => near_id(text, start, hits),
        "--token" | "bootstrap" => bootstrap(text, end, hits),
        _ if word.starts_with("secret") => aws_secret(text, end, hits),
        _ => azure(text, start, word, hits),
    }
}

fn terraform(text: &str, start: usize, end: usize, hits: &mut Hits) {
    let from = run_start(text, start, 15, |b| b.is_ascii_alphanumeric());
    let to = run_end(text, end, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')
    });
    if start - from == 14 && (60..=128).contains(&(to - end)) {
        hits.add(Kind::Key("key.terraform"), from, to);
    }
}

/// Three letters, a digit, `Q~` and 31 to 34 letters.
fn entra(text: &str, start: usize, end: usize, hits: &mut Hits) {
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'~' | b'.' | b'-');
    if slice(text, start, end) != "Q~" || !before(text, start).is_some_and(|b| b.is_ascii_digit()) {
        return;
    }
    let from = run_start(text, start, 5, letter);
    let to = run_end(text, end, letter);
    if start - from == 4 && (31..=34).contains(&(to - end)) {
        hits.add(Kind::Key("key.azure"), from, to);
    }
}

/// The signature of a shared access link: 32 bytes of base64, percent-encoded or not.
fn signature(text: &str, start: usize, end: usize, hits: &mut Hits) {
    if !before(text, start).is_none_or(|b| matches!(b, b'?' | b'&' | b';' | b'"' | b'\'' | b' ')) {
        return;
    }
    let to = run_end(text, end, |b| is_base64(b) || matches!(b, b'%' | b'='));
    let value = slice(text, end, to);
    let escapes = value.matches('%').count();
    let length = value.len().saturating_sub(escapes * 2);
    if matches!(length, 43 | 44) {
        hits.add(Kind::Key("key.azure"), end, to);
    }
}

/// `AccountKey=` and 64 bytes of base64.
fn account_key(text: &str, from: usize, letters: usize, bytes: usize, hits: &mut Hits) {
    let to = run_within(text, from, 96, |b| is_base64(b) || b == b'=');
    let value = slice(text, from, to);
    if value.trim_end_matches('=').len() != letters {
        return;
    }
    let decoded = data_encoding::BASE64.decode(value.as_bytes());
    if decoded.is_ok_and(|d| d.len() == bytes) {
        hits.add(Kind::Key("key.azure"), from, to);
    } else {
        hits.add_unverified(Kind::Key("key.azure"), from, to);
    }
}

fn azure(text: &str, start: usize, word: &'static str, hits: &mut Hits) {
    let end = start + word.len();
    if slice(text, start, end) != word {
        return;
    }
    for &(mark, head, whole) in MARKS {
        let Some(from) = start.checked_sub(head) else {
            continue;
        };
        let opens = mark == word
            && run_start(text, start, head, is_base64) == from
            && !before(text, from).is_some_and(is_base64);
        if opens {
            let to = run_within(text, end, whole, is_base64);
            if to - from == whole {
                let padded = run_within(text, to, 2, |b| b == b'=');
                hits.add(Kind::Key("key.azure"), from, padded);
            }
        }
    }
}

/// Thirty-six hexadecimal digits, or a region and fewer, then `NRAL`.
fn newrelic(text: &str, start: usize, end: usize, hits: &mut Hits) {
    let from = run_start(text, start, 37, |b| b.is_ascii_alphanumeric());
    let value = slice(text, from, end);
    let digits = slice(text, from, start)
        .bytes()
        .filter(u8::is_ascii_hexdigit)
        .count();
    if value.ends_with("NRAL")
        && value.len() == 40
        && digits >= 34
        && !byte(text, end).is_some_and(|b| b.is_ascii_alphanumeric())
    {
        hits.add(Kind::Key("key.newrelic"), from, end);
    }
}

/// The number of a bot, a colon and 35 letters.
fn telegram(text: &str, colon: usize, hits: &mut Hits) {
    let from = run_start(text, colon, 11, |b| b.is_ascii_digit());
    if !(8..=10).contains(&(colon - from)) || slice(text, colon, colon + 3) != ":AA" {
        return;
    }
    let to = run_within(text, colon + 1, 40, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')
    });
    let named = slice(text, from.saturating_sub(4), from).ends_with("/bot")
        || has_context(text, from, &["telegram", "bot", "tg", "token"]);
    if to - colon == 36 && named {
        hits.add(Kind::Key("key.telegram"), from, to);
    }
}

/// The first run of letters and digits behind `from` that is as long as one of `lengths` and
/// hexadecimal, if the words between say that it is a key.
fn announced(text: &str, from: usize, lengths: &[usize], kind: &'static str, hits: &mut Hits) {
    let mut at = from;
    while at < text.len().min(from + REACH) {
        let end = run_end(text, at, |b| b.is_ascii_alphanumeric());
        let run = slice(text, at, end);
        let digits = run.strip_prefix("SK").unwrap_or(run);
        if lengths.contains(&digits.len())
            && digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        {
            let words = slice(text, from, at).to_ascii_lowercase();
            let says = ["key", "token", "auth", "secret"]
                .iter()
                .any(|w| words.contains(w));
            let no_id = !["trace", "span", "_id", "sha", "digest", "commit"]
                .iter()
                .any(|w| words.contains(w));
            if (says || digits.len() < run.len()) && no_id {
                hits.add(Kind::Key(kind), at, end);
            }
            return;
        }
        if ends_reach(text, end) {
            return;
        }
        at = end + 1;
    }
}

/// A word announces nothing on another line or behind a token of an earlier pass, whose length
/// differs from that of the value it stands for.
fn ends_reach(text: &str, at: usize) -> bool {
    matches!(byte(text, at), None | Some(b'\n' | 0xe2))
}

/// Forty letters of base64 that stand alone and hold a capital, a small letter and a digit.
fn secret_like(text: &str, from: usize, end: usize) -> bool {
    let run = slice(text, from, end).as_bytes();
    run.len() == 40
        && run
            .iter()
            .all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
        && run.iter().any(u8::is_ascii_uppercase)
        && run.iter().any(u8::is_ascii_lowercase)
        && run.iter().any(u8::is_ascii_digit)
}

const fn is_secret(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/')
}

/// The secret behind its name.
fn aws_secret(text: &str, from: usize, hits: &mut Hits) {
    let mut at = from;
    while at < text.len().min(from + 32) {
        let end = run_within(text, at, 41, is_secret);
        if secret_like(text, at, end) {
            hits.add(Kind::Key("key.aws"), at, end);
            return;
        }
        if ends_reach(text, end) {
            return;
        }
        at = end + 1;
    }
}

/// A secret near its id, at most three lines away and in the same message.
fn near_id(text: &str, start: usize, hits: &mut Hits) {
    if is_glued(text, start) || !slice(text, start, start + 2).starts_with('A') {
        return;
    }
    let id = run_end(text, start, |b| {
        b.is_ascii_uppercase() || b.is_ascii_digit()
    });
    if id - start != 20 {
        return;
    }
    let stop = text.len().min(id + 512);
    let mut at = start.saturating_sub(512);
    while at < stop {
        let end = run_end(text, at, is_secret);
        if secret_like(text, at, end) {
            let (first, last) = if end < start { (end, start) } else { (id, at) };
            if slice(text, first, last).matches('\n').count() <= 3 {
                hits.add(Kind::Key("key.aws"), at, end);
            }
        }
        at = end + 1;
    }
}

/// Six small letters or digits, a dot and sixteen.
fn bootstrap(text: &str, from: usize, hits: &mut Hits) {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let stop = text.len().min(from + REACH);
    let mut at = from;
    while at < stop {
        let end = run_end(text, at, letter);
        if end - at == 6 && byte(text, end) == Some(b'.') {
            let to = run_end(text, end + 1, letter);
            let whole = !byte(text, to)
                .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-');
            let digit = slice(text, end, to).bytes().any(|b| b.is_ascii_digit());
            if to - end == 17 && whole && digit && !is_glued(text, at) {
                hits.add(Kind::Key("key.kubernetes"), at, to);
                return;
            }
        }
        if ends_reach(text, end) {
            return;
        }
        at = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives};

    fn mixed(length: usize) -> String {
        let letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789";
        crate::redaction::generate::Rng::new(3).text(letters, length)
    }

    fn hex(length: usize) -> String {
        "3f9a0c7be1d248655a".chars().cycle().take(length).collect()
    }

    #[test]
    fn keys_with_a_mark_inside_are_found() {
        for (value, kind) in [
            (
                format!("{}.atlasv1.{}", mixed(14), mixed(67)),
                "key.terraform",
            ),
            (format!("abC8Q~{}", mixed(34)), "key.azure"),
            (format!("{}+ASt{}Q==", mixed(76), mixed(5)), "key.azure"),
            (format!("{}AZDO{}", mixed(76), mixed(4)), "key.azure"),
            (format!("{}NRAL", hex(36)), "key.newrelic"),
        ] {
            assert_found(&format!("using {value} now"), &value, kind);
        }
    }

    #[test]
    fn keys_behind_their_word_are_found() {
        let h = hex(32);
        assert_found(&format!("twilio auth {h} ok"), &h, "key.twilio");
        assert_found(
            &format!("datadog app key {}", hex(40)),
            &hex(40),
            "key.datadog",
        );
        assert_survives(&format!("datadog trace {h}"));
        assert_survives(&format!("datadog agent {h}"));
        let s = mixed(40);
        assert_found(&format!("secret access key is {s}"), &s, "key.aws");
        let t = ["abc123", "0123456789abcdef"].join(".");
        assert_found(
            &format!("kubeadm join x:6443 --token {t} --y"),
            &t,
            "key.kubernetes",
        );
        let t = format!("{}:AA{}", 123_456_789, mixed(33));
        assert_found(&format!("telegram bot {t} up"), &t, "key.telegram");
        let sig = format!("{}%3D", mixed(43));
        assert_found(
            &format!("GET /c/b?sv=2024-01-01&sig={sig}&se=x"),
            &sig,
            "key.azure",
        );
    }

    #[test]
    fn marks_inside_words_and_hashes_are_no_keys() {
        for text in [
            "/usr/bin/apim start".to_owned(),
            format!("twilio request_id {}", hex(32)),
            "mac 00:AA:11:22:33:44".to_owned(),
            "sig=SIGTERM".to_owned(),
            "bootstrap done in module.abcdefghijklmnop".to_owned(),
        ] {
            assert_survives(&text);
        }
    }
}
