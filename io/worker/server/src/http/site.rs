// SPDX-License-Identifier: Apache-2.0
//! The connections of an HTTP module. They outlive an upgrade: each request goes to the version that serves just then.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, HeaderValue};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::connection::{Judgement, Progress};
use super::heads::Foreign;
use super::intercepted::Ours;
use super::lingering::{End, Lingering};
use super::requests::Requests;
use super::service::{HttpService, Via};
use super::streams::StreamExecutor;
use super::upgrade::Agreed;
use super::upstream::Upstream;
use super::{intercepted, upgrade};
use crate::accepted::Accepted;
use crate::limits;
use crate::origin::Origin;
use crate::places::{IsIdle, Place, Places};
use crate::relay;
use crate::sys;

/// Where the connections of one HTTP module arrive.
pub struct HttpSite {
    current: RwLock<Version>,
    places: Arc<Places>,
    stage: watch::Sender<Stage>,
    /// How long a request may take, and the end of its stream in HTTP/2.
    stream_ms: Arc<AtomicU64>,
    builder: auto::Builder<StreamExecutor>,
}

/// One version of an HTTP module, with its certificate.
#[derive(Clone)]
pub struct Version {
    /// What answers requests.
    pub service: Arc<HttpService>,
    /// With it, connections that are not intercepted are HTTPS.
    pub tls: Option<TlsAcceptor>,
    /// Names in the certificate, in small letters, whose intercepted connections are HTTPS, too.
    pub tls_names: Arc<BTreeSet<String>>,
}

/// One of the connections that a site may have, until this is dropped.
struct SitePlace {
    site: Arc<HttpSite>,
    /// Nothing while this is being dropped.
    place: Option<Place>,
}

impl SitePlace {
    /// Waits until the connection is to give way to another.
    async fn given(&self) {
        match &self.place {
            Some(place) => place.given().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for SitePlace {
    fn drop(&mut self) {
        drop(self.place.take());
        self.site.closed();
    }
}

impl Version {
    /// Ends what is still under way, after [`limits::STOP_TIME_MAX`].
    pub async fn retire(self) {
        tokio::time::sleep(limits::STOP_TIME_MAX).await;
        self.service.end();
    }
}

/// How far the end of the connections has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// They go on.
    Open,
    /// Each ends when its requests have.
    Ending,
    /// Only those go on that are handed on between their ends.
    Relaying,
    /// They end.
    Ended,
}

impl HttpSite {
    /// Returns a site at which `version` answers.
    pub fn new(version: Version) -> HttpSite {
        let (stage, _) = watch::channel(Stage::Open);
        let stream_ms = Arc::new(AtomicU64::new(stream_ms(&version)));
        let builder = builder(StreamExecutor { stream_ms: Arc::clone(&stream_ms) });
        HttpSite { current: RwLock::new(version), places: Arc::default(), stage, stream_ms, builder }
    }

    /// Has another version answer from here on. Requests that the old one has begun end with it.
    pub fn replace(&self, version: Version) {
        self.stream_ms.store(stream_ms(&version), Ordering::Relaxed);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = version;
    }

    /// Returns whether it is this version that answers.
    pub fn is_served_by(&self, version: &Version) -> bool {
        Arc::ptr_eq(&self.version().service, &version.service)
    }

    /// Ends all connections, each when its requests have ended, or after [`limits::STOP_TIME_MAX`].
    pub async fn stop(&self) {
        self.advance(Stage::Ending);
        let _ = timeout(limits::STOP_TIME_MAX, self.emptied()).await;
        self.stage.send_replace(Stage::Ended);
        self.version().service.end();
    }

    /// Ends all connections as [`HttpSite::stop`] does, but for those that are handed on between their ends; waits for these.
    pub async fn drain(&self) {
        self.advance(Stage::Ending);
        let _ = timeout(limits::STOP_TIME_MAX, self.emptied()).await;
        self.advance(Stage::Relaying);
        self.version().service.end();
        self.emptied().await;
    }

    /// Waits until there are no connections, or those that there are were cut.
    async fn emptied(&self) {
        let mut closed = self.stage.subscribe();
        while self.places.len() > 0 && *self.stage.borrow() < Stage::Ended {
            // The sender lives as long as the site.
            let _ = closed.changed().await;
        }
    }

    fn advance(&self, to: Stage) {
        // It may have been cut by then.
        self.stage.send_if_modified(|stage| std::mem::replace(stage, to.max(*stage)) < to);
    }

    /// Returns whether connections go on.
    pub fn is_open(&self) -> bool {
        *self.stage.borrow() == Stage::Open
    }

    /// Ends what [`HttpSite::drain`] waits for.
    pub fn cut(&self) {
        self.stage.send_replace(Stage::Ended);
    }

    /// Takes a connection. With as many as there may be, an idle one of a client that has more of them gives way, or there is
    /// none.
    pub fn accept(self: &Arc<Self>, accepted: Accepted) {
        let version = self.version();
        let module = version.service.module();
        module.counts.connection();
        let most = usize::try_from(module.limits.connections).unwrap_or(usize::MAX);
        if self.places.len() >= most - most / limits::HELD_CROWDED_SHARE {
            module.patience.give_way();
        }
        let progress = Progress::default();
        let idle = progress.clone();
        let Some(place) = self.places.take(accepted.client.ip(), most, IsIdle::from(move || idle.is_idle())) else {
            module.counts.refused();
            turn_away(&accepted.stream, version.tls.is_some());
            return;
        };
        // Without the option the kernel holds more, and a client that takes it slowly seems to take nothing.
        let _ = sys::limit_unsent(&accepted.stream, limits::CLIENT_UNSENT_BYTES_MAX);
        let (site, place) = (Arc::clone(self), SitePlace { site: Arc::clone(self), place: Some(place) });
        tokio::spawn(async move {
            tokio::select! {
                () = site.serve_accepted(version, accepted, &progress) => {}
                () = place.given() => {}
            }
            drop(place);
        });
    }

    async fn serve_accepted(self: &Arc<Self>, version: Version, accepted: Accepted, progress: &Progress) {
        match accepted.origin.clone() {
            Some(origin) => {
                tokio::select! {
                    () = self.serve_intercepted(&version, accepted, origin, progress) => {}
                    () = self.ended() => {}
                }
            }
            None => self.serve(accepted, version.tls, progress).await,
        }
    }

    /// Takes a further place for a connection that has one already, of which something is left beyond its requests.
    fn place(self: &Arc<Self>, client: IpAddr) -> SitePlace {
        SitePlace { site: Arc::clone(self), place: Some(self.places.take_beyond(client)) }
    }

    /// Waits until the site's connections end.
    async fn ended(&self) {
        self.reached(Stage::Ended).await;
    }

    async fn reached(&self, wanted: Stage) {
        // The sender lives as long as the site.
        let _ = self.stage.subscribe().wait_for(|stage| *stage >= wanted).await;
    }

    fn version(&self) -> Version {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn closed(&self) {
        // Whoever waits for the end looks again.
        self.stage.send_if_modified(|stage| matches!(stage, Stage::Ending | Stage::Relaying));
    }

    async fn serve_intercepted(
        self: &Arc<Self>,
        version: &Version,
        accepted: Accepted,
        origin: Arc<dyn Origin>,
        progress: &Progress,
    ) {
        let tls_names = version.tls.as_ref().map(|_| &*version.tls_names);
        progress.opening(true);
        let ours = intercepted::begin(&version.service.module().counts, tls_names, accepted, origin).await;
        progress.opening(false);
        let Some(Ours { stream, flow, upstream }) = ours else { return };
        let (is_secure, client) = (flow.is_secure, version.service.client(stream.get_ref()));
        let via = Via { flow, upstream: Some(upstream), client };
        match version.tls.as_ref().filter(|_| is_secure) {
            Some(tls) => self.drive_tls(stream, tls, via, progress).await,
            None => self.drive(stream, via, progress).await,
        }
    }

    async fn serve(self: &Arc<Self>, accepted: Accepted, tls: Option<TlsAcceptor>, progress: &Progress) {
        relay::prepare(&accepted.stream);
        let client = self.version().service.client(&accepted.stream);
        let via = Via { flow: accepted.flow(tls.is_some()), upstream: None, client };
        match tls {
            Some(tls) => self.drive_tls(accepted.stream, &tls, via, progress).await,
            None => self.drive(accepted.stream, via, progress).await,
        }
    }

    /// Joins two connections that become one.
    fn join(self: &Arc<Self>, agreed: Agreed, client: IpAddr) {
        let (site, place) = (Arc::clone(self), self.place(client));
        tokio::spawn(async move {
            tokio::select! {
                () = agreed.join() => {}
                () = site.ended() => {}
            }
            drop(place);
        });
    }

    /// Waits until a client's connection is to be one with its server's, since the node cannot read what comes by one of them.
    ///
    /// # Errors
    /// The server cannot be reached.
    async fn foreign(&self, upstream: Option<&Upstream>) -> Result<Foreign, ()> {
        let Some(upstream) = upstream else { return std::future::pending().await };
        let unread = tokio::select! {
            foreign = upstream.given() => return Ok(foreign),
            unread = upstream.passed() => unread,
        };
        let mut server = upgrade::connect(self.version().service.module(), upstream).await?;
        server.write_all(&unread).await.map_err(drop)?;
        Ok((server, Vec::new()))
    }

    /// Serves a connection as [`HttpSite::drive`] does, over TLS.
    async fn drive_tls<S>(self: &Arc<Self>, stream: S, tls: &TlsAcceptor, via: Via, progress: &Progress)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if let Ok(Ok(stream)) = timeout(limits::HANDSHAKE_TIME_MAX, tls.accept(stream)).await {
            self.drive(stream, via, progress).await;
        }
    }

    /// Serves a connection until one of both sides ends it.
    async fn drive<S>(self: &Arc<Self>, stream: S, via: Via, progress: &Progress)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request: hyper::Request<Incoming>| {
            let (site, via, progress) = (Arc::clone(self), via.clone(), progress.clone());
            async move {
                let (is_old, client) = (request.version() == http::Version::HTTP_10, via.flow.client.ip());
                let mut response = match via.upstream.as_ref().filter(|_| upgrade::is_wanted(&request)) {
                    Some(upstream) => {
                        upgrade::pass(site.version().service.module(), request, upstream, &progress).await
                    }
                    None => site.version().service.handle(request, via, progress.clone()).await?,
                };
                if let Some(agreed) = response.extensions_mut().remove() {
                    progress.upgrade();
                    site.join(agreed, client);
                }
                let is_bounded =
                    response.headers().contains_key(CONTENT_LENGTH) || response.body().size_hint().exact().is_some();
                if is_old && !is_bounded {
                    // RFC 9112 §9.3: it ends with its connection, whatever the client asked for.
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                    *response.version_mut() = http::Version::HTTP_10;
                }
                Ok::<_, Infallible>(response)
            }
        });
        let end = End::default();
        let stream =
            Requests::new(Lingering::new(stream, end.clone()), via.upstream.clone(), progress.clone(), end.clone());
        let stream = TokioIo::new(stream);
        let connection = self.builder.serve_connection_with_upgrades(stream, service);
        let mut connection = std::pin::pin!(connection);
        let mut foreign = std::pin::pin!(self.foreign(via.upstream.as_deref()));
        let mut stage = self.stage.subscribe();
        let mut ending = false;
        let mut alarm = std::pin::pin!(sleep_until(Instant::now() + limits::HEAD_TIME_MAX));
        loop {
            tokio::select! {
                biased;
                // A client that breaks the rules is told so by hyper, and is its own fault.
                _ = connection.as_mut() => return,
                () = due(progress, alarm.as_mut()) => match progress.judge(Instant::now()) {
                    Judgement::GoOn(until) => alarm.as_mut().reset(until),
                    Judgement::End => {
                        if progress.is_done() {
                            let place = self.place(via.flow.client.ip());
                            end.linger(async move { place.site.reached(Stage::Ending).await });
                        }
                        return;
                    }
                },
                server = foreign.as_mut() => {
                    let Ok(server) = server else { return };
                    let place = self.place(via.flow.client.ip());
                    end.join(server, async move { place.site.ended().await });
                    return;
                }
                changed = stage.wait_for(|stage| *stage > Stage::Open), if !ending => {
                    if changed.is_err() {
                        return;
                    }
                    ending = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = self.reached(Stage::Relaying), if ending => return,
            }
        }
    }
}

/// Waits until a connection is to be judged: sooner than was meant if a request has begun that must be over before.
async fn due(progress: &Progress, mut alarm: Pin<&mut Sleep>) {
    poll_fn(|context| {
        if let Some(until) = progress.ends().filter(|until| *until < alarm.deadline()) {
            alarm.as_mut().reset(until);
        }
        alarm.as_mut().poll(context)
    })
    .await;
}

fn stream_ms(version: &Version) -> u64 {
    let request = Duration::from_millis(u64::from(version.service.module().limits.request_ms));
    u64::try_from((request + limits::GRACE_TIME).as_millis()).unwrap_or(u64::MAX)
}

fn builder(executor: StreamExecutor) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(executor);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::HEAD_TIME_MAX)
        .max_buf_size(limits::HEAD_BYTES_MAX)
        .max_headers(limits::HEADERS_MAX)
        .half_close(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits::STREAMS_MAX)
        .max_header_list_size(u32::try_from(limits::HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .max_send_buf_size(limits::SEND_BYTES_MAX);
    builder
}

/// Says that there is no room, if that can be said at once and in clear.
fn turn_away(stream: &TcpStream, secure: bool) {
    if !secure {
        // A client that does not hear it finds the connection closed.
        let _ = stream.try_write(
            b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\
                                   connection: close\r\n\r\n",
        );
    }
}
