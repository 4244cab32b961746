// SPDX-License-Identifier: Apache-2.0
//! Requests that make their connection something else (RFC 9110 §7.8, §9.3.6). After others on an intercepted connection they go to the server
//! that they were for; what asks the module itself, an instance may send on. If the server agrees, the connection goes with them.

use std::sync::{Arc, Mutex, PoisonError};

use http::header::{CONNECTION, HeaderValue, UPGRADE};
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use wasmtime_wasi_http::{Error, WasiBody};

use super::body::ResponseBody;
use super::connection::{Deadline, Progress};
use super::heads::{Answers, Heads};
use super::interim::Excess;
use super::upstream::{self, Upstream, taken};
use super::{hop_by_hop, opening};
use crate::limits;
use crate::module::Module;
use crate::origin::Stream;
use crate::{relay, route};

/// Returns whether a request makes its connection something else.
pub fn is_wanted<B>(request: &Request<B>) -> bool {
    let any = |name, is: fn(&[u8]) -> bool| request.headers().get_all(name).iter().any(|value| is(value.as_bytes()));
    request.method() == Method::CONNECT
        || (any(CONNECTION, opening::nominates_upgrade) && any(UPGRADE, opening::names_protocol))
}

/// A client's connection that an instance may have become something else, by a server's answer.
pub struct Switch {
    client: OnUpgrade,
    answer: Mutex<Option<Response<Agreed>>>,
    is_there: Notify,
}

impl Switch {
    /// Takes what a request says of the protocol that its connection is to become, but for the line that says which.
    pub fn of<B>(request: &mut Request<B>) -> Option<Arc<Switch>> {
        let line = request.headers().get(UPGRADE).cloned();
        let line = line.filter(|_| request.version() == Version::HTTP_11 && is_wanted(request));
        request.headers_mut().remove(UPGRADE);
        hop_by_hop::strip(request.headers_mut());
        request.headers_mut().insert(UPGRADE, line?);
        Some(Arc::new(Switch {
            client: hyper::upgrade::on(request),
            answer: Mutex::default(),
            is_there: Notify::new(),
        }))
    }

    /// Returns the answer of a server, unless it agrees: then the client gets it, and whoever waits for this ends with its instance.
    ///
    /// # Errors
    /// The server agrees to what nobody asked for.
    pub async fn unless_agreed(
        switch: Option<Arc<Switch>>,
        mut answer: Response<WasiBody>,
    ) -> Result<Response<WasiBody>, Error> {
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(answer);
        }
        let switch = switch.ok_or(Error::HttpProtocolError)?;
        let agreed = Agreed { client: switch.client.clone(), server: hyper::upgrade::on(&mut answer) };
        *switch.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer.map(|_| agreed));
        switch.is_there.notify_one();
        std::future::pending().await
    }

    /// Waits until a server agrees. Returns its answer.
    pub async fn agreed(&self) -> Response<Agreed> {
        taken(&self.answer, &self.is_there).await
    }
}

/// Has a request that says which protocol its connection is to become ask for that.
pub fn ask_in<B>(request: &mut Request<B>) {
    if request.headers().contains_key(UPGRADE) {
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// Has the server answer a request. If it agrees, both connections are to become one: [`Agreed`] is among the answer's extensions.
pub async fn pass(
    module: &Arc<Module>,
    mut request: Request<Incoming>,
    upstream: &Arc<Upstream>,
    progress: &Progress,
) -> Response<ResponseBody> {
    let waiting = progress.begin(None);
    module.counts.request();
    let is_tunnel = request.method() == Method::CONNECT;
    let client = hyper::upgrade::on(&mut request);
    let Ok(mut response) = sent(module, request, upstream).await else {
        module.counts.failed();
        let mut response = Response::new(ResponseBody::text("Bad Gateway", module));
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        return response;
    };
    // A server that agrees to CONNECT answers without a body.
    let agrees = response.status() == StatusCode::SWITCHING_PROTOCOLS || (is_tunnel && response.status().is_success());
    if agrees {
        let agreed = Agreed { client, server: hyper::upgrade::on(&mut response) };
        response.extensions_mut().insert(agreed);
    }
    // An answer has its time, whichever end does not hold it up.
    let underway = progress.begin(Some(Deadline::new(Instant::now() + limits::PASSED_TIME_MAX)));
    drop(waiting);
    let passed = |body: Incoming| ResponseBody::passed(body.map_err(Error::from).boxed_unsync(), module, underway);
    response.map(passed)
}

/// Two connections that become one.
#[derive(Clone, Debug)]
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
        let stream = TokioIo::new(Answers::new(connect(module, upstream).await?, Heads::default(), excess));
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
    relay::prepare(&stream);
    match &upstream.name {
        Some(name) => Ok(Box::new(route::secure(module, name, name, stream).await.map_err(drop)?)),
        None => Ok(Box::new(stream)),
    }
}
