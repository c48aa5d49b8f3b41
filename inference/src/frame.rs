//! Frames between core and the engine process (inference 3): a header of 12 bytes, then a JSON payload.
//!
//! Nothing read here is trusted: lengths are bounded before memory is taken, unknown kinds and unknown members are
//! errors, and an error ends the connection. `id` names the request; 0 is the channel itself.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::provider::{Code, Finish, Timings, Usage};

/// Version of the frames.
pub(crate) const VERSION: u16 = 1;
/// Bytes of a header.
pub(crate) const HEADER: usize = 12;
/// Largest payload towards the engine.
pub(crate) const MAX_TO_CHILD: usize = 8 << 20;
/// Largest payload from the engine.
pub(crate) const MAX_FROM_CHILD: usize = 1 << 20;

/// Why a frame could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The connection failed or ended inside a frame.
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// The header is wrong.
    #[error("bad frame header: {0}")]
    Header(&'static str),
    /// The kind is unknown or not for this direction.
    #[error("unknown frame kind {0}")]
    Kind(u8),
    /// The payload is wrong.
    #[error("bad payload of frame kind {kind}")]
    Payload {
        /// Kind of the frame.
        kind: u8,
        /// Where it is wrong.
        #[source]
        source: serde_json::Error,
    },
}

/// One frame, not yet understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Raw {
    pub(crate) kind: u8,
    pub(crate) id: u32,
    pub(crate) payload: Vec<u8>,
}

/// Model and context to load; the open model file travels beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Load {
    pub(crate) sha256: String,
    pub(crate) n_ctx: u32,
    pub(crate) threads_prefill: u32,
    pub(crate) threads_decode: u32,
}

/// Who says a text: kept apart so that the template decides how it looks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Message {
    pub(crate) role: String,
    pub(crate) parts: Vec<Part>,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) trust: Trust,
}

/// Whether a piece came from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trust {
    Trusted,
    Untrusted,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Complete {
    pub(crate) messages: Vec<Message>,
    pub(crate) schema: Value,
    pub(crate) max_tokens: u32,
    pub(crate) deadline_ms: u64,
    pub(crate) session: String,
}

/// What the child may not do, to be tried by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbeAsk {
    pub(crate) path: String,
}

/// The result of one try: `error` is `None` when the kernel allowed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeResult {
    /// What was tried.
    pub what: String,
    /// The error of the kernel.
    pub error: Option<String>,
}

/// First words of the child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hello {
    pub(crate) features: Vec<String>,
    pub(crate) pid: u32,
}

/// Where loading stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
    pub(crate) phase: Phase,
    pub(crate) ratio: f32,
}

/// Part of loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    Hash,
    Map,
    Warmup,
}

/// Facts of the loaded model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// Architecture named by the file.
    pub architecture: String,
    /// Context that the model was trained on.
    pub n_ctx_train: u32,
    /// Context in use.
    pub n_ctx: u32,
    /// Size of the vocabulary.
    pub vocabulary: u32,
    /// Memory of the context per token.
    pub kv_bytes_per_token: u64,
    /// SHA-256 of the chat template, hexadecimal.
    pub template_sha256: String,
    /// Prompt tokens per second in the warm-up.
    pub prefill_tps: f32,
    /// Answer tokens per second in the warm-up.
    pub decode_tps: f32,
    /// Sandbox stages in force: both, always.
    pub sandbox: String,
}

/// A piece of an answer: whole characters only, and empty while the prompt is computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delta {
    pub(crate) text: String,
    pub(crate) tokens: u32,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Done {
    pub(crate) text: String,
    pub(crate) finish: Finish,
    pub(crate) usage: Usage,
    pub(crate) timings: Timings,
    pub(crate) model: String,
    pub(crate) template_sha256: String,
}

/// A failed request, or with id 0 a failed start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failed {
    pub(crate) code: Code,
    pub(crate) detail: String,
}

macro_rules! direction {
    ($(#[$meta:meta])* $name:ident, $max:ident { $($variant:ident $(($payload:ty))? = $kind:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum $name { $($variant $(($payload))?,)+ }

        impl $name {
            /// Writes the frame with one call.
            pub(crate) fn write(&self, to: &mut impl Write, id: u32) -> Result<(), Error> {
                let bytes = self.encode(id)?;
                to.write_all(&bytes)?;
                Ok(())
            }

            /// The bytes of the frame.
            pub(crate) fn encode(&self, id: u32) -> Result<Vec<u8>, Error> {
                match self {
                    $(direction!(@bind inner $variant $(($payload))?) => {
                        frame($kind, id, direction!(@encode inner $kind $(($payload))?), $max)
                    })+
                }
            }

            /// Understands a frame.
            pub(crate) fn decode(raw: &Raw) -> Result<Self, Error> {
                match raw.kind {
                    $($kind => direction!(@decode raw $variant $(($payload))?),)+
                    other => Err(Error::Kind(other)),
                }
            }
        }
    };
    (@bind $inner:ident $variant:ident ($payload:ty)) => { Self::$variant($inner) };
    (@bind $inner:ident $variant:ident) => { Self::$variant };
    (@encode $inner:ident $kind:literal ($payload:ty)) => {
        serde_json::to_vec($inner).map_err(|source| Error::Payload { kind: $kind, source })?
    };
    (@encode $inner:ident $kind:literal) => { Vec::new() };
    (@decode $raw:ident $variant:ident ($payload:ty)) => { payload::<$payload>($raw).map(Self::$variant) };
    (@decode $raw:ident $variant:ident) => {
        if $raw.payload.is_empty() { Ok(Self::$variant) } else { Err(Error::Header("payload not empty")) }
    };
}

direction! {
    /// Core to engine.
    ToChild, MAX_TO_CHILD {
        Load(Load) = 1,
        Complete(Complete) = 2,
        Cancel = 4,
        Shutdown = 6,
        Ping = 7,
        Probe(ProbeAsk) = 8,
    }
}

direction! {
    /// Engine to core.
    FromChild, MAX_FROM_CHILD {
        Hello(Hello) = 64,
        Progress(Progress) = 65,
        Ready(Ready) = 66,
        Delta(Delta) = 68,
        Done(Done) = 69,
        Failed(Failed) = 72,
        Pong = 73,
        Probed(Vec<ProbeResult>) = 74,
    }
}

fn payload<T: DeserializeOwned>(raw: &Raw) -> Result<T, Error> {
    serde_json::from_slice(&raw.payload).map_err(|source| Error::Payload {
        kind: raw.kind,
        source,
    })
}

fn frame(kind: u8, id: u32, payload: Vec<u8>, max: usize) -> Result<Vec<u8>, Error> {
    if payload.len() > max {
        return Err(Error::Header("payload too long"));
    }
    let length = u32::try_from(payload.len()).map_err(|_| Error::Header("payload too long"))?;
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&[kind, 0]);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(&payload);
    Ok(bytes)
}

/// Reads one frame; `None` when the other side has closed between frames.
pub(crate) fn read(from: &mut impl Read, max: usize) -> Result<Option<Raw>, Error> {
    let mut header = [0_u8; HEADER];
    let mut have = 0;
    while have < HEADER {
        match from.read(&mut header[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    read_body(header, from, max).map(Some)
}

/// Reads the payload that belongs to a header.
pub(crate) fn read_body(
    header: [u8; HEADER],
    from: &mut impl Read,
    max: usize,
) -> Result<Raw, Error> {
    let [l0, l1, l2, l3, kind, flags, v0, v1, i0, i1, i2, i3] = header;
    if u16::from_le_bytes([v0, v1]) != VERSION {
        return Err(Error::Header("unknown version"));
    }
    if flags != 0 {
        return Err(Error::Header("unknown flags"));
    }
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if length > max {
        return Err(Error::Header("payload too long"));
    }
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    Ok(Raw {
        kind,
        id: u32::from_le_bytes([i0, i1, i2, i3]),
        payload,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::{
        Delta, Error, FromChild, HEADER, MAX_FROM_CHILD, MAX_TO_CHILD, ProbeAsk, ToChild, read,
    };

    #[test]
    fn a_frame_comes_back_as_it_was_sent() {
        let sent = ToChild::Probe(ProbeAsk {
            path: "/x".to_owned(),
        });
        let mut bytes = Vec::new();
        sent.write(&mut bytes, 7).unwrap();
        ToChild::Ping.write(&mut bytes, 8).unwrap();
        let mut from = Cursor::new(bytes);
        let first = read(&mut from, MAX_TO_CHILD).unwrap().unwrap();
        assert_eq!((first.id, ToChild::decode(&first).unwrap()), (7, sent));
        let second = read(&mut from, MAX_TO_CHILD).unwrap().unwrap();
        assert_eq!(ToChild::decode(&second).unwrap(), ToChild::Ping);
        assert!(read(&mut from, MAX_TO_CHILD).unwrap().is_none());
    }

    #[test]
    fn every_truncation_of_a_frame_is_an_error() {
        let bytes = FromChild::Delta(Delta {
            text: "a".to_owned(),
            tokens: 1,
        })
        .encode(1)
        .unwrap();
        for end in 1..bytes.len() {
            assert!(read(&mut Cursor::new(&bytes[..end]), MAX_FROM_CHILD).is_err());
        }
    }

    #[test]
    fn a_frame_is_refused_when_anything_in_it_is_unknown() {
        let good = FromChild::Pong.encode(1).unwrap();
        for (at, value) in [(3, 0x7f), (4, 200), (5, 1), (6, 2)] {
            let mut bad = good.clone();
            bad[at] = value;
            let refused = match read(&mut Cursor::new(bad), MAX_FROM_CHILD) {
                Ok(Some(raw)) => FromChild::decode(&raw).is_err(),
                Ok(None) => false,
                Err(_) => true,
            };
            assert!(refused, "byte {at}");
        }
        let payload = br#"{"text":"","tokens":0,"more":1}"#;
        let mut frame = vec![u8::try_from(payload.len()).unwrap(), 0, 0, 0, 68, 0, 1, 0];
        frame.extend([1, 0, 0, 0]);
        frame.extend(payload);
        let raw = read(&mut Cursor::new(frame), MAX_FROM_CHILD)
            .unwrap()
            .unwrap();
        assert!(matches!(
            FromChild::decode(&raw),
            Err(Error::Payload { kind: 68, .. })
        ));
    }

    #[test]
    fn arbitrary_bytes_never_panic_the_reader() {
        let mut state = 0x9e37_79b9_u32;
        for length in 0..600 {
            let bytes: Vec<u8> = (0..length % (HEADER + 40))
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            if let Ok(Some(raw)) = read(&mut Cursor::new(bytes), 64) {
                let _ = (ToChild::decode(&raw), FromChild::decode(&raw));
            }
        }
    }
}
