//! The faults: each breaks the shop for real, by something that happens to real shops.

use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::layout::Layout;
use super::load::Load;
use super::release;
use super::unit::{Unit, wall_now};

/// The innocent deploy comes this long before the other one.
const INNOCENT_LEAD: Duration = Duration::from_secs(12);
/// How long the host of inventory stalls.
const STALL: Duration = Duration::from_millis(2600);
/// Demand of the day when the pool is too small, in percent of the usual.
const GROWN_DEMAND: u32 = 175;

/// A way to break the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A release of checkout fails on a path that its difference touches.
    BadDeploy,
    /// Demand has grown, the pool of checkout is too small for it.
    PoolExhausted,
    /// Payments keeps every statement, reaches its memory limit and is killed.
    DependencyDown,
    /// The journal of inventory fills its disk.
    DiskFull,
    /// Inventory stalls for a moment and goes on.
    HealthyNoise,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 5] = [
        Self::BadDeploy,
        Self::PoolExhausted,
        Self::DependencyDown,
        Self::DiskFull,
        Self::HealthyNoise,
    ];

    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BadDeploy => "bad-deploy",
            Self::PoolExhausted => "pool-exhausted",
            Self::DependencyDown => "dependency-down",
            Self::DiskFull => "disk-full",
            Self::HealthyNoise => "healthy-noise",
        }
    }
}

impl FromStr for Fault {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Self> {
        let names = Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|fault| fault.name() == name)
            .with_context(|| format!("no fault `{name}`: one of {names}"))
    }
}

/// A fault that has been started and not healed.
pub(super) struct Active {
    /// Which one.
    pub(super) fault: Fault,
    /// Since when, ms since the epoch.
    pub(super) since_ms: i64,
    since: Instant,
    step: u8,
}

impl Active {
    /// Starts a fault.
    #[must_use]
    pub(super) fn new(fault: Fault) -> Self {
        Self {
            fault,
            since_ms: wall_now().0,
            since: Instant::now(),
            step: 0,
        }
    }

    /// Does what is due. `fell` names the service whose process has just been killed at its
    /// memory limit.
    ///
    /// # Errors
    /// When a release cannot be written.
    pub(super) fn tick(
        &mut self,
        layout: &Layout,
        load: &Load,
        units: &[Unit],
        fell: Option<&str>,
    ) -> anyhow::Result<()> {
        let age = self.since.elapsed();
        match (self.fault, self.step) {
            (Fault::BadDeploy, 0) => {
                release::deploy(layout, &release::INVENTORY_NEXT, wall_now())?;
                self.step = 1;
            }
            (Fault::BadDeploy, 1) if age >= INNOCENT_LEAD => {
                release::deploy(layout, &release::CHECKOUT_NEXT, wall_now())?;
                self.step = 2;
            }
            (Fault::PoolExhausted, 0) => {
                load.demand_percent.store(GROWN_DEMAND, Ordering::Relaxed);
                self.step = 1;
            }
            (Fault::DependencyDown, 0) => {
                load.print_statements.store(true, Ordering::Relaxed);
                self.step = 1;
            }
            // The back office gives up when its printer's service is gone: what was asked for
            // once is over, and a process that starts anew has to keep none of it.
            (Fault::DependencyDown, 1) if fell == Some("payments") => {
                load.print_statements.store(false, Ordering::Relaxed);
                self.step = 2;
            }
            (Fault::DiskFull, 0) => {
                load.send_counts.store(true, Ordering::Relaxed);
                self.step = 1;
            }
            (Fault::HealthyNoise, 0) => {
                stall(units, "inventory", true);
                self.step = 1;
            }
            (Fault::HealthyNoise, 1) if age >= STALL => {
                stall(units, "inventory", false);
                self.step = 2;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Takes every trigger away. What a fault has left behind is repaired by the caller.
pub(super) fn calm(load: &Load, units: &[Unit]) {
    load.demand_percent.store(100, Ordering::Relaxed);
    load.print_statements.store(false, Ordering::Relaxed);
    load.send_counts.store(false, Ordering::Relaxed);
    stall(units, "inventory", false);
}

fn stall(units: &[Unit], service: &str, stalled: bool) {
    for unit in units.iter().filter(|unit| unit.service == service) {
        unit.stall(stalled);
    }
}
