//! One request on one connection, over whatever carries bytes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(30);

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

/// A request to write down.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

impl Ask<'_> {
    fn head(&self, length: usize) -> String {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {length}\r\n",
            self.method, self.path,
        );
        for (name, value) in self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head
    }
}

/// Asks over TCP; `None` when the connection broke before an answer came.
pub(crate) fn tcp(address: &str, ask: Ask<'_>) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    exchange(&mut stream, &ask)
}

/// Asks over a Unix socket.
pub(crate) fn unix(path: &Path, target: &str) -> Option<Answer> {
    let mut stream = UnixStream::connect(path).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let ask = Ask {
        method: "GET",
        path: target,
        ..Ask::default()
    };
    exchange(&mut stream, &ask)
}

/// Sends a head and then `send`, which may stop early; a refusal may come before all was sent.
pub(crate) fn streamed(
    address: &str,
    head: &str,
    send: impl FnOnce(&mut TcpStream) -> std::io::Result<()>,
) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(head.as_bytes()).ok()?;
    let _ = send(&mut stream);
    read(&mut stream)
}

fn exchange(stream: &mut (impl Read + Write), ask: &Ask<'_>) -> Option<Answer> {
    stream.write_all(ask.head(ask.body.len()).as_bytes()).ok()?;
    // Whoever is refused early cannot send everything; the answer counts.
    let _ = stream.write_all(ask.body);
    read(stream)
}

/// Reads to the end: every request says `connection: close`.
fn read(stream: &mut impl Read) -> Option<Answer> {
    let mut bytes = Vec::new();
    let mut piece = [0_u8; 16 << 10];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&piece[..n]),
            // A reset after the answer: the other side did not want the rest of the body.
            Err(_) if !bytes.is_empty() => break,
            Err(_) => return None,
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        body: body.to_owned(),
    })
}
