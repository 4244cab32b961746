// SPDX-License-Identifier: Apache-2.0
//! All lanes of a driver as one driver, so that what a test says of a driver is said of its lanes together.

use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_model::api::DeviceInfo;
use netserv_plane::{
    Batch, Counters, DestinationCounters, Driver, DriverConfig, DriverError, Egress, FilterTable, Final, InterfaceId,
    PacketId, Passage,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Lanes that take turns in one thread. Packets have names of their own, since two lanes may use the same.
pub struct Lanes<D> {
    pub lanes: Vec<D>,
    owed: HashMap<PacketId, (usize, PacketId)>,
    next: u64,
    turn: usize,
    batch: Batch,
    /// Received, and to be handed out.
    waiting: VecDeque<(PacketId, InterfaceId, Vec<u8>)>,
}

/// What a driver has to have for this.
pub trait InLanes: Driver + Sized {
    fn open_lanes(config: &DriverConfig, lanes: usize) -> Result<Vec<Self>, DriverError>;
}

impl<D: InLanes> Lanes<D> {
    /// Opens as many lanes as this test program is about.
    pub fn open(config: &DriverConfig) -> Result<Lanes<D>, DriverError> {
        let lanes = D::open_lanes(config, crate::LANES)?;
        Ok(Lanes { lanes, owed: HashMap::new(), next: FIRST, turn: 0, batch: Batch::new(), waiting: VecDeque::new() })
    }

    fn take_from_all(&mut self) -> Result<(), DriverError> {
        for lane in 0..self.lanes.len() {
            self.lanes[lane].receive(&mut self.batch, Some(Duration::ZERO))?;
            for packet in self.batch.iter() {
                self.next += 1;
                self.owed.insert(PacketId(self.next), (lane, packet.id));
                self.waiting.push_back((PacketId(self.next), packet.interface, packet.bytes.to_vec()));
            }
        }
        Ok(())
    }

    /// Returns the packet's lane and its name there; an unknown one is the first lane's.
    fn find(&self, packet: PacketId) -> (usize, PacketId) {
        self.owed.get(&packet).copied().unwrap_or((0, packet))
    }
}

impl<D: InLanes> Driver for Lanes<D> {
    fn name(&self) -> &'static str {
        self.lanes[0].name()
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        self.lanes[0].filters()
    }

    fn destination_counters(&self) -> Arc<dyn DestinationCounters> {
        self.lanes[0].destination_counters()
    }

    fn intercept(&mut self) -> Result<Option<Passage>, DriverError> {
        self.lanes[0].intercept()
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        if let [only] = &mut self.lanes[..] {
            return only.receive(batch, timeout);
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        batch.clear();
        loop {
            self.take_from_all()?;
            while !batch.is_full()
                && let Some((id, interface, bytes)) = self.waiting.pop_front()
            {
                assert!(batch.push(id, interface, &bytes));
            }
            if !batch.is_empty() {
                return Ok(batch.len());
            }
            let left = deadline.map_or(BEAT, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(0);
            }
            let fds = self.lanes.iter().map(|lane| PollFd::from_borrowed_fd(lane.poll_fd().unwrap(), PollFlags::IN));
            let timeout = Timespec::try_from(left.min(BEAT)).unwrap();
            poll(&mut fds.collect::<Vec<_>>(), Some(&timeout)).unwrap();
        }
    }

    fn finish(&mut self, packet: PacketId, verdict: Final<'_>) {
        let (lane, id) = self.find(packet);
        self.owed.remove(&packet);
        self.lanes[lane].finish(id, verdict);
    }

    fn explain(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        let (lane, id) = self.find(packet);
        self.lanes[lane].explain(id, verdict)
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError> {
        self.turn = (self.turn + 1) % self.lanes.len();
        self.lanes[self.turn].inject(packet)
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        self.lanes.iter_mut().try_for_each(Driver::flush)
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> Counters {
        self.lanes.iter().map(Driver::counters).sum()
    }

    fn owed_max(&self) -> usize {
        self.lanes.iter().map(Driver::owed_max).min().unwrap()
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        self.lanes[0].devices()
    }
}

/// No lane names a packet so.
const FIRST: u64 = 1 << 63;
/// How long a lane is left alone at most.
const BEAT: Duration = Duration::from_millis(100);
