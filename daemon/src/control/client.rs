//! The other end: one request, one answer.

use std::path::{Path, PathBuf};

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody answers.
    #[error("no daemon answers at `{}`: {why}", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The daemon refused.
    #[error("{code}: {detail}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Stable code.
        code: String,
        /// Why, for a person.
        detail: String,
    },
}

/// A client of one socket.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
}

impl Client {
    /// A client of the socket at `path`; nothing is opened yet.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// GET, with the answer as text.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get(&self, target: &str) -> Result<String, Error> {
        self.send("GET", target, None).await
    }

    /// GET, with the answer as JSON.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn get_json(&self, target: &str) -> Result<Value, Error> {
        let text = self.get(target).await?;
        self.parse(&text)
    }

    /// POST of JSON, answered by JSON.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn post_json(&self, target: &str, body: &Value) -> Result<Value, Error> {
        let text = self.send("POST", target, Some(body)).await?;
        self.parse(&text)
    }

    fn unreachable(&self, why: impl ToString) -> Error {
        Error::Unreachable {
            path: self.path.clone(),
            why: why.to_string(),
        }
    }

    fn parse(&self, text: &str) -> Result<Value, Error> {
        serde_json::from_str(text)
            .map_err(|e| self.unreachable(format!("its answer is no JSON: {e}")))
    }

    async fn send(
        &self,
        method: &str,
        target: &str,
        body: Option<&Value>,
    ) -> Result<String, Error> {
        let stream = UnixStream::connect(&self.path)
            .await
            .map_err(|e| self.unreachable(e))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| self.unreachable(e))?;
        tokio::spawn(connection);
        let request = hyper::Request::builder()
            .method(method)
            .uri(target)
            .header("host", "sentinel")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(
                body.map_or_else(String::new, Value::to_string),
            )))
            .map_err(|e| self.unreachable(e))?;
        let response = sender
            .send_request(request)
            .await
            .map_err(|e| self.unreachable(e))?;
        let status = response.status();
        let bytes = response
            .into_body()
            .collect()
            .await
            .map_err(|e| self.unreachable(e))?
            .to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if status.is_success() {
            return Ok(text);
        }
        let problem: Value = serde_json::from_str(&text).unwrap_or_default();
        let member = |key: &str| {
            problem
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Err(Error::Refused {
            status: status.as_u16(),
            code: member("code"),
            detail: member("detail"),
        })
    }
}
