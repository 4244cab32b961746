// SPDX-License-Identifier: Apache-2.0
//! HTTP modules: each request has a fresh instance, a deadline and a share of what the module may use.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue, RETRY_AFTER};
use http::uri::{Authority, Scheme};
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::LogLevel;
use netserv_worker_base::failure::no_state;
use netserv_worker_wasm::one_line;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use wasmtime::Store;
use wasmtime_wasi_http::p2::bindings::ProxyPre;
use wasmtime_wasi_http::p2::bindings::http::types::{ErrorCode, Scheme as WasiScheme};
use wasmtime_wasi_http::p2::body::{HostIncomingBody, HyperOutgoingBody};
use wasmtime_wasi_http::{Error, WasiBody, WasiHttpView as _};

use super::body::{RequestBody, ResponseBody, nothing};
use super::connection::{Deadline, Progress, Underway};
use super::forwarding::{self, Forwarding};
use super::held::{Held, HeldBody};
use super::passing::Passing;
use super::presence::Watched;
use super::upgrade::{Agreed, Switch};
use super::upstream::Upstream;
use super::{again, hop_by_hop, streams};
use crate::accepted::Flow;
use crate::carrier::{Carrier, CarrierPre};
use crate::component::{CHAIN, CheckedComponent, failed, is_full, started};
use crate::egress::Egress;
use crate::engine::ServerEngine;
use crate::exchange;
use crate::limits;
use crate::module::Module;
use crate::state::{ServerState, Sockets};

/// One version of an HTTP module.
pub struct HttpService {
    engine: Arc<ServerEngine>,
    pre: ProxyPre<ServerState>,
    carrier: CarrierPre,
    module: Arc<Module>,
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// As many permits as requests wait of which no instance was told that one is wanted.
    wanted: Arc<Semaphore>,
    /// Whether the component may have the node send requests on.
    forwards: bool,
    /// Raised when what is still under way is to end at once.
    ended: watch::Sender<bool>,
}

/// What a request's connection says of it.
#[derive(Clone)]
pub struct Via {
    /// Between whom it is.
    pub flow: Flow,
    /// Where an intercepted connection went.
    pub upstream: Option<Arc<Upstream>>,
    /// Its client's socket, if anybody looks whether that is there.
    pub client: Option<Watched>,
}

/// How a call of a component ended that did not come back as it should.
enum Ended {
    Failed(wasmtime::Error),
    /// The container's instances are as many, or have as much memory, as they may.
    Full,
    Late,
    /// It only waits, and others wait for an instance.
    Crowded,
    /// The server that it asked makes the client's connection something else.
    Switched(Response<Agreed>),
    Stopped,
}

/// What says whether an answer has a body.
#[derive(Clone, Copy)]
struct Asked {
    is_head: bool,
    is_stream: bool,
}

impl Asked {
    /// Returns whether the body is to be at its end with the head, whatever length that says. HTTP/1 sees to it by itself.
    fn gets_nothing(self, status: StatusCode) -> bool {
        self.is_stream && (self.is_head || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED))
    }
}

type Handled = Result<(), Ended>;
type Answer = Result<Response<HyperOutgoingBody>, ErrorCode>;

impl HttpService {
    /// Makes a service of a component, once one instance of it has been made.
    ///
    /// # Errors
    /// [`RefusalKind::MemoryLimit`] or [`RefusalKind::Trapped`] if there can be no instance.
    pub async fn start(
        engine: &Arc<ServerEngine>,
        component: CheckedComponent,
        module: &Arc<Module>,
    ) -> Result<HttpService, Refusal> {
        let carrier = CarrierPre::new(component.pre.clone());
        let forwards = component.imports(FORWARDING);
        if HITS.iter().any(|hits| component.imports(hits)) && !component.imports(CHAIN) {
            module.hits.open();
        }
        let pre =
            ProxyPre::new(component.pre).map_err(|error| Refusal::new(RefusalKind::AbiMismatch, one_line(&error)))?;
        let (ended, _) = watch::channel(false);
        let turns = Arc::new(Semaphore::new(usize::try_from(module.limits.requests).unwrap_or(usize::MAX >> 4)));
        let (engine, module) = (Arc::clone(engine), Arc::clone(module));
        let (waiting, wanted) = (AtomicUsize::new(0), Arc::new(Semaphore::new(0)));
        let service = HttpService { engine, pre, carrier, module, turns, waiting, wanted, forwards, ended };
        service.instantiate().await?;
        Ok(service)
    }

    /// Makes one instance and drops it. Returns how long making it took.
    ///
    /// # Errors
    /// Those of a module that asks for more than it may have.
    pub async fn instantiate(&self) -> Result<std::time::Duration, Refusal> {
        let mut store = self.engine.store(self.state(Egress::new(&self.module)));
        let began = std::time::Instant::now();
        let made = self.engine.pace(self.pre.instantiate_async(&mut store));
        let made = timeout(limits::START_TIME_MAX, made).await;
        let took = began.elapsed();
        started(made, store.data()).map(|_| took)
    }

    /// Returns what a fresh instance says of the module's state; nothing if it says nothing.
    ///
    /// # Errors
    /// [`RefusalKind::StateRefused`]; the module goes on all the same.
    pub async fn export_state(&self) -> Result<Option<Vec<u8>>, Refusal> {
        if !self.carrier.is_there() {
            return Ok(None);
        }
        let (mut store, carrier) = self.carrier_of_one().await.map_err(|refusal| no_state(&refusal))?;
        carrier.export(&self.engine, &mut store).await.map_err(|refusal| no_state(&refusal))
    }

    /// Has a fresh instance take what another one said.
    ///
    /// # Errors
    /// It takes none, refuses, or fails.
    pub async fn import_state(&self, state: &[u8]) -> Result<(), Refusal> {
        let (mut store, carrier) = self.carrier_of_one().await?;
        carrier.import(&self.engine, &mut store, state).await
    }

    async fn carrier_of_one(&self) -> Result<(Store<ServerState>, Carrier), Refusal> {
        let mut store = self.engine.store(self.state(Egress::new(&self.module)));
        let made = async {
            let instance = self.pre.instance_pre().instantiate_async(&mut store).await?;
            self.carrier.of(&mut store, &instance)
        };
        let made = timeout(limits::START_TIME_MAX, self.engine.pace(made)).await;
        let carrier = started(made, store.data())?;
        Ok((store, carrier))
    }

    /// Returns the module.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// Returns what is looked at of a client: whether it is there, if the module may have the node send its requests on.
    pub fn client(&self, socket: &impl AsFd) -> Option<Watched> {
        if self.forwards { Watched::new(socket) } else { None }
    }

    /// Ends what is still under way.
    pub fn end(&self) {
        self.ended.send_replace(true);
    }

    /// Answers a request, which has until `deadline`.
    ///
    /// # Errors
    /// Never: what goes wrong is a response, too.
    pub async fn handle(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        via: Via,
        progress: Progress,
    ) -> Result<Response<ResponseBody>, Infallible> {
        self.module.counts.request();
        let deadline = Instant::now() + std::time::Duration::from_millis(u64::from(self.module.limits.request_ms));
        // A stream of HTTP/2 ends by itself, and its connection goes on.
        let stream = streams::deadline().filter(|_| request.version() >= Version::HTTP_2);
        let ends = stream.clone().unwrap_or_else(|| Deadline::new(deadline));
        let underway = progress.begin(stream.is_none().then(|| ends.clone()));
        if request.method() == Method::OPTIONS && request.uri().path() == "*" {
            // RFC 9110 §9.3.7: it asks whether somebody is there, and is for no page of the module's.
            return Ok(Response::new(ResponseBody::text("", &self.module)));
        }
        name_server(&mut request, &via.flow);
        let authority = match self.check(&request) {
            Ok(authority) => authority,
            Err(status) => return Ok(self.turn_away(status)),
        };
        if let Some(again) = again::find(&self.module, &request, &authority, &via.flow) {
            return Ok(again.into_response(&self.module, underway, ends));
        }
        let Some(turn) = self.turn(deadline, request.version()).await else {
            return Ok(self.turn_away(StatusCode::SERVICE_UNAVAILABLE));
        };
        let egress = Egress::new(&self.module).that_answers();
        let can_pass = via.upstream.is_some() && request.version() < Version::HTTP_2;
        let passing = can_pass.then(|| Passing::new(&request));
        let egress = match via.upstream {
            Some(upstream) => egress.with_upstream(authority, upstream, passing.clone()),
            None => egress,
        };
        let egress = egress.with_switch(Switch::of(&mut request));
        let scheme = if via.flow.is_secure { WasiScheme::Https } else { WasiScheme::Http };
        let request = request.map(|body| RequestBody::new(body, &self.module));
        let blame = request.body().blame();
        let mut state = self.state(egress);
        (state.flow, state.client) = (Some(via.flow), via.client.as_ref().map(Watched::presence));
        let response = self.answer(request, scheme, state, turn, deadline, Some((underway, ends))).await;
        if passing.is_some_and(|passing| !passing.give()) {
            // The client's connection takes what came, and ends all that waits for it.
            return std::future::pending().await;
        }
        if response.status().is_server_error()
            && let Ok(status) = StatusCode::from_u16(blame.load(Ordering::Acquire))
        {
            // Whoever failed for want of it, the client broke its own rules. One that is too long was counted when it was found to be.
            let is_counted = status == StatusCode::PAYLOAD_TOO_LARGE;
            return Ok(if is_counted { self.own_answer(status) } else { self.turn_away(status) });
        }
        if response.status().is_server_error() {
            self.module.counts.error();
        }
        Ok(response)
    }

    /// Has an instance of this state answer a request whose head was looked at. With it comes what the request is on its connection,
    /// and when it ends there.
    pub async fn answer(
        self: &Arc<Self>,
        request: Request<RequestBody>,
        scheme: WasiScheme,
        mut state: ServerState,
        turn: OwnedSemaphorePermit,
        deadline: Instant,
        underway: Option<(Underway, Deadline)>,
    ) -> Response<ResponseBody> {
        let (underway, ends) = underway.unzip();
        let ended_at = ends.as_ref().map(Deadline::at);
        let (head, body) = request.into_parts();
        let asked = Asked { is_head: head.method == Method::HEAD, is_stream: head.version >= Version::HTTP_2 };
        let (forwarding, body) = match self.forwards {
            true => {
                let progress = underway.as_ref().map(|underway| underway.progress().clone());
                let forwarding = Forwarding::new(body, ends.clone(), &self.wanted, state.client.take(), progress);
                let body = forwarding.body().boxed_unsync();
                (Some(forwarding), body)
            }
            false => (None, body.boxed_unsync()),
        };
        state.forwarding.clone_from(&forwarding);
        let mut store = self.engine.store(state);
        let (sender, receiver) = oneshot::channel();
        let begun = begin(&mut store, scheme, Request::from_parts(head, body), sender);
        let (request, out) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                self.tell(&one_line(&error));
                return self.fail(StatusCode::BAD_REQUEST);
            }
        };
        let (service, broken) = (Arc::clone(self), Arc::new(AtomicBool::new(false)));
        let (breaks, forwards) = (Arc::clone(&broken), forwarding.clone());
        let call = async move {
            let handled = service.run(store, request, out, deadline, forwards, &breaks).await;
            drop(turn);
            handled
        };
        let mut call = EndOnDrop(Some(tokio::spawn(call)));
        let answered = receiver.await;
        if let (Some(ends), Some(at), true) = (&ends, ended_at, answered.is_ok()) {
            ends.set(at);
        }
        match answered {
            Ok(Ok(response)) if response.status().as_u16() >= 200 => {
                // What it does after its answer has begun goes on until the deadline.
                call.0 = None;
                let (mut head, body) = response.into_parts();
                let body = match head.extensions.remove::<Held>() {
                    Some(_) if asked.gets_nothing(head.status) => ResponseBody::held(nothing(), &self.module, underway),
                    Some(held) => {
                        held.begin(ends, underway);
                        ResponseBody::held(body, &self.module, None)
                    }
                    None => ResponseBody::new(body, &self.module, broken, underway),
                };
                Response::from_parts(head, body)
            }
            Ok(Ok(response)) => {
                self.tell(&format!("the component answered a request with status {}", response.status()));
                self.fail(StatusCode::BAD_GATEWAY)
            }
            Ok(Err(code)) => {
                self.tell(&format!("the component answered a request with an error: {code:?}"));
                self.fail(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Err(_) => match (call.join().await, forwarding) {
                (Err(Ended::Switched(answer)), _) => {
                    let (mut head, agreed) = answer.into_parts();
                    head.extensions.insert(agreed);
                    Response::from_parts(head, ResponseBody::held(nothing(), &self.module, underway))
                }
                (Err(Ended::Late | Ended::Crowded | Ended::Stopped), Some(forwarding)) if forwarding.is_under_way() => {
                    self.pass(&forwarding, asked, underway, ends).await
                }
                (handled, _) => self.after(&handled),
            },
        }
    }

    /// Answers with what comes of a request that the node sent on, without the instance.
    async fn pass(
        &self,
        forwarding: &Forwarding,
        asked: Asked,
        underway: Option<Underway>,
        ends: Option<Deadline>,
    ) -> Response<ResponseBody> {
        let Ok(place) = self.module.reserve_held_place() else {
            return self.turn_away(StatusCode::SERVICE_UNAVAILABLE);
        };
        let response = match forwarding.answer().await {
            Ok(response) if response.status().as_u16() >= 200 => response,
            Ok(_) => return self.fail(StatusCode::BAD_GATEWAY),
            Err(Error::ConnectionReadTimeout) => return self.fail(StatusCode::GATEWAY_TIMEOUT),
            Err(_) => return self.fail(StatusCode::BAD_GATEWAY),
        };
        let (mut head, body) = response.into_parts();
        hop_by_hop::strip_framing(&mut head.headers);
        if asked.gets_nothing(head.status) {
            let mut response = Response::new(ResponseBody::held(nothing(), &self.module, underway));
            (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
            return response;
        }
        let stream = HostIncomingBody::new(body).take_stream().expect("nobody has taken it before");
        let (body, held) =
            HeldBody::new(Box::new(stream), None, &head.headers, forwarding::BOUNDS, &self.module, place);
        if let Some(ends) = &ends {
            ends.set(Instant::now() + self.module.patience.time);
        }
        held.begin(ends, underway);
        let mut response = Response::new(ResponseBody::held(body.boxed_unsync(), &self.module, None));
        (*response.status_mut(), *response.headers_mut()) = (head.status, head.headers);
        response
    }

    /// Returns a place among the requests that are served at a time, or nothing if too many wait or none gets free. One that has a
    /// connection of its own waits in any case.
    pub async fn turn(&self, deadline: Instant, version: Version) -> Option<OwnedSemaphorePermit> {
        if let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() {
            return Some(turn);
        }
        let most = match version >= Version::HTTP_2 {
            true => limits::WAITING_PER_REQUEST_MAX.saturating_mul(self.module.limits.requests as usize),
            false => self.module.limits.connections as usize,
        };
        let _waiting = Waiting::begin(self, most)?;
        let until = deadline.min(Instant::now() + limits::TURN_TIME_MAX);
        timeout_at(until, Arc::clone(&self.turns).acquire_owned()).await.ok()?.ok()
    }

    /// Returns the node's side of an instance that answers a request.
    pub fn state(&self, egress: Egress) -> ServerState {
        ServerState::new(&self.module, Sockets::None, egress)
    }

    async fn run(
        self: Arc<Self>,
        mut store: Store<ServerState>,
        request: IncomingRequest,
        out: ResponseOutparam,
        deadline: Instant,
        forwarding: Option<Forwarding>,
        broken: &AtomicBool,
    ) -> Handled {
        let (mut ended, switch) = (self.ended.subscribe(), store.data().egress.switch());
        let call = async {
            let proxy = self.pre.instantiate_async(&mut store).await?;
            proxy.wasi_http_incoming_handler().call_handle(&mut store, request, out).await
        };
        let given_over = async {
            match &forwarding {
                Some(forwarding) => forwarding.given_over().await,
                None => std::future::pending().await,
            }
        };
        let switched = async {
            match &switch {
                Some(switch) => switch.agreed().await,
                None => std::future::pending().await,
            }
        };
        let handled = tokio::select! {
            biased;
            handled = timeout_at(deadline, self.engine.pace(call)) => match handled {
                Ok(Ok(())) => {
                    store.data_mut().egress.let_go();
                    return Ok(());
                }
                Ok(Err(error)) if is_full(&error) || store.data().cap.is_crowded() => Ended::Full,
                Ok(Err(error)) => Ended::Failed(error),
                Err(_) => Ended::Late,
            },
            _ = ended.wait_for(|ended| *ended) => Ended::Stopped,
            answer = switched => Ended::Switched(answer),
            () = given_over => Ended::Crowded,
        };
        let goes_on = forwarding.is_some_and(|forwarding| forwarding.is_under_way());
        // Before the store is dropped, and with it what the body comes from.
        broken.store(true, Ordering::Release);
        match &handled {
            Ended::Failed(error) => self.tell(&failed(error, store.data()).in_full()),
            Ended::Late if goes_on => {}
            Ended::Late => self.tell(&format!("a request took over {} ms", self.module.limits.request_ms)),
            Ended::Full if store.data().cap.is_crowded() => {
                self.tell("a request ended for want of memory that other instances have");
            }
            Ended::Full | Ended::Crowded | Ended::Switched(_) | Ended::Stopped => {}
        }
        Err(handled)
    }

    /// Returns the answer for a call that has given none.
    fn after(&self, handled: &Handled) -> Response<ResponseBody> {
        match handled {
            Ok(()) => {
                self.tell("the component gave no answer to a request");
                self.fail(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Err(Ended::Failed(_)) => self.fail(StatusCode::INTERNAL_SERVER_ERROR),
            Err(Ended::Full | Ended::Crowded) => self.turn_away(StatusCode::SERVICE_UNAVAILABLE),
            Err(Ended::Late) => self.fail(StatusCode::GATEWAY_TIMEOUT),
            Err(Ended::Switched(_) | Ended::Stopped) => self.fail(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    /// Looks at a request's head. Returns whom it is for.
    fn check(&self, request: &Request<Incoming>) -> Result<Authority, StatusCode> {
        if request.method() == Method::CONNECT || exchange::other_coding(request.headers()).is_some() {
            return Err(StatusCode::NOT_IMPLEMENTED);
        }
        // In HTTP/2 nobody else has counted them.
        if request.headers().len() > limits::HEADERS_MAX {
            return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        let length =
            request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()).filter(|_| !self.forwards);
        if length.and_then(|text| text.parse().ok()).is_some_and(|length: u64| length > self.module.limits.body_bytes) {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        authority(request).ok_or(StatusCode::BAD_REQUEST)
    }

    fn turn_away(&self, status: StatusCode) -> Response<ResponseBody> {
        self.module.counts.refused();
        let mut response = self.own_answer(status);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    fn fail(&self, status: StatusCode) -> Response<ResponseBody> {
        self.module.counts.failed();
        self.own_answer(status)
    }

    fn own_answer(&self, status: StatusCode) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::text(status.canonical_reason().unwrap_or(""), &self.module));
        *response.status_mut() = status;
        let plain = HeaderValue::from_static("text/plain");
        response.headers_mut().insert(HeaderName::from_static("content-type"), plain);
        response
    }

    fn tell(&self, text: &str) {
        self.module.log(LogLevel::Error, text.as_bytes());
    }
}

type IncomingRequest = wasmtime::component::Resource<wasmtime_wasi_http::p2::types::HostIncomingRequest>;
type ResponseOutparam = wasmtime::component::Resource<wasmtime_wasi_http::p2::types::HostResponseOutparam>;

fn begin(
    store: &mut Store<ServerState>,
    scheme: WasiScheme,
    request: Request<WasiBody>,
    sender: oneshot::Sender<Answer>,
) -> wasmtime::Result<(IncomingRequest, ResponseOutparam)> {
    let mut http = store.data_mut().http();
    let request = http.new_incoming_request(scheme, request)?;
    Ok((request, http.new_response_outparam(sender)?))
}

/// Has a request of HTTP/1.0 that does not say whom it is for be for the address that it came to.
fn name_server<B>(request: &mut Request<B>, flow: &Flow) {
    if request.version() > Version::HTTP_10
        || request.uri().authority().is_some()
        || request.headers().contains_key(HOST)
    {
        return;
    }
    let (ip, port) = (flow.server.ip().to_canonical(), flow.server.port());
    let is_usual = port == if flow.is_secure { 443 } else { 80 };
    let name = match ip {
        IpAddr::V4(ip) if is_usual => ip.to_string(),
        IpAddr::V6(ip) if is_usual => format!("[{ip}]"),
        IpAddr::V4(_) | IpAddr::V6(_) => SocketAddr::new(ip, port).to_string(),
    };
    if let Ok(name) = HeaderValue::try_from(name) {
        request.headers_mut().insert(HOST, name);
    }
}

/// Returns whom a request is for, if it says so in one way.
fn authority<B>(request: &Request<B>) -> Option<Authority> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    if more.is_some() {
        return None;
    }
    let host = match host {
        Some(host) => Some(Authority::try_from(host.as_bytes()).ok()?),
        None => None,
    };
    let scheme_known = request.uri().scheme().is_none_or(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
    match (request.uri().authority().cloned(), host) {
        _ if !scheme_known => None,
        // RFC 9112 §3.2: a request of HTTP/1.1 has a Host line, also if its target says the same.
        (Some(_), None) if request.version() == Version::HTTP_11 => None,
        // RFC 9113 §8.3.1: and one of HTTP/2 does not differ in them.
        (Some(own), Some(host)) if request.version() == Version::HTTP_2 && own != host => None,
        (own, host) => own.or(host),
    }
}

/// A task that ends with this.
struct EndOnDrop(Option<JoinHandle<Handled>>);

impl EndOnDrop {
    async fn join(&mut self) -> Handled {
        match self.0.as_mut() {
            Some(task) => task.await.unwrap_or(Err(Ended::Stopped)),
            None => Ok(()),
        }
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// One of those that wait for their turn. It wants an instance to end that waits itself.
struct Waiting<'a>(&'a HttpService);

impl Waiting<'_> {
    fn begin(service: &HttpService, most: usize) -> Option<Waiting<'_>> {
        let waiting = Waiting(service);
        if service.waiting.fetch_add(1, Ordering::Relaxed) >= most {
            return None;
        }
        service.wanted.add_permits(1);
        Some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Waiting(HttpService { waiting, wanted, .. }) = self;
        let left = waiting.fetch_sub(1, Ordering::Relaxed) - 1;
        // One more than wait is its own, which no instance was told.
        if wanted.available_permits() > left
            && let Ok(own) = wanted.try_acquire()
        {
            own.forget();
        }
    }
}

/// What components import that have the node send requests on.
const FORWARDING: &str = "netserv:http/forwarding";
/// What components import that have the node answer again by itself.
const HITS: [&str; 2] = ["netserv:http/hits", "netserv:http/counted-hits"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_in_one_way_whom_it_is_for() {
        let check = |uri: &str, hosts: &[&str], version: Version, expected: Option<&str>| {
            let mut request = Request::builder().uri(uri).version(version);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let found = authority(&request.body(()).unwrap());
            assert_eq!(found.as_ref().map(Authority::as_str), expected, "{uri} {hosts:?}");
        };
        check("/", &["a.example"], Version::HTTP_11, Some("a.example"));
        check("/", &["a.example:8080"], Version::HTTP_11, Some("a.example:8080"));
        check("/", &[], Version::HTTP_11, None);
        check("/", &["a.example", "b.example"], Version::HTTP_11, None);
        check("/", &["a.example", "a.example"], Version::HTTP_11, None);
        check("/", &["a b"], Version::HTTP_11, None);
        check("/", &["a/b"], Version::HTTP_11, None);
        check("/", &[""], Version::HTTP_11, None);
        check("http://a.example/", &["b.example"], Version::HTTP_11, Some("a.example"));
        check("http://a.example/", &[], Version::HTTP_11, None);
        check("ftp://a.example/", &["a.example"], Version::HTTP_11, None);
        check("http://a.example/", &[], Version::HTTP_2, Some("a.example"));
        check("http://a.example/", &["a.example"], Version::HTTP_2, Some("a.example"));
        check("http://a.example/", &["b.example"], Version::HTTP_2, None);
    }
}
