//! The documented answer to bodies that are broken, huge, many or sent again (protocols.md 4.1).

use std::io::Write as _;

use serde_json::{Value, json};

use crate::support::files::TOKEN;
use crate::support::http::{Ask, streamed, tcp};
use crate::support::{Site, Wishes, wait_for};

const MIB: usize = 1 << 20;

fn site() -> Site {
    let mut site = Site::new(&Wishes::default());
    site.start(&[]);
    site
}

fn head(framing: &str) -> String {
    format!(
        "POST /v1/intake/alertmanager HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\
         content-type: application/json\r\nauthorization: Bearer {TOKEN}\r\n{framing}\r\n\r\n"
    )
}

#[test]
fn what_can_never_be_accepted_gets_a_4xx_and_opens_nothing() {
    let site = site();
    let good = site.alert().to_string();
    let bearer = format!("Bearer {TOKEN}");
    let json = "application/json";
    for body in [
        "",
        "{",
        "no json",
        "[]",
        "{\"alerts\":[]}",
        "{\"alerts\":[{}]}",
    ] {
        let answer = site.post(body.as_bytes()).unwrap();
        assert_eq!(answer.status, 400, "{body}: {}", answer.body);
    }
    let wrong = site.post_as(good.as_bytes(), "Bearer wrong", json).unwrap();
    assert_eq!(
        (wrong.status, &wrong.json()["code"]),
        (401, &json!("unauthenticated"))
    );
    let ask = Ask {
        method: "POST",
        path: "/v1/intake/alertmanager",
        body: good.as_bytes(),
        ..Ask::default()
    };
    assert_eq!(tcp(site.address(), ask).unwrap().status, 401);
    let elsewhere = Ask {
        path: "/v1/intake/other",
        ..ask
    };
    assert_eq!(tcp(site.address(), elsewhere).unwrap().status, 401);
    let form = site.post_as(
        good.as_bytes(),
        &bearer,
        "application/x-www-form-urlencoded",
    );
    assert_eq!(form.unwrap().status, 415);
    let many: Vec<Value> = (0..10_001).map(alert).collect();
    let many = json!({ "alerts": many }).to_string();
    let answer = site.post(many.as_bytes()).unwrap();
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (413, &json!("too_many_alerts"))
    );
    assert!(site.incidents().is_empty());
}

#[test]
fn a_body_of_a_hundred_mebibytes_is_refused_announced_or_not() {
    let site = site();
    let piece = vec![b' '; MIB];
    let announced = head(&format!("content-length: {}", 100 * MIB));
    let answer = streamed(site.address(), &announced, |stream| {
        (0..100).try_for_each(|_| stream.write_all(&piece))
    });
    assert_eq!(answer.unwrap().status, 413);
    let chunked = head("transfer-encoding: chunked");
    let answer = streamed(site.address(), &chunked, |stream| {
        for _ in 0..100 {
            write!(stream, "{MIB:x}\r\n")?;
            stream.write_all(&piece)?;
            stream.write_all(b"\r\n")?;
        }
        stream.write_all(b"0\r\n\r\n")
    });
    assert_eq!(answer.unwrap().status, 413);
    assert!(site.incidents().is_empty());
    assert_eq!(
        site.post(site.alert().to_string().as_bytes())
            .unwrap()
            .status,
        202
    );
}

fn alert(n: u32) -> Value {
    json!({
        "status": "firing", "startsAt": "2026-01-31T08:00:00Z", "fingerprint": format!("{n:016x}"),
        "labels": {"alertname": "NodeDown", "service": format!("s-{}", n % 40)},
    })
}

#[test]
fn ten_thousand_alerts_are_one_storm() {
    let site = site();
    let alerts: Vec<Value> = (0..10_000).map(alert).collect();
    let body = json!({ "version": "4", "groupKey": "g", "alerts": alerts }).to_string();
    let answer = site.post(body.as_bytes()).unwrap();
    assert_eq!(
        (answer.status, &answer.json()["accepted"]),
        (202, &json!(10_000))
    );
    assert_eq!(site.incident()["kind"], "storm");
    let again = site.post(body.as_bytes()).unwrap();
    assert_eq!(
        (again.status, &again.json()["duplicate"]),
        (202, &json!(10_000))
    );
    assert_eq!(site.incident()["kind"], "storm");
}

#[test]
fn one_cause_is_one_incident_however_often_it_is_told() {
    let site = site();
    let body = site.alert();
    let text = body.to_string();
    let first = site.post(text.as_bytes()).unwrap().json();
    assert_eq!(
        (&first["accepted"], &first["duplicate"]),
        (&json!(1), &json!(0))
    );
    let second = site.post(text.as_bytes()).unwrap().json();
    assert_eq!(
        (&second["accepted"], &second["duplicate"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(
        second["receipt"], first["receipt"],
        "the same body has the same receipt"
    );
    // The same fingerprint in another body, twice in it, with another start.
    let mut other = body.clone();
    other["alerts"][0]["startsAt"] = json!(site.shop.broke().plus(9_000).to_string());
    let twin = other["alerts"][0].clone();
    other["alerts"].as_array_mut().unwrap().push(twin);
    let third = site.post(other.to_string().as_bytes()).unwrap();
    assert_eq!((third.status, &third.json()["accepted"]), (202, &json!(0)));
    wait_for("the proposal", || site.pending());
    let fourth = site.post(other.to_string().as_bytes()).unwrap();
    assert_eq!(
        (fourth.status, &fourth.json()["accepted"]),
        (202, &json!(0))
    );
    let incident = site.incident();
    assert_eq!(incident["phase"], "awaiting_approval");
    assert_eq!(site.actions().len(), 1);
}

#[test]
fn an_alert_that_fires_again_after_its_incident_closed_is_investigated_again() {
    let site = site();
    let mut body = site.alert();
    assert_eq!(site.post(body.to_string().as_bytes()).unwrap().status, 202);
    let action = wait_for("the proposal", || site.pending());
    let args = ["deny", &action, "--as", "local:ann", "--reason", "not now"];
    assert!(site.run(&args, "").status.success());
    wait_for("the end", || {
        (site.incident()["phase"] == "closed").then_some(())
    });
    let first = site.incident()["id"].clone();
    let end = site.shop.broke().plus(9_000);
    body["alerts"][0]["status"] = json!("resolved");
    body["alerts"][0]["endsAt"] = json!(end.to_string());
    let resolved = site.post(body.to_string().as_bytes()).unwrap();
    assert_eq!(resolved.json()["resolved"], 1);
    assert_eq!(
        site.incident()["phase"],
        "closed",
        "a late resolve starts nothing"
    );
    body["alerts"][0]["status"] = json!("firing");
    body["alerts"][0]["startsAt"] = json!(end.plus(1_000).to_string());
    body["alerts"][0]["endsAt"] = json!("0001-01-01T00:00:00Z");
    let again = site.post(body.to_string().as_bytes()).unwrap().json();
    assert_eq!(again["accepted"], 1);
    assert_ne!(again["incidents"][0], first);
    let state = |phase: &str| {
        let all = site.incidents();
        all.iter().any(|i| i["id"] != first && i["phase"] == phase)
    };
    wait_for("the second look at it", || {
        (state("awaiting_approval") || state("closed")).then_some(())
    });
    assert!(!site.stderr().contains("cannot be taken up"));
}
