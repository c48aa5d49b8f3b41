//! From a webhook body to alerts, and from an alert to what becomes of it (protocols.md 4).
//!
//! Reading is lenient where the sender's format allows it and strict where a limit protects the
//! box. What happens to an alert is decided here, by a pure function of what is known about its
//! key; the transaction around it belongs to the store.

mod alertmanager;
mod fate;

pub use alertmanager::{Batch, Error, MAX_ALERTS, Rejected, parse_alertmanager};
pub use fate::{Episode, Fate, Known, is_storm, judge};
