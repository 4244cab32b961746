// SPDX-License-Identifier: Apache-2.0
//! Requests that make their connection something else (RFC 9110 §7.8, §9.3.6), after others on it: they go to the server
//! that they were for, and with them the connection if the server agrees.

use std::sync::Arc;

use http::header::{CONNECTION, HeaderMap, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use wasmtime_wasi_http::Error;

use super::body::ResponseBody;
use super::connection::Progress;
use super::upstream::Upstream;
use crate::limits;
use crate::server::module::Module;

/// Returns whether a request makes its connection something else.
pub fn is_wanted<B>(request: &Request<B>) -> bool {
    let has = |headers: &HeaderMap, name, wanted: fn(&[u8]) -> bool| {
        let values = headers.get_all(name).iter();
        values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).any(|member| wanted(member.trim_ascii()))
    };
    let headers = request.headers();
    request.method() == Method::CONNECT
        || (has(headers, CONNECTION, |member| member.eq_ignore_ascii_case(b"upgrade"))
            && has(headers, UPGRADE, |member| !member.is_empty() && !member.eq_ignore_ascii_case(b"h2c")))
}

/// Has the server answer a request. If it agrees, both connections are to become one.
pub async fn pass(
    module: &Arc<Module>,
    mut request: Request<Incoming>,
    upstream: &Arc<Upstream>,
    progress: &Progress,
) -> (Response<ResponseBody>, Option<Agreed>) {
    let _underway = progress.begin(None);
    module.counts.request();
    let client = hyper::upgrade::on(&mut request);
    let Ok(mut response) = sent(request, upstream).await else {
        module.counts.failed();
        let mut response = Response::new(ResponseBody::text("Bad Gateway", module));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        return (response, None);
    };
    let agrees = response.status() == StatusCode::SWITCHING_PROTOCOLS || client_asked_for_tunnel(&response);
    let agreed = agrees.then(|| Agreed { client, server: hyper::upgrade::on(&mut response) });
    (response.map(|body| ResponseBody::passed(body.map_err(Error::from).boxed_unsync(), module)), agreed)
}

/// Two connections that become one.
pub struct Agreed {
    client: OnUpgrade,
    server: OnUpgrade,
}

impl Agreed {
    /// Has both connections be one, to its end.
    pub async fn join(self) {
        let Ok((client, server)) = tokio::try_join!(self.client, self.server) else { return };
        let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
        // Either end may break it off.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}

/// A server that agrees to CONNECT answers without a body.
fn client_asked_for_tunnel(response: &Response<Incoming>) -> bool {
    response.extensions().get::<Tunnel>().is_some() && response.status().is_success()
}

/// Marks the answer to a CONNECT.
#[derive(Clone)]
struct Tunnel;

async fn sent(request: Request<Incoming>, upstream: &Upstream) -> Result<Response<Incoming>, ()> {
    let is_tunnel = request.method() == Method::CONNECT;
    let stream = upstream.connect().await.map_err(drop)?;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(limits::HEAD_BYTES_MAX).max_headers(limits::HEADERS_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(drop)?;
    // It ends with the answer, or becomes what the connection is made.
    tokio::spawn(async move { connection.with_upgrades().await.ok() });
    let sent = timeout(limits::EGRESS_IDLE_TIME_MAX, sender.send_request(request));
    let mut response = sent.await.map_err(drop)?.map_err(drop)?;
    if is_tunnel {
        response.extensions_mut().insert(Tunnel);
    }
    Ok(response)
}
