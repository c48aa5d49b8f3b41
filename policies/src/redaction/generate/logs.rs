//! Logs of many systems: clean ones, in which nothing may be found, and ones full of values.

use super::identifiers::{IDENTIFIERS, identifier};
use super::values::{KINDS, plant, word};
use super::{DIGITS, FRAMES, HEX, Rng};

/// At least `bytes` bytes of clean log lines.
#[must_use]
pub fn log(rng: &mut Rng, bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 512);
    while out.len() < bytes {
        line(rng, &mut out);
    }
    out
}

/// At least `bytes` bytes of log lines with one value in about 200 bytes.
#[must_use]
pub fn dense_log(rng: &mut Rng, bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 512);
    while out.len() < bytes {
        line(rng, &mut out);
        // A private key is longer than all else together and would be most of the text.
        let kind = rng.pick(KINDS);
        let kind = if kind == "privkey" { "email" } else { kind };
        let planted = plant(kind, rng).line();
        if let Some(frame) = FRAMES.get(rng.below(FRAMES.len())) {
            out.push_str(&frame.wrap(&planted, rng));
        }
    }
    out
}

fn line(rng: &mut Rng, out: &mut String) {
    let class = rng.pick(IDENTIFIERS);
    let id = identifier(class, rng);
    let (a, b) = (word(rng), word(rng));
    let (h, m, s) = (rng.below(24), rng.below(60), rng.below(60));
    let (n, ms) = (rng.between(1, 9999), rng.between(1, 99_999));
    let text = match rng.below(14) {
        0 => format!("Nov  3 {h:02}:{m:02}:{s:02} node-{n} kubelet[{ms}]: {a} {b} {id}\n"),
        1 => format!(
            "I1103 {h:02}:{m:02}:{s:02}.{:06} {n:>7} {a}.go:{n}] {a} {b} {id}\n",
            ms
        ),
        2 => format!("2026-11-03T{h:02}:{m:02}:{s:02}.{ms:09}Z stdout F {a} {b} {id} in {ms}ms\n"),
        3 => {
            let quoted = serde_json::Value::from(format!("{a} {b} {id}"));
            format!(
                "{{\"ts\":\"2026-11-03T{h:02}:{m:02}:{s:02}Z\",\"level\":\"info\",\"msg\":{quoted},\"n\":{n}}}\n"
            )
        }
        4 => format!(
            "time=2026-11-03T{h:02}:{m:02}:{s:02}Z level=warn msg=\"{a} {b}\" took={ms}us {id}\n"
        ),
        5 | 6 => format!(
            "10.0.{}.{} - - [03/Nov/2026:{h:02}:{m:02}:{s:02} +0000] \"GET /api/{a}/{n}?page={} HTTP/1.1\" {} {ms} \"-\" \"curl/8.5.0\"\n",
            rng.below(256),
            rng.below(256),
            rng.below(50),
            rng.between(200, 599)
        ),
        7 => format!(
            "java.lang.IllegalStateException: {a} {b}\n\tat com.example.{a}.Service.{b}(Service.java:{n})\n\tat java.base/java.lang.Thread.run(Thread.java:833)\n"
        ),
        8 => format!(
            "Traceback (most recent call last):\n  File \"/srv/app/{a}.py\", line {n}, in {b}\n    return {a}({b})\nValueError: {a} {b} {n}\n"
        ),
        9 => format!(
            "2026-11-03 {h:02}:{m:02}:{s:02}.{:03} UTC [{n}] LOG:  duration: {ms}.{} ms  statement: SELECT {a} FROM {b} WHERE id = $1\n",
            rng.below(1000),
            rng.text(DIGITS, 3)
        ),
        10 => format!(
            "{m}m{s}s  Normal  Pulled  pod/{a}-{}  Successfully pulled image {id}\n",
            rng.text(HEX, 10)
        ),
        11 => format!("Größe überschritten für Dienst {a}: Anzahl={n} – naïve façade, {id}\n"),
        12 => format!(
            "[{h:02}:{m:02}:{s:02}] INFO worker-{n} processed batch={n} items={ms} lag={}.{} {id}\n",
            rng.below(9),
            rng.below(99)
        ),
        _ => format!(
            "node-{n} kernel: [{ms}.{:06}] {a}: link becomes ready {id}\n",
            ms
        ),
    };
    out.push_str(&text);
}
