//! The two keys of a scratch folder, and what is derived from them (operations 1.8).

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::config::secret_file_is_private;

/// Why a key cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("`{}` cannot be used as a key file: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The key is gone and there is data that it belongs to.
    #[error("`{}` is missing beside existing data: key_unavailable", .0.display())]
    Lost(PathBuf),
    /// It is another key than the data was written with.
    #[error("`{}` is not the key that `sentinel.db` was written with: key_unavailable", .0.display())]
    Other(PathBuf),
}

/// Reads `etc/NAME`, or makes it when the folder holds no data yet. A key that was lost is never
/// made anew beside existing data.
///
/// # Errors
/// [`Error`].
pub fn load_or_make(etc: &Path, name: &str, has_data: bool) -> Result<[u8; 32], Error> {
    let path = etc.join(name);
    let file = |why: String| Error::File {
        path: path.clone(),
        why,
    };
    if !path.exists() {
        if has_data {
            return Err(Error::Lost(path));
        }
        let mut key = [0_u8; 32];
        getrandom::fill(&mut key).map_err(|e| file(e.to_string()))?;
        let mut out = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| file(e.to_string()))?;
        out.write_all(&key)
            .and_then(|()| out.sync_all())
            .map_err(|e| file(e.to_string()))?;
        return Ok(key);
    }
    secret_file_is_private(&path).map_err(&file)?;
    let bytes = std::fs::read(&path).map_err(|e| file(e.to_string()))?;
    bytes
        .try_into()
        .map_err(|b: Vec<u8>| file(format!("it has {} bytes, not 32", b.len())))
}

/// HKDF-SHA256 (RFC 5869) without salt, one block, of `key` for `info`.
#[must_use]
pub fn derive(key: &[u8; 32], info: &str) -> [u8; 32] {
    let prk = mac(&[0; 32], &[key]);
    mac(&prk, &[info.as_bytes(), &[1]])
}

fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => mac,
        Err(e) => unreachable!("HMAC takes a key of any length: {e}"),
    };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::{Error, derive, load_or_make};

    #[test]
    fn derivation_is_hkdf_sha256_without_salt() {
        // Independent: Python's hmac module, HMAC(HMAC(0^32, 0b^32), "site/1" || 01).
        let derived = data_encoding::HEXLOWER.encode(&derive(&[0x0b; 32], "site/1"));
        assert_eq!(
            derived,
            "d63bde8cb46f92eda49914069fcf9a19250e7bd931f2b2d1a6b9c31e045f195a"
        );
    }

    #[test]
    fn a_key_is_made_once_and_never_anew_beside_data() {
        let dir = tempfile::tempdir().unwrap();
        let first = load_or_make(dir.path(), "k", false).unwrap();
        assert_eq!(load_or_make(dir.path(), "k", true).unwrap(), first);
        std::fs::remove_file(dir.path().join("k")).unwrap();
        assert!(matches!(
            load_or_make(dir.path(), "k", true),
            Err(Error::Lost(_))
        ));
    }
}
