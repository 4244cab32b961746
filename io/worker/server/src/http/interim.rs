// SPDX-License-Identifier: Apache-2.0
//! Interim responses of servers (RFC 9110 §15.2), which are read over, but not without an end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::{Request, StatusCode};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::limits;

/// That a server wants the body of a request which expects to hear so (RFC 9110 §10.1.1). It is among the request's extensions. Clones are the
/// same one.
#[derive(Clone, Debug, Default)]
pub struct Wanted(Arc<Notify>);

impl Wanted {
    /// Waits until the server says so, or has had its time to.
    pub async fn said(self) {
        // A server of HTTP/1.0 says nothing.
        let _ = timeout(limits::EXPECT_TIME_MAX, self.0.notified()).await;
    }
}

/// Whether a server has sent too many interim responses on a connection.
#[derive(Clone, Debug, Default)]
pub struct Excess(Arc<AtomicBool>);

impl Excess {
    /// Has the interim responses to a request be counted that is sent on the connection.
    pub fn watch<B>(&self, request: &mut Request<B>) {
        let (excess, count) = (self.clone(), AtomicUsize::new(0));
        let wanted = request.extensions_mut().remove::<Wanted>();
        hyper::ext::on_informational(request, move |response| {
            if let Some(wanted) = wanted.as_ref().filter(|_| response.status() == StatusCode::CONTINUE) {
                wanted.0.notify_one();
            }
            if count.fetch_add(1, Ordering::Relaxed) >= limits::EGRESS_INTERIM_MAX {
                excess.0.store(true, Ordering::Relaxed);
            }
        });
    }

    /// Returns that the connection cannot be read any more, once there was an excess.
    ///
    /// # Errors
    /// There was.
    pub fn check(&self) -> io::Result<()> {
        let why = "the server sends interim responses without an end";
        if self.0.load(Ordering::Relaxed) { Err(io::Error::new(io::ErrorKind::InvalidData, why)) } else { Ok(()) }
    }
}
