// SPDX-License-Identifier: Apache-2.0
//! The engine's face: `handle_*` takes input, `poll_*` gives output.

use std::net::{IpAddr, SocketAddr};

use netserv_model::Instant;

use crate::api::{ApiCall, AssociationId, Config, Datagram, Disposition, Transmit};
use crate::counters::{Counters, StateCounts};
use crate::error::ApiError;
use crate::event::Event;

/// One node's GIST.
pub struct Engine {
    counters: Counters,
}

impl Engine {
    /// Returns an engine without state. Give a `seed` that nobody can guess: the cookies are made from it.
    pub fn new(config: Config, seed: u64) -> Engine {
        let _ = (config, seed);
        Engine { counters: Counters::default() }
    }

    /// Takes one datagram that arrived or was intercepted, and says whether it goes on.
    pub fn handle_datagram(&mut self, now: Instant, rx: Datagram<'_>) -> Disposition {
        let _ = (now, rx);
        Disposition::Consumed
    }

    /// Takes an ICMP error for a Query of this node that got to `destination`, so that nobody took it on the way.
    pub fn handle_unreachable(&mut self, now: Instant, destination: IpAddr) {
        let _ = (now, destination);
    }

    /// Takes the success of a [`Transmit::Connect`].
    pub fn handle_connected(&mut self, now: Instant, id: AssociationId) {
        let _ = (now, id);
    }

    /// Takes a connection that a peer opened, and names it. If there is no room, a [`Transmit::Close`] follows.
    pub fn handle_accepted(&mut self, now: Instant, local: IpAddr, peer: SocketAddr) -> AssociationId {
        let _ = (now, local, peer);
        AssociationId(0)
    }

    /// Takes bytes of a connection, cut anywhere.
    pub fn handle_stream(&mut self, now: Instant, id: AssociationId, bytes: &[u8]) {
        let _ = (now, id, bytes);
    }

    /// Takes the end of a connection, or that it could not be opened. `error` is `None` if the peer closed it in order.
    pub fn handle_closed(&mut self, now: Instant, id: AssociationId, error: Option<String>) {
        let _ = (now, id, error);
    }

    /// Takes a call of an NSLP. `local` is the node's own address toward the next peer, as the routing of the flow's
    /// destination gives it; calls that send nothing ignore it.
    ///
    /// # Errors
    /// A refused call changes nothing, and no status follows for its message.
    pub fn handle_api(&mut self, now: Instant, call: ApiCall, local: IpAddr) -> Result<(), ApiError> {
        let _ = (now, call, local);
        Ok(())
    }

    /// Does what is due at `now`. Calling it early or often does no harm.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// Returns the next thing to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        None
    }

    /// Returns the next thing to tell.
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// Returns when to call [`Engine::handle_timeout`], and for what.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns how much state there is.
    pub fn state_counts(&self) -> StateCounts {
        StateCounts::default()
    }
}
