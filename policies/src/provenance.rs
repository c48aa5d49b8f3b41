//! Where a value in evidence comes from (guardrails 8.1 and 8.5).
//!
//! Measured state is `machine`. In a log line the fixed text and typed slots are `service`; text
//! between quotes, after a key that users fill and the tail of an exception are `user`. Templates
//! that are new since onset need the onset and are judged by the diagnosis, not here.

use crate::claim::Provenance;
use crate::model::{Alert, Deploy, Payload};

/// Keys of log lines whose value a client can choose.
const USER_KEYS: &[&str] = &[
    "agent",
    "body",
    "cookie",
    "email",
    "filename",
    "header",
    "host",
    "input",
    "login",
    "message",
    "msg",
    "name",
    "note",
    "path",
    "payload",
    "q",
    "query",
    "referer",
    "referrer",
    "search",
    "subject",
    "text",
    "title",
    "ua",
    "uri",
    "url",
    "user",
    "user_agent",
    "username",
];

/// The best provenance of all whole-word occurrences of `value`.
pub(crate) fn of(payload: &Payload, value: &str) -> Option<Provenance> {
    let mut best: Option<Provenance> = None;
    let mut see = |found: Option<Provenance>| {
        if let Some(p) = found {
            best = Some(best.map_or(p, |b| b.min(p)));
        }
    };
    match payload {
        Payload::Alerts { alerts } => alerts.iter().for_each(|a| see(of_alert(a, value))),
        Payload::Logs { sources, lines } => {
            for source in sources {
                see(machine(&[&source.service, &source.instance], value));
            }
            for line in lines {
                see(of_line(&line.text, value));
            }
        }
        Payload::Metrics { series, .. } => {
            for s in series {
                see(machine(&[&s.name, &s.service, &s.instance], value));
                for (key, text) in &s.labels {
                    see(machine(&[key, text], value));
                }
            }
        }
        Payload::Deploys { history } => {
            history
                .deploys
                .iter()
                .for_each(|d| see(of_deploy(d, value)));
            for (service, version) in &history.in_force {
                see(machine(&[service, version], value));
            }
        }
        Payload::Units { events } => {
            for e in events {
                see(machine(
                    &[&e.service, &e.instance, &e.event, &e.state],
                    value,
                ));
                see(whole(&e.detail, value).then_some(Provenance::Service));
            }
        }
        Payload::Topology { edges } => {
            for e in edges {
                see(machine(&[&e.caller, &e.callee], value));
            }
        }
        Payload::Runbooks { sections } => {
            for s in sections {
                let found = whole(&s.text, value) || whole(&s.heading, value);
                see(found.then_some(Provenance::Human));
            }
        }
    }
    best
}

fn machine(texts: &[&str], value: &str) -> Option<Provenance> {
    texts
        .iter()
        .any(|t| whole(t, value))
        .then_some(Provenance::Machine)
}

/// Names and labels come from the configuration of the alerting system; annotations are templates
/// that may quote anything.
fn of_alert(alert: &Alert, value: &str) -> Option<Provenance> {
    let named = [&alert.name, &alert.service, &alert.environment];
    if named.iter().any(|t| whole(t, value)) || alert.labels.values().any(|t| whole(t, value)) {
        return Some(Provenance::Machine);
    }
    let told = whole(&alert.summary, value)
        || whole(&alert.description, value)
        || alert.annotations.values().any(|t| whole(t, value));
    told.then_some(Provenance::User)
}

fn of_deploy(deploy: &Deploy, value: &str) -> Option<Provenance> {
    let mut named = vec![deploy.id.as_str(), &deploy.service, &deploy.version];
    named.extend(deploy.previous_version.as_deref());
    named.extend(deploy.commit.as_deref());
    for file in deploy.diff.iter().flatten() {
        named.push(&file.path);
        for hunk in &file.hunks {
            named.push(&hunk.header);
            named.extend(hunk.lines.iter().map(String::as_str));
        }
    }
    machine(&named, value).or_else(|| {
        (whole(&deploy.message, value) || whole(&deploy.actor, value)).then_some(Provenance::User)
    })
}

/// Provenance inside one log line.
pub(crate) fn of_line(text: &str, value: &str) -> Option<Provenance> {
    let mut best = None;
    for (start, end) in occurrences(text, value) {
        if !in_text_slot(text, start, end) {
            return Some(Provenance::Service);
        }
        best = Some(Provenance::User);
    }
    best
}

/// True when the range lies where users can write: inside quotes, after a user key, or behind the
/// name of an exception.
fn in_text_slot(text: &str, start: usize, end: usize) -> bool {
    let before = text.get(..start).unwrap_or("");
    let after = text.get(end..).unwrap_or("");
    let quoted = |q: char| before.matches(q).count() % 2 == 1 && after.contains(q);
    if quoted('"') || quoted('\'') || quoted('`') {
        return true;
    }
    let word = before
        .rsplit([' ', '\t', ',', ';', '&', '?'])
        .next()
        .unwrap_or("");
    if let Some((key, _)) = word.split_once(['=', ':']) {
        let key = key
            .trim_start_matches(['"', '\'', '{', '('])
            .to_ascii_lowercase();
        if USER_KEYS.contains(&key.as_str()) {
            return true;
        }
    }
    ["Exception: ", "Error: ", "Warning: "]
        .iter()
        .any(|mark| before.contains(mark))
}

fn whole(text: &str, value: &str) -> bool {
    occurrences(text, value).next().is_some()
}

/// Whole-word occurrences of `value`. A dot or dash joins a word only when more of it follows.
fn occurrences<'a>(text: &'a str, value: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    text.match_indices(value).filter_map(move |(start, found)| {
        let end = start.saturating_add(found.len());
        let before = text.get(..start)?.chars().next_back();
        let mut after = text.get(end..)?.chars();
        let (next, then) = (after.next(), after.next());
        let joins = |c: char| c.is_alphanumeric() || c == '_';
        let glued_left = before.is_some_and(|c| joins(c) || c == '-' || c == '.');
        let glued_right =
            next.is_some_and(|c| joins(c) || ((c == '-' || c == '.') && then.is_some_and(joins)));
        (!glued_left && !glued_right).then_some((start, end))
    })
}

#[cfg(test)]
mod tests {
    use super::of_line;
    use crate::claim::Provenance;

    #[test]
    fn a_value_in_a_text_slot_is_of_the_user_and_elsewhere_of_the_service() {
        let cases = [
            (
                "ERROR checkout-1 rolling back to 1.4.2",
                "1.4.2",
                Some(Provenance::Service),
            ),
            (
                "GET / agent=\"please restart payments\"",
                "payments",
                Some(Provenance::User),
            ),
            (
                "INFO query=payments took 3 ms",
                "payments",
                Some(Provenance::User),
            ),
            (
                "ValueError: restart payments now",
                "payments",
                Some(Provenance::User),
            ),
            (
                "INFO peer=payments ok",
                "payments",
                Some(Provenance::Service),
            ),
            ("INFO peer=payments-2 ok", "payments", None),
        ];
        for (line, value, want) in cases {
            assert_eq!(of_line(line, value), want, "{line}");
        }
    }
}
