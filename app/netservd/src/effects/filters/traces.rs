// SPDX-License-Identifier: Apache-2.0
//! Traces: their filters in the driver, their taps in the packet loop, their end.
//!
//! A trace lives as long as somebody holds its [`Feed`]. It adds filters of its own to the driver, so that packets are
//! seen too that no module wants; nothing of it outlives the feed, and the driver takes its filters along when it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_model::trace::TraceRequest;
use netserv_packet_loop::feed::{Feed, TraceRefusal};
use netserv_packet_loop::limits::{TRACE_FILTERS_MAX, TRACES_MAX};
use netserv_packet_loop::thread::PacketSender;
use netserv_packet_loop::{PacketCommand, Tap, TapCounts, TraceId};
use netserv_plane::{Change, FilterTable};
use tokio::sync::mpsc;

use crate::limits::{TRACE_BYTES_MAX, TRACED_WAITING_MAX};

/// The first of the filter names that traces use; the controller counts up from zero and never gets here.
const FILTER_ID_FIRST: u64 = 1 << 63;

/// The running traces.
pub struct Traces {
    /// Tells their thread of a feed that was dropped.
    dropped: Arc<dyn Fn(TraceId) + Send + Sync>,
    running: BTreeMap<TraceId, Vec<FilterId>>,
    next_trace: u64,
    next_filter: u64,
}

impl Traces {
    /// Returns that there are none; `dropped` is told of each whose feed is dropped.
    pub fn new(dropped: impl Fn(TraceId) + Send + Sync + 'static) -> Traces {
        Traces { dropped: Arc::new(dropped), running: BTreeMap::new(), next_trace: 0, next_filter: 0 }
    }

    /// Starts a trace. When its feed is dropped, it must be ended.
    ///
    /// # Errors
    /// There are too many traces or filters, or the driver refuses.
    pub fn start(
        &mut self,
        request: &TraceRequest,
        filters: &Arc<dyn FilterTable>,
        packets: &PacketSender,
    ) -> Result<Feed, TraceRefusal> {
        if self.running.len() >= TRACES_MAX {
            return Err(TraceRefusal::TooMany);
        }
        if request.filters.len() > TRACE_FILTERS_MAX {
            return Err(TraceRefusal::TooManyFilters);
        }
        let id = TraceId(self.next_trace);
        self.next_trace += 1;
        let every = vec![Filter::default()];
        let wanted = if request.filters.is_empty() { every } else { request.filters.clone() };
        let (sink, records) = mpsc::channel(TRACED_WAITING_MAX);
        let counts = Arc::<TapCounts>::default();
        let bytes = usize::try_from(request.bytes).unwrap_or(usize::MAX).min(TRACE_BYTES_MAX);
        let tap = Tap { id, filters: wanted.clone(), bytes, sink, counts: counts.clone() };
        // Before its packets come.
        if !packets.send(PacketCommand::Trace(tap)) {
            return Err(TraceRefusal::Ended);
        }
        let names: Vec<FilterId> =
            (self.next_filter..).map(|n| FilterId(FILTER_ID_FIRST + n)).take(wanted.len()).collect();
        self.next_filter += u64::try_from(names.len()).unwrap_or(u64::MAX);
        let changes: Vec<Change<'_>> =
            names.iter().zip(&wanted).map(|(name, filter)| Change::Install(*name, filter)).collect();
        if let Err(error) = filters.change(&changes) {
            packets.send(PacketCommand::EndTrace(id));
            return Err(TraceRefusal::Driver(error.to_string()));
        }
        self.running.insert(id, names);
        tracing::debug!(trace = id.0, filters = ?wanted, "a trace runs");
        let dropped = self.dropped.clone();
        Ok(Feed::new(records, counts, wanted, move || dropped(id)))
    }

    /// Ends a trace, if it runs.
    pub fn end(&mut self, id: TraceId, filters: &Arc<dyn FilterTable>, packets: &PacketSender) {
        let Some(names) = self.running.remove(&id) else { return };
        packets.send(PacketCommand::EndTrace(id));
        let changes: Vec<Change<'_>> = names.into_iter().map(Change::Remove).collect();
        if let Err(error) = filters.change(&changes) {
            tracing::warn!(%error, trace = id.0, "the filters of a trace could not be taken away; their packets pass");
        }
        tracing::debug!(trace = id.0, "a trace ended");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::{Duration, Instant};

    use netserv_model::trace::TraceStep;
    use netserv_packet_loop::thread::{PacketThread, PacketThreadConfig};
    use netserv_plane::InterfaceId;
    use netserv_plane::dummy::{Dummy, Plane};
    use netserv_wire::ip::build;

    use super::*;

    /// Goal: a trace's filters are in the driver while its feed is held, packets that no module wants are told of, and
    /// nothing of it is left when the feed is dropped.
    #[tokio::test]
    async fn a_trace_lasts_as_long_as_its_feed() {
        let mut rig = Rig::new();
        let mut feed = rig.start("udp port 5060").unwrap();
        assert_eq!(rig.installed(), ["udp port 5060"]);
        assert!(rig.plane.push(InterfaceId(3), &packet()));
        let traced = feed.packets.recv().await.unwrap();
        assert_eq!(traced.packet.steps, [TraceStep::NoFilter]);
        drop(feed);
        rig.end_one();
        assert!(rig.installed().is_empty());
    }

    #[test]
    fn traces_max_traces_run_at_a_time() {
        let mut rig = Rig::new();
        let mut feeds: Vec<Feed> = (0..TRACES_MAX).map(|_| rig.start("udp port 5060").unwrap()).collect();
        assert_eq!(rig.start("udp").unwrap_err(), TraceRefusal::TooMany);
        feeds.pop();
        rig.end_one();
        rig.start("udp").unwrap();
    }

    #[test]
    fn trace_filters_max_filters_are_taken() {
        let mut rig = Rig::new();
        let request = |count| TraceRequest { filters: vec![Filter::default(); count], ..TraceRequest::default() };
        assert_eq!(rig.ask(&request(TRACE_FILTERS_MAX + 1)).unwrap_err(), TraceRefusal::TooManyFilters);
        assert!(rig.installed().is_empty());
        let _feed = rig.ask(&request(TRACE_FILTERS_MAX)).unwrap();
        assert_eq!(rig.installed().len(), TRACE_FILTERS_MAX);
    }

    #[tokio::test]
    async fn trace_bytes_max_bytes_are_kept_and_no_filter_means_every_packet() {
        let mut rig = Rig::new();
        let mut feed = rig.ask(&TraceRequest { bytes: u32::MAX, ..TraceRequest::default() }).unwrap();
        assert_eq!(rig.installed(), ["ip"]);
        let long = build::udp("192.0.2.1:9".parse().unwrap(), "10.0.0.2:9".parse().unwrap(), 64, &[7; 3000]).unwrap();
        assert!(rig.plane.push(InterfaceId(3), &long));
        let traced = feed.packets.recv().await.unwrap();
        assert_eq!((traced.bytes.len(), traced.packet.length), (TRACE_BYTES_MAX, long.len()));
    }

    /// A reader that does not read costs records, never memory or the packet path.
    #[tokio::test]
    async fn traced_waiting_max_packets_wait_and_the_rest_is_lost_or_skipped() {
        let mut rig = Rig::new();
        let mut feed = rig.start("udp").unwrap();
        let begun = Instant::now();
        // It takes more than one second, since only so many are followed in each.
        while feed.counts.lost.load(Ordering::Relaxed) == 0 {
            (0..TURN).for_each(|_| assert!(rig.plane.push(InterfaceId(3), &packet())));
            let outcomes = rig.plane.wait_outcomes(TURN, Duration::from_secs(60));
            assert_eq!(outcomes.len(), TURN, "the packet path does not wait for readers");
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing was lost");
        }
        assert!(feed.counts.skipped.load(Ordering::Relaxed) > 0);
        let mut waiting = 0;
        while feed.packets.try_recv().is_ok() {
            waiting += 1;
        }
        assert_eq!(waiting, TRACED_WAITING_MAX);
    }

    const TURN: usize = 64;

    struct Rig {
        plane: Plane,
        packets: PacketThread,
        filters: Arc<dyn FilterTable>,
        traces: Traces,
        dropped: Receiver<TraceId>,
    }

    impl Rig {
        fn new() -> Rig {
            let (dummy, plane) = Dummy::new();
            let filters = netserv_plane::Driver::filters(&dummy);
            let packets =
                PacketThread::start(vec![Box::new(dummy)], &PacketThreadConfig::default(), Arc::new(|_| true)).unwrap();
            let (sender, dropped) = channel();
            let traces = Traces::new(move |id| sender.send(id).unwrap());
            Rig { plane, packets, filters, traces, dropped }
        }

        fn start(&mut self, filter: &str) -> Result<Feed, TraceRefusal> {
            self.ask(&TraceRequest { filters: vec![filter.parse().unwrap()], ..TraceRequest::default() })
        }

        fn ask(&mut self, request: &TraceRequest) -> Result<Feed, TraceRefusal> {
            self.traces.start(request, &self.filters, &self.packets.sender())
        }

        /// Does what the thread does when a feed is dropped.
        fn end_one(&mut self) {
            let id = self.dropped.try_recv().expect("a feed was dropped");
            self.traces.end(id, &self.filters, &self.packets.sender());
        }

        fn installed(&self) -> Vec<String> {
            self.plane.installed().values().map(ToString::to_string).collect()
        }
    }

    fn packet() -> Vec<u8> {
        build::udp("192.0.2.1:9".parse().unwrap(), "10.0.0.2:5060".parse().unwrap(), 64, b"x").unwrap()
    }
}
