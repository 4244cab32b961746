// SPDX-License-Identifier: Apache-2.0
//! What the tests of `afxdp` share, over one lane or several.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use netserv_patience::grown;
use netserv_plane::{Batch, Driver, DriverConfig, DriverError, Final};
use netserv_plane_afxdp as afxdp;
use netserv_plane_afxdp::AttachMode;
use netserv_wire::ip::IpView;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketType, sockopt};

pub(crate) use crate::common::contract::{Flow, RECEIVER, ROUTER, SENDER, for_each_packet};
use crate::common::lanes::{InLanes, Lanes};
use crate::common::{Chain, contract};

/// All lanes of the driver.
pub(crate) type Afxdp = Lanes<afxdp::Afxdp>;

impl InLanes for afxdp::Afxdp {
    fn open_lanes(config: &DriverConfig, lanes: usize) -> Result<Vec<afxdp::Afxdp>, DriverError> {
        afxdp::Afxdp::open_lanes(config, lanes)
    }
}

impl Afxdp {
    pub(crate) fn frames(&self) -> (usize, usize) {
        let frames = self.lanes.iter().map(afxdp::Afxdp::frames);
        frames.fold((0, 0), |(all, known), (frames, known_here)| (all + frames, known + known_here))
    }

    pub(crate) fn handed_over(&self) -> u64 {
        self.lanes.iter().map(afxdp::Afxdp::handed_over).sum()
    }

    pub(crate) fn sockets(&self) -> usize {
        self.lanes.iter().map(afxdp::Afxdp::sockets).sum()
    }

    pub(crate) fn tuples(&self) -> usize {
        self.lanes[0].tuples()
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.lanes[0].is_settled()
    }

    pub(crate) fn modes(&self) -> impl Iterator<Item = (u32, AttachMode)> {
        self.lanes[0].modes()
    }

    pub(crate) fn time(&self, frame: &[u8], device: u32, runs: u32) -> Result<Duration, DriverError> {
        self.lanes[0].time(frame, device, runs)
    }

    pub(crate) fn classify(&self, frame: &[u8], device: u32) -> Result<bool, DriverError> {
        self.lanes[0].classify(frame, device)
    }
}

/// Returns the configuration of a driver whose packets wait for it: on a busy machine one that tests hold up for a second would
/// be taken for dead.
pub(crate) fn config(instance: &str) -> DriverConfig {
    DriverConfig { fail_open: false, ..DriverConfig::new(instance) }
}

/// Returns that of one whose packets pass while it does not look for any.
pub(crate) fn failing_open(instance: &str) -> DriverConfig {
    DriverConfig { fail_open: true, ..config(instance) }
}

pub(crate) fn open(instance: &str, filters: &[&str]) -> Afxdp {
    open_with(&config(instance), filters)
}

pub(crate) fn open_with(config: &DriverConfig, filters: &[&str]) -> Afxdp {
    contract::with_filters(Afxdp::open(config).unwrap(), filters)
}

/// Lets a driver that gets no packets hear of changes.
pub(crate) fn idle(driver: &mut Afxdp) {
    assert_eq!(driver.receive(&mut Batch::new(), Some(Duration::from_millis(20))).unwrap(), 0);
}

/// Waits until what filters left behind is out of the kernel's maps.
pub(crate) fn settle(driver: &Afxdp) {
    let start = Instant::now();
    while !driver.is_settled() {
        assert!(start.elapsed() < Duration::from_secs(60), "{} tuples are left", driver.tuples());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Passes packets until so many came, or none comes for a while; returns how many there were.
pub(crate) fn pass(driver: &mut Afxdp, count: usize) -> usize {
    let (mut batch, mut passed, mut last) = (Batch::new(), 0, Instant::now());
    // It also comes back with nothing when devices change.
    while passed < count && last.elapsed() < grown(Duration::from_secs(1)) {
        if driver.receive(&mut batch, Some(Duration::from_millis(500))).unwrap() > 0 {
            batch.iter().for_each(|packet| driver.finish(packet.id, Final::Pass));
            (passed, last) = (passed + batch.len(), Instant::now());
            driver.flush().unwrap();
        }
    }
    passed
}

/// Sees the packets that come to a namespace.
pub(crate) struct Tap(OwnedFd);

impl Tap {
    pub(crate) fn new(chain: &Chain, node: usize) -> Tap {
        let _entered = chain.enter(node);
        let all = Protocol::from_raw(u32::from(ETH_P_ALL.to_be()).try_into().unwrap());
        let socket = rustix::net::socket(AddressFamily::PACKET, SocketType::DGRAM, Some(all)).unwrap();
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(grown(Duration::from_secs(2)))).unwrap();
        Tap(socket)
    }

    /// Waits for a packet of which something can be said.
    pub(crate) fn find<T>(&self, mut say: impl FnMut(&IpView<'_>) -> Option<T>) -> T {
        let mut buffer = [0; 2048];
        loop {
            let (length, _) = rustix::net::recv(&self.0, &mut buffer, RecvFlags::empty()).expect("the packet comes");
            if let Some(said) = IpView::parse(&buffer[..length]).ok().and_then(|view| say(&view)) {
                return said;
            }
        }
    }
}

const ETH_P_ALL: u16 = 3;

/// Returns a counter of a namespace's protocols.
pub(crate) fn snmp(chain: &Chain, node: usize, protocol: &str, name: &str) -> u64 {
    let text = chain.run(node, &["cat", "/proc/net/snmp"]);
    let mut lines = text.lines().filter(|line| line.starts_with(&format!("{protocol}:")));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let at = names.split(' ').position(|one| one == name).unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

/// Returns a counter of a namespace's IPv6.
pub(crate) fn snmp6(chain: &Chain, node: usize, name: &str) -> u64 {
    let text = chain.run(node, &["cat", "/proc/net/snmp6"]);
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
