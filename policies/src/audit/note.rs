//! Signed notes, checkpoints and root certificates (guard 6.2.2, audit-bundle 1.3 and 4.3).

use p256::ecdsa::SigningKey;

use super::keys::{VKey, sign, spki_der, verify};
use super::{Error, Hash};
use crate::canon::{MAX_INT, b64std, unb64std};

/// What each signature line starts with: an em dash and a space.
const DASH: &str = "\u{2014} ";

/// One line of signature.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SignatureLine {
    name: String,
    id: [u8; 4],
    der: Vec<u8>,
}

/// A note: text and signatures that parse, not yet judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<SignatureLine>,
}

/// Whether a text can name a key: not empty, no white space, no control character, no plus.
pub(super) fn is_name(name: &str) -> bool {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '+';
    !name.is_empty() && !name.contains(bad)
}

impl Note {
    /// Splits a note into its text and its signatures.
    ///
    /// # Errors
    /// The form is not that of audit-bundle 1.3, or a signature line does not parse.
    pub fn parse(note: &str) -> Result<Self, Error> {
        let bad = || Error::Malformed("note");
        let split = note.rfind("\n\n").ok_or_else(bad)?;
        let (text, rest) = note.split_at_checked(split + 1).ok_or_else(bad)?;
        if text.len() < 2 || text.chars().any(|c| c < ' ' && c != '\n') {
            return Err(bad());
        }
        let lines = rest.strip_prefix('\n').and_then(|l| l.strip_suffix('\n'));
        let signatures = lines
            .ok_or_else(bad)?
            .split('\n')
            .map(|line| SignatureLine::parse(line).ok_or_else(bad))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            text: text.to_owned(),
            signatures,
        })
    }

    /// The text, its final LF included: what is signed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Judges the signatures of the keys that the caller knows; for each key, whether it signed.
    ///
    /// # Errors
    /// A signature under a known key fails: the note is bad. Unknown ones are passed over.
    pub fn signers(&self, known: &[&VKey]) -> Result<Vec<bool>, Error> {
        let mut signed = vec![false; known.len()];
        for line in &self.signatures {
            for (key, seen) in known.iter().zip(&mut signed) {
                if key.name() != line.name || key.id() != line.id {
                    continue;
                }
                if !verify(key.key(), self.text.as_bytes(), &line.der) {
                    return Err(Error::Signature(line.name.clone()));
                }
                *seen = true;
            }
        }
        Ok(signed)
    }
}

impl SignatureLine {
    fn parse(line: &str) -> Option<Self> {
        let (name, body) = line.strip_prefix(DASH)?.split_once(' ')?;
        let body = unb64std(body)?;
        let (id, der) = body.split_first_chunk::<4>()?;
        (is_name(name) && !der.is_empty()).then(|| Self {
            name: name.to_owned(),
            id: *id,
            der: der.to_vec(),
        })
    }
}

/// Signs a text that ends in LF with each key under its name: the note.
#[must_use]
pub fn sign_note(text: &str, keys: &[(&str, &SigningKey)]) -> String {
    let mut note = format!("{text}\n");
    for (name, key) in keys {
        let mut body = VKey::new(name, key.verifying_key()).id().to_vec();
        body.extend_from_slice(&sign(key, text.as_bytes()));
        note.push_str(&format!("{DASH}{name} {}\n", b64std(&body)));
    }
    note
}

/// A tree head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log.
    pub origin: String,
    /// How many leaves.
    pub size: u64,
    /// The root over them.
    pub root: Hash,
}

impl Checkpoint {
    /// The three lines that are signed.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { origin, size, root } = self;
        format!("{origin}\n{size}\n{}\n", b64std(root))
    }

    /// The signed note; a closing head is signed by this and the next log key.
    #[must_use]
    pub fn sign(&self, keys: &[&SigningKey]) -> String {
        let named: Vec<_> = keys.iter().map(|k| (self.origin.as_str(), *k)).collect();
        sign_note(&self.text(), &named)
    }

    /// Reads the three lines of a checkpoint; extension lines are refused.
    ///
    /// # Errors
    /// The text is no such head.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        let read = || {
            let mut lines = text.strip_suffix('\n')?.split('\n');
            let (origin, size, root) = (lines.next()?, lines.next()?, lines.next()?);
            let whole = lines.next().is_none() && is_name(origin);
            let head = Self {
                origin: origin.to_owned(),
                size: plain_number(size)?,
                root: unb64std(root)?.try_into().ok()?,
            };
            whole.then_some(head)
        };
        read().ok_or(Error::Malformed("checkpoint"))
    }

    /// Reads a note whose text is a checkpoint.
    ///
    /// # Errors
    /// The note or the head is malformed; signatures are judged by [`Note::signers`].
    pub fn parse(note: &str) -> Result<(Self, Note), Error> {
        let note = Note::parse(note)?;
        Ok((Self::from_text(note.text())?, note))
    }
}

/// A number in its one decimal spelling, within 2^53-1.
pub(super) fn plain_number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    let small = number <= MAX_INT.unsigned_abs();
    (small && number.to_string() == text).then_some(number)
}

/// The five lines by which root keys certify the first epoch of an incarnation
/// (audit-bundle 4.3).
#[must_use]
pub fn certificate_text(epoch: u64, log: &VKey, cap: &p256::ecdsa::VerifyingKey) -> String {
    format!(
        "sentinel-root/1\n{}\n{epoch}\n{}\n{}\n",
        log.name(),
        log.to_text(),
        b64std(&spki_der(cap))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "plant-7.example/sentinel/1";

    fn key(n: u8) -> SigningKey {
        SigningKey::from_slice(&[n; 32]).unwrap()
    }

    fn head() -> Checkpoint {
        Checkpoint {
            origin: ORIGIN.to_owned(),
            size: 3,
            root: [9; 32],
        }
    }

    #[test]
    fn a_head_signed_by_two_keys_reads_back() {
        let note = head().sign(&[&key(1), &key(2)]);
        let (read, parsed) = Checkpoint::parse(&note).unwrap();
        assert_eq!(read, head());
        let keys = [1, 3, 2].map(|n| VKey::new(ORIGIN, key(n).verifying_key()));
        let known: Vec<_> = keys.iter().collect();
        assert_eq!(parsed.signers(&known), Ok(vec![true, false, true]));
    }

    #[test]
    fn audit_bundle_1_3_one_failing_signature_of_a_known_key_ends_the_note() {
        let good = head().sign(&[&key(1)]);
        let other = Checkpoint { size: 4, ..head() }.sign(&[&key(2)]);
        let line = other.rsplit_once("\n\n").unwrap().1;
        let note = Note::parse(&format!("{good}{line}")).unwrap();
        let (one, two) = (
            VKey::new(ORIGIN, key(1).verifying_key()),
            VKey::new(ORIGIN, key(2).verifying_key()),
        );
        assert_eq!(note.signers(&[&one]), Ok(vec![true]));
        assert!(note.signers(&[&one, &two]).is_err());
    }

    #[test]
    fn audit_bundle_1_3_a_malformed_line_ends_the_note() {
        let good = head().sign(&[&key(1)]);
        for bad in [
            good.replacen("\u{2014} ", "- ", 1),
            good.replacen("\n\n", "\n", 1),
            good.trim_end().to_owned(),
            format!("{good}\n"),
            format!("{good}\u{2014} x AAAAAA==\n"),
            format!("{good}\u{2014} x+y AAAAAAA=\n"),
            format!("{good}\u{2014}  AAAAAAA=\n"),
            good.replace("\u{2014} plant", "\u{2014} \u{a0}plant"),
            String::new(),
        ] {
            assert!(Note::parse(&bad).is_err(), "{bad}");
        }
        assert!(Note::parse(&format!("{good}\u{2014} x AAAAAAA=\n")).is_ok());
    }

    #[test]
    fn a_head_has_exactly_three_lines_in_one_spelling() {
        let good = head().text();
        for bad in [
            good.replacen("\n3\n", "\n03\n", 1),
            good.replacen("\n3\n", "\n+3\n", 1),
            good.replacen("\n3\n", "\n9007199254740992\n", 1),
            format!("{good}x\n"),
            good.replacen('=', "", 1),
            good.replacen(ORIGIN, "", 1),
        ] {
            assert!(Checkpoint::from_text(&bad).is_err(), "{bad}");
        }
    }
}
