//! Random strings: long, of mixed letters, and without the letter pairs of words.
//!
//! Two features together tell a random string from a name: how rare its letter pairs are, and how
//! often capital letters, small letters and digits alternate. Digests, identifiers, certificates
//! and public keys are random as well and stay (guardrails 3.2).

use std::sync::LazyLock;

use super::context::{has_context, own_key};
use super::scan::{Hits, before, run_end, run_start, run_within, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "entropy",
    anchor: Anchor::Text(scan),
};

/// Shortest string that is judged.
const MIN: usize = 32;
/// Longest part of a string that is judged.
const MAX: usize = 512;

/// Keys whose value is a digest or an identifier.
const PUBLIC: &[&str] = &[
    "sha",
    "md5",
    "digest",
    "hash",
    "checksum",
    "etag",
    "fingerprint",
    "integrity",
    "crc",
    "id",
    "ids",
    "uuid",
    "build",
    "buildid",
    "match",
    "nonce",
    "public",
    "pub",
    "pin",
    "thumbprint",
    "commit",
    "revision",
    "cert",
    "certificate",
    "ca",
    "x5t",
    "x5c",
    "kid",
    "trace",
    "span",
    "cursor",
    "etags",
];

/// Words that announce a digest.
const DIGESTS: &[&str] = &[
    "digest",
    "checksum",
    "fingerprint",
    "etag",
    "integrity",
    "thumbprint",
];

/// How public keys, certificates in base64 and their PEM in base64 begin.
const PUBLIC_HEADS: &[&str] = &[
    "AAAAB3NzaC1",
    "AAAAC3NzaC1",
    "AAAAE2VjZHNh",
    "AAAAGnNr",
    "AAAAInNr",
    "LS0tLS1CRUdJTi",
];

/// Quarter bits of surprise of a letter behind a letter, counted from a list of words.
static PAIRS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let mut counts = vec![0_u64; 26 * 26];
    let mut totals = [0_u64; 26];
    let words = include_str!("data/words.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace);
    for word in words {
        for pair in word.as_bytes().windows(2) {
            if let [a, b] = pair
                && let (Some(first), Some(second)) = (letter(*a), letter(*b))
            {
                if let Some(slot) = counts.get_mut(first * 26 + second) {
                    *slot += 1;
                }
                if let Some(slot) = totals.get_mut(first) {
                    *slot += 1;
                }
            }
        }
    }
    counts
        .iter()
        .enumerate()
        .map(|(at, &n)| {
            let total = totals.get(at / 26).copied().unwrap_or(0);
            let share = u128::from(((2 * n + 1) << 24) / (2 * total + 26)).max(1);
            96_u32.saturating_sub(share.pow(4).ilog2())
        })
        .collect()
});

fn letter(b: u8) -> Option<usize> {
    b.is_ascii_alphabetic()
        .then(|| usize::from(b.to_ascii_lowercase() - b'a'))
}

const fn is_run(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_')
}

/// Looks at every 32nd byte only: a run that is long enough holds one of them.
fn scan(text: &str, hits: &mut Hits) {
    let bytes = text.as_bytes();
    let mut at = MIN - 1;
    let mut done = 0;
    while let Some(&b) = bytes.get(at) {
        if !is_run(b) {
            at += MIN;
            continue;
        }
        let start = run_start(text, at, at - done, is_run);
        let end = run_end(text, at, is_run);
        if end - start >= MIN {
            judge(text, start, end, hits);
        }
        done = end;
        at = end + MIN;
    }
}

fn judge(text: &str, start: usize, end: usize, hits: &mut Hits) {
    let run = slice(text, start, end.min(start + MAX));
    // A path is judged by its parts; whatever leads to the random one stays.
    if !is_mixed(run) || !is_random(run) || is_public(text, start, end) {
        return;
    }
    let padded = run_end(text, end, |b| b == b'=').min(end + 2);
    hits.add(Kind::Entropy, start, padded);
}

/// True when enough of the run is in parts that mix capital letters, small letters and digits.
fn is_mixed(run: &str) -> bool {
    let mixed: usize = parts(run)
        .filter(|part| {
            let has = |class: fn(&u8) -> bool| part.as_bytes().iter().any(&class);
            has(u8::is_ascii_uppercase)
                && has(u8::is_ascii_lowercase)
                && (part.len() < 16 || has(u8::is_ascii_digit))
        })
        .map(str::len)
        .sum();
    mixed >= 24 && run.bytes().any(|b| b.is_ascii_digit())
}

/// Parts between signs, without digests and numbers.
fn parts(run: &str) -> impl Iterator<Item = &str> {
    run.split(['/', '-', '_', '+']).filter(|part| {
        let digits = part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            || part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F'));
        !(part.len() >= 4 && digits)
    })
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Class {
    Upper,
    Lower,
    Digit,
}

const fn class(b: u8) -> Class {
    if b.is_ascii_uppercase() {
        Class::Upper
    } else if b.is_ascii_lowercase() {
        Class::Lower
    } else {
        Class::Digit
    }
}

/// Mean surprise of the letter pairs and six bits for the share of changes of class: more than
/// 6.6 bits is random. Of random base64, 999 in 1000 strings of 32 letters are above it.
fn is_random(run: &str) -> bool {
    let (mut surprise, mut letters, mut changes, mut pairs) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut ordered = 0_u64;
    for part in parts(run) {
        for pair in part.as_bytes().windows(2) {
            let [a, b] = pair else { continue };
            let (first, second) = (class(*a), class(*b));
            pairs += 1;
            ordered += u64::from(*b == a.wrapping_add(1));
            let initial = first == Class::Upper && second == Class::Lower;
            changes += u64::from(first != second && !initial);
            let hump = first == Class::Lower && second == Class::Upper;
            if let (Some(x), Some(y), false) = (letter(*a), letter(*b), hump) {
                surprise += u64::from(PAIRS.get(x * 26 + y).copied().unwrap_or(0));
                letters += 1;
            }
        }
    }
    // All in quarter bits, times ten to stay with whole numbers.
    // An alphabet is a row, not a secret.
    pairs >= 16
        && ordered * 4 < pairs
        && letters > 0
        && 10 * (surprise * pairs + 24 * changes * letters) > 264 * letters * pairs
}

fn is_public(text: &str, start: usize, end: usize) -> bool {
    let run = slice(text, start, end);
    if PUBLIC_HEADS.iter().any(|head| run.starts_with(head)) {
        return true;
    }
    let lower = run.get(..7).unwrap_or("").to_ascii_lowercase();
    let named = ["sha1-", "sha256-", "sha384-", "sha512-"]
        .iter()
        .any(|name| lower.starts_with(name));
    // `SHA256:`, `sha256/` and `sha256=`
    let algorithm = run_start(text, start, 8, |b| b != b' ');
    let head = slice(text, algorithm, start).to_ascii_lowercase();
    let prefixed = matches!(before(text, start), Some(b':' | b'=' | b'/')) && head.contains("sha");
    if named || prefixed {
        return true;
    }
    // A line of a certificate is base64 and nothing else, at the width of armour.
    let line_start = run_start(text, start, MAX, |b| b != b'\n');
    let line = slice(text, line_start, run_within(text, end, MAX, |b| b != b'\n'));
    let alone = matches!(run.len(), 64 | 76) && run.len() == line.trim().len();
    let armoured = line.contains("CERTIFICATE") || line.contains("PUBLIC KEY");
    alone
        || armoured
        || has_public_key(own_key(text, start))
        || is_weak_etag(text, start)
        || has_context(text, start, DIGESTS)
}

/// `W/"..."`
fn is_weak_etag(text: &str, start: usize) -> bool {
    start
        .checked_sub(3)
        .is_some_and(|at| slice(text, at, start) == "W/\"")
}

/// True when a segment of the key names something public.
fn has_public_key(key: &str) -> bool {
    has_context(key, key.len(), PUBLIC)
        || ["sha1", "sha256", "sha512", "x-amz-id-2"]
            .iter()
            .any(|name| key.to_ascii_lowercase().contains(name))
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives};

    /// Thirty-seven letters at random, and the same on every machine.
    fn random() -> String {
        let letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789";
        format!(
            "q7{}",
            crate::redaction::generate::Rng::new(3).text(letters, 35)
        )
    }

    #[test]
    fn random_strings_are_found_and_only_they() {
        let value = random();
        assert_found(&format!("got {value} back"), &value, "entropy");
        let slashed = [&value[..20], "/", &value[20..]].concat();
        assert_found(&format!("x=\"{slashed}\""), &slashed, "entropy");
    }

    #[test]
    fn names_paths_digests_and_public_values_stay() {
        let value = random();
        for text in [
            "ReconcilePersistentVolumeClaim2HandlerFactoryBean".to_owned(),
            "io/netty/handler/codec/http2/Http2ConnectionHandler".to_owned(),
            "/Users/build/Cache2/3f9a0c7be1d248655a3f9a0c7be1d248655a3f9a/Merged".to_owned(),
            "TLS13-AES128-GCM-SHA256-X25519-Kyber768".to_owned(),
            format!("integrity sha384-{value}{value}"),
            format!("SHA256:{value}"),
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".to_owned(),
            format!("name=\"digest\" value=\"{value}\""),
            format!("etag=\"{value}\""),
            format!("request_id={value}"),
            format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{value}"),
            "3f9a0c7be1d248655a3f9a0c7be1d248655a3f9a0c7be1d248655a".to_owned(),
            "550E8400-E29B-41D4-A716-446655440000/550e8400-e29b-41d4-a716-446655440000".to_owned(),
        ] {
            assert_survives(&text);
        }
    }
}
