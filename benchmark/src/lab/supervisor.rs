//! The process that runs a lab: units, customers, scrapes, alerts, faults, and its control socket.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver as Inbox, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::alerts::{self, Evaluator, Receiver};
use super::disk::{self, Disk};
use super::fault::{Active, calm};
use super::layout::{INSTANCES, Layout, SERVICES, relink, replace};
use super::load::{Load, Ports};
use super::scrape::{self, Pages};
use super::unit::{Unit, resident_bytes, wall_now};
use super::{LINE_MAX, State, UpOptions, bind_control, lock, note, release};

const TICK: Duration = Duration::from_millis(100);
const SCRAPE_EVERY: Duration = Duration::from_secs(1);
const COMMAND_TIMEOUT: Duration = Duration::from_secs(9);

/// What the threads share.
struct Shared {
    layout: Layout,
    pages: Pages,
    evaluator: Mutex<Evaluator>,
    load: Arc<Load>,
    targets: Vec<(&'static str, SocketAddr)>,
    receiver: Option<Receiver>,
    stop: AtomicBool,
}

impl Shared {
    /// True when every instance answered the last scrape.
    fn all_up(&self) -> bool {
        let started = "process_start_time_seconds";
        INSTANCES
            .iter()
            .all(|(_, instance)| self.pages.latest(instance, started).is_some())
    }
}

/// A command with the way back for its answer.
struct Command {
    body: Value,
    reply: Sender<Value>,
}

struct Supervisor {
    shared: Arc<Shared>,
    units: Vec<Unit>,
    active: Option<Active>,
    disk: Disk,
    started_at: i64,
    written: String,
}

/// Runs the lab in `dir` until it is told `down` or its directory is gone.
///
/// # Errors
/// When another supervisor runs there, or the shop cannot be started.
pub fn supervise(dir: &Path) -> anyhow::Result<()> {
    let layout = Layout::new(&dir.canonicalize()?);
    let guard = fs::File::create(layout.lock())?;
    guard
        .try_lock()
        .context("another supervisor runs this lab")?;
    let options: UpOptions = serde_json::from_str(&fs::read_to_string(layout.options())?)?;
    let mut supervisor = Supervisor::new(&layout, &options)?;
    let control = bind_control(&layout)?;
    let (outbox, inbox) = mpsc::channel();
    let threads = supervisor.threads(control, outbox);
    let last = supervisor.serve(&inbox);
    supervisor.end();
    if let Some(command) = last {
        answer(command, json!({"down": true}));
    }
    supervisor.shared.stop.store(true, Ordering::Relaxed);
    for thread in threads {
        if thread.join().is_err() {
            bail!("a thread of the lab has panicked");
        }
    }
    drop(guard);
    Ok(())
}

/// A caller that has gone misses nothing that it waits for.
fn answer(command: Command, body: Value) {
    if command.reply.send(body).is_err() {
        drop(command.body);
    }
}

impl Supervisor {
    fn new(layout: &Layout, options: &UpOptions) -> anyhow::Result<Self> {
        let disk = disk::make(&layout.data("inventory"))?;
        let mut units = Vec::new();
        for (service, instance) in INSTANCES {
            let index = units
                .iter()
                .filter(|u: &&Unit| u.service == service)
                .count();
            units.push(Unit::new(layout, service, instance, u32::try_from(index)?)?);
        }
        let port = |name: &str| {
            let unit = units.iter().find(|u| u.instance == name);
            unit.map_or(0, |u| u.port)
        };
        let ports = Ports {
            checkout: [port("checkout-1"), port("checkout-2")],
            payments: port("payments-1"),
            inventory: port("inventory-1"),
        };
        let receiver = match (&options.intake_url, &options.credential) {
            (Some(url), Some(file)) => Some(Receiver::parse(url, file.clone())?),
            (Some(_), None) => bail!("an intake address needs a credential file"),
            (None, _) => None,
        };
        let target = |u: &Unit| (u.instance, SocketAddr::from((Ipv4Addr::LOCALHOST, u.port)));
        let shared = Shared {
            layout: layout.clone(),
            pages: Pages::new(&INSTANCES),
            evaluator: Mutex::new(Evaluator::new()),
            targets: units.iter().map(target).collect(),
            load: Arc::new(Load::new(ports)),
            receiver,
            stop: AtomicBool::new(false),
        };
        let mut this = Self {
            shared: Arc::new(shared),
            units,
            active: None,
            disk,
            started_at: wall_now().0,
            written: String::new(),
        };
        for service in SERVICES {
            replace(&layout.config(service), &this.config(service))?;
        }
        for unit in &mut this.units {
            unit.start("lab started")?;
        }
        Ok(this)
    }

    /// The configuration of a service as the lab is made with it.
    fn config(&self, service: &str) -> String {
        let port = |name: &str| {
            let unit = self.units.iter().find(|u| u.instance == name);
            unit.map_or(0, |u| u.port)
        };
        let head = format!("# {service}: read at start; a change restarts the service.\n");
        let data = self.shared.layout.data("inventory");
        head + &match service {
            "checkout" => format!(
                "pool_size = 4\npool_timeout_ms = 1000\nmemory_max_mb = 96\n\
                 peer_payments = \"127.0.0.1:{}\"\npeer_inventory = \"127.0.0.1:{}\"\n",
                port("payments-1"),
                port("inventory-1")
            ),
            "inventory" => format!(
                "data_dir = {}\ndata_limit_bytes = {}\nmemory_max_mb = 96\n",
                json!(data),
                self.disk.limit_bytes()
            ),
            _ => "memory_max_mb = 64\n".to_owned(),
        }
    }

    fn threads(
        &self,
        control: UnixListener,
        outbox: Sender<Command>,
    ) -> Vec<thread::JoinHandle<()>> {
        let customers = Arc::clone(&self.shared);
        let eyes = Arc::clone(&self.shared);
        let ears = Arc::clone(&self.shared);
        let voice = Arc::clone(&self.shared);
        vec![
            thread::spawn(move || {
                // Customers come when the shop has opened.
                while !customers.all_up() && !customers.load.stop.load(Ordering::Relaxed) {
                    thread::sleep(TICK);
                }
                customers.load.run();
            }),
            thread::spawn(move || watch(&eyes)),
            thread::spawn(move || send_alerts(&voice)),
            thread::spawn(move || listen(&ears, &control, &outbox)),
        ]
    }

    /// Serves until `down`, which is returned unanswered, or until the directory is gone.
    fn serve(&mut self, inbox: &Inbox<Command>) -> Option<Command> {
        loop {
            match inbox.recv_timeout(TICK) {
                Ok(command) if command.body.get("do") == Some(&json!("down")) => {
                    return Some(command);
                }
                Ok(command) => {
                    let reply = self
                        .obey(&command.body)
                        .unwrap_or_else(|error| json!({"error": format!("{error:#}")}));
                    answer(command, reply);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            if !self.shared.layout.options().exists() {
                return None;
            }
            if let Err(error) = self.tick() {
                note(&self.shared.layout, &format!("{error:#}"));
            }
        }
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        let mut fell = None;
        for unit in &mut self.units {
            match unit.tick() {
                Ok(Some("oom_killed")) => fell = Some(unit.service),
                Ok(_) => {}
                Err(error) => {
                    note(
                        &self.shared.layout,
                        &format!("{}: {error:#}", unit.instance),
                    );
                }
            }
        }
        if let Some(active) = &mut self.active {
            active.tick(&self.shared.layout, &self.shared.load, &self.units, fell)?;
        }
        self.write_state()
    }

    fn write_state(&mut self) -> anyhow::Result<()> {
        let running = |u: &Unit| {
            let version = u.version()?.to_owned();
            Some((u.instance.to_owned(), (u.pid()?, version)))
        };
        let state = State {
            pid: std::process::id(),
            ports: self
                .units
                .iter()
                .map(|u| (u.instance.to_owned(), u.port))
                .collect(),
            disk: self.disk.as_str().to_owned(),
            started_at: self.started_at,
            fault: self.active.as_ref().map(|a| a.fault.name().to_owned()),
            running: self.units.iter().filter_map(running).collect(),
        };
        let text = serde_json::to_string_pretty(&state)?;
        if text != self.written {
            replace(&self.shared.layout.state(), &text)?;
            self.written = text;
        }
        Ok(())
    }

    fn obey(&mut self, command: &Value) -> anyhow::Result<Value> {
        let text = |key: &str| command.get(key).and_then(Value::as_str).unwrap_or("");
        match text("do") {
            "status" => Ok(self.status()),
            "fault" => {
                if let Some(active) = &self.active {
                    bail!("fault `{}` is active: heal first", active.fault.name());
                }
                self.active = Some(Active::new(text("name").parse()?));
                Ok(self.status())
            }
            "heal" => {
                self.heal()?;
                Ok(self.status())
            }
            other => bail!("no command `{other}`"),
        }
    }

    /// Takes the triggers away and puts every file back as the lab was made with it.
    fn heal(&mut self) -> anyhow::Result<()> {
        self.active = None;
        calm(&self.shared.load, &self.units);
        let layout = self.shared.layout.clone();
        for service in SERVICES {
            let newest = release::HISTORY.iter().rev().find(|r| r.service == service);
            let version = newest.with_context(|| format!("no release of {service}"))?;
            if layout.version_in_force(service)? != version.version {
                let target = Path::new("releases").join(version.version);
                relink(&layout.current(service), &target)?;
            }
            replace(&layout.config(service), &self.config(service))?;
        }
        let data = layout.data("inventory");
        for entry in fs::read_dir(&data)? {
            fs::remove_file(entry?.path())?;
        }
        for unit in &mut self.units {
            unit.restart("lab healed")?;
        }
        self.write_state()
    }

    fn status(&self) -> Value {
        let now = Instant::now();
        let pages = &self.shared.pages;
        let mut services = BTreeMap::new();
        for service in SERVICES {
            let units: Vec<Value> = self
                .units
                .iter()
                .filter(|u| u.service == service)
                .map(|u| {
                    json!({
                        "instance": u.instance, "port": u.port, "state": u.state(),
                        "version": u.version(), "pid": u.pid(),
                        "resident_bytes": u.pid().and_then(resident_bytes),
                    })
                })
                .collect();
            services.insert(
                service,
                json!({
                    "error_ratio": pages.error_ratio(service, alerts::WINDOW, now),
                    "requests_per_second": pages.request_rate(service, alerts::WINDOW, now),
                    "mean_latency_seconds": pages.mean_latency(service, alerts::WINDOW, now),
                    "instances": units,
                }),
            );
        }
        let evaluator = lock(&self.shared.evaluator);
        json!({
            "up": self.shared.all_up(),
            "uptime_seconds": (wall_now().0 - self.started_at) / 1000,
            "disk": self.disk.as_str(),
            "fault": self.active.as_ref().map(|a| json!({"name": a.fault.name(), "since": a.since_ms})),
            "customers_failed_ratio": self.shared.load.failed_ratio(alerts::WINDOW),
            "services": services,
            "alerts_firing": evaluator.firing(),
            "webhooks": evaluator.sent,
        })
    }

    fn end(&mut self) {
        self.shared.load.stop.store(true, Ordering::Relaxed);
        for unit in &mut self.units {
            unit.kill();
        }
        if let Err(error) = fs::remove_file(self.shared.layout.state()) {
            note(
                &self.shared.layout,
                &format!("cannot remove the state file: {error}"),
            );
        }
    }
}

/// Scrapes every instance and judges the rules, once a second.
fn watch(shared: &Shared) {
    let mut due = Instant::now();
    while !shared.stop.load(Ordering::Relaxed) {
        if Instant::now() < due {
            thread::sleep(Duration::from_millis(20));
            continue;
        }
        due += SCRAPE_EVERY;
        for (instance, address) in &shared.targets {
            let page = scrape::fetch(*address);
            shared.pages.push(instance, Instant::now(), page);
        }
        lock(&shared.evaluator).evaluate(&shared.pages, Instant::now(), wall_now());
    }
}

/// Sends the webhooks that are due, each until it is taken or refused for good.
fn send_alerts(shared: &Shared) {
    let Some(receiver) = &shared.receiver else {
        return;
    };
    while !shared.stop.load(Ordering::Relaxed) {
        let body = lock(&shared.evaluator).due(Instant::now());
        if let Some(body) = body {
            let code = alerts::post(receiver, &body);
            lock(&shared.evaluator).noted(Instant::now(), code);
            if code == 0 || code >= 500 {
                thread::sleep(SCRAPE_EVERY);
            }
        }
        thread::sleep(TICK);
    }
}

/// Takes commands from the control socket, one connection after the other.
fn listen(shared: &Shared, control: &UnixListener, outbox: &Sender<Command>) {
    if let Err(error) = control.set_nonblocking(true) {
        note(&shared.layout, &format!("control socket: {error}"));
        return;
    }
    while !shared.stop.load(Ordering::Relaxed) {
        match control.accept() {
            Ok((stream, _)) => {
                if let Err(error) = converse(stream, outbox) {
                    note(&shared.layout, &format!("control socket: {error:#}"));
                }
            }
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn converse(mut stream: UnixStream, outbox: &Sender<Command>) -> anyhow::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut line = String::new();
    BufReader::new(stream.try_clone()?.take(LINE_MAX)).read_line(&mut line)?;
    let body = serde_json::from_str(&line)?;
    let (reply, answer) = mpsc::channel();
    outbox.send(Command { body, reply })?;
    let answer = answer.recv_timeout(COMMAND_TIMEOUT)?;
    stream.write_all(format!("{answer}\n").as_bytes())?;
    Ok(())
}
