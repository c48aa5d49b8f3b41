//! The customers: an open-loop load generator. It never waits for an answer before it sends the
//! next request, so a shop that slows down does not slow its customers down.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::http::{self, Request};
use super::lock;

/// Requests under way at once; more are not sent and counted as shed.
const IN_FLIGHT_MAX: usize = 256;
const TIMEOUT: Duration = Duration::from_secs(5);
const KEEP: Duration = Duration::from_secs(10);

/// What the generator may be told while it runs.
pub(super) struct Load {
    /// Ordinary demand in percent of the usual.
    pub(super) demand_percent: AtomicU32,
    /// The back office prints all statements of the month.
    pub(super) print_statements: AtomicBool,
    /// The warehouse sends its counts with all scans.
    pub(super) send_counts: AtomicBool,
    /// Ends the generator.
    pub(super) stop: AtomicBool,
    ports: Ports,
    in_flight: AtomicUsize,
    turn: AtomicUsize,
    results: Mutex<VecDeque<(Instant, bool)>>,
}

/// Ports of the shop's edge.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    /// Both instances of checkout.
    pub(super) checkout: [u16; 2],
    /// Payments.
    pub(super) payments: u16,
    /// Inventory.
    pub(super) inventory: u16,
}

#[derive(Clone, Copy)]
enum Stream {
    Orders,
    Carts,
    Stock,
    Statements,
    MonthStatements,
    Counts,
    CountsWithScans,
}

impl Stream {
    const ALL: [Self; 7] = [
        Self::Orders,
        Self::Carts,
        Self::Stock,
        Self::Statements,
        Self::MonthStatements,
        Self::Counts,
        Self::CountsWithScans,
    ];

    /// Requests a second, now.
    fn rate(self, load: &Load) -> f64 {
        let demand = f64::from(load.demand_percent.load(Ordering::Relaxed)) / 100.0;
        let when = |flag: &AtomicBool, rate| {
            if flag.load(Ordering::Relaxed) {
                rate
            } else {
                0.0
            }
        };
        match self {
            Self::Orders => 28.0 * demand,
            Self::Carts => 8.0 * demand,
            Self::Stock => 3.0 * demand,
            Self::Statements => 0.5,
            Self::Counts => 0.5,
            Self::MonthStatements => when(&load.print_statements, 10.0),
            Self::CountsWithScans => when(&load.send_counts, 6.0),
        }
    }
}

/// A small deterministic generator (xorshift): the lab needs variety, not randomness.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn pick(&mut self, words: &[&'static str]) -> &'static str {
        let index = usize::try_from(self.roll(words.len() as u64)).unwrap_or(0);
        words.get(index).copied().unwrap_or("")
    }
}

struct Message {
    ports: Vec<u16>,
    method: &'static str,
    path: &'static str,
    body: String,
}

impl Load {
    /// A generator that has not begun.
    #[must_use]
    pub(super) fn new(ports: Ports) -> Self {
        Self {
            demand_percent: AtomicU32::new(100),
            print_statements: AtomicBool::new(false),
            send_counts: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            ports,
            in_flight: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
            results: Mutex::new(VecDeque::new()),
        }
    }

    /// Part of the customers' requests of the last `window` that failed; `None` without requests.
    #[must_use]
    pub(super) fn failed_ratio(&self, window: Duration) -> Option<f64> {
        let now = Instant::now();
        let results = lock(&self.results);
        let recent = results
            .iter()
            .filter(|(at, _)| now.saturating_duration_since(*at) <= window);
        let (mut all, mut bad) = (0_u32, 0_u32);
        for (_, good) in recent {
            all += 1;
            bad += u32::from(!good);
        }
        (all > 0).then(|| f64::from(bad) / f64::from(all))
    }

    fn note(&self, good: bool) {
        let now = Instant::now();
        let mut results = lock(&self.results);
        results.push_back((now, good));
        while results
            .front()
            .is_some_and(|(at, _)| now.saturating_duration_since(*at) > KEEP)
        {
            results.pop_front();
        }
    }

    /// Both instances in turn; the other one is tried when the first refuses the connection.
    fn checkout(&self) -> Vec<u16> {
        let [first, second] = self.ports.checkout;
        if self.turn.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            vec![first, second]
        } else {
            vec![second, first]
        }
    }

    fn message(&self, stream: Stream, number: u64, dice: &mut Dice) -> Message {
        let (ports, method, path, body) = match stream {
            Stream::Orders => (self.checkout(), "POST", "/orders", order(number, dice)),
            Stream::Carts => (self.checkout(), "GET", "/cart", String::new()),
            Stream::Stock => (vec![self.ports.inventory], "GET", "/stock", String::new()),
            Stream::Statements => {
                let body = json!({"account": format!("a-{}", dice.roll(40)), "lines": 12});
                (
                    vec![self.ports.payments],
                    "POST",
                    "/statements",
                    body.to_string(),
                )
            }
            Stream::MonthStatements => {
                let body = json!({"account": format!("m-{number}"), "lines": 4500});
                (
                    vec![self.ports.payments],
                    "POST",
                    "/statements",
                    body.to_string(),
                )
            }
            Stream::Counts => {
                let body =
                    json!({"shelf": format!("s-{}", dice.roll(60)), "scans": ["4006381333931"]});
                (
                    vec![self.ports.inventory],
                    "POST",
                    "/counts",
                    body.to_string(),
                )
            }
            Stream::CountsWithScans => {
                let scans = vec!["4006381333931 4006381333948 4006381333955"; 9000];
                let body = json!({"shelf": format!("s-{}", dice.roll(60)), "scans": scans});
                (
                    vec![self.ports.inventory],
                    "POST",
                    "/counts",
                    body.to_string(),
                )
            }
        };
        Message {
            ports,
            method,
            path,
            body,
        }
    }

    fn send(self: &Arc<Self>, message: Message) {
        if self.in_flight.fetch_add(1, Ordering::Relaxed) >= IN_FLIGHT_MAX {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            self.note(false);
            return;
        }
        let load = Arc::clone(self);
        let work = move || {
            load.note(deliver(&message));
            load.in_flight.fetch_sub(1, Ordering::Relaxed);
        };
        let spawned = thread::Builder::new()
            .stack_size(256 * 1024)
            .spawn(work)
            .is_ok();
        if !spawned {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            self.note(false);
        }
    }

    /// Sends requests until it is told to stop.
    pub(super) fn run(self: &Arc<Self>) {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let start = Instant::now();
        let mut due = [start; Stream::ALL.len()];
        let mut number = 10_000;
        while !self.stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            for (stream, due) in Stream::ALL.into_iter().zip(due.iter_mut()) {
                let rate = stream.rate(self);
                if rate <= 0.0 {
                    *due = now;
                    continue;
                }
                while *due <= now {
                    number += 1;
                    self.send(self.message(stream, number, &mut dice));
                    let spread =
                        0.5 + f64::from(u32::try_from(dice.roll(1000)).unwrap_or(500)) / 1000.0;
                    *due += Duration::from_secs_f64(spread / rate);
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn order(number: u64, dice: &mut Dice) -> String {
    let sku = dice.pick(&["tea", "mug", "pot", "tin", "set"]);
    let name = dice.pick(&["anna.kovacs", "b.osei", "li.wei", "m.duarte", "sofia.lind"]);
    let gift = match dice.roll(20) {
        0..=7 => "ribbon",
        8..=10 => "paper",
        11 => "box",
        _ => "",
    };
    json!({
        "id": format!("o-{number}"),
        "customer": format!("{name}{}@example.org", dice.roll(90)),
        "items": [{"sku": sku, "count": 1 + dice.roll(3)}],
        "discount": dice.roll(3) * 5,
        "gift": gift,
    })
    .to_string()
}

/// True when some instance answered with a success.
fn deliver(message: &Message) -> bool {
    let request = Request {
        method: message.method,
        path: message.path,
        headers: "",
        body: message.body.as_bytes(),
    };
    for port in &message.ports {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
        match http::send(address, &request, TIMEOUT) {
            Ok((code, _)) => return code < 500,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
            Err(_) => return false,
        }
    }
    false
}
