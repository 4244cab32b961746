// SPDX-License-Identifier: Apache-2.0
//! Packets from memory, again and again, for measurements of what is above drivers.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use netserv_wire::ip::IpView;

use super::{Dummy, Plane, lane_of};
use crate::{Batch, Counters, Driver, DriverError, FilterTable, Final, InterfaceId, PacketId, limits};

/// A lane that always has packets: its own of a set, in turn, as long as fewer than a number of them are without a verdict.
///
/// It costs one copy of a packet into the batch, as other drivers do, and a counter. It looks at no filter, and believes
/// each verdict to be for a packet of its own.
pub struct Replay {
    packets: Vec<Vec<u8>>,
    next: usize,
    in_flight: u64,
    counters: Counters,
    filters: Plane,
}

impl Replay {
    /// Returns lanes that share out `packets` by their flows, each with so many in flight, and what has their filters. There
    /// is at least one lane, and at most [`limits::LANES_MAX`].
    pub fn lanes(packets: &[Vec<u8>], lanes: usize, in_flight: u64) -> (Vec<Replay>, Plane) {
        let lanes = lanes.clamp(1, limits::LANES_MAX);
        let filters = Dummy::new().1;
        let mut shares = vec![Vec::new(); lanes];
        for packet in packets {
            let lane = IpView::parse(packet).map_or(0, |view| lane_of(&view.flow(), lanes));
            shares[lane].push(packet.clone());
        }
        let lane =
            |packets| Replay { packets, next: 0, in_flight, counters: Counters::default(), filters: filters.clone() };
        (shares.into_iter().map(lane).collect(), filters)
    }
}

impl Driver for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        Arc::new(self.filters.clone())
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        batch.clear();
        let Counters { received, passed, dropped, replaced, .. } = self.counters;
        let owed = received - passed - dropped - replaced;
        let mut room = if self.packets.is_empty() { 0 } else { self.in_flight.saturating_sub(owed) };
        while room > 0 && batch.push(PacketId(self.counters.received), InterfaceId(1), &self.packets[self.next]) {
            self.next += 1;
            if self.next == self.packets.len() {
                self.next = 0;
            }
            self.counters.received += 1;
            room -= 1;
        }
        if batch.is_empty() {
            // Nothing comes before a verdict does, and that comes from the caller.
            std::thread::sleep(timeout.unwrap_or_default());
        }
        Ok(batch.len())
    }

    fn finish(&mut self, _: PacketId, verdict: Final<'_>) {
        match verdict {
            Final::Pass => self.counters.passed += 1,
            Final::Drop => self.counters.dropped += 1,
            Final::Replace(_) => self.counters.replaced += 1,
        }
    }

    fn inject(&mut self, _: &[u8]) -> Result<(), DriverError> {
        self.counters.injected += 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
