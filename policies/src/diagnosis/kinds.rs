//! What a series measures, inferred from the words of its name, its labels and its shape (D17).

use crate::model::Series;

/// The words of a metric name.
pub(super) fn words(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_ascii_lowercase)
        .collect()
}

const STATUS_LABELS: &[&str] = &[
    "code",
    "status",
    "status_code",
    "http_status",
    "http_status_code",
    "http_response_status_code",
    "grpc_code",
    "grpc_status",
    "result",
    "outcome",
];

const PEER_LABELS: &[&str] = &[
    "peer",
    "peer_service",
    "upstream",
    "destination",
    "destination_service",
    "callee",
    "dependency",
    "remote",
    "backend",
    "server_address",
];

const VERSION_LABELS: &[&str] = &[
    "version",
    "release",
    "app_version",
    "build_version",
    "revision",
];

fn label<'a>(series: &'a Series, names: &[&str]) -> Option<&'a str> {
    names
        .iter()
        .find_map(|name| series.labels.get(*name).map(String::as_str))
}

/// The status that requests of this series ended with.
pub(super) fn status(series: &Series) -> Option<&str> {
    label(series, STATUS_LABELS)
}

/// The other side of the calls that this series counts.
pub(super) fn peer(series: &Series) -> Option<&str> {
    label(series, PEER_LABELS)
}

/// The version that a build-information gauge names.
pub(super) fn version(series: &Series) -> Option<&str> {
    let flag = series.points.last().is_some_and(|p| p.1 == 1.0);
    if flag && !is_counter(series) {
        label(series, VERSION_LABELS)
    } else {
        None
    }
}

/// The route of the requests, when a label tells it.
pub(super) fn route(series: &Series) -> Option<&str> {
    label(
        series,
        &[
            "route",
            "path",
            "endpoint",
            "handler",
            "uri",
            "method_name",
            "operation",
        ],
    )
}

/// True when a status means that the server side failed.
pub(super) fn is_failure(status: &str) -> bool {
    if let Ok(code) = status.parse::<u32>() {
        return (500..600).contains(&code);
    }
    let word = status.to_ascii_lowercase();
    matches!(
        word.as_str(),
        "5xx"
            | "error"
            | "err"
            | "failed"
            | "failure"
            | "timeout"
            | "unavailable"
            | "internal"
            | "unknown"
            | "deadline_exceeded"
            | "deadlineexceeded"
            | "refused"
            | "exception"
    )
}

/// True for a number that only grows.
pub(super) fn is_counter(series: &Series) -> bool {
    matches!(
        words(&series.name).last().map(String::as_str),
        Some("total" | "count" | "sum" | "bucket")
    )
}

/// True for a counter of requests that this service answered.
pub(super) fn is_served(series: &Series) -> bool {
    counts_events(series) && status(series).is_some() && peer(series).is_none()
}

/// True for a counter of calls that this service made.
pub(super) fn is_called(series: &Series) -> bool {
    counts_events(series) && status(series).is_some() && peer(series).is_some()
}

fn counts_events(series: &Series) -> bool {
    matches!(
        words(&series.name).last().map(String::as_str),
        Some("total" | "count")
    )
}

/// The two halves of a mean duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// Sum of durations.
    Sum,
    /// Number of them.
    Count,
}

/// The half of a duration that a series is, for requests that this service answered.
pub(super) fn duration(series: &Series) -> Option<Half> {
    let words = words(&series.name);
    let timed = words.iter().any(|w| {
        matches!(
            w.as_str(),
            "duration" | "latency" | "seconds" | "time" | "ms"
        )
    });
    if !timed || peer(series).is_some() {
        return None;
    }
    match words.last().map(String::as_str) {
        Some("sum") => Some(Half::Sum),
        Some("count") => Some(Half::Count),
        Some(_) | None => None,
    }
}

/// The unit of a duration in seconds, as far as the name tells it.
pub(super) fn seconds_of(series: &Series) -> Option<f64> {
    words(&series.name).iter().find_map(|w| match w.as_str() {
        "seconds" | "sec" | "s" => Some(1.0),
        "milliseconds" | "millis" | "ms" => Some(0.001),
        "microseconds" | "micros" | "us" => Some(0.000_001),
        _ => None,
    })
}

/// The part that a gauge plays for a limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// How much there is.
    Capacity,
    /// How much is taken.
    Used,
    /// How much is left.
    Free,
    /// How many wait for it.
    Waiting,
}

/// What kind of resource it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ResourceKind {
    /// Bytes of memory.
    Memory,
    /// Bytes of a disk.
    Disk,
    /// File descriptors.
    Descriptors,
    /// A counted pool: connections, threads, slots.
    Pool,
}

impl ResourceKind {
    /// The words for it.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk space",
            Self::Descriptors => "file descriptors",
            Self::Pool => "pool",
        }
    }
}

fn part_of(word: &str) -> Option<Part> {
    match word {
        "size" | "max" | "limit" | "capacity" | "maximum" | "quota" => Some(Part::Capacity),
        "use" | "used" | "active" | "busy" | "acquired" | "usage" | "current" | "resident"
        | "rss" | "working" | "open" | "allocated" => Some(Part::Used),
        "free" | "avail" | "available" | "idle" | "remaining" => Some(Part::Free),
        "waiting" | "waiters" | "pending" | "queued" | "blocked" => Some(Part::Waiting),
        _ => None,
    }
}

/// Words that say nothing about which resource it is.
const FILLERS: &[&str] = &["in", "bytes", "set", "spec", "number", "of", "num"];

/// The stem, kind and part of a gauge that measures a limited resource.
pub(super) fn resource(series: &Series) -> Option<(Vec<String>, ResourceKind, Part)> {
    if is_counter(series) {
        return None;
    }
    let words = words(&series.name);
    let part = words.iter().rev().find_map(|w| part_of(w))?;
    let stem: Vec<String> = words
        .iter()
        .filter(|w| part_of(w).is_none() && !FILLERS.contains(&w.as_str()))
        .cloned()
        .collect();
    let has = |names: &[&str]| words.iter().any(|w| names.contains(&w.as_str()));
    let kind = if has(&["disk", "filesystem", "fs", "volume", "storage"]) {
        ResourceKind::Disk
    } else if has(&["memory", "heap", "rss", "mem"]) {
        ResourceKind::Memory
    } else if has(&["fds", "descriptors"]) {
        ResourceKind::Descriptors
    } else if has(&["pool", "connections", "threads", "workers", "slots"]) {
        ResourceKind::Pool
    } else {
        return None;
    };
    Some((stem, kind, part))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Part, ResourceKind, is_failure, resource};
    use crate::model::Series;

    fn series(name: &str) -> Series {
        Series {
            name: name.to_owned(),
            service: "till".to_owned(),
            instance: "till-1".to_owned(),
            labels: BTreeMap::new(),
            points: Vec::new(),
        }
    }

    #[test]
    fn the_gauges_of_one_resource_share_a_stem() {
        let same = [
            ("sql_pool_size", "sql_pool_in_use", "sql_pool_waiting"),
            (
                "hikari_connections_max",
                "hikari_connections_active",
                "hikari_connections_pending",
            ),
        ];
        for (size, used, waiting) in same {
            let [size, used, waiting] =
                [size, used, waiting].map(|n| resource(&series(n)).unwrap());
            assert_eq!((&size.0, &size.0), (&used.0, &waiting.0));
            assert_eq!(
                [size.2, used.2, waiting.2],
                [Part::Capacity, Part::Used, Part::Waiting]
            );
        }
    }

    #[test]
    fn kinds_follow_from_words_and_units() {
        let kind = |name: &str| resource(&series(name)).map(|r| r.1);
        assert_eq!(
            kind("process_resident_memory_bytes"),
            Some(ResourceKind::Memory)
        );
        assert_eq!(
            kind("node_filesystem_avail_bytes"),
            Some(ResourceKind::Disk)
        );
        assert_eq!(kind("process_open_fds"), Some(ResourceKind::Descriptors));
        assert_eq!(kind("requests_total"), None);
        assert_eq!(kind("build_info"), None);
    }

    #[test]
    fn only_failures_of_the_server_side_count() {
        for (status, failed) in [
            ("200", false),
            ("404", false),
            ("503", true),
            ("timeout", true),
        ] {
            assert_eq!(is_failure(status), failed, "{status}");
        }
    }
}
