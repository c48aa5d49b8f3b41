//! The lab in real time: each fault breaks the shop, the right repair by hand heals it, and a
//! wrong one does not. They run in real time, in the slow suite of .config/nextest.toml.

// Helpers of a test fail by panicking, and the measured times are worth reading in its output.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sentinel_benchmark::lab::{self, Layout, UpOptions};
use serde_json::Value;

struct Lab {
    folder: tempfile::TempDir,
    supervisor: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Lab {
    fn up(options: &UpOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        lab::make(folder.path(), options).unwrap();
        let dir = folder.path().to_path_buf();
        let supervisor = thread::spawn(move || lab::supervise(&dir));
        lab::wait_until_up(folder.path(), || {
            Ok(supervisor.is_finished().then(|| "early".to_owned()))
        })
        .unwrap();
        Self {
            folder,
            supervisor: Some(supervisor),
        }
    }

    /// A lab with some seconds of healthy history, and `fault` just started.
    fn broken(fault: &str) -> Self {
        let lab = Self::up(&UpOptions::default());
        thread::sleep(Duration::from_secs(6));
        assert!(well(&lab), "the lab is not healthy");
        lab::fault(lab.path(), fault).unwrap();
        lab
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn layout(&self) -> Layout {
        Layout::new(self.path())
    }

    fn status(&self) -> Value {
        lab::status(self.path()).unwrap()
    }

    fn errors(&self, service: &str) -> f64 {
        let status = self.status();
        status["services"][service]["error_ratio"]
            .as_f64()
            .unwrap_or(0.0)
    }

    fn fires(&self, alert: &str) -> bool {
        let status = self.status();
        let firing = status["alerts_firing"].as_array().unwrap();
        firing.iter().any(|name| name == alert)
    }

    fn until(&self, what: &str, limit: u64, holds: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            let status = self.status();
            assert!(
                start.elapsed() < Duration::from_secs(limit),
                "not within {limit} s: {what}; {status:#}"
            );
            thread::sleep(Duration::from_millis(250));
        }
        eprintln!("{what}: {:.1} s", start.elapsed().as_secs_f64());
    }

    /// Looks at the last of `seconds`: what is broken for good is broken then.
    fn still_broken_after(&self, seconds: u64) {
        thread::sleep(Duration::from_secs(seconds));
        let ratio = self.errors("checkout");
        assert!(ratio > 0.05, "the wrong repair has helped: {ratio}");
    }

    fn stays_well(&self, seconds: u64) {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(seconds) {
            let ratio = self.errors("checkout");
            assert!(ratio < 0.02, "it has come back: {ratio}");
            thread::sleep(Duration::from_millis(500));
        }
    }

    fn log(&self, instance: &str) -> String {
        fs::read_to_string(self.layout().log(instance)).unwrap()
    }

    fn units(&self) -> String {
        fs::read_to_string(self.layout().units()).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let down = lab::down(self.path());
        if let Some(supervisor) = self.supervisor.take() {
            let ended = supervisor.join();
            if !thread::panicking() {
                down.unwrap();
                ended.unwrap().unwrap();
            }
        }
    }
}

fn well(lab: &Lab) -> bool {
    lab.errors("checkout") < 0.01 && !lab.fires("HighErrorRate/checkout")
}

#[test]
fn a_lab_comes_up_serves_without_an_error_and_leaves_no_process_behind() {
    let lab = Lab::up(&UpOptions::default());
    lab.until("traffic", 15, |lab| {
        let rate = &lab.status()["services"]["checkout"]["requests_per_second"];
        rate.as_f64().unwrap() > 25.0
    });
    assert!(well(&lab));
    let again = lab::supervise(lab.path());
    assert!(again.is_err(), "two supervisors ran one lab");
    let status = lab.status();
    let pids: Vec<u64> = ["checkout", "payments", "inventory"]
        .iter()
        .flat_map(|s| status["services"][s]["instances"].as_array().unwrap())
        .map(|i| i["pid"].as_u64().unwrap())
        .collect();
    assert_eq!(pids.len(), 4);
    drop(lab);
    for pid in pids {
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}

#[test]
fn a_bad_deploy_is_healed_by_the_link_of_its_own_service_alone() {
    let lab = Lab::broken("bad-deploy");
    lab.until("fault to alert", 40, |lab| {
        lab.fires("HighErrorRate/checkout")
    });
    let failures = |instance| lab.log(instance).matches("KeyError: 'ribbon'\"").count();
    let (new, old) = (failures("checkout-1"), failures("checkout-2"));
    assert!(
        new >= 15 && old == 0,
        "{new} failures on the new, {old} on the old"
    );
    assert!(lab.log("checkout-1").contains("in gift_price"));

    let layout = lab.layout();
    lab::relink(&layout.current("inventory"), Path::new("releases/2.4.1")).unwrap();
    lab.still_broken_after(10);
    lab::relink(&layout.current("checkout"), Path::new("releases/1.7.0")).unwrap();
    lab.until("repair to recovery", 30, well);
    lab.stays_well(5);
}

#[test]
fn an_exhausted_pool_is_healed_by_its_size_and_not_by_a_restart() {
    let lab = Lab::broken("pool-exhausted");
    lab.until("fault to alert", 40, |lab| {
        lab.fires("HighErrorRate/checkout")
    });
    assert!(lab.log("checkout-1").contains("PoolTimeout"));
    assert!(!lab.units().contains("config_changed"));

    lab::restart(lab.path(), "checkout").unwrap();
    lab.still_broken_after(17);
    let file = lab.layout().config("checkout");
    let config = fs::read_to_string(&file).unwrap();
    lab::replace(&file, &config.replace("pool_size = 4", "pool_size = 8")).unwrap();
    lab.until("repair to recovery", 20, well);
    lab.stays_well(8);
}

#[test]
fn a_service_killed_at_its_memory_limit_stays_down_until_it_is_restarted_itself() {
    let lab = Lab::broken("dependency-down");
    lab.until("fault to alert", 60, |lab| {
        lab.fires("HighErrorRate/checkout")
    });
    assert!(lab.units().contains("\"oom_killed\""));

    lab::restart(lab.path(), "checkout").unwrap();
    lab.still_broken_after(10);
    lab::restart(lab.path(), "payments").unwrap();
    lab.until("repair to recovery", 20, well);
    lab.stays_well(12);
    assert_eq!(lab.units().matches("\"oom_killed\"").count(), 1);
}

#[test]
fn a_full_disk_is_not_emptied_by_a_restart() {
    let lab = Lab::broken("disk-full");
    lab.until("fault to alert", 60, |lab| {
        lab.fires("DiskAlmostFull/inventory")
    });
    lab.until("alert of checkout", 10, |lab| {
        lab.fires("HighErrorRate/checkout")
    });
    let log = lab.log("inventory-1");
    assert!(log.contains("OSError: [Errno 28]") || log.contains("OSError: [Errno 27]"));

    lab::restart(lab.path(), "inventory").unwrap();
    lab.still_broken_after(10);
    lab::heal(lab.path()).unwrap();
    lab.until("repair to recovery", 20, well);
    lab.stays_well(5);
}

/// Head and body of each webhook.
type Webhooks = Arc<Mutex<Vec<(String, Value)>>>;

/// Takes webhooks: refuses the first once, so that it has to be sent again.
fn receiver() -> (String, Webhooks) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "http://{}/v1/intake/alertmanager",
        listener.local_addr().unwrap()
    );
    let taken = Webhooks::default();
    let bodies = Arc::clone(&taken);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let mut buffer = [0; 4096];
            let (head, body) = loop {
                let count = stream.read(&mut buffer).unwrap();
                bytes.extend_from_slice(&buffer[..count]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                if let Some((head, body)) = text.split_once("\r\n\r\n")
                    && let Ok(body) = serde_json::from_str::<Value>(body)
                {
                    break (head.to_owned(), body);
                }
            };
            let line = if number == 0 {
                "503 Later"
            } else {
                "202 Accepted"
            };
            write!(stream, "HTTP/1.1 {line}\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
            bodies.lock().unwrap().push((head, body));
        }
    });
    (url, taken)
}

#[test]
fn noise_fires_an_alert_that_ends_on_its_own_and_both_are_sent_as_webhooks() {
    let (url, taken) = receiver();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "the-token\n").unwrap();
    let lab = Lab::up(&UpOptions {
        intake_url: Some(url),
        credential: Some(file.path().to_owned()),
    });
    thread::sleep(Duration::from_secs(6));
    let started = lab.units().lines().count();
    lab::fault(lab.path(), "healthy-noise").unwrap();
    assert!(
        lab::fault(lab.path(), "disk-full").is_err(),
        "two faults at once"
    );
    lab.until("fault to alert", 15, |lab| {
        lab.fires("HighErrorRate/checkout")
    });
    lab.until("alert to its end", 15, |lab| {
        !lab.fires("HighErrorRate/checkout")
    });
    lab.until("all well", 10, well);
    lab.stays_well(5);
    assert_eq!(
        lab.units().lines().count(),
        started,
        "something was restarted"
    );

    let taken = taken.lock().unwrap();
    assert!(taken.len() >= 3, "{} webhooks", taken.len());
    let alert = |index: usize| &taken[index].1["alerts"][0];
    assert_eq!(alert(0)["status"], "firing");
    assert_eq!(
        alert(0)["startsAt"],
        alert(1)["startsAt"],
        "the refused one was not sent again"
    );
    assert_eq!(alert(taken.len() - 1)["status"], "resolved");
    assert!(taken.iter().all(|(head, body)| {
        head.contains("Authorization: Bearer the-token")
            && body["alerts"][0]["fingerprint"] == alert(0)["fingerprint"]
    }));
}
