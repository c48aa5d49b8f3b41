//! The `.tlog-proof` text of one entry (C2SP `tlog-proof@v1`, guard 6.2.3, audit-bundle 5).

use super::note::plain_number;
use super::{Error, Hash};
use crate::canon::{b64std, unb64std};

const HEAD: &str = "c2sp.org/tlog-proof@v1\n";

/// A leaf's path and the signed head that it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryProof {
    /// The leaf index.
    pub index: u64,
    /// The path, from the leaf up.
    pub path: Vec<Hash>,
    /// The checkpoint note.
    pub checkpoint: String,
}

impl EntryProof {
    /// The text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}index {}\n", self.index);
        for hash in &self.path {
            text.push_str(&b64std(hash));
            text.push('\n');
        }
        text.push('\n');
        text.push_str(&self.checkpoint);
        text
    }

    /// Reads the text; an `extra` line is refused, the checkpoint is not judged.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let read = || {
            let (lines, checkpoint) = text.strip_prefix(HEAD)?.split_once("\n\n")?;
            let mut lines = lines.split('\n');
            let index = plain_number(lines.next()?.strip_prefix("index ")?)?;
            let path = lines
                .map(|line| unb64std(line)?.try_into().ok())
                .collect::<Option<Vec<Hash>>>()?;
            Some(Self {
                index,
                path,
                checkpoint: checkpoint.to_owned(),
            })
        };
        read().ok_or(Error::Malformed("entry proof"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_reads_back_and_an_extra_line_is_refused() {
        for path in [vec![], vec![[1; 32], [2; 32]]] {
            let proof = EntryProof {
                index: 7,
                path,
                checkpoint: "o\n8\nx\n\n\u{2014} o y\n".to_owned(),
            };
            let text = proof.to_text();
            assert_eq!(EntryProof::parse(&text), Ok(proof));
            for bad in [
                text.replacen("index", "extra AAAA\nindex", 1),
                text.replacen("index 7", "index 07", 1),
                text.replacen("v1", "v2", 1),
                text.replacen("\n\n", "\nAAAA\n\n", 1),
            ] {
                assert!(EntryProof::parse(&bad).is_err(), "{bad}");
            }
        }
    }
}
