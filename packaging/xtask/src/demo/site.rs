//! The scratch site: a folder, two ports, the lab and the daemon, and the certainty that what was
//! started is ended again.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::console::Browser;
use super::sentinel::Sentinel;
use crate::model;
use crate::place::Place;

/// Ends what it was told about when the pipe to it closes, however this program ends. It is a
/// process group of its own, so that an interrupt from the terminal does not reach it.
const KEEPER: &str = r#"
trap '' INT HUP TERM
serve= lab=
while read -r what value; do
    case $what in serve) serve=$value ;; lab) lab=$value ;; esac
done
if [ -n "$serve" ] && kill -TERM "$serve" 2>/dev/null; then
    n=0
    while kill -0 "$serve" 2>/dev/null && [ "$n" -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
    kill -KILL "$serve" 2>/dev/null
fi
n=0
while [ -n "$lab" ] && [ "$n" -lt 3 ]; do
    timeout 30 "$0" lab down "$lab" >/dev/null 2>&1 && break
    n=$((n + 1))
    sleep 1
done
"#;

/// A running site.
pub(super) struct Site {
    /// Its folder.
    pub(super) folder: PathBuf,
    /// The lab's folder.
    pub(super) lab: PathBuf,
    /// Address of the console.
    pub(super) address: String,
    /// The binary.
    pub(super) sentinel: Sentinel,
    serve: Option<Child>,
    keeper: Option<(Child, ChildStdin)>,
}

impl Site {
    /// Makes a fresh site and starts the lab and the daemon on it.
    pub(super) fn start(place: &Place, exe: &Path, name: &str, model_file: &Path) -> Result<Self> {
        let folder = fresh(&place.target.join("demo"), name)?;
        let state = folder.join("site");
        let lab = folder.join("lab");
        let (address, metrics) = two_addresses()?;
        let mut site = Self {
            sentinel: Sentinel {
                exe: exe.to_owned(),
                socket: state.join("run/control.sock"),
            },
            keeper: Some(keeper(exe)?),
            serve: None,
            address,
            folder,
            lab,
        };
        let lab_text = site.lab.to_string_lossy().into_owned();
        site.tell("lab", &lab_text)?;
        let state_text = state.to_string_lossy().into_owned();
        site.sentinel.lab(&[
            "up",
            &lab_text,
            "--site",
            &state_text,
            "--listen",
            &site.address,
            "--metrics-listen",
            &metrics,
            "--model",
            &model_file.to_string_lossy(),
            "--sha256",
            model::SHA256,
        ])?;
        site.serve(&state)?;
        Ok(site)
    }

    fn serve(&mut self, state: &Path) -> Result<()> {
        let log = self.folder.join("serve.log");
        let file = File::create(&log).with_context(|| format!("`{}`", log.display()))?;
        let child = Command::new(&self.sentinel.exe)
            .args(["serve", "--state-dir"])
            .arg(state)
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("`sentinel serve` cannot be started")?;
        let id = child.id();
        self.serve = Some(child);
        self.tell("serve", &id.to_string())?;
        let mut browser = Browser::new(&self.address);
        let start = Instant::now();
        // It is ready as soon as it can take an alert; a model may still be loading then, and the
        // demo wants to show one.
        loop {
            self.alive()?;
            let answer = browser.status("/readyz");
            let waited = start.elapsed();
            match answer {
                Some((200, body)) if body.trim() == "ready" => return Ok(()),
                Some((200, _)) if waited > Duration::from_secs(60) => return Ok(()),
                _ if waited > Duration::from_secs(120) => {
                    bail!("the daemon is not ready after 120 s; see {}", log.display())
                }
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Fails when the daemon has ended.
    pub(super) fn alive(&mut self) -> Result<()> {
        if let Some(serve) = &mut self.serve
            && let Some(status) = serve.try_wait()?
        {
            let log = self.folder.join("serve.log");
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let last: Vec<&str> = text.lines().rev().take(5).collect();
            bail!("`sentinel serve` ended with {status}: {}", last.join("\n"));
        }
        Ok(())
    }

    fn tell(&mut self, what: &str, value: &str) -> Result<()> {
        if let Some((_, pipe)) = &mut self.keeper {
            writeln!(pipe, "{what} {value}").context("the keeper of the site is gone")?;
        }
        Ok(())
    }
}

impl Drop for Site {
    /// The daemon is this process's own child, so it is ended and reaped here; the keeper does the
    /// rest and whatever could not be done.
    fn drop(&mut self) {
        if let Some(mut serve) = self.serve.take() {
            let _ = Command::new("kill")
                .args(["-TERM", &serve.id().to_string()])
                .stderr(Stdio::null())
                .status();
            let deadline = Instant::now() + Duration::from_secs(10);
            while matches!(serve.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(50));
            }
            let _ = serve.kill();
            let _ = serve.wait();
            let _ = self.tell("serve", "");
        }
        if let Some((mut keeper, pipe)) = self.keeper.take() {
            drop(pipe);
            let _ = keeper.wait();
        }
    }
}

fn keeper(exe: &Path) -> Result<(Child, ChildStdin)> {
    let mut child = Command::new("sh")
        .args(["-c", KEEPER])
        .arg(exe)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("`sh` cannot be started")?;
    let pipe = child.stdin.take().context("a pipe was asked for")?;
    Ok((child, pipe))
}

/// A folder that nobody used before.
fn fresh(parent: &Path, name: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(parent).with_context(|| format!("`{}`", parent.display()))?;
    for number in 1..10_000 {
        let folder = parent.join(format!("{name}-{number}"));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e).with_context(|| format!("`{}`", folder.display())),
        }
    }
    bail!("`{}` is full of old runs; remove it", parent.display())
}

/// Two free addresses below the range from which the system gives out ports: the shop's own ports
/// come from there, and one of them could be taken before the daemon listens.
fn two_addresses() -> Result<(String, String)> {
    let first = 10_000 + u16::try_from(std::process::id() % 20_000).unwrap_or_default();
    let mut free = (0..2_000)
        .map(|n| SocketAddr::from((Ipv4Addr::LOCALHOST, first + n)))
        .filter(|address| TcpListener::bind(address).is_ok());
    match (free.next(), free.next()) {
        (Some(a), Some(b)) => Ok((a.to_string(), b.to_string())),
        _ => bail!("no two ports are free from {first} on"),
    }
}
