//! The scraper: pages of metrics, read every few seconds into a ring (protocols.md 5).
//!
//! Core dials the targets and passes the connections to one worker that lives as long as the
//! scraper; the worker speaks HTTP on them and can open nothing itself. A worker that dies or hangs
//! costs one round.

mod fetch;
mod ring;
mod text;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use policies::model::{Millis, Sample};

use crate::jobs::wire::Job;
use crate::jobs::{Clock, MAX_FDS, Spawner, Worker, dial};
use crate::tools::ScrapeTarget;

pub(crate) use fetch::{PageAnswer, Round, RoundAnswer, serve};
pub use ring::MetricsRing;
pub use text::{Page, parse};

/// How long a target has to take a connection. It is on the box or on its network.
const DIAL: Duration = Duration::from_millis(500);
/// How long a round of pages may take in the worker.
const ROUND: Duration = Duration::from_secs(2);
/// Most bytes of one page (protocols.md 5.2).
const MAX_PAGE: usize = 8 << 20;
/// Most bytes of the answer to one round.
const MAX_ANSWER: usize = 64 << 20;

/// Told of each page that was read, on the scraper's thread.
pub type OnScrape = Box<dyn Fn(&ScrapeTarget, Millis, &[Sample]) + Send>;

/// What a scraper works with.
pub struct ScraperOptions {
    /// Starts its worker.
    pub spawner: Spawner,
    /// The time.
    pub clock: Clock,
    /// Interval.
    pub every: Duration,
    /// The pages; more than 64 are scraped in several rounds.
    pub targets: Vec<ScrapeTarget>,
    /// Where points go.
    pub ring: Arc<MetricsRing>,
    /// Where pages go besides, to be kept over a restart.
    pub on_scrape: OnScrape,
}

/// A running scraper. Dropping it ends its thread and its worker.
#[derive(Debug)]
pub struct Scraper {
    _stop: Sender<()>,
}

impl Scraper {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the kernel has no thread left.
    pub fn start(options: ScraperOptions) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        std::thread::Builder::new()
            .name("scraper".to_owned())
            .spawn(move || run(&options, &stopped))?;
        Ok(Self { _stop: stop })
    }
}

fn run(options: &ScraperOptions, stopped: &mpsc::Receiver<()>) {
    let mut worker = None;
    let mut next = Instant::now();
    loop {
        for targets in options.targets.chunks(MAX_FDS) {
            scrape(options, targets, &mut worker);
        }
        next += options.every;
        let now = Instant::now();
        if next < now {
            // Late rounds are not made up for: their points would all carry the same time.
            next = now;
        }
        match stopped.recv_timeout(next - now) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn scrape(options: &ScraperOptions, targets: &[ScrapeTarget], worker: &mut Option<Worker>) {
    let at = (options.clock)();
    let mut reached = Vec::new();
    let mut connections = Vec::new();
    for target in targets {
        match dial::dial(target.address, DIAL) {
            Ok(connection) => {
                reached.push(target);
                connections.push(connection);
            }
            Err(_) => options.ring.missed(target, at),
        }
    }
    if reached.is_empty() {
        return;
    }
    let round = Round::of(&reached, ROUND, MAX_PAGE);
    let fds: Vec<_> = connections.iter().map(AsFd::as_fd).collect();
    let pages = match exchange(&options.spawner, worker, &round, &fds) {
        Some(answer) if answer.pages.len() == reached.len() => answer.pages,
        _ => {
            // Dead, hanging or confused: the next round gets a fresh one.
            *worker = None;
            vec![PageAnswer::Failed; reached.len()]
        }
    };
    for (target, page) in reached.into_iter().zip(pages) {
        match page {
            PageAnswer::Read { samples, .. } => {
                options.ring.push(target, at, &samples);
                (options.on_scrape)(target, at, &samples);
            }
            PageAnswer::Failed => options.ring.missed(target, at),
        }
    }
}

fn exchange(
    spawner: &Spawner,
    worker: &mut Option<Worker>,
    round: &Round,
    fds: &[std::os::fd::BorrowedFd<'_>],
) -> Option<RoundAnswer> {
    if worker.is_none() {
        let mut fresh = spawner.worker(None).ok()?;
        fresh.channel.send(&Job::Scrape).ok()?;
        *worker = Some(fresh);
    }
    let channel = &mut worker.as_mut()?.channel;
    channel.send_with_fds(round, fds).ok()?;
    let deadline = Instant::now() + ROUND + Duration::from_secs(1);
    channel.recv(MAX_ANSWER, Some(deadline)).ok()
}
