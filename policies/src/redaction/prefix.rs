//! What collectors and loggers put in front of a line.
//!
//! A prefix is a row of parts, each recognised by its class. Nothing here changes a text: the
//! length says where the line's own content begins.

use super::scan::{byte, run_end, slice};

/// The front of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    /// Where the content begins.
    pub(super) length: usize,
    /// A collector put it there: the content is a line of another program.
    pub(super) collector: bool,
    /// It has a time: a new record begins here.
    pub(super) stamped: bool,
    /// The runtime says that the line goes on in the next record.
    pub(super) partial: bool,
}

/// Longest row of parts.
const MAX_PARTS: usize = 8;

/// Reads the prefix of a line.
pub(super) fn of(line: &str) -> Prefix {
    let mut prefix = Prefix::default();
    for _ in 0..MAX_PARTS {
        if !part(line, &mut prefix) {
            break;
        }
    }
    prefix
}

/// Reads one more part.
fn part(line: &str, prefix: &mut Prefix) -> bool {
    let at = prefix.length;
    let next = match byte(line, at) {
        Some(0x1b) => ansi(line, at).map(|end| if at > 0 { blanks(line, end) } else { end }),
        Some(b'<') if at == 0 => header(line)
            .inspect(|_| prefix.stamped = true)
            .or_else(|| priority(line)),
        Some(b'0'..=b'9') => stamp(line, at).inspect(|&end| {
            prefix.stamped = true;
            runtime(line, end, prefix);
        }),
        Some(b'[' | b'(') => bracketed(line, at, prefix),
        Some(b'I' | b'W' | b'E' | b'F') if at == 0 => klog(line).inspect(|_| prefix.stamped = true),
        _ => None,
    };
    let next = next
        .map(|end| prefix.length.max(end))
        .or_else(|| bsd_stamp(line, at).inspect(|_| prefix.stamped = true))
        .or_else(|| piped(line, at).inspect(|_| prefix.collector = true))
        .or_else(|| {
            if prefix.stamped {
                tagged(line, at)
            } else {
                None
            }
        })
        .or_else(|| level(line, at));
    match next {
        Some(end) if end > at => {
            prefix.length = end;
            true
        }
        _ => false,
    }
}

const fn is_digit(b: u8) -> bool {
    b.is_ascii_digit()
}

fn blanks(line: &str, at: usize) -> usize {
    run_end(line, at, |b| b == b' ' || b == b'\t')
}

/// True when the bytes at `at` fit a pattern: `0` is any digit, others are themselves.
fn fits(line: &str, at: usize, pattern: &str) -> bool {
    let Some(bytes) = line.as_bytes().get(at..at + pattern.len()) else {
        return false;
    };
    bytes.iter().zip(pattern.bytes()).all(|(&b, p)| match p {
        b'0' => b.is_ascii_digit(),
        b'-' => matches!(b, b'-' | b'/' | b'.'),
        b'T' => matches!(b, b'T' | b' ' | b't' | b'_'),
        _ => b == p,
    })
}

/// A terminal control sequence.
fn ansi(line: &str, at: usize) -> Option<usize> {
    match byte(line, at + 1)? {
        b'[' => {
            let end = run_end(line, at + 2, |b| (b' '..=b'?').contains(&b));
            byte(line, end).map(|_| end + 1)
        }
        b']' => {
            let end = run_end(line, at + 2, |b| b >= b' ');
            byte(line, end).map(|_| end + 1)
        }
        _ => Some(at + 2),
    }
}

/// `<34>` and `<34>1 `.
fn priority(line: &str) -> Option<usize> {
    let digits = run_end(line, 1, is_digit);
    ((2..=4).contains(&digits) && byte(line, digits) == Some(b'>')).then(|| {
        let version = run_end(line, digits + 1, is_digit);
        if version > digits + 1 && byte(line, version) == Some(b' ') {
            version + 1
        } else {
            digits + 1
        }
    })
}

/// `<165>1 2026-01-31T08:00:00Z host app 7 ID47 - `, with or without structured data (RFC 5424).
fn header(line: &str) -> Option<usize> {
    let mut at = stamp(line, priority(line)?)?;
    for _ in 0..4 {
        let end = run_end(line, at, |b| b > b' ' && b < 0x7f);
        if end == at || end - at > 128 || byte(line, end) != Some(b' ') {
            return None;
        }
        at = end + 1;
    }
    match byte(line, at)? {
        b'-' => Some(blanks(line, at + 1)),
        b'[' => {
            let end = run_end(line, at, |b| b != b']');
            byte(line, end).map(|_| blanks(line, end + 1))
        }
        _ => None,
    }
}

/// Date and time, or a time alone; the blank behind it belongs to it.
fn stamp(line: &str, at: usize) -> Option<usize> {
    let time = if fits(line, at, "0000-00-00T00:00:00") {
        at + 19
    } else if fits(line, at, "00:00:00") {
        at + 8
    } else if fits(line, at, "0000000000.000") {
        // Seconds since the epoch with a fraction.
        at + 10
    } else {
        return None;
    };
    let fraction = match byte(line, time) {
        Some(b'.' | b',') => run_end(line, time + 1, is_digit),
        _ => time,
    };
    let zone = match byte(line, fraction) {
        Some(b'Z') => fraction + 1,
        Some(b'+' | b'-') => run_end(line, fraction + 1, |b| b.is_ascii_digit() || b == b':'),
        Some(b' ') if slice(line, fraction, fraction + 5) == " UTC " => fraction + 4,
        _ => fraction,
    };
    let colon = zone + usize::from(byte(line, zone) == Some(b':'));
    Some(blanks(line, colon))
}

/// `stdout F ` behind a time: the container runtime's own flags.
fn runtime(line: &str, at: usize, prefix: &mut Prefix) {
    let rest = slice(line, at, line.len());
    let Some(rest) = rest
        .strip_prefix("stdout ")
        .or_else(|| rest.strip_prefix("stderr "))
    else {
        return;
    };
    let (flags, _) = rest.split_once(' ').unwrap_or((rest.trim_end(), ""));
    let mut tags = flags.split(':');
    let (first, more) = (tags.next(), tags.next());
    if flags.len() <= 16 && matches!(first, Some("F" | "P")) {
        prefix.length = (at + "stdout ".len() + flags.len() + 1).min(line.len());
        prefix.collector = true;
        prefix.partial = first == Some("P");
        let _ = more;
    }
}

/// `[2026-01-31 08:00:00] `, `[pod/checkout-1/app] `, `[INFO] `.
fn bracketed(line: &str, at: usize, prefix: &mut Prefix) -> Option<usize> {
    let close = match byte(line, at)? {
        b'[' => b']',
        _ => b')',
    };
    let inner = at + 1;
    let end = run_end(line, inner, |b| b != close && b > 0x1f).min(inner + 96);
    if byte(line, end) != Some(close) {
        return None;
    }
    let text = slice(line, inner, end);
    let timed = stamp(line, inner).is_some_and(|e| e == end) || bsd_stamp(line, inner).is_some();
    let pod = text.starts_with("pod/") || text.starts_with("container/");
    let word = level(line, inner).is_some_and(|e| e >= end)
        || (prefix.stamped && !text.contains(['=', '"']) && text.len() <= 40);
    prefix.stamped |= timed;
    prefix.collector |= pod;
    (timed || pod || word).then(|| blanks(line, end + 1))
}

/// `Jan 31 08:00:00 `, `Sat Jan 31 08:00:00 2026 `.
fn bsd_stamp(line: &str, at: usize) -> Option<usize> {
    const MONTHS: &str = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";
    const DAYS: &str = "Mon Tue Wed Thu Fri Sat Sun";
    let word = slice(line, at, at + 3);
    if word.len() != 3
        || !word.bytes().all(|b| b.is_ascii_alphabetic())
        || byte(line, at + 3) != Some(b' ')
    {
        return None;
    }
    let month = if DAYS.contains(word) { at + 4 } else { at };
    if !MONTHS.contains(slice(line, month, month + 3)) {
        return None;
    }
    let day = blanks(line, month + 3);
    let time = blanks(line, run_end(line, day, is_digit));
    (day > month + 3 && fits(line, time, "00:00:00")).then(|| {
        let end = stamp(line, time).unwrap_or(time);
        if fits(line, end, "0000 ") {
            end + 5
        } else {
            end
        }
    })
}

/// `I0131 08:00:00.123456       1 controller.go:42] `.
fn klog(line: &str) -> Option<usize> {
    if !fits(line, 1, "0000 00:00:00.") {
        return None;
    }
    let end = line.find("] ").filter(|&n| n < 96)?;
    Some(end + 2)
}

/// `name  | `: compose, foreman and process managers.
fn piped(line: &str, at: usize) -> Option<usize> {
    let name = run_end(line, at, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b'|')
    });
    if name == at || name - at > 64 {
        return None;
    }
    let bar = blanks(line, name);
    (bar > name
        && bar - name <= 32
        && byte(line, bar) == Some(b'|')
        && matches!(byte(line, bar + 1), Some(b' ') | None))
    .then(|| (bar + 2).min(line.len()))
}

/// `host program[123]: ` behind a time.
fn tagged(line: &str, at: usize) -> Option<usize> {
    let word = |from: usize| {
        run_end(line, from, |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b'@')
        })
    };
    let tag = |from: usize| {
        let end = word(from);
        let end = if end > from && byte(line, end) == Some(b'[') {
            let digits = run_end(line, end + 1, |b| b.is_ascii_alphanumeric() || b == b'.');
            if byte(line, digits) != Some(b']') {
                return None;
            }
            digits + 1
        } else {
            return None;
        };
        (byte(line, end) == Some(b':')).then(|| blanks(line, end + 1))
    };
    let host = word(at);
    let host_end = (host > at && byte(line, host) == Some(b' ')).then_some(host + 1);
    tag(at).or_else(|| tag(host_end?))
}

/// A word of severity.
fn level(line: &str, at: usize) -> Option<usize> {
    const LEVELS: &[&str] = &[
        "TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "ERR", "CRITICAL", "FATAL",
        "PANIC",
    ];
    let end = run_end(line, at, |b| b.is_ascii_alphabetic());
    let word = slice(line, at, end);
    let known = word.len() <= 8 && LEVELS.iter().any(|l| word.eq_ignore_ascii_case(l));
    // In small letters the word is prose unless a colon follows.
    let marked = matches!(byte(line, end), Some(b':' | b']'));
    (known && (marked || word.bytes().all(|b| b.is_ascii_uppercase()))).then(|| {
        let colon = end + usize::from(byte(line, end) == Some(b':'));
        blanks(line, colon)
    })
}

#[cfg(test)]
mod tests {
    use super::of;

    #[track_caller]
    fn content(line: &str) -> &str {
        &line[of(line).length..]
    }

    #[test]
    fn every_class_of_prefix_is_recognised() {
        for front in [
            "2026-01-31T08:00:00.250Z ",
            "2026-01-31 08:00:00,250 ",
            "2026/01/31 08:00:00 ",
            "[2026-01-31T08:00:00+01:00] ",
            "Jan 31 08:00:00 host sshd[4711]: ",
            "<34>Jan 31 08:00:00 host app[1]: ",
            "<165>1 2026-01-31T08:00:00Z host app 283 ID47 - ",
            "<165>1 2026-01-31T08:00:00Z host app - - [a@1 b=\"c\"] ",
            "I0131 08:00:00.123456       1 controller.go:42] ",
            "2026-01-31T08:00:00.123456789Z stdout F ",
            "2026-01-31T08:00:00.123456789Z stderr P ",
            "web_1  | ",
            "checkout-1 | 2026-01-31T08:00:00Z INFO ",
            "[pod/checkout-1/app] ",
            "\u{1b}[32m",
            "\u{1b}[1;31mERROR\u{1b}[0m ",
            "08:00:00 web.1   | ",
            "2026-01-31T08:00:00Z ERROR ",
            "[main] INFO ",
        ] {
            let line = format!("{front}password: x");
            if front == "[main] INFO " {
                // A thread without a time before it is not told from text in brackets.
                assert_eq!(content(&line), line);
                continue;
            }
            assert_eq!(content(&line), "password: x", "{line}");
        }
    }

    #[test]
    fn a_line_without_a_prefix_is_all_content() {
        for line in [
            "hello world",
            "",
            "password=x",
            "1234",
            "{\"a\":1}",
            "at com.x.Y(Z.java:1)",
        ] {
            assert_eq!(content(line), line);
        }
    }

    #[test]
    fn the_partial_flag_of_the_runtime_is_read() {
        assert!(of("2026-01-31T08:00:00Z stdout P abc").partial);
        assert!(!of("2026-01-31T08:00:00Z stdout F abc").partial);
        assert!(of("2026-01-31T08:00:00Z stdout P:x abc").partial);
    }
}
