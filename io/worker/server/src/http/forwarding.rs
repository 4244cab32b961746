// SPDX-License-Identifier: Apache-2.0
//! Requests that the node sends on by itself: what `netserv:http/forwarding` begins. The instance waits for the answer, and if it cannot, the
//! client gets that as it comes.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use netserv_worker_base::compute::{Budget, Reserved};
use tokio::runtime::Handle;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};
use wasmtime_wasi_http::{Error, WasiBody};

use super::body::RequestBody;
use super::connection::{Deadline, Progress, Underway};
use super::held::Bounds;
use super::interim::Wanted;
use super::presence::Presence;
use crate::limits;

/// What comes of a request that was sent on.
pub type Answer = Result<Response<WasiBody>, Error>;

/// The request that an instance answers, and its exchange with another server. Clones are the same one.
#[derive(Clone)]
pub struct Forwarding(Arc<Inner>);

struct Inner {
    /// The request's body, until it is sent on.
    body: Mutex<Option<RequestBody>>,
    exchange: Mutex<Option<Pin<Box<dyn Future<Output = Answer> + Send>>>>,
    /// When the request ends on its connection.
    ends: Option<Deadline>,
    /// As many permits as there are requests that wait for an instance.
    wanted: Arc<Semaphore>,
    client: Option<Presence>,
    /// What is under way on its connection.
    progress: Option<Progress>,
    given_over: Notify,
}

impl Forwarding {
    /// Returns a request that was not sent on, with this body. It ends on its connection at `ends`, which is put off once it is.
    /// `wanted` has as many permits as there are requests that wait for an instance. Without its client, it is over. While its body comes, it is in `progress`.
    pub fn new(
        body: RequestBody,
        ends: Option<Deadline>,
        wanted: &Arc<Semaphore>,
        client: Option<Presence>,
        progress: Option<Progress>,
    ) -> Forwarding {
        Forwarding(Arc::new(Inner {
            body: Mutex::new(Some(body)),
            exchange: Mutex::default(),
            ends,
            wanted: Arc::clone(wanted),
            client,
            progress,
            given_over: Notify::new(),
        }))
    }

    /// Returns the body as the instance reads it, which is empty once it is sent on.
    pub fn body(&self) -> InstanceBody {
        InstanceBody(self.clone())
    }

    /// Takes the body to send it on, in memory of that budget. Each piece of it that moves puts `silent` off. Nothing if it was taken before.
    ///
    /// # Errors
    /// There is no memory for one more.
    pub fn take_body(&self, silent: &Deadline, memory: &Budget) -> Option<Result<(ForwardedBody, Upload), Full>> {
        let mut place = lock(&self.0.body);
        let is_hurried = memory.left() < memory.bytes() / 2;
        let most = place.as_ref()?.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
        let Ok(memory) = memory.reserve(most.map_or(limits::UPLOAD_BYTES, |bytes| bytes.min(limits::UPLOAD_BYTES)))
        else {
            return Some(Err(Full));
        };
        let body = place.take()?.without_bound();
        let (begun, is_hurried) = (Instant::now(), is_hurried && !body.is_end_stream());
        if is_hurried {
            silent.set(begun + limits::UPLOAD_HURRIED_TIME);
        }
        let (over, is_over) = oneshot::channel();
        let upload = Upload { over: is_over, silent: silent.clone(), client: self.0.client.clone() };
        let body = ForwardedBody {
            body,
            silent: silent.clone(),
            begun,
            came: 0,
            is_hurried,
            is_asked_for: false,
            is_over: false,
            wanted: None,
            memory: Some(memory),
            underway: self.0.progress.as_ref().map(|progress| progress.begin(None)),
            _over: over,
        };
        Some(Ok((body, upload)))
    }

    /// Begins the exchange that the body was taken for. From here on the request lasts for as long as a response may that the node pumps.
    pub fn begin(&self, exchange: impl Future<Output = Answer> + Send + 'static) {
        *lock(&self.0.exchange) = Some(Box::pin(exchange));
        if let Some(ends) = &self.0.ends {
            ends.set(Instant::now() + limits::HELD_TIME_MAX);
        }
    }

    /// Waits for the answer. Nobody else gets it then; if this is given up, another one may wait. If the client has gone, nobody gets it.
    pub async fn answer(&self) -> Answer {
        let answered = poll_fn(|context| {
            let mut exchange = lock(&self.0.exchange);
            // Another one had it.
            let Some(running) = exchange.as_mut() else { return Poll::Ready(Err(Error::ConnectionTerminated)) };
            let answer = std::task::ready!(running.as_mut().poll(context));
            *exchange = None;
            Poll::Ready(answer)
        });
        let Some(client) = &self.0.client else { return answered.await };
        tokio::select! {
            biased;
            answer = answered => answer,
            () = client.ended() => {
                *lock(&self.0.exchange) = None;
                Err(Error::ConnectionTerminated)
            }
        }
    }

    /// Waits for the answer as the instance does, which is over once it took [`limits::FORWARD_WAIT_TIME`] and another request waits for
    /// an instance, or as many others wait as may for long.
    pub async fn answer_for_instance(&self, long_waits: &Budget) -> Answer {
        let crowded = async {
            sleep(limits::FORWARD_WAIT_TIME).await;
            if let Ok(_place) = long_waits.reserve(1)
                && let Ok(wanted) = self.0.wanted.acquire().await
            {
                wanted.forget();
            }
            self.0.given_over.notify_one();
            std::future::pending::<Answer>().await
        };
        tokio::select! {
            biased;
            answer = self.answer() => answer,
            answer = crowded => answer,
        }
    }

    /// Returns whether an answer is being waited for.
    pub fn is_under_way(&self) -> bool {
        lock(&self.0.exchange).is_some()
    }

    /// Waits until the instance is not to wait any longer.
    pub async fn given_over(&self) {
        self.0.given_over.notified().await;
    }
}

/// What an answer is bounded by that the instance did not wait for: the node's own bounds.
pub const BOUNDS: Bounds = Bounds { idle: limits::HELD_IDLE_TIME_MAX, total: limits::HELD_TIME_MAX, least_rate: 1 };
/// How long an exchange may be silent.
pub const SILENCE_MAX: Duration = limits::HELD_IDLE_TIME_MAX;

/// A request's body as the instance reads it.
pub struct InstanceBody(Forwarding);

impl Body for InstanceBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match lock(&self.0.0.body).as_mut() {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.0.0.body).as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.0.0.body).as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

/// There is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// What may go on behind the answer of a server that gives one before it has the whole body.
pub struct Upload {
    /// Fails once the body is not sent any more.
    over: oneshot::Receiver<()>,
    silent: Deadline,
    client: Option<Presence>,
}

impl Upload {
    /// Returns until when something has to move.
    pub fn silent(&self) -> &Deadline {
        &self.silent
    }

    /// Has the rest of the body be sent on by a connection that has given its answer, for as long as it moves and the client is there.
    pub fn go_on(self, connection: Option<AbortHandle>) {
        let Upload { mut over, silent, client } = self;
        let Some(connection) = connection.filter(|_| over.try_recv() == Err(TryRecvError::Empty)) else { return };
        tokio::spawn(async move {
            let gone = async {
                match &client {
                    Some(client) => client.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = &mut over => return,
                _ = silent.bound(std::future::pending::<()>()) => {}
                () = gone => {}
                () = sleep(limits::HELD_TIME_MAX) => {}
            }
            connection.abort();
        });
    }
}

/// A request's body that is sent on. One that has to hurry leaves its memory to others sooner. What the server does not take is read for
/// a while, since a client that still sends may not see its answer if the connection is closed.
pub struct ForwardedBody {
    body: RequestBody,
    silent: Deadline,
    begun: Instant,
    /// Bytes of it.
    came: u64,
    is_hurried: bool,
    /// Whether any of it was asked for: a client may wait for that (RFC 9110 §10.1.1), and then sends none in vain.
    is_asked_for: bool,
    /// Whether nothing more of it is of use.
    is_over: bool,
    /// Until the server says that it wants the body.
    wanted: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    memory: Option<Reserved>,
    underway: Option<Underway>,
    _over: oneshot::Sender<()>,
}

impl ForwardedBody {
    /// Has the body be read once the server wants it: what is read of a client that waits tells it to go on.
    pub fn await_wanted(&mut self) -> Wanted {
        let wanted = Wanted::default();
        self.wanted = Some(Box::pin(wanted.clone().said()));
        wanted
    }
}

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(wanted) = &mut self.wanted {
            std::task::ready!(wanted.as_mut().poll(context));
            self.wanted = None;
        }
        self.is_asked_for = true;
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        let now = Instant::now();
        let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(Frame::data_ref)) else {
            // Its answer is awaited as any.
            self.silent.set(now + SILENCE_MAX);
            self.is_over = true;
            return Poll::Ready(frame);
        };
        self.came += data.map_or(0, |data| data.len() as u64);
        let is_waited_for = self.is_hurried && !self.body.is_end_stream();
        let silence = if is_waited_for { limits::UPLOAD_HURRIED_TIME } else { SILENCE_MAX };
        self.silent.set(now + silence);
        let late = now.duration_since(self.begun).saturating_sub(limits::UPLOAD_HURRIED_TIME).as_secs();
        if self.is_hurried && self.came < late * limits::UPLOAD_HURRIED_RATE {
            self.is_over = true;
            return Poll::Ready(Some(Err(Error::ConnectionReadTimeout)));
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

impl Drop for ForwardedBody {
    fn drop(&mut self) {
        if !self.is_asked_for || self.is_over || self.body.is_end_stream() || self.silent.at() <= Instant::now() {
            return;
        }
        let (body, held) = (self.body.take(), (self.memory.take(), self.underway.take()));
        // Without a runtime all ends.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                read_over(body).await;
                drop(held);
            });
        }
    }
}

/// Reads what comes of a body that nobody wants, within bounds.
async fn read_over(mut body: RequestBody) {
    let begun = Instant::now();
    loop {
        let until = (Instant::now() + limits::UPLOAD_REST_SILENCE_MAX).min(begun + limits::UPLOAD_REST_TIME_MAX);
        let Ok(Some(Ok(_))) = timeout_at(until, body.frame()).await else { return };
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
