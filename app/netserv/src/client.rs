// SPDX-License-Identifier: Apache-2.0
//! HTTP over the node's Unix socket.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use netserv_model::api::ApiError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::exit::{Exit, Failure, one_line};

/// Bytes of one answer at most.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of one line of a stream at most.
pub const STREAM_LINE_BYTES_MAX: usize = 64 * 1024;
/// How long a call that does not go over the network may take.
pub const LOCAL_CALL_TIME_MAX: Duration = Duration::from_secs(10);

/// A node's HTTP API. Each call makes its own connection.
pub struct Client {
    socket: PathBuf,
    daemon: Daemon,
}

/// Who serves a socket.
#[derive(Clone, Copy)]
enum Daemon {
    Netservd,
    Agent,
}

impl Daemon {
    fn name(self) -> &'static str {
        match self {
            Daemon::Netservd => "netservd",
            Daemon::Agent => "netserv-agent",
        }
    }

    fn options(self) -> &'static str {
        match self {
            Daemon::Netservd => "--socket or NETSERV_SOCKET",
            Daemon::Agent => "--agent-socket or NETSERV_AGENT_SOCKET",
        }
    }
}

impl Client {
    /// Talks to the node that serves this socket.
    pub fn new(socket: &Path) -> Client {
        Client { socket: socket.to_owned(), daemon: Daemon::Netservd }
    }

    /// Talks to the agent that serves this socket.
    pub fn of_agent(socket: &Path) -> Client {
        Client { socket: socket.to_owned(), daemon: Daemon::Agent }
    }

    /// Sends a GET and parses the answer.
    ///
    /// # Errors
    /// The node cannot be reached, or answers with an error or something else.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.call(Method::GET, path, Bytes::new(), LOCAL_CALL_TIME_MAX).await
    }

    /// Sends a POST and parses the answer, which may take `time_max`.
    ///
    /// # Errors
    /// The node cannot be reached, or answers with an error or something else.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        time_max: Duration,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| self.unreachable(error, "report this as a bug"))?;
        self.call(Method::POST, path, body.into(), time_max).await
    }

    /// Sends a GET whose answer is lines without a known end.
    ///
    /// # Errors
    /// The node cannot be reached or answers with an error.
    pub async fn lines(&self, path: &str) -> Result<Lines, Failure> {
        self.lines_of(Method::GET, path, Bytes::new()).await
    }

    /// Sends a POST whose answer is lines without a known end.
    ///
    /// # Errors
    /// The node cannot be reached or answers with an error.
    pub async fn post_lines(&self, path: &str, body: &impl Serialize) -> Result<Lines, Failure> {
        let body = serde_json::to_vec(body).map_err(|error| self.unreachable(error, "report this as a bug"))?;
        self.lines_of(Method::POST, path, body.into()).await
    }

    async fn lines_of(&self, method: Method, path: &str, body: Bytes) -> Result<Lines, Failure> {
        let response = self.within(LOCAL_CALL_TIME_MAX, self.send(method, path, body)).await?;
        let status = response.status();
        if !status.is_success() {
            let body = self.within(LOCAL_CALL_TIME_MAX, self.collect(response.into_body())).await?;
            return Err(api_failure(status, &body));
        }
        Ok(Lines { body: response.into_body(), buffer: Vec::new(), socket: self.socket.clone() })
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        time_max: Duration,
    ) -> Result<T, Failure> {
        let exchange = async {
            let response = self.send(method, path, body).await?;
            let status = response.status();
            Ok((status, self.collect(response.into_body()).await?))
        };
        let (status, body) = self.within(time_max, exchange).await?;
        if !status.is_success() {
            return Err(api_failure(status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| {
            let cause = format!("the answer of {} is not understood: {error}", self.socket.display());
            Failure::new(cause, same_version()).with_exit(Exit::Unreachable)
        })
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>, Failure> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| self.no_connection(&error))?;
        let broken = |error: hyper::Error| self.unreachable(error, "look at the log of netservd, then try again");
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "netserv")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| self.unreachable(error, "report this as a bug"))?;
        sender.send_request(request).await.map_err(broken)
    }

    async fn collect(&self, mut body: Incoming) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| self.unreachable(error, "look at the log of netservd, then try again"))?;
            bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            if bytes.len() > ANSWER_BYTES_MAX {
                let cause = format!("an answer of more than {ANSWER_BYTES_MAX} bytes");
                return Err(self.unreachable(cause, same_version()));
            }
        }
        Ok(bytes)
    }

    async fn within<T>(&self, time: Duration, call: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::time::timeout(time, call).await.unwrap_or_else(|_| {
            let cause = format!("no answer within {} s", time.as_secs());
            Err(self.unreachable(cause, "look at the log of netservd; it may be overloaded"))
        })
    }

    fn no_connection(&self, error: &io::Error) -> Failure {
        let socket = self.socket.display();
        let kind = error.kind();
        let (name, options) = (self.daemon.name(), self.daemon.options());
        let (cause, fix) = if kind == ErrorKind::NotFound {
            let fix = format!("start {name}, or name its socket with {options}");
            (format!("no {name} here: there is no socket {socket}"), fix)
        } else if kind == ErrorKind::ConnectionRefused {
            (format!("{name} does not run: nobody serves {socket}"), format!("start {name}"))
        } else if kind == ErrorKind::PermissionDenied {
            let fix = "become root or a member of the socket's group (`ls -l` shows it)".to_owned();
            (format!("not allowed to use {socket}"), fix)
        } else {
            (format!("cannot connect to {socket}: {error}"), format!("name a socket that {name} serves"))
        };
        Failure::new(cause, fix).with_exit(Exit::Unreachable)
    }

    fn unreachable(&self, error: impl std::fmt::Display, fix: impl AsRef<str>) -> Failure {
        unreachable(&self.socket, error, fix)
    }
}

/// The lines of an answer as they come.
pub struct Lines {
    body: Incoming,
    buffer: Vec<u8>,
    socket: PathBuf,
}

impl Lines {
    /// Waits for the next line; `None` at the end.
    ///
    /// # Errors
    /// The connection broke or the line is too long.
    pub async fn next(&mut self) -> Result<Option<String>, Failure> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            if self.buffer.len() > STREAM_LINE_BYTES_MAX {
                let cause = format!("a line of more than {STREAM_LINE_BYTES_MAX} bytes");
                return Err(unreachable(&self.socket, cause, same_version()));
            }
            if self.body.is_end_stream() {
                return Ok(None);
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.buffer.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Some(Err(error)) => {
                    return Err(unreachable(&self.socket, error, "start netservd again, then try again"));
                }
                None => return Ok(None),
            }
        }
    }
}

fn unreachable(socket: &Path, error: impl std::fmt::Display, fix: impl AsRef<str>) -> Failure {
    Failure::new(format!("netservd at {}: {error}", socket.display()), fix).with_exit(Exit::Unreachable)
}

fn api_failure(status: StatusCode, body: &[u8]) -> Failure {
    let (cause, fix) = match serde_json::from_slice::<ApiError>(body) {
        Ok(ApiError { error, fix }) => (error, fix),
        Err(_) => (format!("netservd answered {status}"), same_version()),
    };
    Failure { exit: Exit::ApiRefused, cause: one_line(&cause), fix: one_line(&fix) }
}

fn same_version() -> String {
    format!("use a netserv and a netservd of one version; this is netserv {}", env!("CARGO_PKG_VERSION"))
}
