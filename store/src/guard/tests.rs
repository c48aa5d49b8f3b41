use policies::audit::EventType;
use policies::canon::Value;
use policies::guard::judge::{self, Context, Drawn, Propose};
use policies::guard::{Code, Leaf, Peer, Policy, State, Who};
use policies::model::Millis;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{Applied, Error, GuardDb, OpenOptions, Spent, Stamp};

const POLICY: &str = r#"
version = 1
site = "plant-7.example"
identity = [{ id = "agent/rca", role = "agent", peer = "internal:conductor", tenants = ["default"] }]
person = [{ id = "alice", subjects = ["local:alice"], groups = ["oncall"] }]
[[action]]
name = "restart"
may_propose = ["agent/rca"]
may_approve = ["group:oncall"]
executors = ["internal:worker"]
approvals = 1
min_assurance = "delegated"
effect_timeout_s = 120
target = { namespace = { type = "name" }, name = { type = "name" } }
change = { incident = { type = "id" } }
"#;

const T0: Millis = Millis(1_780_000_000_000);

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn options(&self) -> OpenOptions {
        OpenOptions {
            state_dir: self.0.path().join("state"),
            anchor_dir: self.0.path().join("anchor"),
            site: "plant-7.example".to_owned(),
            kek: [7; 32],
        }
    }

    fn open(&self) -> Result<GuardDb, Error> {
        GuardDb::open(&self.options(), &mut random()).map(|(db, _)| db)
    }

    fn sql(&self, text: &str) {
        let conn = Connection::open(self.0.path().join("state/guard.db")).unwrap();
        conn.execute_batch(text).unwrap();
    }
}

/// Bytes that differ from call to call; nothing here needs to be secret.
fn random() -> impl FnMut(&mut [u8]) {
    static NEXT: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(1);
    |bytes: &mut [u8]| {
        let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = next.wrapping_add(u8::try_from(at % 251).unwrap());
        }
    }
}

fn stamp(policy: &Policy) -> Stamp {
    Stamp {
        boot: "b1".to_owned(),
        wall: T0,
        now: T0,
        policy: Some(policy.hash().to_owned()),
    }
}

fn key() -> p256::ecdsa::SigningKey {
    p256::ecdsa::SigningKey::from_slice(&[3; 32]).unwrap()
}

/// Proposes one action and commits it.
fn propose(db: &mut GuardDb, policy: &Policy) -> Applied {
    let request = Propose {
        action: "restart".to_owned(),
        target: Value::map([
            ("name", Value::from("checkout")),
            ("namespace", Value::from("default")),
        ]),
        change: Value::map([("incident", Value::from("inc-42"))]),
        intent: "why".to_owned(),
        initiator: None,
    };
    let mut fill = random();
    let mut batch = db.begin(stamp(policy), &mut fill).unwrap();
    let ctx = Context {
        policy,
        now: T0,
        size: batch.size(),
        epoch: 1,
        inc: 1,
        blocked: None,
        on_hold: false,
    };
    let peer = Peer::Internal("conductor".to_owned());
    let bits = (Drawn([1; 16]), Drawn([2; 16]));
    let judged = judge::propose(&ctx, &peer, &request, bits, |requester, doc| {
        batch.propose_facts(requester, doc)
    })
    .unwrap();
    assert!(judged.answer.is_ok());
    let applied = batch.apply(judged.actions, judged.leaves).unwrap();
    batch.commit(|head| head.sign(&[&key()]), true).unwrap();
    applied
}

/// guard 6.3.3: leaves and rows together, or neither.
#[test]
fn a_batch_that_is_dropped_has_not_happened() {
    let folder = Folder::new();
    let policy = Policy::parse(POLICY).unwrap();
    let mut db = folder.open().unwrap();
    propose(&mut db, &policy);
    let (size, note) = (db.size(), db.checkpoint().to_owned());
    let mut fill = random();
    let mut batch = db.begin(stamp(&policy), &mut fill).unwrap();
    let leaf = Leaf::new(EventType::HoldSet, Who::Guard);
    batch.apply(Vec::new(), vec![leaf]).unwrap();
    assert_eq!(batch.size(), size + 1);
    drop(batch);
    assert_eq!((db.size(), db.checkpoint()), (size, note.as_str()));
    drop(db);
    assert_eq!(folder.open().unwrap().size(), size);
}

/// guard 4.1, 6.3.3
#[test]
fn a_change_that_is_no_arrow_and_a_change_of_an_old_revision_are_refused() {
    let folder = Folder::new();
    let policy = Policy::parse(POLICY).unwrap();
    let mut db = folder.open().unwrap();
    let action = propose(&mut db, &policy).actions.remove(0);
    let mut fill = random();
    let mut batch = db.begin(stamp(&policy), &mut fill).unwrap();
    let mut spent = action.clone();
    (spent.state, spent.revision) = (State::Spent, 1);
    let refused = batch.apply(vec![spent], Vec::new());
    assert!(matches!(refused, Err(Error::Arrow { .. })));
    let mut old = action;
    (old.state, old.revision) = (State::Expired, 7);
    let leaf = Leaf::new(EventType::ActionExpired, Who::Guard).of(&old);
    let refused = batch.apply(vec![old], vec![leaf]);
    assert!(matches!(refused, Err(Error::Race(_))));
}

/// guard 6.7, 10 L1
#[test]
fn one_edited_byte_of_a_leaf_is_named_at_open() {
    let folder = Folder::new();
    let policy = Policy::parse(POLICY).unwrap();
    propose(&mut folder.open().unwrap(), &policy);
    folder.sql("UPDATE leaf SET event = replace(event, 'b1', 'b2') WHERE seq = 0");
    assert!(matches!(folder.open(), Err(Error::Leaf(0))));
}

/// guard 1.5, 6.7: a row says nothing that its leaf does not.
#[test]
fn a_row_that_was_edited_is_not_read() {
    let folder = Folder::new();
    let policy = Policy::parse(POLICY).unwrap();
    let id = propose(&mut folder.open().unwrap(), &policy)
        .actions
        .remove(0)
        .id;
    folder.sql("UPDATE action SET state = 'approved', approval_expires_at = 1890000000000");
    let db = folder.open().unwrap();
    assert!(matches!(db.action(&id), Err(Error::Row { .. })));
    drop(db);
    folder.sql("UPDATE action SET state = 'pending', doc = replace(doc, 'checkout', 'payments')");
    assert!(matches!(
        folder.open().unwrap().action(&id),
        Err(Error::Row { .. })
    ));
}

/// guard 9.2.2, 10 L2
#[test]
fn a_log_without_its_newest_leaves_is_rolled_back_and_so_is_one_without_its_anchor() {
    let folder = Folder::new();
    let policy = Policy::parse(POLICY).unwrap();
    propose(&mut folder.open().unwrap(), &policy);
    std::fs::remove_file(folder.0.path().join("anchor/head")).unwrap();
    let db = folder.open().unwrap();
    assert_eq!(db.fault().unwrap().code, Code::RolledBack);
    drop(db);
    let other = Folder::new();
    propose(&mut other.open().unwrap(), &policy);
    std::fs::remove_dir_all(other.0.path().join("state")).unwrap();
    assert!(matches!(other.open(), Err(Error::Missing { .. })));
}

/// guard 9.2.1: a crash between COMMIT and the anchor, at the first commit too, is no rollback; a
/// torn slot leaves the other.
#[test]
fn an_anchor_that_lags_or_lost_one_slot_is_no_rollback() {
    let folder = Folder::new();
    let policy = Policy::parse(POLICY).unwrap();
    drop(folder.open().unwrap());
    let anchor = folder.0.path().join("anchor/head");
    let empty = std::fs::read(&anchor).unwrap();
    propose(&mut folder.open().unwrap(), &policy);
    let written = std::fs::read(&anchor).unwrap();
    assert_ne!(written, empty);
    std::fs::write(&anchor, &empty).unwrap();
    assert!(folder.open().unwrap().fault().is_none());
    for slot in [0, 1024] {
        let mut torn = std::fs::read(&anchor).unwrap();
        torn.resize(2048, b'\n');
        torn[slot + 60] ^= 1;
        std::fs::write(&anchor, &torn).unwrap();
        assert!(folder.open().unwrap().fault().is_none(), "slot at {slot}");
    }
}

/// guard 6.3.4: a crash between COMMIT and the copy leaves it behind, and the next start brings it
/// up; a copy that differs blocks.
#[test]
fn a_copy_that_lags_is_brought_up_and_one_that_differs_blocks() {
    let folder = Folder::new();
    let policy = Policy::parse(POLICY).unwrap();
    propose(&mut folder.open().unwrap(), &policy);
    let tail = folder.0.path().join("state/audit/1/tail");
    let whole = std::fs::read_to_string(&tail).unwrap();
    std::fs::write(&tail, &whole[..whole.len() / 2]).unwrap();
    assert!(folder.open().unwrap().fault().is_none());
    assert_eq!(std::fs::read_to_string(&tail).unwrap(), whole);
    std::fs::write(&tail, whole.replace("action.proposed", "action.deduped")).unwrap();
    let fault = folder.open().unwrap().fault().cloned().unwrap();
    assert_eq!(fault.code, Code::AuditBlocked);
    assert!(fault.cause.contains("differs"), "{}", fault.cause);
    std::fs::remove_file(&tail).unwrap();
    let fault = folder.open().unwrap().fault().cloned().unwrap();
    assert!(fault.cause.contains("missing"), "{}", fault.cause);
}

/// guard 6.3.1, 10 C5
#[test]
fn an_older_program_leaves_a_newer_database_as_it_is() {
    let folder = Folder::new();
    drop(folder.open().unwrap());
    folder.sql("PRAGMA user_version = 99");
    let path = folder.0.path().join("state/guard.db");
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(
        folder.open(),
        Err(Error::Newer {
            found: 99,
            known: 2
        })
    ));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// guard 7.3
#[test]
fn fences_of_a_job_only_rise_and_survive_a_restart() {
    let folder = Folder::new();
    let db = folder.open().unwrap();
    assert_eq!(db.next_fence("job-1").unwrap(), 1);
    assert_eq!(db.next_fence("job-1").unwrap(), 2);
    assert_eq!(db.next_fence("job-2").unwrap(), 1);
    drop(db);
    assert_eq!(folder.open().unwrap().next_fence("job-1").unwrap(), 3);
}

/// guard 6.4.1: the private halves are nowhere in the clear, and another key opens nothing.
#[test]
fn the_epochs_keys_are_wrapped() {
    let folder = Folder::new();
    let (db, keys) = GuardDb::open(&folder.options(), &mut random()).unwrap();
    let secret = keys.unwrap().log.to_bytes();
    drop(db);
    let file = std::fs::read(folder.0.path().join("state/epoch.key")).unwrap();
    assert!(!file.windows(32).any(|w| w == secret.as_slice()));
    let mut other = folder.options();
    other.kek = [8; 32];
    let (db, keys) = GuardDb::open(&other, &mut random()).unwrap();
    assert!(keys.is_none());
    assert_eq!(db.fault().unwrap().code, Code::KeyUnavailable);
}

/// design 1, guard 1.5: what releases an effect cannot be copied, stored or read back.
#[test]
fn a_spent_capability_is_moved_and_nothing_else() {
    static_assertions::assert_not_impl_any!(Spent: Clone, serde::Serialize, serde::de::DeserializeOwned);
    static_assertions::assert_not_impl_any!(super::Receipt: Clone, serde::Serialize, serde::de::DeserializeOwned);
    static_assertions::assert_not_impl_any!(super::EpochKeys: Clone, serde::Serialize, std::fmt::Display);
}

/// guard 8: fsync is not retried, and a full disk is no failed one.
#[test]
fn a_failed_sync_is_a_disk_failure_and_a_full_disk_or_a_missing_file_is_none() {
    let sqlite = |extended_code| {
        let error = rusqlite::ffi::Error::new(extended_code);
        Error::Sqlite(rusqlite::Error::SqliteFailure(error, None))
    };
    let file = |code| Error::File {
        path: "tail".into(),
        source: std::io::Error::from_raw_os_error(code),
    };
    assert!(sqlite(rusqlite::ffi::SQLITE_IOERR_FSYNC).is_disk_failure());
    assert!(sqlite(rusqlite::ffi::SQLITE_IOERR_WRITE).is_disk_failure());
    assert!(!sqlite(rusqlite::ffi::SQLITE_FULL).is_disk_failure());
    assert!(file(5).is_disk_failure());
    assert!(!file(2).is_disk_failure() && !file(28).is_disk_failure());
}
