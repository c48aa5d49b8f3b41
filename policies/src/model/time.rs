//! Time as an argument.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch, UTC. The only time type that crosses a crate border.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// This instant plus `ms` milliseconds, saturating.
    #[must_use]
    pub const fn plus(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to `self`; negative when `self` comes first. Saturating.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// RFC 3339 in UTC with exactly three decimals, for example `2026-01-31T08:00:00.250Z`.
    ///
    /// An instant outside the years that RFC 3339 can spell is shown as its number of ms.
    #[must_use]
    pub fn rfc3339(self) -> String {
        jiff::Timestamp::from_millisecond(self.0)
            .map_or_else(|_| self.0.to_string(), |t| format!("{t:.3}"))
    }

    /// Reads an RFC 3339 time of any offset, cut to milliseconds; `None` when it is not one.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|t| Self(t.as_millisecond()))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::Millis;

    #[test]
    fn a_time_is_spelled_with_exactly_three_decimals_and_read_back() {
        let t = Millis(1_780_000_000_000);
        assert_eq!(t.rfc3339(), "2026-05-28T20:26:40.000Z");
        assert_eq!(Millis::parse_rfc3339("2026-05-28T22:26:40+02:00"), Some(t));
        assert_eq!(Millis::parse_rfc3339("yesterday"), None);
    }
}
