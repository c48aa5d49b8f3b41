//! What makes a policy file unfit (guard 2.3, 2.4.1, 2.4.3): every problem is listed at once.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::INTERNAL_WORKER;
use super::file::{ActionRule, File};
use super::types::{Assurance, Kind, Peer, Role, is_id, is_name};
use crate::canon::MAX_INT;

struct Problems(Vec<String>);

impl Problems {
    fn when(&mut self, wrong: bool, text: impl FnOnce() -> String) {
        if wrong {
            self.0.push(text());
        }
    }

    fn range(&mut self, name: &str, value: i64, range: RangeInclusive<i64>) {
        self.when(!range.contains(&value), || {
            format!(
                "{name} is {value}, outside {}..{}",
                range.start(),
                range.end()
            )
        });
    }

    fn unique<'a>(&mut self, what: &str, names: impl Iterator<Item = &'a str>) {
        let mut seen = BTreeSet::new();
        for name in names {
            self.when(!seen.insert(name), || {
                format!("{what} `{name}` is listed twice")
            });
        }
    }
}

/// Every problem of a file.
pub(super) fn problems(file: &File) -> Vec<String> {
    let mut p = Problems(Vec::new());
    p.when(file.version != 1, || {
        format!("version is {}, this guard knows 1", file.version)
    });
    p.when(!is_name(&file.site), || {
        format!("site `{}` is no name", file.site)
    });
    limits(&mut p, file);
    identities(&mut p, file);
    people(&mut p, file);
    issuers_and_root(&mut p, file);
    p.unique("action", file.action.iter().map(|a| a.name.as_str()));
    for rule in &file.action {
        action(&mut p, file, rule);
    }
    for entry in &file.forbid {
        let known = entry.action == "*" || file.action.iter().any(|a| a.name == entry.action);
        p.when(!known, || {
            format!("forbid names the unknown action `{}`", entry.action)
        });
    }
    p.0
}

fn limits(p: &mut Problems, file: &File) {
    let l = &file.limits;
    p.range(
        "limits.pending_per_requester",
        l.pending_per_requester,
        1..=10_000,
    );
    p.range(
        "limits.proposals_per_requester_per_hour",
        l.proposals_per_requester_per_hour,
        1..=100_000,
    );
    p.range(
        "limits.refused_leaves_per_caller_per_minute",
        l.refused_leaves_per_caller_per_minute,
        1..=10_000,
    );
    p.range("limits.deny_cooldown_h", l.deny_cooldown_h, 0..=8_760);
}

fn identities(p: &mut Problems, file: &File) {
    p.unique("identity", file.identity.iter().map(|i| i.id.as_str()));
    let peers: Vec<String> = file.identity.iter().map(|i| i.peer.to_string()).collect();
    p.unique("peer", peers.iter().map(String::as_str));
    for identity in &file.identity {
        let id = &identity.id;
        p.when(!id.split('/').all(is_id), || {
            format!("identity `{id}` has no good id")
        });
        let api = matches!(identity.peer, Peer::Api(_)) && identity.role != Role::Agent;
        p.when(api, || {
            format!("identity `{id}`: a peer of the API has role `agent` only")
        });
        p.when(
            identity.role == Role::Agent && identity.tenants.is_empty(),
            || format!("identity `{id}` is an agent without tenants"),
        );
    }
}

fn people(p: &mut Problems, file: &File) {
    p.unique("person", file.person.iter().map(|x| x.id.as_str()));
    let subjects = file.person.iter().flat_map(|x| x.subjects.iter());
    p.unique("subject", subjects.map(String::as_str));
    let uids: Vec<String> = file
        .person
        .iter()
        .filter_map(|x| x.uid)
        .map(|uid| Peer::Uid(uid).to_string())
        .chain(file.identity.iter().filter_map(|i| match &i.peer {
            Peer::Uid(_) => Some(i.peer.to_string()),
            Peer::Internal(_) | Peer::Api(_) => None,
        }))
        .collect();
    let repeated: BTreeSet<&String> = uids
        .iter()
        .filter(|uid| uids.iter().filter(|other| other == uid).count() > 1)
        .collect();
    for uid in repeated {
        p.when(true, || format!("`{uid}` stands for more than one caller"));
    }
    for person in &file.person {
        let id = &person.id;
        p.when(!is_id(id), || format!("person `{id}` has no good id"));
        p.when(person.subjects.is_empty(), || {
            format!("person `{id}` has no subject")
        });
        for subject in &person.subjects {
            let good = subject.contains(':') && is_id(subject);
            p.when(!good, || {
                format!("subject `{subject}` of `{id}` is no subject")
            });
            let issuer = subject
                .strip_prefix("oidc:")
                .and_then(|rest| rest.split(':').next());
            let unknown = issuer.is_some_and(|name| file.issuer.iter().all(|i| i.id != name));
            p.when(unknown, || {
                format!("subject `{subject}` of `{id}` names an unknown issuer")
            });
        }
    }
}

fn issuers_and_root(p: &mut Problems, file: &File) {
    p.unique("issuer", file.issuer.iter().map(|i| i.id.as_str()));
    for issuer in &file.issuer {
        let bad = issuer.algs.is_empty()
            || issuer
                .algs
                .iter()
                .any(|alg| !matches!(alg.as_str(), "ES256" | "RS256"));
        p.when(bad, || {
            format!("issuer `{}`: algs are ES256 and RS256 only", issuer.id)
        });
        p.when(issuer.aud.is_empty(), || {
            format!("issuer `{}` has no client id", issuer.id)
        });
    }
    if let Some(root) = &file.root {
        let most = i64::try_from(root.keys.len()).unwrap_or(i64::MAX);
        p.range("root.threshold", root.threshold, 1..=most);
    }
}

fn action(p: &mut Problems, file: &File, rule: &ActionRule) {
    let name = &rule.name;
    p.when(!is_id(name), || format!("action `{name}` has no good name"));
    let role_of = |id: &str| file.identity.iter().find(|i| i.id == id).map(|i| i.role);
    for id in &rule.may_propose {
        p.when(role_of(id) != Some(Role::Agent), || {
            format!("action `{name}`: may_propose names `{id}`, which is no agent")
        });
    }
    for id in &rule.executors {
        let good = id == INTERNAL_WORKER || role_of(id) == Some(Role::Executor);
        p.when(!good, || {
            format!("action `{name}`: executors names `{id}`, which is no executor")
        });
    }
    groups(p, file, rule);
    p.range(
        &format!("action `{name}`: approvals"),
        rule.approvals,
        1..=100,
    );
    p.range(
        &format!("action `{name}`: pending_ttl_h"),
        rule.pending_ttl_h,
        1..=72,
    );
    p.range(
        &format!("action `{name}`: approval_ttl_s"),
        rule.approval_ttl_s,
        1..=600,
    );
    p.range(
        &format!("action `{name}`: effect_timeout_s"),
        rule.effect_timeout_s,
        1..=900,
    );
    for kind in [&rule.target.namespace, &rule.target.name] {
        p.when(!matches!(kind, Kind::Name {} | Kind::Id {}), || {
            format!("action `{name}`: target members are of type name or id")
        });
    }
    for (key, kind) in &rule.change {
        p.when(!is_id(key), || {
            format!("action `{name}`: parameter `{key}` has no good name")
        });
        match kind {
            Kind::Int { min, max } => {
                p.when(!(-MAX_INT <= *min && min <= max && *max <= MAX_INT), || {
                    format!("action `{name}`: bounds of `{key}` are out of order or range")
                });
            }
            Kind::Enum { values } => {
                p.when(
                    values.is_empty() || !values.iter().all(|v| is_id(v)),
                    || format!("action `{name}`: values of `{key}` are missing or no ids"),
                );
            }
            Kind::Name {} | Kind::Id {} | Kind::Bool {} | Kind::Sha256 {} => {}
        }
    }
    p.when(
        rule.min_assurance == Assurance::IdToken && file.issuer.is_empty(),
        || format!("action `{name}` asks an id_token and there is no issuer"),
    );
}

/// A group that no person belongs to is unknown (guard 2.1.3).
fn groups(p: &mut Problems, file: &File, rule: &ActionRule) {
    let name = &rule.name;
    for entry in rule.may_approve.iter().chain(&rule.must_include) {
        let known = entry
            .strip_prefix("group:")
            .is_some_and(|group| file.person.iter().any(|x| x.is_in(group)));
        p.when(!known, || {
            format!("action `{name}` names the unknown group `{entry}`")
        });
    }
    let most = file
        .person
        .iter()
        .filter(|x| {
            rule.may_approve
                .iter()
                .any(|g| x.is_in(g.trim_start_matches("group:")))
        })
        .count();
    p.when(
        rule.approvals > i64::try_from(most).unwrap_or(i64::MAX),
        || format!("action `{name}` asks more approvals than it has approvers"),
    );
}
