//! The TCP listeners: HTTP/1.1, with a limit on how long a client may take to say what it wants.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

/// How long a client may take for the head of a request, the wait for its first byte included.
pub(crate) const HEAD: Duration = Duration::from_secs(30);

/// How long to wait before the next try where the system has no descriptor left.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves `app` until the process ends. A connection that sends its head slower than `head` is
/// closed, so that idle clients cannot use up the descriptors.
pub(crate) async fn serve(listener: TcpListener, app: Router, head: Duration) {
    loop {
        let (stream, peer): (_, SocketAddr) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let app = app.clone().layer(Extension(ConnectInfo(peer)));
        tokio::spawn(async move {
            let served = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(head)
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
                .await;
            if let Err(error) = served {
                tracing::debug!(%error, "a connection broke");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    async fn connected() -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let slow = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
            tokio::time::sleep(SHORT * 3).await;
            peer.ip().to_string()
        };
        tokio::spawn(serve(listener, Router::new().route("/", get(slow)), SHORT));
        TcpStream::connect(address).await.unwrap()
    }

    async fn answer(stream: &mut TcpStream) -> String {
        let mut out = Vec::new();
        let read = tokio::time::timeout(SHORT * 25, stream.read_to_end(&mut out));
        read.await.expect("the connection stays open").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[tokio::test]
    async fn a_client_that_never_ends_its_head_is_closed() {
        let mut stream = connected().await;
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n")
            .await
            .unwrap();
        assert!(!answer(&mut stream).await.contains("200 OK"));
    }

    #[tokio::test]
    async fn a_request_that_came_whole_may_take_longer_to_answer() {
        let mut stream = connected().await;
        let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let answer = answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("127.0.0.1"));
    }
}
