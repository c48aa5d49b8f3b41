//! Clean logs: what is found where nothing is, and whether every identifier survives.

use std::collections::BTreeMap;

use policies::redaction::generate::{IDENTIFIERS, Rng, identifier, log};
use policies::redaction::redact;
use serde::Serialize;

use super::{Gate, key};

/// Kinds that must never be found in a clean log.
const NEVER: &[&str] = &["pan", "iban", "ssn", "privkey", "key."];

/// What was destroyed.
#[derive(Debug, Default, Serialize)]
pub struct Clean {
    /// Identifiers looked at.
    pub identifiers: usize,
    /// Identifiers that changed, by class.
    pub destroyed: BTreeMap<&'static str, usize>,
    /// Bytes of clean log.
    pub bytes: usize,
    /// Finds in them, by kind.
    pub found: BTreeMap<String, u64>,
}

impl Clean {
    #[allow(clippy::cast_precision_loss, reason = "counts of a benchmark")]
    fn per_mb(&self, kinds: impl Fn(&str) -> bool) -> f64 {
        let found: u64 = self
            .found
            .iter()
            .filter(|(kind, _)| kinds(kind))
            .map(|(_, n)| n)
            .sum();
        found as f64 / (self.bytes as f64 / 1e6)
    }

    pub(super) fn gates(&self) -> Vec<Gate> {
        let destroyed: usize = self.destroyed.values().sum();
        let all = self.per_mb(|_| true);
        let never = |kind: &str| NEVER.iter().any(|n| kind.starts_with(n));
        let hard = self.per_mb(never);
        vec![
            Gate {
                goal: "identifiers that must survive",
                bound: "100 % of at least 100,000",
                measured: format!("{destroyed} of {} changed", self.identifiers),
                met: destroyed == 0 && self.identifiers >= 100_000,
            },
            Gate {
                goal: "false finds on clean logs",
                bound: "at most 0.25 per MB on at least 20 MB",
                measured: format!("{all:.3} per MB on {} MB", self.bytes / 1_000_000),
                met: all <= 0.25 && self.bytes >= 20_000_000,
            },
            Gate {
                goal: "false cards, accounts, numbers and keys on clean logs",
                bound: "0 per MB",
                measured: format!("{hard:.3} per MB"),
                met: hard == 0.0 && self.bytes >= 20_000_000,
            },
        ]
    }
}

pub(super) fn measure(scale: usize) -> Clean {
    let mut clean = Clean::default();
    let mut rng = Rng::new(77);
    for class in IDENTIFIERS {
        for _ in 0..scale * 30 {
            let text = format!("see {} now\n", identifier(class, &mut rng));
            clean.identifiers += 1;
            if redact(&text, &key()).0 != text {
                *clean.destroyed.entry(class).or_default() += 1;
            }
        }
    }
    for _ in 0..scale {
        let text = log(&mut rng, 210_000);
        let (_, report) = redact(&text, &key());
        clean.bytes += text.len();
        for (kind, count) in &report.counts {
            *clean.found.entry((*kind).to_owned()).or_default() += count;
        }
    }
    clean
}
