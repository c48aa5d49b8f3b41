//! E-mail addresses.
//!
//! The list of top-level domains is not consulted: an ending of letters counts when it is none of
//! a file, a unit or a pre-release.

use super::scan::{Hits, before, byte, run_end, run_start, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    anchor: Anchor::Bytes(b'@', b'@', scan),
};

/// Endings of names inside a site (guardrails 3).
const PRIVATE: &[&str] = &[
    "local",
    "lan",
    "internal",
    "corp",
    "intranet",
    "arpa",
    "example",
    "test",
    "invalid",
    "localhost",
];

/// Endings of more than two letters that are file or unit types and no top-level domains.
const NO_DOMAIN: &[&str] = &[
    "service",
    "socket",
    "timer",
    "mount",
    "automount",
    "target",
    "slice",
    "scope",
    "swap",
    "device",
    "path",
    "conf",
    "json",
    "yaml",
    "yml",
    "toml",
    "log",
    "txt",
    "xml",
    "html",
    "jar",
    "war",
    "class",
    "java",
    "kt",
    "go",
    "py",
    "rb",
    "rs",
    "js",
    "ts",
    "mjs",
    "cjs",
    "tsx",
    "jsx",
    "css",
    "map",
    "so",
    "dll",
    "exe",
    "tgz",
    "tar",
    "gz",
    "zip",
    "whl",
    "lock",
    "snap",
    "alpha",
    "beta",
    "rc",
    "dev",
    "next",
    "final",
    "release",
    "snapshot",
    "ga",
    "sp",
    "deb",
    "rpm",
    "sock",
    "pid",
    "db",
    "sql",
    "csv",
    "pem",
    "crt",
    "key",
    "cnf",
    "ini",
    "properties",
    "wasm",
    "c",
    "h",
    "cc",
    "cpp",
    "hpp",
    "md",
    "sh",
    "bat",
    "ps1",
    "png",
    "jpg",
    "svg",
    "gif",
    "ico",
];

const fn is_local(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || b >= 0x80
        || matches!(
            b,
            b'.' | b'_'
                | b'%'
                | b'+'
                | b'-'
                | b'!'
                | b'#'
                | b'$'
                | b'&'
                | b'*'
                | b'/'
                | b'='
                | b'?'
                | b'^'
                | b'{'
                | b'|'
                | b'}'
                | b'~'
        )
}

const fn is_domain(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b >= 0x80 || matches!(b, b'.' | b'-')
}

fn scan(text: &str, at: usize, hits: &mut Hits) {
    let Some(end) = domain_end(text, at + 1) else {
        return;
    };
    let mut start = run_start(text, at, 64, is_local);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    // A key, a path or a query in front is no part of the address.
    if let Some(cut) =
        slice(text, start, at).rfind(['=', '/', '?', '&', '|', '{', '}', '*', '#', '!', '$'])
    {
        start += cut + 1;
    }
    let trimmed = slice(text, start, at).trim_start_matches(['.', '-', '+', '%', '_']);
    start = at - trimmed.len();
    if start == at || in_userinfo(text, at) || is_scp(text, start, at, end) {
        return;
    }
    hits.add(Kind::Email, start, end);
}

/// End of the domain that begins at `start`, if it is one that takes mail.
fn domain_end(text: &str, start: usize) -> Option<usize> {
    let end = run_end(text, start, is_domain);
    let domain = slice(text, start, end).trim_end_matches(['.', '-']);
    let end = start + domain.len();
    if domain.len() > 253 || domain.starts_with(['.', '-']) {
        return None;
    }
    let mut labels = domain.split('.');
    let top = labels.next_back()?.to_lowercase();
    let mut rest = labels.peekable();
    rest.peek()?;
    let shaped = rest.all(|label| {
        !label.is_empty() && label.len() <= 63 && !label.starts_with('-') && !label.ends_with('-')
    });
    (shaped && is_top_label(&top)).then_some(end)
}

/// Letters only or an A-label, and not the ending of a file, a unit or a version.
fn is_top_label(top: &str) -> bool {
    if PRIVATE.contains(&top) || top.starts_with("xn--") {
        return true;
    }
    let letters = top.chars().all(char::is_alphabetic);
    letters && (2..=18).contains(&top.len()) && !NO_DOMAIN.contains(&top)
}

/// True inside `scheme://user@host`: that is for `urlcred`.
fn in_userinfo(text: &str, at: usize) -> bool {
    let from = run_start(text, at, 512, |b| {
        !b.is_ascii_whitespace() && !matches!(b, b'/' | b'"' | b'\'' | b'?' | b'<')
    });
    slice(text, from.saturating_sub(3), from) == "://"
}

/// `git@host:path` names a repository.
fn is_scp(text: &str, start: usize, at: usize, end: usize) -> bool {
    slice(text, start, at) == "git"
        && byte(text, end) == Some(b':')
        && byte(text, end + 1).is_some_and(|b| !b.is_ascii_whitespace())
        && before(text, start).is_none_or(|b| !b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_survives};

    #[test]
    fn addresses_are_found_and_only_they() {
        for domain in [
            "example.com",
            "mail.shop.co.uk",
            "build.internal",
            "b\u{fc}cher.de",
        ] {
            let mail = ["ann.lee+x", "@", domain].concat();
            assert_found(&format!("from <{mail}>, to"), &mail, "email");
            assert_found(&format!("user={mail} ok"), &mail, "email");
            assert_found(&format!("mail {mail}."), &mail, "email");
        }
    }

    #[test]
    fn object_ids_packages_units_and_repositories_are_no_addresses() {
        for text in [
            "java.lang.Object@1a2b3c4d",
            "pkg@1.2.3",
            "left-pad@1.3.0-beta.rc",
            "getty@tty1.service",
            "user@1000.service",
            "git@git.example.org:team/repo.git",
            "name@host",
            "@scope/pkg",
            "a@",
            "img@sha256:abc",
            "https://user@host.example.org/x",
        ] {
            assert_survives(text);
        }
    }
}
