//! Private keys: PEM of any kind, OpenSSH, PGP and PuTTY, over lines or escaped on one line.

use super::scan::{Hits, byte, is_base64, run_end, run_start, slice};
use super::{Anchor, Entity, Kind};

/// `b3BlbnNzaC1rZXkt` is how the body of an OpenSSH key begins, with or without its armour.
pub(crate) const ENTITY: Entity = Entity {
    name: "privkey",
    anchor: Anchor::Literals(
        &[
            BEGIN,
            PUTTY,
            SSH2,
            "b3BlbnNzaC1rZXkt",
            // Inside the first letters of bodies without armour: version and algorithm of PKCS #1,
            // of PKCS #8 and of elliptic keys, and the object id of encrypted ones.
            "IBAAKC",
            "IBAAKB",
            "IBADANBgkqhki",
            "AgEAMB",
            "MC4CAQAwBQYD",
            "MFECAQEwBQYD",
            "MHcCAQEEI",
            "AgEBBD",
            "AgEBBE",
            "BgkqhkiG9w0BBQ0",
        ],
        scan,
    ),
};

const SSH2: &str = "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY";

const BEGIN: &str = "-----BEGIN ";
const PUTTY: &str = "PuTTY-User-Key-File-";
/// Furthest a label may reach.
const MAX_LABEL: usize = 64;

fn scan(text: &str, start: usize, word: &'static str, hits: &mut Hits) {
    if word == BEGIN {
        if let Some(body) = armour_end(text, start) {
            let end = block_end(text, body);
            add(text, start, end, hits);
        }
    } else if word == PUTTY {
        // The version stands behind the name.
        let version = start + PUTTY.len();
        if !byte(text, version).is_some_and(|b| b.is_ascii_digit()) {
            return;
        }
        let end = putty_end(text, start);
        add(text, start, end, hits);
    } else if word == SSH2 {
        let label = start + SSH2.len();
        if slice(text, label, label + 5) != " ----" {
            return;
        }
        let end = ssh2_end(text, start);
        add(text, start, end, hits);
    } else if text.get(start..).is_some_and(|t| t.starts_with(word)) {
        let from = run_start(text, start, 64, is_base64);
        let end = run_end(text, start, |b| is_base64(b) || b == b'=');
        // A sequence comes first in every key, but for the magic words of OpenSSH.
        let sequence = slice(text, from, from + 1) == "M" && start - from <= 32;
        if end - from >= 60 && (word.starts_with("b3") || sequence) {
            hits.add(Kind::Privkey, from, end);
        }
    }
}

fn ssh2_end(text: &str, start: usize) -> usize {
    text.get(start..)
        .and_then(|t| t.find("---- END"))
        .map_or(text.len(), |n| {
            run_end(text, start + n, |b| b != b'\n' && b != b'\r')
        })
}

/// End of `-----BEGIN ... PRIVATE KEY-----` that begins at `start`.
fn armour_end(text: &str, start: usize) -> Option<usize> {
    let label_at = start + BEGIN.len();
    let label_end = run_end(text, label_at, |b| b.is_ascii_alphanumeric() || b == b' ');
    let label = slice(text, label_at, label_end).to_ascii_uppercase();
    let private = label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK");
    (private && label_end - label_at <= MAX_LABEL)
        .then(|| run_end(text, label_end, |b| b == b'-').min(label_end + 5))
}

/// End of the block whose body begins at `body`: behind its END line, or the end of the text.
fn block_end(text: &str, body: usize) -> usize {
    let Some(found) = text.get(body..).and_then(|t| t.find("-----END ")) else {
        return text.len();
    };
    let label = body + found + "-----END ".len();
    let label_end = run_end(text, label, |b| b.is_ascii_alphanumeric() || b == b' ');
    run_end(text, label_end, |b| b == b'-').min(label_end + 5)
}

fn putty_end(text: &str, start: usize) -> usize {
    text.get(start..)
        .and_then(|t| t.find("Private-MAC:"))
        .map_or(text.len(), |n| {
            run_end(text, start + n, |b| b != b'\n' && b != b'\r')
        })
}

/// The whole block; over lines it is cut where it is replaced.
fn add(text: &str, start: usize, end: usize, hits: &mut Hits) {
    let end = start + slice(text, start, end).trim_end().len();
    hits.spend(end - start);
    hits.add(Kind::Privkey, start, end);
}

/// Length of what stands before the block's own text on a later line.
pub(super) fn prefix_len(line: &str) -> usize {
    let trimmed = line.trim_end();
    if let Some(at) = trimmed.find("-----END ") {
        let own = run_start(trimmed, at, at, |b| {
            is_base64(b) || matches!(b, b'=' | b'\\')
        });
        return own;
    }
    if body_like(trimmed.trim_start()) || is_armour_header(trimmed) {
        return 0;
    }
    let last = trimmed.rfind([' ', '\t', ':']).map_or(0, |at| at + 1);
    if body_like(slice(trimmed, last, trimmed.len())) {
        last
    } else {
        0
    }
}

fn is_armour_header(line: &str) -> bool {
    let line = line.trim_start();
    [
        "Proc-Type",
        "DEK-Info",
        "Comment",
        "Version",
        "Hash",
        "Charset",
        "Encryption",
        "Public-Lines",
        "Private-Lines",
        "Private-MAC",
        "Key-Derivation",
        "Argon2-",
    ]
    .iter()
    .any(|head| line.starts_with(head))
}

/// Letters of base64 only; the last line of a block can be short.
pub(super) fn body_like(text: &str) -> bool {
    let core = text.trim_end_matches(['=', '\\']);
    !core.is_empty() && core.bytes().all(is_base64)
}

/// If a block opens on `line` and does not end there: how to tell its end.
pub(super) fn opens(line: &str) -> Option<Block> {
    if memchr::memmem::find(line.as_bytes(), b"-----BEGIN ").is_some() {
        let mut open = false;
        for (at, _) in line.match_indices(BEGIN) {
            if let Some(body) = armour_end(line, at) {
                open = line.get(body..).is_some_and(|t| !t.contains("-----END "));
            }
        }
        if open {
            return Some(Block::Pem);
        }
    }
    let putty = line.contains(PUTTY) && !line.contains("Private-MAC:");
    putty.then_some(Block::Putty)
}

/// An open block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Pem,
    Putty,
}

/// What a later line does to an open block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It belongs to the block.
    Inside,
    /// It is the last of the block.
    Last,
    /// It does not belong to the block, which was never finished.
    Outside,
}

impl Block {
    /// Judges one more line.
    pub(super) fn next(self, line: &str) -> Next {
        let line = line.trim_end();
        match self {
            Self::Pem if line.contains("-----END ") => Next::Last,
            Self::Putty if line.contains("Private-MAC:") => Next::Last,
            Self::Pem | Self::Putty => {
                let tail = line
                    .rfind([' ', '\t', ':'])
                    .map_or(line, |at| slice(line, at + 1, line.len()));
                // Armour has 64 or 76 letters a line; behind a prefix a short word is no body.
                let long = tail.len() >= 32 && body_like(tail);
                if line.trim().is_empty()
                    || body_like(line.trim_start())
                    || is_armour_header(line)
                    || long
                    || short_tail(line, tail)
                {
                    Next::Inside
                } else {
                    Next::Outside
                }
            }
        }
    }
}

/// A short last line behind a prefix ends with padding.
fn short_tail(line: &str, tail: &str) -> bool {
    tail.len() < line.len() && tail.ends_with('=') && body_like(tail) && byte(tail, 0) != Some(b'=')
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives, key, pem};

    #[test]
    fn a_block_over_lines_is_one_token_and_every_line_stays() {
        let block = pem("RSA ");
        let text = format!("before\n{block}\nafter {}", "x");
        let (out, report) = crate::redaction::redact(&text, &key());
        assert_eq!(out.lines().count(), text.lines().count());
        assert_eq!(report.counts.get("privkey"), Some(&1));
        assert!(out.starts_with("before\n\u{2039}privkey:"), "{out}");
        assert!(out.ends_with("\n\nafter x"), "{out}");
    }

    #[test]
    fn prefixes_of_a_collector_stay_and_the_body_behind_them_goes() {
        let block = pem("");
        let text: String = block
            .lines()
            .map(|l| format!("2026-01-31T08:00:00.250Z INFO x-1 {l}\n"))
            .collect();
        let (out, _) = crate::redaction::redact(&text, &key());
        assert_eq!(
            out.matches("2026-01-31T08:00:00.250Z INFO x-1 ").count(),
            block.lines().count()
        );
        for line in block.lines() {
            assert!(!out.contains(line), "{out}");
        }
    }

    #[test]
    fn a_block_on_one_line_and_an_unfinished_block_are_found() {
        let one = pem("EC ").replace('\n', "\\n");
        let (out, _) = crate::redaction::redact(&format!("key: \"{one}\" ok"), &key());
        assert!(!out.contains("MII") && out.ends_with(" ok"), "{out}");
        let block = pem("");
        let cut: Vec<&str> = block.lines().take(3).collect();
        let text = format!("{}\n2026-01-31 INFO up and running", cut.join("\n"));
        let (out, _) = crate::redaction::redact(&text, &key());
        assert!(
            !out.contains("MII") && out.ends_with("INFO up and running"),
            "{out}"
        );
    }

    #[test]
    fn bodies_without_armour_are_found() {
        let body = |der: &[u8]| {
            let mut bytes = der.to_vec();
            bytes.extend(crate::redaction::generate::Rng::new(3).bytes(120));
            data_encoding::BASE64.encode(&bytes)
        };
        for der in [
            &b"\x30\x82\x04\xa4\x02\x01\x00\x02\x82\x01\x01"[..],
            b"\x30\x82\x04\xbd\x02\x01\x00\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01",
            b"\x30\x81\x87\x02\x01\x00\x30\x13\x06\x07",
            b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b",
            b"\x30\x77\x02\x01\x01\x04\x20\x11",
            b"openssh-key-v1\0",
        ] {
            let value = body(der);
            assert_found(&format!("data {value} end"), &value, "privkey");
        }
    }

    #[test]
    fn certificates_and_public_keys_stay() {
        for label in ["CERTIFICATE", "PUBLIC KEY"] {
            let text = format!(
                "{}{label}-----\nTUlJQg==\n-----END {label}-----",
                "-----BEGIN "
            );
            assert_survives(&text);
        }
    }
}
