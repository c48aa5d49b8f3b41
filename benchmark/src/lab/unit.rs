//! One instance of a service as a unit: it is started, stopped, watched and written down here.
//!
//! The supervisor plays the part of systemd. It restarts a unit when the release link, the
//! configuration or the restart file of its service changes, kills it at its memory limit, and
//! starts nothing on its own after a kill.

use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use policies::model::{Millis, UnitEvent};
use rustix::process::{Pid, Signal, kill_process};

use super::layout::{Layout, append_line};

/// A new release reaches the second instance this much later.
const ROLLOUT_STEP: Duration = Duration::from_secs(12);
/// A new configuration or a wanted restart reaches the second instance this much later.
const RESTART_STEP: Duration = Duration::from_secs(3);
/// A new process that does not say by then that it serves gets no more grace.
const READY: Duration = Duration::from_secs(8);
/// An old process that does not end by then is killed.
const DRAIN: Duration = Duration::from_secs(3);

/// The wall clock.
#[must_use]
pub(super) fn wall_now() -> Millis {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// What a unit is to run, as its files say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Wanted {
    version: String,
    config: String,
    restart: String,
}

/// One instance.
pub(super) struct Unit {
    layout: Layout,
    /// Service.
    pub(super) service: &'static str,
    /// Instance.
    pub(super) instance: &'static str,
    /// Port that it listens on, the same for its whole life.
    pub(super) port: u16,
    /// Zero for the first instance of its service.
    index: u32,
    listener: Option<TcpListener>,
    child: Option<Child>,
    ready: Arc<AtomicBool>,
    /// The process before, which serves until the new one does.
    outgoing: Option<(Child, String, Instant)>,
    retiring: Vec<(Child, Instant)>,
    seen: Wanted,
    running: Wanted,
    due: Option<(Instant, &'static str)>,
    memory_max: u64,
}

impl Unit {
    /// A unit that has not been started, with its port bound.
    ///
    /// # Errors
    /// When no port is free.
    pub(super) fn new(
        layout: &Layout,
        service: &'static str,
        instance: &'static str,
        index: u32,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok(Self {
            layout: layout.clone(),
            service,
            instance,
            port: listener.local_addr()?.port(),
            index,
            listener: Some(listener),
            child: None,
            ready: Arc::default(),
            outgoing: None,
            retiring: Vec::new(),
            seen: Wanted::default(),
            running: Wanted::default(),
            due: None,
            memory_max: u64::MAX,
        })
    }

    /// Version of the running process; `None` while none runs.
    #[must_use]
    pub(super) fn version(&self) -> Option<&str> {
        self.child.as_ref().map(|_| self.running.version.as_str())
    }

    /// Process id of the running process.
    #[must_use]
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    fn wanted(&self) -> anyhow::Result<Wanted> {
        Ok(Wanted {
            version: self.layout.version_in_force(self.service)?,
            config: fs::read_to_string(self.layout.config(self.service))?,
            restart: fs::read_to_string(self.layout.restart(self.service))?,
        })
    }

    fn event(&self, event: &str, state: &str, detail: String) -> anyhow::Result<()> {
        let event = UnitEvent {
            at: wall_now(),
            service: self.service.to_owned(),
            instance: self.instance.to_owned(),
            event: event.to_owned(),
            state: state.to_owned(),
            detail,
        };
        append_line(&self.layout.units(), &serde_json::to_string(&event)?)
    }

    /// Starts the process of the release in force.
    ///
    /// # Errors
    /// When a file of the service cannot be read or Python cannot be started.
    pub(super) fn start(&mut self, reason: &str) -> anyhow::Result<()> {
        let wanted = self.wanted()?;
        let release = self.layout.releases(self.service).join(&wanted.version);
        let listener = match self.listener.take() {
            Some(listener) => listener,
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))
                .with_context(|| format!("cannot bind port {} again", self.port))?,
        };
        // The socket stays with the supervisor, so a restart loses no connection.
        let socket = OwnedFd::from(listener.try_clone()?);
        self.listener = Some(listener);
        self.memory_max = memory_max(&wanted.config)?;
        let errors = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.layout.log(self.instance))?;
        let mut child = Command::new("python3")
            .args(["-B", "-s"])
            .arg(release.join("app.py"))
            .current_dir(&release)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("SHOP_SERVICE", self.service)
            .env("SHOP_INSTANCE", self.instance)
            .env("SHOP_LOG", self.layout.log(self.instance))
            .env("SHOP_CONFIG", self.layout.config(self.service))
            .stdin(Stdio::from(socket))
            .stdout(Stdio::piped())
            .stderr(Stdio::from(errors))
            .spawn()
            .context("cannot start `python3`")?;
        self.ready = Arc::default();
        if let Some(mut output) = child.stdout.take() {
            let ready = Arc::clone(&self.ready);
            // It says one line when it serves; a process that ends closes its output.
            thread::spawn(move || {
                let mut word = [0; 1];
                let said = output.read(&mut word).is_ok_and(|count| count > 0);
                ready.store(said, Ordering::Release);
            });
        }
        let detail = format!("version={} pid={} {reason}", wanted.version, child.id());
        self.child = Some(child);
        self.seen = wanted.clone();
        self.running = wanted;
        self.due = None;
        self.event("started", "active", detail)
    }

    /// Starts the release in force; the process that runs now serves until the new one does.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(super) fn restart(&mut self, reason: &str) -> anyhow::Result<()> {
        self.retire(true)?;
        if let Some(child) = self.child.take() {
            let detail = format!(
                "version={} pid={} {reason}",
                self.running.version,
                child.id()
            );
            self.outgoing = Some((child, detail, Instant::now() + READY));
        }
        self.start(reason)
    }

    /// Asks the process before to finish what it has and end, once it is not needed any more.
    fn retire(&mut self, at_once: bool) -> anyhow::Result<()> {
        let served = self.ready.load(Ordering::Acquire) || self.child.is_none();
        let late = |(_, _, deadline): &mut (Child, String, Instant)| Instant::now() >= *deadline;
        if let Some((child, detail, _)) = self.outgoing.take_if(|o| at_once || served || late(o)) {
            signal(&child, Signal::TERM);
            self.retiring.push((child, Instant::now() + DRAIN));
            // The unit is what its newest process is: one that took over keeps it active.
            let state = if self.child.is_some() {
                "active"
            } else {
                "inactive"
            };
            self.event("stopped", state, detail)?;
        }
        Ok(())
    }

    /// Looks once at the process and at the files that it depends on.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub(super) fn tick(&mut self) -> anyhow::Result<Option<&'static str>> {
        self.reap();
        let ended = self.look_at_process()?;
        self.retire(false)?;
        self.look_at_files()?;
        Ok(ended)
    }

    fn reap(&mut self) {
        self.retiring.retain_mut(|(child, deadline)| {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return false;
            }
            if Instant::now() >= *deadline {
                signal(child, Signal::KILL);
            }
            true
        });
    }

    /// Returns how the process ended, when it has just ended.
    fn look_at_process(&mut self) -> anyhow::Result<Option<&'static str>> {
        let Some(child) = self.child.as_mut() else {
            return Ok(None);
        };
        if let Some(status) = child.try_wait()? {
            let killed = status.signal().is_some();
            let event = if killed { "killed" } else { "exited" };
            self.fell(event, status.to_string())?;
            return Ok(Some(event));
        }
        let resident = resident_bytes(child.id()).unwrap_or(0);
        if resident <= self.memory_max {
            return Ok(None);
        }
        signal(child, Signal::KILL);
        child.wait()?;
        let detail = format!(
            "resident {} MiB over the limit of {} MiB, killed by SIGKILL",
            resident >> 20,
            self.memory_max >> 20
        );
        self.fell("oom_killed", detail)?;
        Ok(Some("oom_killed"))
    }

    fn fell(&mut self, event: &str, detail: String) -> anyhow::Result<()> {
        self.child = None;
        // Nobody listens any more: callers are refused at once, as with a unit that failed.
        self.listener = None;
        self.event(event, "failed", detail)
    }

    fn look_at_files(&mut self) -> anyhow::Result<()> {
        let wanted = self.wanted()?;
        if wanted != self.seen {
            let (step, reason) = if wanted.version != self.seen.version {
                (ROLLOUT_STEP, "release link changed")
            } else if wanted.config != self.seen.config {
                (RESTART_STEP, "configuration changed")
            } else {
                (RESTART_STEP, "restart file changed")
            };
            if wanted.config != self.seen.config && self.index == 0 {
                self.event("config_changed", self.state(), reason.to_owned())?;
            }
            self.seen = wanted.clone();
            self.due = Some((Instant::now() + step * self.index, reason));
        }
        if let Some((at, reason)) = self.due
            && Instant::now() >= at
        {
            self.due = None;
            if wanted != self.running || self.child.is_none() {
                self.restart(reason)?;
            }
        }
        Ok(())
    }

    /// `active` or `failed`.
    #[must_use]
    pub(super) fn state(&self) -> &'static str {
        if self.child.is_some() {
            "active"
        } else {
            "failed"
        }
    }

    /// Stops or continues the process as a whole, like a host that stalls.
    pub(super) fn stall(&self, stalled: bool) {
        if let Some(child) = &self.child {
            signal(child, if stalled { Signal::STOP } else { Signal::CONT });
        }
    }

    /// Kills what still runs.
    pub(super) fn kill(&mut self) {
        let retiring = self.retiring.drain(..).map(|(child, _)| child);
        let outgoing = self.outgoing.take().map(|(child, _, _)| child);
        for mut child in retiring.chain(outgoing).chain(self.child.take()) {
            signal(&child, Signal::KILL);
            if let Err(error) = child.wait() {
                super::note(&self.layout, &format!("cannot wait for a process: {error}"));
            }
        }
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to a child that has not been waited for, so its id cannot name another process.
fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // A process that has just ended is none to signal: its end is seen by the next look.
        let _ended = kill_process(pid, signal);
    }
}

fn memory_max(config: &str) -> anyhow::Result<u64> {
    let document: toml_edit::DocumentMut = config.parse().context("configuration")?;
    let mib = document
        .get("memory_max_mb")
        .and_then(toml_edit::Item::as_integer)
        .context("configuration: no `memory_max_mb`")?;
    Ok(u64::try_from(mib)? << 20)
}

/// Resident memory of a process.
#[must_use]
pub(super) fn resident_bytes(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}
