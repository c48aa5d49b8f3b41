//! Times, as ratios to other passes over the same text in the same run; medians of five.

use std::hint::black_box;
use std::time::Instant;

use policies::redaction::generate::{Rng, dense_log, log};
use policies::redaction::redact;
use regex_automata::meta;
use serde::Serialize;

use super::rules::RULES;
use super::{Gate, key};

/// Runs of each pass.
const RUNS: usize = 5;
/// Bytes of a tool's output whose latency is measured.
const OUTPUT: usize = 64 * 1024;

/// One text that is made to be slow.
#[derive(Debug, Serialize)]
pub struct Adversary {
    /// What it is made of.
    pub name: &'static str,
    /// Nanoseconds a byte.
    pub ns_per_byte: f64,
    /// Work units a byte (guardrails 2.5.1).
    pub work_per_byte: f64,
}

/// Times.
#[derive(Debug, Serialize)]
pub struct Speed {
    /// MB/s of the redactor on clean log text.
    pub clean_mb_s: f64,
    /// MB/s on text with one value in about 200 bytes.
    pub dense_mb_s: f64,
    /// MB/s of a search for line feeds with memchr on the clean text.
    pub memchr_mb_s: f64,
    /// MB/s of one alternation of the same rules (regex).
    pub alternation_mb_s: f64,
    /// MB/s of one search with many patterns (regex-automata).
    pub many_mb_s: f64,
    /// MB/s of one pass for each rule (regex).
    pub separate_mb_s: f64,
    /// Texts made to be slow.
    pub adversaries: Vec<Adversary>,
    /// 99th percentile of the time for one output of 64 KiB through redactor and filter, in ms.
    pub output_p99_ms: f64,
    /// Highest resident memory of the process during the clean pass above that before, in MiB.
    pub memory_mib: f64,
}

impl Speed {
    fn worst(&self) -> Option<&Adversary> {
        self.adversaries
            .iter()
            .max_by(|a, b| a.ns_per_byte.total_cmp(&b.ns_per_byte))
    }

    pub(super) fn gates(&self) -> Vec<Gate> {
        let clean_ns = 1e3 / self.clean_mb_s;
        let faster = self.alternation_mb_s.max(self.many_mb_s);
        let worst = self
            .worst()
            .map_or((0.0, ""), |a| (a.ns_per_byte / clean_ns, a.name));
        let ratio = |a: f64, b: f64| a / b;
        vec![
            Gate {
                goal: "speed on clean logs against memchr",
                bound: "at least 1/25 of a newline pass",
                measured: format!(
                    "1/{:.0} ({:.0} MB/s against {:.0})",
                    ratio(self.memchr_mb_s, self.clean_mb_s),
                    self.clean_mb_s,
                    self.memchr_mb_s
                ),
                met: ratio(self.memchr_mb_s, self.clean_mb_s) <= 25.0,
            },
            Gate {
                goal: "speed on clean logs against one search of the same rules",
                bound: "at least 2 times the faster of regex and regex-automata",
                measured: format!("{:.1} times", ratio(self.clean_mb_s, faster)),
                met: ratio(self.clean_mb_s, faster) >= 2.0,
            },
            Gate {
                goal: "speed on clean logs against one pass for each rule",
                bound: "at least 10 times",
                measured: format!("{:.1} times", ratio(self.clean_mb_s, self.separate_mb_s)),
                met: ratio(self.clean_mb_s, self.separate_mb_s) >= 10.0,
            },
            Gate {
                goal: "speed on dense logs against memchr",
                bound: "at least 1/60 of a newline pass",
                measured: format!("1/{:.0}", ratio(self.memchr_mb_s, self.dense_mb_s)),
                met: ratio(self.memchr_mb_s, self.dense_mb_s) <= 60.0,
            },
            Gate {
                goal: "worst text made to be slow",
                bound: "at most 8 times the time a byte of clean logs",
                measured: format!("{:.1} times ({})", worst.0, worst.1),
                met: worst.0 <= 8.0,
            },
            Gate {
                goal: "latency of one output of 64 KiB",
                bound: "99th percentile at most 5 ms (goal 1 ms)",
                measured: format!("{:.2} ms", self.output_p99_ms),
                met: self.output_p99_ms <= 5.0,
            },
            Gate {
                goal: "memory above idle",
                bound: "at most 16 MiB",
                measured: format!("{:.1} MiB", self.memory_mib),
                met: self.memory_mib <= 16.0,
            },
        ]
    }
}

/// Median of the rates of `pass` over `bytes` bytes, in MB/s.
#[allow(clippy::cast_precision_loss, reason = "sizes of a benchmark")]
fn rate(bytes: usize, mut pass: impl FnMut()) -> f64 {
    let mut rates: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            pass();
            bytes as f64 / 1e6 / begin.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(RUNS / 2).copied().unwrap_or(0.0)
}

#[allow(clippy::cast_precision_loss, reason = "sizes of a benchmark")]
pub(super) fn measure(scale: usize) -> Speed {
    let mut rng = Rng::new(91);
    let clean = log(&mut rng, 80_000 * scale);
    let dense = dense_log(&mut rng, 40_000 * scale);
    // Tables are built on the first use.
    black_box(redact(&clean[..2_000.min(clean.len())], &key()));
    let before = resident_kib("VmRSS:");
    let clean_mb_s = rate(clean.len(), || pass(&clean));
    // The text that is read and the one that is written are the caller's.
    let held = clean.len() as f64 / (1024.0 * 1024.0);
    let memory_mib = (resident_kib("VmHWM:") - before) / 1024.0 - held;
    let alternation = regex::Regex::new(&format!("(?:{})", RULES.join("|"))).ok();
    let separate: Vec<regex::Regex> = RULES
        .iter()
        .filter_map(|r| regex::Regex::new(r).ok())
        .collect();
    let many = meta::Regex::new_many(RULES).ok();
    // The comparisons are slow: a part of the text says as much.
    let part = &clean[..floor(&clean, clean.len() / 8)];
    Speed {
        clean_mb_s,
        dense_mb_s: rate(dense.len(), || pass(&dense)),
        memchr_mb_s: rate(clean.len(), || {
            black_box(memchr::memchr_iter(b'\n', black_box(clean.as_bytes())).count());
        }),
        alternation_mb_s: rate(part.len(), || {
            black_box(
                alternation
                    .as_ref()
                    .map(|r| r.find_iter(black_box(part)).count()),
            );
        }),
        many_mb_s: rate(part.len(), || {
            black_box(many.as_ref().map(|r| r.find_iter(black_box(part)).count()));
        }),
        separate_mb_s: rate(part.len(), || {
            for rule in &separate {
                black_box(rule.find_iter(black_box(part)).count());
            }
        }),
        adversaries: adversaries(scale),
        output_p99_ms: latency(&mut rng, scale),
        memory_mib: memory_mib.max(0.0),
    }
}

fn pass(text: &str) {
    let mut redactor = policies::redaction::Redactor::new(&key());
    for chunk in text.as_bytes().chunks(OUTPUT) {
        black_box(redactor.push(black_box(chunk)));
    }
    black_box(redactor.finish());
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[allow(clippy::cast_precision_loss, reason = "sizes of a benchmark")]
fn adversaries(scale: usize) -> Vec<Adversary> {
    let size = 2_000 * scale;
    let flood = |piece: &str| {
        let mut text = piece.repeat(size / piece.len().max(1));
        text.push('\n');
        text
    };
    let lines = |piece: &str| flood(&format!("{}\n", piece.repeat(200 / piece.len().max(1))));
    let texts: Vec<(&'static str, String)> = vec![
        ("`a@` in one line", flood("a@")),
        ("`a@` in lines", lines("a@")),
        ("digits in one line", flood(&format!("4{}", "1".repeat(15)))),
        (
            "digit groups in lines",
            lines(&format!("4{} ", "1".repeat(3))),
        ),
        ("`password=` in lines", lines("password=")),
        ("`://` in lines", lines("a://b:c@")),
        ("escapes in escapes", lines("\\\\u005cu0041")),
        ("percent in percent", lines("%2541%2542")),
        ("base64 of base64", lines("UVVGQlFVRkI=")),
        ("entities", lines("&#x41;&#66;")),
        ("key stems", lines("ghp_AKIAxoxb-")),
        ("begin lines", lines("-----BEGIN ")),
        ("invisible characters", lines("a\u{200b}b\u{ad}")),
        ("brackets", lines("\u{2039}\u{203a}")),
        ("open JSON", lines("{\"a\":[")),
        (
            "one token of up to 1 MiB",
            "x7".repeat(5_242 * scale.max(2)),
        ),
    ];
    texts
        .into_iter()
        .map(|(name, text)| {
            let (_, report) = redact(&text, &key());
            let mb_s = rate(text.len(), || {
                black_box(redact(black_box(&text), &key()));
            });
            Adversary {
                name,
                ns_per_byte: 1e3 / mb_s,
                work_per_byte: report.work_units as f64 / text.len() as f64,
            }
        })
        .collect()
}

/// One output of 64 KiB through redactor and filter.
fn latency(rng: &mut Rng, scale: usize) -> f64 {
    let mut times: Vec<f64> = (0..scale)
        .map(|_| {
            let text = log(rng, OUTPUT);
            let begin = Instant::now();
            black_box(policies::admit::text(black_box(&text), &key()));
            begin.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
        .get((times.len() * 99).div_ceil(100) - 1)
        .copied()
        .unwrap_or(0.0)
}

/// A size of this process from `/proc/self/status`, in KiB.
fn resident_kib(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix(name));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0.0)
}
