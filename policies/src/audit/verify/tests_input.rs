//! Precedence, trust, and single entries (audit-bundle 4, 5, 6).

use super::testlog::{ORIGIN, TestLog, edit, key, log_key};
use super::*;
use crate::audit::{Checkpoint, VKey};

fn said(verdict: &Verdict) -> (u8, Option<&'static str>, Option<u64>) {
    (
        verdict.exit(),
        verdict.rule.map(Rule::as_str),
        verdict.index,
    )
}

fn trust(log: &TestLog) -> Vec<u8> {
    log.trust().to_text().into_bytes()
}

#[test]
fn audit_bundle_6_2_the_rules_of_input_come_in_their_order() {
    let log = TestLog::filled();
    let (bundle, trust) = (log.whole(), trust(&log));
    let proof = log.proof(1, log.size(), 1).to_text();
    let (bundle, proof) = (Some(bundle.as_bytes()), Some(proof.as_bytes()));
    let (wrong, unreadable, absent) = (Some(&b"x"[..]), None, None);
    let good = TrustInput::File(Some(&trust));
    let bad = TrustInput::File(wrong);
    let cases = [
        (bundle, Some(wrong), absent, TrustInput::None, "usage"),
        (proof, absent, absent, TrustInput::None, "usage"),
        (proof, Some(wrong), Some(wrong), TrustInput::None, "usage"),
        (
            unreadable,
            absent,
            Some(unreadable),
            TrustInput::None,
            "no_trust",
        ),
        (unreadable, absent, Some(unreadable), bad, "trust_file"),
        (
            bundle,
            absent,
            absent,
            TrustInput::File(unreadable),
            "trust_file",
        ),
        (unreadable, absent, Some(unreadable), good, "since_file"),
        (bundle, absent, Some(wrong), good, "since_file"),
        (unreadable, absent, absent, good, "unreadable"),
        (proof, Some(unreadable), absent, good, "unreadable"),
        (wrong, absent, absent, good, "format"),
        (Some(&b""[..]), absent, absent, good, "format"),
    ];
    for (file, event, since, trust, rule) in cases {
        let verdict = verify(&Request {
            file,
            event,
            since,
            trust,
        });
        assert_eq!(said(&verdict), (3, Some(rule), None));
    }
}

#[test]
fn audit_bundle_6_1_whatever_is_wrong_after_the_first_bytes_is_invalid() {
    let log = TestLog::filled();
    let trust = trust(&log);
    let verdict = verify_bundle(b"{\"bundle\":{", &trust, None);
    assert_eq!(said(&verdict), (1, Some("line"), None));
    let verdict = verify_entry(b"c2sp.org/tlog-proof@v1\n", b"", &trust);
    assert_eq!(said(&verdict), (1, Some("proof"), None));
}

#[test]
fn audit_bundle_6_2_a_since_of_another_origin_is_judged_after_the_header() {
    let log = TestLog::filled();
    let trust = trust(&log);
    let other = Checkpoint {
        origin: "other/sentinel/1".to_owned(),
        ..log.head(2)
    };
    let since = other.sign(&[&key("other")]);
    let verdict = verify_bundle(log.whole().as_bytes(), &trust, Some(since.as_bytes()));
    assert_eq!(said(&verdict), (3, Some("since_file"), None));
    let broken = log.whole().replacen("\"v\":1}", "\"v\":2}", 1);
    let broken = edit(&broken, |_| ());
    let verdict = verify_bundle(broken.as_bytes(), &trust, Some(since.as_bytes()));
    assert_eq!(said(&verdict), (1, Some("bundle"), None));
    let unsigned = log.head(2).text();
    let verdict = verify_bundle(log.whole().as_bytes(), &trust, Some(unsigned.as_bytes()));
    assert_eq!(said(&verdict), (3, Some("since_file"), None));
}

#[test]
fn audit_bundle_4_4_trust_reaches_a_bundle_from_its_epoch_or_an_earlier_one() {
    let mut log = TestLog::filled();
    log.rotate();
    let second = log.size();
    log.whole_action("act_b");
    let bundle = log.bundle(second, log.size());
    let all = log.trust();
    let judge = |trust: &TrustFile| {
        let verdict = verify_bundle(bundle.as_bytes(), trust.to_text().as_bytes(), None);
        assert_eq!(verdict.size, Some(log.size()));
        (verdict.exit(), verdict.rule.map(Rule::as_str))
    };
    assert_eq!(judge(&all), (0, None));
    let only = |i: usize| TrustFile {
        epochs: vec![all.epochs[i].clone()],
        ..all.clone()
    };
    assert_eq!(judge(&only(0)), (0, None));
    assert_eq!(judge(&only(1)), (0, None));
    let untrusted = (2, Some("epoch_unreached"));
    assert_eq!(
        judge(&TrustFile {
            epochs: Vec::new(),
            ..all.clone()
        }),
        untrusted
    );
    let mut wrong = only(0);
    wrong.epochs[0].to = Some(second + 1);
    assert_eq!(judge(&wrong), untrusted);
    wrong.epochs[0].to = None;
    assert_eq!(judge(&wrong), (0, None));
    wrong.epochs[0].from = 1;
    assert_eq!(judge(&wrong), untrusted);
    let stranger = TrustFile {
        origins: vec!["x/sentinel/1".to_owned()],
        ..all.clone()
    };
    assert_eq!(judge(&stranger), (2, Some("origin_unknown")));

    // A range in the first epoch is not reached by a pin of the second: earlier ones do not follow.
    let earlier = log.bundle(0, log.size());
    let verdict = verify_bundle(earlier.as_bytes(), only(1).to_text().as_bytes(), None);
    assert_eq!(said(&verdict), (2, Some("epoch_unreached"), None));
}

#[test]
fn audit_bundle_4_3_a_certificate_counts_with_enough_distinct_roots() {
    let mut log = TestLog::filled();
    let root = |name: &str| VKey::new(name, key(name).verifying_key());
    let trust = TrustFile {
        epochs: Vec::new(),
        roots: vec![root("root/a"), root("root/b"), root("root/c")],
        threshold: 2,
        ..log.trust()
    };
    let mut judge = |roots: &[&str]| {
        log.certify(roots);
        let verdict = verify_bundle(log.whole().as_bytes(), trust.to_text().as_bytes(), None);
        (verdict.exit(), verdict.rule.map(Rule::as_str))
    };
    assert_eq!(judge(&["root/a", "root/c"]), (0, None));
    assert_eq!(judge(&["root/b"]), (2, Some("epoch_unreached")));
    assert_eq!(judge(&["root/b", "root/b"]), (2, Some("epoch_unreached")));
    assert_eq!(judge(&["root/b", "root/x"]), (2, Some("epoch_unreached")));
    let no_roots = TrustFile {
        roots: Vec::new(),
        threshold: 0,
        ..trust.clone()
    };
    let verdict = verify_bundle(log.whole().as_bytes(), no_roots.to_text().as_bytes(), None);
    assert_eq!(said(&verdict), (2, Some("epoch_unreached"), None));
}

#[test]
fn audit_bundle_5_an_entry_verifies_against_the_epoch_that_owns_it() {
    let mut log = TestLog::filled();
    log.rotate();
    let first = log.size();
    log.whole_action("act_b");
    let trust = trust(&log);
    let judge = |index: u64, size: u64, epoch: u64| {
        let proof = log.proof(index, size, epoch).to_text();
        let event = &log.events[index as usize];
        said(&verify_entry(proof.as_bytes(), event.as_bytes(), &trust))
    };
    for index in 0..first {
        assert_eq!(judge(index, first, 1), (0, None, None));
    }
    assert_eq!(judge(first, log.size(), 2), (0, None, None));
    assert_eq!(judge(0, log.size(), 2), (2, Some("key_untrusted"), None));
    assert_eq!(judge(0, first + 1, 1), (1, Some("epoch_range"), Some(0)));
    assert_eq!(
        judge(first, log.size(), 9),
        (2, Some("key_untrusted"), None)
    );
}

#[test]
fn audit_bundle_5_every_change_of_an_entry_is_found() {
    let log = TestLog::filled();
    let trust = trust(&log);
    let proof = log.proof(3, log.size(), 1).to_text();
    let event = log.events[3].clone();
    let judge =
        |proof: &str, event: &str| said(&verify_entry(proof.as_bytes(), event.as_bytes(), &trust));
    assert_eq!(judge(&proof, &format!("{event}\n")), (0, None, None));
    assert_eq!(
        judge(&proof, &format!("{event}\n\n")),
        (1, Some("event"), Some(3))
    );
    assert_eq!(judge(&proof, &log.events[2]), (1, Some("event"), Some(3)));
    let edited = event.replacen("\"b1\"", "\"b2\"", 1);
    assert_eq!(judge(&proof, &edited), (1, Some("proof"), Some(3)));
    let extra = proof.replacen("index", "extra AAAA\nindex", 1);
    assert_eq!(judge(&extra, &event), (1, Some("proof"), None));
    for bit in 0..event.len() * 8 {
        let mut bytes = event.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let verdict = verify_entry(proof.as_bytes(), &bytes, &trust);
        assert_ne!(verdict.exit(), 0, "event bit {bit}");
    }
    let from = proof.find("index").unwrap();
    for bit in from * 8..proof.len() * 8 {
        let mut bytes = proof.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let verdict = verify_entry(&bytes, event.as_bytes(), &trust);
        assert_ne!(verdict.exit(), 0, "proof bit {bit}");
    }
}

#[test]
fn audit_bundle_5_2_trust_of_an_entry_names_what_is_missing() {
    let log = TestLog::filled();
    let proof = log.proof(3, log.size(), 1).to_text();
    let judge = |trust: &TrustFile| {
        let event = log.events[3].as_bytes();
        let verdict = verify_entry(proof.as_bytes(), event, trust.to_text().as_bytes());
        (verdict.exit(), verdict.rule.map(Rule::as_str))
    };
    let all = log.trust();
    let stranger = TrustFile {
        origins: Vec::new(),
        ..all.clone()
    };
    assert_eq!(judge(&stranger), (2, Some("origin_unknown")));
    let mut later = all.clone();
    later.epochs[0].from = 4;
    assert_eq!(judge(&later), (2, Some("epoch_unreached")));
    let mut other = all.clone();
    other.epochs[0].vkey = VKey::new(ORIGIN, log_key(7).verifying_key()).to_text();
    assert_eq!(judge(&other), (2, Some("key_untrusted")));
    let mut renumbered = all;
    renumbered.epochs[0].epoch = 2;
    assert_eq!(judge(&renumbered), (1, Some("epoch_range")));
}

#[test]
fn audit_bundle_6_3_the_output_has_its_members_and_its_line() {
    let log = TestLog::filled();
    let verdict = verify_bundle(log.whole().as_bytes(), &trust(&log), None);
    let root = crate::audit::hash_text(&log.head(log.size()).root);
    assert_eq!(
        verdict.to_line(),
        format!("valid rule=- index=- size={} root={root}", log.size())
    );
    let failed = Verdict::from(Rule::Prev.at(Some(7)));
    assert_eq!(failed.to_line(), "invalid rule=prev index=7 size=- root=-");
    assert_eq!(
        failed.to_json(Some("/t")),
        "{\"exit\":1,\"index\":7,\"result\":\"invalid\",\"root\":null,\"rule\":\"prev\",\
         \"size\":null,\"trust\":\"/t\"}"
    );
}
