//! Addresses, hosts and users of the site, in profile `strict` only.
//!
//! A token says whether an address is private, and addresses of one subnet share a part of it, so
//! that who talks to whom stays readable.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::context::ends_with_segment;
use super::scan::{Hits, before, byte, run_end, run_within, slice};
use super::secret::{is_placeholder, key_before, value_after};
use super::{Anchor, Entity, Kind};

pub(crate) const ENTITY: Entity = Entity {
    name: "network",
    anchor: Anchor::Text(scan),
};

const HOSTS: &[&str] = &[
    "host",
    "hostname",
    "fqdn",
    "node",
    "nodename",
    "server",
    "server_name",
    "instance",
    "computer",
    "machine",
];
const USERS: &[&str] = &[
    "user",
    "username",
    "login",
    "logname",
    "account",
    "uname",
    "owner",
    "ruser",
    "principal",
];

fn scan(text: &str, hits: &mut Hits) {
    if !hits.rules.is_strict() {
        return;
    }
    hits.spend(text.len());
    addresses(text, hits);
    for at in memchr::memchr2_iter(b'=', b':', text.as_bytes()) {
        if slice(text, at, at + 3) == "://" {
            authority(text, at + 3, hits);
        } else {
            named(text, at, hits);
        }
    }
    for at in memchr::memmem::find_iter(text.as_bytes(), b"/home/") {
        let from = at + 6;
        let end = run_end(text, from, is_name);
        add_name("user", text, from, end, hits);
    }
}

const fn is_address(b: u8) -> bool {
    b.is_ascii_hexdigit() || matches!(b, b':' | b'.' | b'-')
}

const fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
}

/// Runs of the letters of addresses that stand alone.
fn addresses(text: &str, hits: &mut Hits) {
    let mut at = 0;
    while at < text.len() {
        let end = run_end(text, at, is_address);
        let apart = |b: Option<u8>| {
            b.is_none_or(|b| b.is_ascii() && !b.is_ascii_alphanumeric() && b != b'_')
        };
        if end - at >= 7 && apart(before(text, at)) && apart(byte(text, end)) {
            address(text, at, end, hits);
        }
        at = end + 1;
    }
}

fn address(text: &str, start: usize, end: usize, hits: &mut Hits) {
    let run = slice(text, start, end).trim_end_matches(['.', ':', '-']);
    if is_mac(run) {
        if !run.bytes().all(|b| matches!(b, b'0' | b':' | b'-' | b'.')) {
            hits.add(Kind::Network("mac"), start, start + run.len());
        }
        return;
    }
    let whole = run.parse::<IpAddr>().ok().map(|ip| (ip, run.len()));
    // Behind an address of the fourth version a port may stand.
    let with_port = || {
        let (head, _) = run.rsplit_once([':', '-'])?;
        Some((IpAddr::V4(head.parse().ok()?), head.len()))
    };
    let Some((ip, length)) = whole.or_else(with_port) else {
        return;
    };
    if is_public_knowledge(ip) || (ip.is_ipv6() && !run.bytes().any(|b| b.is_ascii_digit())) {
        return;
    }
    let mut to = start + length;
    if ip.is_ipv6() && byte(text, to) == Some(b'%') {
        to = run_within(text, to + 1, 16, is_name);
    }
    hits.add(Kind::Network("ip"), start, to);
}

/// Six pairs with colons or dashes, or three groups of four with dots.
fn is_mac(run: &str) -> bool {
    let shaped = |sign: char, groups: usize, size: usize| {
        run.split(sign).count() == groups
            && run
                .split(sign)
                .all(|g| g.len() == size && g.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    shaped(':', 6, 2) || shaped('-', 6, 2) || shaped('.', 3, 4)
}

/// Loopback, unspecified and documentation addresses name nothing of a site.
fn is_public_knowledge(ip: IpAddr) -> bool {
    match embedded(ip) {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_unspecified() || v4.is_documentation() || v4.is_broadcast()
        }
        IpAddr::V6(v6) => {
            let [a, b, ..] = v6.segments();
            v6.is_loopback()
                || v6.is_unspecified()
                || (a == 0x2001 && b == 0xdb8)
                || (a == 0x3fff && b < 0x1000)
        }
    }
}

/// The address of the fourth version inside one of the sixth: mapped, or behind `64:ff9b::`.
fn embedded(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = ip else { return ip };
    let [a, b, .., g, h] = v6.segments();
    let inner = || {
        let ([w, x], [y, z]) = (g.to_be_bytes(), h.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(w, x, y, z))
    };
    if v6.to_ipv4_mapped().is_some() || (a == 0x64 && b == 0xff9b) {
        inner()
    } else {
        ip
    }
}

/// `private` or `public`, and what an address shares with its neighbours: 24 or 64 bits.
pub(super) fn class_and_subnet(text: &str) -> Option<(&'static str, String)> {
    let plain = text.split('%').next().unwrap_or(text);
    let ip = embedded(plain.parse().ok()?);
    let (private, subnet) = match ip {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            let shared = a == 100 && (64..128).contains(&b);
            (
                v4.is_private() || v4.is_link_local() || shared,
                format!("{a}.{b}.{c}"),
            )
        }
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            let private = a & 0xfe00 == 0xfc00 || a & 0xffc0 == 0xfe80;
            (private, Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).to_string())
        }
    };
    Some((if private { "private" } else { "public" }, subnet))
}

/// One spelling of an address or a name.
pub(super) fn canonical(text: &str) -> String {
    let plain = text.split('%').next().unwrap_or(text);
    plain.parse().map_or_else(
        |_| text.to_ascii_lowercase().replace('-', ":"),
        |ip| embedded(ip).to_string(),
    )
}

/// The host of a URL.
fn authority(text: &str, from: usize, hits: &mut Hits) {
    let end = run_end(text, from, |b| {
        is_name(b) || matches!(b, b'@' | b'%' | b'$')
    });
    let start = slice(text, from, end)
        .rfind('@')
        .map_or(from, |n| from + n + 1);
    add_name("host", text, start, end, hits);
}

/// The value of a key that names a host or a user.
fn named(text: &str, at: usize, hits: &mut Hits) {
    let Some(key) = key_before(text, at) else {
        return;
    };
    let kind = if ends_with_segment(key.name, HOSTS) {
        "host"
    } else if ends_with_segment(key.name, USERS) {
        "user"
    } else {
        return;
    };
    if let Some(value) = value_after(text, at) {
        let end = run_end(text, value.start, is_name).min(value.end);
        add_name(kind, text, value.start, end, hits);
    }
}

fn add_name(kind: &'static str, text: &str, from: usize, end: usize, hits: &mut Hits) {
    let name = slice(text, from, end).trim_end_matches(['.', '-']);
    let documented = ["localhost", "example.com", "example.org", "example.net"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known));
    let is_text = name.bytes().any(|b| b.is_ascii_alphabetic()) && !is_mac(name);
    if name.len() > 1 && is_text && !documented && !is_placeholder(name) {
        hits.add(Kind::Network(kind), from, from + name.len());
    }
}

#[cfg(test)]
mod tests {
    use crate::redaction::testing::{
        assert_found_with, assert_survives, assert_survives_with, redact_with,
    };
    use crate::redaction::{Options, Profile, Rules};

    fn strict() -> Rules {
        Rules::new(Options {
            profile: Profile::Strict,
            ..Options::default()
        })
        .unwrap()
    }

    #[test]
    fn c20_addresses_go_whole_in_every_writing() {
        for (text, value) in [
            ("peer 10.1.2.3 up", "10.1.2.3"),
            ("peer 10.1.2.3:8443 up", "10.1.2.3"),
            ("to ::ffff:10.1.2.3, x", "::ffff:10.1.2.3"),
            ("to [2a01:4f8::17]:443", "2a01:4f8::17"),
            ("to fe80::a1b2:3%eth0 x", "fe80::a1b2:3%eth0"),
            ("to 64:ff9b::10.1.2.3.", "64:ff9b::10.1.2.3"),
        ] {
            assert_found_with(&strict(), text, value, "ip");
            assert_survives(text);
        }
        assert_found_with(
            &strict(),
            "if 00:1b:44:11:3a:b7 up",
            "00:1b:44:11:3a:b7",
            "mac",
        );
        assert_found_with(&strict(), "host=web-17 up", "web-17", "host");
        assert_found_with(
            &strict(),
            "GET https://web-17.prod/x",
            "web-17.prod",
            "host",
        );
        assert_found_with(&strict(), "{\"user\":\"jdoe\",\"a\":1}", "jdoe", "user");
        assert_found_with(&strict(), "open /home/jdoe/x", "jdoe", "user");
    }

    #[test]
    fn loopback_and_documentation_times_and_paths_stay() {
        for text in [
            "127.0.0.1:80 ::1 0.0.0.0 :: 192.0.2.7 2001:db8::1 198.51.100.4 203.0.113.9",
            "at 08:00:00 std::fmt::Display dead::beef",
            "mac 00:00:00:00:00:00",
            "host=localhost user=null",
        ] {
            assert_survives_with(&strict(), text);
        }
    }

    #[test]
    fn neighbours_share_a_part_and_every_spelling_has_one_token() {
        let (_, report) = redact_with(
            &strict(),
            "10.1.2.3 10.1.2.4 ::ffff:10.1.2.3 10.1.9.4 9.9.9.9",
        );
        let tokens: Vec<&str> = report.findings.iter().map(|f| f.token.as_str()).collect();
        let [a, b, mapped, far, public] = tokens[..] else {
            panic!("{tokens:?}")
        };
        let hint =
            |token: &str| token[token.find(';').unwrap()..token.rfind('.').unwrap()].to_owned();
        assert!(a == mapped && a != b, "{tokens:?}");
        assert!(hint(a) == hint(b) && hint(a) != hint(far), "{tokens:?}");
        assert!(hint(a).contains("net=private") && hint(public).contains("net=public"));
    }
}
