//! Values for tests, built at run time: nothing that looks real is in the repository.

use std::sync::Arc;

use super::{Redactor, Report, Rules, redact};
use crate::claim::RedactKey;

pub(crate) fn key() -> RedactKey {
    RedactKey::from_bytes([42; 32])
}

/// `value` must be replaced by a token of `kind`, and nothing else may change.
#[track_caller]
pub(crate) fn assert_found(text: &str, value: &str, kind: &str) {
    assert_found_with(&Rules::default(), text, value, kind);
}

/// Redacts a whole text under the settings of a site.
pub(crate) fn redact_with(rules: &Rules, text: &str) -> (String, Report) {
    let mut redactor = Redactor::with_rules(&key(), Arc::new(rules.clone()));
    let out = redactor.text(text);
    (out, redactor.into_report())
}

/// The same under the settings of a site.
#[track_caller]
pub(crate) fn assert_found_with(rules: &Rules, text: &str, value: &str, kind: &str) {
    let (out, report) = redact_with(rules, text);
    assert_eq!(
        report.counts.get(kind),
        Some(&1),
        "{text} -> {out} {:?}",
        report.counts
    );
    assert_eq!(report.total(), 1, "{text} -> {out}");
    assert!(report.dropped.is_empty(), "{text} -> {out}");
    let token = &report.findings[0].token;
    assert_eq!(out, text.replace(value, token), "{text}");
    let (again, second) = redact_with(rules, &out);
    assert_eq!(again, out);
    assert!(second.is_clean(), "{out}: {second:?}");
}

/// Nothing may change.
#[track_caller]
pub(crate) fn assert_survives(text: &str) {
    let (out, report) = redact(text, &key());
    assert_eq!(out, text, "{:?}", report.counts);
}

/// Nothing may change under the settings of a site.
#[track_caller]
pub(crate) fn assert_survives_with(rules: &Rules, text: &str) {
    let (out, report) = redact_with(rules, text);
    assert_eq!(out, text, "{:?}", report.counts);
}

/// A number of `length` digits that begins with `head` and passes Luhn.
pub(crate) fn luhn_number(head: &str, length: usize) -> String {
    let mut digits: Vec<u32> = head.chars().map(|c| c.to_digit(10).unwrap()).collect();
    let mut next = 7;
    while digits.len() < length - 1 {
        digits.push(next % 10);
        next = next * 3 + 1;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, d)| match (i % 2 == 0, d * 2) {
            (true, double) if double > 9 => double - 9,
            (true, double) => double,
            (false, _) => *d,
        })
        .sum();
    digits.push((10 - sum % 10) % 10);
    digits.iter().map(ToString::to_string).collect()
}

/// An account number with the right check digits.
pub(crate) fn iban(country: &str, body: &str) -> String {
    let mut rest = 0_u32;
    for c in format!("{body}{country}00").chars() {
        let value = c.to_digit(36).unwrap();
        rest = (rest * if value > 9 { 100 } else { 10 } + value) % 97;
    }
    format!("{country}{:02}{body}", 98 - rest)
}

/// A token of three segments.
pub(crate) fn jwt(header: &str) -> String {
    let encode = |text: &str| data_encoding::BASE64URL_NOPAD.encode(text.as_bytes());
    format!(
        "{}.{}.{}",
        encode(header),
        encode("{\"sub\":\"someone\"}"),
        encode("no signature at all")
    )
}

/// A private key block with a meaningless body of four lines.
pub(crate) fn pem(label: &str) -> String {
    let body: Vec<String> = (0..4)
        .map(|i| {
            format!("MII{}{}", i, "AbCdEfGh".repeat(7))
                .chars()
                .take(if i == 3 { 22 } else { 64 })
                .collect()
        })
        .collect();
    let label = format!("{label}PRIVATE KEY");
    format!(
        "-----BEGIN {label}-----\n{}==\n-----END {label}-----",
        body.join("\n")
    )
}
