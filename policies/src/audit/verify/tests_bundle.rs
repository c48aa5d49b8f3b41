//! Steps 1 to 4 of a bundle, and what holds for all of it.

use super::testlog::{ORIGIN, TestLog, cap_spki, edit, key, log_key, log_vkey, swap};
use super::*;
use crate::audit::Checkpoint;
use crate::audit::bundle::{Parts, Wanted, write_bundle};
use crate::canon::b64url;

pub(super) type Said = (u8, Option<&'static str>, Option<u64>);

pub(super) const VALID: Said = (0, None, None);

pub(super) const fn invalid(rule: &'static str, index: Option<u64>) -> Said {
    (1, Some(rule), index)
}

pub(super) fn judge(log: &TestLog, bundle: &str) -> Said {
    judge_since(log, bundle, None)
}

pub(super) fn judge_since(log: &TestLog, bundle: &str, since: Option<&str>) -> Said {
    let trust = log.trust().to_text();
    let since = since.map(str::as_bytes);
    let verdict = verify_bundle(bundle.as_bytes(), trust.as_bytes(), since);
    (
        verdict.exit(),
        verdict.rule.map(Rule::as_str),
        verdict.index,
    )
}

/// Three epochs: [0,11), [11,20), open from 20.
pub(super) fn three_epochs() -> TestLog {
    let mut log = TestLog::filled();
    log.rotate();
    log.whole_action("act_b");
    log.rotate();
    log.whole_action("act_c");
    log
}

pub(super) fn parts(log: &TestLog, from: u64, to: u64) -> Parts {
    let wanted = Wanted {
        from,
        to,
        ..Wanted::default()
    };
    log.parts(wanted)
}

pub(super) fn wrote(parts: &Parts) -> String {
    write_bundle(parts).unwrap()
}

#[test]
fn every_range_of_a_log_of_three_epochs_is_valid() {
    let log = three_epochs();
    assert_eq!(log.size(), 28);
    for from in 0..log.size() {
        for to in from + 1..=log.size() {
            if (from * 7 + to) % 5 == 0 || to == log.size() || to == 11 || from == 11 {
                assert_eq!(judge(&log, &log.bundle(from, to)), VALID, "[{from},{to})");
            }
        }
    }
    assert_eq!(judge(&log, &log.whole()), VALID);
    let late = Wanted {
        from: 21,
        to: 25,
        since: Some(13),
        epochs_from: Some(2),
    };
    let since = log.head(13).sign(&[&key("anything")]);
    let bundle = wrote(&log.parts(late));
    assert_eq!(judge_since(&log, &bundle, Some(&since)), VALID);
}

#[test]
fn any_bit_flip_over_a_small_bundle_is_found() {
    let mut log = TestLog::new();
    log.load_policy(1);
    log.propose("act_a", 1);
    log.approve("act_a", "p_1");
    let bundle = log.whole().into_bytes();
    let trust = log.trust().to_text();
    assert_eq!(verify_bundle(&bundle, trust.as_bytes(), None).exit(), 0);
    for bit in 0..bundle.len() * 8 {
        let mut flipped = bundle.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let verdict = verify_bundle(&flipped, trust.as_bytes(), None);
        assert_ne!(verdict.exit(), 0, "bit {bit}");
    }
}

#[test]
fn a_bit_flip_is_found_by_the_other_rules_too_when_the_end_hash_is_made_right() {
    let mut log = TestLog::new();
    log.load_policy(1);
    log.rotate();
    log.propose("act_a", 1);
    log.approve("act_a", "p_1");
    let wanted = Wanted {
        from: 0,
        to: log.size(),
        since: Some(3),
        epochs_from: None,
    };
    let mut parts = log.parts(wanted);
    parts.pii = log.pii.clone();
    let bundle = wrote(&parts);
    let since = log.head(3).sign(&[&key("x")]);
    assert_eq!(judge_since(&log, &bundle, Some(&since)), VALID);
    let body = bundle.trim_end().rfind('\n').unwrap();
    // Every line is hit many times; every byte would cost a third of the fast suite.
    for at in (0..body).step_by(7) {
        let mut flipped = bundle.clone().into_bytes();
        flipped[at] ^= 1 << (at % 7);
        let Ok(text) = String::from_utf8(flipped) else {
            continue;
        };
        let said = judge_since(&log, &edit(&text, |_| ()), Some(&since));
        assert_ne!(said.0, 0, "byte {at}");
    }
}

#[test]
fn a_bundle_cut_at_any_byte_is_found() {
    let log = TestLog::filled();
    let bundle = log.whole();
    let trust = log.trust().to_text();
    for end in 0..bundle.len() {
        let verdict = verify_bundle(&bundle.as_bytes()[..end], trust.as_bytes(), None);
        let wanted = if end < 11 { 3 } else { 1 };
        assert_eq!(verdict.exit(), wanted, "cut at {end}");
    }
}

#[test]
fn a_bundle_from_which_events_were_cut_to_fit_another_header_is_found() {
    let log = TestLog::filled();
    for (from, to) in [(1, 10), (0, 9), (2, 8)] {
        let mut cut = parts(&log, 0, 10);
        cut.from = from;
        cut.events = log.events[from as usize..to as usize].to_vec();
        cut.docs.truncate(usize::from(from < 2));
        assert_eq!(judge(&log, &wrote(&cut)), invalid("range", None));
        cut.outside = parts(&log, from, to).outside;
        assert_eq!(
            judge(&log, &wrote(&cut)),
            VALID,
            "it is the bundle of that range"
        );
    }
}

proptest::proptest! {
    #[test]
    fn no_input_makes_the_verifier_panic(
        at in 0usize..8000,
        junk in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
        cut in 0usize..80,
        number in -2i64..=crate::canon::MAX_INT,
    ) {
        let log = TestLog::filled();
        let bundle = log.bundle(0, 4).into_bytes();
        let at = at % bundle.len();
        let rest = bundle.get(at + cut..).unwrap_or_default();
        let mutated = [&bundle[..at], &junk, rest].concat();
        let trust = log.trust().to_text();
        let verdict = verify_bundle(&mutated, trust.as_bytes(), None);
        proptest::prop_assert!(verdict.exit() != 0 || mutated == bundle);
        for member in ["\"size\":10", "\"to\":4", "\"from\":0"] {
            let text = String::from_utf8_lossy(&bundle).into_owned();
            let name = member.rsplit_once(':').unwrap().0;
            let edited = text.replacen(member, &format!("{name}:{number}"), 1);
            let edited = edit(&edited, |_| ());
            let said = judge(&log, &edited);
            proptest::prop_assert!(said.0 != 0 || edited == text);
        }
    }
}

#[test]
fn audit_bundle_3_1_a_line_is_canonical_and_of_a_known_kind() {
    let log = TestLog::filled();
    let bundle = log.bundle(0, 3);
    let line = invalid("line", None);
    assert_eq!(judge(&log, bundle.trim_end()), line);
    assert_eq!(judge(&log, &format!("{bundle}\n")), line);
    assert_eq!(judge(&log, &bundle.replacen('\n', "\r\n", 1)), line);
    assert_eq!(judge(&log, &bundle.replacen("\n", "\n\n", 1)), line);
    for (kind, from, to) in [
        ("range", ":[]", ": []"),
        ("range", "{\"range\"", "{\"rang\""),
        ("range", "}}", "},\"x\":1}"),
        ("event", "\"b1\"", "\"\\u0062\\u0031\""),
        ("event", "\"v\":1", "\"v\":1.0"),
        ("event", "\"data\":{", "\"data\":{\"a\":[[[[[[1]]]]]],"),
    ] {
        assert_eq!(judge(&log, &swap(&bundle, kind, from, to)), line, "{to}");
    }
    let long = "a".repeat(65_536);
    let long = swap(&bundle, "event", "\"b1\"", &format!("\"{long}\""));
    assert_eq!(judge(&log, &long), line);
}

#[test]
fn audit_bundle_3_2_kinds_have_their_order_and_count() {
    let log = TestLog::filled();
    let bundle = log.whole();
    let order = invalid("order", None);
    let lines = bundle.lines().count();
    for i in 0..lines - 2 {
        let swapped = edit(&bundle, |lines| lines.swap(i, i + 1));
        assert_ne!(judge(&log, &swapped), VALID, "swap {i}");
    }
    fn starting(kind: &str) -> impl Fn(&String) -> bool {
        let head = format!("{{\"{kind}\"");
        move |line| line.starts_with(&head)
    }
    for kind in ["range", "checkpoint", "epoch"] {
        let cut = edit(&bundle, |lines| lines.retain(|line| !starting(kind)(line)));
        assert_eq!(judge(&log, &cut), order, "{kind} cut");
    }
    for kind in ["range", "checkpoint"] {
        let twice = edit(&bundle, |lines| {
            let at = lines.iter().position(starting(kind)).unwrap();
            lines.insert(at, lines[at].clone());
        });
        assert_eq!(judge(&log, &twice), order, "{kind} twice");
    }
    let without_end = bundle.rsplit_once("{\"end\"").unwrap().0;
    assert_eq!(judge(&log, without_end), order);
}

#[test]
fn audit_bundle_3_2_the_end_hash_covers_all_before_it() {
    let log = TestLog::filled();
    let edited = log.whole().replacen("\"b1\"", "\"b2\"", 1);
    assert_eq!(judge(&log, &edited), invalid("end", None));
}

#[test]
fn audit_bundle_3_2_the_header_has_its_limits() {
    let log = TestLog::filled();
    let bundle = log.bundle(1, 3);
    for (from, to) in [
        ("\"from\":1", "\"from\":0"),
        ("\"from\":1", "\"from\":3"),
        ("\"from\":1", "\"from\":-1"),
        ("\"to\":3", "\"to\":4"),
        ("\"size\":10", "\"size\":2"),
        ("\"inc\":1", "\"inc\":2"),
        ("\"inc\":1", "\"inc\":null"),
        ("\"v\":1", "\"v\":2"),
        ("\"v\":1", "\"v\":1,\"w\":1"),
        ("sentinel/1\"", "sentinel/12\""),
    ] {
        let edited = swap(&bundle, "bundle", from, to);
        assert_eq!(judge(&log, &edited), invalid("bundle", None), "{to}");
    }
    let cut = edit(&bundle, |lines| {
        let at = lines.iter().position(|line| line.starts_with("{\"event\""));
        lines.remove(at.unwrap());
    });
    assert_eq!(judge(&log, &cut), invalid("bundle", None), "an event cut");
}

#[test]
fn audit_bundle_3_3_the_root_certificate_is_that_of_the_first_epoch() {
    let mut log = three_epochs();
    log.certify(&["root/a"]);
    let bundle = log.bundle(0, log.size());
    let mut trust = log.trust();
    trust.roots = vec![VKey::new("root/a", key("root/a").verifying_key())];
    trust.threshold = 1;
    let judge = |bundle: &str| {
        let verdict = verify_bundle(bundle.as_bytes(), trust.to_text().as_bytes(), None);
        (verdict.exit(), verdict.rule.map(Rule::as_str))
    };
    assert_eq!(judge(&bundle), (0, None));
    for (from, to) in [
        ("sentinel-root/1", "sentinel-root/2"),
        ("\\n1\\n", "\\n2\\n"),
        (ORIGIN, "plant-8.example/sentinel/1"),
        ("\u{2014} root/a ", "\u{2014} root/a"),
    ] {
        let edited = swap(&bundle, "root", from, to);
        assert_eq!(judge(&edited), (1, Some("root_note")), "{to}");
    }
    let other_cap = swap(
        &bundle,
        "epoch",
        &b64url(&cap_spki(1)),
        &b64url(&cap_spki(9)),
    );
    assert_eq!(judge(&other_cap), (1, Some("root_note")));
    let wanted = Wanted {
        from: 20,
        to: 25,
        since: None,
        epochs_from: Some(2),
    };
    let mut late = log.parts(wanted);
    assert_eq!(late.root, None);
    late.root.clone_from(&log.root);
    assert_eq!(judge(&wrote(&late)), (1, Some("root_note")));
}

#[test]
fn audit_bundle_3_4_epoch_lines_follow_each_other() {
    let log = three_epochs();
    let bundle = log.bundle(0, log.size());
    let epoch = invalid("epoch", None);
    for (from, to) in [
        ("\"from\":0", "\"from\":1"),
        ("\"epoch\":1,\"from\":0", "\"epoch\":2,\"from\":0"),
        ("\"from\":20", "\"from\":21"),
        ("\"epoch\":3,\"from\":20", "\"epoch\":4,\"from\":20"),
        ("\"to\":11", "\"to\":29"),
        ("\"to\":11", "\"to\":0"),
        ("\"to\":11", "\"to\":null"),
        ("\"to\":null", "\"to\":27"),
        ("\"to\":11", "\"tn\":1,\"to\":11"),
        ("\"proof\":null", "\"proof\":[]"),
    ] {
        let said = judge(&log, &swap(&bundle, "epoch", from, to));
        // A change of a line that the rotation before it names is found there.
        let named = said.1 == Some("rotation") && to.contains("\"epoch\":4");
        assert!(said == epoch || named, "{to}: {said:?}");
    }
    let spki = b64url(&cap_spki(1));
    let short = swap(&bundle, "epoch", &spki, &spki[..120]);
    assert_eq!(judge(&log, &short), epoch);
    let mut late = parts(&log, 12, 25);
    late.epochs.remove(0);
    late.epochs.remove(0);
    assert_eq!(judge(&log, &wrote(&late)), epoch, "starts later than A");
    let mut middle = parts(&log, 0, 25);
    middle.epochs.remove(1);
    assert_eq!(judge(&log, &wrote(&middle)).0, 1, "an epoch cut");
    let mut open = parts(&log, 0, 15);
    open.size = 21;
    assert_eq!(
        judge(&log, &wrote(&open)),
        epoch,
        "another size than its closing"
    );
}

#[test]
fn audit_bundle_3_4_a_closing_head_is_signed_by_both_keys() {
    let log = three_epochs();
    let with_note = |size: u64, keys: &[u64]| {
        let mut parts = parts(&log, 0, 25);
        let keys: Vec<_> = keys.iter().map(|n| log_key(*n)).collect();
        let keys: Vec<_> = keys.iter().collect();
        parts.epochs[0].closing.as_mut().unwrap().note = log.head(size).sign(&keys);
        judge(&log, &wrote(&parts))
    };
    assert_eq!(with_note(11, &[1, 2]), VALID);
    assert_eq!(with_note(11, &[2, 1, 7]), VALID);
    for (size, keys) in [(11, &[1][..]), (11, &[2]), (11, &[1, 3]), (10, &[1, 2])] {
        assert_eq!(
            with_note(size, keys),
            invalid("closing", Some(10)),
            "{size} {keys:?}"
        );
    }
    let mut other_origin = parts(&log, 0, 25);
    let head = Checkpoint {
        origin: "x/sentinel/1".to_owned(),
        ..log.head(11)
    };
    let names = ["x/sentinel/1", ORIGIN];
    let keys = [log_key(1), log_key(2)];
    let signed = |name: usize, key: usize| (names[name], &keys[key]);
    other_origin.epochs[0].closing.as_mut().unwrap().note =
        crate::audit::sign_note(&head.text(), &[signed(0, 0), signed(1, 0), signed(1, 1)]);
    assert_eq!(
        judge(&log, &wrote(&other_origin)),
        invalid("closing", Some(10))
    );
}

#[test]
fn audit_bundle_3_4_the_rotation_is_the_last_leaf_and_names_the_next_keys() {
    let log = three_epochs();
    let rotation = invalid("rotation", Some(10));
    let change = |edit: fn(&TestLog, &mut Parts)| {
        let mut parts = parts(&log, 0, 25);
        edit(&log, &mut parts);
        judge(&log, &wrote(&parts))
    };
    let other_leaf = |log: &TestLog, parts: &mut Parts| {
        parts.epochs[0].closing.as_mut().unwrap().rotation = log.events[9].clone();
    };
    assert_eq!(change(other_leaf), rotation);
    let no_path = |_: &TestLog, parts: &mut Parts| {
        parts.epochs[0].closing.as_mut().unwrap().proof.clear();
    };
    assert_eq!(change(no_path), rotation);
    let other_cap = |_: &TestLog, parts: &mut Parts| parts.epochs[1].cap_spki = cap_spki(8);
    assert_eq!(change(other_cap), rotation);
    let other_log = |log: &TestLog, parts: &mut Parts| {
        parts.epochs[1].vkey = log_vkey(8).to_text();
        let note = log.head(11).sign(&[&log_key(1), &log_key(8)]);
        parts.epochs[0].closing.as_mut().unwrap().note = note;
    };
    assert_eq!(change(other_log), rotation);
}
