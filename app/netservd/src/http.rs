// SPDX-License-Identifier: Apache-2.0
//! The HTTP API on the Unix socket. It only translates: every answer comes from the control loop.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use anyhow::{Context, Result, ensure};
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::Listener;
use axum::{Json, Router};
use netserv_model::api::{ApiError, PostRequest};
use netserv_model::{RefusalKind, limits};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::config::Config;
use crate::event::{Call, Event};
use crate::logs::Logs;
use crate::{openapi, trace_http};

/// Bytes of one request body: a message of the greatest size with every byte escaped in JSON, and the rest.
const BODY_BYTES_MAX: usize = 6 * limits::MESSAGE_BYTES_MAX + 4096;
/// Clients at a time, those that follow the log among them; further ones wait. Whoever may use the socket must not be
/// able to take the descriptors that signaling and containers need.
const CLIENTS_MAX: usize = 128;

#[derive(Clone)]
struct Api {
    control: mpsc::Sender<Event>,
    logs: Logs,
    config: Arc<Config>,
}

/// Binds the socket, in place of one that no process serves any more.
///
/// # Errors
/// Another process serves it, or it cannot be made.
pub fn bind(path: &Path) -> Result<UnixListener> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    if let Ok(found) = std::fs::symlink_metadata(path) {
        ensure!(found.file_type().is_socket(), "{} is there and is no socket", path.display());
        let served = std::os::unix::net::UnixStream::connect(path).is_ok();
        ensure!(!served, "another netservd serves {}; stop it, or set `socket` to another path", path.display());
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path).with_context(|| format!("cannot bind {}", path.display()))?;
    // Whoever may write to the socket may use the node's API: the owner and the group.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

/// Serves the API until the runtime ends.
pub async fn serve(listener: UnixListener, control: mpsc::Sender<Event>, logs: Logs, config: Arc<Config>) {
    let app = router(Api { control, logs, config });
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    if let Err(error) = axum::serve(Bounded { listener, places }, app).await {
        tracing::error!(%error, "the HTTP API ended");
    }
}

fn router(api: Api) -> Router {
    Router::new()
        .route("/v1/requests", post(post_request))
        .route("/v1/node", get(node))
        .route("/v1/modules", get(modules))
        .route("/v1/logs", get(logs))
        .route("/v1/config", get(config))
        .route("/v1/trace", post(trace))
        .route("/v1/openapi.json", get(openapi_document))
        .route("/metrics", get(metrics))
        .fallback(async || error(StatusCode::NOT_FOUND, "no such path", "see /v1/openapi.json"))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(api)
}

/// Accepts only as many clients as there are places.
struct Bounded {
    listener: UnixListener,
    places: Arc<Semaphore>,
}

impl Listener for Bounded {
    type Io = Client;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> (Client, Self::Addr) {
        let place = self.places.clone().acquire_owned().await.expect("the places are never closed");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        (Client { stream, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that gives its place back when it ends.
struct Client {
    stream: UnixStream,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Client {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Client {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

async fn post_request(State(api): State<Api>, body: Bytes) -> Response {
    let request: PostRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(cause) => return error(StatusCode::BAD_REQUEST, &cause.to_string(), "see PostRequest in /v1/openapi.json"),
    };
    let (reply, answer) = oneshot::channel();
    match ask(&api, Call::Request(Box::new(request), reply), answer).await {
        Some(Ok(result)) => Json(result).into_response(),
        Some(Err(refusal)) => {
            let status = match refusal.kind == RefusalKind::QuotaExceeded {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => StatusCode::BAD_REQUEST,
            };
            error(status, &refusal.to_string(), refusal.kind.fix())
        }
        None => stopping(),
    }
}

async fn node(State(api): State<Api>) -> Response {
    let (reply, answer) = oneshot::channel();
    ask(&api, Call::Node(reply), answer).await.map_or_else(stopping, |info| Json(info).into_response())
}

async fn modules(State(api): State<Api>) -> Response {
    let (reply, answer) = oneshot::channel();
    ask(&api, Call::Modules(reply), answer).await.map_or_else(stopping, |list| Json(list).into_response())
}

async fn metrics(State(api): State<Api>) -> Response {
    let (reply, answer) = oneshot::channel();
    let text_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    ask(&api, Call::Metrics(reply), answer).await.map_or_else(stopping, |text| (text_type, text).into_response())
}

async fn config(State(api): State<Api>) -> Response {
    Json(&*api.config).into_response()
}

async fn openapi_document() -> Response {
    Json(openapi::document()).into_response()
}

#[derive(Deserialize)]
struct LogQuery {
    /// Whether to go on with new lines.
    #[serde(default)]
    follow: bool,
    /// The first sequence number wanted.
    #[serde(default)]
    since: u64,
}

async fn logs(State(api): State<Api>, Query(query): Query<LogQuery>) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    let first = api.logs.since(query.since);
    let next = first.last().map_or(query.since, |line| line.sequence + 1);
    if !query.follow {
        return (kind, json_lines(&first)).into_response();
    }
    let stream = futures_util::stream::unfold((api.logs, next, Some(first)), |(logs, next, first)| async move {
        let lines = match first {
            Some(lines) => lines,
            None => logs.wait(next).await,
        };
        let next = lines.last().map_or(next, |line| line.sequence + 1);
        Some((Ok::<_, std::convert::Infallible>(json_lines(&lines)), (logs, next, None)))
    });
    (kind, Body::from_stream(stream)).into_response()
}

fn json_lines(lines: &[netserv_model::api::LogLine]) -> String {
    // Plain data always serialises.
    lines.iter().filter_map(|line| serde_json::to_string(line).ok()).flat_map(|json| [json, "\n".into()]).collect()
}

async fn trace(State(api): State<Api>, body: Bytes) -> Response {
    trace_http::post(api.control, body).await
}

async fn ask<T>(api: &Api, call: Call, answer: oneshot::Receiver<T>) -> Option<T> {
    api.control.send(Event::Api(call)).await.ok()?;
    answer.await.ok()
}

/// Says that nobody answers any more.
pub fn stopping() -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, "the node is stopping", "start netservd again")
}

/// Says what is wrong and what to do about it.
pub fn error(status: StatusCode, error: &str, fix: &str) -> Response {
    (status, Json(ApiError { error: error.to_owned(), fix: fix.to_owned() })).into_response()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    use super::*;

    /// Clients that stay hold up other clients, and nothing else; one that leaves makes room.
    #[tokio::test]
    async fn only_clients_max_clients_are_served_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("netservd.sock");
        let (control, _inbox) = mpsc::channel(1);
        let served = serve(bind(&path).unwrap(), control, Logs::default(), Arc::new(Config::default()));
        tokio::spawn(served);
        let mut staying = Vec::new();
        for _ in 0..CLIENTS_MAX {
            staying.push(ask_config(&path).await.expect("there is a place"));
        }
        assert!(ask_config(&path).await.is_none());
        staying.pop();
        assert!(ask_config(&path).await.is_some());
    }

    /// Returns a connection on which an answer came, open for more.
    async fn ask_config(path: &Path) -> Option<UnixStream> {
        let mut stream = UnixStream::connect(path).await.unwrap();
        stream.write_all(b"GET /v1/config HTTP/1.1\r\nhost: node\r\n\r\n").await.unwrap();
        let mut answer = [0; 12];
        let answered = timeout(Duration::from_millis(300), stream.read_exact(&mut answer)).await;
        answered.is_ok().then(|| assert_eq!(&answer, b"HTTP/1.1 200")).map(|()| stream)
    }

    #[tokio::test]
    async fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/netservd.sock");
        drop(bind(&path).unwrap());
        let listener = bind(&path).unwrap();
        assert!(bind(&path).unwrap_err().to_string().contains("another netservd"));
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert!(bind(&path).unwrap_err().to_string().contains("no socket"));
    }
}
