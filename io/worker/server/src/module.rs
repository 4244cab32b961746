// SPDX-License-Identifier: Apache-2.0
//! What the packet thread and the server thread share of one module.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use netserv_model::ModuleRef;
use netserv_model::effect::ModuleSlot;
use netserv_model::filter::{Filter, Flow};
use netserv_model::manifest::ModuleLimits;
use netserv_model::node_info::NodeInfo;
use netserv_model::request::ServerCounts;
use netserv_wire::container::frames::{LogLevel, ServerLoad};
use netserv_worker_base::clock;
use netserv_worker_base::compute::{Budget, Reserved};
use netserv_worker_base::error::HostError;
use netserv_worker_base::limits::{COMPRESS_MEMORY_BYTES_MAX, PATTERNS_MEMORY_BYTES_MAX};
use netserv_worker_base::shared::channel::Channel;
use netserv_worker_base::shared::control::ControlPort;
use netserv_worker_base::shared::counters::Counters;
use netserv_worker_base::shared::kv::SharedKv;
use netserv_worker_base::shared::log::{Line, LogBuffer};
use netserv_worker_base::shared::messages::Exchange;
use netserv_worker_base::storage::cache::{CacheHandle, CacheSource};
use netserv_worker_base::storage::limits::CACHE_TEST_BYTES;
use netserv_worker_base::wakeup::Wakeup;
use tokio::sync::Semaphore;

use crate::connect::SlowAddresses;
use crate::connect_to::ConnectTo;
use crate::hits::Hits;
use crate::http::kept::Kept;
use crate::http::patience::Patience;
use crate::limits;
use crate::waiting;

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// One module with a server part, as both threads see it.
#[derive(Debug)]
pub struct Module {
    /// Its place.
    pub slot: ModuleSlot,
    /// Its name and version.
    pub name: ModuleRef,
    /// What it can read.
    pub properties: BTreeMap<String, String>,
    /// What it may use.
    pub limits: ModuleLimits,
    /// The building blocks that it may use.
    pub blocks: BTreeSet<String>,
    /// Its kv state, which its packet part has too.
    pub kv: SharedKv,
    /// Its messages from and to its packet part.
    pub messages: Arc<Exchange>,
    /// What it publishes, and its instances read.
    pub channel: Arc<Channel>,
    /// What it is told, and tells the requester of its SETUP.
    pub control: Arc<ControlPort>,
    /// What it is told of its node.
    pub node: Arc<NodeInfo>,
    /// Its share of the cache.
    pub cache: Arc<CacheHandle>,
    /// The counters of its server part.
    pub counters: Mutex<Counters>,
    /// What the compressors and decompressors of its instances may take.
    pub coder_memory: Budget,
    /// What the sets of patterns of its instances may take.
    pub pattern_memory: Budget,
    /// What the HTTP messages of its instances may take.
    pub message_memory: Budget,
    /// As many permits as it may have further sockets for datagrams.
    pub udp_sockets: Arc<Semaphore>,
    /// What the buffers of requests may take that are sent on.
    pub upload_memory: Budget,
    /// Where the memory of responses comes from that the node pumps by itself.
    pub held_memory: Budget,
    /// How many of those there may be.
    pub held_places: Budget,
    /// Those of them that may have much on their way.
    pub held_wide: Budget,
    /// How long it waits for clients that take nothing of those.
    pub patience: Arc<Patience>,
    /// How many of its instances may wait for others for long.
    pub long_waits: Budget,
    /// Where its connections to servers go instead of where their names are.
    pub connect_to: ConnectTo,
    /// Connections to servers for its next requests.
    pub kept: Arc<Kept>,
    /// Addresses of servers that are tried last.
    pub slow_addresses: SlowAddresses,
    /// What the node answers again without an instance.
    pub hits: Hits,
    /// What its server part did.
    pub counts: Counts,
    network: RwLock<Network>,
    log: Mutex<LogBuffer>,
    wake: Arc<Wakeup>,
}

impl Module {
    /// Returns a module that has done nothing. Lines of its log raise `wake`.
    pub fn new(profile: Profile, shared: Shared, wake: Arc<Wakeup>) -> Module {
        let Profile { slot, name, properties, limits, blocks, network } = profile;
        let patience = Arc::new(Patience::new(&properties));
        let connect_to = ConnectTo::new(&properties);
        Module {
            slot,
            name,
            properties,
            limits,
            blocks,
            kv: shared.kv,
            messages: shared.messages,
            channel: shared.channel,
            control: shared.control,
            node: shared.node,
            cache: shared.cache,
            counters: Mutex::default(),
            coder_memory: shared.coder_memory.0,
            pattern_memory: Budget::new(PATTERNS_MEMORY_BYTES_MAX),
            message_memory: Budget::new(limits::MESSAGES_MEMORY_BYTES_MAX),
            udp_sockets: Arc::new(Semaphore::new(limits::UDP_SOCKETS_MAX)),
            held_memory: Budget::new(limits::HELD_MEMORY_BYTES_MAX),
            upload_memory: Budget::new(limits::UPLOADS_MEMORY_BYTES_MAX),
            held_places: Budget::new(limits::HELD_RESPONSES_MAX),
            held_wide: Budget::new(limits::HELD_WIDE_MAX),
            patience,
            long_waits: Budget::new(waiting::most(&limits)),
            connect_to,
            kept: Arc::default(),
            slow_addresses: SlowAddresses::default(),
            hits: Hits::new(&shared.hit_memory.0),
            counts: Counts::default(),
            network: RwLock::new(Network { load: network, listen_permitted: None }),
            log: Mutex::new(LogBuffer::new(clock::monotonic())),
            wake,
        }
    }

    /// Writes a line to the module's log; one too many is counted and left out.
    pub fn log(&self, level: LogLevel, text: &[u8]) {
        let mut log = self.lock_log();
        let first = log.is_empty();
        let taken = log.push(clock::monotonic(), level, text);
        drop(log);
        if taken.is_ok() && first {
            self.wake.raise();
        }
    }

    /// Returns the log's lines that nobody has taken yet.
    pub fn take_log(&self) -> Vec<Line> {
        self.lock_log().take()
    }

    /// Returns the last lines of the log, with how many were left out.
    pub fn take_last_log(&self) -> Vec<Line> {
        let mut log = self.lock_log();
        log.note_left_out();
        log.take()
    }

    /// Returns a place for a response that the node pumps by itself. While few are left, one whose client takes nothing gives way.
    ///
    /// # Errors
    /// There is none.
    pub fn reserve_held_place(&self) -> Result<Reserved, HostError> {
        if self.held_places.left() < limits::HELD_RESPONSES_MAX / limits::HELD_CROWDED_SHARE {
            self.patience.give_way();
        }
        self.held_places.reserve(1)
    }

    /// Returns whether the module may use a building block.
    pub fn has_block(&self, name: &str) -> bool {
        self.blocks.contains(name)
    }

    /// Returns the counters, which nobody else uses meanwhile.
    pub fn lock_counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the module's place in the network, as it is for the moment.
    pub fn network(&self) -> ServerLoad {
        self.read_network().load.clone()
    }

    /// Takes note of what the user's modules may do in the network from here on.
    pub fn permit(&self, connect: &[Filter], listen: &[Filter]) {
        let mut network = self.network.write().unwrap_or_else(PoisonError::into_inner);
        network.load.connect = connect.to_vec();
        network.listen_permitted = Some(listen.to_vec());
        drop(network);
        self.kept.clear();
    }

    /// Returns whether the module may open a connection, or send datagrams, to `remote`.
    pub fn may_connect(&self, transport: Transport, remote: SocketAddr) -> bool {
        let network = &self.read_network().load;
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        let own = network.addresses.iter().copied().find(|own| own.is_ipv4() == remote.is_ipv4());
        let flow = flow(transport, own.unwrap_or(unspecified(remote.ip())), None, remote);
        network.connect.iter().any(|filter| filter.matches(&flow))
    }

    /// Returns whether the module may take connections, or datagrams, at `local`, its own address or all of them.
    pub fn may_listen(&self, transport: Transport, local: SocketAddr) -> bool {
        let network = self.read_network();
        let (ip, port) = (local.ip().to_canonical(), local.port());
        let own = ip.is_unspecified() || network.load.addresses.contains(&ip);
        let named = |filters: &[Filter]| {
            let of = |filter: &&Filter| filter.protocol().matches(transport.number());
            filters.iter().filter(of).any(|filter| filter.destination_ports().is_none_or(|ports| ports.contains(port)))
        };
        own && named(&network.load.listen) && network.listen_permitted.as_deref().is_none_or(named)
    }

    /// Returns whether the module takes datagrams at any port.
    pub fn listens_to_datagrams(&self) -> bool {
        self.read_network().load.listen.iter().any(|filter| filter.protocol().matches(Transport::Udp.number()))
    }

    fn read_network(&self) -> RwLockReadGuard<'_, Network> {
        self.network.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_log(&self) -> MutexGuard<'_, LogBuffer> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport {
    fn number(self) -> u8 {
        match self {
            Transport::Tcp => 6,
            Transport::Udp => 17,
        }
    }
}

/// What all parts of a module have together. The versions of it that follow each other share all of it but what they are told.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// Kv state.
    pub kv: SharedKv,
    /// Messages between the parts.
    pub messages: Arc<Exchange>,
    /// What the parts publish, and server parts read.
    pub channel: Arc<Channel>,
    /// What this version is told, and tells.
    pub control: Arc<ControlPort>,
    /// The module's share of the cache.
    pub cache: Arc<CacheHandle>,
    /// What this version is told of its node.
    pub node: Arc<NodeInfo>,
    /// What all coders of the container may take.
    pub coder_memory: CoderMemory,
    /// What all answers of the container may take that the node gives again.
    pub hit_memory: HitMemory,
}

/// What all coders of a container's server modules may take of its memory.
#[derive(Clone, Debug)]
pub struct CoderMemory(pub Budget);

impl CoderMemory {
    /// Returns that of a container of `memory_bytes`.
    pub fn of(memory_bytes: u64) -> CoderMemory {
        let share = usize::try_from(memory_bytes / limits::COMPRESS_MEMORY_SHARE).unwrap_or(usize::MAX);
        CoderMemory(Budget::new(share.min(COMPRESS_MEMORY_BYTES_MAX)))
    }
}

impl Default for CoderMemory {
    fn default() -> CoderMemory {
        CoderMemory::of(u64::MAX)
    }
}

/// What all answers that the node gives again may take of a container's memory.
#[derive(Clone, Debug)]
pub struct HitMemory(pub Budget);

impl HitMemory {
    /// Returns that of a container of `memory_bytes`.
    pub fn of(memory_bytes: u64) -> HitMemory {
        let share = usize::try_from(memory_bytes / limits::HTTP_HITS_MEMORY_SHARE).unwrap_or(usize::MAX);
        HitMemory(Budget::new(share.min(limits::HTTP_HITS_MEMORY_BYTES_MAX)))
    }
}

impl Default for HitMemory {
    fn default() -> HitMemory {
        HitMemory::of(u64::MAX)
    }
}

impl Shared {
    /// Returns what a module under test has: empty state, no other part, a cache in memory.
    pub fn for_tests(module: &ModuleRef) -> Shared {
        let cache = CacheHandle::new(&CacheSource::in_memory(CACHE_TEST_BYTES), &module.name);
        Shared { cache: Arc::new(cache), ..Shared::default() }
    }
}

/// A module's place in the network.
#[derive(Debug)]
struct Network {
    load: ServerLoad,
    /// What the user may listen to, once that was said anew.
    listen_permitted: Option<Vec<Filter>>,
}

/// What a module is told of itself.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its place.
    pub slot: ModuleSlot,
    /// Its name and version.
    pub name: ModuleRef,
    /// What it can read.
    pub properties: BTreeMap<String, String>,
    /// What it may use.
    pub limits: ModuleLimits,
    /// The building blocks that it may use.
    pub blocks: BTreeSet<String>,
    /// Where it takes and opens connections.
    pub network: ServerLoad,
}

/// What a server part counts. Each field is as in [`ServerCounts`].
#[derive(Debug, Default)]
pub struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    errors: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Counts {
    /// Counts a connection.
    pub fn connection(&self) {
        add(&self.connections, 1);
    }

    /// Counts a request.
    pub fn request(&self) {
        add(&self.requests, 1);
    }

    /// Counts a connection or a request that was turned away because of a bound.
    pub fn refused(&self) {
        add(&self.refused, 1);
    }

    /// Counts a request or a connection that ended with a trap, a time-out or an error of the module's.
    pub fn failed(&self) {
        add(&self.failed, 1);
    }

    /// Counts an HTTP response that says that the server failed.
    pub fn error(&self) {
        add(&self.errors, 1);
    }

    /// Counts bytes that came in.
    pub fn bytes_in(&self, bytes: usize) {
        add(&self.bytes_in, bytes as u64);
    }

    /// Counts bytes that went out.
    pub fn bytes_out(&self, bytes: usize) {
        add(&self.bytes_out, bytes as u64);
    }

    /// Returns all of it.
    pub fn all(&self) -> ServerCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ServerCounts {
            connections: of(&self.connections),
            requests: of(&self.requests),
            refused: of(&self.refused),
            failed: of(&self.failed),
            errors: of(&self.errors),
            bytes_in: of(&self.bytes_in),
            bytes_out: of(&self.bytes_out),
        }
    }
}

fn add(count: &AtomicU64, amount: u64) {
    count.fetch_add(amount, Ordering::Relaxed);
}

/// Returns the flow of a connection, or of a datagram.
pub(super) fn flow(transport: Transport, source: IpAddr, source_port: Option<u16>, remote: SocketAddr) -> Flow {
    Flow {
        protocol: transport.number(),
        source,
        destination: remote.ip(),
        source_port,
        destination_port: Some(remote.port()),
        opens: transport == Transport::Tcp,
    }
}

fn unspecified(like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_opened_only_as_permitted() {
        let module = module(&[], &["tcp dst 192.0.2.0/24 port 443", "udp port 53", "tcp dst 2001:db8::/32"]);
        for (transport, remote, permitted) in [
            (Transport::Tcp, "192.0.2.7:443", true),
            (Transport::Tcp, "192.0.2.7:80", false),
            (Transport::Udp, "192.0.2.7:443", false),
            (Transport::Udp, "198.51.100.1:53", true),
            (Transport::Tcp, "198.51.100.1:443", false),
            (Transport::Tcp, "[2001:db8::1]:1", true),
            (Transport::Tcp, "[::ffff:192.0.2.7]:443", true),
            (Transport::Tcp, "[::1]:443", false),
        ] {
            assert_eq!(module.may_connect(transport, remote.parse().unwrap()), permitted, "{remote}");
        }
        module.permit(&[], &[]);
        assert!(!module.may_connect(Transport::Udp, "198.51.100.1:53".parse().unwrap()));
    }

    #[test]
    fn ports_are_taken_only_at_own_addresses_and_as_published() {
        let module = module(&["tcp port 80", "udp port 5060-5062"], &[]);
        for (transport, local, permitted) in [
            (Transport::Tcp, "10.0.0.1:80", true),
            (Transport::Tcp, "0.0.0.0:80", true),
            (Transport::Tcp, "[::]:80", true),
            (Transport::Tcp, "10.0.0.2:80", false),
            (Transport::Tcp, "10.0.0.1:81", false),
            (Transport::Udp, "10.0.0.1:80", false),
            (Transport::Udp, "10.0.0.1:5062", true),
            (Transport::Udp, "10.0.0.1:5063", false),
        ] {
            assert_eq!(module.may_listen(transport, local.parse().unwrap()), permitted, "{local}");
        }
        module.permit(&[], &["tcp port 1-100".parse().unwrap()]);
        assert!(module.may_listen(Transport::Tcp, "10.0.0.1:80".parse().unwrap()));
        assert!(!module.may_listen(Transport::Udp, "10.0.0.1:5062".parse().unwrap()));
    }

    #[test]
    fn a_line_of_the_log_wakes_the_packet_thread() {
        let module = module(&[], &[]);
        module.log(LogLevel::Info, b"one");
        module.log(LogLevel::Warn, b"two\n");
        assert_eq!(module.take_log().len(), 2);
        assert!(module.take_log().is_empty());
    }

    fn module(listen: &[&str], connect: &[&str]) -> Module {
        let filters = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let network = ServerLoad {
            listen: filters(listen),
            connect: filters(connect),
            addresses: vec!["10.0.0.1".parse().unwrap()],
            ..ServerLoad::default()
        };
        let profile = Profile {
            slot: ModuleSlot(0),
            name: "example.org/a@1.0.0".parse().unwrap(),
            properties: BTreeMap::new(),
            limits: ModuleLimits::default(),
            blocks: BTreeSet::new(),
            network,
        };
        Module::new(profile, Shared::default(), Arc::new(Wakeup::new().unwrap()))
    }
}
