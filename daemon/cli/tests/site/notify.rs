//! What a pager is told about an incident, and that a pager that was away is told later.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use crate::support::files::PAGER_KEY;
use crate::support::{Site, Wishes, wait_for};

/// A webhook that refuses the first notification and takes all others.
struct Pager {
    address: SocketAddr,
    told: Arc<Mutex<Vec<(u16, Value)>>>,
}

impl Pager {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let body = read(&stream);
                let mut told = kept.lock().unwrap();
                let status = if told.is_empty() { 503 } else { 204 };
                told.push((status, body));
                let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { address, told }
    }

    /// What it took, in order.
    fn taken(&self) -> Vec<Value> {
        let told = self.told.lock().unwrap();
        let taken = told.iter().filter(|(status, _)| *status == 204);
        taken.map(|(_, body)| body.clone()).collect()
    }
}

/// Reads one request whole and checks its signature.
fn read(stream: &TcpStream) -> Value {
    let mut reader = BufReader::new(stream);
    let (mut length, mut signature) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            if line.trim_end().is_empty() {
                break;
            }
            assert_eq!(line.trim_end(), "POST /hook HTTP/1.1");
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "x-sentinel-signature" => signature = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(PAGER_KEY.as_bytes()).unwrap();
    mac.update(&body);
    let want = data_encoding::HEXLOWER.encode(&mac.finalize().into_bytes());
    assert_eq!(signature, format!("sha256={want}"));
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_pager_is_told_each_event_of_an_incident_once_and_what_it_refused_again() {
    let pager = Pager::open();
    let mut site = Site::new(&Wishes {
        pager: Some(pager.address),
        ..Wishes::default()
    });
    site.start(&[]);
    site.hire();
    let body = site.alert().to_string();
    assert_eq!(site.post(body.as_bytes()).unwrap().status, 202);
    let action = wait_for("the proposal", || site.pending());
    assert!(site.approve(&action, "ann").status.success());
    wait_for("the end", || {
        (site.incident()["phase"] == "closed").then_some(())
    });
    let incident = site.incident();
    let taken = wait_for("the pager", || {
        let taken = pager.taken();
        (taken.len() >= 4).then_some(taken)
    });
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(pager.taken().len(), taken.len(), "nothing is told twice");

    // The first one came again after the others.
    let mut events: Vec<&str> = taken.iter().map(|t| t["event"].as_str().unwrap()).collect();
    events.sort_unstable();
    assert_eq!(events, ["approval_waiting", "decided", "opened", "outcome"]);
    let refused = pager.told.lock().unwrap()[0].clone();
    assert_eq!((refused.0, &refused.1["event"]), (503, &"opened".into()));
    assert!(taken.contains(&refused.1), "the same bytes come again");
    for one in &taken {
        assert_eq!(one["incident"], incident["id"], "{one}");
        assert_eq!(one["service"], "front");
        assert_eq!(one["severity"], "critical");
        assert_eq!(one["site"], "mini.example");
        let page = format!("/incidents/{}", incident["id"].as_str().unwrap());
        assert!(one["url"].as_str().unwrap().ends_with(&page), "{one}");
    }
    let line = |event: &str| {
        let one = taken.iter().find(|t| t["event"] == event).unwrap();
        one["line"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        line("approval_waiting"),
        "restart of ledger waits for a person"
    );
    assert_eq!(line("decided"), "restart of ledger was approved by ann");
    assert_eq!(
        line("outcome"),
        "recovered: cause resource_exhaustion (ledger), restart of ledger"
    );
    let metrics = site.metrics();
    for count in [
        "sentinel_notifications_total{name=\"pager\",result=\"sent\"} 4",
        "sentinel_notifications_total{name=\"pager\",result=\"failed\"} 1",
    ] {
        assert!(metrics.contains(count), "{metrics}");
    }
}
