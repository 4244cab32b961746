// SPDX-License-Identifier: Apache-2.0
//! Packets of many flows at once, of which each is missed and each that overtakes another is seen; and lanes that pass them,
//! each on a thread of its own.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netserv_plane::{Batch, Driver, Final};
use rustix::net::sockopt;

use super::Chain;
use super::contract::{RECEIVER, SENDER};

/// What became of the packets.
#[derive(Debug, Default)]
pub struct Account {
    pub sent: u64,
    pub received: u64,
    /// Those that came after one of their flow that was sent later.
    pub overtaken: u64,
    pub took: Duration,
}

/// A sender and a receiver on threads of their own, from when this is made until [`Load::stop`].
pub struct Load {
    /// For the sender, and, once it has ended, for the receiver.
    stops: [Arc<AtomicBool>; 2],
    sender: JoinHandle<u64>,
    receiver: JoinHandle<(u64, u64)>,
    received: Arc<AtomicU64>,
    start: Instant,
}

impl Load {
    /// Sends packets of flows from the chain's sender to its receiver, as many as can be while so many at most are on
    /// their way.
    pub fn start(chain: &Chain, flows: &[(SocketAddr, SocketAddr)], on_their_way_max: u64) -> Load {
        let senders: Vec<(UdpSocket, SocketAddr)> =
            flows.iter().map(|(from, to)| (chain.udp(SENDER, &from.to_string()), *to)).collect();
        let receiver = chain.udp(RECEIVER, &format!("0.0.0.0:{}", flows[0].1.port()));
        sockopt::set_socket_recv_buffer_size_force(&receiver, 16 * 1024 * 1024).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let (stops, received) = ([(); 2].map(|()| Arc::new(AtomicBool::new(false))), Arc::new(AtomicU64::new(0)));
        let (stop_here, received_here) = (Arc::clone(&stops[0]), Arc::clone(&received));
        let sending = move || send(&senders, &stop_here, &received_here, on_their_way_max);
        let (stop_here, received_here, count) = (Arc::clone(&stops[1]), Arc::clone(&received), flows.len());
        let receiving = move || receive(&receiver, count, &stop_here, &received_here);
        let (sender, receiver) = (std::thread::spawn(sending), std::thread::spawn(receiving));
        Load { stops, sender, receiver, received, start: Instant::now() }
    }

    /// Returns how many packets were received so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Sends no more, and waits for what is on its way.
    pub fn stop(self) -> Account {
        self.stops[0].store(true, Ordering::Relaxed);
        let (sent, took) = (self.sender.join().unwrap(), self.start.elapsed());
        let (mut seen, mut moved) = (0, Instant::now());
        while seen < sent && moved.elapsed() < LOST {
            let now = self.received.load(Ordering::Relaxed);
            if now != seen {
                (seen, moved) = (now, Instant::now());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.stops[1].store(true, Ordering::Relaxed);
        let (received, overtaken) = self.receiver.join().unwrap();
        Account { sent, received, overtaken, took }
    }
}

impl Account {
    /// Asserts that all arrived.
    pub fn check_arrived(&self, what: &str) {
        assert_eq!(self.received, self.sent, "{what}: {self:?}");
    }

    /// Asserts that all arrived in order, and says how fast it was.
    pub fn check(&self, what: &str) {
        eprintln!("{what}: {} packets, {:.0} k/s", self.sent, self.sent as f64 / self.took.as_secs_f64() / 1000.0);
        assert_eq!((self.received, self.overtaken), (self.sent, 0), "{what}: {self:?}");
    }
}

/// Returns so many flows over a chain of three, which differ in their source ports.
pub fn flows(count: u16, port: u16) -> Vec<(SocketAddr, SocketAddr)> {
    let to = SocketAddr::new(super::address(false, 1, 2), port);
    (0..count).map(|number| (SocketAddr::new(super::address(false, 0, 1), 20_000 + number), to)).collect()
}

fn send(senders: &[(UdpSocket, SocketAddr)], stop: &AtomicBool, received: &AtomicU64, on_their_way_max: u64) -> u64 {
    let (mut sent, mut moved) = (0, Instant::now());
    let mut seen = 0;
    while !stop.load(Ordering::Relaxed) {
        let now_received = received.load(Ordering::Relaxed);
        if now_received != seen {
            (seen, moved) = (now_received, Instant::now());
        }
        // Packets that are lost are not waited for in the end.
        if sent - seen >= on_their_way_max && moved.elapsed() < STUCK {
            std::thread::yield_now();
            continue;
        }
        for (flow, (socket, to)) in senders.iter().enumerate() {
            let payload = [u32::try_from(flow).unwrap(), u32::try_from(sent / senders.len() as u64).unwrap()];
            let payload: Vec<u8> = payload.iter().flat_map(|number| number.to_be_bytes()).collect();
            socket.send_to(&payload, to).unwrap();
        }
        sent += senders.len() as u64;
    }
    sent
}

fn receive(receiver: &UdpSocket, flows: usize, stop: &AtomicBool, received: &AtomicU64) -> (u64, u64) {
    let (mut next, mut overtaken, mut count) = (vec![0; flows], 0, 0);
    let (mut payload, mut last) = ([0; 64], Instant::now());
    while !stop.load(Ordering::Relaxed) || last.elapsed() < QUIET {
        let Ok((length, _)) = receiver.recv_from(&mut payload) else { continue };
        let numbers: Vec<u32> =
            payload[..length].chunks_exact(4).map(|bytes| u32::from_be_bytes(bytes.try_into().unwrap())).collect();
        let flow = usize::try_from(numbers[0]).unwrap();
        if numbers[1] < next[flow] {
            overtaken += 1;
        } else {
            next[flow] = numbers[1] + 1;
        }
        count += 1;
        last = Instant::now();
        received.store(count, Ordering::Relaxed);
    }
    (count, overtaken)
}

/// A lane on a thread of its own, which passes what comes, and may be told to stand still.
pub struct LaneThread<D> {
    state: Arc<AtomicUsize>,
    thread: JoinHandle<D>,
}

impl<D: Driver + 'static> LaneThread<D> {
    pub fn start(mut lane: D) -> LaneThread<D> {
        let state = Arc::new(AtomicUsize::new(RUNS));
        let state_here = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let mut batch = Batch::new();
            loop {
                match state_here.load(Ordering::Relaxed) {
                    ENDS => return lane,
                    STANDS => std::thread::sleep(Duration::from_millis(1)),
                    _ => {
                        lane.receive(&mut batch, Some(Duration::from_millis(20))).unwrap();
                        batch.iter().for_each(|packet| lane.finish(packet.id, Final::Pass));
                        lane.flush().unwrap();
                    }
                }
            }
        });
        LaneThread { state, thread }
    }

    /// Has the lane take no packets, or take them again.
    pub fn stand(&self, stands: bool) {
        self.state.store(if stands { STANDS } else { RUNS }, Ordering::Relaxed);
    }

    /// Returns the lane when its thread has ended.
    pub fn end(self) -> D {
        self.state.store(ENDS, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

const RUNS: usize = 0;
const STANDS: usize = 1;
const ENDS: usize = 2;
/// How long nothing arrives before the sender goes on, and before what is missing counts as lost: longer than a busy machine lets
/// a thread wait.
const STUCK: Duration = Duration::from_secs(20);
const LOST: Duration = Duration::from_secs(20);
/// How long nothing arrives before the receiver believes that nothing more will, after all that were sent.
const QUIET: Duration = Duration::from_millis(200);
