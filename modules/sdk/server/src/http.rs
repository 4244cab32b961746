// SPDX-License-Identifier: Apache-2.0
//! Modules that answer HTTP requests.
//!
//! What takes long, or comes from elsewhere, the node sends by itself while the instance is gone:
//!
//! ```no_run
//! use netserv_server_sdk::compress::{Compressor, Encoding};
//! use netserv_server_sdk::http::{Bounds, HttpModule, Method, Repeat, Request, Response, Scheme, fetch};
//! use netserv_server_sdk::{cache, http_module};
//!
//! /// A minute of silence, an hour in all, and a client that takes at least 1,000 bytes a second.
//! const BOUNDS: Bounds = Bounds { idle_ms: 60_000, total_ms: 3_600_000, least_rate: 1000 };
//!
//! struct Front;
//!
//! impl HttpModule for Front {
//!     fn handle(request: Request) -> Response {
//!         // From the cache, and to who asks for the same again without an instance.
//!         if let Ok(Some(reader)) = cache::get(&request.path)
//!             && let Ok(body) = reader.body(None)
//!         {
//!             let response = Response::stream(200, body, BOUNDS);
//!             let repeat = Repeat { unless: &["cookie"], for_ms: 0, counter: "hits" };
//!             if let Err(error) = response.repeat(&request, &reader, &repeat) {
//!                 eprintln!("the next one gets an instance, too: {error:?}");
//!             }
//!             return response;
//!         }
//!         // From another server, as it is or compressed on its way.
//!         let Ok(fetched) = fetch(&Scheme::Http, "origin.example", &Method::Get, &request.path, &[]) else {
//!             return Response::text(502, "the origin does not answer\n");
//!         };
//!         let takes_gzip = request.header("accept-encoding").is_some_and(|value| value.starts_with(b"gzip"));
//!         match Compressor::open(Encoding::Gzip, 6) {
//!             Ok(coder) if takes_gzip => {
//!                 Response::coded(fetched.status, fetched, coder, BOUNDS).with("content-encoding", "gzip")
//!             }
//!             _ => Response::fetched(fetched.status, fetched, BOUNDS),
//!         }
//!     }
//! }
//!
//! http_module!(Front);
//! ```

use crate::bindings::imports::netserv::cache1_1_0::entries::Reader;
use crate::bindings::imports::netserv::compress1_0_0::codec::Compressor;
use crate::bindings::imports::netserv::compress1_1_0::streams::coded;
pub use crate::bindings::imports::netserv::http1_0_0::hand_over::Bounds;
use crate::bindings::imports::netserv::http1_0_0::hand_over::hand_over;
pub use crate::bindings::imports::netserv::http1_1_0::hits::{self, Error as HitError};
use crate::bindings::imports::netserv::http1_2_0::counted_hits;
use crate::bindings::imports::netserv::http1_3_0::forwarding;
use crate::bindings::imports::netserv::http1_4_0::counted_hand_over;
use crate::bindings::imports::wasi::clocks::monotonic_clock;
use crate::bindings::imports::wasi::http::outgoing_handler;
pub use crate::bindings::imports::wasi::http::types::{ErrorCode, Method, Scheme};
use crate::bindings::imports::wasi::http::types::{
    Fields, FutureIncomingResponse, IncomingBody, IncomingRequest, OutgoingBody, OutgoingRequest, OutgoingResponse,
    RequestOptions, ResponseOutparam,
};
use crate::bindings::imports::wasi::io::poll::poll;
use crate::bindings::imports::wasi::io::streams::{InputStream, OutputStream, StreamError};

/// A module that answers HTTP requests. Each comes to a fresh instance: what is to last goes to [`kv`](crate::kv).
pub trait HttpModule {
    /// Answers one request.
    fn handle(request: Request) -> Response;
}

/// A request.
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// The path with its query, such as `/a?b=c`.
    pub path: String,
    /// The host that was asked, with its port if it has one; empty if the client said none.
    pub authority: String,
    headers: Vec<(String, Vec<u8>)>,
    incoming: IncomingRequest,
}

impl Request {
    fn new(incoming: IncomingRequest) -> Request {
        let method = match incoming.method() {
            Method::Get => "GET".to_owned(),
            Method::Head => "HEAD".to_owned(),
            Method::Post => "POST".to_owned(),
            Method::Put => "PUT".to_owned(),
            Method::Delete => "DELETE".to_owned(),
            Method::Connect => "CONNECT".to_owned(),
            Method::Options => "OPTIONS".to_owned(),
            Method::Trace => "TRACE".to_owned(),
            Method::Patch => "PATCH".to_owned(),
            Method::Other(name) => name,
        };
        Request {
            method,
            path: incoming.path_with_query().unwrap_or_else(|| "/".to_owned()),
            authority: incoming.authority().unwrap_or_default(),
            headers: incoming.headers().entries(),
            incoming,
        }
    }

    /// Returns the first header of a name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// Returns all headers in the order in which they came.
    pub fn headers(&self) -> &[(String, Vec<u8>)] {
        &self.headers
    }

    /// Returns the scheme by which it came: HTTPS where the node speaks TLS for the module.
    pub fn scheme(&self) -> Scheme {
        self.incoming.scheme().unwrap_or(Scheme::Http)
    }

    /// Reads the body.
    ///
    /// # Errors
    /// It is longer than `max` bytes, or the client went away.
    pub fn body(&self, max: usize) -> Result<Vec<u8>, BodyError> {
        let body = self.incoming.consume().map_err(|()| BodyError::Taken)?;
        let stream = body.stream().map_err(|()| BodyError::Taken)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = read(&stream)? {
            if bytes.len() + chunk.len() > max {
                return Err(BodyError::TooLarge);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is longer than what was allowed.
    TooLarge,
    /// The client went away.
    Broken,
    /// It was read before.
    Taken,
}

/// What an answer carries.
pub enum Body {
    /// So many bytes; `content-length` is added.
    Bytes(Vec<u8>),
    /// One chunk after the other, until there is none. After an error the client sees that the body is not whole.
    Chunks(Box<dyn FnMut() -> Result<Option<Vec<u8>>, BodyError>>),
    /// What the node sends by itself; see [`Response::stream`].
    HandedOver(Box<dyn FnOnce(ResponseOutparam, OutgoingResponse)>),
}

/// An answer.
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Body,
}

impl Response {
    /// Returns an answer without headers.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Response {
        Response { status, headers: Vec::new(), body: Body::Bytes(body.into()) }
    }

    /// Returns an answer whose body comes in chunks.
    pub fn chunks(status: u16, next: impl FnMut() -> Result<Option<Vec<u8>>, BodyError> + 'static) -> Response {
        Response { status, headers: Vec::new(), body: Body::Chunks(Box::new(next)) }
    }

    /// Returns an answer whose body is what a stream has, which the node sends by itself: the instance ends. If the stream fails, or a
    /// bound is reached, the client sees that the body is not whole.
    pub fn stream(status: u16, stream: InputStream, bounds: Bounds) -> Response {
        let begin = move |out, head| {
            if let Err(error) = hand_over(out, head, stream, bounds) {
                eprintln!("an answer was not handed over: {error:?}");
            }
        };
        Response { status, headers: Vec::new(), body: Body::HandedOver(Box::new(begin)) }
    }

    /// Returns an answer whose body is that of another server, which the node sends by itself as with [`Response::stream`].
    pub fn fetched(status: u16, fetched: Fetched, bounds: Bounds) -> Response {
        let begin = move |out, head| {
            let Fetched { stream, _body, .. } = fetched;
            if let Err(error) = hand_over(out, head, stream, bounds) {
                eprintln!("an answer was not handed over: {error:?}");
            }
        };
        Response { status, headers: Vec::new(), body: Body::HandedOver(Box::new(begin)) }
    }

    /// Does what [`Response::fetched`] does, and has the bytes be added to a counter of this name as they come from the other server.
    pub fn fetched_and_counted(status: u16, fetched: Fetched, bounds: Bounds, counter: &str) -> Response {
        let counter = counter.to_owned();
        let begin = move |out, head| {
            let Fetched { stream, _body, .. } = fetched;
            if let Err(error) = counted_hand_over::hand_over(out, head, stream, bounds, &counter) {
                eprintln!("an answer was not handed over: {error:?}");
            }
        };
        Response { status, headers: Vec::new(), body: Body::HandedOver(Box::new(begin)) }
    }

    /// Returns an answer whose body is that of another server, compressed by the node on its way, as with [`Response::stream`]. Who asks
    /// has to take this encoding; `content-encoding` and the like are the module's to say.
    pub fn coded(status: u16, fetched: Fetched, coder: Compressor, bounds: Bounds) -> Response {
        let begin = move |out, head| {
            let Fetched { stream, _body, .. } = fetched;
            if let Err(error) = hand_over(out, head, coded(coder, stream), bounds) {
                eprintln!("an answer was not handed over: {error:?}");
            }
        };
        Response { status, headers: Vec::new(), body: Body::HandedOver(Box::new(begin)) }
    }

    /// Has the instance do something once it has answered. It may take until the request's deadline, also if the client has gone.
    #[must_use]
    pub fn then(self, work: impl FnOnce() + 'static) -> Response {
        let Response { status, mut headers, body } = self;
        if let Body::Bytes(bytes) = &body
            && may_have_content(status)
        {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
            headers.push(("content-length".to_owned(), bytes.len().to_string().into_bytes()));
        }
        let begin = move |out, head| {
            body.send(out, head);
            work();
        };
        Response { status, headers, body: Body::HandedOver(Box::new(begin)) }
    }

    /// Has the node give this answer to further requests for the same by itself, without an instance, with the body of the entry that
    /// `reader` reads. [`hits`] says which requests those are, and until when. Headers that the node adds, and those of one connection,
    /// are left out.
    ///
    /// # Errors
    /// Why further requests get an instance, as without this.
    pub fn repeat(&self, request: &Request, reader: &Reader, repeat: &Repeat<'_>) -> Result<(), HitError> {
        let (target, answer) = self.repeated(request, repeat);
        hits::put(&target, &answer, reader)
    }

    /// Does what [`Response::repeat`] does, and has the bytes of the bodies be counted by a counter of this name, too.
    ///
    /// # Errors
    /// Why further requests get an instance, as without this.
    pub fn repeat_and_count(
        &self,
        request: &Request,
        reader: &Reader,
        repeat: &Repeat<'_>,
        bytes_counter: &str,
    ) -> Result<(), HitError> {
        let (target, answer) = self.repeated(request, repeat);
        counted_hits::put(&target, &answer, bytes_counter, reader)
    }

    fn repeated(&self, request: &Request, repeat: &Repeat<'_>) -> (hits::Target, hits::Answer) {
        let of_the_node = |name: &str| OF_THE_NODE.iter().any(|own| name.eq_ignore_ascii_case(own));
        let target = hits::Target { authority: request.authority.clone(), path_with_query: request.path.clone() };
        let answer = hits::Answer {
            status: self.status,
            headers: self.headers.iter().filter(|(name, _)| !of_the_node(name)).cloned().collect(),
            unless: repeat.unless.iter().map(|name| (*name).to_owned()).collect(),
            for_ms: repeat.for_ms,
            counter: repeat.counter.to_owned(),
        };
        (target, answer)
    }

    /// Returns an answer of plain text.
    pub fn text(status: u16, body: impl Into<String>) -> Response {
        Response::new(status, body.into()).with("content-type", "text/plain; charset=utf-8")
    }

    /// Returns an answer of HTML.
    pub fn html(status: u16, body: impl Into<String>) -> Response {
        Response::new(status, body.into()).with("content-type", "text/html; charset=utf-8")
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Response {
        self.headers.push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    fn send(self, out: ResponseOutparam) {
        let response = OutgoingResponse::new(self.fields());
        if response.set_status_code(self.status).is_err() {
            eprintln!("{} is no status code; 200 is sent", self.status);
        }
        self.body.send(out, response);
    }

    fn fields(&self) -> Fields {
        let fields = Fields::new();
        for (name, value) in &self.headers {
            if let Err(error) = fields.append(name, value) {
                eprintln!("the header {name} is left out: {error:?}");
            }
        }
        if let Body::Bytes(bytes) = &self.body
            && may_have_content(self.status)
        {
            let length = bytes.len().to_string().into_bytes();
            let _ = fields.set("content-length", &[length]);
        }
        fields
    }
}

/// Which further requests get an answer from the node by itself, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repeat<'a> {
    /// Names of headers: who sends one of them gets an instance.
    pub unless: &'a [&'a str],
    /// Milliseconds after which the next request gets an instance; 0 for as long as the entry is fresh.
    pub for_ms: u32,
    /// The counter that counts these answers; none if it is empty.
    pub counter: &'a str,
}

impl Body {
    fn send(self, out: ResponseOutparam, head: OutgoingResponse) {
        match self {
            Body::Bytes(bytes) => send_body(out, head, |stream| write_all(stream, &bytes)),
            Body::Chunks(next) => send_body(out, head, |stream| write_chunks(stream, next)),
            Body::HandedOver(begin) => begin(out, head),
        }
    }
}

/// Returns whether an answer of this status has a length (RFC 9110 §8.6).
fn may_have_content(status: u16) -> bool {
    !matches!(status, 100..=199 | 204 | 304)
}

fn send_body(
    out: ResponseOutparam,
    response: OutgoingResponse,
    write: impl FnOnce(&OutputStream) -> Result<(), BodyError>,
) {
    let body = response.body().expect("the body is asked for once");
    ResponseOutparam::set(out, Ok(response));
    let stream = body.write().expect("the stream is asked for once");
    let written = write(&stream);
    drop(stream);
    // Without the end of the body, the client sees that it is not whole.
    if written.is_ok() {
        let _ = OutgoingBody::finish(body, None);
    }
}

fn write_chunks(
    stream: &OutputStream,
    mut next: impl FnMut() -> Result<Option<Vec<u8>>, BodyError>,
) -> Result<(), BodyError> {
    while let Some(chunk) = next()? {
        write_all(stream, &chunk)?;
    }
    Ok(())
}

/// What came back from another server.
pub struct Fetched {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, Vec<u8>)>,
    stream: InputStream,
    // The stream belongs to it.
    _body: IncomingBody,
}

impl Fetched {
    /// Returns the first header of a name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// Returns the next bytes of the body, nothing at its end.
    ///
    /// # Errors
    /// The server went away.
    pub fn chunk(&mut self) -> Result<Option<Vec<u8>>, BodyError> {
        read(&self.stream)
    }
}

/// Sends a request without a body and waits for the answer's head. Where to is what the operator permits.
///
/// # Errors
/// What WASI says of it.
pub fn fetch(
    scheme: &Scheme,
    authority: &str,
    method: &Method,
    path: &str,
    headers: &[(String, Vec<u8>)],
) -> Result<Fetched, ErrorCode> {
    wait_for(&send_head(scheme, authority, method, path, headers, false)?.1)
}

/// Sends a request on to whom it is for, with its body but other headers, and waits for the answer's head.
///
/// # Errors
/// What WASI says of it; [`ErrorCode::ConnectionReadTimeout`] if the client stops in the middle of the body.
pub fn forward(scheme: &Scheme, request: Request, headers: &[(String, Vec<u8>)]) -> Result<Fetched, ErrorCode> {
    let method = request.incoming.method();
    let incoming = request.incoming.consume().map_err(|()| ErrorCode::InternalError(None))?;
    let from = incoming.stream().map_err(|()| ErrorCode::InternalError(None))?;
    let broken = |_| ErrorCode::ConnectionReadTimeout;
    let mut next = read(&from).map_err(broken)?;
    let (body, answer) = send_head(scheme, &request.authority, &method, &request.path, headers, next.is_some())?;
    let Some(body) = body else { return wait_for(&answer) };
    let to = body.write().map_err(|()| ErrorCode::InternalError(None))?;
    let mut taken = true;
    while taken && let Some(chunk) = next {
        // A server may answer without having read all of it.
        taken = write_all(&to, &chunk).is_ok();
        next = read(&from).map_err(broken)?;
    }
    drop(to);
    if taken {
        OutgoingBody::finish(body, None)?;
    }
    wait_for(&answer)
}

/// Sends a request on to whom it is for, with other headers, and waits for the answer's head. The node sends the body by itself, of whatever
/// length, and if the instance's time is over before the answer comes, has the client get that as it is.
///
/// # Errors
/// What WASI says of it.
pub fn forward_or_pass(scheme: &Scheme, request: Request, headers: &[(String, Vec<u8>)]) -> Result<Fetched, ErrorCode> {
    forward_or_pass_with(scheme, request, headers, || {})
}

/// Does what [`forward_or_pass`] does, and calls `late` before the instance may have to end without the answer: a quarter of a second after it
/// began to wait.
///
/// # Errors
/// What WASI says of it.
pub fn forward_or_pass_with(
    scheme: &Scheme,
    request: Request,
    headers: &[(String, Vec<u8>)],
    late: impl FnOnce(),
) -> Result<Fetched, ErrorCode> {
    let method = request.incoming.method();
    let to = head(scheme, &request.authority, &method, &request.path, fields(headers))?;
    let answer = forwarding::forward(request.incoming, to)?;
    let (came, waited) = (answer.subscribe(), monotonic_clock::subscribe_duration(LATE_NS));
    let is_late = !poll(&[&came, &waited]).contains(&0);
    drop((came, waited));
    if is_late {
        late();
    }
    wait_for(&answer)
}

/// Sends a request's head, and returns its body if it is to have one.
fn send_head(
    scheme: &Scheme,
    authority: &str,
    method: &Method,
    path: &str,
    headers: &[(String, Vec<u8>)],
    has_body: bool,
) -> Result<(Option<OutgoingBody>, FutureIncomingResponse), ErrorCode> {
    let fields = fields(headers);
    if !has_body && !matches!(method, Method::Get | Method::Head) {
        // Else it would be one in chunks, of which there are none.
        let _ = fields.set("content-length", &[b"0".to_vec()]);
    }
    let request = head(scheme, authority, method, path, fields)?;
    let invalid = |()| ErrorCode::HttpRequestUriInvalid;
    // Of a request that is known to have none, the node knows that it may be sent twice.
    let body = if has_body { Some(request.body().map_err(invalid)?) } else { None };
    let options = RequestOptions::new();
    // What is handed over may be silent for as long as its bounds say; until then the request's own time counts.
    options.set_between_bytes_timeout(Some(SILENCE_NS_MAX)).map_err(invalid)?;
    Ok((body, outgoing_handler::handle(request, Some(options))?))
}

fn fields(headers: &[(String, Vec<u8>)]) -> Fields {
    let fields = Fields::new();
    for (name, value) in headers {
        // Those of one connection are the node's to set.
        let _ = fields.append(name, value);
    }
    fields
}

fn head(
    scheme: &Scheme,
    authority: &str,
    method: &Method,
    path: &str,
    fields: Fields,
) -> Result<OutgoingRequest, ErrorCode> {
    let request = OutgoingRequest::new(fields);
    let invalid = |()| ErrorCode::HttpRequestUriInvalid;
    request.set_scheme(Some(scheme)).map_err(invalid)?;
    request.set_authority(Some(authority)).map_err(invalid)?;
    request.set_method(method).map_err(invalid)?;
    request.set_path_with_query(Some(path)).map_err(invalid)?;
    Ok(request)
}

fn wait_for(answer: &FutureIncomingResponse) -> Result<Fetched, ErrorCode> {
    answer.subscribe().block();
    let response = answer.get().and_then(Result::ok).unwrap_or(Err(ErrorCode::InternalError(None)))?;
    let body = response.consume().map_err(|()| ErrorCode::InternalError(None))?;
    let stream = body.stream().map_err(|()| ErrorCode::InternalError(None))?;
    Ok(Fetched { status: response.status(), headers: response.headers().entries(), stream, _body: body })
}

/// Returns the next bytes of a stream, nothing at its end.
///
/// # Errors
/// The other side went away.
pub fn read(stream: &InputStream) -> Result<Option<Vec<u8>>, BodyError> {
    match stream.blocking_read(READ_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(StreamError::Closed) => Ok(None),
        Err(StreamError::LastOperationFailed(_)) => Err(BodyError::Broken),
    }
}

/// Writes bytes to a stream, as fast as the other side takes them.
///
/// # Errors
/// The other side went away.
pub fn write_all(stream: &OutputStream, bytes: &[u8]) -> Result<(), BodyError> {
    for chunk in bytes.chunks(WRITE_BYTES) {
        stream.blocking_write_and_flush(chunk).map_err(|_| BodyError::Broken)?;
    }
    Ok(())
}

/// A module that stands before another one of its service, and lets requests through or answers them itself.
///
/// WASI 0.2 has no way to make a request or to look into an answer of the next module, so neither can be changed.
pub trait HttpMiddleware {
    /// Looks at one request. `None` hands it to the next module as it came; its body must not have been read then.
    fn handle(request: &Request) -> Option<Response>;
}

/// Runs a module before the next one on one request; what
/// [`http_middleware!`](crate::http_middleware) calls.
#[doc(hidden)]
pub fn run_before_next<M: HttpMiddleware>(request: IncomingRequest, out: ResponseOutparam) {
    let request = Request::new(request);
    match M::handle(&request) {
        Some(response) => response.send(out),
        None => crate::bindings::middleware::wasi::http::incoming_handler::handle(request.incoming, out),
    }
}

/// Runs a module on one request; what [`http_module!`](crate::http_module) calls.
#[doc(hidden)]
pub fn run<M: HttpModule>(request: IncomingRequest, out: ResponseOutparam) {
    M::handle(Request::new(request)).send(out);
}

/// What the node says of an answer that it gives by itself, or of a connection.
const OF_THE_NODE: [&str; 9] = [
    "age",
    "content-length",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Nanoseconds for which a server may be silent in the middle of its answer: an hour, as the node has it.
const SILENCE_NS_MAX: u64 = 3_600_000_000_000;
/// Nanoseconds after which an answer is late: half of what the node waits while others want an instance.
const LATE_NS: u64 = 250_000_000;
/// Bytes asked for at once.
const READ_BYTES: u64 = 64 * 1024;
/// What `blocking-write-and-flush` takes at once.
const WRITE_BYTES: usize = 4096;

/// Makes a type that is an [`HttpModule`](crate::http::HttpModule) the module of its crate.
#[macro_export]
macro_rules! http_module {
    ($module:ty) => {
        $crate::export_http_handler!($crate::http::run::<$module>);
    };
}

/// Makes a type that is an [`HttpMiddleware`](crate::http::HttpMiddleware) the module of its crate.
#[macro_export]
macro_rules! http_middleware {
    ($module:ty) => {
        $crate::export_http_handler!($crate::http::run_before_next::<$module>);
    };
}

/// Exports a function as what handles requests.
#[doc(hidden)]
#[macro_export]
macro_rules! export_http_handler {
    ($handle:expr) => {
        // On other targets the code is only compiled, for tests of its parts.
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn($crate::wasi::http::types::IncomingRequest, $crate::wasi::http::types::ResponseOutparam) = $handle;

        #[cfg(target_arch = "wasm32")]
        const _: () = {
            struct Exported;

            impl $crate::bindings::http::exports::wasi::http::incoming_handler::Guest for Exported {
                fn handle(
                    request: $crate::wasi::http::types::IncomingRequest,
                    out: $crate::wasi::http::types::ResponseOutparam,
                ) {
                    $handle(request, out);
                }
            }

    $crate::bindings::http::export_http!(Exported with_types_in $crate::bindings::http);
        };
    };
}
