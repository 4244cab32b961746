// SPDX-License-Identifier: Apache-2.0
//! `wasi:http/outgoing-handler`: where a component's own HTTP requests go, by HTTP/1.1. A redirect is the component's to follow or not.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::UPGRADE;
use http::uri::{Authority, Scheme};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks,
};

use super::exchange::{Patience, send};
use super::http::forwarding::{Answer, Upload};
use super::http::passing::Passing;
use super::http::upgrade::{self, Switch};
use super::http::upstream::Upstream;
use super::module::Module;
use super::route::Route;
use super::waiting;
use crate::limits;

/// Sends the requests of one instance.
pub struct Egress {
    module: Arc<Module>,
    upstream: Option<(Authority, Arc<Upstream>)>,
    /// The client's request, if it can have its answer as it comes.
    passing: Option<Passing>,
    /// Whether the instance is one of those that answer requests, of which a part may wait for long.
    answers: bool,
    /// The client's connection, if the request that the instance answers is to make it something else.
    switch: Option<Arc<Switch>>,
    /// Whether the instance ended in the middle of what it did, by which the body of a request ends that looks whole.
    broken: Arc<AtomicBool>,
}

impl Egress {
    /// Returns what sends requests only to where the module may connect.
    pub fn new(module: &Arc<Module>) -> Egress {
        let (module, broken) = (Arc::clone(module), Arc::default());
        Egress { module, upstream: None, passing: None, answers: false, switch: None, broken }
    }

    /// Sends the requests of an instance that answers one itself.
    pub fn that_answers(mut self) -> Egress {
        self.answers = true;
        self
    }

    /// Returns whether the instance answers a request.
    pub fn answers(&self) -> bool {
        self.answers
    }

    /// Sends requests to `authority` to where the intercepted flow went, too. What is not understood of the answer to the client's own
    /// request goes to the client, if it is `passing`.
    pub fn with_upstream(mut self, authority: Authority, upstream: Arc<Upstream>, passing: Option<Passing>) -> Egress {
        (self.upstream, self.passing) = (Some((authority, upstream)), passing);
        self
    }

    /// Lets a request of the instance's have the client's connection become something else: one that has an `upgrade` line.
    pub fn with_switch(mut self, switch: Option<Arc<Switch>>) -> Egress {
        self.switch = switch;
        self
    }

    /// Returns what makes the client's connection something else, if it may become that.
    pub fn switch(&self) -> Option<Arc<Switch>> {
        self.switch.clone()
    }

    /// Has bodies that end from here on not be whole: before the resources go that they come from.
    pub fn break_off(&self) {
        self.broken.store(true, Ordering::Release);
    }

    /// Has bodies be what the instance says they are, also when this is dropped: it has come to its own end.
    pub fn let_go(&mut self) {
        self.broken = Arc::default();
    }

    /// Sends on a request of the instance's with a body that is none of the instance's. It goes on for as long as something moves, also behind
    /// an answer that comes before all of the body has gone.
    pub fn forward(
        &self,
        mut request: Request<WasiBody>,
        upload: Upload,
    ) -> impl Future<Output = Answer> + Send + 'static + use<> {
        let (route, switch) = (self.route(&request, true), self.switch());
        upgrade::ask_in(&mut request);
        async move {
            let silent = upload.silent().clone();
            let sent = silent.bound(send(request, &route?, Patience::of_the_node())).await;
            let (response, driver) = sent.unwrap_or(Err(Error::ConnectionReadTimeout))?;
            upload.go_on(driver);
            Switch::unless_agreed(switch, response).await
        }
    }

    /// Returns how to get to the server of a request, with which the body of the client's goes, or not.
    fn route<B>(&self, request: &Request<B>, has_body: bool) -> Result<Route, Error> {
        if self.passing.as_ref().is_some_and(Passing::is_passed) {
            // Nobody would have the answer.
            return Err(Error::ConnectionTerminated);
        }
        let uri = request.uri();
        let authority = uri.authority().ok_or(Error::HttpRequestUriInvalid)?.clone();
        let tls = uri.scheme() == Some(&Scheme::HTTPS);
        let is_same = |(own, upstream): &&(Authority, Arc<Upstream>)| upstream.is_secure() == tls && *own == authority;
        let upstream = self.upstream.as_ref().filter(is_same).map(|(_, upstream)| Arc::clone(upstream));
        if upstream.is_none() && !self.module.has_block("http-client") {
            return Err(Error::HttpRequestDenied);
        }
        let passing = self.passing.as_ref().filter(|own| upstream.is_some() && own.is_same(request, has_body)).cloned();
        Ok(Route { module: Arc::clone(&self.module), authority, tls, upstream, passing })
    }
}

type Exchange = (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpHooks for Egress {
    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Exchange, Error>> + Send> {
        let (route, switch) = (self.route(&request, false), self.switch());
        let broken = Arc::clone(&self.broken);
        let mut request = request.map(|body| RequestBody { body, broken }.boxed_unsync());
        upgrade::ask_in(&mut request);
        let long_waits = self.answers.then(|| self.module.long_waits.clone());
        Box::new(async move {
            let route = route?;
            let sent = send(request, &route, Patience::new(options));
            let (response, _) = match long_waits {
                Some(places) => waiting::bounded(&places, sent).await.unwrap_or(Err(Error::ConnectionLimitReached))?,
                None => sent.await?,
            };
            let response = Switch::unless_agreed(switch, response).await?;
            let driven: Box<dyn Future<Output = Result<(), Error>> + Send> = Box::new(std::future::ready(Ok(())));
            Ok((response, driven))
        })
    }

    /// An instance whose client wants another protocol sees that line, and may send it on.
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        let may_switch = self.switch.is_some();
        Arc::new(move |name| DEFAULT_FORBIDDEN_HEADERS.contains(name) && !(may_switch && *name == UPGRADE))
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        limits::BODY_CHUNK_BYTES_MAX
    }
}

impl Drop for Egress {
    fn drop(&mut self) {
        self.break_off();
    }
}

/// A request's body, which is not whole if its instance ended before it did.
struct RequestBody {
    body: WasiBody,
    broken: Arc<AtomicBool>,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() && self.broken.load(Ordering::Acquire) {
            return Poll::Ready(Some(Err(Error::ConnectionTerminated)));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
