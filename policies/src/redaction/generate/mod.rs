//! Seeded values, encodings, framings and clean logs, for tests and for the benchmark
//! (guardrails 13.1).
//!
//! Nothing here is a value of anybody: everything is drawn from a grammar with a seed, so that the
//! repository holds no text that looks like a secret, and any failure can be drawn again.

mod frames;
mod identifiers;
mod logs;
mod values;
mod views;

pub use frames::{FRAMES, Frame};
pub use identifiers::{IDENTIFIERS, identifier};
pub use logs::{dense_log, log};
pub use values::{KINDS, Planted, plant};
pub use views::{VIEWS, View};

/// A small generator of numbers: splitmix64 (Steele, Lea and Flood, 2014). Not for keys.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Begins at `seed`; one seed gives one sequence on every machine.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 for 0.
    pub fn below(&mut self, n: usize) -> usize {
        let n64 = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.bits() % n64).unwrap_or(0)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    /// One of `items`; the empty text when there is none.
    pub fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items.get(self.below(items.len())).copied().unwrap_or("")
    }

    /// `length` characters of an ASCII `alphabet`.
    pub fn text(&mut self, alphabet: &str, length: usize) -> String {
        let letters = alphabet.as_bytes();
        (0..length)
            .filter_map(|_| letters.get(self.below(letters.len())).copied())
            .map(char::from)
            .collect()
    }

    /// `length` bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.bits().to_le_bytes()[0]).collect()
    }
}

pub(super) const DIGITS: &str = "0123456789";
pub(super) const HEX: &str = "0123456789abcdef";
pub(super) const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
pub(super) const UPPER_DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
pub(super) const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
pub(super) const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(super) const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[cfg(test)]
mod tests {
    use crate::redaction::redact;
    use crate::redaction::testing::key;

    use super::{FRAMES, IDENTIFIERS, KINDS, Rng, VIEWS, identifier, log, plant};

    #[test]
    fn one_seed_gives_one_text_and_another_seed_another() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            let values: Vec<_> = KINDS
                .iter()
                .map(|kind| plant(kind, &mut rng).line())
                .collect();
            (values, log(&mut rng, 20_000))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn every_view_and_frame_changes_the_text_and_keeps_its_lines_together() {
        let mut rng = Rng::new(3);
        let planted = plant("email", &mut rng);
        for view in VIEWS {
            assert_ne!(view.encode(&planted.value, &mut rng), planted.value);
        }
        for frame in FRAMES {
            let framed = frame.wrap(&planted.line(), &mut rng);
            assert!(framed.ends_with('\n'), "{frame:?}: {framed}");
        }
        for class in IDENTIFIERS {
            assert!(!identifier(class, &mut rng).is_empty(), "{class}");
        }
    }

    #[test]
    fn planted_values_are_found_as_they_stand() {
        let mut rng = Rng::new(11);
        let mut left = Vec::new();
        for kind in KINDS {
            for _ in 0..40 {
                let planted = plant(kind, &mut rng);
                let line = planted.line();
                let (out, report) = redact(&line, &key());
                if out.contains(&planted.value) || report.total() == 0 {
                    left.push(line);
                }
            }
        }
        assert!(left.is_empty(), "{} left: {left:#?}", left.len());
    }

    #[test]
    fn identifiers_and_clean_logs_stay_byte_for_byte() {
        let mut rng = Rng::new(12);
        let mut changed = Vec::new();
        for class in IDENTIFIERS {
            for _ in 0..60 {
                let text = format!("see {} now", identifier(class, &mut rng));
                let (out, _) = redact(&text, &key());
                if out != text {
                    changed.push(format!("{class}: {out}"));
                }
            }
        }
        let clean = log(&mut rng, 300_000);
        let (out, _) = redact(&clean, &key());
        let pairs = clean.lines().zip(out.lines());
        changed.extend(pairs.filter(|(a, b)| a != b).map(|(_, b)| b.to_owned()));
        assert!(
            changed.is_empty(),
            "{} changed: {changed:#?}",
            changed.len()
        );
    }
}
