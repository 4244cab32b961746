// SPDX-License-Identifier: Apache-2.0
//! Heads of servers' answers, looked at before hyper has them: what is none, and lines that are none.
//!
//! An answer that cannot be understood goes to the client as it came, if it is for the client and the client's connection can become one with
//! the server's. Otherwise one without a head is as of HTTP/0.9: all that comes is the body.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wasmtime_wasi_http::{Error, WasiBody};

use super::interim::Excess;
use super::opening;
use super::rewound::read_begun;
use crate::limits;
use crate::origin::Stream;

/// What is known of the heads of the answers on a connection. Clones are of the same one.
#[derive(Clone, Default)]
pub struct Heads(Arc<Shared>);

#[derive(Default)]
struct Shared {
    expected: Mutex<Option<Expected>>,
    is_odd: AtomicBool,
}

/// An answer whose head has not come.
struct Expected {
    /// Whether the connection had no answer before: what comes cannot be the end of another one.
    is_first: bool,
    /// Who has the connection if what comes is no answer that is understood.
    passes_to: Option<Taker>,
    sending: Sending,
}

/// How far the request of an answer has gone.
#[derive(Default)]
struct Sending {
    /// Whether its body was given whole to what writes it,
    is_given: Arc<AtomicBool>,
    /// whether some of it was written,
    has_begun: bool,
    /// and whether all was.
    is_over: bool,
    /// Who waits for that.
    waker: Option<Waker>,
}

/// A connection to a server that is to be one with the client's, and what was read of it.
pub type Foreign = (Box<dyn Stream>, Vec<u8>);
/// What takes such a connection.
pub type Taker = Box<dyn FnOnce(Foreign) + Send>;

impl Heads {
    /// Has what comes next on the connection be the head of the answer to a request, the first one there or a later one. With `passes_to`, what
    /// is not understood is given there, with the connection, once the request has gone. Returns the request as it is to be sent.
    pub fn expect(&self, request: Request<WasiBody>, is_first: bool, passes_to: Option<Taker>) -> Request<WasiBody> {
        let sending = Sending::default();
        let is_given = Arc::clone(&sending.is_given);
        *self.expected() = Some(Expected { is_first, passes_to, sending });
        request.map(|body| Given::new(body, is_given).boxed_unsync())
    }

    /// Returns whether there was more in the head of the last answer than is understood, which is left out.
    pub fn is_odd(&self) -> bool {
        self.0.is_odd.load(Ordering::Relaxed)
    }

    fn expected(&self) -> MutexGuard<'_, Option<Expected>> {
        self.0.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_come(&self, is_odd: bool) {
        self.0.is_odd.store(is_odd, Ordering::Relaxed);
        *self.expected() = None;
    }

    fn has_written(&self) {
        if let Some(expected) = &mut *self.expected() {
            expected.sending.has_begun = true;
        }
    }

    fn has_flushed(&self) {
        let mut expected = self.expected();
        let Some(sending) = expected.as_mut().map(|expected| &mut expected.sending) else { return };
        sending.is_over |= sending.has_begun && sending.is_given.load(Ordering::Acquire);
        if let Some(waker) = sending.waker.take_if(|_| sending.is_over) {
            waker.wake();
        }
    }

    /// Waits until the request has gone, if its client is to have the connection: of what is left of it there, nobody else knows.
    fn poll_sent(&self, context: &Context<'_>) -> Poll<()> {
        match &mut *self.expected() {
            Some(Expected { passes_to: Some(_), sending, .. }) if !sending.is_over => {
                sending.waker = Some(context.waker().clone());
                Poll::Pending
            }
            Some(_) | None => Poll::Ready(()),
        }
    }
}

/// A request's body, which says when it was given whole.
struct Given {
    body: WasiBody,
    is_given: Arc<AtomicBool>,
}

impl Given {
    fn new(body: WasiBody, is_given: Arc<AtomicBool>) -> Given {
        let given = Given { body, is_given };
        given.look();
        given
    }

    fn look(&self) {
        if self.body.is_end_stream() || self.body.size_hint().exact() == Some(0) {
            self.is_given.store(true, Ordering::Release);
        }
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        // Of a `GET`, hyper asks for none that says no length.
        self.is_given.store(true, Ordering::Release);
    }
}

impl Body for Given {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &frame {
            Some(Ok(_)) => self.look(),
            Some(Err(_)) => {}
            None => self.is_given.store(true, Ordering::Release),
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

/// A connection to a server whose answers' heads are looked at, and whose interim ones are bounded.
pub struct Answers {
    /// Nothing once it was given to somebody else.
    stream: Option<Box<dyn Stream>>,
    heads: Heads,
    excess: Excess,
    /// What has come of a head,
    head: Vec<u8>,
    /// and how much of that was looked at.
    looked: usize,
    /// What is to be read before anything else.
    begun: Bytes,
    /// Whether what has come is no answer that is understood, and whether there is more in it than is.
    other: Option<bool>,
    /// Whether the server takes no more.
    is_deaf: bool,
}

impl Answers {
    /// Has the heads be looked at that come by a connection, as far as they are expected.
    pub fn new(stream: Box<dyn Stream>, heads: Heads, excess: Excess) -> Answers {
        let (head, begun) = (Vec::new(), Bytes::new());
        Answers { stream: Some(stream), heads, excess, head, looked: 0, begun, other: None, is_deaf: false }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut Box<dyn Stream>>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(no_answer)
    }

    /// Reads a piece of a head. Returns whether no more comes.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut space = [0; limits::OPENING_BYTES];
        let mut piece = ReadBuf::new(&mut space);
        ready!(self.stream()?.poll_read(context, &mut piece))?;
        self.head.extend_from_slice(piece.filled());
        Poll::Ready(Ok(piece.filled().is_empty()))
    }

    /// Looks at what has come of a head. Once it is known what it is, that is to be read, or somebody else has the connection.
    fn look(&mut self, is_ended: bool) {
        let is_full = self.head.len() >= limits::HEAD_BYTES_MAX;
        if !is_ended && !is_full && !opening::may_tell_more(&self.head, self.looked) {
            return;
        }
        self.looked = self.head.len();
        match look(&self.head) {
            Look::Unknown if is_ended && self.head.is_empty() => self.is_known(false, &[]),
            Look::Unknown if !is_ended && !is_full => {}
            Look::Interim(bytes) => {
                let rest = self.head.split_off(bytes);
                self.begun = [&self.begun, &self.head[..]].concat().into();
                (self.head, self.looked) = (rest, 0);
                if !self.head.is_empty() {
                    self.look(false);
                }
            }
            Look::Answer { is_odd } => self.is_known(is_odd, &[]),
            Look::Unknown => self.other = Some(true),
            Look::Other { is_odd } => self.other = Some(is_odd),
        }
    }

    fn pass_on(&mut self, is_odd: bool) -> io::Result<()> {
        self.other = None;
        let expected = self.heads.expected().take();
        let taker = match expected {
            Some(Expected { passes_to: Some(taker), .. }) => taker,
            Some(Expected { is_first: true, .. }) => {
                // RFC 1945 §3.1: what begins with no status line is a body. Radios of old have a head that begins with `ICY`.
                let (line, from, is_odd): (&[u8], usize, bool) = match &self.head[..] {
                    [b'I', b'C', b'Y', b' ', ..] => (b"HTTP/1.0", 3, true),
                    [b'H', b'T', b'T', b'P', b'/', ..] => (b"", 0, is_odd),
                    _ => (b"HTTP/1.0 200 OK\r\n\r\n", 0, true),
                };
                self.head.drain(..from);
                self.is_known(is_odd, line);
                return Ok(());
            }
            Some(_) | None => {
                self.is_known(true, &[]);
                return Ok(());
            }
        };
        let begun = [&self.begun, &self.head[..]].concat();
        if let Some(stream) = self.stream.take() {
            taker((stream, begun));
        }
        Err(no_answer())
    }

    /// Returns whether a request may be written: not the next one of a connection on which the server said more than it was asked for, since
    /// that would be its answer.
    fn may_write(&self) -> io::Result<()> {
        let has_more = || !self.begun.is_empty() || !self.head.is_empty();
        if self.is_next() && self.is_deaf {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.is_next() && (has_more() || self.stream.as_ref().is_some_and(|stream| stream.has_unread())) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the server sent what nobody asked for"));
        }
        Ok(())
    }

    /// Returns whether nothing was written of the next request of a connection.
    fn is_next(&self) -> bool {
        self.heads.expected().as_ref().is_some_and(|it| !it.is_first && !it.sending.has_begun)
    }

    /// Drops the rest of a request that the server does not take: the server may have answered and closed, and its answer is still to be read.
    fn written(&mut self, length: usize, written: io::Result<usize>) -> io::Result<usize> {
        let is_gone =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset);
        match written {
            Err(error) if is_gone(&error) && !self.is_next() => {
                self.is_deaf = true;
                Ok(length)
            }
            other => other,
        }
    }

    /// Has what came be read, behind `before`.
    fn is_known(&mut self, is_odd: bool, before: &[u8]) {
        self.begun = [&self.begun, before, &self.head].concat().into();
        (self.head, self.looked) = (Vec::new(), 0);
        self.heads.has_come(is_odd);
    }
}

fn no_answer() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the server's answer is not understood")
}

/// What the beginning of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It can be several things.
    Unknown,
    /// The head of an interim response (RFC 9110 §15.2), of so many bytes.
    Interim(usize),
    /// A head that is understood, but for lines that may be left out.
    Answer { is_odd: bool },
    /// Something else, or a head of which it is not said in one way where its answer ends.
    Other { is_odd: bool },
}

/// Looks at a beginning as hyper does.
fn look(bytes: &[u8]) -> Look {
    let mut lines = [const { MaybeUninit::uninit() }; limits::SERVER_HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let mut config = httparse::ParserConfig::default();
    config
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true);
    let length = match config.parse_response_with_uninit_headers(&mut response, bytes, &mut lines) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Look::Unknown,
        Err(_) => return Look::Other { is_odd: true },
    };
    let status = response.code.unwrap_or_default();
    if (100..200).contains(&status) && status != 101 {
        return Look::Interim(length);
    }
    let mut lines = bytes[..length].split(|byte| *byte == b'\n').filter(|line| !matches!(line, [] | [b'\r']));
    // The status line, and one that goes on none.
    let is_cut = lines.by_ref().nth(1).is_some_and(goes_on);
    let lines =
        bytes[..length].split(|byte| *byte == b'\n').filter(|line| !matches!(line, [] | [b'\r']) && !goes_on(line));
    let is_odd = is_cut || lines.count() != response.headers.len() + 1;
    match is_framed(response.version == Some(0), response.headers) {
        true => Look::Answer { is_odd },
        false => Look::Other { is_odd },
    }
}

/// Returns whether a line is more of the one before it (RFC 9112 §5.2).
fn goes_on(line: &[u8]) -> bool {
    matches!(line, [b' ' | b'\t', ..])
}

/// Returns whether it is said in one way where an answer ends (RFC 9112 §6.3).
fn is_framed(is_http_10: bool, lines: &[httparse::Header<'_>]) -> bool {
    let of = |name: &'static str| lines.iter().filter(move |line| line.name.eq_ignore_ascii_case(name));
    let mut codings = of("transfer-encoding").map(|line| line.value.trim_ascii());
    if let Some(coding) = codings.next() {
        // Without a TE line in the request there is no other (RFC 9112 §7.4).
        return !is_http_10 && coding.eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
    }
    let mut lengths = of("content-length").flat_map(|line| line.value.split(|byte| *byte == b','));
    let length = |text: &[u8]| -> Option<u64> {
        let text = text.trim_ascii();
        if !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        str::from_utf8(text).ok()?.parse().ok()
    };
    let Some(first) = lengths.next().map(length) else { return true };
    first.is_some() && lengths.all(|text| length(text) == first)
}

impl AsyncRead for Answers {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.excess.check()?;
        loop {
            if let Some(is_odd) = self.other {
                ready!(self.heads.poll_sent(context));
                self.pass_on(is_odd)?;
            }
            if !self.begun.is_empty() {
                read_begun(&mut self.begun, into);
                return Poll::Ready(Ok(()));
            }
            if self.heads.expected().is_none() {
                return self.stream()?.poll_read(context, into);
            }
            let is_ended = ready!(self.poll_head(context))?;
            self.look(is_ended);
        }
    }
}

impl AsyncWrite for Answers {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.may_write()?;
        if self.is_deaf {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = ready!(self.stream()?.poll_write(context, bytes));
        let written = self.written(bytes.len(), written);
        self.heads.has_written();
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.may_write()?;
        let length = slices.iter().map(|slice| slice.len()).sum();
        if self.is_deaf {
            return Poll::Ready(Ok(length));
        }
        let written = ready!(self.stream()?.poll_write_vectored(context, slices));
        let written = self.written(length, written);
        self.heads.has_written();
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_deaf {
            let flushed = ready!(self.stream()?.poll_flush(context));
            self.written(0, flushed.map(|()| 0))?;
        }
        self.heads.has_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_deaf {
            return Poll::Ready(Ok(()));
        }
        self.stream()?.poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::runtime::Builder;

    use super::super::body::nothing;
    use super::*;

    #[test]
    fn heads_are_known_as_early_as_can_be() {
        let check = |bytes: &[u8], expected: Look| {
            assert_eq!(look(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        };
        let plain = Look::Answer { is_odd: false };
        let odd = Look::Answer { is_odd: true };
        check(b"", Look::Unknown);
        check(b"HTTP/1.", Look::Unknown);
        check(b"HTTP/1.1 200 OK\r\na: b\r\n", Look::Unknown);
        check(b"HTTP/1.1 200 OK\r\na: b\r\n\r\nbody", plain);
        check(b"HTTP/1.0 200\na: b\n\nbody\nmore", plain);
        check(b"\r\nHTTP/1.1 204 No Content\r\n\r\n", plain);
        check(b"HTTP/1.1 200 OK\r\na : b\r\nc: d\r\n e\r\n\r\n", plain);
        check(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", odd);
        check(b"HTTP/1.1 200 OK\r\na: b\r\n: c\r\n\r\n", odd);
        check(b"HTTP/1.1 200 OK\r\na: \x01\r\n\r\n", odd);
        check(b"HTTP/1.1 200 OK\r\n a: b\r\nc: d\r\n\r\n", odd);
        check(b"\r\nHTTP/1.1 200 OK\r\n\ta: b\r\n\r\n", odd);
        check(b"HTTP/1.1 200 OK\r\na: b\r\n \x01\r\n\r\n", odd);
        check(b"HTTP/1.1 103 Early Hints\r\na: b\r\n\r\nHTTP", Look::Interim(34));
        check(b"HTTP/1.1 101 Any\r\n\r\n", plain);
        check(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\n", plain);
        for bytes in [
            &b"ICY 200 OK\r\n\r\n"[..],
            b"<html>",
            b"HTTP/1.1 2000 OK\r\n\r\n",
            b"HTTP/2 200\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
            b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        ] {
            assert!(matches!(look(bytes), Look::Other { .. }), "{:?}", String::from_utf8_lossy(bytes));
        }
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(limits::SERVER_HEADERS_MAX + 1));
        check(many.as_bytes(), Look::Other { is_odd: true });
    }

    /// Goal: what a server sent before it is asked is no answer, also if the runtime has not heard of it yet. Method: a runtime that looks at its
    /// sockets only when it waits, which it does not between the bytes and the request.
    #[test]
    fn what_came_before_its_request_is_no_answer() {
        Builder::new_current_thread().enable_io().build().unwrap().block_on(async {
            for (is_first, is_asked, said, is_sent) in [
                (false, true, &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..], false),
                (false, true, b"", true),
                // Servers may say first why they will not hear.
                (true, true, b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", true),
                // The end of what was asked before, such as a long body of the client's.
                (false, false, b"HTTP/1.1 413 Long\r\ncontent-length: 0\r\n\r\n", true),
            ] {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                let (mut server, _) = listener.accept().unwrap();
                let heads = Heads::default();
                let mut answers = Answers::new(Box::new(stream), heads.clone(), Excess::default());
                if is_asked {
                    drop(heads.expect(Request::new(nothing()), is_first, None));
                }
                server.write_all(said).unwrap();
                assert_eq!(answers.write(b"GET / HTTP/1.1\r\n\r\n").await.is_ok(), is_sent, "{is_first} {is_asked}");
            }
        });
    }

    /// Goal: the answer of a server comes whole that closes before it has taken all of the request, and is no other request's. Method: what the
    /// server did not read resets the connection.
    #[test]
    fn a_server_that_takes_no_more_has_answered() {
        Builder::new_current_thread().enable_io().build().unwrap().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut server, _) = listener.accept().unwrap();
            let heads = Heads::default();
            let mut answers = Answers::new(Box::new(stream), heads.clone(), Excess::default());
            drop(heads.expect(Request::new(nothing()), true, None));
            answers.write_all(b"PUT / HTTP/1.1\r\ncontent-length: 9\r\n\r\n").await.unwrap();
            server.peek(&mut [0]).unwrap();
            let said = b"HTTP/1.1 413 Long\r\ncontent-length: 4\r\n\r\nlong";
            server.write_all(said).unwrap();
            drop(server);
            for _ in 0..3 {
                answers.write_all(b"123").await.unwrap();
            }
            answers.flush().await.unwrap();
            let mut came = Vec::new();
            answers.read_to_end(&mut came).await.unwrap();
            assert_eq!(came, said);
            drop(heads.expect(Request::new(nothing()), false, None));
            assert!(answers.write(b"GET / HTTP/1.1\r\n\r\n").await.is_err(), "the next request is sent nowhere");
        });
    }
}
