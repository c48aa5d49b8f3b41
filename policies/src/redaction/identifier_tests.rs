//! The complaint classes that need many identifiers or many values (guardrails 13.4).

use std::collections::BTreeMap;

use super::generate::{IDENTIFIERS, KINDS, Rng, identifier, log, plant};
use super::redact;
use super::testing::{assert_survives, key};

/// Identifiers of the class survive alone, in prose, behind a key, in brackets and in JSON.
fn survive(class: &str) {
    let mut rng = Rng::new(7);
    for _ in 0..120 {
        let id = identifier(class, &mut rng);
        for text in [
            id.clone(),
            format!("saw {id} twice"),
            format!("x={id} y"),
            format!("[{id}]"),
            format!("{{\"x\":\"{}\"}}", id.replace('"', "'")),
        ] {
            assert_eq!(redact(&text, &key()).0, text, "{class}");
        }
    }
}

#[test]
fn r3_2_identifiers_of_every_class_survive() {
    for class in IDENTIFIERS {
        survive(class);
    }
}

#[test]
fn c01_epoch_times_of_every_unit_survive() {
    for class in ["epoch_s", "epoch_ms", "epoch_us", "epoch_ns"] {
        survive(class);
    }
}

#[test]
fn c02_digit_runs_inside_uuids_survive() {
    survive("uuid");
    let mut rng = Rng::new(2);
    for _ in 0..600 {
        let mut digits = |n| rng.text("0123456789", n);
        let parts = [digits(8), digits(4), digits(4), digits(4), digits(12)];
        assert_survives(&parts.join("-"));
    }
}

#[test]
fn c03_trace_and_session_ids_survive() {
    for class in ["trace_id", "span_id", "trace_id_decimal"] {
        survive(class);
    }
    let mut rng = Rng::new(3);
    for _ in 0..600 {
        let digits = rng.text("0123456789", 16);
        assert_survives(&format!("session_id={digits} span_id={digits}"));
    }
}

#[test]
fn c04_stamps_survive_and_no_span_takes_a_separator_along() {
    survive("stamp_14");
    let mut rng = Rng::new(4);
    for kind in KINDS.iter().filter(|kind| **kind != "privkey") {
        let planted = plant(kind, &mut rng);
        let (out, _) = redact(&planted.line(), &key());
        assert!(out.starts_with(&planted.before), "{out}");
        assert!(out.ends_with(&planted.after), "{out}");
    }
}

#[test]
fn c05_decimal_fractions_survive() {
    survive("fraction");
    survive("duration");
}

#[test]
fn c07_digests_are_no_random_strings() {
    for class in ["sri", "image_digest", "etag", "fingerprint", "git_sha"] {
        survive(class);
    }
    let mut rng = Rng::new(6);
    for _ in 0..100 {
        let digest = data_encoding::BASE64.encode(&rng.bytes(64));
        assert_survives(&format!("      \"integrity\": \"sha512-{digest}\","));
        assert_survives(&format!(
            "hash = \"sha256:{}\"",
            rng.text("0123456789abcdef", 64)
        ));
    }
}

#[test]
fn c08_generic_keys_and_values_survive() {
    for text in [
        "key=value",
        "cache_key=user:17:profile",
        "partition_key=7 sort_key=8",
        "foreign key constraint fails: key=orders_fk",
        "public_key=ssh-ed25519",
        "keyword=token",
        "tokenizer=bpe",
        "password policy: at least 12 characters",
    ] {
        assert_survives(text);
    }
}

#[test]
fn c10_empty_and_one_letter_values_do_not_shred_the_log() {
    for text in [
        "password=",
        "token=a b a",
        "secret: \"\" a",
        "api_key='x' xxx",
    ] {
        assert_survives(text);
    }
}

#[test]
fn c11_different_values_never_share_a_token() {
    let mut tokens: BTreeMap<String, String> = BTreeMap::new();
    let mut rng = Rng::new(13);
    for kind in KINDS {
        for _ in 0..20 {
            let planted = plant(kind, &mut rng);
            let (_, report) = redact(&planted.line(), &key());
            for found in report.findings {
                let other = tokens.insert(found.token.clone(), planted.secret.clone());
                assert!(
                    other.is_none_or(|other| other == planted.secret),
                    "{}",
                    found.token
                );
            }
        }
    }
}

#[test]
fn c34_an_exception_hides_nothing_else_on_its_line() {
    use super::testing::redact_with;
    use super::{Allowed, Options, Rules};
    let mail = |name: &str| [name, "@", "example.com"].concat();
    let rules = Rules::new(Options {
        allow: vec![Allowed {
            kind: "email".to_owned(),
            value: mail("Noc"),
        }],
        ..Options::default()
    })
    .unwrap();
    let text = format!("{} {} {}", mail("noc"), mail("ann"), mail("a.noc"));
    let (out, report) = redact_with(&rules, &text);
    assert!(
        out.starts_with(&mail("noc")) && !out.contains("ann"),
        "{out}"
    );
    assert_eq!((report.allowed, report.total()), (1, 2), "{out}");
}

#[test]
fn twenty_megabytes_of_clean_logs_hold_a_hundred_thousand_identifiers() {
    let text = log(&mut Rng::new(5), 200_000);
    // A line holds one identifier and more; those of access logs and traces are not counted.
    assert!(text.lines().count() * 20_000_000 / 200_000 > 150_000);
}
