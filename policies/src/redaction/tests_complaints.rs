//! What users of other redactors complained about, one test for each class (guardrails 13.4).

use super::generate::{KINDS, Rng, log, plant};
use super::testing::{assert_survives, key, luhn_number};
use super::{Redactor, redact};
use crate::claim::RedactKey;

fn word() -> String {
    ["wint", "er", "#Moon", "42"].concat()
}

fn mail() -> String {
    ["ann.lee", "@", "example.com"].concat()
}

fn gone(text: &str, value: &str) {
    let (out, report) = redact(text, &key());
    assert!(!out.contains(value), "{text} -> {out}");
    assert_eq!(
        (report.total(), report.dropped.len()),
        (1, 0),
        "{text} -> {out}"
    );
}

#[test]
fn c10_empty_and_one_letter_values_do_not_shred_the_log() {
    for text in [
        "password=",
        "password=x a x b x",
        "token=\"\" ok",
        "secret: '' x",
    ] {
        assert_survives(text);
    }
}

#[test]
fn c12_a_value_is_found_at_every_chunk_border() {
    let text = format!("a\npassword={} b\nmail {} c\n", word(), mail());
    let whole = redact(&text, &key()).0;
    for cut in 0..=text.len() {
        let mut stream = Redactor::new(&key());
        let mut out = stream.push(&text.as_bytes()[..cut]);
        out.extend(stream.push(&text.as_bytes()[cut..]));
        out.extend(stream.finish().0);
        assert_eq!(String::from_utf8(out).unwrap(), whole, "{cut}");
    }
}

#[test]
fn c13_the_result_does_not_depend_on_the_size_of_the_input() {
    let line = format!("user {} in\n", mail());
    let alone = redact(&line, &key()).0;
    let text = format!("{}{line}", log(&mut Rng::new(5), 300_000));
    assert!(redact(&text, &key()).0.ends_with(&alone));
}

#[test]
fn c14_every_value_of_a_line_is_found_once() {
    let (out, report) = redact(
        &format!("password={} x {} y {}", word(), mail(), mail()),
        &key(),
    );
    assert_eq!(report.total(), 3, "{out}");
    assert!(
        out.contains(" x \u{2039}email:") && out.contains("\u{203a} y \u{2039}email:"),
        "{out}"
    );
}

#[test]
fn c15_two_values_with_a_control_character_between_are_two() {
    let card = luhn_number("4", 16);
    for between in ["\u{1}", "\u{200b}", "\u{ad}", "\u{2028}", "\u{1f}"] {
        let (out, _) = redact(&format!("{} {card}{between}{card} x", word()), &key());
        assert!(
            !out.contains(&card[..8]) && !out.contains(&card[8..]),
            "{between:?} {out}"
        );
    }
}

#[test]
fn c16_a_value_over_lines_is_found_over_successive_reads() {
    let text = format!("password: \"{}\nsecond half\"\nok\n", word());
    let mut stream = Redactor::new(&key());
    let mut out = Vec::new();
    for line in text.split_inclusive('\n') {
        out.extend(stream.push(line.as_bytes()));
    }
    out.extend(stream.finish().0);
    let out = String::from_utf8(out).unwrap();
    assert!(
        !out.contains("winter") && !out.contains("half") && out.ends_with("\"\nok\n"),
        "{out}"
    );
}

#[test]
fn c17_folded_base64_behind_a_label_is_found_at_every_offset() {
    for offset in 0..72 {
        let plain = format!(
            "{}password={} and more text behind it",
            "x".repeat(offset),
            word()
        );
        let encoded = data_encoding::BASE64.encode(plain.as_bytes());
        for (label, width) in [("data: ", 76), ("data-", 64), ("", 76), ("blob ", 60)] {
            let lines: Vec<&str> = encoded
                .as_bytes()
                .chunks(width)
                .map(|c| std::str::from_utf8(c).unwrap())
                .collect();
            let text = format!("{label}{}\nend\n", lines.join("\n"));
            let (out, report) = redact(&text, &key());
            assert_eq!(report.total(), 1, "{offset} {label}: {text}{out}");
            assert!(
                lines.iter().all(|l| l.len() < 16 || !out.contains(l)),
                "{out}"
            );
            assert_eq!(out.lines().count(), text.lines().count());
        }
    }
}

#[test]
fn c18_a_collector_prefix_hides_neither_key_nor_value() {
    let at = "2026-01-31T08:00:00Z stdout";
    for text in [
        format!("web-1  | password: {}", word()),
        format!("{at} F password: {}", word()),
        format!("{at} P pass\n{at} F word={}", word()),
        format!("{at} P password=winter#Mo\n{at} F on42"),
        format!("Jan 31 08:00:00 host app[1]: password: {}", word()),
    ] {
        gone(&text, "Moon42");
        assert!(!redact(&text, &key()).0.contains("#Mo"));
    }
}

#[test]
fn c22_base64_and_base32_of_text_around_a_value_are_found() {
    for offset in 0..6 {
        let plain = format!("{}mail {} to", "y".repeat(offset), mail());
        gone(
            &format!("v {}", data_encoding::BASE64.encode(plain.as_bytes())),
            "bWFpb",
        );
        let encoded = data_encoding::BASE32.encode(plain.as_bytes());
        gone(&format!("v {encoded}"), &encoded);
    }
}

#[test]
fn c23_base64_with_line_feeds_gives_one_right_span() {
    let encoded =
        data_encoding::BASE64.encode(format!("password={} with some more", word()).as_bytes());
    let (head, tail) = encoded.split_at(32);
    for text in [
        format!("{{\"v\":\"{head}\\n{tail}\"}}"),
        format!(
            "{{\"v\":\"{}\"}}",
            data_encoding::BASE64.encode(encoded.as_bytes())
        ),
    ] {
        let (out, report) = redact(&text, &key());
        assert_eq!(report.total(), 1, "{out}");
        assert!(
            out.starts_with("{\"v\":\"\u{2039}secret:") && out.ends_with("\u{203a}\"}"),
            "{out}"
        );
    }
}

#[test]
fn c24_every_spelling_of_a_unicode_escape_is_read() {
    for at in [
        "\\u0040",
        "\\u{40}",
        "\\U00000040",
        "\\x40",
        "\\100",
        "\\\\u0040",
        "&#64;",
        "&#x40;",
        "%40%2e%2e",
    ] {
        let text = format!("from {} to", mail().replace('@', at));
        if !at.contains("%2e") {
            gone(&text, "example.com");
        }
    }
}

#[test]
fn c25_encoded_addresses_and_telephone_numbers_are_found() {
    let phone = ["+49 30", " 901820"].concat();
    let percent = |t: &str| t.bytes().map(|b| format!("%{b:02X}")).collect::<String>();
    for value in [mail(), phone] {
        let encoded = percent(&value);
        gone(&format!("q={encoded} x"), &encoded);
        let encoded = data_encoding::BASE64.encode(format!("call {value} now").as_bytes());
        gone(&format!("v {encoded} x"), &encoded);
    }
}

#[test]
fn c26_look_alikes_and_zero_width_characters_hide_nothing() {
    for text in [
        format!("p\u{430}ssw\u{43e}rd={}", word()),
        format!("pass\u{200b}word={}", word()),
        format!("pa\u{ff53}\u{ff53}word={}", word()),
        format!("\u{1d429}\u{1d41a}\u{1d42c}\u{1d42c}word={}", word()),
        format!("pas\u{301}sword={}", word()),
    ] {
        gone(&text, &word());
    }
}

#[test]
fn c27_invisible_characters_are_known_by_property() {
    for c in [
        '\u{2065}',
        '\u{1bca1}',
        '\u{e0020}',
        '\u{e01ef}',
        '\u{180e}',
        '\u{fff0}',
        '\u{1d173}',
    ] {
        gone(&format!("x ann{c}.lee@example.com y"), "example.com");
    }
    let smuggled: String = mail()
        .chars()
        .map(|c| char::from_u32(0xe0000 + u32::from(c)).unwrap())
        .collect();
    gone(&format!("hello \u{1f600}{smuggled} x"), &smuggled);
}

#[test]
fn c30_a_reached_limit_is_a_drop() {
    let (out, report) = redact(&format!("a\n{}\nb\n", "x".repeat(70_000)), &key());
    assert_eq!(report.dropped.get("budget"), Some(&1));
    assert!(!report.is_clean() && out.starts_with("a\n\u{2039}dropped:budget."));
}

#[test]
fn c31_tokens_agree_within_a_key_and_over_threads_and_differ_between_keys() {
    let text = format!("{} {}", mail(), mail());
    let threads: Vec<String> = (0..4)
        .map(|_| {
            let text = text.clone();
            std::thread::spawn(move || redact(&text, &key()).0)
        })
        .map(|t| t.join().unwrap())
        .collect();
    assert!(threads.iter().all(|t| *t == threads[0]));
    let (a, b) = threads[0].split_once(' ').unwrap();
    assert_eq!(a, b);
    assert_ne!(redact(&text, &RedactKey::from_bytes([3; 32])).0, threads[0]);
}

#[test]
fn c32_seven_megabytes_are_read_in_linear_work() {
    let mut rng = Rng::new(9);
    let mut text = log(&mut rng, 200_000);
    for kind in KINDS {
        text.push_str(&plant(kind, &mut rng).line());
        text.push('\n');
    }
    let one = redact(&text, &key()).1;
    let many = redact(&text.repeat(4), &key()).1;
    assert!(
        many.work_units <= one.work_units * 4 + 4096,
        "{} {}",
        one.work_units,
        many.work_units
    );
    assert_eq!(many.total(), one.total() * 4);
}

#[test]
fn c19_a_value_that_the_source_cut_leaves_no_head() {
    let head = ["sk_", "live_", "4eC39HqLyjWD"].concat();
    let (out, _) = redact(&format!("charge failed for {head}..."), &key());
    assert!(!out.contains("4eC39"), "{out}");
}

#[test]
fn c29_pathological_lines_cost_no_more_than_their_size_allows() {
    for flood in [
        "a@a.",
        "authorization: ",
        "x=\"",
        "https://a:",
        "%2525",
        "eyJ.",
    ] {
        let work = |n: usize| redact(&flood.repeat(n), &key()).1.work_units;
        let (small, large) = (work(1_500), work(6_000));
        assert!(large <= small.max(1_000) * 6, "{flood}: {small} {large}");
    }
}
