//! The scraper's worker: HTTP on connections that it was handed.

use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::{ACCEPT, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use policies::model::Sample;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::text;
use crate::jobs::channel::{Channel, Error};
use crate::jobs::wire::MAX_FRAME;
use crate::tools::ScrapeTarget;

/// Pages to read now. One descriptor comes with it for each page, in the same order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Round {
    pages: Vec<PageRequest>,
    timeout_ms: u64,
    max_bytes: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageRequest {
    host: String,
    path: String,
}

/// What became of a round, in the order of its pages.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoundAnswer {
    pub(crate) pages: Vec<PageAnswer>,
}

/// What became of one page.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum PageAnswer {
    /// It was read.
    Read {
        samples: Vec<Sample>,
        skipped: usize,
    },
    /// It did not come, not whole, or not in time.
    Failed,
}

impl Round {
    pub(crate) fn of(targets: &[&ScrapeTarget], timeout: Duration, max_bytes: usize) -> Self {
        let page = |target: &&ScrapeTarget| PageRequest {
            host: target.address.to_string(),
            path: target.path.clone(),
        };
        Self {
            pages: targets.iter().map(page).collect(),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            max_bytes,
        }
    }
}

/// Answers rounds until core goes away.
pub(crate) fn serve(channel: &mut Channel, runtime: &Runtime) -> Result<(), Error> {
    loop {
        let (round, fds) = match channel.recv_with_fds::<Round>(MAX_FRAME, None) {
            Err(Error::Closed) => return Ok(()),
            other => other?,
        };
        let pages = runtime.block_on(read_all(round, fds));
        channel.send(&RoundAnswer { pages })?;
    }
}

/// All pages at once: one that hangs costs the others nothing.
async fn read_all(round: Round, fds: Vec<OwnedFd>) -> Vec<PageAnswer> {
    let mut pages = vec![PageAnswer::Failed; round.pages.len()];
    let limit = Duration::from_millis(round.timeout_ms);
    let mut running = JoinSet::new();
    for (n, (page, fd)) in round.pages.into_iter().zip(fds).enumerate() {
        running.spawn(async move {
            let read = tokio::time::timeout(limit, read(&page, fd, round.max_bytes));
            (n, read.await.ok().flatten())
        });
    }
    while let Some(done) = running.join_next().await {
        if let Ok((n, Some(page))) = done
            && let Some(slot) = pages.get_mut(n)
        {
            *slot = page;
        }
    }
    pages
}

/// `None` when it did not come whole; the reason is nobody's business but the target's.
async fn read(page: &PageRequest, fd: OwnedFd, max_bytes: usize) -> Option<PageAnswer> {
    let stream = TcpStream::from(fd);
    stream.set_nonblocking(true).ok()?;
    let stream = tokio::net::TcpStream::from_std(stream).ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .ok()?;
    let driver = tokio::spawn(connection);
    let request = Request::get(page.path.as_str())
        .header(HOST, page.host.as_str())
        .header(USER_AGENT, concat!("sentinel/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "text/plain; version=0.0.4")
        .body(Empty::<Bytes>::new())
        .ok()?;
    let response = sender.send_request(request).await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    let body = Limited::new(response.into_body(), max_bytes);
    let bytes = body.collect().await.ok()?.to_bytes();
    drop(sender);
    driver.abort();
    let page = text::parse(&String::from_utf8_lossy(&bytes));
    Some(PageAnswer::Read {
        samples: page.samples,
        skipped: page.skipped,
    })
}
