//! The guard's time: it never falls, so setting the clock makes nothing last longer (guard 9.1).

use crate::model::Millis;

/// How far the wall clock may lag before it is said aloud.
const LAG_MS: i64 = 2_000;

/// One look at the clocks of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Wall clock.
    pub wall: Millis,
    /// Milliseconds of a clock that only runs forward while the machine is up.
    pub boot_ms: i64,
}

/// Keeps `now` = max(wall, high-water mark, last `now` + what the boot clock says has passed).
#[derive(Clone, Debug)]
pub struct Timekeeper {
    now: Millis,
    boot_ms: i64,
    regressed: bool,
}

impl Timekeeper {
    /// Starts from the persisted high-water mark. A wall clock behind it is a regression: nothing
    /// is approved, issued or spent until the wall clock passes the mark (guard 9.1.2).
    #[must_use]
    pub fn start(high_water: Millis, reading: Reading) -> Self {
        Self {
            now: high_water.max(reading.wall),
            boot_ms: reading.boot_ms,
            regressed: reading.wall < high_water,
        }
    }

    /// The time of a request.
    pub fn now(&mut self, reading: Reading) -> Millis {
        let passed = reading.boot_ms.saturating_sub(self.boot_ms).max(0);
        let carried = self.now.plus(passed);
        self.boot_ms = self.boot_ms.max(reading.boot_ms);
        self.now = carried.max(reading.wall);
        if self.regressed && reading.wall >= carried {
            self.regressed = false;
        }
        self.now
    }

    /// True from a start behind the high-water mark until the wall clock has passed it.
    #[must_use]
    pub const fn is_regressed(&self) -> bool {
        self.regressed
    }

    /// True where the wall clock is more than two seconds behind.
    #[must_use]
    pub const fn lags(&self, reading: Reading) -> bool {
        self.now.since(reading.wall) > LAG_MS
    }
}

#[cfg(test)]
mod tests {
    use super::{Reading, Timekeeper};
    use crate::model::Millis;

    const fn at(wall: i64, boot_ms: i64) -> Reading {
        Reading {
            wall: Millis(wall),
            boot_ms,
        }
    }

    /// guard 9.1.1
    #[test]
    fn setting_the_clock_back_never_takes_time_back() {
        let mut keeper = Timekeeper::start(Millis(0), at(10_000, 0));
        assert_eq!(keeper.now(at(11_000, 1_000)), Millis(11_000));
        assert_eq!(keeper.now(at(1_000, 3_000)), Millis(13_000));
        assert!(keeper.lags(at(1_000, 3_000)));
        assert_eq!(keeper.now(at(20_000, 4_000)), Millis(20_000));
        assert!(!keeper.lags(at(20_000, 4_000)));
    }

    /// guard 9.1.2
    #[test]
    fn a_start_behind_the_high_water_mark_is_a_regression_until_the_wall_passes_it() {
        let mut keeper = Timekeeper::start(Millis(50_000), at(40_000, 0));
        assert!(keeper.is_regressed());
        assert_eq!(keeper.now(at(41_000, 1_000)), Millis(51_000));
        assert!(keeper.is_regressed());
        assert_eq!(keeper.now(at(53_000, 2_000)), Millis(53_000));
        assert!(!keeper.is_regressed());
    }
}
