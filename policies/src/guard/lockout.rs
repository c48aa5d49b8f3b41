//! The delay after failed tries (console 4.2), as arithmetic: of passwords at a login, and of
//! one-time codes wherever one is asked for.

use crate::model::Millis;

/// Failures before the first delay.
const FREE: u32 = 5;
/// The first delay.
const FIRST_MS: i64 = 30_000;
/// The longest delay.
const LONGEST_MS: i64 = 15 * 60_000;

/// Until when no try is taken, after `failures` in a row of which the last was at `last`.
#[must_use]
pub fn locked_until(failures: u32, last: Millis) -> Option<Millis> {
    let beyond = failures.checked_sub(FREE)?;
    let delay = FIRST_MS
        .saturating_mul(1_i64 << beyond.min(16))
        .min(LONGEST_MS);
    Some(last.plus(delay))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_starts_at_the_fifth_failure_and_doubles_to_fifteen_minutes() {
        let last = Millis(1_000);
        let delay = |failures| locked_until(failures, last).map(|until| until.since(last));
        assert_eq!(delay(4), None);
        assert_eq!(delay(5), Some(30_000));
        assert_eq!(delay(6), Some(60_000));
        assert_eq!(delay(9), Some(480_000));
        assert_eq!(delay(10), Some(900_000));
        assert_eq!(delay(u32::MAX), Some(900_000));
    }
}
