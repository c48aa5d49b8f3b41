//! A tripwire: personal data and secrets that come in with alerts and logs are found nowhere
//! afterwards, plain or encoded.

use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use serde_json::json;

use crate::support::{Site, Wishes, wait_for};

/// What is planted. Put together here, so that no scanner of this repository takes it for real.
fn planted() -> Vec<String> {
    let random = "q7Vw2Lk9Zt4Xc8Rb1Nf6";
    vec![
        ["margarete.huber", "kundenpost.de"].join("@"),
        format!("ghp_{random}{}", "Yd3Hs5Jm0Gp7Ue2T"),
        format!("Tr0ub4dor-{random}"),
        ["4111", "1111", "1111", "1111"].join(" "),
    ]
}

/// The needle, and what base64 makes of it at each of the three places where it may begin.
fn spellings(needle: &str) -> Vec<String> {
    let mut all = vec![needle.to_owned()];
    for shift in 0..3_usize {
        let mut bytes = vec![0_u8; shift];
        bytes.extend_from_slice(needle.as_bytes());
        let text = BASE64.encode(&bytes);
        // The first and last group depend on the neighbours.
        all.push(text[(shift * 8).div_ceil(6)..text.len() - 4].to_owned());
    }
    all
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            all.extend(files(&entry.path()));
        } else if kind.is_file() {
            all.push(entry.path());
        }
    }
    all
}

#[test]
fn what_is_planted_in_alerts_and_logs_is_written_down_nowhere() {
    let planted = planted();
    let [email, token, password, card] = planted.as_slice() else {
        panic!("four are planted");
    };
    let coded = BASE64.encode(format!("contact {email} now please").as_bytes());
    let wishes = Wishes {
        log_lines: vec![
            format!("ERROR front-1 order failed customer={email} card={card} code=502"),
            format!("ERROR front-1 ledger refused Authorization: Bearer {token}"),
            format!("ERROR front-1 connect failed password={password} retry=3"),
            format!("ERROR front-1 payload={coded}"),
        ],
        ..Wishes::default()
    };
    let mut site = Site::new(&wishes);
    site.start(&[]);
    site.hire();
    let mut body = site.alert();
    body["alerts"][0]["labels"]["owner"] = json!(email);
    body["alerts"][0]["labels"]["token"] = json!(token);
    body["alerts"][0]["annotations"]["summary"] =
        json!(format!("card {card} of {email} was charged twice"));
    body["alerts"][0]["annotations"]["description"] = json!(format!("password={password} {coded}"));
    assert_eq!(site.post(body.to_string().as_bytes()).unwrap().status, 202);
    let action = wait_for("the proposal", || site.pending());
    assert!(site.approve(&action, "ann").status.success());
    wait_for("the end", || {
        (site.incident()["phase"] == "closed").then_some(())
    });
    let id = site.incident()["id"].as_str().unwrap().to_owned();
    let events = wait_for("the last leaf", || {
        let events = site.audited();
        let closed = events.iter().any(|e| e["type"] == "incident.closed");
        closed.then_some(events)
    });

    // The needles are ASCII: what is no UTF-8 around them does not matter.
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let mut places: Vec<(String, String)> = files(&site.state())
        .into_iter()
        .map(|path| (path.display().to_string(), read(&path)))
        .collect();
    assert!(places.iter().any(|(name, _)| name.ends_with("sentinel.db")));
    let shown = site
        .get(&format!("/v1/incidents/{id}"))
        .unwrap()
        .to_string();
    let postmortem = site.postmortem(&id).to_string();
    assert!(shown.contains("OrdersFail") && postmortem.contains("ledger"));
    places.push(("standard error".to_owned(), site.stderr()));
    places.push(("/metrics".to_owned(), site.metrics()));
    places.push(("the incident".to_owned(), shown));
    places.push(("the postmortem".to_owned(), postmortem));
    places.push(("the log".to_owned(), json!(events).to_string()));
    let mut found = Vec::new();
    for needle in planted.iter().chain([&card.replace(' ', "")]) {
        for spelling in spellings(needle) {
            for (place, text) in &places {
                if text.contains(&spelling) {
                    found.push(format!("{needle} in {place}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
