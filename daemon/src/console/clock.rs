//! Times as the pages spell them (console 8): absolute in UTC, with the age beside it.

use policies::model::Millis;

/// `2026-01-31 08:00:00 UTC`.
#[must_use]
pub fn absolute(at: &Millis) -> String {
    let text = at.rfc3339();
    match (text.get(..10), text.get(11..19)) {
        (Some(day), Some(time)) if text.ends_with('Z') => format!("{day} {time} UTC"),
        _ => text,
    }
}

/// `08:00:00 UTC`, for a table whose day is said elsewhere.
#[must_use]
pub fn time_of_day(at: &Millis) -> String {
    let text = at.rfc3339();
    text.get(11..19)
        .map_or_else(|| text.clone(), |time| format!("{time} UTC"))
}

/// `42 s ago`, `in 9 min`, `now`.
#[must_use]
pub fn relative(at: &Millis, now: &Millis) -> String {
    let ms = now.since(*at);
    let words = span(ms.saturating_abs());
    match ms {
        ms if ms.saturating_abs() < 1_000 => "now".to_owned(),
        ms if ms > 0 => format!("{words} ago"),
        _ => format!("in {words}"),
    }
}

/// A length of time in its largest unit: `42 s`, `9 min`, `3 h`, `2 d`.
#[must_use]
pub fn span(ms: i64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_twice_once_for_the_record_and_once_for_the_reader() {
        let at = Millis(1_780_000_000_000);
        assert_eq!(absolute(&at), "2026-05-28 20:26:40 UTC");
        assert_eq!(time_of_day(&at), "20:26:40 UTC");
        assert_eq!(relative(&at, &at.plus(42_000)), "42 s ago");
        assert_eq!(relative(&at, &at.plus(-540_000)), "in 9 min");
        assert_eq!(relative(&at, &at.plus(300)), "now");
        assert_eq!(span(10_800_000), "3 h");
        assert_eq!(span(400_000_000), "4 d");
    }
}
