//! The Prometheus text format, read with limits.

use std::collections::BTreeMap;

use policies::model::Sample;

/// Most samples of one page (protocols.md 5).
const MAX_SAMPLES: usize = 5_000;
const MAX_LABELS: usize = 32;
const MAX_NAME: usize = 200;
const MAX_VALUE: usize = 1_024;

/// A page that was read.
#[derive(Debug, Default, PartialEq)]
pub struct Page {
    /// Its samples in their order, the finite ones: `NaN` and infinities say that there is no value.
    pub samples: Vec<Sample>,
    /// Lines that are not samples, or over a limit.
    pub skipped: usize,
}

/// Reads a page. Never fails: what is not understood is counted.
#[must_use]
pub fn parse(text: &str) -> Page {
    let mut page = Page::default();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match sample(line) {
            Some(sample) if page.samples.len() < MAX_SAMPLES => {
                if sample.value.is_finite() {
                    page.samples.push(sample);
                }
            }
            _ => page.skipped += 1,
        }
    }
    page
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = line.split_at_checked(end)?;
    if !metric_name(name) {
        return None;
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let mut words = rest.split_whitespace();
    let value = number(words.next()?)?;
    // A time stamp may follow; the time of the scrape is what counts here.
    if let Some(stamp) = words.next() {
        stamp.parse::<i64>().ok()?;
    }
    words.next().is_none().then(|| Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

fn number(word: &str) -> Option<f64> {
    match word {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ if word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
            word.parse().ok()
        }
        _ => None,
    }
}

fn metric_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b':')
}

/// Reads `name="value",...}` and answers what follows.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut out = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            return Some((out, after));
        }
        let (name, after) = rest.split_once('=')?;
        let name = name.trim();
        if !metric_name(name) || out.len() >= MAX_LABELS {
            return None;
        }
        let (value, after) = quoted(after.trim_start().strip_prefix('"')?)?;
        out.insert(name.to_owned(), value);
        rest = after.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                c @ ('"' | '\\') => value.push(c),
                _ => return None,
            },
            c => value.push(c),
        }
        if value.len() > MAX_VALUE {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_help_types_labels_escapes_and_time_stamps_is_read() {
        let page = parse(
            "# HELP http_requests_total Requests.\n# TYPE http_requests_total counter\n\
             http_requests_total{route=\"/pay\",code=\"500\"} 17\n\
             http_requests_total{ route = \"a\\\"b\\\\c\\nd,}\" , } 2.5e3 1700000000000\n\
             process_start_time_seconds 1.7e9\nbucket{le=\"+Inf\"} 3\n\nempty NaN\nmost +Inf\n",
        );
        assert_eq!(page.skipped, 0);
        let values: Vec<f64> = page.samples.iter().map(|s| s.value).collect();
        assert_eq!(values, [17.0, 2500.0, 1.7e9, 3.0]);
        assert_eq!(page.samples[0].labels["code"], "500");
        assert_eq!(page.samples[1].labels["route"], "a\"b\\c\nd,}");
    }

    #[test]
    fn what_is_no_sample_is_counted_and_not_taken() {
        for bad in [
            "x",
            "x y",
            "1x 2",
            "x{a=1} 2",
            "x{a=\"1} 2",
            "x{a=\"1\" 2",
            "x 1 2 3",
            "x{a=\"\\q\"} 1",
            "x infinity",
            "x nan",
            "x{=\"1\"} 2",
            "é 1",
        ] {
            let page = parse(bad);
            assert_eq!((page.samples.len(), page.skipped), (0, 1), "{bad}");
        }
    }

    #[test]
    fn samples_over_the_limit_are_left_out_and_counted() {
        let text: String = (0..MAX_SAMPLES + 7).map(|n| format!("m{n} 1\n")).collect();
        let page = parse(&text);
        assert_eq!((page.samples.len(), page.skipped), (MAX_SAMPLES, 7));
    }
}
