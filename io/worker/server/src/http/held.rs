// SPDX-License-Identifier: Apache-2.0
//! Responses that the node pumps by itself, without an instance: what `netserv:http/hand-over` begins.
//!
//! A body holds at most [`limits::HELD_BYTES_MAX`] of its source. It knows what the client has taken, since it hears of each piece
//! that was written to the connection.

use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use hyper::body::{Body, Frame};
use netserv_wire::container::frames::LogLevel;
use netserv_worker_base::compute::Reserved;
use tokio::time::Instant;
use wasmtime_wasi::p2::{DynInputStream, StreamError};
use wasmtime_wasi_http::Error;

use super::connection::{Deadline, Underway};
use super::patience::{Client, Known};
use crate::limits;
use crate::module::Module;

/// How long a response may take, and how slow its two ends may be.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How long its source may be silent.
    pub idle: Duration,
    /// How long it may take in all.
    pub total: Duration,
    /// Bytes in a second that its client takes while there are some for it, in the long run.
    pub least_rate: u32,
}

/// What tells the connection of a response until when it goes on. It is among the response's extensions.
#[derive(Clone)]
pub struct Held {
    deadline: Arc<OnceLock<Deadline>>,
    flight: Arc<Flight>,
}

impl Held {
    /// Has the response put off, and bring forward, a deadline of its request, which is under way until its client has all of it.
    pub fn begin(self, deadline: Option<Deadline>, underway: Option<Underway>) {
        // There is one request for it.
        if let Some(deadline) = deadline {
            let _ = self.deadline.set(deadline);
        }
        if let Some(underway) = underway {
            let _ = self.flight.underway.set(underway);
        }
    }
}

/// The body of such a response.
pub struct HeldBody {
    source: Source,
    /// Of a source that gives what others have in memory, too: whether what it gave last is its own.
    is_private: Option<Arc<AtomicBool>>,
    bounds: Bounds,
    ends: Instant,
    /// Since when the source is silent.
    silent: Option<Instant>,
    /// Since when the client has to take something before there is more.
    blocked: Option<Instant>,
    /// There while it may have much on its way: at first, unless its client turns out to be slow.
    wide: Option<Reserved>,
    /// Bytes that it gave since others had their turn.
    given: usize,
    /// How long it may still leave it waiting.
    patience: Duration,
    /// Bytes that the head promised and the source has not given.
    promised: Option<u64>,
    flight: Arc<Flight>,
    deadline: Arc<OnceLock<Deadline>>,
    module: Arc<Module>,
    /// The module's counter of what comes from the source.
    counter: Option<usize>,
    /// Among those that may have to give way.
    _known: Known,
    /// One of those that the module may have.
    _place: Reserved,
}

enum Source {
    Here(DynInputStream),
    /// It says when it has something.
    Waiting(Pin<Box<dyn Future<Output = DynInputStream> + Send>>),
    /// It broke off; the client takes what it gave before.
    Failed,
    Ended,
}

/// What was given to the connection and not written yet.
struct Flight {
    bytes: AtomicUsize,
    /// Bytes that were written since that was last asked.
    taken: AtomicUsize,
    waker: Mutex<Option<Waker>>,
    client: Arc<Client>,
    /// The request, until the last piece is written.
    underway: OnceLock<Underway>,
}

/// A piece on its way, until it is written.
struct Piece {
    bytes: Bytes,
    flight: Arc<Flight>,
    _memory: Option<Reserved>,
}

impl HeldBody {
    /// Returns the body of a response with these headers, and what is to be among its extensions.
    pub fn new(
        source: DynInputStream,
        is_private: Option<Arc<AtomicBool>>,
        headers: &HeaderMap,
        bounds: Bounds,
        module: &Arc<Module>,
        place: Reserved,
    ) -> (HeldBody, Held) {
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let deadline = Arc::new(OnceLock::new());
        let wide = is_private.is_some().then(|| module.held_wide.reserve(1).ok()).flatten();
        let known = module.patience.add(Arc::clone(&deadline));
        let flight = Arc::new(Flight::to(Arc::clone(known.client())));
        let body = HeldBody {
            source: Source::Here(source),
            is_private,
            bounds,
            ends: Instant::now() + bounds.total,
            silent: None,
            blocked: None,
            wide,
            given: 0,
            patience: module.patience.time,
            promised: length,
            flight: Arc::clone(&flight),
            deadline: Arc::clone(&deadline),
            module: Arc::clone(module),
            counter: None,
            _known: known,
            _place: place,
        };
        (body, Held { deadline, flight })
    }

    /// Has what comes from its source be counted by a counter of the module's.
    #[must_use]
    pub fn counted_by(mut self, counter: Option<usize>) -> HeldBody {
        self.counter = counter;
        self
    }

    /// Has the response end at `at` if nothing happens before.
    fn watch(&self, at: Instant) {
        if let Some(deadline) = self.deadline.get().filter(|_| !self.flight.client.is_ended()) {
            deadline.set(at.min(self.ends));
        }
    }

    /// Looks at what the client has taken since the last time, which earns it time.
    fn settle(&mut self, now: Instant) {
        let taken = self.flight.taken.swap(0, Ordering::AcqRel) as u64;
        if taken == 0 {
            return;
        }
        if self.wide.is_none() && self.flight.bytes.load(Ordering::Acquire) == 0 && taken >= WIDE_AFTER {
            self.wide = self.module.held_wide.reserve(1).ok();
        }
        self.unblock(now);
        let rate = u64::from(self.bounds.least_rate.max(1));
        let earned = Duration::from_nanos(taken.saturating_mul(1_000_000_000) / rate);
        self.patience = self.patience.saturating_add(earned).min(self.module.patience.time);
    }

    fn unblock(&mut self, now: Instant) {
        if let Some(since) = self.blocked.take() {
            self.patience = self.patience.saturating_sub(now - since);
            self.wide.take_if(|_| now - since > limits::HELD_WIDE_PATIENCE);
        }
    }

    /// Reads the next piece; an empty one if there is none yet.
    fn read(
        &mut self,
        source: &mut DynInputStream,
        most: usize,
        memory: Option<Reserved>,
    ) -> Result<Bytes, StreamError> {
        let mut bytes = source.read(most)?;
        if let Some(counter) = self.counter {
            // It was opened when the body was handed over.
            let _ = self.module.lock_counters().add(counter, bytes.len() as u64);
        }
        if let Some(promised) = &mut self.promised {
            let fits = usize::try_from(*promised).unwrap_or(usize::MAX).min(bytes.len());
            *promised -= fits as u64;
            if fits < bytes.len() {
                bytes.truncate(fits);
                self.tell("a body that was handed over is longer than its head says; the rest is left out");
            }
        }
        if bytes.is_empty() {
            return Ok(bytes);
        }
        let mut memory = memory;
        if let Some(memory) = &mut memory {
            // Less is always there.
            let _ = memory.resize(bytes.len());
        }
        self.flight.add(bytes.len());
        Ok(Bytes::from_owner(Piece { bytes, flight: Arc::clone(&self.flight), _memory: memory }))
    }

    /// Returns the memory of the next piece, how many bytes it may have, and how many may be on their way with it.
    fn reserve(&self) -> (Option<Reserved>, usize, usize) {
        let all = (limits::HELD_PIECE_BYTES, limits::HELD_BYTES_MAX);
        // What is in memory anyway takes none.
        if self.is_private.as_ref().is_some_and(|is_private| !is_private.load(Ordering::Relaxed)) {
            return (None, all.0, if self.wide.is_some() { limits::HELD_WIDE_BYTES_MAX } else { all.1 });
        }
        match self.module.held_memory.reserve(limits::HELD_PIECE_BYTES) {
            Ok(memory) => (Some(memory), all.0, all.1),
            Err(_) => (None, limits::HELD_PIECE_BYTES_MIN, 2 * limits::HELD_PIECE_BYTES_MIN),
        }
    }

    /// Returns the next frame, or that there is none yet; nothing if the source is to be asked once more.
    fn step(&mut self, now: Instant, context: &mut Context<'_>) -> Option<Next> {
        let (memory, most, in_flight) = self.reserve();
        // Nobody waits for a client once its body is given: the last piece is, when the others are written.
        let is_last = self.promised.is_some_and(|promised| promised <= most as u64);
        if self.flight.is_over(if is_last { 0 } else { in_flight - most }, context) {
            // Asking again puts nothing off.
            let since = *self.blocked.get_or_insert(now);
            self.watch(since + self.patience);
            return Some(Poll::Pending);
        }
        self.unblock(now);
        match mem::replace(&mut self.source, Source::Ended) {
            Source::Ended => Some(Poll::Ready(None)),
            Source::Here(_) if self.promised == Some(0) => Some(Poll::Ready(None)),
            Source::Here(mut source) => match self.read(&mut source, most, memory) {
                Ok(piece) if piece.is_empty() => {
                    let ready = async move {
                        source.ready().await;
                        source
                    };
                    self.source = Source::Waiting(Box::pin(ready));
                    None
                }
                Ok(piece) => {
                    self.silent = None;
                    self.source = Source::Here(source);
                    self.watch(now + self.module.patience.time);
                    Some(Poll::Ready(Some(Ok(Frame::data(piece)))))
                }
                Err(error) if self.is_whole(&error) => Some(Poll::Ready(None)),
                Err(_) => {
                    self.source = Source::Failed;
                    None
                }
            },
            Source::Failed if self.flight.is_over(0, context) => {
                self.source = Source::Failed;
                let since = *self.blocked.get_or_insert(now);
                self.watch(since + self.patience);
                Some(Poll::Pending)
            }
            Source::Failed => Some(Poll::Ready(Some(Err(Error::HttpResponseIncomplete)))),
            Source::Waiting(mut waiting) => match waiting.as_mut().poll(context) {
                Poll::Ready(source) => {
                    self.source = Source::Here(source);
                    None
                }
                Poll::Pending => {
                    self.source = Source::Waiting(waiting);
                    self.watch_silence(now);
                    Some(Poll::Pending)
                }
            },
        }
    }

    /// Has the response end if its source stays silent.
    fn watch_silence(&mut self, now: Instant) {
        let since = *self.silent.get_or_insert(now);
        self.watch(since + self.bounds.idle);
    }

    /// Returns whether a body whose source ends is whole.
    fn is_whole(&self, error: &StreamError) -> bool {
        match error {
            StreamError::Closed if self.promised.is_none_or(|promised| promised == 0) => return true,
            StreamError::Closed => self.tell("a body that was handed over is shorter than its head says"),
            StreamError::LastOperationFailed(_) | StreamError::Trap(_) => {}
        }
        false
    }

    fn tell(&self, text: &str) {
        self.module.log(LogLevel::Error, text.as_bytes());
    }
}

/// Bytes that a client has to take at once before it may have more on their way.
const WIDE_AFTER: u64 = limits::HELD_BYTES_MAX as u64;

type Next = Poll<Option<Result<Frame<Bytes>, Error>>>;

impl Body for HeldBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Next {
        let now = Instant::now();
        self.flight.client.is_served_by(context.waker());
        self.settle(now);
        if (now >= self.ends || self.flight.client.is_ended()) && !self.is_end_stream() {
            self.source = Source::Ended;
            return Poll::Ready(Some(Err(Error::HttpResponseIncomplete)));
        }
        if self.given >= limits::HELD_TURN_BYTES {
            self.given = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        for _ in 0..limits::HELD_TRIES_MAX {
            if let Some(next) = self.step(now, context) {
                match &next {
                    Poll::Ready(Some(Ok(frame))) => self.given += frame.data_ref().map_or(0, Bytes::len),
                    Poll::Ready(_) | Poll::Pending => self.given = 0,
                }
                return next;
            }
        }
        // It said that it had something.
        self.watch_silence(now);
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.source, Source::Ended)
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        let is_late = self.deadline.get().is_some_and(|deadline| deadline.at() <= Instant::now());
        if is_late && !self.is_end_stream() {
            self.module.counts.failed();
        }
    }
}

impl Flight {
    fn to(client: Arc<Client>) -> Flight {
        let (bytes, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Flight { bytes, taken, waker: Mutex::default(), client, underway: OnceLock::new() }
    }

    fn add(&self, bytes: usize) {
        if self.bytes.fetch_add(bytes, Ordering::AcqRel) == 0 {
            self.client.waits();
        }
    }

    /// Returns whether more than so many bytes are on their way. Then it wakes the task when some were written.
    fn is_over(&self, most: usize, context: &Context<'_>) -> bool {
        if self.bytes.load(Ordering::Acquire) <= most {
            return false;
        }
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        // Who wrote before that did not see it.
        self.bytes.load(Ordering::Acquire) > most
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.flight.taken.fetch_add(self.bytes.len(), Ordering::AcqRel);
        match self.flight.bytes.fetch_sub(self.bytes.len(), Ordering::AcqRel) == self.bytes.len() {
            true => self.flight.client.has_all(),
            false => self.flight.client.waits(),
        }
        let waker = self.flight.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use wasmtime_wasi::p2::{InputStream, Pollable, StreamResult};

    use super::*;
    use crate::blocks::testing::state;
    use crate::module::Shared;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_body_is_what_its_source_gives() {
        let mut body = body(Given::all(&[b"one", b"", b"two"]), None, HOUR);
        assert_eq!(text(&mut body.0), (b"onetwo".to_vec(), "end"));
        let mut broken = self::body(Given::failing(&[b"one"]), None, HOUR);
        assert_eq!(text(&mut broken.0), (b"one".to_vec(), "broken"));
        assert_eq!(text(&mut broken.0), (vec![], "end"));
    }

    #[test]
    fn a_source_that_lies_about_its_length_is_found_out() {
        for (length, expected, how) in [
            ("0", &b""[..], "end"),
            ("2", b"on", "end"),
            ("3", b"one", "end"),
            ("5", b"onetw", "end"),
            ("6", b"onetwo", "end"),
            ("7", b"onetwo", "broken"),
            ("x", b"onetwo", "end"),
        ] {
            let mut body = body(Given::all(&[b"one", b"two"]), Some(length), HOUR);
            assert_eq!(text(&mut body.0), (expected.to_vec(), how), "{length}");
            let told = body.0.module.take_log().len();
            assert_eq!(told, usize::from(length == "2" || length == "5" || length == "7"), "{length}");
        }
    }

    #[test]
    fn what_came_before_a_source_broke_off_is_written_first() {
        let (mut body, deadline) = body(Given::failing(&[b"one"]), None, HOUR);
        let Poll::Ready(Some(Ok(first))) = poll(&mut body) else { panic!("nothing is on its way") };
        assert!(poll(&mut body).is_pending());
        assert!(deadline.at() <= Instant::now() + limits::HELD_PATIENCE, "its client is waited for");
        drop(first);
        assert!(matches!(poll(&mut body), Poll::Ready(Some(Err(_)))));
        assert_eq!(text(&mut body), (vec![], "end"));
    }

    #[test]
    fn a_client_that_takes_nothing_gets_only_so_much() {
        let (mut body, _) = body(Given::endless(), None, HOUR);
        for most in [limits::HELD_BYTES_MAX, 2 * limits::HELD_PIECE_BYTES_MIN] {
            // Others have all memory the second time.
            let left = body.module.held_memory.left();
            let _others = (most < limits::HELD_BYTES_MAX).then(|| body.module.held_memory.reserve(left).unwrap());
            let mut pieces = VecDeque::new();
            while let Poll::Ready(Some(Ok(frame))) = poll(&mut body) {
                pieces.push_back(frame.into_data().unwrap());
            }
            assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), most);
            pieces.pop_front();
            assert!(poll(&mut body).is_ready(), "there is room for one more");
        }
    }

    #[test]
    fn the_last_piece_waits_until_the_others_are_written() {
        let pieces: [&[u8]; 3] = [&[b'x'; 1000], &[b'y'; 1000], b"z"];
        for length in ["2001", "2000"] {
            let (mut body, deadline) = body(Given::all(&pieces), Some(length), HOUR);
            let Poll::Ready(Some(Ok(first))) = poll(&mut body) else { panic!("nothing is on its way") };
            assert!(poll(&mut body).is_pending(), "{length}");
            let until = deadline.at();
            assert!(until <= Instant::now() + limits::HELD_PATIENCE, "its client is waited for");
            drop(first);
            assert!(poll(&mut body).is_ready(), "{length}");
        }
    }

    #[test]
    fn what_is_in_memory_anyway_takes_none() {
        let (mut body, _) = body(Given::endless(), None, HOUR);
        let is_private = Arc::new(AtomicBool::new(false));
        body.is_private = Some(Arc::clone(&is_private));
        let left = body.module.held_memory.left();
        let pieces: Vec<Bytes> = std::iter::from_fn(|| match poll(&mut body) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            Poll::Ready(_) | Poll::Pending => None,
        })
        .collect();
        assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), limits::HELD_BYTES_MAX);
        assert_eq!(body.module.held_memory.left(), left);
        is_private.store(true, Ordering::Relaxed);
        drop(pieces);
        let _piece = poll(&mut body);
        assert!(body.module.held_memory.left() < left, "what it gives next may be a copy, too");
    }

    #[test]
    fn who_takes_all_at_once_has_more_on_its_way_if_that_takes_no_memory() {
        let (mut body, _) = body(Given::endless(), None, HOUR);
        let is_private = Arc::new(AtomicBool::new(false));
        body.is_private = Some(Arc::clone(&is_private));
        let all = |body: &mut HeldBody| -> Vec<Bytes> {
            let (mut pieces, mut pauses) = (Vec::new(), 0);
            // Once in a while others have their turn.
            while pauses < 2 {
                match poll(body) {
                    Poll::Ready(Some(Ok(frame))) => {
                        pieces.extend(frame.into_data().ok());
                        pauses = 0;
                    }
                    Poll::Ready(_) | Poll::Pending => pauses += 1,
                }
            }
            pieces
        };
        let bytes = |pieces: &[Bytes]| pieces.iter().map(Bytes::len).sum::<usize>();
        let mut pieces = all(&mut body);
        assert_eq!(bytes(&pieces), limits::HELD_BYTES_MAX);
        pieces.pop();
        pieces.extend(all(&mut body));
        assert_eq!(bytes(&pieces), limits::HELD_BYTES_MAX, "it took a part");
        pieces.clear();
        pieces = all(&mut body);
        assert_eq!(bytes(&pieces), limits::HELD_WIDE_BYTES_MAX);
        assert_eq!(body.module.held_wide.left(), limits::HELD_WIDE_MAX - 1);
        // It takes its time, and is one of many again.
        std::thread::sleep(limits::HELD_WIDE_PATIENCE + Duration::from_millis(5));
        pieces.drain(1..);
        pieces.extend(all(&mut body));
        assert_eq!((bytes(&pieces), body.module.held_wide.left()), (limits::HELD_BYTES_MAX, limits::HELD_WIDE_MAX));
        // Others have all places; or what comes is a copy.
        let others = body.module.held_wide.reserve(limits::HELD_WIDE_MAX).unwrap();
        pieces.clear();
        assert_eq!(bytes(&all(&mut body)), limits::HELD_BYTES_MAX);
        drop(others);
        is_private.store(true, Ordering::Relaxed);
        assert_eq!(bytes(&all(&mut body)), limits::HELD_BYTES_MAX);
    }

    #[test]
    fn a_client_is_waited_for_as_long_as_it_earns_it() {
        let (mut body, deadline) = body(Given::endless(), None, HOUR);
        let mut pieces = Vec::new();
        while let Poll::Ready(Some(Ok(frame))) = poll(&mut body) {
            pieces.push(frame.into_data().unwrap());
        }
        let until = deadline.at();
        assert!(until <= Instant::now() + limits::HELD_PATIENCE);
        // It is asked again and again, and takes nothing.
        std::thread::sleep(Duration::from_millis(20));
        assert!(poll(&mut body).is_pending());
        assert_eq!(deadline.at(), until, "its time runs on");
        let before = body.patience;
        body.bounds.least_rate = 1_000_000;
        pieces.pop();
        body.settle(Instant::now());
        let earned = body.patience.saturating_sub(before);
        assert!(earned <= Duration::from_micros(16_384) && body.patience <= limits::HELD_PATIENCE, "{earned:?}");
    }

    #[test]
    fn a_silent_source_has_its_time() {
        let idle = Duration::from_secs(5);
        let (mut body, deadline) = body(Given::silent(), None, HOUR);
        body.bounds.idle = idle;
        assert!(poll(&mut body).is_pending());
        let until = deadline.at();
        assert!(until <= Instant::now() + idle && until > Instant::now());
        std::thread::sleep(Duration::from_millis(5));
        assert!(poll(&mut body).is_pending());
        assert_eq!(deadline.at(), until, "asking it again gives it no more time");
    }

    #[test]
    fn a_body_ends_at_the_latest_when_it_must() {
        let (mut body, deadline) = body(Given::endless(), None, Duration::from_millis(10));
        assert!(deadline.at() > Instant::now() + HOUR / 2);
        assert!(poll(&mut body).is_ready());
        assert!(deadline.at() <= Instant::now() + Duration::from_millis(10));
        std::thread::sleep(Duration::from_millis(11));
        assert!(matches!(poll(&mut body), Poll::Ready(Some(Err(Error::HttpResponseIncomplete)))));
        assert!(matches!(poll(&mut body), Poll::Ready(None)));
    }

    fn body(source: Given, length: Option<&str>, total: Duration) -> (HeldBody, Deadline) {
        let module = state(Shared::for_tests).module;
        let headers = length.map(|length| (CONTENT_LENGTH, length.parse().unwrap())).into_iter().collect();
        let bounds = Bounds { idle: HOUR, total, least_rate: 1 };
        let place = module.held_places.reserve(1).unwrap();
        let (body, held) = HeldBody::new(Box::new(source), None, &headers, bounds, &module, place);
        let deadline = Deadline::new(Instant::now() + HOUR);
        held.begin(Some(deadline.clone()), None);
        (body, deadline)
    }

    fn poll(body: &mut HeldBody) -> Next {
        Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()))
    }

    /// Returns all that a body gives, each piece being taken at once, and how it ends.
    fn text(body: &mut HeldBody) -> (Vec<u8>, &'static str) {
        let mut all = Vec::new();
        loop {
            match poll(body) {
                Poll::Ready(Some(Ok(frame))) => all.extend_from_slice(&frame.into_data().unwrap()),
                Poll::Ready(Some(Err(_))) => return (all, "broken"),
                Poll::Ready(None) => return (all, "end"),
                Poll::Pending => {}
            }
        }
    }

    /// A source that gives what it was told to, an empty piece being none yet.
    struct Given {
        pieces: VecDeque<Bytes>,
        at_end: fn() -> StreamResult<Bytes>,
        is_silent: bool,
    }

    impl Given {
        fn all(pieces: &[&'static [u8]]) -> Given {
            let pieces = pieces.iter().map(|piece| Bytes::from_static(piece)).collect();
            Given { pieces, at_end: || Err(StreamError::Closed), is_silent: false }
        }

        fn failing(pieces: &[&'static [u8]]) -> Given {
            Given { at_end: || Err(StreamError::LastOperationFailed(wasmtime::format_err!("x"))), ..Given::all(pieces) }
        }

        fn endless() -> Given {
            Given { at_end: || Ok(Bytes::from_static(&[b'x'; limits::HELD_PIECE_BYTES])), ..Given::all(&[]) }
        }

        fn silent() -> Given {
            Given { at_end: || Ok(Bytes::new()), is_silent: true, ..Given::all(&[]) }
        }
    }

    #[wasmtime_wasi::async_trait]
    impl Pollable for Given {
        async fn ready(&mut self) {
            if self.is_silent {
                std::future::pending::<()>().await;
            }
        }
    }

    #[wasmtime_wasi::async_trait]
    impl InputStream for Given {
        fn read(&mut self, size: usize) -> StreamResult<Bytes> {
            let mut piece = self.pieces.pop_front().map_or_else(self.at_end, Ok)?;
            piece.truncate(size);
            Ok(piece)
        }
    }
}
