//! E-mail addresses: a local part, `@` and a domain that takes mail.
//!
//! The ending must be a top-level domain of the IANA, a private suffix, or below a domain of the
//! site; beside a word of mail any ending of letters will do.

use std::sync::LazyLock;

use super::context::has_context;
use super::scan::{Hits, before, byte, run_end, run_start, slice};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "email",
    anchor: Anchor::Bytes(b'@', b'@', scan),
};

/// Endings of names inside a site (guardrails 3), and the reserved ones of RFC 2606.
const PRIVATE: &[&str] = &[
    "local",
    "lan",
    "internal",
    "corp",
    "intranet",
    "home.arpa",
    "example",
    "test",
    "invalid",
];

/// Endings of units and files, of which some are top-level domains.
const UNITS: &[&str] = &[
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
    "network",
    "netdev",
    "link",
    "zip",
    "mov",
    "json",
    "yaml",
    "toml",
    "conf",
    "log",
    "txt",
    "xml",
    "jar",
    "class",
    "java",
    "snapshot",
    "alpha",
    "beta",
];

const CONTEXT: &[&str] = &[
    "mail",
    "email",
    "mailto",
    "smtp",
    "rcpt",
    "recipient",
    "sender",
    "from",
    "to",
    "cc",
    "bcc",
    "reply",
    "envelope",
    "imap",
    "postfix",
    "dkim",
];

/// Sorted, so that a search needs no allocation.
static TOP_LABELS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut labels: Vec<&str> = include_str!("data/tld.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_whitespace)
        .collect();
    labels.sort_unstable();
    labels
});

fn is_local(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '%' | '+' | '-' | '\'' | '~' | '^')
}

const fn is_domain(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b >= 0x80 || matches!(b, b'.' | b'-')
}

fn scan(text: &str, at: usize, hits: &mut Hits) {
    let Some(start) = local_start(text, at) else {
        return;
    };
    let Some(end) = domain_end(text, start, at + 1, hits) else {
        return;
    };
    if !in_userinfo(text, at) && !is_scp(text, start, at, end) {
        hits.add(Kind::Email, start, end);
    }
}

/// Start of the local part that ends at `at`, at most 64 bytes before it.
fn local_start(text: &str, at: usize) -> Option<usize> {
    if before(text, at) == Some(b'"') {
        let from = run_start(text, at - 1, 62, |b| !matches!(b, b'"' | b'\n'));
        let quoted = from + 1 < at && before(text, from) == Some(b'"');
        return quoted.then(|| from - 1);
    }
    let mut start = at;
    let mut plain = true;
    for c in text.get(..at)?.chars().rev() {
        // A script without blanks runs into an address that stands beside it.
        let ideograph = u32::from(c) >= 0x2e80;
        if !is_local(c) || (ideograph && plain && start < at) || at - start > 64 {
            break;
        }
        plain &= !ideograph;
        start -= c.len_utf8();
    }
    let part = slice(text, start, at).trim_start_matches(['.', '-', '+', '%', '_', '\'', '~', '^']);
    (!part.is_empty() && part.len() <= 64).then(|| at - part.len())
}

/// End of the domain that begins at `start`, if it is one that takes mail.
fn domain_end(text: &str, local: usize, start: usize, hits: &Hits) -> Option<usize> {
    let run = run_end(text, start, is_domain);
    let mut end = start + slice(text, start, run).trim_end_matches(['.', '-']).len();
    // A script without blanks runs on behind the address, too: the domain ends with its ASCII.
    if let Some(wide) = slice(text, start, end).find(|c: char| u32::from(c) >= 0x2e80)
        && slice(text, start, start + wide).contains('.')
    {
        end = start + wide;
    }
    let domain = slice(text, start, end);
    let shaped = domain.len() <= 253
        && domain.contains('.')
        && domain
            .split('.')
            .all(|l| !l.is_empty() && l.len() <= 63 && !l.starts_with('-') && !l.ends_with('-'));
    if !shaped {
        return None;
    }
    let takes_mail = hits.rules.mail_domain(domain).is_some() || {
        let named = || has_context(text, local, CONTEXT);
        !is_version(domain) && ends_like_a_domain(domain, named)
    };
    takes_mail.then_some(end)
}

fn ends_like_a_domain(domain: &str, named: impl Fn() -> bool) -> bool {
    let top = domain.rsplit('.').next().unwrap_or("");
    let is_private = PRIVATE.iter().any(|suffix| {
        domain
            .len()
            .checked_sub(suffix.len() + 1)
            .and_then(|dot| domain.get(dot..))
            .and_then(|tail| tail.strip_prefix('.'))
            .is_some_and(|tail| tail.eq_ignore_ascii_case(suffix))
    });
    if is_private {
        return true;
    }
    if UNITS.contains(&top) {
        return false;
    }
    if is_top_label(top) {
        return true;
    }
    top.len() >= 2 && top.chars().all(char::is_alphabetic) && named()
}

fn is_top_label(top: &str) -> bool {
    let listed = |label: &str| TOP_LABELS.binary_search(&label).is_ok();
    // An A-label that is not listed yet cannot be anything else.
    listed(top)
        || top
            .get(..4)
            .is_some_and(|head| head.eq_ignore_ascii_case("xn--"))
        || (top.bytes().any(|b| b.is_ascii_uppercase() || b >= 0x80) && listed(&top.to_lowercase()))
}

/// `1.2.3-beta.dev` and `v2.10.0.so`: two numbers lead.
fn is_version(domain: &str) -> bool {
    let mut labels = domain.split('.');
    let digits = |label: &str| label.bytes().next().is_some_and(|b| b.is_ascii_digit());
    let first = labels.next().unwrap_or("");
    let first = first.strip_prefix('v').unwrap_or(first);
    !first.is_empty()
        && first.bytes().all(|b| b.is_ascii_digit())
        && labels.next().is_some_and(digits)
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
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{assert_found, assert_found_with, assert_survives};
    use crate::redaction::{Options, Rules};

    #[test]
    fn addresses_are_found_and_only_they() {
        for domain in [
            "example.com",
            "mail.shop.co.uk",
            "build.internal",
            "nas.home.arpa",
            "b\u{fc}cher.de",
            "xn--bcher-kva.de",
            "\u{43f}\u{43e}\u{447}\u{442}\u{430}.\u{440}\u{444}",
            "163.com",
        ] {
            for local in ["ann.lee+x", "\"ann lee\"", "o'hara", "j\u{fc}rgen"] {
                let mail = [local, "@", domain].concat();
                assert_found(&format!("from <{mail}>, to"), &mail, "email");
                assert_found(&format!("user={mail} ok"), &mail, "email");
                assert_found(&format!("mail {mail}."), &mail, "email");
            }
        }
        let mail = ["ann", "@", "example.com"].concat();
        assert_found(
            &format!("\u{9023}\u{7d61}{mail}\u{307e}\u{3067}"),
            &mail,
            "email",
        );
    }

    #[test]
    fn other_endings_need_a_word_of_mail_or_a_domain_of_the_site() {
        let mail = ["ann", "@", "hq.zzcompany"].concat();
        assert_found(&format!("mail from {mail} ok"), &mail, "email");
        assert_survives(&format!("login {mail} ok"));
        let rules = Rules::new(Options {
            mail_domains: vec!["hq.zzcompany".to_owned()],
            ..Options::default()
        })
        .unwrap();
        assert_found_with(&rules, &format!("login {mail} ok"), &mail, "email");
    }

    #[test]
    fn object_ids_packages_units_and_repositories_are_no_addresses() {
        for text in [
            "java.lang.Object@1a2b3c4d",
            "pkg@1.2.3",
            "left-pad@1.3.0-beta.rc",
            "left-pad@1.3.0-beta.dev",
            "tools@v0.12.0-pre.io",
            "getty@tty1.service",
            "backup@daily.target",
            "user@1000.service",
            "git@git.example.org:team/repo.git",
            "name@host",
            "@scope/pkg",
            "a@",
            "img@sha256:abc",
            "https://user@host.example.org/x",
            "main@config.yaml",
            "from unit@5.service to unit@x.target",
        ] {
            assert_survives(text);
        }
    }
}
