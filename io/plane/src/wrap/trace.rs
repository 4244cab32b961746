// SPDX-License-Identifier: Apache-2.0
//! Remembers the last packets and what became of them.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use netserv_model::api::DeviceInfo;
use netserv_wire::ip::IpView;

use crate::{
    Batch, Counters, DestinationCounters, Driver, DriverError, Egress, FilterTable, Final, InterfaceId, PacketId,
    Passage, limits,
};

/// A driver whose packets are logged at `trace` level and kept in a [`TraceLog`].
#[derive(Debug)]
pub struct Trace<D> {
    inner: D,
    log: TraceLog,
}

impl<D: Driver> Trace<D> {
    /// Wraps a driver and remembers the last `packets`, at most [`limits::TRACE_PACKETS_MAX`].
    pub fn new(inner: D, packets: usize) -> Trace<D> {
        let packets = packets.clamp(1, limits::TRACE_PACKETS_MAX);
        let state = State { packets, first: 0, entries: VecDeque::new(), waiting: BTreeMap::new() };
        Trace { inner, log: TraceLog { state: Arc::new(Mutex::new(state)) } }
    }

    /// Returns the log, for any thread to read.
    pub fn log(&self) -> TraceLog {
        self.log.clone()
    }
}

/// The last packets of a driver.
#[derive(Clone, Debug)]
pub struct TraceLog {
    state: Arc<Mutex<State>>,
}

impl TraceLog {
    /// Returns the remembered packets, the oldest first.
    pub fn recent(&self) -> Vec<TraceEntry> {
        self.lock().entries.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One remembered packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// When it came, or was injected.
    pub time: SystemTime,
    /// Where it came in; `None` for an injected one.
    pub interface: Option<InterfaceId>,
    /// Its length in bytes.
    pub length: usize,
    /// Its start, up to [`limits::TRACE_BYTES_MAX`] bytes.
    pub start: Vec<u8>,
    /// What became of it.
    pub traced: Traced,
}

/// What became of a remembered packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Traced {
    /// It waits for its verdict.
    Waiting,
    /// It passed.
    Passed,
    /// It was dropped.
    Dropped,
    /// Other bytes went on in its place: their length and their start.
    Replaced(usize, Vec<u8>),
    /// It was injected.
    Injected,
}

#[derive(Debug)]
struct State {
    packets: usize,
    /// The number of the oldest entry, counted from the start of the log.
    first: u64,
    entries: VecDeque<TraceEntry>,
    waiting: BTreeMap<PacketId, u64>,
}

impl State {
    fn push(&mut self, id: Option<PacketId>, entry: TraceEntry) {
        if self.entries.len() == self.packets {
            self.entries.pop_front();
            self.first += 1;
            let first = self.first;
            self.waiting.retain(|_, number| *number >= first);
        }
        let number = self.first + u64::try_from(self.entries.len()).expect("the log is bounded");
        self.entries.push_back(entry);
        self.waiting.extend(id.map(|id| (id, number)));
    }

    fn decide(&mut self, id: PacketId, traced: Traced) {
        let index = self.waiting.remove(&id).and_then(|number| usize::try_from(number.checked_sub(self.first)?).ok());
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            entry.traced = traced;
        }
    }
}

impl<D: Driver> Driver for Trace<D> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn intercept(&mut self) -> Result<Option<Passage>, DriverError> {
        self.inner.intercept()
    }

    fn destination_counters(&self) -> Arc<dyn DestinationCounters> {
        self.inner.destination_counters()
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        self.inner.filters()
    }

    fn receive(&mut self, batch: &mut Batch, timeout: Option<Duration>) -> Result<usize, DriverError> {
        let count = self.inner.receive(batch, timeout)?;
        let mut state = self.log.lock();
        for packet in batch.iter() {
            tracing::trace!(id = packet.id.0, interface = packet.interface.0, flow = %Flow(packet.bytes), "received");
            state.push(Some(packet.id), entry(Some(packet.interface), packet.bytes, Traced::Waiting));
        }
        Ok(count)
    }

    fn finish(&mut self, packet: PacketId, verdict: Final<'_>) {
        let traced = match verdict {
            Final::Pass => Traced::Passed,
            Final::Drop => Traced::Dropped,
            Final::Replace(bytes) => Traced::Replaced(bytes.len(), start(bytes)),
        };
        tracing::trace!(id = packet.0, verdict = %Named(verdict), "finished");
        self.log.lock().decide(packet, traced);
        self.inner.finish(packet, verdict);
    }

    fn explain(&mut self, packet: PacketId, verdict: Final<'_>) -> Egress {
        self.inner.explain(packet, verdict)
    }

    fn inject(&mut self, packet: &[u8]) -> Result<(), DriverError> {
        tracing::trace!(flow = %Flow(packet), "injected");
        self.inner.inject(packet)?;
        self.log.lock().push(None, entry(None, packet, Traced::Injected));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        self.inner.flush()
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.poll_fd()
    }

    fn owed_max(&self) -> usize {
        self.inner.owed_max()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn devices(&self) -> Vec<DeviceInfo> {
        self.inner.devices()
    }
}

fn entry(interface: Option<InterfaceId>, bytes: &[u8], traced: Traced) -> TraceEntry {
    TraceEntry { time: SystemTime::now(), interface, length: bytes.len(), start: start(bytes), traced }
}

fn start(bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len().min(limits::TRACE_BYTES_MAX)].to_vec()
}

/// Writes who sends to whom, only if somebody reads it.
struct Flow<'a>(&'a [u8]);

impl std::fmt::Display for Flow<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Ok(view) = IpView::parse(self.0) else { return f.write_str("not IP") };
        let flow = view.flow();
        let (from, to) = (flow.source_port.unwrap_or(0), flow.destination_port.unwrap_or(0));
        write!(f, "{} {from} > {} {to} protocol {}", flow.source, flow.destination, flow.protocol)
    }
}

/// Writes a verdict without its bytes.
pub(super) struct Named<'a>(pub Final<'a>);

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Final::Pass => f.write_str("pass"),
            Final::Drop => f.write_str("drop"),
            Final::Replace(bytes) => write!(f, "replace by {} bytes", bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use netserv_model::effect::FilterId;

    use super::*;
    use crate::dummy::Dummy;
    use crate::packet::testing;

    #[test]
    fn the_last_packets_and_their_verdicts_are_remembered() {
        let (dummy, plane) = Dummy::new();
        let mut driver = Trace::new(dummy, 4);
        driver.install(FilterId(1), &"udp".parse().unwrap()).unwrap();
        let packet = testing::udp("10.0.0.1:1", "10.0.0.2:2", &[7; 200]);
        (0..5).for_each(|_| assert!(plane.push(InterfaceId(9), &packet)));
        let mut batch = Batch::new();
        driver.receive(&mut batch, None).unwrap();
        driver.finish(PacketId(1), Final::Drop);
        driver.finish(PacketId(2), Final::Pass);
        driver.finish(PacketId(3), Final::Replace(&packet));
        driver.finish(PacketId(4), Final::Drop);
        let traced = |log: &TraceLog| log.recent().into_iter().map(|entry| entry.traced).collect::<Vec<_>>();
        let replaced = Traced::Replaced(228, packet[..limits::TRACE_BYTES_MAX].to_vec());
        assert_eq!(traced(&driver.log()), [Traced::Passed, replaced.clone(), Traced::Dropped, Traced::Waiting]);
        driver.inject(&packet).unwrap();
        assert!(driver.inject(b"no packet").is_err());
        driver.finish(PacketId(5), Final::Pass);
        assert_eq!(traced(&driver.log()), [replaced, Traced::Dropped, Traced::Passed, Traced::Injected]);
        let entry = driver.log().recent().remove(0);
        assert_eq!((entry.interface, entry.length, entry.start.len()), (Some(InterfaceId(9)), 228, 128));
        driver.flush().unwrap();
        assert_eq!(plane.outcomes().len(), 6);
    }

    #[test]
    fn a_log_has_trace_packets_max_entries_at_most() {
        let trace = Trace::new(Dummy::new().0, usize::MAX);
        assert_eq!(trace.log.lock().packets, limits::TRACE_PACKETS_MAX);
    }
}
