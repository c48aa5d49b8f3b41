//! The code that an authenticator would show (RFC 6238, SHA-1, six digits, steps of 30 s).

use anyhow::{Context, Result};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

const STEP_S: u64 = 30;

/// The secret of a person, and the last step that was used.
pub(super) struct Authenticator {
    secret: Vec<u8>,
    used: u64,
}

impl Authenticator {
    /// Takes the secret as a person would type it, in base32.
    pub(super) fn new(secret: &str) -> Result<Self> {
        let secret = secret.trim().trim_end_matches('=').to_ascii_uppercase();
        let secret = data_encoding::BASE32_NOPAD
            .decode(secret.as_bytes())
            .context("the secret of the authenticator is no base32")?;
        Ok(Self { secret, used: 0 })
    }

    /// A code that was not used before. A step is accepted once only, so this waits for the next
    /// one where the present one was used, as a person does.
    pub(super) fn fresh(&mut self) -> Result<String> {
        loop {
            let now = seconds()?;
            let step = now / STEP_S;
            if step > self.used {
                self.used = step;
                return code(&self.secret, step);
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }
}

fn seconds() -> Result<u64> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Ok(now.context("the clock stands before 1970")?.as_secs())
}

fn code(secret: &[u8], step: u64) -> Result<String> {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret).context("the secret keys no HMAC")?;
    mac.update(&step.to_be_bytes());
    let sum = mac.finalize().into_bytes();
    let offset = usize::from(sum.last().copied().unwrap_or_default() & 0x0f);
    let four: [u8; 4] = sum
        .get(offset..offset + 4)
        .and_then(|b| b.try_into().ok())
        .context("SHA-1 has 20 bytes")?;
    Ok(format!(
        "{:06}",
        (u32::from_be_bytes(four) & 0x7fff_ffff) % 1_000_000
    ))
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn codes_are_those_of_the_standard() {
        let secret = b"12345678901234567890";
        for (seconds, digits) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (2_000_000_000, "279037"),
        ] {
            assert_eq!(code(secret, seconds / 30).unwrap(), digits);
        }
    }
}
