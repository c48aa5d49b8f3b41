//! What becomes of an alert, given what is known about its key (protocols.md 4.1.7 to 4.1.10).

use crate::model::{Alert, AlertStatus, Millis};

/// A re-fire within this time after the resolve reopens the episode.
const FLAP_WINDOW_MS: i64 = 10 * 60 * 1000;

/// One firing-to-resolved span of one dedup key, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    /// True while it fires.
    pub open: bool,
    /// End of the last firing; `None` while open.
    pub ended_at: Option<Millis>,
    /// True while its incident is open. Nobody looks at a closed one again.
    pub incident_open: bool,
}

/// What is known when an alert comes in.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The last episode of its key.
    pub episode: Option<&'a Episode>,
    /// True when an open incident is there for it to join.
    pub joins: bool,
    /// Alert names that open nothing.
    pub heartbeats: &'a [String],
}

/// What becomes of it. The word is stored with the alert and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A heartbeat: noted, opens nothing.
    Heartbeat,
    /// Its episode is open already: only the time it was last seen changes.
    Duplicate,
    /// Closes its episode.
    Resolves,
    /// Resolves something that is not open: recorded, opens nothing.
    ResolvedUnknown,
    /// Older than the recorded end: an out-of-order delivery, ignored and counted.
    Stale,
    /// Fires again soon after its end, its incident still open: the episode reopens there.
    Reopens,
    /// A new episode that joins an open incident.
    Joins,
    /// A new episode that opens an incident.
    Opens,
}

impl Fate {
    /// The stable word for the fate.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Heartbeat => "heartbeat",
            Self::Duplicate => "duplicate",
            Self::Resolves => "resolved",
            Self::ResolvedUnknown => "resolved_unknown",
            Self::Stale => "stale",
            Self::Reopens => "reopened",
            Self::Joins => "grouped",
            Self::Opens => "opened",
        }
    }
}

/// Decides what becomes of `alert`.
#[must_use]
pub fn judge(alert: &Alert, known: Known<'_>) -> Fate {
    if known.heartbeats.contains(&alert.name) {
        return Fate::Heartbeat;
    }
    match (alert.status, known.episode) {
        (AlertStatus::Resolved, Some(e)) if e.open => Fate::Resolves,
        (AlertStatus::Resolved, Some(_) | None) => Fate::ResolvedUnknown,
        (AlertStatus::Firing, Some(e)) if e.open => Fate::Duplicate,
        (AlertStatus::Firing, Some(e)) if e.ended_at.is_some_and(|end| alert.starts_at <= end) => {
            Fate::Stale
        }
        (AlertStatus::Firing, Some(e)) if e.incident_open && flaps(alert, e) => Fate::Reopens,
        (AlertStatus::Firing, Some(_) | None) if known.joins => Fate::Joins,
        (AlertStatus::Firing, Some(_) | None) => Fate::Opens,
    }
}

/// True when `alert` comes within the flap window after the end of `episode`.
fn flaps(alert: &Alert, episode: &Episode) -> bool {
    episode
        .ended_at
        .is_some_and(|end| alert.received_at.since(end) <= FLAP_WINDOW_MS)
}

/// True when `new_episodes` of one body, together with those of the last minute, are a storm: they
/// all become one incident of that kind.
#[must_use]
pub const fn is_storm(new_episodes: usize, last_minute: usize, threshold: usize) -> bool {
    new_episodes.saturating_add(last_minute) > threshold
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Episode, Fate, Known, is_storm, judge};
    use crate::model::{Alert, AlertStatus, Millis, Severity};

    fn alert(status: AlertStatus, start: i64, received: i64) -> Alert {
        Alert {
            source: "a".into(),
            dedup_key: "k".into(),
            status,
            severity: Severity::Warning,
            name: "Slow".into(),
            service: "s".into(),
            environment: String::new(),
            starts_at: Millis(start),
            ends_at: None,
            received_at: Millis(received),
            summary: String::new(),
            description: String::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            group_key: String::new(),
            flags: vec![],
        }
    }

    fn fate(alert: &Alert, episode: Option<&Episode>, joins: bool) -> Fate {
        judge(
            alert,
            Known {
                episode,
                joins,
                heartbeats: &["Watchdog".into()],
            },
        )
    }

    const OPEN: Episode = Episode {
        open: true,
        ended_at: None,
        incident_open: true,
    };

    /// An episode that ended at 1,000 ms.
    const fn ended(incident_open: bool) -> Episode {
        Episode {
            open: false,
            ended_at: Some(Millis(1_000)),
            incident_open,
        }
    }

    #[test]
    fn an_open_episode_makes_every_repeat_a_duplicate_whatever_its_start() {
        let open = OPEN;
        for start in [0, 5, 1_000_000] {
            let a = alert(AlertStatus::Firing, start, 10);
            assert_eq!(fate(&a, Some(&open), true), Fate::Duplicate);
        }
    }

    #[test]
    fn a_refire_reopens_within_ten_minutes_and_is_new_afterwards() {
        let closed = ended(true);
        let soon = alert(AlertStatus::Firing, 2_000, 1_000 + 600_000);
        let late = alert(AlertStatus::Firing, 2_000, 1_001 + 600_000);
        assert_eq!(fate(&soon, Some(&closed), false), Fate::Reopens);
        assert_eq!(fate(&late, Some(&closed), false), Fate::Opens);
    }

    #[test]
    fn a_refire_after_its_incident_closed_opens_or_joins_another() {
        let closed = ended(false);
        let soon = alert(AlertStatus::Firing, 2_000, 3_000);
        assert_eq!(fate(&soon, Some(&closed), false), Fate::Opens);
        assert_eq!(fate(&soon, Some(&closed), true), Fate::Joins);
    }

    #[test]
    fn a_firing_alert_that_is_older_than_its_end_is_stale() {
        let closed = ended(true);
        assert_eq!(
            fate(
                &alert(AlertStatus::Firing, 1_000, 2_000),
                Some(&closed),
                false
            ),
            Fate::Stale
        );
    }

    #[test]
    fn resolved_closes_what_is_open_and_opens_nothing() {
        let open = OPEN;
        let a = alert(AlertStatus::Resolved, 0, 10);
        assert_eq!(fate(&a, Some(&open), false), Fate::Resolves);
        assert_eq!(fate(&a, None, false), Fate::ResolvedUnknown);
    }

    #[test]
    fn a_heartbeat_opens_nothing_and_a_group_is_joined() {
        let mut a = alert(AlertStatus::Firing, 0, 10);
        assert_eq!(fate(&a, None, true), Fate::Joins);
        assert_eq!(fate(&a, None, false), Fate::Opens);
        a.name = "Watchdog".into();
        assert_eq!(fate(&a, None, false), Fate::Heartbeat);
    }

    #[test]
    fn more_new_episodes_than_the_threshold_are_a_storm() {
        assert!(!is_storm(100, 0, 100));
        assert!(is_storm(101, 0, 100));
        assert!(is_storm(1, 100, 100));
    }
}
