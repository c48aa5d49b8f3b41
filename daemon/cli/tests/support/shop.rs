//! The patient: two services that exist as Prometheus pages, a log, a unit feed and a restart file.
//!
//! `front` takes orders and calls `ledger`. `ledger` was killed at its memory limit and stays down,
//! so three of four orders fail. When its restart file is written, it is up again and the pages say
//! so from that moment on. Every counter is a function of the time, so the past that the test writes
//! down and the pages that are scraped are one history.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use policies::model::{Millis, Sample, UnitEvent};

/// Orders a second.
const RATE: f64 = 20.0;
/// Share of orders that need the ledger.
const NEED: f64 = 0.75;
/// Memory limit of the ledger.
const LIMIT: f64 = 64e6;
/// How often somebody looks at the restart file.
const LOOK: Duration = Duration::from_millis(4);

/// Now.
pub(crate) fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Millis(i64::try_from(since.as_millis()).unwrap())
}

/// The instances, in the order of their listeners.
pub(crate) const INSTANCES: [(&str, &str); 2] = [("front", "front-1"), ("ledger", "ledger-1")];

struct State {
    begin: Millis,
    broke: Millis,
    /// When the ledger came back; `i64::MAX` until then.
    healed: AtomicI64,
    /// What the restart file held, one entry for each time that it was written.
    effects: Mutex<Vec<String>>,
    over: AtomicBool,
}

/// A running shop.
pub(crate) struct Shop {
    state: Arc<State>,
    addresses: Vec<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

impl Shop {
    /// Opens the pages and begins to watch the restart file of `folder`.
    pub(crate) fn open(folder: &Path) -> Self {
        let state = Arc::new(State {
            begin: now().plus(-90_000),
            broke: now().plus(-20_000),
            healed: AtomicI64::new(i64::MAX),
            effects: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let mut shop = Self {
            state,
            addresses: Vec::new(),
            threads: Vec::new(),
        };
        for (service, _) in INSTANCES {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            shop.addresses.push(listener.local_addr().unwrap());
            let state = Arc::clone(&shop.state);
            shop.threads.push(std::thread::spawn(move || {
                serve(&state, service, &listener)
            }));
        }
        let (state, folder) = (Arc::clone(&shop.state), folder.to_owned());
        shop.threads
            .push(std::thread::spawn(move || watch(&state, &folder)));
        shop
    }

    /// Address of a page.
    pub(crate) fn address(&self, index: usize) -> SocketAddr {
        self.addresses[index]
    }

    /// When the ledger went down.
    pub(crate) fn broke(&self) -> Millis {
        self.state.broke
    }

    /// When the shop began.
    pub(crate) fn begin(&self) -> Millis {
        self.state.begin
    }

    /// The identities of the capabilities that restarted the ledger, once for each restart.
    pub(crate) fn effects(&self) -> Vec<String> {
        self.state.effects.lock().unwrap().clone()
    }

    /// What a page says, or said, at an instant; `None` when nobody answers.
    pub(crate) fn samples(&self, service: &str, at: Millis) -> Option<Vec<Sample>> {
        samples(&self.state, service, at)
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::Relaxed);
        for address in &self.addresses {
            let _ = TcpStream::connect(address);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve(state: &State, service: &str, listener: &TcpListener) {
    for stream in listener.incoming() {
        if state.over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut stream) = stream else { continue };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
        let mut request = Vec::new();
        let mut piece = [0_u8; 1024];
        while !request.windows(4).any(|w| w == b"\r\n\r\n") {
            match stream.read(&mut piece) {
                Ok(n) if n > 0 => request.extend_from_slice(&piece[..n]),
                Ok(_) | Err(_) => break,
            }
        }
        // A service that is down closes the connection: nothing of it can be scraped.
        if let Some(samples) = samples(state, service, now()) {
            let body = page(&samples);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(body.as_bytes());
        }
    }
}

fn page(samples: &[Sample]) -> String {
    let mut out = String::new();
    for sample in samples {
        let labels: Vec<String> = sample
            .labels
            .iter()
            .map(|(k, v)| format!("{k}=\"{v}\""))
            .collect();
        out.push_str(&format!(
            "{}{{{}}} {}\n",
            sample.name,
            labels.join(","),
            sample.value
        ));
    }
    out
}

/// Counts every write of the restart file, and restarts the ledger at the first.
fn watch(state: &State, folder: &Path) {
    let path = folder.join("restart");
    let mut last = None;
    while !state.over.load(Ordering::Relaxed) {
        let seen = look(&path);
        if let Some((_, text)) = &seen
            && seen != last
        {
            state.effects.lock().unwrap().push(text.trim().to_owned());
            state.healed.fetch_min(now().0, Ordering::Relaxed);
            unit(folder, now(), "started", "active");
            last = seen;
        }
        std::thread::sleep(LOOK);
    }
}

/// The file that the name leads to, and what is in it: it is replaced as a whole.
fn look(path: &Path) -> Option<(u64, String)> {
    let mut file = std::fs::File::open(path).ok()?;
    let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().ok()?);
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Some((inode, text))
}

/// Writes an event of the ledger's unit down.
pub(crate) fn unit(folder: &Path, at: Millis, event: &str, state: &str) {
    let event = UnitEvent {
        at,
        service: "ledger".to_owned(),
        instance: "ledger-1".to_owned(),
        event: event.to_owned(),
        state: state.to_owned(),
        detail: String::new(),
    };
    append(
        &folder.join("units.jsonl"),
        &serde_json::to_string(&event).unwrap(),
    );
}

/// Adds a line to a file.
pub(crate) fn append(path: &Path, line: &str) {
    let mut file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    writeln!(file, "{line}").unwrap();
}

fn seconds(from: Millis, to: Millis) -> f64 {
    f64::from(i32::try_from(to.since(from).max(0)).unwrap()) / 1000.0
}

fn samples(state: &State, service: &str, at: Millis) -> Option<Vec<Sample>> {
    let healed = Millis(state.healed.load(Ordering::Relaxed));
    let mut out = Vec::new();
    let mut put = |name: &str, labels: &[(&str, &str)], value: f64| {
        let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
        out.push(Sample {
            name: name.to_owned(),
            labels: labels.iter().map(own).collect::<BTreeMap<_, _>>(),
            value,
        });
    };
    put("build_info", &[("version", "1.0.0")], 1.0);
    if service == "front" {
        let all = (RATE * seconds(state.begin, at)).floor();
        let down = seconds(state.broke, Millis(at.0.min(healed.0)));
        let bad = (RATE * NEED * down).floor();
        let route = ("route", "/orders");
        put("http_requests_total", &[route, ("code", "201")], all - bad);
        put("http_request_duration_seconds_sum", &[route], all * 0.03);
        put("http_request_duration_seconds_count", &[route], all);
        let calls = (RATE * NEED * seconds(state.begin, at)).floor();
        let peer = ("peer", "ledger");
        put(
            "upstream_requests_total",
            &[peer, ("code", "200")],
            calls - bad,
        );
        if bad > 0.0 {
            put("http_requests_total", &[route, ("code", "502")], bad);
            put("upstream_requests_total", &[peer, ("code", "error")], bad);
        }
        return Some(out);
    }
    if at >= state.broke && at < healed {
        return None;
    }
    let (since, memory) = if at >= healed {
        (healed, 24e6)
    } else {
        let grown = seconds(state.broke.plus(-12_000), at);
        (state.begin, (24e6 + 3.2e6 * grown).min(LIMIT))
    };
    let all = (RATE * NEED * seconds(since, at)).floor();
    put(
        "http_requests_total",
        &[("route", "/charge"), ("code", "200")],
        all,
    );
    put("process_memory_limit_bytes", &[], LIMIT);
    put("process_resident_memory_bytes", &[], memory);
    Some(out)
}
