//! What every entity must bring (guardrails 3.4): hits, near misses, neighbours that must survive,
//! spellings of one value, and a generator.

use super::generate::{KINDS, Rng, plant};
use super::testing::{key, redact_with};
use super::{Options, Pack, Profile, Rules, entities};

struct Row {
    entity: &'static str,
    /// Kinds of the generator, or texts for what needs settings of a site.
    kinds: &'static [&'static str],
    hits: &'static [(&'static str, &'static str)],
    near: &'static [&'static str],
    neighbours: &'static [&'static str],
    /// Spells a value that the generator drew in another way.
    respell: fn(&str) -> String,
}

fn same(text: &str) -> String {
    text.to_owned()
}

fn without_signs(text: &str) -> String {
    text.replace([' ', '-'], "")
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row { entity: "privkey", kinds: &["privkey"], hits: &[], near: &["-----BEGIN CERTIFICATE-----", "PuTTY-User-Key-File-"], neighbours: &["SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"], respell: |t| t.replace('\n', "\r\n") },
    Row { entity: "keys", kinds: &["key.github", "key.gitlab", "key.aws", "key.gcp", "key.slack", "key.stripe", "key.pypi", "key.npm", "key.vault", "key.age"], hits: &[], near: &["glpat-mirror", "sk-learn", "npm_config_cache"], neighbours: &["commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904"], respell: same },
    Row { entity: "barekeys", kinds: &["key.terraform", "key.azure"], hits: &[], near: &["x.atlasv1.y", "sig=SIGTERM", "the APIM gateway"], neighbours: &["mac 00:AA:11:22:33:44"], respell: same },
    Row { entity: "jwt", kinds: &["jwt"], hits: &[], near: &["eyes.wide.shut", "eyJhIjoxfQ.eyJhIjoxfQ.x"], neighbours: &["keyboard.layout.us"], respell: same },
    Row { entity: "auth", kinds: &["auth", "cookie"], hits: &[], near: &["Authorization: Bearer", "authorization failed for user 7"], neighbours: &["authorization_status=granted"], respell: same },
    Row { entity: "urlcred", kinds: &["urlcred"], hits: &[], near: &["redis://:@cache:6379", "postgres://app:***@db/x"], neighbours: &["https://user@host.example.org/x"], respell: same },
    Row { entity: "secret", kinds: &["secret"], hits: &[], near: &["password=", "password=${DB}", "token: required"], neighbours: &["token_count=5120 secretary=ann"], respell: same },
    Row { entity: "pan", kinds: &["pan"], hits: &[], near: &["4111 1111 1111 1112", "card 1111"], neighbours: &["0.4111111111111111", "ts=1780000000123456"], respell: without_signs },
    Row { entity: "iban", kinds: &["iban"], hits: &[], near: &["DE00370400440532013000"], neighbours: &["de89a7b2c3d4e5f6a7b8c9d0"], respell: without_signs },
    Row { entity: "ssn", kinds: &["ssn"], hits: &[], near: &["000-12-3456", "666-12-3456"], neighbours: &["build 123-45-67890", "count 123456789"], respell: same },
    Row { entity: "natid", kinds: &[], hits: &[("dni 12345678Z", "12345678Z")], near: &["dni 12345678A"], neighbours: &["pid 12345678"], respell: |t| t.to_lowercase() },
    Row { entity: "email", kinds: &["email"], hits: &[], near: &["name@host", "pkg@1.2.3", "unit@x.service"], neighbours: &["java.lang.Object@1a2b3c4d"], respell: |t| t.to_uppercase() },
    Row { entity: "phone", kinds: &["phone"], hits: &[], near: &["+0200", "grew by +5368709120 bytes"], neighbours: &["4155552671", "lat +52.520008"], respell: |t| format!("{} {}", &t[..3], &t[3..]) },
    Row { entity: "term", kinds: &[], hits: &[("of Project Heron", "Project Heron")], near: &["project herons"], neighbours: &["project"], respell: |t| t.to_lowercase() },
    Row { entity: "entropy", kinds: &["entropy"], hits: &[], near: &["ReconcilePersistentVolumeClaim2HandlerFactoryBean"], neighbours: &["3f9a0c7be1d248655a3f9a0c7be1d248655a3f9a0c7be1d248655a"], respell: same },
    Row { entity: "network", kinds: &[], hits: &[("to 10.1.2.3", "10.1.2.3"), ("host=web-17", "web-17")], near: &["127.0.0.1", "2001:db8::1", "host=localhost"], neighbours: &["at 08:00:00", "std::fmt::Display"], respell: |t| format!("{}{t}", if t.starts_with("10") { "::ffff:" } else { "" }) },
];

/// Everything that a site can switch on.
fn all() -> Rules {
    Rules::new(Options {
        profile: Profile::Strict,
        packs: Pack::ALL.to_vec(),
        terms: vec!["Project Heron".to_owned()],
        ..Options::default()
    })
    .unwrap()
}

#[test]
fn r3_4_every_entity_has_hits_near_misses_neighbours_spellings_and_a_generator() {
    let entities: Vec<&str> = entities().collect();
    let rows: Vec<&str> = ROWS.iter().map(|row| row.entity).collect();
    assert_eq!(entities, rows, "one row for every entity, in its order");
    for row in ROWS {
        let lacks = row.near.is_empty()
            || row.neighbours.is_empty()
            || (row.kinds.is_empty() && row.hits.is_empty());
        assert!(!lacks, "{}", row.entity);
        assert!(
            row.kinds
                .iter()
                .all(|kind| KINDS.contains(kind) || *kind == "entropy"),
            "{}",
            row.entity
        );
    }
}

#[test]
fn hits_of_every_entity_go_and_one_value_has_one_token_in_every_spelling() {
    for row in ROWS {
        let mut rng = Rng::new(17);
        let drawn = row
            .kinds
            .iter()
            .flat_map(|kind| (0..5).map(|_| plant(kind, &mut rng)).collect::<Vec<_>>());
        let mut samples: Vec<(String, String)> = drawn
            .map(|planted| (planted.line(), planted.value))
            .collect();
        samples.extend(
            row.hits
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned())),
        );
        for (text, value) in samples {
            let id = |text: &str| {
                let (out, report) = redact_with(&all(), text);
                assert!(!out.contains(&value), "{}: {out}", row.entity);
                let token = report.findings.first().map(|f| f.token.clone());
                let token = token.unwrap_or_else(|| panic!("{}: {text}", row.entity));
                token[token.find(':').unwrap()..token.rfind('.').unwrap()].to_owned()
            };
            let other = text.replace(&value, &(row.respell)(&value));
            assert_eq!(id(&text), id(&other), "{}: {text} and {other}", row.entity);
        }
    }
}

#[test]
fn near_misses_and_neighbours_of_every_entity_survive_every_entity() {
    for row in ROWS {
        for text in row.near.iter().chain(row.neighbours) {
            let (out, report) = super::redact(text, &key());
            assert_eq!(out, *text, "{}: {:?}", row.entity, report.counts);
        }
    }
}
