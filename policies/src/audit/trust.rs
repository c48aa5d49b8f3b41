//! The trust file: what a verifier knows beforehand (audit-bundle 4.1).

use super::{Error, VKey};
use crate::canon::{self, Limits, Value};

const FORMAT: &str = "sentinel-trust/1";

/// No trust file of a real site comes near this; it bounds the parser.
const MAX_TRUST_BYTES: usize = 16 << 20;

/// An epoch whose key is pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedEpoch {
    /// The log.
    pub origin: String,
    /// The number.
    pub epoch: u64,
    /// Its first index.
    pub from: u64,
    /// One past its last index; `None` while it is open.
    pub to: Option<u64>,
    /// Its log key.
    pub vkey: String,
}

/// What a verifier trusts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustFile {
    /// The logs.
    pub origins: Vec<String>,
    /// The pinned epochs.
    pub epochs: Vec<PinnedEpoch>,
    /// The vkeys of the root keys.
    pub roots: Vec<VKey>,
    /// How many roots must sign a certificate; 0 without roots.
    pub threshold: u64,
}

impl TrustFile {
    /// The file's text, one JCS line.
    #[must_use]
    pub fn to_text(&self) -> String {
        let int = |n: u64| Value::Int(i64::try_from(n).unwrap_or(canon::MAX_INT));
        let text = |t: &String| Value::from(t.as_str());
        let epochs = self.epochs.iter().map(|pinned| {
            Value::map([
                ("origin", text(&pinned.origin)),
                ("epoch", int(pinned.epoch)),
                ("from", int(pinned.from)),
                ("to", pinned.to.map_or(Value::Null, int)),
                ("vkey", text(&pinned.vkey)),
            ])
        });
        let value = Value::map([
            ("format", Value::from(FORMAT)),
            (
                "origins",
                Value::List(self.origins.iter().map(text).collect()),
            ),
            ("epochs", Value::List(epochs.collect())),
            (
                "roots",
                Value::List(
                    self.roots
                        .iter()
                        .map(|r| Value::from(r.to_text()))
                        .collect(),
                ),
            ),
            ("threshold", int(self.threshold)),
        ]);
        let mut line = value.to_jcs();
        line.push('\n');
        line
    }

    /// Reads a trust file, any layout.
    ///
    /// # Errors
    /// Anything but audit-bundle 4.1.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let limits = Limits {
            max_bytes: MAX_TRUST_BYTES,
            max_depth: 8,
        };
        let value = canon::parse(bytes, limits).map_err(Error::Json)?;
        Self::from_value(&value).ok_or(Error::Malformed("trust file"))
    }

    fn from_value(value: &Value) -> Option<Self> {
        let members = value.exactly(&["format", "origins", "epochs", "roots", "threshold"])?;
        if members.get("format")?.as_text() != Some(FORMAT) {
            return None;
        }
        let origins = members.get("origins")?.as_list()?.iter();
        let epochs = members.get("epochs")?.as_list()?.iter();
        let roots = members.get("roots")?.as_list()?.iter();
        let file = Self {
            origins: origins
                .map(|o| o.as_text().map(str::to_owned))
                .collect::<Option<_>>()?,
            epochs: epochs.map(pinned).collect::<Option<_>>()?,
            roots: roots
                .map(|r| r.as_text().and_then(root_key))
                .collect::<Option<_>>()?,
            threshold: u64::try_from(members.get("threshold")?.as_int()?).ok()?,
        };
        let least = u64::from(!file.roots.is_empty());
        let fits = (least..=file.roots.len() as u64).contains(&file.threshold);
        fits.then_some(file)
    }
}

fn pinned(value: &Value) -> Option<PinnedEpoch> {
    let members = value.exactly(&["origin", "epoch", "from", "to", "vkey"])?;
    let number = |value: &Value| u64::try_from(value.as_int()?).ok();
    let vkey = members.get("vkey")?.as_text()?;
    VKey::parse(vkey)?;
    let to = match members.get("to")? {
        Value::Null => None,
        other => Some(number(other)?),
    };
    Some(PinnedEpoch {
        origin: members.get("origin")?.as_text()?.to_owned(),
        epoch: number(members.get("epoch")?)?,
        from: number(members.get("from")?)?,
        to,
        vkey: vkey.to_owned(),
    })
}

/// A root key: its name has the alphabet of audit-bundle 4.3.
fn root_key(text: &str) -> Option<VKey> {
    let key = VKey::parse(text)?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-');
    let good = key.name().len() <= 128 && key.name().bytes().all(plain);
    good.then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> TrustFile {
        let key = p256::ecdsa::SigningKey::from_slice(&[3; 32]).unwrap();
        let origin = "a.example/sentinel/1";
        TrustFile {
            origins: vec![origin.to_owned()],
            epochs: vec![PinnedEpoch {
                origin: origin.to_owned(),
                epoch: 1,
                from: 0,
                to: None,
                vkey: VKey::new(origin, key.verifying_key()).to_text(),
            }],
            roots: vec![VKey::new("root/a", key.verifying_key())],
            threshold: 1,
        }
    }

    #[test]
    fn audit_bundle_4_1_a_trust_file_reads_back_in_any_layout() {
        let text = file().to_text();
        assert_eq!(TrustFile::parse(text.as_bytes()), Ok(file()));
        let spaced = text.replace(',', ",\n  ");
        assert_eq!(TrustFile::parse(spaced.as_bytes()), Ok(file()));
    }

    #[test]
    fn audit_bundle_4_1_anything_else_is_refused() {
        let text = file().to_text();
        for bad in [
            text.replacen("\"threshold\":1", "\"threshold\":2", 1),
            text.replacen("\"threshold\":1", "\"threshold\":0", 1),
            text.replacen("trust/1", "trust/2", 1),
            text.replacen("\"to\":null", "\"to\":-1", 1),
            text.replacen("\"to\":null,", "", 1),
            text.replacen("root/a", "root a", 1),
            text.replacen("\"origins\"", "\"x\":1,\"origins\"", 1),
            String::new(),
        ] {
            assert!(TrustFile::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let rootless = TrustFile {
            roots: Vec::new(),
            threshold: 0,
            ..file()
        };
        assert!(TrustFile::parse(rootless.to_text().as_bytes()).is_ok());
    }
}
