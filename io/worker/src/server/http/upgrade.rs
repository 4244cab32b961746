// SPDX-License-Identifier: Apache-2.0
//! Requests that make their connection something else (RFC 9110 §7.8, §9.3.6), after others on it: they go to the server
//! that they were for, and with them the connection if the server agrees.

use std::sync::Arc;

use http::header::{CONNECTION, UPGRADE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout};
use wasmtime_wasi_http::Error;

use super::body::ResponseBody;
use super::connection::{Deadline, Progress};
use super::interim::{Bounded, Excess};
use super::opening;
use super::upstream::{self, Upstream};
use crate::limits;
use crate::server::egress;
use crate::server::module::Module;
use crate::server::origin::Stream;

/// Returns whether a request makes its connection something else.
pub fn is_wanted<B>(request: &Request<B>) -> bool {
    let any = |name, is: fn(&[u8]) -> bool| request.headers().get_all(name).iter().any(|value| is(value.as_bytes()));
    request.method() == Method::CONNECT
        || (any(CONNECTION, opening::nominates_upgrade) && any(UPGRADE, opening::names_protocol))
}

/// Has the server answer a request. If it agrees, both connections are to become one.
pub async fn pass(
    module: &Arc<Module>,
    mut request: Request<Incoming>,
    upstream: &Arc<Upstream>,
    progress: &Progress,
) -> (Response<ResponseBody>, Option<Agreed>) {
    let waiting = progress.begin(None);
    module.counts.request();
    let is_tunnel = request.method() == Method::CONNECT;
    let client = hyper::upgrade::on(&mut request);
    let Ok(mut response) = sent(module, request, upstream).await else {
        module.counts.failed();
        let mut response = Response::new(ResponseBody::text("Bad Gateway", module));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        return (response, None);
    };
    // A server that agrees to CONNECT answers without a body.
    let agrees = response.status() == StatusCode::SWITCHING_PROTOCOLS || (is_tunnel && response.status().is_success());
    let agreed = agrees.then(|| Agreed { client, server: hyper::upgrade::on(&mut response) });
    // An answer has its time, whichever end does not hold it up.
    let underway = progress.begin(Some(Deadline::new(Instant::now() + limits::PASSED_TIME_MAX)));
    drop(waiting);
    let passed = |body: Incoming| ResponseBody::passed(body.map_err(Error::from).boxed_unsync(), module, underway);
    (response.map(passed), agreed)
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

async fn sent(module: &Module, mut request: Request<Incoming>, upstream: &Upstream) -> Result<Response<Incoming>, ()> {
    let excess = Excess::default();
    excess.watch(&mut request);
    let connecting = async {
        let stream = TokioIo::new(Bounded::new(connect(module, upstream).await?, excess));
        upstream::builder().handshake(stream).await.map_err(drop)
    };
    let (mut sender, connection) = timeout(limits::EGRESS_CONNECT_TIME_MAX, connecting).await.map_err(drop)??;
    // It ends with the answer, or becomes what the connection is made.
    tokio::spawn(async move { connection.with_upgrades().await.ok() });
    let sent = timeout(limits::EGRESS_IDLE_TIME_MAX, sender.send_request(request));
    sent.await.map_err(drop)?.map_err(drop)
}

/// Connects to the server, by TLS if that is what the client speaks.
pub async fn connect(module: &Module, upstream: &Upstream) -> Result<Box<dyn Stream>, ()> {
    let stream = upstream.connect().await.map_err(drop)?;
    // Small messages are not to wait for acknowledgements; without the option they do, and still arrive.
    let _ = stream.set_nodelay(true);
    match &upstream.name {
        Some(name) => Ok(Box::new(egress::secure(module, name, name, stream).await.map_err(drop)?)),
        None => Ok(Box::new(stream)),
    }
}
