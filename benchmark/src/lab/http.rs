//! The few lines of HTTP/1.1 that the lab needs, over loopback only.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// An answer is read up to this size.
const ANSWER_MAX: usize = 4 * 1024 * 1024;

/// A request.
pub(super) struct Request<'a> {
    /// `GET` or `POST`.
    pub(super) method: &'a str,
    /// Path with its query.
    pub(super) path: &'a str,
    /// Header lines, each with its line end.
    pub(super) headers: &'a str,
    /// Body.
    pub(super) body: &'a [u8],
}

impl<'a> Request<'a> {
    /// A plain GET.
    #[must_use]
    pub(super) const fn get(path: &'a str) -> Self {
        Self {
            method: "GET",
            path,
            headers: "",
            body: &[],
        }
    }
}

/// Sends one request on a connection of its own and returns status and body.
///
/// # Errors
/// When the peer does not answer within `timeout` or answers something else than HTTP.
pub(super) fn send(
    address: SocketAddr,
    request: &Request<'_>,
    timeout: Duration,
) -> io::Result<(u16, Vec<u8>)> {
    let deadline = Instant::now() + timeout;
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(timeout))?;
    let head = format!(
        "{} {} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n",
        request.method,
        request.path,
        request.body.len(),
        request.headers
    );
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(request.body);
    stream.write_all(&bytes)?;
    let answer = read_answer(&mut stream, deadline)?;
    parse(&answer).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP answer"))
}

fn read_answer(stream: &mut TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut buffer = [0; 16 * 1024];
    while answer.len() < ANSWER_MAX {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut buffer)?;
        if count == 0 || whole(&answer) {
            break;
        }
        answer.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if whole(&answer) {
            break;
        }
    }
    Ok(answer)
}

fn split(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?;
    Some((head, answer.get(end + 4..)?))
}

/// True when the announced length has been read: some servers keep the connection open.
fn whole(answer: &[u8]) -> bool {
    split(answer).is_some_and(|(head, body)| {
        head.lines().any(|line| {
            line.split_once(':').is_some_and(|(key, value)| {
                key.eq_ignore_ascii_case("content-length")
                    && value.trim().parse::<usize>().is_ok_and(|n| body.len() >= n)
            })
        })
    })
}

fn parse(answer: &[u8]) -> Option<(u16, Vec<u8>)> {
    let (head, body) = split(answer)?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    Some((code, body.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::{parse, whole};

    #[test]
    fn an_answer_is_whole_when_its_announced_length_is_there() {
        let answer = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}";
        assert!(whole(answer));
        assert!(!whole(&answer[..answer.len() - 1]));
        assert_eq!(parse(answer), Some((202, b"{}".to_vec())));
        assert_eq!(parse(b"no answer"), None);
    }
}
