//! The domain nouns that every other crate speaks in.
//!
//! Plain data without behaviour that decides: rules live in the modules beside this one.
//! Text in these types is *outside text* unless a type says otherwise; it becomes trustworthy
//! only by the conversions of `admit`.

mod alert;
mod class;
mod deploy;
mod id;
mod payload;
mod runbook;
mod time;

pub use alert::{Alert, AlertFlag, AlertStatus, Severity};
pub use class::{CauseClass, RemediationClass, UnknownClass};
pub use deploy::{Deploy, DeployHistory, DeployStatus, FileDiff, Hunk};
pub use id::{EvidenceId, IncidentId, InvalidId, Target};
pub use payload::{
    Edge, LogLine, LogSource, Payload, Point, RunbookSection, Sample, Series, UnitEvent, Window,
};
pub use runbook::{
    Comparison, Condition, FrontMatterError, Preconditions, Predicate, front_matter,
};
pub use time::Millis;
