//! TOTP as RFC 6238 with SHA-1, six digits and steps of 30 s (guard 2.2.2, protocols 6.5.1).

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use subtle::ConstantTimeEq;

use super::lockout::locked_until;
use crate::model::Millis;

/// Length of a step in seconds.
pub const STEP_S: i64 = 30;

/// How many steps a clock may be ahead or behind.
const SKEW: i64 = 1;

/// The six digits of `step`; `None` when the secret cannot key an HMAC.
#[must_use]
pub fn code(secret: &[u8], step: i64) -> Option<String> {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret).ok()?;
    mac.update(&step.to_be_bytes());
    let sum = mac.finalize().into_bytes();
    let offset = usize::from(sum.last()? & 0x0f);
    let four: [u8; 4] = sum.get(offset..offset + 4)?.try_into().ok()?;
    let number = (u32::from_be_bytes(four) & 0x7fff_ffff) % 1_000_000;
    Some(format!("{number:06}"))
}

/// The step of an instant.
#[must_use]
pub const fn step_at(now: Millis) -> i64 {
    now.0.div_euclid(1000 * STEP_S)
}

/// Judges a code: the step that it belongs to, later than `last`, at most one step off `now`.
///
/// The caller records the returned step in the transaction that acts on it, so that of two
/// racing uses of one code one wins (guard 2.2.2).
#[must_use]
pub fn accept(secret: &[u8], given: &str, now: Millis, last: Option<i64>) -> Option<i64> {
    let current = step_at(now);
    let mut found = None;
    for step in (current - SKEW)..=(current + SKEW) {
        let equal = code(secret, step)
            .is_some_and(|good| bool::from(good.as_bytes().ct_eq(given.as_bytes())));
        if equal && last.is_none_or(|last| step > last) {
            found = Some(step);
        }
    }
    found
}

/// What is kept about the one-time codes of a subject.
#[derive(Clone, PartialEq, Eq)]
pub struct Kept {
    /// The shared secret.
    pub secret: Vec<u8>,
    /// The last step that was accepted.
    pub last_step: Option<i64>,
    /// Wrong codes since the last right one, at logins and decisions together.
    pub failures: u32,
    /// When the last wrong one came.
    pub failed_at: Millis,
}

/// What a look at a code says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It holds; this step is to be used up with what it was given for.
    Step(i64),
    /// It is wrong, too old or was used before; it is to be counted.
    Wrong,
    /// Too many were wrong: none is looked at before this time.
    Locked(Millis),
}

impl Kept {
    /// Until when no code is looked at.
    #[must_use]
    pub fn locked_until(&self, now: Millis) -> Option<Millis> {
        locked_until(self.failures, self.failed_at).filter(|until| now < *until)
    }

    /// The one way to look at a code, for logins and decisions alike (guard 2.2.2).
    #[must_use]
    pub fn check(&self, given: &str, now: Millis) -> Checked {
        match self.locked_until(now) {
            Some(until) => Checked::Locked(until),
            None => accept(&self.secret, given, now, self.last_step)
                .map_or(Checked::Wrong, Checked::Step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Checked, Kept, accept, code, step_at};
    use crate::model::Millis;

    const SECRET: &[u8] = b"12345678901234567890";

    /// guard 2.2.2: the vectors of RFC 6238 appendix B, cut to six digits.
    #[test]
    fn codes_are_those_of_rfc_6238() {
        for (seconds, digits) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(
                code(SECRET, step_at(Millis(seconds * 1000))).as_deref(),
                Some(digits)
            );
        }
    }

    /// guard 2.2.2
    #[test]
    fn a_step_is_accepted_once_and_only_near_its_time() {
        let now = Millis(59_000);
        assert_eq!(accept(SECRET, "287082", now, None), Some(1));
        assert_eq!(accept(SECRET, "287082", now, Some(1)), None);
        assert_eq!(accept(SECRET, "287082", now, Some(2)), None);
        assert_eq!(accept(SECRET, "287082", Millis(89_000), None), Some(1));
        assert_eq!(accept(SECRET, "287082", Millis(90_000), None), None);
        assert_eq!(accept(SECRET, "28708", now, None), None);
        assert_eq!(accept(SECRET, "", now, None), None);
    }

    /// console 4.2
    #[test]
    fn after_five_wrong_codes_even_the_right_one_waits() {
        let now = Millis(59_000);
        let mut kept = Kept {
            secret: SECRET.to_vec(),
            last_step: None,
            failures: 4,
            failed_at: now,
        };
        assert_eq!(kept.check("287082", now), Checked::Step(1));
        assert_eq!(kept.check("287083", now), Checked::Wrong);
        kept.failures = 5;
        let until = Millis(89_000);
        assert_eq!(kept.check("287082", now), Checked::Locked(until));
        assert_eq!(kept.check("287082", Millis(88_999)), Checked::Locked(until));
        assert_eq!(kept.check("287082", until), Checked::Step(1));
    }
}
