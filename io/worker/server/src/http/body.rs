// SPDX-License-Identifier: Apache-2.0
//! Bodies of HTTP messages on their way through the node.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::StatusCode;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::{Body, Frame, SizeHint};
use wasmtime_wasi_http::Error;

use super::connection::Underway;
use crate::module::Module;

/// Returns a body that is at its end.
pub fn nothing() -> UnsyncBoxBody<Bytes, Error> {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A request's body: counted, and no longer than the module allows.
pub struct RequestBody {
    body: UnsyncBoxBody<Bytes, Error>,
    module: Arc<Module>,
    left: u64,
    blame: Blame,
}

/// The status of who is to blame for a request's body: the client, if it breaks the body off, or its rules. 0 if nobody is.
pub type Blame = Arc<AtomicU16>;

impl RequestBody {
    /// Returns a body that fails once it is longer than the module allows.
    pub fn new<B>(body: B, module: &Arc<Module>) -> RequestBody
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Error>,
    {
        let body = body.map_err(Into::into).boxed_unsync();
        RequestBody { body, module: Arc::clone(module), left: module.limits.body_bytes, blame: Arc::default() }
    }

    /// Returns who is to blame for it, which is known when it has come.
    pub fn blame(&self) -> Blame {
        Arc::clone(&self.blame)
    }

    /// Returns what is left of the body, which is at its end then.
    #[must_use]
    pub fn take(&mut self) -> RequestBody {
        let body = std::mem::replace(&mut self.body, nothing());
        RequestBody { body, module: Arc::clone(&self.module), left: self.left, blame: self.blame() }
    }

    /// Returns the body as one that may have any length: the module does not hold it.
    #[must_use]
    pub fn without_bound(self) -> RequestBody {
        RequestBody { left: u64::MAX, ..self }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else { return Poll::Ready(None) };
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                self.blame.store(StatusCode::BAD_REQUEST.as_u16(), Ordering::Release);
                return Poll::Ready(Some(Err(error)));
            }
        };
        let length = frame.data_ref().map_or(0, Bytes::len);
        self.module.counts.bytes_in(length);
        match self.left.checked_sub(length as u64) {
            Some(left) => {
                self.left = left;
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                self.left = 0;
                self.blame.store(StatusCode::PAYLOAD_TOO_LARGE.as_u16(), Ordering::Release);
                self.module.counts.refused();
                Poll::Ready(Some(Err(Error::HttpRequestBodySize(Some(self.module.limits.body_bytes)))))
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

/// A response's body: counted, and the end of its request.
pub struct ResponseBody {
    body: UnsyncBoxBody<Bytes, Error>,
    module: Arc<Module>,
    /// Whether the component failed, by which a body ends that looks whole.
    broken: Option<Arc<AtomicBool>>,
    /// Why it ends before its time, which the connection learns after it wrote what came before.
    failed: Option<Error>,
    _underway: Option<Underway>,
}

impl ResponseBody {
    /// Returns a body that ends its request when it ends itself, and is an error if its component is `broken` by then.
    pub fn new(
        body: UnsyncBoxBody<Bytes, Error>,
        module: &Arc<Module>,
        broken: Arc<AtomicBool>,
        underway: Option<Underway>,
    ) -> ResponseBody {
        ResponseBody { body, module: Arc::clone(module), broken: Some(broken), failed: None, _underway: underway }
    }

    /// Returns a body that the node has taken over from its component.
    pub fn held(body: UnsyncBoxBody<Bytes, Error>, module: &Arc<Module>, underway: Option<Underway>) -> ResponseBody {
        ResponseBody { body, module: Arc::clone(module), broken: None, failed: None, _underway: underway }
    }

    /// Returns a body that no component made.
    pub fn passed(body: UnsyncBoxBody<Bytes, Error>, module: &Arc<Module>, underway: Underway) -> ResponseBody {
        ResponseBody { body, module: Arc::clone(module), broken: None, failed: None, _underway: Some(underway) }
    }

    /// Returns a text of the node's own.
    pub fn text(text: &'static str, module: &Arc<Module>) -> ResponseBody {
        let body = Full::new(Bytes::from_static(text.as_bytes()));
        let body = body.map_err(|never| match never {}).boxed_unsync();
        ResponseBody { body, module: Arc::clone(module), broken: None, failed: None, _underway: None }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let mut frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() && self.broken.as_ref().is_some_and(|broken| broken.load(Ordering::Acquire)) {
            self.broken = None;
            frame = Some(Err(Error::HttpResponseIncomplete));
        }
        match frame {
            Some(Ok(frame)) => {
                self.module.counts.bytes_out(frame.data_ref().map_or(0, Bytes::len));
                Poll::Ready(Some(Ok(frame)))
            }
            // A connection forgets what it holds when its body fails, and writes it when there is no more for now.
            Some(Err(error)) => {
                self.module.counts.failed();
                self.failed = Some(error);
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.broken.is_none() && self.failed.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
