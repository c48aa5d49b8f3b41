//! Identifiers that must survive byte for byte (guardrails 3.2).

use data_encoding::BASE64;

use super::frames::container;
use super::{ALNUM, DIGITS, HEX, LOWER, Rng};

/// Classes of identifiers.
pub const IDENTIFIERS: &[&str] = &[
    "uuid",
    "ulid",
    "ksuid",
    "objectid",
    "trace_id",
    "trace_id_decimal",
    "span_id",
    "git_sha",
    "git_sha_short",
    "image_digest",
    "sri",
    "etag",
    "fingerprint",
    "pod",
    "replicaset",
    "resource_version",
    "epoch_s",
    "epoch_ms",
    "epoch_us",
    "epoch_ns",
    "iso_time",
    "stamp_14",
    "duration",
    "byte_size",
    "version",
    "fraction",
    "port",
    "status",
    "pid",
    "address",
    "inode",
    "block",
    "ipv4",
    "ipv6",
    "mac",
    "path",
    "class",
    "unit",
    "metric",
    "promql",
    "sql",
];

/// Letters of Crockford's base 32.
const CROCKFORD: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Draws an identifier of `class`; an unknown class gives a UUID.
#[must_use]
pub fn identifier(class: &str, rng: &mut Rng) -> String {
    named(class, rng)
        .or_else(|| numbered(class, rng))
        .unwrap_or_else(|| {
            let mut hex = |n| rng.text(HEX, n);
            let parts = [
                hex(8),
                hex(4),
                format!("4{}", hex(3)),
                format!("a{}", hex(3)),
                hex(12),
            ];
            parts.join("-")
        })
}

fn named(class: &str, rng: &mut Rng) -> Option<String> {
    Some(match class {
        "ulid" => format!("01{}", rng.text(CROCKFORD, 24)),
        "ksuid" => format!("2{}", rng.text(ALNUM, 26)),
        "objectid" => format!("65{}", rng.text(HEX, 22)),
        "trace_id" => format!("trace_id={}", rng.text(HEX, 32)),
        "trace_id_decimal" => format!("dd.trace_id={}{}", rng.between(1, 9), rng.text(DIGITS, 18)),
        "span_id" => format!("span_id={}", rng.text(HEX, 16)),
        "git_sha" => format!("commit {}", rng.text(HEX, 40)),
        "git_sha_short" => format!("at {}", rng.text(HEX, 7)),
        "image_digest" => format!("registry.example/app@sha256:{}", rng.text(HEX, 64)),
        "sri" => format!("sha384-{}", BASE64.encode(&rng.bytes(48))),
        "etag" => format!("etag=\"{}\"", rng.text(HEX, 32)),
        "fingerprint" => {
            let digest = BASE64.encode(&rng.bytes(32));
            format!("SHA256:{}", digest.trim_end_matches('='))
        }
        "pod" => format!(
            "checkout-{}-{}",
            rng.text("bcdfghjklmnpqrstvwxz2456789", 10),
            rng.text("bcdfghjklmnpqrstvwxz2456789", 5)
        ),
        "replicaset" => format!("payments-{}", rng.text("bcdfghjklmnpqrstvwxz2456789", 9)),
        "path" => format!("/var/lib/{}/{}.log", rng.text(LOWER, 6), container(rng)),
        "class" => format!("com.example.{}.OrderService", rng.text(LOWER, 6)),
        "unit" => format!("getty@tty{}.service", rng.between(1, 9)),
        "metric" => format!("http_{}_seconds_bucket", rng.text(LOWER, 8)),
        "promql" => format!(
            "sum by (code) (rate(http_requests_total{{job=\"{}\",code=~\"5..\"}}[5m])) > 0.05",
            rng.text(LOWER, 6)
        ),
        "sql" => format!(
            "SELECT id, total FROM {} WHERE state = $1 ORDER BY id LIMIT 50",
            rng.text(LOWER, 7)
        ),
        _ => return None,
    })
}

fn numbered(class: &str, rng: &mut Rng) -> Option<String> {
    let seconds = rng.between(1_700_000_000, 1_799_999_999);
    Some(match class {
        "resource_version" => format!("resourceVersion={}", rng.between(100_000_000, 999_999_999)),
        "epoch_s" => seconds.to_string(),
        "epoch_ms" => format!("{seconds}{}", rng.text(DIGITS, 3)),
        "epoch_us" => format!("{seconds}{}", rng.text(DIGITS, 6)),
        "epoch_ns" => format!("{seconds}{}", rng.text(DIGITS, 9)),
        "iso_time" => format!(
            "2026-11-{:02}T{:02}:05:09.123456789+02:00",
            rng.between(1, 30),
            rng.below(24)
        ),
        "stamp_14" => format!(
            "2026{:02}{:02}{:02}{:02}59",
            rng.between(1, 12),
            rng.between(1, 28),
            rng.below(24),
            rng.below(60)
        ),
        "duration" => format!("took {}.{}s", rng.between(0, 99), rng.text(DIGITS, 9)),
        "byte_size" => format!("{} bytes", rng.between(1_000_000, 4_000_000_000)),
        "version" => format!(
            "v{}.{}.{}-rc.{}",
            rng.below(30),
            rng.below(90),
            rng.below(400),
            rng.below(9)
        ),
        "fraction" => format!("0.{}", rng.text(DIGITS, 16)),
        "port" => format!(
            "10.{}.{}.7:{}",
            rng.below(256),
            rng.below(256),
            rng.between(1024, 65_535)
        ),
        "status" => format!("status={}", rng.between(200, 599)),
        "pid" => format!("pid={}", rng.between(1, 4_194_304)),
        "address" => format!("0x{}", rng.text(HEX, 12)),
        "inode" => format!("inode {}", rng.between(100_000_000, 999_999_999)),
        "block" => format!("blk_{}{}", rng.between(1, 9), rng.text(DIGITS, 18)),
        "ipv4" => format!("192.168.{}.{}", rng.below(256), rng.below(256)),
        "ipv6" => format!("2001:db8::{}:{}", rng.text(HEX, 4), rng.text(HEX, 4)),
        "mac" => {
            let parts: Vec<String> = (0..6).map(|_| rng.text(HEX, 2)).collect();
            parts.join(":")
        }
        _ => return None,
    })
}
