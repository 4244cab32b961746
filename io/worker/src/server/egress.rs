// SPDX-License-Identifier: Apache-2.0
//! `wasi:http/outgoing-handler`: where a component's own HTTP requests go. HTTP/1.1 over TCP, and over TLS toward
//! servers whose certificates the authorities of Mozilla's list vouch for, or the operator's own.
//!
//! Only addresses that the module's `connect` filters name are tried, whatever a name server says, and a redirect is the
//! component's to follow or not.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use netserv_wire::container::frames::LogLevel;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, Interval, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use super::http::body::nothing;
use super::http::forwarding::{Answer, Upload};
use super::http::heads::{Answers, Heads, Taker};
use super::http::hop_by_hop;
use super::http::interim::{Bounded, Excess};
use super::http::upstream::{self, Sender, Upstream};
use super::module::{Module, Transport};
use super::origin::Stream;
use super::{tls, waiting};
use crate::limits;

/// Where a container has the operator's own authorities, if there are any.
pub const AUTHORITIES: &str = "/etc/authorities.pem";

static AUTHORITIES_FILE: OnceLock<PathBuf> = OnceLock::new();

/// Names the file of the operator's own authorities, in PEM. It is read when the first request over TLS is sent, and need
/// not be there.
pub fn trust(authorities: PathBuf) {
    // A process has one such file.
    let _ = AUTHORITIES_FILE.set(authorities);
}

/// Sends the requests of one instance.
pub struct Egress {
    module: Arc<Module>,
    upstream: Option<(Authority, Arc<Upstream>)>,
    /// Whether the client can have an answer as it comes.
    passes: bool,
    /// Whether the instance is one of those that answer requests, of which a part may wait for long.
    answers: bool,
    /// Whether the instance ended in the middle of what it did, by which the body of a request ends that looks whole.
    broken: Arc<AtomicBool>,
}

impl Egress {
    /// Returns what sends requests only to where the module may connect.
    pub fn new(module: &Arc<Module>) -> Egress {
        Egress { module: Arc::clone(module), upstream: None, passes: false, answers: false, broken: Arc::default() }
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

    /// Sends requests to `authority` to where the intercepted flow went, too. If the client's connection can become one with the server's, it
    /// `passes` what is not understood of the answer.
    pub fn with_upstream(mut self, authority: Authority, upstream: Arc<Upstream>, passes: bool) -> Egress {
        (self.upstream, self.passes) = (Some((authority, upstream)), passes);
        self
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
        request: Request<WasiBody>,
        upload: Upload,
    ) -> impl Future<Output = Answer> + Send + 'static + use<> {
        let route = self.route(request.uri());
        async move {
            let silent = upload.silent().clone();
            let sent = silent.bound(send(request, route?, Patience::of_the_node(), true)).await;
            let (response, driver) = sent.unwrap_or(Err(Error::ConnectionReadTimeout))?;
            upload.go_on(driver);
            Ok(response)
        }
    }

    /// Returns how to get to the server of a request.
    fn route(&self, uri: &Uri) -> Result<Route, Error> {
        let authority = uri.authority().ok_or(Error::HttpRequestUriInvalid)?.clone();
        let tls = uri.scheme() == Some(&Scheme::HTTPS);
        let is_same = |(own, upstream): &&(Authority, Arc<Upstream>)| upstream.is_secure() == tls && *own == authority;
        let upstream = self.upstream.as_ref().filter(is_same).map(|(_, upstream)| Arc::clone(upstream));
        if upstream.is_none() && !self.module.has_block("http-client") {
            return Err(Error::HttpRequestDenied);
        }
        let passes = self.passes && upstream.is_some();
        Ok(Route { module: Arc::clone(&self.module), authority, tls, upstream, passes })
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
        let route = self.route(request.uri());
        let broken = Arc::clone(&self.broken);
        let request = request.map(|body| RequestBody { body, broken }.boxed_unsync());
        let long_waits = self.answers.then(|| self.module.long_waits.clone());
        Box::new(async move {
            let sent = send(request, route?, Patience::new(options), false);
            let (response, _) = match long_waits {
                Some(places) => waiting::bounded(&places, sent).await.unwrap_or(Err(Error::ConnectionLimitReached))?,
                None => sent.await?,
            };
            let driven: Box<dyn Future<Output = Result<(), Error>> + Send> = Box::new(std::future::ready(Ok(())));
            Ok((response, driven))
        })
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

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
struct Patience {
    connect: Duration,
    first_byte: Duration,
    between_bytes: Duration,
}

impl Patience {
    /// Returns that of a request that no instance has to wait for.
    fn of_the_node() -> Patience {
        Patience {
            connect: limits::EGRESS_CONNECT_TIME_MAX,
            first_byte: limits::HELD_TIME_MAX,
            between_bytes: limits::HELD_IDLE_TIME_MAX,
        }
    }

    fn new(options: Option<RequestOptions>) -> Patience {
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

/// The way to a server.
struct Route {
    module: Arc<Module>,
    authority: Authority,
    tls: bool,
    upstream: Option<Arc<Upstream>>,
    /// Whether an answer that is not understood goes to the client as it comes.
    passes: bool,
}

impl Route {
    /// Connects in `time`, which the caller sees to.
    async fn connect(&self, time: Duration) -> Result<Box<dyn Stream>, Error> {
        let stream = match &self.upstream {
            Some(upstream) => upstream.connect().await.map_err(Error::Connect)?,
            None => self.connect_as_permitted(time).await?,
        };
        // Small requests are not to wait for acknowledgements; without the option they do, and still arrive.
        let _ = stream.set_nodelay(true);
        if !self.tls {
            return Ok(Box::new(stream));
        }
        Ok(Box::new(secure(&self.module, self.host(), self.authority.as_str(), stream).await?))
    }

    async fn connect_as_permitted(&self, time: Duration) -> Result<TcpStream, Error> {
        let until = Instant::now() + time;
        let port = self.authority.port_u16().unwrap_or(if self.tls { 443 } else { 80 });
        let found: Vec<SocketAddr> = match self.host().parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => tokio::net::lookup_host((self.host(), port)).await.map_err(no_name)?.collect(),
        };
        let permitted = found.into_iter().filter(|address| self.module.may_connect(Transport::Tcp, *address));
        let permitted: Vec<SocketAddr> = permitted.take(limits::EGRESS_ADDRESSES_MAX).collect();
        connect_to_one_of(&permitted, until).await
    }

    /// Returns the host without the brackets of an IPv6 address.
    fn host(&self) -> &str {
        let host = self.authority.host();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }
}

/// Begins TLS with a server that is to have a certificate for `host`. Why there is none is in the module's log.
///
/// # Errors
/// There is none, as `wasi:http` knows it.
pub async fn secure(
    module: &Module,
    host: &str,
    server: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Error> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| Error::HttpRequestUriInvalid)?;
    let connected = TlsConnector::from(client_config()?).connect(name, stream).await;
    connected.map_err(|error| {
        module.log(LogLevel::Warn, format!("no TLS with {server}: {error}").as_bytes());
        no_tls(error)
    })
}

fn no_tls(error: io::Error) -> Error {
    match error.get_ref().and_then(|cause| cause.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented) => {
            Error::TlsCertificateError
        }
        Some(rustls::Error::AlertReceived(alert)) => {
            Error::TlsAlertReceived { alert_id: Some((*alert).into()), alert_message: Some(format!("{alert:?}")) }
        }
        Some(_) | None => Error::Tls(error),
    }
}

/// Connects to the first address that answers. Each has its share of the time that is left: one that is silent leaves the
/// others theirs.
async fn connect_to_one_of(addresses: &[SocketAddr], until: Instant) -> Result<TcpStream, Error> {
    let mut last = Error::HttpRequestDenied;
    for (address, left) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let share = until.saturating_duration_since(Instant::now()) / u32::try_from(left).unwrap_or(u32::MAX);
        last = match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => Error::Connect(error),
            Err(_) => Error::ConnectionTimeout,
        };
    }
    Err(last)
}

fn no_name(_: io::Error) -> Error {
    Error::DnsError { rcode: None, info_code: None }
}

fn client_config() -> Result<Arc<ClientConfig>, Error> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| tls::client(AUTHORITIES_FILE.get().map(PathBuf::as_path)).map(Arc::new));
    config.clone().map_err(|why| Error::InternalError(Some(why)))
}

/// Sends a request. Returns what drives its connection, too, unless that has ended. What `outlasts` its answer is sent on behind it.
async fn send(
    mut request: Request<WasiBody>,
    route: Route,
    patience: Patience,
    outlasts: bool,
) -> Result<(Response<WasiBody>, Option<AbortHandle>), Error> {
    let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    *request.uri_mut() = path.into();
    if let Some(upstream) = route.upstream.clone() {
        return send_upstream(request, &route, &upstream, patience).await;
    }
    let (sender, connection) = handshake(&route, patience).await?;

    // The connection has to be driven while the answer is waited for, and afterwards for the answer's body.
    let mut connection = Box::pin(connection);
    let mut answer = pin!(answer(sender, request, patience));
    let mut ended = false;
    let response = std::future::poll_fn(|context| {
        if let Poll::Ready(answer) = answer.as_mut().poll(context) {
            return Poll::Ready(answer);
        }
        if ended {
            return Poll::Pending;
        }
        let outcome = ready!(connection.as_mut().poll(context));
        ended = true;
        // What comes behind an answer takes nothing from it.
        match (answer.as_mut().poll(context), outcome) {
            (Poll::Ready(Ok(answer)), _) => Poll::Ready(Ok(answer)),
            (_, Err(error)) => Poll::Ready(Err(error.into())),
            (answer, Ok(())) => answer,
        }
    })
    .await?;
    // The body may outlive its instance, and then its connection must, too.
    let connection = (!ended).then(|| Driver(tokio::spawn(async move { connection.await.ok() })));
    let driver = connection.as_ref().map(|Driver(task)| task.abort_handle());
    let response = response.map(|body| Driven { body, connection, outlasts, is_whole: false }.boxed_unsync());
    Ok((response, driver))
}

/// A body with the connection that it comes by.
struct Driven {
    body: WasiBody,
    connection: Option<Driver>,
    /// Whether the connection goes on without it, once it has come whole.
    outlasts: bool,
    is_whole: bool,
}

impl Drop for Driven {
    fn drop(&mut self) {
        let is_whole = self.is_whole || self.body.is_end_stream();
        if let Some(Driver(task)) = self.connection.take_if(|_| !(self.outlasts && is_whole)) {
            task.abort();
        }
    }
}

/// The task of a connection.
struct Driver(JoinHandle<Option<()>>);

impl Body for Driven {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.is_whole |= frame.is_none();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

type Connected = (Sender, http1::Connection<TokioIo<Bounded<Answers>>, WasiBody>);

async fn handshake(route: &Route, patience: Patience) -> Result<Connected, Error> {
    let connecting = async {
        let stream = route.connect(patience.connect).await?;
        let (excess, heads) = (Excess::default(), Heads::default());
        let stream = TokioIo::new(Bounded::new(Answers::new(stream, heads.clone()), excess.clone()));
        let (requests, connection) = upstream::builder().handshake(stream).await?;
        Ok::<Connected, Error>((
            Sender { requests, authority: route.authority.clone(), excess, heads, driver: None },
            connection,
        ))
    };
    timeout(patience.connect, connecting).await.map_err(|_| Error::ConnectionTimeout)?
}

/// Sends a request to the server of an intercepted connection, by the connection of the request before if that is there.
async fn send_upstream(
    mut request: Request<WasiBody>,
    route: &Route,
    upstream: &Arc<Upstream>,
    patience: Patience,
) -> Result<(Response<WasiBody>, Option<AbortHandle>), Error> {
    if let Some(mut sender) = upstream.take(&route.authority)
        && matches!(timeout(patience.connect, sender.requests.ready()).await, Ok(Ok(())))
    {
        let again = repeated(&request);
        sender.excess.watch(&mut request);
        sender.heads.expect(false, None);
        let sent = timeout(patience.first_byte, sender.requests.try_send_request(request));
        match sent.await.map_err(|_| Error::ConnectionReadTimeout)? {
            Ok(response) => {
                let driver = sender.driver.clone();
                return Ok((kept(response, sender, upstream, patience)?, driver));
            }
            // RFC 9110 §9.2.2: the server may have closed it before it saw the request.
            Err(mut error) => match error.take_message().or(again) {
                Some(unsent) => request = unsent,
                None => return Err(error.into_error().into()),
            },
        }
    }
    let (mut sender, connection) = handshake(route, patience).await?;
    // It ends when nobody wants to send by it any more.
    let driver = tokio::spawn(async move { connection.await.ok() }).abort_handle();
    sender.driver = Some(driver.clone());
    sender.excess.watch(&mut request);
    let passes_to = route.passes.then(|| {
        let upstream = Arc::clone(upstream);
        Box::new(move |foreign| upstream.give(foreign)) as Taker
    });
    sender.heads.expect(true, passes_to);
    let sent = timeout(patience.first_byte, sender.requests.send_request(request));
    let sent = sent.await.map_err(|_| Error::ConnectionReadTimeout)?;
    if sent.is_err() && upstream.has_given() {
        // The client's connection takes what came, and ends all that waits for it.
        return std::future::pending().await;
    }
    let response = sent?;
    Ok((kept(response, sender, upstream, patience)?, Some(driver)))
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

fn kept(response: Response<Incoming>, sender: Sender, upstream: &Arc<Upstream>, patience: Patience) -> Answer {
    let heads = sender.heads.clone();
    answered(response, patience, &heads, Some((sender, Arc::clone(upstream))))
}

async fn answer(
    mut sender: Sender,
    mut request: Request<WasiBody>,
    patience: Patience,
) -> Result<Response<WasiBody>, Error> {
    sender.excess.watch(&mut request);
    sender.heads.expect(true, None);
    let response = timeout(patience.first_byte, sender.requests.send_request(request));
    let response = response.await.map_err(|_| Error::ConnectionReadTimeout)??;
    answered(response, patience, &sender.heads, None)
}

/// Returns what the component gets of a response.
fn answered(
    mut response: Response<Incoming>,
    patience: Patience,
    heads: &Heads,
    keep: Option<(Sender, Arc<Upstream>)>,
) -> Answer {
    if let Some(coding) = other_coding(response.headers()) {
        return Err(Error::HttpResponseTransferCoding(Some(coding)));
    }
    if heads.is_odd() {
        // The lines that are left out may have said so.
        response.headers_mut().append(CACHE_CONTROL, HeaderValue::from_static("private"));
    }
    // RFC 9112 §6.3: with both, the chunks count.
    if response.headers().contains_key(TRANSFER_ENCODING) {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    hop_by_hop::strip(response.headers_mut());
    let mut pause = tokio::time::interval(patience.between_bytes);
    pause.reset();
    Ok(response.map(|body| ResponseBody { body, pause, is_awaited: false, is_whole: false, keep }.boxed_unsync()))
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
    keep: Option<(Sender, Arc<Upstream>)>,
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
        if let Some((sender, upstream)) = self.keep.take().filter(|_| is_whole) {
            upstream.keep(sender);
        }
    }
}

/// Codings of messages (RFC 9112 §7.2). What is none of them codes nothing.
const CODINGS: [&[u8]; 5] = [b"gzip", b"x-gzip", b"deflate", b"compress", b"x-compress"];

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_silent_address_leaves_time_for_the_next() {
        crate::server::thread::runtime().unwrap().block_on(async {
            let time = Duration::from_secs(1);
            let (silent, _connected) = silent().await;
            let good = TcpListener::bind("127.0.0.1:0").unwrap();
            let begun = Instant::now();
            let stream = connect_to_one_of(&[silent, good.local_addr().unwrap()], begun + time).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), good.local_addr().unwrap());
            assert!(begun.elapsed() >= time / 2, "{:?}", begun.elapsed());
            let refused = {
                let gone = TcpListener::bind("127.0.0.1:0").unwrap();
                gone.local_addr().unwrap()
            };
            assert!(matches!(
                connect_to_one_of(&[silent, refused], Instant::now() + time).await,
                Err(Error::Connect(_))
            ));
            assert!(matches!(
                connect_to_one_of(&[refused, silent], Instant::now() + time).await,
                Err(Error::ConnectionTimeout)
            ));
            assert!(matches!(connect_to_one_of(&[], begun).await, Err(Error::HttpRequestDenied)));
        });
    }

    /// Returns an address that does not answer: more connections than a listener holds wait there to be taken.
    async fn silent() -> (SocketAddr, (TcpListener, Vec<TcpStream>)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let (address, mut connected) = (listener.local_addr().unwrap(), Vec::new());
        while let Ok(stream) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
            connected.push(stream.unwrap());
        }
        (address, (listener, connected))
    }
}
