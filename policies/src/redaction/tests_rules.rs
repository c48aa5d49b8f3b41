//! The rules of the pipeline, each by its number (guardrails 2 and 4).

use super::generate::{KINDS, Rng, plant};
use super::testing::{assert_found, assert_survives, key, luhn_number, pem};
use super::{Redactor, Report, redact};
use crate::claim::RedactKey;

fn word() -> String {
    ["wint", "er", "#Moon", "42"].concat()
}

fn mail() -> String {
    ["ann.lee", "@", "example.com"].concat()
}

fn bytes(input: &[u8]) -> (String, Report) {
    let mut stream = Redactor::new(&key());
    let mut out = stream.push(input);
    let (rest, report) = stream.finish();
    out.extend(rest);
    (String::from_utf8(out).unwrap(), report)
}

#[test]
fn r2_1_1_invalid_parts_are_replaced_one_by_one_and_binary_is_dropped() {
    assert_eq!(bytes(b"a\xf0\x9f\x98b\xffc\n").0, "a\u{fffd}b\u{fffd}c\n");
    let (out, report) = bytes(b"ok\n\x01\x02\x03\x04\xff\xfeab\nok\n");
    assert!(out.starts_with("ok\n\u{2039}dropped:binary.") && out.ends_with("\u{203a}\nok\n"));
    assert_eq!(report.dropped.get("binary"), Some(&1));
}

#[test]
fn r2_1_1_utf_16_is_read_with_and_without_its_mark() {
    let text = format!("user {} in\npassword={}\n", mail(), word());
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for input in [little.clone(), big, [&[0xff, 0xfe], &little[..]].concat()] {
        let (out, report) = bytes(&input);
        assert_eq!(report.total(), 2, "{out}");
        assert!(!out.contains(&word()) && !out.contains(&mail()), "{out}");
    }
    let (_, report) = bytes(&little);
    let start = text.find(&mail()).unwrap() as u64 * 2;
    assert_eq!(report.findings[0].start, start);
}

#[test]
fn r2_1_4_every_prefix_and_line_end_stays_and_the_token_stands_where_the_value_begins() {
    let at = "2026-01-31T08:00:00.1Z stdout";
    let text = format!("{at} P password=win\r\n{at} P terMoon\r\n{at} F 42 ok\r\n");
    let (out, report) = redact(&text, &key());
    let token = &report.findings[0].token;
    assert_eq!(
        out,
        format!("{at} P password={token}\r\n{at} P \r\n{at} F  ok\r\n")
    );
    let end = text.find(" ok").unwrap() as u64;
    assert_eq!(
        (report.findings[0].start, report.findings[0].end),
        (41, end)
    );
}

#[test]
fn r2_1_5_what_is_held_back_is_bounded_and_beyond_it_is_dropped() {
    let line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2";
    let body = format!("{line}\n").repeat(2000);
    let label = "PRIVATE KEY-----";
    let text = format!("a\n-----BEGIN {label}\n{body}-----END {label}\nb c\n");
    let (out, report) = redact(&text, &key());
    assert_eq!(report.dropped.get("budget"), Some(&1));
    assert!(
        !out.contains(&line[..12]) && out.ends_with("b c\n"),
        "{}",
        &out[out.len() - 99..]
    );
    assert_eq!(out.lines().count(), text.lines().count());
    let mut stream = Redactor::new(&key());
    let mut pieces = Vec::new();
    for chunk in text.as_bytes().chunks(777) {
        pieces.extend(stream.push(chunk));
    }
    pieces.extend(stream.finish().0);
    assert_eq!(String::from_utf8(pieces).unwrap(), out);
}

#[test]
fn r2_1_5_a_line_that_is_too_long_keeps_its_end_wherever_it_is_cut() {
    let text = format!("a b\r\n{}\r\nc d\r\n", "x ".repeat(40_000));
    let whole = redact(&text, &key()).0;
    for size in [1_000, 7_919, 80_006, 80_007] {
        let mut stream = Redactor::new(&key());
        let mut out = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            out.extend(stream.push(chunk));
        }
        out.extend(stream.finish().0);
        assert_eq!(String::from_utf8(out).unwrap(), whole, "{size}");
    }
}

#[test]
fn r2_1_6_the_head_of_a_key_goes_where_the_source_cut_the_text() {
    let head = ["gh", "p_", "a7Qx3Lm9Zk"].concat();
    assert_survives(&format!("use {head} now"));
    for text in [
        format!("use {head}..."),
        format!("use {head}\u{2026}"),
        format!("use {head}[truncated]"),
        format!("{} {head}", "x".repeat(1023 - head.len())),
    ] {
        let (out, report) = redact(&text, &key());
        assert!(!out.contains("a7Qx3Lm9Zk"), "{out}");
        assert_eq!(report.counts.get("key.github"), Some(&1), "{out}");
    }
    let block = pem("RSA ");
    let (out, _) = redact(&block[..120], &key());
    assert!(!out.contains("MII"), "{out}");
    let (out, _) = redact(&format!("password=\"{}...", word()), &key());
    assert!(!out.contains(&word()), "{out}");
}

#[test]
fn r2_2_1_decoders_compose_to_a_depth_of_three() {
    let once = data_encoding::BASE64.encode(format!("password={} ok", word()).as_bytes());
    let twice = data_encoding::BASE64.encode(once.as_bytes());
    let percent: String = twice.bytes().map(|b| format!("%{b:02x}")).collect();
    for text in [once, twice, percent] {
        let (out, report) = redact(&format!("got {text} here"), &key());
        assert_eq!(report.total(), 1, "{out}");
        assert!(
            out.starts_with("got \u{2039}secret:") && out.ends_with("\u{203a} here"),
            "{out}"
        );
    }
}

#[test]
fn r2_2_2_unicode_is_folded_over_whole_runs() {
    let (out, _) = redact(&format!("passwo\u{308}rd={}", word()), &key());
    assert!(!out.contains(&word()), "{out}");
    let plain = redact(&mail(), &key()).1;
    let wide: String = mail()
        .chars()
        .map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap())
        .collect();
    let folded = redact(&wide, &key()).1;
    assert_eq!(plain.findings[0].token, folded.findings[0].token);
    assert_eq!(folded.findings[0].views, ["unicode"]);
}

#[test]
fn r2_3_2_spans_unite_and_the_strongest_kind_names_them() {
    let github = ["gh", "p_", "a7Qx3Lm9Zk2Rb5TcW8Ve4Yd6Nf0Hg1Jq2Ws3E"].concat();
    let (out, report) = redact(&format!("token={github} x"), &key());
    assert_eq!(
        report.counts.keys().copied().collect::<Vec<_>>(),
        ["key.github"]
    );
    assert!(out.ends_with("\u{203a} x"), "{out}");
}

#[test]
fn r2_3_3_only_the_span_goes_and_no_separator_beside_it() {
    for (before, after) in [
        ("(", ")"),
        ("<", ">"),
        ("\"", "\","),
        ("a=", "&b=2"),
        ("", "; x"),
        ("[", "]"),
    ] {
        assert_found(&format!("{before}{}{after}", mail()), &mail(), "email");
    }
}

#[test]
fn r2_3_4_records_and_fields_keep_their_structure() {
    let card = luhn_number("4", 16);
    for text in [
        format!(
            "{{\"card\":{card},\"n\":[1,{card}],\"user\":\"{}\"}}",
            mail()
        ),
        "{\"a\":{\"password\":12345678},\"b\":true}".to_owned(),
        format!("2026-01-31T08:00:00Z stdout F {{\"card\":{card}}}"),
        format!("{{\"msg\":\"password=\\\"{}\\\" x\",\"b\":1}}", word()),
        format!("{{\"MESSAGE\":{:?},\"b\":1}}", mail().as_bytes()),
    ] {
        let (out, report) = redact(&text, &key());
        let record = &out[out.find('{').unwrap()..];
        assert!(
            serde_json::from_str::<serde_json::Value>(record).is_ok(),
            "{out}"
        );
        assert!(report.total() > 0 && report.dropped.is_empty(), "{out}");
    }
    let csv = format!("1,{},{card},x", mail());
    assert_eq!(redact(&csv, &key()).0.matches(',').count(), 3);
}

#[test]
fn r2_4_what_is_found_again_is_dropped_and_redaction_is_idempotent() {
    let mut rng = Rng::new(41);
    for kind in KINDS {
        for _ in 0..20 {
            let text = format!("{}\n", plant(kind, &mut rng).line());
            let (out, _) = redact(&text, &key());
            let (again, report) = redact(&out, &key());
            assert_eq!(again, out);
            assert!(report.is_clean(), "{out} {report:?}");
        }
    }
}

#[test]
fn r2_5_1_work_is_bounded_by_size_on_every_flood() {
    for flood in [
        "a@",
        "://",
        "password=",
        "-----BEGIN ",
        "4111 ",
        "ey",
        "%41",
        "%25",
        "\\u0041",
        "\\\\",
        "QUFB",
        "\u{2039}",
        "{\"",
        "=:",
        "&#64;",
        "[1,",
        "x-api-key: ",
        "cookie: a=b;",
        "\u{200b}",
        "p\u{430}",
        "+1 2",
        "DE89 ",
        "ghp_a",
        "H4sI",
        "=41",
        "1-",
    ] {
        for size in [4_000, 60_000] {
            let text = flood.repeat(size / flood.len());
            let (_, report) = redact(&text, &key());
            // The search and the post-condition, each with what it decodes.
            let bytes = text.len() as u64;
            let limit = 2 * (16 * (bytes + 2 * bytes + 65_536) + 4_096);
            assert!(report.work_units <= limit, "{flood}: {}", report.work_units);
        }
        let work = |n: usize| redact(&flood.repeat(n), &key()).1.work_units;
        let (small, large) = (work(1_000), work(4_000));
        assert!(large <= small.max(1_000) * 6, "{flood}: {small} {large}");
    }
}

#[test]
fn r2_5_2_a_run_beyond_the_budget_goes_alone() {
    use std::io::Write as _;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(&vec![b'a'; 1 << 20]).unwrap();
    let bomb = data_encoding::BASE64.encode(&packer.finish().unwrap());
    let (out, report) = redact(&format!("one {bomb} two {}", mail()), &key());
    assert!(
        out.starts_with("one \u{2039}dropped:budget.")
            && out.contains("\u{203a} two \u{2039}email:"),
        "{out}"
    );
    assert_eq!(report.dropped.get("budget"), Some(&1));
}

#[test]
fn r4_2_one_value_has_one_id_in_every_spelling_and_encoding() {
    let (_, report) = redact(
        &format!(
            "{} {} {} {}",
            mail(),
            mail().to_uppercase(),
            mail().replace('@', "%40").replace('.', "%2E"),
            mail().replace('@', "\\u0040")
        ),
        &key(),
    );
    let first = &report.findings[0].token;
    assert_eq!(report.findings.len(), 4);
    assert!(
        report.findings.iter().all(|f| f.token == *first),
        "{:?}",
        report.findings
    );
}

#[test]
fn r4_3_only_genuine_tokens_stay() {
    let token = redact(&mail(), &key()).0;
    let other = redact(&mail(), &RedactKey::from_bytes([1; 32])).0;
    let (out, report) = redact(&format!("{token} {other} \u{2039}x\u{203a}"), &key());
    assert!(
        out.starts_with(&format!("{token} <email:")) && out.ends_with("> <x>"),
        "{out}"
    );
    assert_eq!((report.forged, report.total()), (1, 0));
}

#[test]
fn r6_3_findings_have_source_offsets_and_views_and_no_value() {
    let text = format!(
        "first\n\u{e9} x {} y {}\n",
        mail(),
        mail().replace('@', "%40").replace('.', "%2E")
    );
    let report = redact(&text, &key()).1;
    let spans: Vec<&str> = report
        .findings
        .iter()
        .map(|f| &text[f.start as usize..f.end as usize])
        .collect();
    assert_eq!(spans[0], mail());
    assert!(spans[1].contains("%40"));
    assert_eq!(report.findings[1].views, ["percent"]);
    assert!(report.findings.iter().all(|f| f.line == 2 && f.verified));
    assert!(!serde_json::to_string(&report).unwrap().contains("ann"));
}
