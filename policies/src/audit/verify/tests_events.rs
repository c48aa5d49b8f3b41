//! Steps 5 to 9 and 11 of a bundle.

use super::testlog::{TestLog, edit, key, log_key, swap};
use super::tests_bundle::{VALID, invalid, judge, judge_since, parts, three_epochs, wrote};
use crate::audit::bundle::Wanted;
use crate::audit::{Checkpoint, EventType, NewEvent, Tree, hash_text, leaf_hash};

#[test]
fn audit_bundle_3_5_an_event_is_well_formed_and_in_its_place() {
    let log = TestLog::filled();
    let bundle = log.bundle(0, log.size());
    for (from, to) in [
        ("\"seq\":2", "\"seq\":3"),
        ("\"seq\":2", "\"seq\":-2"),
        (
            "\"inc\":1,\"job\":null,\"jti\":\"jti_act_a\",\"outcome\":\"approve\"",
            "\"inc\":2,\"job\":null,\"jti\":\"jti_act_a\",\"outcome\":\"approve\"",
        ),
        (
            "\"type\":\"decision.approved\"",
            "\"type\":\"decision.guessed\"",
        ),
        ("\"outcome\":\"approve\"", "\"outcome\":1"),
        ("\"id\":\"p_1\"", "\"id\":\"p_1\",\"idx\":\"x\""),
    ] {
        let said = judge(&log, &swap(&bundle, "event", from, to));
        assert_eq!(said, invalid("event", Some(2)), "{to}");
    }
    let big = "a".repeat(16_384);
    let big = swap(
        &bundle,
        "event",
        "\"boot\":\"b1\"",
        &format!("\"boot\":\"{big}\""),
    );
    assert_eq!(judge(&log, &big), invalid("event", Some(0)));
    for (kind, from, to) in [
        ("action.proposed", "\"need\":2", "\"need\":0"),
        ("action.proposed", "\"need\":2", "\"need\":101"),
        (
            "exec.outcome",
            "\"outcome\":\"succeeded\"",
            "\"outcome\":\"done\"",
        ),
    ] {
        let said = judge(&log, &swap(&bundle, "event", from, to));
        assert_eq!((said.0, said.1), (1, Some("event")), "{kind}");
    }
}

#[test]
fn audit_bundle_3_5_a_rotation_stands_at_the_end_of_its_epoch_only() {
    let mut log = TestLog::filled();
    let mut stray = TestLog::filled();
    stray.rotate();
    // The rotation of one log is a plain leaf of another, whose epoch goes on.
    let text = stray.events.last().unwrap().clone();
    log.leaves.push(leaf_hash(text.as_bytes()));
    log.events.push(text);
    assert_eq!(
        judge(&log, &log.bundle(0, log.size())),
        invalid("event", Some(10))
    );

    // An epoch that ends without a rotation leaf in the range it shows.
    let log = three_epochs();
    let mut parts = parts(&log, 0, 25);
    parts.events[10] = log.events[9].replacen("\"seq\":9", "\"seq\":10", 1);
    assert_eq!(judge(&log, &wrote(&parts)), invalid("event", Some(10)));
}

#[test]
fn audit_bundle_3_5_the_edited_leaf_is_named_and_not_its_neighbour() {
    let log = TestLog::filled();
    let bundle = log.bundle(0, log.size());
    let last = log.size() - 1;
    for k in 0..last {
        let edited = edit(&bundle, |lines| {
            let line = &mut lines[3 + k as usize];
            *line = line.replacen("\"boot\":\"b1\"", "\"boot\":\"b9\"", 1);
        });
        assert_eq!(judge(&log, &edited), invalid("prev", Some(k)), "leaf {k}");
    }
    let last_edited = edit(&bundle, |lines| {
        let line = &mut lines[3 + last as usize];
        *line = line.replacen("\"boot\":\"b1\"", "\"boot\":\"b9\"", 1);
    });
    assert_eq!(judge(&log, &last_edited), invalid("head", None));

    // A leaf whose own `prev` was edited: both it and the next one mismatch.
    let prev = hash_text(&log.leaves[3]);
    let edited = swap(&bundle, "event", &prev, &hash_text(&[1; 32]));
    assert_eq!(judge(&log, &edited), invalid("prev", Some(4)));
    let nulled = swap(&bundle, "event", &format!("\"{prev}\""), "null");
    assert_eq!(judge(&log, &nulled), invalid("prev", Some(4)));
    let first = swap(
        &bundle,
        "event",
        "\"prev\":null",
        &format!("\"prev\":\"{prev}\""),
    );
    assert_eq!(judge(&log, &first), invalid("prev", Some(0)));
    let partial = log.bundle(4, log.size());
    let headless = swap(&partial, "event", &format!("\"{prev}\""), "null");
    assert_eq!(judge(&log, &headless), invalid("prev", Some(4)));
}

#[test]
fn audit_bundle_3_5_the_high_water_time_never_falls() {
    let mut log = TestLog::filled();
    log.t_hwm -= 1000;
    let index = log.push(NewEvent::new(EventType::AdminUser));
    let said = judge(&log, &log.bundle(0, log.size()));
    assert_eq!(said, invalid("clock", Some(index)));
    assert_eq!(judge(&log, &log.bundle(index, log.size())), VALID);
}

#[test]
fn audit_bundle_3_5_an_event_names_the_epoch_that_owns_it() {
    let mut log = TestLog::filled();
    log.claimed_epoch = Some(2);
    let index = log.push(NewEvent::new(EventType::AdminUser));
    let said = judge(&log, &log.bundle(0, log.size()));
    assert_eq!(said, invalid("epoch_range", Some(index)));
}

#[test]
fn audit_bundle_3_6_the_range_has_exactly_its_hashes() {
    let log = TestLog::filled();
    let range = invalid("range", None);
    let mut more = parts(&log, 3, 7);
    more.outside.0.push([0; 32]);
    assert_eq!(judge(&log, &wrote(&more)), range);
    let mut fewer = parts(&log, 3, 7);
    fewer.outside.1.pop();
    assert_eq!(judge(&log, &wrote(&fewer)), range);
    let bundle = log.bundle(0, 7);
    for (from, to) in [("\"left\":[]", "\"left\":null"), ("\"left\"", "\"lefts\"")] {
        assert_eq!(judge(&log, &swap(&bundle, "range", from, to)), range);
    }
}

#[test]
fn audit_bundle_3_7_the_head_is_signed_by_the_epoch_of_the_last_event() {
    let log = three_epochs();
    let head = invalid("head", None);
    let with = |note: String| {
        let mut parts = parts(&log, 0, 25);
        parts.checkpoint = note;
        judge(&log, &wrote(&parts))
    };
    assert_eq!(with(log.head(28).sign(&[&log_key(3)])), VALID);
    assert_eq!(with(log.head(28).sign(&[&log_key(2)])), head);
    assert_eq!(with(log.head(27).sign(&[&log_key(3)])), head);
    assert_eq!(with(log.head(28).text()), head);
    let other_root = Checkpoint {
        root: [1; 32],
        ..log.head(28)
    };
    assert_eq!(with(other_root.sign(&[&log_key(3)])), head);
    let mut changed = parts(&log, 3, 7);
    changed.outside.0[0][0] ^= 1;
    assert_eq!(judge(&log, &wrote(&changed)), head);
    // Audit-bundle 1.3: a failing signature of any known key ends the note.
    let good = log.head(28).sign(&[&log_key(3)]);
    let stale = log.head(27).sign(&[&log_key(1)]);
    let line = stale.rsplit_once("\n\n").unwrap().1;
    assert_eq!(with(format!("{good}{line}")), head);
    let unknown = log.head(27).sign(&[&log_key(9)]);
    let line = unknown.rsplit_once("\n\n").unwrap().1;
    assert_eq!(with(format!("{good}{line}")), VALID);
}

#[test]
fn audit_bundle_3_8_a_closing_head_inside_the_range_has_the_root_of_its_leaves() {
    let log = three_epochs();
    // A head of size 11 over another history, signed by the right keys, with a rotation in it.
    let mut fork = TestLog::new();
    for _ in 0..10 {
        fork.push(NewEvent::new(EventType::AdminUser));
    }
    let text = &log.events[10];
    fork.leaves.push(leaf_hash(text.as_bytes()));
    let forked = |from: u64, to: u64| {
        let mut parts = parts(&log, from, to);
        let closing = parts.epochs[0].closing.as_mut().unwrap();
        closing.note = fork.head(11).sign(&[&log_key(1), &log_key(2)]);
        closing.proof = Tree::new(&fork.leaves).inclusion(10, 11).unwrap();
        judge(&log, &wrote(&parts))
    };
    assert_eq!(forked(0, 25), invalid("closing", Some(10)));
    assert_eq!(forked(5, 15), invalid("closing", Some(10)));
    assert_eq!(forked(12, 25), VALID, "it binds keys only");
    // The range ends before the epoch does: the head of `size` is the closing head.
    let mut short = parts(&log, 0, 5);
    assert_eq!(short.size, 11);
    let closing = short.epochs[0].closing.as_mut().unwrap();
    closing.note = fork.head(11).sign(&[&log_key(1), &log_key(2)]);
    closing.proof = Tree::new(&fork.leaves).inclusion(10, 11).unwrap();
    assert_eq!(judge(&log, &wrote(&short)), invalid("closing", Some(10)));
}

#[test]
fn audit_bundle_3_9_every_proposed_action_has_its_document() {
    let log = three_epochs();
    let mut cut = parts(&log, 0, 25);
    cut.docs.remove(0);
    assert_eq!(judge(&log, &wrote(&cut)), invalid("doc", Some(1)));
    let bundle = log.bundle(0, 25);
    let edited = swap(&bundle, "doc", "checkout", "payments");
    assert_eq!(judge(&log, &edited).1, Some("doc"));
    let mut stranger = parts(&log, 0, 5);
    stranger.docs.extend(log.docs.values().cloned());
    assert_eq!(judge(&log, &wrote(&stranger)), invalid("doc", None));
    let docs_of = |lines: &[String]| {
        lines
            .iter()
            .position(|l| l.starts_with("{\"doc\""))
            .unwrap()
    };
    let twice = edit(&bundle, |lines| {
        let at = docs_of(lines);
        lines.insert(at, lines[at].clone());
    });
    assert_eq!(judge(&log, &twice), invalid("doc", None));
    let unsorted = edit(&bundle, |lines| {
        let at = docs_of(lines);
        lines.swap(at, at + 1);
    });
    assert_eq!(judge(&log, &unsorted), invalid("doc", None));
    // A leaf of an earlier action's digest may bring its document.
    let mut allowed = parts(&log, 2, 5);
    allowed.docs = vec![log.docs[&hash_text(&log.digs["act_a"])].clone()];
    assert_eq!(judge(&log, &wrote(&allowed)), VALID);
}

#[test]
fn audit_bundle_3_9_personal_data_is_what_the_leaf_commits_to() {
    let log = TestLog::filled();
    let bundle = log.whole();
    for (from, to, index) in [
        ("more room", "less room", Some(1)),
        ("\"field\":\"reason\"", "\"field\":\"intent\"", Some(2)),
        ("\"field\":\"reason\"", "\"field\":\"motive\"", Some(2)),
        ("\"seq\":1", "\"seq\":99", Some(99)),
        ("\"seq\":1", "\"seq\":null", None),
        ("\"value\":\"more room\"", "\"value\":7", Some(1)),
        (
            "\"value\":\"more room\"",
            "\"value\":\"more room\",\"x\":1",
            Some(1),
        ),
    ] {
        let said = judge(&log, &swap(&bundle, "pii", from, to));
        assert_eq!(said, invalid("pii", index), "{to}");
    }
    let at = |lines: &[String]| {
        lines
            .iter()
            .position(|l| l.starts_with("{\"pii\""))
            .unwrap()
    };
    let twice = edit(&bundle, |lines| {
        let at = at(lines);
        lines.insert(at, lines[at].clone());
    });
    assert_eq!(judge(&log, &twice), invalid("pii", Some(1)));
    let unsorted = edit(&bundle, |lines| {
        let at = at(lines);
        lines.swap(at, at + 1);
    });
    assert_eq!(judge(&log, &unsorted), invalid("pii", Some(1)));
}

#[test]
fn audit_bundle_3_11_a_remembered_head_is_a_prefix() {
    let log = three_epochs();
    let bundle = |since: Option<u64>| {
        let wanted = Wanted {
            from: 12,
            to: 25,
            since,
            epochs_from: None,
        };
        wrote(&log.parts(wanted))
    };
    let head = |size| log.head(size).sign(&[&key("nobody knows")]);
    let since = invalid("since", None);
    for size in 0..=28 {
        let said = judge_since(&log, &bundle(Some(size)), Some(&head(size)));
        assert_eq!(said, VALID, "{size}");
    }
    assert_eq!(judge_since(&log, &bundle(None), Some(&head(28))), VALID);
    assert_eq!(judge_since(&log, &bundle(None), Some(&head(13))), since);
    assert_eq!(judge_since(&log, &bundle(Some(12)), Some(&head(13))), since);
    let forked = Checkpoint {
        root: [1; 32],
        ..log.head(13)
    };
    let forked = forked.sign(&[&log_key(1)]);
    assert_eq!(judge_since(&log, &bundle(Some(13)), Some(&forked)), since);
    let larger = Checkpoint {
        size: 29,
        ..log.head(28)
    };
    let larger = larger.sign(&[&log_key(1)]);
    assert_eq!(judge_since(&log, &bundle(None), Some(&larger)), since);
    let malformed = swap(&bundle(Some(13)), "consistency", "[", "[1,");
    assert_eq!(judge(&log, &malformed), since);
}
