//! Passwords: argon2id with the parameters of console 4.1.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};

use super::secret;

/// Memory in KiB, passes, lanes.
type Cost = (u32, u32, u32);
/// What every password of an installed box costs.
const COST: Cost = (64 * 1024, 3, 1);
/// The tests log in dozens of times; all but one of them are not about this cost.
const COST_IN_FORCE: Cost = if cfg!(test) { (64, 1, 1) } else { COST };

/// Why a password cannot be taken or hashed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too short or too long.
    #[error("a password has 14 to 256 bytes")]
    Length,
    /// It contains the name of the person or of the site.
    #[error("a password does not contain the name of the person or of the site")]
    Name,
    /// The hash function refused.
    #[error("the password could not be hashed")]
    Hash,
    /// No salt.
    #[error(transparent)]
    Random(#[from] secret::NoRandom),
}

/// Checks the rules for a new password.
///
/// # Errors
/// [`Error::Length`] or [`Error::Name`].
pub fn judge(password: &str, person: &str, site: &str) -> Result<(), Error> {
    if !(14..=256).contains(&password.len()) {
        return Err(Error::Length);
    }
    let lower = password.to_lowercase();
    let contains = |name: &str| !name.is_empty() && lower.contains(&name.to_lowercase());
    if contains(person) || contains(site) {
        return Err(Error::Name);
    }
    Ok(())
}

/// Hashes a password: tens of milliseconds of one core and 64 MiB.
///
/// # Errors
/// [`Error`] when it fails.
pub fn hash(password: &str) -> Result<String, Error> {
    hash_at(COST_IN_FORCE, password)
}

fn hash_at(cost: Cost, password: &str) -> Result<String, Error> {
    let salt = secret::random::<16>()?;
    let hash: PasswordHash = function(cost)?
        .hash_password_with_salt(password.as_bytes(), &salt)
        .map_err(|_| Error::Hash)?;
    Ok(hash.to_string())
}

/// True when the password belongs to the hash.
#[must_use]
pub fn verify(password: &str, hash: &str) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else {
        return false;
    };
    // The parameters are those of the hash.
    function(COST_IN_FORCE)
        .is_ok_and(|argon2| argon2.verify_password(password.as_bytes(), &hash).is_ok())
}

fn function((memory, passes, lanes): Cost) -> Result<Argon2<'static>, Error> {
    let params = Params::new(memory, passes, lanes, None).map_err(|_| Error::Hash)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_names_its_parameters_and_knows_its_password_only() {
        let hashed = hash_at(COST, "correct horse battery").unwrap();
        assert!(
            hashed.starts_with("$argon2id$v=19$m=65536,t=3,p=1$"),
            "{hashed}"
        );
        assert!(verify("correct horse battery", &hashed));
        assert!(!verify("correct horse batterz", &hashed));
        assert!(!verify("correct horse battery", "no hash"));
    }

    #[test]
    fn short_long_and_name_bearing_passwords_are_refused() {
        assert!(matches!(judge("too short", "a", "s"), Err(Error::Length)));
        assert!(matches!(
            judge(&"x".repeat(257), "a", "s"),
            Err(Error::Length)
        ));
        assert!(matches!(
            judge("my name is Alice 42", "alice", "plant"),
            Err(Error::Name)
        ));
        assert!(judge("correct horse battery", "alice", "plant").is_ok());
    }
}
