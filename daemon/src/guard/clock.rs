//! The guard's two clocks: the wall, and one that nobody can set.

use std::sync::Arc;

use policies::guard::Reading;
use policies::model::Millis;
use rustix::time::{ClockId, clock_gettime};

/// Reads the clocks. Tests give their own.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Reading + Send + Sync>);

impl Clock {
    /// The clocks of the machine.
    #[must_use]
    pub fn system() -> Self {
        Self::new(|| Reading {
            wall: Millis(milliseconds(ClockId::Realtime)),
            boot_ms: milliseconds(ClockId::Boottime),
        })
    }

    /// Clocks of the caller's own.
    #[must_use]
    pub fn new(read: impl Fn() -> Reading + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// One look.
    #[must_use]
    pub fn read(&self) -> Reading {
        (self.0)()
    }
}

fn milliseconds(id: ClockId) -> i64 {
    let time = clock_gettime(id);
    time.tv_sec
        .saturating_mul(1000)
        .saturating_add(time.tv_nsec / 1_000_000)
}
