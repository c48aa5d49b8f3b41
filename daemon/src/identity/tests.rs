use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::*;

/// A guard that takes the code `name` + a number once.
#[derive(Default)]
struct Codes {
    secrets: Mutex<BTreeMap<String, [u8; 20]>>,
    used: Mutex<BTreeSet<String>>,
    locked: Mutex<BTreeMap<String, Millis>>,
}

impl SecondFactor for Codes {
    fn enroll<'a>(&'a self, name: &'a str, secret: [u8; 20]) -> FactorFuture<'a, ()> {
        Box::pin(async move {
            self.secrets.lock().unwrap().insert(name.to_owned(), secret);
            Ok(())
        })
    }

    fn locked<'a>(&'a self, name: &'a str) -> FactorFuture<'a, Option<Millis>> {
        Box::pin(async move { Ok(self.locked.lock().unwrap().get(name).copied()) })
    }

    fn check<'a>(&'a self, name: &'a str, code: &'a str) -> FactorFuture<'a, bool> {
        Box::pin(async move {
            let known = self.secrets.lock().unwrap().contains_key(name);
            let fresh = self.used.lock().unwrap().insert(format!("{name} {code}"));
            Ok(known && fresh && code.starts_with("1"))
        })
    }
}

const PASSWORD: &str = "correct horse battery";
const NOW: Millis = Millis(1_780_000_000_000);

async fn site() -> (tempfile::TempDir, Identity) {
    site_of(Arc::new(Codes::default())).await
}

async fn site_of(codes: Arc<Codes>) -> (tempfile::TempDir, Identity) {
    let folder = tempfile::tempdir().unwrap();
    let logins = Logins::open(&folder.path().join("sentinel.db")).unwrap();
    let identity = Identity::new(logins, codes, "plant-7".to_owned()).unwrap();
    identity
        .create_user("alice", PASSWORD, &[Role::Approver], NOW)
        .await
        .unwrap();
    (folder, identity)
}

async fn cookies(identity: &Identity, code: &str) -> Cookies {
    match identity.log_in("alice", PASSWORD, code, NOW).await.unwrap() {
        Answer::In(cookies) => cookies,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_person_logs_in_with_password_and_code_and_is_known_by_both_cookies() {
    let (_folder, identity) = site().await;
    let cookies = cookies(&identity, "100000").await;
    let session = identity
        .resume(&cookies.id, Some(&cookies.write), true, NOW)
        .unwrap()
        .unwrap();
    assert_eq!((session.name.as_str(), session.may_write), ("alice", true));
    assert_eq!(session.roles, [Role::Approver]);
    for write in [None, Some("guess"), Some(cookies.id.as_str())] {
        let session = identity.resume(&cookies.id, write, true, NOW).unwrap();
        assert!(!session.unwrap().may_write);
    }
    assert_eq!(identity.resume("guess", None, true, NOW).unwrap(), None);
    identity.log_out(&session.id).unwrap();
    assert_eq!(identity.resume(&cookies.id, None, true, NOW).unwrap(), None);
}

#[tokio::test]
async fn a_code_is_taken_once() {
    let (_folder, identity) = site().await;
    cookies(&identity, "100001").await;
    let again = identity.log_in("alice", PASSWORD, "100001", NOW).await;
    assert_eq!(again.unwrap(), Answer::Refused);
}

#[tokio::test]
async fn unknown_names_and_wrong_passwords_get_the_same_answer_and_the_same_delay() {
    let (_folder, identity) = site().await;
    for (name, password) in [("alice", "wrong password!"), ("nobody", PASSWORD)] {
        for _ in 0..5 {
            let answer = identity
                .log_in(name, password, "100002", NOW)
                .await
                .unwrap();
            assert_eq!(answer, Answer::Refused);
        }
        let answer = identity
            .log_in(name, password, "100002", NOW)
            .await
            .unwrap();
        assert_eq!(answer, Answer::Wait(NOW.plus(30_000)));
    }
    let later = NOW.plus(30_000);
    let answer = identity.log_in("alice", PASSWORD, "100003", later).await;
    assert!(matches!(answer.unwrap(), Answer::In(_)));
}

/// console 4.2: the delay for codes is the guard's, and says nothing about the password.
#[tokio::test]
async fn while_the_guard_looks_at_no_code_a_right_and_a_wrong_password_wait_alike() {
    let codes = Arc::new(Codes::default());
    let (_folder, identity) = site_of(Arc::clone(&codes)).await;
    let until = NOW.plus(60_000);
    codes
        .locked
        .lock()
        .unwrap()
        .insert("alice".to_owned(), until);
    for password in [PASSWORD, "wrong password!"] {
        let answer = identity.log_in("alice", password, "100005", NOW).await;
        assert_eq!(answer.unwrap(), Answer::Wait(until));
    }
    let answer = identity.log_in("alice", PASSWORD, "100005", until).await;
    assert!(matches!(answer.unwrap(), Answer::In(_)));
}

#[tokio::test]
async fn a_login_ends_when_idle_and_after_twelve_hours() {
    let (_folder, identity) = site().await;
    let cookies = cookies(&identity, "100004").await;
    let resume = |by_person, at: Millis| {
        let found = identity.resume(&cookies.id, None, by_person, at).unwrap();
        found.is_some()
    };
    let minute = 60_000;
    assert!(resume(false, NOW.plus(29 * minute)));
    assert!(
        !resume(false, NOW.plus(30 * minute)),
        "a script kept it alive"
    );
    let mut at = NOW;
    while at.since(NOW) < ABSOLUTE_MS - 20 * minute {
        at = at.plus(20 * minute);
        assert!(resume(true, at));
    }
    assert!(!resume(true, NOW.plus(ABSOLUTE_MS)));
}

#[tokio::test]
async fn names_and_passwords_that_break_a_rule_are_refused() {
    let (_folder, identity) = site().await;
    let create = async |name: &str, password: &str| {
        let made = identity.create_user(name, password, &[Role::Viewer], NOW);
        made.await.map(drop)
    };
    assert!(matches!(
        create("Alice", PASSWORD).await,
        Err(Error::Name(_))
    ));
    assert!(matches!(create("-a", PASSWORD).await, Err(Error::Name(_))));
    assert!(matches!(
        create("alice", PASSWORD).await,
        Err(Error::Exists(_))
    ));
    assert!(matches!(
        create("bob", "short").await,
        Err(Error::Password(_))
    ));
    assert!(create("bob", PASSWORD).await.is_ok());
}
