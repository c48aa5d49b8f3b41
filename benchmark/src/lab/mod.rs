//! The lab: a small shop of real local processes that can be broken for real and repaired again.
//!
//! It owns the shop's sources, its supervisor, its customers, its alert evaluator and the faults.
//! It must not know how Sentinel works: it sends webhooks, and Sentinel reads and changes files.

mod alerts;
mod disk;
mod fault;
mod http;
mod layout;
mod load;
mod release;
mod scrape;
mod site;
mod supervisor;
mod unit;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use fault::Fault;
pub use layout::{INSTANCES, Layout, SERVICES, relink, replace};
pub use site::{LabSite, ModelFile, Person};
pub use supervisor::supervise;

const START_TIMEOUT: Duration = Duration::from_secs(20);
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);
const LINE_MAX: u64 = 64 * 1024;

/// Options of `lab up`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UpOptions {
    /// Intake that gets the webhooks; without one nothing is sent.
    pub intake_url: Option<String>,
    /// File with the bearer token of the intake.
    pub credential: Option<PathBuf>,
}

/// What the supervisor writes down about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// Process id of the supervisor.
    pub pid: u32,
    /// Port of each instance.
    pub ports: BTreeMap<String, u16>,
    /// How the disk of inventory is bounded.
    pub disk: String,
    /// When the lab was started, ms since the epoch.
    pub started_at: i64,
    /// Fault that is active.
    pub fault: Option<String>,
    /// Process id and version of each running instance.
    pub running: BTreeMap<String, (u32, String)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a line into the supervisor's own log, where a person looks when the lab misbehaves.
fn note(layout: &Layout, text: &str) {
    let line = format!("{} supervisor {text}", unit::wall_now());
    if layout::append_line(&layout.log("supervisor"), &line).is_err() {
        // The lab directory is gone or full: there is no better place to say so.
    }
}

/// Makes a lab in `dir`, which must be empty or missing, without starting it.
///
/// # Errors
/// When the folder is in use or cannot be written.
pub fn make(dir: &Path, options: &UpOptions) -> anyhow::Result<Layout> {
    fs::create_dir_all(dir)?;
    let dir = dir.canonicalize()?;
    let layout = Layout::new(&dir);
    ensure!(
        fs::read_dir(&dir)?.next().is_none(),
        "`{}` is not empty: a lab is made anew each time",
        dir.display()
    );
    fs::create_dir_all(dir.join("logs"))?;
    fs::create_dir_all(layout.runbooks())?;
    for (name, text) in site::RUNBOOKS {
        fs::write(layout.runbooks().join(name), text)?;
    }
    for service in SERVICES {
        fs::create_dir_all(layout.data(service))?;
        fs::write(layout.restart(service), "never\n")?;
    }
    fs::write(layout.units(), "")?;
    for (_, instance) in INSTANCES {
        fs::write(layout.log(instance), "")?;
    }
    release::write_history(&layout, unit::wall_now())?;
    let mut options = options.clone();
    options.credential = options.credential.map(std::path::absolute).transpose()?;
    replace(&layout.options(), &serde_json::to_string(&options)?)?;
    Ok(layout)
}

/// Makes a lab and starts its supervisor, `exe lab supervise DIR`, in the background. Returns when
/// the shop serves.
///
/// # Errors
/// When the lab cannot be made or does not come up in time.
pub fn up(dir: &Path, options: &UpOptions, exe: &Path) -> anyhow::Result<State> {
    let layout = make(dir, options)?;
    let log = fs::File::create(layout.log("supervisor"))?;
    let mut child = Command::new(exe)
        .args(["lab", "supervise"])
        .arg(layout.root())
        .stdin(Stdio::null())
        .stdout(Stdio::from(log.try_clone()?))
        .stderr(Stdio::from(log))
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start `{}`", exe.display()))?;
    let state = wait_until_up(layout.root(), || {
        Ok(child.try_wait()?.map(|status| status.to_string()))
    });
    if state.is_err() {
        child.kill()?;
        child.wait()?;
    }
    state
}

/// Waits until the shop of a lab serves. `ended` tells how its supervisor ended, if it has.
///
/// # Errors
/// When it does not serve in time.
pub fn wait_until_up(
    dir: &Path,
    mut ended: impl FnMut() -> anyhow::Result<Option<String>>,
) -> anyhow::Result<State> {
    let layout = Layout::new(dir);
    let deadline = Instant::now() + START_TIMEOUT;
    while Instant::now() < deadline {
        if let Some(how) = ended()? {
            let log = fs::read_to_string(layout.log("supervisor")).unwrap_or_default();
            bail!("the supervisor has ended ({how}): {log}");
        }
        if layout.state().exists()
            && status(dir).is_ok_and(|s| s.get("up").and_then(Value::as_bool) == Some(true))
        {
            let text = fs::read_to_string(layout.state())?;
            return Ok(serde_json::from_str(&text)?);
        }
        thread::sleep(Duration::from_millis(100));
    }
    bail!(
        "the shop does not serve after {} s",
        START_TIMEOUT.as_secs()
    )
}

/// The control socket by a name that is short however deep the lab lies: a socket's path is bound
/// to 108 bytes.
fn socket_path(dir: &fs::File) -> PathBuf {
    PathBuf::from(format!(
        "/proc/self/fd/{}/{}",
        dir.as_raw_fd(),
        Layout::SOCKET
    ))
}

fn bind_control(layout: &Layout) -> anyhow::Result<UnixListener> {
    let dir = fs::File::open(layout.root())?;
    let path = socket_path(&dir);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    Ok(UnixListener::bind(path)?)
}

/// Asks the supervisor of a lab and returns its answer.
fn ask(dir: &Path, command: &Value) -> anyhow::Result<Value> {
    let folder = fs::File::open(dir).with_context(|| format!("no lab in `{}`", dir.display()))?;
    let mut stream = UnixStream::connect(socket_path(&folder))
        .with_context(|| format!("no lab runs in `{}`", dir.display()))?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.write_all(format!("{command}\n").as_bytes())?;
    let mut line = String::new();
    let mut reader = BufReader::new(std::io::Read::take(stream, LINE_MAX));
    reader.read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line).context("the supervisor did not answer")?;
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        bail!("{error}");
    }
    Ok(answer)
}

/// Starts a fault.
///
/// # Errors
/// When the name is none, or another fault has not been healed.
pub fn fault(dir: &Path, name: &str) -> anyhow::Result<Value> {
    let fault: Fault = name.parse()?;
    ask(dir, &json!({"do": "fault", "name": fault.name()}))
}

/// Takes the fault away and puts the shop back as it was made.
///
/// # Errors
/// When no lab runs.
pub fn heal(dir: &Path) -> anyhow::Result<Value> {
    ask(dir, &json!({"do": "heal"}))
}

/// What runs, what fires and how the shop does.
///
/// # Errors
/// When no lab runs.
pub fn status(dir: &Path) -> anyhow::Result<Value> {
    ask(dir, &json!({"do": "status"}))
}

/// Restarts a service by changing its restart file, as an operator of the shop would.
///
/// # Errors
/// When there is no such service.
pub fn restart(dir: &Path, service: &str) -> anyhow::Result<()> {
    ensure!(SERVICES.contains(&service), "no service `{service}`");
    let text = format!("{}\n", unit::wall_now());
    replace(&Layout::new(dir).restart(service), &text)
}

/// Ends the lab: every process is gone when this returns.
///
/// # Errors
/// When the supervisor does not answer.
pub fn down(dir: &Path) -> anyhow::Result<Value> {
    ask(dir, &json!({"do": "down"}))
}
