// SPDX-License-Identifier: Apache-2.0
//! The network: stations, and links that only take time. A run is a function of the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netserv_gist::{AssociationId, Channel, Config, Counter, Datagram, Disposition, InterfaceId, Transmit};
use netserv_model::route::RouteChange;
use netserv_model::{Digest, Instant, Nonce, Now, SessionId, Signature, UnixTime};
use netserv_wire::gist::UDP_PORT;
use netserv_wire::nslp::RequestBuilder;

use super::graph::{Graph, mix};
use super::station::{HOSTS, Output, ROUTER, Station, address, owner, toward};

/// The time that a link takes.
pub const DELAY: Duration = Duration::from_millis(2);
/// Queries are counted for windows of this length.
pub const WINDOW: Duration = Duration::from_millis(100);

/// What went over links, and what came of requests.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Datagrams, each once however far it goes.
    pub datagrams: u64,
    /// Messages over connections.
    pub messages: u64,
    /// Bytes of both, without the headers below.
    pub bytes: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Queries sent.
    pub queries: u64,
    /// Those of each [`WINDOW`] since the counting began.
    pub windows: Vec<u32>,
    /// Requests that the whole path answered.
    pub whole: u64,
    /// Requests that it did not.
    pub incomplete: u64,
    /// The longest time to an answer.
    pub took_max: Duration,
}

/// A session: a SETUP from one vertex to another.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    number: u64,
    /// Who asked.
    pub origin: u32,
    /// Where the path ends.
    pub destination: u32,
    /// When its lease ends.
    pub until: Instant,
}

impl Session {
    fn id(&self) -> SessionId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&mix(self.number.wrapping_mul(2).wrapping_add(1)).to_be_bytes());
        id[8..].copy_from_slice(&mix(self.number ^ (u64::MAX / 3)).to_be_bytes());
        SessionId(id)
    }
}

/// What a path that changed waits for.
struct Watch {
    since: Instant,
    missing: BTreeSet<u32>,
}

/// The network.
pub struct Net {
    /// What is linked to what.
    pub graph: Graph,
    stations: Vec<Station>,
    change: fn(&mut Config),
    run: u32,
    now: Now,
    queue: BTreeMap<(Instant, u64), Happening>,
    sequence: u64,
    connections: Vec<Connection>,
    ends: BTreeMap<(u32, AssociationId), (usize, Side)>,
    hosts_used: Vec<u32>,
    sessions_begun: u64,
    traffic: Traffic,
    counting_since: Instant,
    watched: BTreeMap<SessionId, Watch>,
    repaired: Vec<Duration>,
}

type Side = usize;

struct Connection {
    ends: [(u32, Option<AssociationId>); 2],
    delay: Duration,
    open: bool,
}

enum Happening {
    Wake(u32),
    Datagram { to: u32, from: u32, source: IpAddr, destination: IpAddr, ttl: u8, payload: Vec<u8> },
    Arrive(usize),
    Connected(usize),
    Bytes(usize, Side, Vec<u8>),
    Closed(usize, Side, Option<String>),
}

impl Net {
    /// Returns a network in which every vertex is a node; `change` changes how each is configured.
    pub fn new(graph: Graph, change: fn(&mut Config)) -> Net {
        Net::of_run(graph, 0, change)
    }

    /// Returns the same network whose nodes draw other random numbers, as those of every run do.
    pub fn of_run(graph: Graph, run: u32, change: fn(&mut Config)) -> Net {
        let stations: Vec<Station> = (0..graph.size()).map(|vertex| Station::new(vertex, 0, run, change)).collect();
        Net {
            run,
            hosts_used: vec![ROUTER; stations.len()],
            graph,
            stations,
            change,
            now: Now { instant: Instant::from_millis(1000), wall: UnixTime::from_secs(1_795_226_400) },
            queue: BTreeMap::new(),
            sequence: 0,
            connections: Vec::new(),
            ends: BTreeMap::new(),
            sessions_begun: 0,
            traffic: Traffic::default(),
            counting_since: Instant::from_millis(1000),
            watched: BTreeMap::new(),
            repaired: Vec::new(),
        }
    }

    /// Returns the time.
    pub fn now(&self) -> Instant {
        self.now.instant
    }

    /// Asks for a module on all nodes of a path, of which each session has a flow of its own as long as there are addresses.
    pub fn begin(&mut self, origin: u32, destination: u32, lease: Duration) -> Session {
        let number = self.sessions_begun;
        self.sessions_begun += 1;
        let used = &mut self.hosts_used[origin as usize];
        *used = if *used + 1 < HOSTS { *used + 1 } else { ROUTER + 1 };
        let (from, to) = (address(origin, *used), address(destination, ROUTER));
        let session = Session { number, origin, destination, until: self.now.instant + lease };
        let text = self.setup(number, lease);
        self.stations[origin as usize].ask(self.now, session.id(), text, from, to);
        self.drain(origin);
        session
    }

    /// A SETUP as long as those of the command line, but for the signature, which nobody checks here.
    fn setup(&self, number: u64, lease: Duration) -> String {
        let module = "example.org/net-monitor@1.2.0".parse().expect("a good reference");
        let url = "https://packages.example.org/net-monitor-1.2.0.nsm";
        let filter = "udp dst 10.2.0.0/16 port 5060".parse().expect("a good filter");
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&mix(number).to_be_bytes());
        nonce[8..].copy_from_slice(&number.to_be_bytes());
        let builder = RequestBuilder::setup(&module, url, Digest([4; 32]), lease).filter(&filter);
        let unsigned = builder.user(&"janedoe".parse().expect("a good name")).build(self.now.wall, Nonce(nonce));
        let signature = Signature([0x6e; 64]);
        unsigned.and_then(|unsigned| unsigned.with_signature(signature)).expect("a good request").as_str().to_owned()
    }

    /// Lets a time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now.instant + time;
        while self.step(end) {}
        self.now = self.now + end.since(self.now.instant);
    }

    /// Lets time pass until all watched paths are repaired, `time_max` at the longest.
    pub fn run_until_repaired(&mut self, time_max: Duration) {
        let end = self.now.instant + time_max;
        while !self.watched.is_empty() && self.step(end) {}
    }

    /// Begins to count anew.
    pub fn count_from_here(&mut self) {
        self.traffic = Traffic::default();
        self.counting_since = self.now.instant;
    }

    /// Returns what was counted.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Returns the rows that nodes query for, so those whose Queries refresh them.
    pub fn rows(&self) -> usize {
        self.stations.iter().map(|station| station.engine.state_counts().querying).sum()
    }

    /// Returns the leases of all nodes.
    pub fn leases(&self) -> usize {
        self.stations.iter().map(|station| station.nslp.state_counts().leases).sum()
    }

    /// Returns the connections of all nodes, each counted once.
    pub fn associations(&self) -> usize {
        self.stations.iter().map(|station| station.engine.state_counts().associations).sum::<usize>() / 2
    }

    /// Returns the leases of the node that has most.
    pub fn leases_max(&self) -> usize {
        self.stations.iter().map(|station| station.nslp.state_counts().leases).max().unwrap_or(0)
    }

    /// Returns something that nodes count, summed over all.
    pub fn sum(&self, counter: Counter) -> u64 {
        self.stations.iter().map(|station| station.count(counter)).sum()
    }

    /// Has routes avoid a link or use it again. Nodes that send packets elsewhere hear of it. Of paths that moved, it is watched
    /// when all nodes that are new on them have the SETUP; returns how many moved.
    pub fn move_routes(&mut self, link: (u32, u32), avoid: bool, sessions: &[Session]) -> usize {
        let ends: BTreeSet<(u32, u32)> = sessions.iter().map(|session| (session.origin, session.destination)).collect();
        let before: BTreeMap<(u32, u32), Vec<u32>> =
            ends.into_iter().map(|(from, to)| ((from, to), self.graph.path(from, to))).collect();
        let changed = self.graph.avoid(link, avoid);
        let (mut moved, now) = (0, self.now.instant);
        for session in sessions.iter().filter(|session| session.until > now) {
            let ends = (session.origin, session.destination);
            let path = self.graph.path(ends.0, ends.1);
            if path == before[&ends] {
                continue;
            }
            moved += 1;
            let missing = path.into_iter().filter(|vertex| !before[&ends].contains(vertex)).collect();
            self.watch(session, missing);
        }
        for (vertex, destinations) in changed {
            // One message of the kernel for each prefix.
            let mut change = RouteChange::Toward(Vec::new());
            destinations.into_iter().for_each(|to| change.add(toward(to)));
            self.stations[vertex as usize].nslp.handle_routes(self.now, change);
            self.drain(vertex);
        }
        moved
    }

    /// Has a node lose its state. Of paths across it, it is watched when it has the SETUP again; returns how many there are.
    pub fn restart(&mut self, vertex: u32, sessions: &[Session]) -> usize {
        let (mut crossing, now) = (0, self.now.instant);
        for session in sessions.iter().filter(|session| session.until > now && session.origin != vertex) {
            if self.graph.path(session.origin, session.destination).contains(&vertex) {
                crossing += 1;
                self.watch(session, BTreeSet::from([vertex]));
            }
        }
        let restarts = self.stations[vertex as usize].restarts + 1;
        self.stations[vertex as usize] = Station::new(vertex, restarts, self.run, self.change);
        for number in 0..self.connections.len() {
            let connection = &mut self.connections[number];
            let Some(side) = connection.ends.iter().position(|end| end.0 == vertex).filter(|_| connection.open) else {
                continue;
            };
            connection.open = false;
            let delay = connection.delay;
            for (vertex, association) in connection.ends {
                self.ends.remove(&(vertex, association.unwrap_or(AssociationId(0))));
            }
            self.schedule(delay, Happening::Closed(number, 1 - side, Some("reset".to_owned())));
        }
        crossing
    }

    /// Returns how long the watched paths took to be repaired, and how many were not; watches none any more.
    pub fn take_repaired(&mut self) -> (Vec<Duration>, usize) {
        let left = std::mem::take(&mut self.watched).len();
        (std::mem::take(&mut self.repaired), left)
    }

    fn watch(&mut self, session: &Session, missing: BTreeSet<u32>) {
        let since = self.now.instant;
        if missing.is_empty() {
            self.repaired.push(Duration::ZERO);
        } else {
            self.watched.insert(session.id(), Watch { since, missing });
        }
    }

    /// Does the next thing that is due by `end`; returns whether there was one.
    fn step(&mut self, end: Instant) -> bool {
        let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= end) else { return false };
        let ((due, _), happening) = entry.remove_entry();
        self.now = self.now + due.since(self.now.instant);
        self.happen(happening);
        true
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Wake(vertex) => {
                let now = self.now;
                let station = &mut self.stations[vertex as usize];
                if station.armed == Some(now.instant) {
                    station.armed = None;
                    station.handle_timeout(now);
                    self.drain(vertex);
                }
            }
            Happening::Datagram { to, from, source, destination, ttl, payload } => {
                self.datagram(to, from, source, destination, ttl, payload);
            }
            Happening::Arrive(number) => self.arrive(number),
            Happening::Connected(number) => {
                let connection = &self.connections[number];
                if let (true, (vertex, Some(association))) = (connection.open, connection.ends[0]) {
                    self.stations[vertex as usize].engine.handle_connected(
                        self.now.instant,
                        association,
                        Channel::Plain,
                    );
                    self.drain(vertex);
                }
            }
            Happening::Bytes(number, side, bytes) => {
                let Connection { open, ends, .. } = self.connections[number];
                if let (true, (vertex, Some(association))) = (open, ends[1 - side]) {
                    self.stations[vertex as usize].engine.handle_written(self.now.instant, association, bytes.len());
                    self.drain(vertex);
                }
                if let (true, (vertex, Some(association))) = (open, ends[side]) {
                    self.stations[vertex as usize].engine.handle_stream(self.now.instant, association, &bytes);
                    self.drain(vertex);
                }
            }
            Happening::Closed(number, side, error) => {
                self.connections[number].open = false;
                if let (vertex, Some(association)) = self.connections[number].ends[side] {
                    self.ends.remove(&(vertex, association));
                    self.stations[vertex as usize].engine.handle_closed(self.now.instant, association, error);
                    self.drain(vertex);
                }
            }
        }
    }

    fn datagram(&mut self, to: u32, from: u32, source: IpAddr, destination: IpAddr, ttl: u8, payload: Vec<u8>) {
        let station = &mut self.stations[to as usize];
        let rx = Datagram {
            interface: InterfaceId(from + 1),
            local: station.address,
            source: SocketAddr::new(source, UDP_PORT),
            destination,
            destination_is_local: owner(destination) == to,
            ttl,
            q_mode_interceptable: true,
            payload: &payload,
        };
        let disposition = station.engine.handle_datagram(self.now.instant, rx);
        self.drain(to);
        if let Disposition::Forward { payload: changed } = disposition {
            self.forward(to, source, destination, ttl.saturating_sub(1), changed.unwrap_or(payload));
        }
    }

    fn arrive(&mut self, number: usize) {
        let [(from, _), (to, _)] = self.connections[number].ends;
        if !self.connections[number].open {
            return;
        }
        let station = &mut self.stations[to as usize];
        let peer = SocketAddr::new(address(from, ROUTER), 40_000);
        let accepted = station.engine.handle_accepted(self.now.instant, station.address, peer, Channel::Plain);
        self.connections[number].ends[1].1 = Some(accepted);
        self.ends.insert((to, accepted), (number, 1));
        let delay = self.connections[number].delay;
        self.schedule(delay, Happening::Connected(number));
        self.drain(to);
    }

    /// Takes what comes out of a station, and arms its timer.
    fn drain(&mut self, vertex: u32) {
        let now = self.now;
        while let Some(output) = self.stations[vertex as usize].poll_output(now) {
            match output {
                Output::Send(transmit) => self.transmit(vertex, transmit),
                Output::Asked(session) => self.asked(vertex, session),
                Output::Answered { whole, took } => {
                    *(if whole { &mut self.traffic.whole } else { &mut self.traffic.incomplete }) += 1;
                    self.traffic.took_max = self.traffic.took_max.max(took);
                }
            }
        }
        let station = &mut self.stations[vertex as usize];
        let Some(due) = station.poll_timeout() else { return };
        if station.armed.is_none_or(|armed| due < armed) {
            let due = due.max(now.instant);
            station.armed = Some(due);
            self.schedule(due.since(now.instant), Happening::Wake(vertex));
        }
    }

    fn asked(&mut self, vertex: u32, session: SessionId) {
        let Some(watch) = self.watched.get_mut(&session) else { return };
        watch.missing.remove(&vertex);
        if watch.missing.is_empty() {
            self.repaired.push(self.now.instant.since(watch.since));
            self.watched.remove(&session);
        }
    }

    fn transmit(&mut self, from: u32, transmit: Transmit) {
        match transmit {
            Transmit::QMode { local, destination, ttl, payload, .. } => {
                self.count_query();
                self.count_datagram(payload.len());
                self.forward(from, local, destination, ttl.unwrap_or(TTL), payload);
            }
            Transmit::Datagram { local, peer, payload, .. } => {
                self.count_datagram(payload.len());
                let to = owner(peer.ip());
                let hops = self.graph.distance(from, to);
                let ttl = TTL.saturating_sub(u8::try_from(hops).unwrap_or(u8::MAX));
                let destination = peer.ip();
                let arrives = Happening::Datagram { to, from, source: local, destination, ttl, payload };
                self.schedule(DELAY * hops, arrives);
            }
            Transmit::Connect { association, peer, .. } => {
                self.traffic.connections += 1;
                let to = owner(peer.ip());
                let delay = DELAY * self.graph.distance(from, to);
                let number = self.connections.len();
                self.connections.push(Connection { ends: [(from, Some(association)), (to, None)], delay, open: true });
                self.ends.insert((from, association), (number, 0));
                self.schedule(delay, Happening::Arrive(number));
            }
            Transmit::Stream { association, bytes } => {
                let Some((number, side)) = self.ends.get(&(from, association)).copied() else { return };
                self.traffic.messages += 1;
                self.traffic.bytes += u64::try_from(bytes.len()).unwrap_or(0);
                self.schedule(self.connections[number].delay, Happening::Bytes(number, 1 - side, bytes));
            }
            Transmit::Close { association } => {
                let Some((number, side)) = self.ends.remove(&(from, association)) else { return };
                self.schedule(self.connections[number].delay, Happening::Closed(number, 1 - side, None));
            }
        }
    }

    /// Sends a datagram one hop further toward where it goes.
    fn forward(&mut self, from: u32, source: IpAddr, destination: IpAddr, ttl: u8, payload: Vec<u8>) {
        let Some(to) = self.graph.next(from, owner(destination)) else { return };
        let ttl = ttl.saturating_sub(1);
        self.schedule(DELAY, Happening::Datagram { to, from, source, destination, ttl, payload });
    }

    fn count_query(&mut self) {
        self.traffic.queries += 1;
        let since = self.now.instant.since(self.counting_since);
        let window = usize::try_from(since.as_nanos() / WINDOW.as_nanos()).unwrap_or(0);
        if self.traffic.windows.len() <= window {
            self.traffic.windows.resize(window + 1, 0);
        }
        self.traffic.windows[window] += 1;
    }

    fn count_datagram(&mut self, bytes: usize) {
        self.traffic.datagrams += 1;
        self.traffic.bytes += u64::try_from(bytes).unwrap_or(0);
    }

    fn schedule(&mut self, after: Duration, happening: Happening) {
        self.queue.insert((self.now.instant + after, self.sequence), happening);
        self.sequence += 1;
    }
}

const TTL: u8 = 64;
