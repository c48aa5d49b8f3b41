//! `[notify.NAME]`: who is told what outside the console (protocols.md 10.2).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use policies::machine::Event;

use super::Notify;
use super::reader::{Reader, Section};

/// Reads every sink.
pub(super) fn read(r: &mut Reader<'_>, root: &Section<'_>) -> BTreeMap<String, Notify> {
    let mut found = BTreeMap::new();
    for (name, s) in r.named(root, "notify") {
        r.word(&s, "kind", &["webhook"]);
        let url = r.text(&s, "url");
        let secret_file = PathBuf::from(r.text(&s, "secret_file"));
        let events = events(r, &s);
        r.close(&s, &["kind", "url", "secret_file", "events"]);
        let Some((address, path)) = split_url(&url) else {
            r.error(
                "SN-0103",
                Reader::span(&s, "url"),
                format!(
                    "`{}.url` must be `http://`, an address of this box with a port, and a path",
                    s.name
                ),
                "for example \"http://127.0.0.1:9099/sentinel\"; there is no TLS, so only a relay on \
                 loopback is reached"
                    .to_owned(),
            );
            continue;
        };
        found.insert(
            name,
            Notify {
                address,
                path,
                secret_file,
                events,
            },
        );
    }
    found
}

/// All events unless some are chosen.
fn events(r: &mut Reader<'_>, s: &Section<'_>) -> Vec<Event> {
    let mut chosen = Vec::new();
    for text in r.texts(s, "events") {
        match Event::ALL.iter().find(|e| e.as_str() == text) {
            Some(event) => chosen.push(*event),
            None => r.error(
                "SN-0105",
                Reader::span(s, "events"),
                format!("`{}.events` does not know `{text}`", s.name),
                format!("one of: {}", Event::ALL.map(Event::as_str).join(", ")),
            ),
        }
    }
    if chosen.is_empty() {
        chosen.extend(Event::ALL);
    }
    chosen
}

fn split_url(url: &str) -> Option<(SocketAddr, String)> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_once('/')?;
    let address: SocketAddr = host.parse().ok()?;
    let plain = path.bytes().all(|b| b.is_ascii_graphic());
    (address.ip().is_loopback() && plain).then(|| (address, format!("/{path}")))
}

#[cfg(test)]
mod tests {
    use policies::machine::Event;

    use crate::config::load_text;

    fn sink(keys: &str) -> String {
        format!(
            "schema = 1\n[notify.pager]\nkind = \"webhook\"\nsecret_file = \"/etc/s/pager\"\n{keys}"
        )
    }

    #[test]
    fn a_sink_is_told_every_event_unless_some_are_chosen() {
        let all = load_text(
            "s.toml",
            &sink("url = \"http://127.0.0.1:9099/hook?x=1\"\n"),
        );
        let config = all.config.unwrap();
        let pager = &config.notify["pager"];
        assert_eq!(pager.events, Event::ALL);
        assert_eq!(pager.address.port(), 9099);
        assert_eq!(pager.path, "/hook?x=1");
        let few = sink("url = \"http://[::1]:1/\"\nevents = [\"escalated\", \"outcome\"]\n");
        let config = load_text("s.toml", &few).config.unwrap();
        assert_eq!(
            config.notify["pager"].events,
            [Event::Escalated, Event::Outcome]
        );
    }

    #[test]
    fn an_address_off_the_box_and_an_unknown_event_are_refused() {
        for keys in [
            "url = \"http://192.0.2.1:80/\"\n",
            "url = \"https://127.0.0.1:80/\"\n",
            "url = \"http://127.0.0.1/\"\n",
            "url = \"http://127.0.0.1:80\"\n",
        ] {
            let loaded = load_text("s.toml", &sink(keys));
            assert_eq!(
                loaded.problems.first().map(|p| (p.code, p.line)),
                Some(("SN-0103", 5)),
                "{keys}"
            );
        }
        let keys = "url = \"http://127.0.0.1:80/\"\nevents = [\"open\"]\n";
        let loaded = load_text("s.toml", &sink(keys));
        let problem = loaded.problems.first().unwrap();
        assert_eq!((problem.code, problem.line), ("SN-0105", 6));
        assert!(problem.help.contains("opened"), "{}", problem.help);
    }
}
