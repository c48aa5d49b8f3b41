//! `epoch.key`: the private halves of the log key and the capability key of the epoch, wrapped
//! with AES-256-GCM under the guard's key-encryption key (guard 6.4.1).

use std::path::Path;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use p256::ecdsa::SigningKey;
use policies::audit::{VKey, spki_der};
use zeroize::Zeroizing;

use super::{Error, files};

const NONCE: usize = 12;

/// The two signing keys of an epoch. Only the guard's writer holds them.
pub struct EpochKeys {
    /// Signs heads.
    pub log: SigningKey,
    /// Signs capabilities.
    pub cap: SigningKey,
}

impl std::fmt::Debug for EpochKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EpochKeys(..)")
    }
}

impl EpochKeys {
    /// Draws new keys.
    pub(super) fn draw(fill: &mut dyn FnMut(&mut [u8])) -> Self {
        Self {
            log: draw(fill),
            cap: draw(fill),
        }
    }

    /// The log key as a vkey of this origin.
    #[must_use]
    pub fn vkey(&self, origin: &str) -> String {
        VKey::new(origin, self.log.verifying_key()).to_text()
    }

    /// The capability key as SPKI DER.
    #[must_use]
    pub fn cap_spki(&self) -> Vec<u8> {
        spki_der(self.cap.verifying_key())
    }

    /// Unwraps the file; `aad` names the epoch that it must be of.
    pub(super) fn read(path: &Path, kek: &[u8; 32], aad: &str) -> Result<Self, Error> {
        let bytes = std::fs::read(path).map_err(files::at(path))?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE).ok_or(Error::Key)?;
        let nonce: [u8; NONCE] = nonce.try_into().map_err(|_| Error::Key)?;
        let payload = Payload {
            msg: sealed,
            aad: aad.as_bytes(),
        };
        let plain = cipher(kek)
            .decrypt(&Nonce::from(nonce), payload)
            .map(Zeroizing::new)
            .map_err(|_| Error::Key)?;
        let (log, cap) = plain.split_at_checked(32).ok_or(Error::Key)?;
        Ok(Self {
            log: SigningKey::from_slice(log).map_err(|_| Error::Key)?,
            cap: SigningKey::from_slice(cap).map_err(|_| Error::Key)?,
        })
    }

    /// Writes the file under a fresh nonce.
    pub(super) fn write(
        &self,
        path: &Path,
        kek: &[u8; 32],
        aad: &str,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), Error> {
        let mut nonce = [0; NONCE];
        fill(&mut nonce);
        let plain = Zeroizing::new([self.log.to_bytes(), self.cap.to_bytes()].concat());
        let payload = Payload {
            msg: &plain,
            aad: aad.as_bytes(),
        };
        let sealed = cipher(kek)
            .encrypt(&Nonce::from(nonce), payload)
            .map_err(|_| Error::Key)?;
        files::replace(path, &[&nonce[..], &sealed].concat())
    }
}

fn cipher(kek: &[u8; 32]) -> Aes256Gcm {
    Aes256Gcm::new(&Key::<Aes256Gcm>::from(*kek))
}

/// Draws until the bits are a scalar; all but one in 2^32 are.
fn draw(fill: &mut dyn FnMut(&mut [u8])) -> SigningKey {
    loop {
        let mut bits = Zeroizing::new([0_u8; 32]);
        fill(&mut bits[..]);
        if let Ok(key) = SigningKey::from_slice(&bits[..]) {
            return key;
        }
    }
}
