//! Ways in which collectors wrap a message (guardrails 2.1): what stands around a line, and how a
//! line is cut.

use super::{HEX, LOWER, Rng};

/// One way.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Name in reports.
    pub name: &'static str,
    /// True when the frame may cut a message at any place and so inside a value.
    pub cuts: bool,
    wrap: fn(&str, &mut Rng) -> String,
}

impl Frame {
    /// The message as lines that end with line feeds.
    #[must_use]
    pub fn wrap(&self, message: &str, rng: &mut Rng) -> String {
        (self.wrap)(message, rng)
    }
}

const fn frame(name: &'static str, cuts: bool, wrap: fn(&str, &mut Rng) -> String) -> Frame {
    Frame { name, cuts, wrap }
}

/// Every way.
pub const FRAMES: &[Frame] = &[
    frame("plain", false, |m, _| format!("{m}\n")),
    frame("iso", false, |m, rng| {
        prefixed(m, &format!("{} ERROR ", stamp(rng)))
    }),
    frame("syslog", false, |m, rng| {
        let pid = rng.between(100, 99_999);
        prefixed(
            m,
            &format!(
                "Nov  3 11:{:02}:{:02} web-1 app[{pid}]: ",
                rng.below(60),
                rng.below(60)
            ),
        )
    }),
    frame("syslog_5424", false, |m, rng| {
        prefixed(
            m,
            &format!(
                "<165>1 {} web-1 app {} ID47 - ",
                stamp(rng),
                rng.between(1, 999)
            ),
        )
    }),
    frame("klog", false, |m, rng| {
        prefixed(
            m,
            &format!(
                "E1103 11:05:{:02}.123456 {:>7} run.go:{}] ",
                rng.below(60),
                rng.between(1, 99_999),
                rng.between(1, 999)
            ),
        )
    }),
    frame("cri", false, |m, rng| {
        prefixed(m, &format!("{} stderr F ", stamp(rng)))
    }),
    frame("cri_partial", true, |m, rng| {
        let at = stamp(rng);
        pieces(m, 3, rng, |piece, last| {
            format!("{at} stdout {} {piece}\n", if last { "F" } else { "P" })
        })
    }),
    frame("docker_json", false, |m, rng| {
        let at = stamp(rng);
        let quoted = serde_json::Value::from(format!("{m}\n"));
        format!("{{\"log\":{quoted},\"stream\":\"stdout\",\"time\":\"{at}\"}}\n")
    }),
    frame("docker_json_partial", true, |m, rng| {
        let at = stamp(rng);
        pieces(m, 3, rng, |piece, last| {
            let quoted =
                serde_json::Value::from(format!("{piece}{}", if last { "\n" } else { "" }));
            format!("{{\"log\":{quoted},\"stream\":\"stdout\",\"time\":\"{at}\"}}\n")
        })
    }),
    frame("compose", false, |m, rng| {
        let service = rng.text(LOWER, 6);
        prefixed(m, &format!("{service}-1  | "))
    }),
    frame("colour", false, |m, rng| {
        prefixed(
            m,
            &format!("\u{1b}[2m{}\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m ", stamp(rng)),
        )
    }),
    frame("json_record", false, |m, rng| {
        let quoted = serde_json::Value::from(m);
        format!(
            "{{\"ts\":\"{}\",\"level\":\"error\",\"msg\":{quoted},\"line\":{}}}\n",
            stamp(rng),
            rng.below(900)
        )
    }),
    frame("json_in_json", false, |m, rng| {
        let inner = serde_json::json!({ "msg": m }).to_string();
        let quoted = serde_json::Value::from(inner);
        format!("{{\"at\":\"{}\",\"record\":{quoted}}}\n", stamp(rng))
    }),
    frame("journal_bytes", false, |m, rng| {
        let bytes: Vec<String> = m.bytes().map(|b| b.to_string()).collect();
        format!(
            "{{\"_PID\":\"{}\",\"MESSAGE\":[{}]}}\n",
            rng.between(1, 99_999),
            bytes.join(",")
        )
    }),
    frame("logfmt", false, |m, rng| {
        let quoted = serde_json::Value::from(m);
        format!(
            "time={} level=error msg={quoted} line={}\n",
            stamp(rng),
            rng.below(900)
        )
    }),
    frame("wrapped", true, |m, _| wrapped(m, 40)),
    frame("crlf", false, |m, _| {
        format!("{}\r\n", m.replace('\n', "\r\n"))
    }),
];

/// A time of the third of November 2026.
fn stamp(rng: &mut Rng) -> String {
    format!(
        "2026-11-03T{:02}:{:02}:{:02}.{}Z",
        rng.below(24),
        rng.below(60),
        rng.below(60),
        rng.between(100, 999)
    )
}

/// Every line of the message behind the same prefix.
fn prefixed(message: &str, prefix: &str) -> String {
    message
        .lines()
        .map(|line| format!("{prefix}{line}\n"))
        .collect()
}

/// The message cut into at most `count` pieces; each line of it ends with a last piece.
fn pieces(
    message: &str,
    count: usize,
    rng: &mut Rng,
    write: impl Fn(&str, bool) -> String,
) -> String {
    let mut out = String::new();
    for line in message.lines() {
        let mut rest = line;
        for _ in 1..count {
            let mut at = rng.below(rest.len().saturating_add(1));
            while !rest.is_char_boundary(at) {
                at -= 1;
            }
            let (piece, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
            if !piece.is_empty() && !tail.is_empty() {
                out.push_str(&write(piece, false));
                rest = tail;
            }
        }
        out.push_str(&write(rest, true));
    }
    out
}

/// Lines of a terminal of `width` columns: the next row goes on without a mark. What stands before
/// makes the width plain.
fn wrapped(message: &str, width: usize) -> String {
    let mut out = String::new();
    for line in message.lines() {
        let letters: Vec<char> = line.chars().collect();
        for row in letters.chunks(width) {
            out.extend(row);
            out.push('\n');
        }
    }
    out
}

/// Twelve hexadecimal digits, as a container's name ends.
pub(super) fn container(rng: &mut Rng) -> String {
    rng.text(HEX, 12)
}
