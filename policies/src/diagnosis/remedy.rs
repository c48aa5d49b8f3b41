//! What would be done about a cause, within what this site can do.
//!
//! A class without an enabled executor is proposed as `escalate` with the class as advice
//! (benchmark.md 4.1). Versions come from deploy records, targets from the inventory and numbers
//! from measurements: text of telemetry never supplies a parameter (guard rails 8.3).

use std::collections::{BTreeMap, BTreeSet};

use super::kinds;
use super::resources::Resource;
use super::view::View;
use super::{ExecutorFact, ParamValue, Remedy};
use crate::model::{Deploy, RemediationClass};

/// Head room over what was wanted, in percent.
const HEADROOM: f64 = 1.25;
/// A number may at most double in one step; the interlocks hold the same line.
const STEP_FACTOR: i64 = 2;

/// Hand over to a person, with advice.
pub(super) fn advise(target: &str, advice: Option<RemediationClass>) -> Remedy {
    Remedy {
        class: RemediationClass::Escalate,
        target: target.to_owned(),
        change: BTreeMap::new(),
        advice,
    }
}

/// Leave everything as it is.
pub(super) fn nothing(target: &str) -> Remedy {
    Remedy {
        class: RemediationClass::NoAction,
        target: target.to_owned(),
        change: BTreeMap::new(),
        advice: None,
    }
}

/// Restart a service.
pub(super) fn restart(view: &View<'_>, service: &str) -> Remedy {
    let class = RemediationClass::Restart;
    if view.executor(class, service).is_none() {
        return advise(service, Some(class));
    }
    Remedy {
        class,
        target: service.to_owned(),
        change: BTreeMap::new(),
        advice: None,
    }
}

/// Put back what ran before a deploy. What runs now may be a later release: it is what is replaced.
pub(super) fn rollback(view: &View<'_>, deploy: &Deploy) -> Remedy {
    let class = RemediationClass::Rollback;
    let service = deploy.service.as_str();
    let Some(previous) = &deploy.previous_version else {
        return advise(service, Some(RemediationClass::RollForward));
    };
    if view.executor(class, service).is_none() {
        return advise(service, Some(class));
    }
    let from = view.in_force(service).unwrap_or(&deploy.version);
    let text = |value: &str| ParamValue::Text(value.to_owned());
    Remedy {
        class,
        target: service.to_owned(),
        change: BTreeMap::from([
            ("deploy".to_owned(), text(&deploy.id)),
            ("from".to_owned(), text(from)),
            ("to".to_owned(), text(previous)),
        ]),
        advice: None,
    }
}

/// Make a resource bigger, by what was wanted while it was used up and within the bounds.
pub(super) fn resize(view: &View<'_>, resource: &Resource<'_>) -> Remedy {
    let class = RemediationClass::Resize;
    let refuse = advise(resource.service, Some(class));
    let Some(executor) = setting(view, resource) else {
        return refuse;
    };
    let Some(key) = &executor.key else {
        return refuse;
    };
    let from = executor.current.or_else(|| whole(resource.capacity));
    let (Some(from), Some(wanted)) = (from, whole((resource.demand * HEADROOM).ceil())) else {
        return refuse;
    };
    let most = from.saturating_mul(STEP_FACTOR);
    let (min, max) = executor.bounds.unwrap_or((1, most));
    let to = wanted
        .max(from.saturating_add(1))
        .min(most)
        .clamp(min, max.max(min));
    if to <= from {
        return refuse;
    }
    Remedy {
        class,
        target: resource.service.to_owned(),
        change: BTreeMap::from([
            ("key".to_owned(), ParamValue::Text(key.clone())),
            ("from".to_owned(), ParamValue::Int(from)),
            ("to".to_owned(), ParamValue::Int(to)),
        ]),
        advice: None,
    }
}

/// The setting that sizes a resource: its words are among those of the resource's gauges.
fn setting<'v>(view: &'v View<'_>, resource: &Resource<'_>) -> Option<&'v ExecutorFact> {
    let stem: BTreeSet<&str> = resource.stem.iter().map(String::as_str).collect();
    view.capabilities
        .iter()
        .filter(|e| e.class == RemediationClass::Resize && e.target == resource.service)
        .filter_map(|e| {
            let words = kinds::words(e.key.as_deref()?);
            let shared = words.iter().filter(|w| stem.contains(w.as_str())).count();
            (shared > 0).then_some((shared, e))
        })
        .max_by_key(|(shared, _)| *shared)
        .map(|(_, executor)| executor)
}

fn whole(value: f64) -> Option<i64> {
    let fits = value.is_finite() && (1.0..1.0e9).contains(&value);
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    fits.then_some(value.round() as i64)
}
