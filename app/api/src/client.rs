// SPDX-License-Identifier: Apache-2.0
//! A client of HTTP over a daemon's Unix socket.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::task::AbortHandle;

use crate::ApiError;

/// Bytes of one answer at most.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of one line of a stream at most.
pub const STREAM_LINE_BYTES_MAX: usize = 64 * 1024;
/// How long a call that does not go over the network may take.
pub const LOCAL_CALL_TIME_MAX: Duration = Duration::from_secs(10);

/// A daemon's HTTP API. Each call makes a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    daemon: Daemon,
}

/// A daemon, as its users know it.
#[derive(Clone, Copy, Debug)]
pub struct Daemon {
    /// Its name, such as `netservd`.
    pub name: &'static str,
    /// What names its socket, such as `--socket`.
    pub named_by: &'static str,
}

/// Why there is no answer.
#[derive(Debug)]
pub struct Error {
    /// Which part failed.
    pub kind: Failed,
    /// What is wrong, in one line.
    pub cause: String,
    /// What to do about it, in one line.
    pub fix: String,
}

/// The part of a call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The daemon cannot be reached, or its answer is too slow, too long or not understood.
    Reaching,
    /// The daemon refused the call.
    Refused,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl StdError for Error {}

impl Client {
    /// Returns a client of the daemon that serves a socket.
    pub fn new(socket: &Path, daemon: Daemon) -> Client {
        Client { socket: socket.to_owned(), daemon }
    }

    /// Sends a GET and parses the answer.
    ///
    /// # Errors
    /// The daemon cannot be reached, or answers with an error or something else.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.call(Method::GET, path, Bytes::new(), LOCAL_CALL_TIME_MAX).await
    }

    /// Sends a POST and parses the answer, which may take `time_max`.
    ///
    /// # Errors
    /// The daemon cannot be reached, or answers with an error or something else.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        time_max: Duration,
    ) -> Result<T, Error> {
        self.call(Method::POST, path, self.json(body)?, time_max).await
    }

    /// Sends a GET whose answer is lines without a known end.
    ///
    /// # Errors
    /// The daemon cannot be reached or answers with an error.
    pub async fn lines(&self, path: &str) -> Result<Lines, Error> {
        self.lines_of(Method::GET, path, Bytes::new()).await
    }

    /// Sends a POST whose answer is lines without a known end.
    ///
    /// # Errors
    /// The daemon cannot be reached or answers with an error.
    pub async fn post_lines(&self, path: &str, body: &impl Serialize) -> Result<Lines, Error> {
        self.lines_of(Method::POST, path, self.json(body)?).await
    }

    fn json(&self, body: &impl Serialize) -> Result<Bytes, Error> {
        serde_json::to_vec(body).map(Bytes::from).map_err(|error| self.broken(error, "report this as a bug"))
    }

    async fn lines_of(&self, method: Method, path: &str, body: Bytes) -> Result<Lines, Error> {
        let (connection, response) = self.within(LOCAL_CALL_TIME_MAX, self.send(method, path, body)).await?;
        let status = response.status();
        if !status.is_success() {
            let body = self.within(LOCAL_CALL_TIME_MAX, self.collect(response.into_body())).await?;
            return Err(self.refused(status, &body));
        }
        Ok(Lines { client: self.clone(), _connection: connection, body: response.into_body(), buffer: Vec::new() })
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        time_max: Duration,
    ) -> Result<T, Error> {
        let exchange = async {
            let (_connection, response) = self.send(method, path, body).await?;
            let status = response.status();
            Ok((status, self.collect(response.into_body()).await?))
        };
        let (status, body) = self.within(time_max, exchange).await?;
        if !status.is_success() {
            return Err(self.refused(status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| {
            let cause = format!("the answer of {} is not understood: {error}", self.socket.display());
            Error { kind: Failed::Reaching, cause, fix: self.same_version() }
        })
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<(Connection, Response<Incoming>), Error> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| self.no_connection(&error))?;
        let broken = |error: hyper::Error| self.broken(error, self.see_log());
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let connection = Connection(tokio::spawn(connection).abort_handle());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "netserv")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| self.broken(error, "report this as a bug"))?;
        Ok((connection, sender.send_request(request).await.map_err(broken)?))
    }

    async fn collect(&self, mut body: Incoming) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.broken(error, self.see_log()))?;
            bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err(
                    self.broken(format!("an answer of more than {ANSWER_BYTES_MAX} bytes"), self.same_version())
                );
            }
        }
        Ok(bytes)
    }

    async fn within<T>(&self, time: Duration, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::time::timeout(time, call).await.unwrap_or_else(|_| {
            let cause = format!("no answer within {} s", time.as_secs());
            Err(self.broken(cause, format!("look at the log of {}; it may be overloaded", self.daemon.name)))
        })
    }

    fn no_connection(&self, error: &io::Error) -> Error {
        let (socket, kind) = (self.socket.display(), error.kind());
        let Daemon { name, named_by } = self.daemon;
        let (cause, fix) = if kind == ErrorKind::NotFound {
            let fix = format!("start {name}, or name its socket with {named_by}");
            (format!("no {name} here: there is no socket {socket}"), fix)
        } else if kind == ErrorKind::ConnectionRefused {
            (format!("{name} does not run: nobody serves {socket}"), format!("start {name}"))
        } else if kind == ErrorKind::PermissionDenied {
            let fix = "become root or a member of the socket's group (`ls -l` shows it)".to_owned();
            (format!("not allowed to use {socket}"), fix)
        } else {
            (format!("cannot connect to {socket}: {error}"), format!("name a socket that {name} serves"))
        };
        Error { kind: Failed::Reaching, cause, fix }
    }

    fn broken(&self, error: impl fmt::Display, fix: impl Into<String>) -> Error {
        let cause = format!("{} at {}: {error}", self.daemon.name, self.socket.display());
        Error { kind: Failed::Reaching, cause, fix: fix.into() }
    }

    fn refused(&self, status: StatusCode, body: &[u8]) -> Error {
        let (cause, fix) = match serde_json::from_slice::<ApiError>(body) {
            Ok(ApiError { error, fix }) => (error, fix),
            Err(_) => (format!("{} answered {status}", self.daemon.name), self.same_version()),
        };
        Error { kind: Failed::Refused, cause, fix }
    }

    fn see_log(&self) -> String {
        format!("look at the log of {}, then try again", self.daemon.name)
    }

    fn same_version(&self) -> String {
        format!("use programs of one version; this is {}, ask {} for its", env!("CARGO_PKG_VERSION"), self.daemon.name)
    }
}

/// A connection, which ends when this is dropped.
struct Connection(AbortHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The lines of an answer as they come.
pub struct Lines {
    client: Client,
    _connection: Connection,
    body: Incoming,
    buffer: Vec<u8>,
}

impl Lines {
    /// Waits for the next line; `None` at the end.
    ///
    /// # Errors
    /// The connection broke or the line is too long.
    pub async fn next(&mut self) -> Result<Option<String>, Error> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            if self.buffer.len() > STREAM_LINE_BYTES_MAX {
                let cause = format!("a line of more than {STREAM_LINE_BYTES_MAX} bytes");
                return Err(self.client.broken(cause, self.client.same_version()));
            }
            if self.body.is_end_stream() {
                return Ok(None);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.buffer.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Some(Err(error)) => {
                    let fix = format!("start {} again, then try again", self.client.daemon.name);
                    return Err(self.client.broken(error, fix));
                }
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixListener;

    use super::*;

    /// Returns the lines of a daemon that answers with these pieces, each in a segment of its own.
    async fn lines_of(pieces: Vec<Vec<u8>>) -> (Lines, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.sock");
        let listener = UnixListener::bind(&path).unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await.unwrap();
            for piece in pieces {
                tokio::time::sleep(Duration::from_millis(10)).await;
                // A client may go before the end.
                let _ = stream.write_all(&piece).await;
            }
        });
        let client = Client::new(&path, Daemon { name: "netservd", named_by: "--socket" });
        (client.lines("/v1/events").await.unwrap(), dir)
    }

    /// Goal: lines come whole, however they are cut.
    #[tokio::test]
    async fn lines_come_whole() {
        let (mut lines, _dir) = lines_of(vec![b"on".to_vec(), b"e\ntwo\n\nthr".to_vec(), b"ee\n".to_vec()]).await;
        for expected in ["one", "two", "", "three"] {
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(expected));
        }
        assert_eq!(lines.next().await.unwrap(), None);
    }

    /// Goal: a line of more than `STREAM_LINE_BYTES_MAX` bytes ends the answer.
    #[tokio::test]
    async fn a_line_has_stream_line_bytes_max() {
        let (mut lines, _dir) = lines_of(vec![vec![b'x'; STREAM_LINE_BYTES_MAX + 1]]).await;
        let error = lines.next().await.unwrap_err();
        assert_eq!(error.kind, Failed::Reaching);
        assert!(error.cause.contains("a line of more than"), "{error}");
    }
}
