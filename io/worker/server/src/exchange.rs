// SPDX-License-Identifier: Apache-2.0
//! One request of a component's to a server, and its answer. Connections whose answers have come whole are kept for the next request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use tokio::task::AbortHandle;
use tokio::time::{Interval, timeout};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::http::body::nothing;
use super::http::forwarding::Answer;
use super::http::heads::{Answers, Heads};
use super::http::hop_by_hop;
use super::http::interim::Excess;
use super::http::kept::Kept;
use super::http::upstream::{self, Sender, Upstream};
use super::route::Route;
use crate::limits;

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    connect: Duration,
    first_byte: Duration,
    between_bytes: Duration,
}

impl Patience {
    /// Returns that of a request that no instance has to wait for.
    pub fn of_the_node() -> Patience {
        Patience {
            connect: limits::EGRESS_CONNECT_TIME_MAX,
            first_byte: limits::HELD_TIME_MAX,
            between_bytes: limits::HELD_IDLE_TIME_MAX,
        }
    }

    /// Returns that of a request with these options, within the node's own bounds.
    pub fn new(options: Option<RequestOptions>) -> Patience {
        let options = options.unwrap_or_default();
        let bounded = |wanted: Option<Duration>, most: Duration| wanted.unwrap_or(most).clamp(SHORTEST, most);
        let between = options.between_bytes_timeout.unwrap_or(limits::EGRESS_IDLE_TIME_MAX);
        Patience {
            connect: bounded(options.connect_timeout, limits::EGRESS_CONNECT_TIME_MAX),
            first_byte: bounded(options.first_byte_timeout, limits::EGRESS_IDLE_TIME_MAX),
            // What was handed over may be silent for as long as its hand-over says.
            between_bytes: between.clamp(SHORTEST, limits::HELD_IDLE_TIME_MAX),
        }
    }
}

/// An interval cannot be shorter.
const SHORTEST: Duration = Duration::from_millis(1);

type Connected = (Sender, http1::Connection<TokioIo<Answers>, WasiBody>);

async fn handshake(route: &Route, patience: Patience) -> Result<Connected, Error> {
    let connecting = async {
        let stream = route.connect(patience.connect).await?;
        let (excess, heads) = (Excess::default(), Heads::default());
        let stream = TokioIo::new(Answers::new(stream, heads.clone(), excess.clone()));
        let (requests, connection) = upstream::builder().handshake(stream).await?;
        Ok::<Connected, Error>((
            Sender { requests, authority: route.authority.clone(), is_secure: route.tls, excess, heads, driver: None },
            connection,
        ))
    };
    timeout(patience.connect, connecting).await.map_err(|_| Error::ConnectionTimeout)?
}

/// Sends a request by the connection of one before if such is kept, or else by a new one. Returns what drives its connection, too.
///
/// # Errors
/// There is no answer.
pub async fn send(
    mut request: Request<WasiBody>,
    route: &Route,
    patience: Patience,
) -> Result<(Response<WasiBody>, Option<AbortHandle>), Error> {
    let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    *request.uri_mut() = path.into();
    let (is_head, keeper) = (request.method() == Method::HEAD, Keeper::of(route, &request));
    let kept = keeper.as_ref().and_then(|keeper| keeper.take(route, repeated(&request).is_some()));
    if let Some(mut sender) = kept
        && matches!(timeout(patience.connect, sender.requests.ready()).await, Ok(Ok(())))
    {
        let again = repeated(&request);
        sender.excess.watch(&mut request);
        let request_sent = sender.heads.expect(request, false, route.taker());
        let sent = timeout(patience.first_byte, sender.requests.try_send_request(request_sent));
        match sent.await.map_err(|_| Error::ConnectionReadTimeout)? {
            Ok(response) => {
                let driver = sender.driver.clone();
                return Ok((answered(response, is_head, patience, sender, keeper)?, driver));
            }
            // RFC 9110 §9.2.2: the server may have closed it before it saw the request.
            Err(mut error) => match error.take_message().or(again).filter(|_| !route.is_passed()) {
                Some(unsent) => request = unsent,
                None => return Err(error.into_error().into()),
            },
        }
    }
    let (mut sender, connection) = handshake(route, patience).await?;
    // It ends when nobody wants to send by it any more, or becomes what it is made.
    let driver = tokio::spawn(async move { connection.with_upgrades().await.ok() }).abort_handle();
    sender.driver = Some(driver.clone());
    sender.excess.watch(&mut request);
    let request = sender.heads.expect(request, true, route.taker());
    let sent = timeout(patience.first_byte, sender.requests.send_request(request));
    let response = sent.await.map_err(|_| Error::ConnectionReadTimeout)??;
    Ok((answered(response, is_head, patience, sender, keeper)?, Some(driver)))
}

/// Where connections are kept for the next request.
enum Keeper {
    /// With the client's own, which requests go by in their order.
    Client(Arc<Upstream>),
    /// With those of all clients of the module.
    Module(Arc<Kept>),
}

impl Keeper {
    /// Returns where the connection of a request is kept; nothing if the request makes it something else.
    fn of(route: &Route, request: &Request<WasiBody>) -> Option<Keeper> {
        let keeper = match &route.upstream {
            Some(upstream) => Keeper::Client(Arc::clone(upstream)),
            None => Keeper::Module(Arc::clone(&route.module.kept)),
        };
        Some(keeper).filter(|_| !request.headers().contains_key(UPGRADE))
    }

    /// Takes a connection. Of those of all clients, requests have none that cannot be sent again: a server ends idle connections when it likes.
    fn take(&self, route: &Route, is_repeatable: bool) -> Option<Sender> {
        match self {
            Keeper::Client(upstream) => upstream.take(&route.authority),
            Keeper::Module(kept) if is_repeatable => kept.take(&route.authority, route.tls),
            Keeper::Module(_) => None,
        }
    }

    fn keep(&self, sender: Sender) {
        match self {
            _ if sender.requests.is_closed() => {}
            Keeper::Client(upstream) => upstream.keep(sender),
            // What comes next by it would be another client's.
            Keeper::Module(_) if sender.heads.is_odd() => {}
            Keeper::Module(kept) => kept.keep(sender),
        }
    }
}

/// Returns a request once more, if it may be sent twice and is known whole.
fn repeated(request: &Request<WasiBody>) -> Option<Request<WasiBody>> {
    if !request.method().is_safe() || !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(nothing());
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    Some(copy)
}

/// Returns what the component gets of a response, to `HEAD` or another request.
fn answered(
    mut response: Response<Incoming>,
    is_head: bool,
    patience: Patience,
    sender: Sender,
    keeper: Option<Keeper>,
) -> Answer {
    if let Some(coding) = other_coding(response.headers()) {
        return Err(Error::HttpResponseTransferCoding(Some(coding)));
    }
    if sender.heads.is_odd() {
        // The lines that are left out may have said so.
        hop_by_hop::make_private(response.headers_mut());
    }
    let mut keep = keeper.map(|keeper| (sender, keeper));
    // RFC 9112 §6.3: none of these has a body. One that comes all the same, and later, would be the next answer.
    let is_bodiless = is_head || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if is_bodiless && promises_body(response.headers()) {
        keep = None;
    }
    // RFC 9112 §6.3: with both, the chunks count, and the connection ends.
    if response.headers().contains_key(TRANSFER_ENCODING) && response.headers_mut().remove(CONTENT_LENGTH).is_some() {
        keep = None;
    }
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        hop_by_hop::strip(response.headers_mut());
    }
    let mut pause = tokio::time::interval(patience.between_bytes);
    pause.reset();
    Ok(response.map(|body| ResponseBody { body, pause, is_awaited: false, is_whole: false, keep }.boxed_unsync()))
}

fn promises_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING) || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0")
}

/// Returns what a body is coded by besides its chunks: whoever gets it without that could not read it (RFC 9112 §6.1).
pub fn other_coding(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(TRANSFER_ENCODING).iter();
    let mut members = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let other = members.find(|member| CODINGS.iter().any(|coding| member.eq_ignore_ascii_case(coding)))?;
    Some(String::from_utf8_lossy(other).into_owned())
}

/// A response's body that must not pause for too long.
struct ResponseBody {
    body: Incoming,
    pause: Interval,
    /// Whether it was asked for what is not there. What nobody asks for makes no pause.
    is_awaited: bool,
    is_whole: bool,
    /// What to keep for the next request when it has come whole.
    keep: Option<(Sender, Keeper)>,
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(frame)) => {
                self.is_awaited = false;
                Poll::Ready(Some(frame.map_err(Error::from)))
            }
            Poll::Ready(None) => {
                self.is_whole = true;
                Poll::Ready(None)
            }
            Poll::Pending => {
                if !std::mem::replace(&mut self.is_awaited, true) {
                    self.pause.reset();
                }
                ready!(self.pause.poll_tick(context));
                Poll::Ready(Some(Err(Error::ConnectionReadTimeout)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let is_whole = self.is_whole || self.body.is_end_stream();
        if let Some((sender, keeper)) = self.keep.take().filter(|_| is_whole) {
            keeper.keep(sender);
        }
    }
}

/// Codings of messages (RFC 9112 §7.2). What is none of them codes nothing.
const CODINGS: [&[u8]; 5] = [b"gzip", b"x-gzip", b"deflate", b"compress", b"x-compress"];
