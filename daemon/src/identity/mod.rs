//! Who is it: accounts, passwords, second factors and logins (console 4, protocols.md 6.5).
//!
//! Owns the way from a name, a password and a code to a login, and from a cookie to a person with
//! roles. The TOTP secret is the guard's: this module hands codes on and never sees one checked.
//! What a role may do is decided by the table of `console::routes`, what a person may approve by
//! the guard's policy.

pub mod password;
mod role;
pub mod secret;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use policies::guard::lockout::locked_until;
use policies::model::Millis;
use store::logins::{Login, Logins, Person};
use tokio::sync::Semaphore;

pub use role::Role;

/// Idle time after which a login ends.
const IDLE_MS: i64 = 30 * 60_000;
/// Time after which every login ends.
const ABSOLUTE_MS: i64 = 12 * 3_600_000;
/// A use is written down this often at most.
const TOUCH_MS: i64 = 30_000;
/// Passwords hashed at the same time: each takes 64 MiB.
const HASHES_AT_ONCE: usize = 2;

/// A future of the second factor.
pub type FactorFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// The second factor, kept and checked by the guard (guard 2.2.2).
pub trait SecondFactor: Send + Sync {
    /// Keeps a new secret for the person of a local account.
    fn enroll<'a>(&'a self, name: &'a str, secret: [u8; 20]) -> FactorFuture<'a, ()>;
    /// Until when no code of the person is looked at: too many were wrong, here or at a decision.
    fn locked<'a>(&'a self, name: &'a str) -> FactorFuture<'a, Option<Millis>>;
    /// True when the code is right and its time step was not used before. Counts a wrong one.
    fn check<'a>(&'a self, name: &'a str, code: &'a str) -> FactorFuture<'a, bool>;
}

/// Why identity could not answer. A wrong password is an answer, not an error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database.
    #[error(transparent)]
    Store(#[from] store::logins::Error),
    /// The password breaks a rule or could not be hashed.
    #[error(transparent)]
    Password(#[from] password::Error),
    /// No random bytes.
    #[error(transparent)]
    Random(#[from] secret::NoRandom),
    /// The name is no account name.
    #[error("`{0}` is no account name (lower-case letters, digits, `-` and `.`, at most 63)")]
    Name(String),
    /// The name is taken.
    #[error("`{0}` exists already")]
    Exists(String),
    /// The guard could not take or check a code.
    #[error("the guard could not handle the second factor: {0}")]
    Factor(String),
    /// A task of ours ended early.
    #[error("the check of the password was cut off")]
    Cut,
}

/// What became of a try to log in.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// A login, with the values of its two cookies.
    In(Cookies),
    /// No. Why is not said: the text is the same for every reason.
    Refused,
    /// Too many failures: no try is taken before this time.
    Wait(Millis),
}

/// The values of the two cookies of a login. Only their digests are stored.
#[derive(PartialEq, Eq)]
pub struct Cookies {
    /// Opens pages.
    pub id: String,
    /// Needed as well for every POST.
    pub write: String,
}

impl std::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cookies")
    }
}

/// What a new person needs to set up an authenticator; shown once.
pub struct Enrolled {
    /// The TOTP secret in base32.
    pub totp_secret: String,
    /// The same as an `otpauth:` address.
    pub totp_url: String,
}

impl std::fmt::Debug for Enrolled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Enrolled")
    }
}

/// A person who is logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Account name.
    pub name: String,
    /// Roles, as of this request.
    pub roles: Vec<Role>,
    /// True when the second cookie came too.
    pub may_write: bool,
    /// Digest of the first cookie: the login's name in memory and in form tokens.
    pub id: [u8; 32],
}

/// The service.
#[derive(Clone)]
pub struct Identity {
    shared: Arc<Shared>,
}

struct Shared {
    logins: Logins,
    factor: Arc<dyn SecondFactor>,
    site: String,
    hashing: Arc<Semaphore>,
    /// Hash of a password that nobody has: an unknown name costs what a known one costs.
    decoy: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// The service over its tables. Hashes one password: tens of milliseconds.
    ///
    /// # Errors
    /// [`Error`] when the system gives no random bytes or no memory for a hash.
    pub fn new(logins: Logins, factor: Arc<dyn SecondFactor>, site: String) -> Result<Self, Error> {
        let decoy = password::hash(&secret::token()?)?;
        Ok(Self {
            shared: Arc::new(Shared {
                logins,
                factor,
                site,
                hashing: Arc::new(Semaphore::new(HASHES_AT_ONCE)),
                decoy,
            }),
        })
    }

    /// Adds a person with a password and a new TOTP secret at the guard.
    ///
    /// # Errors
    /// [`Error`] when the name or the password is refused, or the guard takes no secret.
    pub async fn create_user(
        &self,
        name: &str,
        password: &str,
        roles: &[Role],
        now: Millis,
    ) -> Result<Enrolled, Error> {
        if !is_account_name(name) {
            return Err(Error::Name(name.to_owned()));
        }
        if self.shared.logins.person(name)?.is_some() {
            return Err(Error::Exists(name.to_owned()));
        }
        password::judge(password, name, &self.shared.site)?;
        let hash = self.hashed(password.to_owned()).await?;
        let totp = secret::totp_secret()?;
        // The guard first: an account that the store knows always has its second factor.
        self.shared.factor.enroll(name, totp).await?;
        let person = Person {
            name: name.to_owned(),
            password: hash,
            totp: true,
            roles: roles.iter().map(|role| role.word().to_owned()).collect(),
        };
        if !self.shared.logins.add_person(&person, now)? {
            return Err(Error::Exists(name.to_owned()));
        }
        Ok(Enrolled {
            totp_secret: secret::totp_text(&totp),
            totp_url: secret::totp_url(&self.shared.site, name, &totp),
        })
    }

    /// Tries to log in.
    ///
    /// # Errors
    /// [`Error`] when it could not be found out whether the try is good; it counts as nothing then.
    pub async fn log_in(
        &self,
        name: &str,
        password: &str,
        code: &str,
        now: Millis,
    ) -> Result<Answer, Error> {
        let logins = &self.shared.logins;
        let tried = secret::digest(name);
        // Passwords are counted by the name that was tried, codes by the guard. Both are asked before
        // the password is looked at, so that the answer does not tell whether it was right.
        let password_lock = logins
            .failures(&tried)?
            .and_then(|(failures, last)| locked_until(failures, last));
        let code_lock = self.shared.factor.locked(name).await?;
        if let Some(until) = password_lock.max(code_lock).filter(|until| now < *until) {
            return Ok(Answer::Wait(until));
        }
        let person = logins.person(name)?;
        let hash = person
            .as_ref()
            .map_or(&self.shared.decoy, |person| &person.password);
        let right = self.verified(password.to_owned(), hash.clone()).await?;
        let Some(person) = person.filter(|_| right) else {
            logins.fail(&tried, now)?;
            return Ok(Answer::Refused);
        };
        if person.totp && !self.shared.factor.check(&person.name, code).await? {
            return Ok(Answer::Refused);
        }
        logins.forgive(&tried)?;
        logins.prune(now.plus(-IDLE_MS), now.plus(-ABSOLUTE_MS))?;
        let cookies = Cookies {
            id: secret::token()?,
            write: secret::token()?,
        };
        logins.begin(
            &secret::digest(&cookies.id),
            &secret::digest(&cookies.write),
            &person.name,
            now,
        )?;
        Ok(Answer::In(cookies))
    }

    /// The person behind a cookie. `by_person` is false for requests that a script makes by
    /// itself: they do not keep a login alive.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn resume(
        &self,
        id: &str,
        write: Option<&str>,
        by_person: bool,
        now: Millis,
    ) -> Result<Option<Session>, Error> {
        let id = secret::digest(id);
        let Some(login) = self.in_force(&id, now)? else {
            return Ok(None);
        };
        if by_person && now.since(login.seen_at) >= TOUCH_MS {
            self.shared.logins.touch(&id, now)?;
        }
        // Digests are compared, so the time this takes says nothing about the cookie.
        let may_write = write.is_some_and(|write| secret::digest(write) == login.write_secret);
        Ok(Some(Session {
            name: login.person,
            roles: login
                .roles
                .iter()
                .filter_map(|word| Role::from_word(word))
                .collect(),
            may_write,
            id,
        }))
    }

    /// True while a login is in force, for a stream that stays open.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn holds(&self, id: &[u8; 32], now: Millis) -> Result<bool, Error> {
        Ok(self.in_force(id, now)?.is_some())
    }

    /// Ends a login.
    ///
    /// # Errors
    /// [`Error`] of the database.
    pub fn log_out(&self, id: &[u8; 32]) -> Result<(), Error> {
        Ok(self.shared.logins.end(id)?)
    }

    fn in_force(&self, id: &[u8; 32], now: Millis) -> Result<Option<Login>, Error> {
        Ok(self.shared.logins.login(id)?.filter(|login| {
            now.since(login.seen_at) < IDLE_MS && now.since(login.created_at) < ABSOLUTE_MS
        }))
    }

    async fn hashed(&self, password: String) -> Result<String, Error> {
        self.blocking(move || password::hash(&password))
            .await?
            .map_err(Error::from)
    }

    async fn verified(&self, password: String, hash: String) -> Result<bool, Error> {
        self.blocking(move || password::verify(&password, &hash))
            .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let permit = Arc::clone(&self.shared.hashing)
            .acquire_owned()
            .await
            .map_err(|_| Error::Cut)?;
        let done = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(permit);
            result
        });
        done.await.map_err(|_| Error::Cut)
    }
}

/// The type `name` of the policy file (guard 2.4.3).
fn is_account_name(name: &str) -> bool {
    let edge = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.bytes().all(|c| edge(c) || matches!(c, b'-' | b'.'))
        && name.bytes().next().is_some_and(edge)
        && name.bytes().next_back().is_some_and(edge)
}

#[cfg(test)]
mod tests;
