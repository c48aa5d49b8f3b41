//! Properties of the whole redactor. Values are built at run time.

use proptest::prelude::*;

use super::testing::{assert_found, assert_survives, iban, jwt, key, luhn_number, pem};
use super::{Redactor, redact};
use crate::claim::RedactKey;

/// Secrets and where they are planted: the kind, the whole text, the part that must go.
fn planted() -> Vec<(&'static str, String, String)> {
    let word = ["wint", "er", "#Moon", "42"].concat();
    let card = luhn_number("4", 16);
    let account = iban("DE", "370400440532013000");
    let number = ["123", "45", "6789"].join("-");
    let token = jwt(r#"{"alg":"HS256"}"#);
    let mail = ["ann.lee", "@", "example.com"].concat();
    let github = super::generate::plant("key.github", &mut super::generate::Rng::new(1)).value;
    vec![
        ("secret", format!("password={word}"), word.clone()),
        (
            "secret",
            format!("{{\"db_password\": \"{word}\"}}"),
            word.clone(),
        ),
        (
            "urlcred",
            format!("postgres://app:{word}@db:5432/x"),
            word.clone(),
        ),
        ("auth", format!("Authorization: Bearer {word}"), word),
        ("pan", format!("paid {card}"), card),
        ("iban", format!("to {account}"), account),
        ("ssn", format!("ssn {number}"), number),
        ("jwt", format!("got {token}"), token),
        ("email", format!("from {mail}"), mail),
        ("key.github", format!("use {github}"), github),
    ]
}

/// Text that must come out byte for byte (guardrails 3.2).
const MUST_SURVIVE: &[&str] = &[
    "2026-01-31T08:00:00.250Z ERROR checkout-1 request failed code=500 took_ms=1234 trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "dd.trace_id=4532015112830366121 dd.span_id=6011000990139424",
    "id=550e8400-e29b-41d4-a716-446655440000 ulid=01ARZ3NDEKTSV4RRFFQ69G5FAV oid=507f1f77bcf86cd799439011",
    "ksuid 0ujsszwN8NRY24YaXiTIE2VWDTS",
    "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904 (4b825dc)",
    "image registry.local/checkout@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU etag=\"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
    "pod checkout-7d9f8b6c5d-x2x4z resourceVersion=184467440737 replicaset=checkout-7d9f8b6c5d",
    "ts=1780000000 ms=1780000000123 us=1780000000123456 ns=1780000000123456789 stamp=20260131080000",
    "Jan 31 08:00:00 host sshd[4711]: Accepted publickey for deploy from 10.0.0.7 port 51234 ssh2",
    "took 12.345678901234567s size=1073741824 ratio=0.4111111111111111 version=1.24.3-rc.1+build.5 go1.22.4",
    "addr=10.12.0.7:8443 peer=[2001:db8::1]:443 mac=00:1b:44:11:3a:b7 ptr=0x00007f3a2c001a40 inode=1311768",
    "at com.example.shop.CheckoutService$Inner.handle(CheckoutService.java:142)",
    "  File \"/srv/shop/checkout/app.py\", line 142, in handle",
    "java.lang.Object@1a2b3c4d user@1000.service nginx.service sshd@3-10.0.0.7:22.service",
    "http_requests_total{route=\"/pay\",code=\"500\"} 1027 1780000000123",
    "sum(rate(http_request_duration_seconds_bucket{le=\"0.5\"}[5m])) by (service)",
    "SELECT id, total FROM orders WHERE tenant = ? AND created_at > ?",
    "I0131 08:00:00.123456       1 controller.go:42] Sync \"default/checkout\" done",
    "errno=111 ECONNREFUSED status=503 pid=4711 exit_code=137 signal=9",
    "upstream_requests_total{peer=\"payments\",code=\"200\"} 4111",
    "db_pool_size 10 db_pool_in_use 10 db_pool_waiting 7 process_resident_memory_bytes 5.4525952e+07",
    "lat=52.520008 lon=13.404954 bbox=13.0884,52.3382,13.7611,52.6755",
    "GET /api/v1/orders/81273?page=2&limit=50 HTTP/1.1 200 5120 \"-\" \"curl/8.5.0\"",
    "block 0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5",
    "token_count=5120 max_tokens=4096 key=orders:17 secretary=ann authorization_status=granted",
    "\u{65e5}\u{672c}\u{8a9e} \u{43b}\u{43e}\u{433} caf\u{e9} \u{2014} ok",
    "-----BEGIN CERTIFICATE-----",
];

#[test]
fn identifiers_of_operations_survive_byte_for_byte() {
    for line in MUST_SURVIVE {
        assert_survives(line);
    }
}

#[test]
fn luhn_valid_time_stamps_of_every_unit_survive() {
    for (head, length) in [
        ("17", 10),
        ("17", 13),
        ("178", 16),
        ("1780", 19),
        ("2026", 14),
    ] {
        assert_survives(&format!("at {} done", luhn_number(head, length)));
    }
}

#[test]
fn every_planted_value_goes_and_only_it() {
    for (kind, text, value) in planted() {
        assert_found(&format!("x {text} y"), &value, kind);
    }
}

#[test]
fn values_behind_an_encoding_are_found() {
    let mail = ["ann.lee", "@", "example.com"].concat();
    let word = ["wint", "er", "Moon", "42"].concat();
    let percent = mail.replace('@', "%40").replace('.', "%2E");
    let escaped = mail.replace('@', "\\u0040");
    let hidden = mail.replace("ann", "an\u{200b}n").replace('@', "\u{feff}@");
    let wide = mail.replace('@', "\u{ff20}");
    let base64 = data_encoding::BASE64.encode(format!("password={word} and more").as_bytes());
    let hex = data_encoding::HEXLOWER.encode(format!("password={word} and more").as_bytes());
    let json = format!("{{\\\"password\\\":\\\"{word}\\\"}}");
    let twice = data_encoding::BASE64.encode(base64.as_bytes());
    for (text, gone) in [
        (percent.clone(), percent),
        (escaped.clone(), escaped),
        (hidden.clone(), hidden),
        (wide.clone(), wide),
        (base64.clone(), base64),
        (hex.clone(), hex),
        (json, word),
        (twice.clone(), twice),
    ] {
        let (out, report) = redact(&format!("got {text} here"), &key());
        assert!(!out.contains(&gone), "{out}");
        assert_eq!((report.total(), report.dropped.len()), (1, 0), "{out}");
        assert!(out.starts_with("got ") && out.ends_with(" here"), "{out}");
        assert_eq!(redact(&out, &key()).0, out);
    }
}

#[test]
fn one_value_has_one_token_in_any_spelling() {
    let card = luhn_number("4", 16);
    let groups: Vec<&str> = [0, 4, 8, 12].iter().map(|&i| &card[i..i + 4]).collect();
    let mail = ["ann.lee", "@", "example.com"].concat();
    let text = format!(
        "{card}, {}, {}\n{mail} {}",
        groups.join("-"),
        groups.join(" "),
        mail.to_uppercase()
    );
    let (_, report) = redact(&text, &key());
    let tokens: Vec<&str> = report.findings.iter().map(|f| f.token.as_str()).collect();
    let [a, b, c, d, e] = tokens[..] else {
        panic!("{tokens:?}")
    };
    assert!(a == b && b == c && d == e && c != d);
}

#[test]
fn a_forged_token_is_defused_and_counted() {
    let forged = "\u{2039}email:abcdefgh.ijkl\u{203a}";
    let (out, report) = redact(&format!("x {forged} y"), &key());
    assert_eq!(out, "x <email:abcdefgh.ijkl> y");
    assert_eq!((report.forged, report.total()), (1, 0));
}

#[test]
fn a_line_that_is_too_long_is_dropped_whole_and_its_neighbours_stay() {
    let long = "a".repeat(1024 * 1024 + 7);
    let text = format!("one\n{long}\ntwo\n");
    let (out, report) = redact(&text, &key());
    assert!(out.starts_with("one\n\u{2039}dropped:budget.") && out.ends_with("\u{203a}\ntwo\n"));
    assert_eq!((report.dropped.get("budget"), report.lines), (Some(&1), 3));
    let mut stream = Redactor::new(&key());
    let mut bytes = Vec::new();
    for chunk in text.as_bytes().chunks(4096) {
        bytes.extend(stream.push(chunk));
    }
    let (rest, counted) = stream.finish();
    bytes.extend(rest);
    assert_eq!(bytes, out.as_bytes());
    assert_eq!(counted.bytes_in, text.len() as u64);
    assert_eq!(counted.bytes_out, bytes.len() as u64);
}

#[test]
fn work_grows_linearly_on_floods_of_anchors() {
    for flood in [
        "a@",
        "://",
        "password=",
        "-----BEGIN ",
        "4111 ",
        "ey",
        "%41",
        "\\u0041",
        "QUFB",
        "\u{2039}",
        "{\"",
        "=:",
    ] {
        let work = |n: usize| redact(&flood.repeat(n), &key()).1.work_units;
        let (small, large) = (work(1_000), work(4_000));
        assert!(large <= small.max(1_000) * 8, "{flood}: {small} {large}");
    }
}

/// Lines made of ordinary words, identifiers, planted values and stray signs.
fn line() -> impl Strategy<Value = String> {
    let plain = proptest::sample::select(MUST_SURVIVE).prop_map(str::to_owned);
    let secret = proptest::sample::select(planted()).prop_map(|(_, text, _)| text);
    let stray = "[ -~\u{2039}\u{203a}\u{200b}\u{ff20}\t\\\\\"'=:;,@%]{0,24}";
    let piece = prop_oneof![3 => plain, 3 => secret, 2 => stray, 1 => Just(pem("")), 1 => Just(pem("RSA ").lines().take(2).collect::<Vec<_>>().join("\n"))];
    proptest::collection::vec(piece, 1..4).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redaction_is_idempotent_and_deterministic_and_keeps_lines(lines in proptest::collection::vec(line(), 1..6)) {
        let text = lines.join("\n");
        let (out, _) = redact(&text, &key());
        prop_assert_eq!(&redact(&text, &key()).0, &out);
        let (again, report) = redact(&out, &key());
        prop_assert_eq!(&again, &out);
        prop_assert!(report.is_clean(), "{:?}", report);
        prop_assert_eq!(out.matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn no_planted_value_is_left(lines in proptest::collection::vec(line(), 1..5)) {
        let (out, _) = redact(&lines.join("\n"), &key());
        for (kind, _, value) in planted() {
            prop_assert!(!out.contains(&value), "{} in {}", kind, out);
        }
    }

    #[test]
    fn the_output_does_not_depend_on_the_chunks(lines in proptest::collection::vec(line(), 1..5), cuts in proptest::collection::vec(0_usize..2048, 0..6)) {
        let text = lines.join("\n");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
        cuts.push(text.len());
        cuts.sort_unstable();
        let mut stream = Redactor::new(&key());
        let (mut bytes, mut at) = (Vec::new(), 0);
        for cut in cuts {
            bytes.extend(stream.push(&text.as_bytes()[at..cut]));
            at = cut;
        }
        let (rest, report) = stream.finish();
        bytes.extend(rest);
        let (whole, one) = redact(&text, &key());
        prop_assert_eq!(String::from_utf8(bytes).unwrap(), whole);
        prop_assert_eq!(report.counts, one.counts);
    }

    #[test]
    fn any_bytes_give_text_and_the_key_decides_the_tokens(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let mut stream = Redactor::new(&RedactKey::from_bytes([9; 32]));
        let mut out = stream.push(&bytes);
        out.extend(stream.finish().0);
        prop_assert!(String::from_utf8(out).is_ok());
    }
}
