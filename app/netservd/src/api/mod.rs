// SPDX-License-Identifier: Apache-2.0
//! The HTTP API on the Unix socket. It only translates: every answer comes from the control loop.

mod answer;
mod audit;
mod events;
mod listen;
mod openapi;
mod trace;

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use netserv_api::DrainRequest;
use netserv_model::api::PostRequest;
use netserv_model::{RefusalKind, limits};
use serde::Deserialize;
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use answer::{error, json_lines, stopping};
pub use audit::AuditFiles;
use audit::AuditQuery;
use events::EventQuery;
use listen::Bounded;

use crate::caller::{Caller, Reply};
use crate::config::Config;
use crate::event::{Call, Event};
use crate::logs::Logs;
use crate::newsfeed::NewsFeed;

/// Bytes of one request body: a message of the greatest size with every byte escaped in JSON, and the rest.
const BODY_BYTES_MAX: usize = 6 * limits::MESSAGE_BYTES_MAX + 4096;
/// Clients at a time, those that follow the log among them; further ones wait. Whoever may use the socket must not be
/// able to take the descriptors that signaling and containers need.
const CLIENTS_MAX: usize = 128;

/// Where answers come from.
#[derive(Clone)]
pub struct Api {
    /// The control loop.
    pub control: mpsc::Sender<Event>,
    /// The log.
    pub logs: Logs,
    /// News for requesters.
    pub news: NewsFeed,
    /// The configuration in force.
    pub config: watch::Receiver<Arc<Config>>,
    /// The audit log.
    pub audit: AuditFiles,
}

/// Serves the API until the runtime ends.
pub async fn serve(listener: UnixListener, api: Api) {
    let app = router(api);
    let places = Arc::new(Semaphore::new(CLIENTS_MAX));
    if let Err(error) =
        axum::serve(Bounded { listener, places }, app.into_make_service_with_connect_info::<Caller>()).await
    {
        tracing::error!(%error, "the HTTP API ended");
    }
}

fn router(api: Api) -> Router {
    Router::new()
        .route("/v1/requests", post(post_request))
        .route("/v1/node", get(node))
        .route("/v1/modules", get(modules))
        .route("/v1/users", get(users))
        .route("/v1/usage", get(usage))
        .route("/v1/logs", get(logs))
        .route("/v1/events", get(events))
        .route("/v1/audit", get(audit))
        .route("/v1/audit/verify", get(verify_audit))
        .route("/v1/config", get(config))
        .route("/v1/reload", post(reload))
        .route("/v1/drain", get(drain_report).post(drain))
        .route("/v1/trace", post(trace))
        .route("/v1/openapi.json", get(openapi_document))
        .route("/metrics", get(metrics))
        .fallback(async || error(StatusCode::NOT_FOUND, "no such path", "see /v1/openapi.json"))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(api)
}

async fn post_request(State(api): State<Api>, ConnectInfo(caller): ConnectInfo<Caller>, body: Bytes) -> Response {
    let request: PostRequest = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(cause) => return error(StatusCode::BAD_REQUEST, &cause.to_string(), "see PostRequest in /v1/openapi.json"),
    };
    match ask(&api, caller, |reply| Call::Request(Box::new(request), reply)).await {
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

async fn node(State(api): State<Api>, ConnectInfo(caller): ConnectInfo<Caller>) -> Response {
    ask(&api, caller, Call::Node).await.map_or_else(stopping, |info| Json(info).into_response())
}

async fn modules(State(api): State<Api>, ConnectInfo(caller): ConnectInfo<Caller>) -> Response {
    ask(&api, caller, Call::Modules).await.map_or_else(stopping, |list| Json(list).into_response())
}

async fn users(State(api): State<Api>, ConnectInfo(caller): ConnectInfo<Caller>) -> Response {
    ask(&api, caller, Call::Users).await.map_or_else(stopping, |list| Json(list).into_response())
}

async fn usage(State(api): State<Api>, ConnectInfo(caller): ConnectInfo<Caller>) -> Response {
    ask(&api, caller, Call::Usage).await.map_or_else(stopping, |report| Json(report).into_response())
}

async fn metrics(State(api): State<Api>, ConnectInfo(caller): ConnectInfo<Caller>) -> Response {
    let text_type = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    ask(&api, caller, Call::Metrics).await.map_or_else(stopping, |text| (text_type, text).into_response())
}

async fn config(State(api): State<Api>) -> Response {
    let config = api.config.borrow().clone();
    Json(&*config).into_response()
}

async fn reload(State(api): State<Api>, ConnectInfo(caller): ConnectInfo<Caller>) -> Response {
    match ask(&api, caller, Call::Reload).await {
        Some(Ok(reloaded)) => Json(reloaded).into_response(),
        Some(Err(reason)) => error(
            StatusCode::BAD_REQUEST,
            &reason,
            "mend the file (`netservd config check FILE`), or restart netservd if the cause says so; what was in force stays so",
        ),
        None => stopping(),
    }
}

async fn drain_report(State(api): State<Api>, ConnectInfo(caller): ConnectInfo<Caller>) -> Response {
    ask_drain(&api, caller, None).await
}

async fn drain(State(api): State<Api>, ConnectInfo(caller): ConnectInfo<Caller>, body: Bytes) -> Response {
    match serde_json::from_slice::<DrainRequest>(&body) {
        Ok(request) => ask_drain(&api, caller, Some(request.maintenance)).await,
        Err(cause) => error(StatusCode::BAD_REQUEST, &cause.to_string(), "see DrainRequest in /v1/openapi.json"),
    }
}

async fn ask_drain(api: &Api, caller: Caller, wanted: Option<bool>) -> Response {
    match ask(api, caller, |reply| Call::Drain(wanted, reply)).await {
        Some(Ok(report)) => Json(report).into_response(),
        Some(Err(reason)) => error(StatusCode::BAD_REQUEST, &reason, "the node goes on as before; see its log"),
        None => stopping(),
    }
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

async fn events(State(api): State<Api>, query: Result<Query<EventQuery>, QueryRejection>) -> Response {
    events::get(api.news, query)
}

async fn audit(State(api): State<Api>, query: Result<Query<AuditQuery>, QueryRejection>) -> Response {
    api.audit.get(query).await
}

async fn verify_audit(State(api): State<Api>) -> Response {
    api.audit.verify().await
}

async fn trace(State(api): State<Api>, ConnectInfo(caller): ConnectInfo<Caller>, body: Bytes) -> Response {
    trace::post(&api, caller, body).await
}

/// Asks the control loop; nothing if the node stops.
async fn ask<T>(api: &Api, caller: Caller, call: impl FnOnce(Reply<T>) -> Call) -> Option<T> {
    let (to, answer) = oneshot::channel();
    api.control.send(Event::Api(call(Reply { caller, to }))).await.ok()?;
    answer.await.ok()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use netserv_model::UnixTime;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;
    use tokio::time::timeout;

    use super::*;
    use crate::audit::folder::Folder;
    use crate::unix_socket::{OWNER_AND_GROUP, bind};

    /// Clients that stay hold up other clients, and nothing else; one that leaves makes room.
    #[tokio::test]
    async fn only_clients_max_clients_are_served_at_a_time() {
        let (dir, path) = folder();
        let _inbox = serve_in(dir.path(), &path);
        let mut staying = Vec::new();
        for _ in 0..CLIENTS_MAX {
            staying.push(ask_config(&path).await.expect("there is a place"));
        }
        assert!(ask_config(&path).await.is_none());
        staying.pop();
        assert!(ask_config(&path).await.is_some());
    }

    /// Goal: each call says which process of which user made it.
    #[tokio::test]
    async fn calls_name_their_callers() {
        let (dir, path) = folder();
        let mut inbox = serve_in(dir.path(), &path);
        let mut stream = UnixStream::connect(&path).await.unwrap();
        stream.write_all(b"POST /v1/reload HTTP/1.1\r\nhost: node\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        let Some(Event::Api(Call::Reload(reply))) = inbox.recv().await else { panic!("no reload") };
        let own = (rustix::process::getuid().as_raw(), rustix::process::getpid().as_raw_nonzero().get());
        assert_eq!(reply.caller, Caller::Process { uid: own.0, pid: Some(own.1) });
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("netservd.sock");
        (dir, path)
    }

    /// Serves the API at a socket, and returns what the control loop would get.
    fn serve_in(dir: &Path, path: &Path) -> mpsc::Receiver<Event> {
        let (control, inbox) = mpsc::channel(1);
        let (news, config) = (NewsFeed::new(UnixTime(1)), watch::channel(Arc::new(Config::default())).1);
        let listener = bind(path, OWNER_AND_GROUP, "socket").unwrap();
        let audit = AuditFiles::new(Folder::of(dir, 1, 1));
        tokio::spawn(serve(listener, Api { control, logs: Logs::default(), news, config, audit }));
        inbox
    }

    /// Returns a connection on which an answer came, open for more.
    async fn ask_config(path: &Path) -> Option<UnixStream> {
        let mut stream = UnixStream::connect(path).await.unwrap();
        stream.write_all(b"GET /v1/config HTTP/1.1\r\nhost: node\r\n\r\n").await.unwrap();
        let mut answer = [0; 12];
        let answered = timeout(Duration::from_millis(300), stream.read_exact(&mut answer)).await;
        answered.is_ok().then(|| assert_eq!(&answer, b"HTTP/1.1 200")).map(|()| stream)
    }
}
