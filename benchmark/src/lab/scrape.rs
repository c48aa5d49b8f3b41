//! The lab's own eyes: each second the metrics page of each instance, and ratios made from them.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::http::{self, Request};
use super::lock;

/// Pages are kept for this long.
const KEEP: Duration = Duration::from_secs(30);
/// A page that takes longer counts as not answered.
const TIMEOUT: Duration = Duration::from_millis(700);

/// Values of one page by series, for example `http_requests_total{route="/cart",code="200"}`.
pub(super) type Page = BTreeMap<String, f64>;

/// Reads a page of Prometheus text.
#[must_use]
pub(super) fn parse_page(text: &str) -> Page {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        })
        .collect()
}

struct Target {
    service: &'static str,
    instance: &'static str,
    pages: VecDeque<(Instant, Option<Page>)>,
}

/// The pages of the last seconds.
pub(super) struct Pages {
    targets: Mutex<Vec<Target>>,
}

impl Pages {
    /// No page yet.
    #[must_use]
    pub(super) fn new(instances: &[(&'static str, &'static str)]) -> Self {
        let target = |&(service, instance)| Target {
            service,
            instance,
            pages: VecDeque::new(),
        };
        Self {
            targets: Mutex::new(instances.iter().map(target).collect()),
        }
    }

    /// Keeps what an instance answered; `None` when it did not.
    pub(super) fn push(&self, instance: &str, at: Instant, page: Option<Page>) {
        let mut targets = lock(&self.targets);
        let Some(target) = targets.iter_mut().find(|t| t.instance == instance) else {
            return;
        };
        target.pages.push_back((at, page));
        while let Some((first, _)) = target.pages.front() {
            if at.saturating_duration_since(*first) <= KEEP {
                break;
            }
            target.pages.pop_front();
        }
    }

    /// How much the matching series of a service grew within the last `window`, and the longest
    /// time between two pages that were compared. A value that fell is a process that started
    /// anew and counts from zero.
    fn growth(
        &self,
        service: &str,
        window: Duration,
        now: Instant,
        matches: impl Fn(&str) -> bool,
    ) -> (f64, Duration) {
        let targets = lock(&self.targets);
        let mut sum = 0.0;
        let mut span = Duration::ZERO;
        for target in targets.iter().filter(|t| t.service == service) {
            let pages: Vec<(Instant, &Page)> = target
                .pages
                .iter()
                .filter(|(at, _)| now.saturating_duration_since(*at) <= window)
                .filter_map(|(at, page)| Some((*at, page.as_ref()?)))
                .collect();
            if let [(first, _), .., (last, _)] = pages.as_slice() {
                span = span.max(*last - *first);
            }
            for pair in pages.windows(2) {
                let [(_, before), (_, after)] = pair else {
                    continue;
                };
                for (series, value) in after.iter().filter(|(series, _)| matches(series)) {
                    let old = before.get(series).copied().unwrap_or(0.0);
                    sum += if *value >= old { value - old } else { *value };
                }
            }
        }
        (sum, span)
    }

    fn increase(
        &self,
        service: &str,
        window: Duration,
        now: Instant,
        matches: impl Fn(&str) -> bool,
    ) -> f64 {
        self.growth(service, window, now, matches).0
    }

    /// Part of the requests of a service that failed with 5xx within the last `window`;
    /// `None` without requests.
    #[must_use]
    pub(super) fn error_ratio(&self, service: &str, window: Duration, now: Instant) -> Option<f64> {
        let all = self.increase(service, window, now, |s| {
            s.starts_with("http_requests_total{")
        });
        let bad = self.increase(service, window, now, |s| {
            s.starts_with("http_requests_total{") && s.contains("code=\"5")
        });
        (all > 0.0).then(|| bad / all)
    }

    /// Requests a second within the last `window`.
    #[must_use]
    pub(super) fn request_rate(&self, service: &str, window: Duration, now: Instant) -> f64 {
        let requests = |s: &str| s.starts_with("http_requests_total{");
        let (all, span) = self.growth(service, window, now, requests);
        if span.is_zero() {
            0.0
        } else {
            all / span.as_secs_f64()
        }
    }

    /// Mean time of an answer within the last `window`, in seconds; `None` without requests.
    #[must_use]
    pub(super) fn mean_latency(
        &self,
        service: &str,
        window: Duration,
        now: Instant,
    ) -> Option<f64> {
        let sum = self.increase(service, window, now, |s| {
            s.starts_with("http_request_duration_seconds_sum{")
        });
        let count = self.increase(service, window, now, |s| {
            s.starts_with("http_request_duration_seconds_count{")
        });
        (count > 0.0).then(|| sum / count)
    }

    /// The newest value of a series without labels of an instance that answers.
    #[must_use]
    pub(super) fn latest(&self, instance: &str, series: &str) -> Option<f64> {
        let targets = lock(&self.targets);
        let target = targets.iter().find(|t| t.instance == instance)?;
        let (_, page) = target.pages.back()?;
        page.as_ref()?.get(series).copied()
    }

    /// True when the newest page of an instance was not answered.
    #[must_use]
    pub(super) fn is_down(&self, instance: &str) -> bool {
        let targets = lock(&self.targets);
        targets
            .iter()
            .find(|t| t.instance == instance)
            .and_then(|t| t.pages.back())
            .is_some_and(|(_, page)| page.is_none())
    }
}

/// Fetches one page.
#[must_use]
pub(super) fn fetch(address: SocketAddr) -> Option<Page> {
    let (code, body) = http::send(address, &Request::get("/metrics"), TIMEOUT).ok()?;
    (code == 200).then(|| parse_page(&String::from_utf8_lossy(&body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(good: f64, bad: f64) -> Option<Page> {
        Some(parse_page(&format!(
            "# a comment\nhttp_requests_total{{route=\"/a b\",code=\"200\"}} {good}\n\
             http_requests_total{{route=\"/a b\",code=\"503\"}} {bad}\n"
        )))
    }

    #[test]
    fn the_error_ratio_survives_a_restart_and_a_gap() {
        let pages = Pages::new(&[("shop", "shop-1")]);
        let start = Instant::now();
        let at = |s: u64| start + Duration::from_secs(s);
        pages.push("shop-1", at(0), page(100.0, 10.0));
        pages.push("shop-1", at(1), page(130.0, 20.0));
        pages.push("shop-1", at(2), None);
        assert!(pages.is_down("shop-1"));
        pages.push("shop-1", at(3), page(50.0, 10.0));
        let window = Duration::from_secs(5);
        assert_eq!(pages.error_ratio("shop", window, at(3)), Some(0.2));
        assert_eq!(pages.error_ratio("shop", window, at(20)), None);
        assert_eq!(pages.error_ratio("other", window, at(3)), None);
    }
}
