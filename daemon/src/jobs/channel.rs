//! Frames over a Unix socketpair: four bytes of length, then that many bytes.
//!
//! Both ends use this one type. It is blocking on purpose: a worker has one thread, and core waits
//! on a blocking thread of its own, so a deadline is a plain instant on both sides. Descriptors
//! travel with the length of a frame (protocols.md 1.6).

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Most descriptors that one frame may carry.
pub const MAX_FDS: usize = 64;

/// Why a frame could not be exchanged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The other end is gone.
    #[error("the other end of the channel is closed")]
    Closed,
    /// The frame did not arrive in time.
    #[error("no frame came before the deadline")]
    Deadline,
    /// The frame is longer than agreed.
    #[error("a frame of {length} bytes is over the limit of {limit}")]
    TooLarge {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The frame is not what was agreed.
    #[error("a frame does not parse")]
    Malformed(#[source] serde_json::Error),
    /// More descriptors than a frame can carry.
    #[error("a frame cannot carry {0} descriptors")]
    TooManyDescriptors(usize),
    /// The kernel refused.
    #[error("the channel failed")]
    Io(#[source] io::Error),
}

/// One end of a channel between core and a worker.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
}

impl Channel {
    /// Takes a connected stream socket.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Self { stream }
    }

    /// A connected pair: this end, and the one for the child.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn pair() -> Result<(Self, OwnedFd), Error> {
        let (near, far) = UnixStream::pair().map_err(Error::Io)?;
        Ok((Self::new(near), far.into()))
    }

    /// A second handle to the same end: one thread may wait while another sends.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn second(&self) -> Result<Self, Error> {
        self.stream.try_clone().map(Self::new).map_err(Error::Io)
    }

    /// Sends one value as JSON.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn send<T: Serialize>(&mut self, value: &T) -> Result<(), Error> {
        let body = serde_json::to_vec(value).map_err(Error::Malformed)?;
        self.send_bytes(&body)
    }

    /// Sends one frame of plain bytes.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn send_bytes(&mut self, body: &[u8]) -> Result<(), Error> {
        let length = length_of(body)?;
        self.stream.write_all(&length).map_err(closed)?;
        self.stream.write_all(body).map_err(closed)
    }

    /// Sends one value as JSON together with descriptors.
    ///
    /// # Errors
    /// When the other end is gone or there are more than [`MAX_FDS`].
    pub fn send_with_fds<T: Serialize>(
        &mut self,
        value: &T,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), Error> {
        if fds.len() > MAX_FDS {
            return Err(Error::TooManyDescriptors(fds.len()));
        }
        let body = serde_json::to_vec(value).map_err(Error::Malformed)?;
        let length = length_of(&body)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Error::TooManyDescriptors(fds.len()));
        }
        let sent = sendmsg(
            self.stream.as_fd(),
            &[IoSlice::new(&length)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
        .map_err(|e| closed(e.into()))?;
        // The descriptors went with the first byte; a short write leaves plain bytes to send.
        let rest = length.get(sent..).unwrap_or_default();
        self.stream.write_all(rest).map_err(closed)?;
        self.stream.write_all(&body).map_err(closed)
    }

    /// Receives one JSON value of at most `limit` bytes.
    ///
    /// # Errors
    /// When nothing whole and well formed arrives before `deadline`.
    pub fn recv<T: DeserializeOwned>(
        &mut self,
        limit: usize,
        deadline: Option<Instant>,
    ) -> Result<T, Error> {
        let body = self.recv_bytes(limit, deadline)?;
        serde_json::from_slice(&body).map_err(Error::Malformed)
    }

    /// Receives one frame of plain bytes.
    ///
    /// # Errors
    /// When nothing whole arrives before `deadline`.
    pub fn recv_bytes(
        &mut self,
        limit: usize,
        deadline: Option<Instant>,
    ) -> Result<Vec<u8>, Error> {
        let mut length = [0_u8; 4];
        self.fill(&mut length, deadline)?;
        self.recv_body(length, limit, deadline)
    }

    /// Receives one JSON value and the descriptors that came with it.
    ///
    /// # Errors
    /// When nothing whole and well formed arrives before `deadline`.
    pub fn recv_with_fds<T: DeserializeOwned>(
        &mut self,
        limit: usize,
        deadline: Option<Instant>,
    ) -> Result<(T, Vec<OwnedFd>), Error> {
        self.arm(deadline)?;
        let mut length = [0_u8; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = loop {
            let outcome = recvmsg(
                self.stream.as_fd(),
                &mut [IoSliceMut::new(&mut length)],
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            );
            match outcome {
                Ok(message) => break message.bytes,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(closed(error.into())),
            }
        };
        if got == 0 {
            return Err(Error::Closed);
        }
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                fds.extend(received);
            }
        }
        self.fill(length.get_mut(got..).unwrap_or_default(), deadline)?;
        let body = self.recv_body(length, limit, deadline)?;
        Ok((
            serde_json::from_slice(&body).map_err(Error::Malformed)?,
            fds,
        ))
    }

    fn recv_body(
        &mut self,
        length: [u8; 4],
        limit: usize,
        deadline: Option<Instant>,
    ) -> Result<Vec<u8>, Error> {
        let length = u32::from_be_bytes(length) as usize;
        if length > limit {
            return Err(Error::TooLarge { length, limit });
        }
        let mut body = vec![0; length];
        self.fill(&mut body, deadline)?;
        Ok(body)
    }

    /// Reads until `buffer` is full. The time-out is set anew for each read, so a peer that sends a
    /// byte now and then is not granted more time than one that sends none.
    fn fill(&mut self, buffer: &mut [u8], deadline: Option<Instant>) -> Result<(), Error> {
        let mut done = 0;
        while done < buffer.len() {
            self.arm(deadline)?;
            let rest = buffer.get_mut(done..).unwrap_or_default();
            match self.stream.read(rest) {
                Ok(0) => return Err(Error::Closed),
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(closed(e)),
            }
        }
        Ok(())
    }

    fn arm(&self, deadline: Option<Instant>) -> Result<(), Error> {
        let wait = match deadline {
            None => None,
            Some(at) => {
                let left = at.saturating_duration_since(Instant::now());
                if left < Duration::from_millis(1) {
                    return Err(Error::Deadline);
                }
                Some(left)
            }
        };
        self.stream.set_read_timeout(wait).map_err(Error::Io)
    }
}

fn length_of(body: &[u8]) -> Result<[u8; 4], Error> {
    u32::try_from(body.len())
        .map(u32::to_be_bytes)
        .map_err(|_| Error::TooLarge {
            length: body.len(),
            limit: u32::MAX as usize,
        })
}

fn closed(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::UnexpectedEof => Error::Closed,
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Deadline,
        _ => Error::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> (Channel, Channel) {
        let (near, far) = Channel::pair().unwrap();
        (near, Channel::new(UnixStream::from(far)))
    }

    fn soon() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(2))
    }

    #[test]
    fn frames_arrive_whole_and_in_order() {
        let (mut a, mut b) = ends();
        a.send(&serde_json::json!({"n": 1})).unwrap();
        a.send_bytes(b"raw").unwrap();
        let first: serde_json::Value = b.recv(100, soon()).unwrap();
        assert_eq!(first["n"], 1);
        assert_eq!(b.recv_bytes(100, soon()).unwrap(), b"raw");
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_before_memory_is_taken() {
        let (mut a, mut b) = ends();
        a.stream.write_all(&u32::MAX.to_be_bytes()).unwrap();
        let error = b.recv_bytes(1024, soon()).unwrap_err();
        assert!(matches!(error, Error::TooLarge { limit: 1024, .. }));
    }

    #[test]
    fn a_silent_or_dribbling_peer_meets_the_deadline() {
        let (mut a, mut b) = ends();
        let writer = std::thread::spawn(move || {
            for byte in [0_u8, 0, 0] {
                if a.stream.write_all(&[byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(60));
            }
            std::thread::sleep(Duration::from_millis(200));
        });
        let begin = Instant::now();
        let error = b
            .recv_bytes(10, Some(begin + Duration::from_millis(100)))
            .unwrap_err();
        assert!(matches!(error, Error::Deadline));
        assert!(begin.elapsed() < Duration::from_millis(300));
        drop(b);
        writer.join().unwrap();
    }

    #[test]
    fn a_closed_peer_is_told_apart_from_a_slow_one() {
        let (a, mut b) = ends();
        drop(a);
        assert!(matches!(b.recv_bytes(10, soon()), Err(Error::Closed)));
    }

    #[test]
    fn descriptors_travel_with_their_frame() {
        let (mut a, mut b) = ends();
        let (mut one, two) = UnixStream::pair().unwrap();
        a.send_with_fds(&"take it", &[two.as_fd()]).unwrap();
        drop(two);
        let (text, mut fds): (String, _) = b.recv_with_fds(100, soon()).unwrap();
        assert_eq!((text.as_str(), fds.len()), ("take it", 1));
        one.write_all(b"x").unwrap();
        let mut received = UnixStream::from(fds.remove(0));
        let mut byte = [0];
        received.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }
}
