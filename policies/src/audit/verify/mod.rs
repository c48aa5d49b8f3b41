//! The verifier of bundles and of single entries (audit-bundle 3 to 6): no network, no clock, no
//! optional checks. The order of the steps is part of the format: the first failure gives the rule.

mod bundle;
mod entry;
mod epochs;
mod events;
mod lines;
mod replay;
mod verdict;

#[cfg(test)]
mod testlog;
#[cfg(test)]
mod tests_bundle;
#[cfg(test)]
mod tests_events;
#[cfg(test)]
mod tests_input;
#[cfg(test)]
mod tests_replay;

use super::note::Checkpoint;
use super::{Note, TrustFile, VKey};

pub use verdict::{Outcome, Rule, Verdict};

use verdict::Fail;

/// What a step gives, or the failure that ends the verification.
type Step<T> = Result<T, Fail>;

/// A file as the caller found it; `None` where it cannot be read.
pub type Input<'a> = Option<&'a [u8]>;

/// The trust file as the caller found it (audit-bundle 4.5).
#[derive(Debug, Clone, Copy)]
pub enum TrustInput<'a> {
    /// None is named and none exists.
    None,
    /// One is chosen.
    File(Input<'a>),
}

/// One call of the verifier: `verify FILE [EVENT] [--since CHECKPOINT]`.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The bundle or the proof.
    pub file: Input<'a>,
    /// The event of a proof, where one is given.
    pub event: Option<Input<'a>>,
    /// `--since`, where it is given.
    pub since: Option<Input<'a>>,
    /// The trust file.
    pub trust: TrustInput<'a>,
}

const BUNDLE_HEAD: &[u8] = b"{\"bundle\":{";
const PROOF_HEAD: &[u8] = b"c2sp.org/tlog-proof@v1\n";

/// The kind of a file, told by its first bytes alone (audit-bundle 6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bundle,
    Proof,
    Unknown,
}

fn kind_of(bytes: &[u8]) -> Kind {
    if bytes.starts_with(BUNDLE_HEAD) {
        Kind::Bundle
    } else if bytes.starts_with(PROOF_HEAD) {
        Kind::Proof
    } else {
        Kind::Unknown
    }
}

/// Verifies what a caller found, in the order of audit-bundle 6.2.
#[must_use]
pub fn verify(request: &Request<'_>) -> Verdict {
    run(request).unwrap_or_else(Verdict::from)
}

/// Verifies a bundle; `since` is the checkpoint note that the caller remembers.
#[must_use]
pub fn verify_bundle(bytes: &[u8], trust: &[u8], since: Option<&[u8]>) -> Verdict {
    verify(&Request {
        file: Some(bytes),
        event: None,
        since: since.map(Some),
        trust: TrustInput::File(Some(trust)),
    })
}

/// Verifies one entry by its proof.
#[must_use]
pub fn verify_entry(proof: &[u8], event: &[u8], trust: &[u8]) -> Verdict {
    verify(&Request {
        file: Some(proof),
        event: Some(Some(event)),
        since: None,
        trust: TrustInput::File(Some(trust)),
    })
}

fn run(request: &Request<'_>) -> Step<Verdict> {
    let kind = request.file.map(kind_of);
    let misused = match kind {
        Some(Kind::Proof) => request.event.is_none() || request.since.is_some(),
        Some(Kind::Bundle) => request.event.is_some(),
        Some(Kind::Unknown) | None => false,
    };
    if misused {
        return Err(Rule::Usage.at(None));
    }
    let trust = match request.trust {
        TrustInput::None => return Err(Rule::NoTrust.at(None)),
        TrustInput::File(bytes) => bytes
            .and_then(|b| TrustFile::parse(b).ok())
            .ok_or(Rule::TrustFile.at(None))?,
    };
    let since = request.since.map(since_head).transpose()?;
    let unreadable = Rule::Unreadable.at(None);
    let file = request.file.ok_or(unreadable)?;
    match kind_of(file) {
        Kind::Bundle => bundle::verify(file, &trust, since.as_ref()),
        Kind::Proof => {
            let event = request.event.flatten().ok_or(unreadable)?;
            entry::verify(file, event, &trust)
        }
        Kind::Unknown => Err(Rule::Format.at(None)),
    }
}

/// The head that `--since` names; its signatures are not judged (audit-bundle 3.11).
fn since_head(input: Input<'_>) -> Step<Checkpoint> {
    let text = input.and_then(|bytes| std::str::from_utf8(bytes).ok());
    let head = text.and_then(|text| Checkpoint::parse(text).ok());
    head.map(|(head, _)| head).ok_or(Rule::SinceFile.at(None))
}

/// The keys that a verifier knows (audit-bundle 1.3): a failing signature of one ends a note.
struct Known(Vec<VKey>);

impl Known {
    /// The log keys of the trust file and those of the bundle's own epoch lines.
    fn new(trust: &TrustFile, lines: impl Iterator<Item = VKey>) -> Self {
        let pinned = trust.epochs.iter().filter_map(|e| VKey::parse(&e.vkey));
        Self(
            pinned
                .chain(lines)
                .chain(trust.roots.iter().cloned())
                .collect(),
        )
    }

    /// The head of a note that is good and signed by every key of `must`.
    fn head(&self, note: &str, must: &[&VKey]) -> Option<Checkpoint> {
        let (head, note) = Checkpoint::parse(note).ok()?;
        self.judge(&note)?;
        let signed = note.signers(must).ok()?;
        signed.iter().all(|s| *s).then_some(head)
    }

    /// `None` where a signature of a known key fails.
    fn judge(&self, note: &Note) -> Option<()> {
        let known: Vec<_> = self.0.iter().collect();
        note.signers(&known).ok().map(|_| ())
    }
}
