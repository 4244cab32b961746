// SPDX-License-Identifier: Apache-2.0
//! Whether a client is still there while its answer is awaited, when nothing is read from it or written to it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::time::{Instant, sleep};

use crate::limits;

/// A client's socket, as long as its connection is served. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Watched(Arc<OwnedFd>);

impl Watched {
    /// Returns what watches a socket; nothing if there are too many open files for that.
    pub fn new(socket: &impl AsFd) -> Option<Watched> {
        socket.as_fd().try_clone_to_owned().ok().map(|socket| Watched(Arc::new(socket)))
    }

    /// Returns whether its client is there. It does not keep the socket open.
    pub fn presence(&self) -> Presence {
        Presence(Arc::downgrade(&self.0))
    }
}

/// Whether a client is there.
#[derive(Clone, Debug)]
pub struct Presence(Weak<OwnedFd>);

/// How a client's connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Open,
    /// It says nothing any more, and may still listen (RFC 9112 §9.6); one that has closed looks the same until it is sent something.
    HalfClosed,
    Gone,
}

impl Presence {
    /// Waits until the client is gone, or has said nothing more for [`limits::HALF_CLOSED_TIME_MAX`].
    pub async fn ended(&self) {
        self.ended_within(limits::PRESENCE_EVERY, limits::HALF_CLOSED_TIME_MAX).await;
    }

    async fn ended_within(&self, every: Duration, half_closed_max: Duration) {
        let mut half_closed: Option<Instant> = None;
        loop {
            sleep(every).await;
            match self.look() {
                Is::Open => half_closed = None,
                Is::HalfClosed if half_closed.get_or_insert_with(Instant::now).elapsed() < half_closed_max => {}
                Is::HalfClosed | Is::Gone => return,
            }
        }
    }

    fn look(&self) -> Is {
        let Some(socket) = self.0.upgrade() else { return Is::Gone };
        let mut sockets = [PollFd::new(&*socket, PollFlags::RDHUP)];
        // One that cannot be looked at counts as there: its request ends by its bounds.
        if poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_err() {
            return Is::Open;
        }
        match sockets[0].revents() {
            flags if flags.intersects(PollFlags::HUP | PollFlags::ERR) => Is::Gone,
            flags if flags.contains(PollFlags::RDHUP) => Is::HalfClosed,
            _ => Is::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    fn connected() -> (TcpStream, Presence, Watched) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let watched = Watched::new(&server).unwrap();
        (client, watched.presence(), watched)
    }

    #[tokio::test]
    async fn who_is_there_or_only_says_no_more_is_waited_for() {
        let every = Duration::from_millis(10);
        let (client, presence, _watched) = connected();
        let ended = |most| presence.ended_within(every, Duration::from_millis(most));
        assert!(tokio::time::timeout(Duration::from_millis(300), ended(0)).await.is_err(), "it is there");
        client.shutdown(Shutdown::Write).unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(300), ended(5000)).await.is_err(), "it may listen");
        let begun = Instant::now();
        ended(200).await;
        assert!(begun.elapsed() >= Duration::from_millis(200));
    }

    #[tokio::test]
    async fn who_is_gone_is_noticed() {
        for is_reset in [true, false] {
            let (client, presence, watched) = connected();
            if is_reset {
                rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
                drop(client);
            } else {
                // Its connection is served no more.
                drop(watched);
            }
            let ended = presence.ended_within(Duration::from_millis(10), Duration::from_secs(60));
            tokio::time::timeout(Duration::from_secs(10), ended).await.unwrap();
        }
    }
}
