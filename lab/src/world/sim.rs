// SPDX-License-Identifier: Apache-2.0
//! The world itself: the queue of what happens when, the stations, what is asked of them and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use netserv_gist::{ApiCall, AssociationId, Engine};
use netserv_model::effect::RequestId;
use netserv_model::request::NodeReport;
use netserv_model::{Digest, Instant, Nonce, Now, Refusal, SessionId, UnixTime};
use netserv_nslp::{LocalId, LocalPath, LocalRequest, Nslp};
use netserv_wire::gist::{Direction, Mri};
use netserv_wire::nslp::RequestBuilder;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::net::Packet;
use super::station::{Controller, Station};
use super::tcp::{Connection, ConnectionId, Segment, Side};
use super::topology::{Kind, LinkId, Topology, VertexId};
use super::trace::Trace;

/// The NSLPID of NetServ in the world, for private use (RFC 5971 §9).
const NSLP_ID: u16 = 32_704;
/// The Router Alert Option's value for it, experimental (RFC 5350).
const RAO: u16 = 65_503;
/// Events at one instant, after which the world is taken for stuck.
const EVENTS_PER_INSTANT_MAX: u32 = 100_000;

/// How a world runs.
#[derive(Clone, Copy)]
pub struct Settings {
    /// Changes the GIST configuration of every station.
    pub gist: fn(&mut netserv_gist::Config),
    /// Changes the NSLP configuration of every station.
    pub nslp: fn(&mut netserv_nslp::Config),
    /// Controllers answer within this time, by chance.
    pub controller_time_max: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { gist: |_| {}, nslp: |_| {}, controller_time_max: Duration::from_millis(40) }
    }
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The link loses every packet, and connections over it break a while later.
    LinkDown(LinkId),
    /// The link works again.
    LinkUp(LinkId),
    /// Every connection of the vertex breaks, with what is on its way.
    BreakConnections(VertexId),
    /// The vertex loses its state and starts anew.
    Restart(VertexId),
}

/// What came back for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The session that the request was in.
    pub session: SessionId,
    /// The response stack.
    pub nodes: Vec<NodeReport>,
    /// Why it ends early, if it does.
    pub incomplete: Option<Refusal>,
    /// From asking to answer.
    pub took: Duration,
}

/// State that is left in the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Rows of routing tables.
    pub routes: usize,
    /// Messaging associations.
    pub associations: usize,
    /// Bytes of messages that wait in GIST.
    pub waiting_bytes: usize,
    /// TCP connections.
    pub connections: usize,
    /// Exchanges, pending or finished.
    pub exchanges: usize,
    /// Sessions of the NSLP.
    pub sessions: usize,
    /// Leases that run.
    pub leases: usize,
}

/// A simulated world.
pub struct World {
    pub(super) topology: Topology,
    pub(super) now: Now,
    pub(super) rng: StdRng,
    pub(super) trace: Trace,
    pub(super) stations: BTreeMap<VertexId, Station>,
    pub(super) links_down: BTreeSet<LinkId>,
    pub(super) connections: BTreeMap<ConnectionId, Connection>,
    pub(super) ends: BTreeMap<(VertexId, AssociationId), (ConnectionId, Side)>,
    pub(super) next_connection: u64,
    pub(super) tcp_port: u16,
    settings: Settings,
    queue: BTreeMap<(Instant, u64), Happening>,
    next_sequence: u64,
    next_local: u64,
    outcomes: BTreeMap<LocalId, Outcome>,
}

/// Something that happens at a certain time.
#[derive(Debug)]
pub(super) enum Happening {
    Wake(VertexId),
    Post(VertexId, LocalRequest),
    Arrive(VertexId, LinkId, Packet),
    Tcp(ConnectionId, Segment),
    Answer(VertexId, RequestId, Box<NodeReport>),
    Fault(Fault),
}

impl World {
    /// Returns a world at time zero.
    pub fn new(topology: Topology, seed: u64, settings: Settings) -> World {
        let mut world = World {
            now: Now { instant: Instant::default(), wall: UnixTime::from_secs(1_795_226_400) },
            rng: StdRng::seed_from_u64(seed),
            trace: Trace::new(),
            stations: BTreeMap::new(),
            links_down: BTreeSet::new(),
            connections: BTreeMap::new(),
            ends: BTreeMap::new(),
            next_connection: 0,
            tcp_port: 0,
            settings,
            queue: BTreeMap::new(),
            next_sequence: 0,
            next_local: 0,
            outcomes: BTreeMap::new(),
            topology,
        };
        for vertex in world.topology.of_kind(&[Kind::Node, Kind::NetServHost]) {
            let station = world.station(vertex);
            world.stations.insert(vertex, station);
        }
        world
    }

    /// Returns the network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Asks every node on the path about itself, `after` a while.
    pub fn probe(&mut self, after: Duration, origin: VertexId, destination: VertexId) -> LocalId {
        self.post(after, origin, destination, None, RequestBuilder::probe(&[]))
    }

    /// Asks for a module on every node of the path.
    pub fn setup(&mut self, after: Duration, origin: VertexId, destination: VertexId, ttl: Duration) -> LocalId {
        let module = "example.org/net-monitor@1.2.0".parse().expect("a good reference");
        let builder = RequestBuilder::setup(&module, "file:///net-monitor.nsm", Digest([0x9f; 32]), ttl);
        self.post(after, origin, destination, None, builder)
    }

    /// Removes the module from every node of the path, in the session of an earlier request that was answered.
    pub fn remove(&mut self, after: Duration, origin: VertexId, destination: VertexId, earlier: LocalId) -> LocalId {
        let session = self.outcomes.get(&earlier).map(|outcome| outcome.session);
        let builder = RequestBuilder::remove(&"example.org/net-monitor".parse().expect("a good name"));
        self.post(after, origin, destination, session, builder)
    }

    /// Makes something go wrong, `after` a while.
    pub fn fault(&mut self, after: Duration, fault: Fault) {
        self.schedule(after, Happening::Fault(fault));
    }

    /// Lets a time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now.instant + time;
        let mut at_this_instant = 0;
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((due, _), happening) = entry.remove_entry();
            at_this_instant = if due == self.now.instant { at_this_instant + 1 } else { 0 };
            assert!(at_this_instant < EVENTS_PER_INSTANT_MAX, "the world is stuck at {due:?} with {happening:?}");
            self.advance_to(due);
            self.happen(happening);
        }
        self.advance_to(end);
    }

    /// Returns what came back for a request, if it did.
    pub fn outcome(&self, id: LocalId) -> Option<&Outcome> {
        self.outcomes.get(&id)
    }

    /// Returns how often the controller of a vertex was given a request that it had before.
    pub fn repeated_requests(&self, vertex: VertexId) -> usize {
        let station = self.stations.get(&vertex);
        station.map_or(0, |station| station.controller.seen().values().filter(|times| **times > 1).count())
    }

    /// Returns a counter of the NSLP, summed over all stations as they are.
    ///
    /// # Panics
    /// If there is no counter of this name.
    pub fn counted(&self, name: &str) -> u64 {
        let counter = |station: &Station| {
            let all = station.nslp.counters().all();
            all.into_iter().find(|(known, _)| *known == name).expect("the name of a counter").1
        };
        self.stations.values().map(counter).sum()
    }

    /// Returns what state is left.
    pub fn leftovers(&self) -> Leftovers {
        let mut left = Leftovers { connections: self.connections.len(), ..Leftovers::default() };
        for station in self.stations.values() {
            let (gist, nslp) = (station.gist.state_counts(), station.nslp.state_counts());
            left.routes += gist.querying + gist.responding;
            left.waiting_bytes += gist.pending_bytes;
            left.associations += gist.associations;
            left.exchanges += nslp.pending + nslp.finished + nslp.assemblies;
            left.sessions += nslp.sessions;
            left.leases += station.controller.leases(self.now.instant);
        }
        left
    }

    /// Returns what sums the run up.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// Returns how many things happened.
    pub fn events(&self) -> u64 {
        self.trace.events()
    }

    /// Moves everything that a station has to say, and arms its timer.
    pub(super) fn drive(&mut self, vertex: VertexId) {
        let now = self.now;
        loop {
            let station = self.stations.get_mut(&vertex).expect("only stations are driven");
            if let Some(transmit) = station.gist.poll_transmit() {
                self.transmit(vertex, transmit);
            } else if let Some(event) = station.gist.poll_event() {
                station.nslp.handle_event(now, event);
            } else if let Some(call) = station.nslp.poll_api_call() {
                self.call(vertex, call);
            } else if let Some((id, request)) = station.nslp.poll_request() {
                let time = self.rng.random_range(Duration::ZERO..=self.settings.controller_time_max);
                let report = station.controller.handle_request(now.instant, &request, time);
                self.schedule(time, Happening::Answer(vertex, id, Box::new(report)));
            } else if let Some((id, result)) = station.nslp.poll_result() {
                self.trace.note(now.instant, &format!("{id:?} answered {:?}", result.incomplete), &[]);
                let took = Duration::from_micros(result.took_us);
                let (session, nodes, incomplete) = (result.session, result.nodes, result.incomplete);
                let earlier = self.outcomes.insert(id, Outcome { session, nodes, incomplete, took });
                assert_eq!(earlier, None, "{id:?} is answered once");
            } else {
                break;
            }
        }
        self.arm(vertex);
    }

    pub(super) fn schedule(&mut self, after: Duration, happening: Happening) {
        let due = self.now.instant + after;
        self.queue.insert((due, self.next_sequence), happening);
        self.next_sequence += 1;
    }

    fn station(&mut self, vertex: VertexId) -> Station {
        let name = self.topology.name(vertex);
        let node: netserv_model::NodeId = name.parse().expect("vertex names are node names");
        let mut identity = name.into_bytes();
        identity.extend(self.rng.random::<[u8; 8]>());
        let mut gist = netserv_gist::Config::new(identity);
        gist.hosted.insert(NSLP_ID, RAO);
        (self.settings.gist)(&mut gist);
        self.tcp_port = gist.tcp_port;
        let mut nslp = netserv_nslp::Config::new(node.clone(), NSLP_ID);
        nslp.host_only = self.topology.kind(vertex) == Kind::NetServHost;
        nslp.own_addresses = self.topology.addresses(vertex);
        (self.settings.nslp)(&mut nslp);
        let controller = Controller::new(node, nslp.host_only);
        let (gist, nslp) = (Engine::new(gist, self.rng.random()), Nslp::new(nslp, self.rng.random()));
        Station { gist, nslp, controller, armed: None }
    }

    fn post(
        &mut self,
        after: Duration,
        origin: VertexId,
        destination: VertexId,
        session: Option<SessionId>,
        builder: RequestBuilder,
    ) -> LocalId {
        let id = LocalId(self.next_local);
        self.next_local += 1;
        let toward = |from, to| self.topology.next_link(from, to).expect("the two are connected and apart");
        let source = self.topology.address(origin, toward(origin, destination));
        let destination = self.topology.address(destination, toward(destination, origin));
        let builder = builder.user(&"janedoe".parse().expect("a good name"));
        let unsigned = builder.build(self.now.wall, Nonce(self.rng.random())).expect("a good request");
        let message = unsigned.into_message().as_str().to_owned();
        let path = Some(LocalPath { source, destination });
        let request = LocalRequest { id, message, path, session, timeout: Duration::ZERO };
        self.schedule(after, Happening::Post(origin, request));
        id
    }

    fn happen(&mut self, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::Wake(vertex) => self.wake(vertex),
            Happening::Post(vertex, request) => {
                self.trace.note(now.instant, &format!("{vertex:?} asks {:?}", request.id), request.message.as_bytes());
                let station = self.stations.get_mut(&vertex).expect("only stations are asked");
                station.nslp.handle_local(now, request).expect("the world's requests are good");
                self.drive(vertex);
            }
            Happening::Arrive(vertex, link, packet) => self.arrive(vertex, link, packet),
            Happening::Tcp(connection, segment) => self.tcp(connection, segment),
            Happening::Answer(vertex, id, report) => {
                let station = self.stations.get_mut(&vertex).expect("only stations have controllers");
                station.nslp.handle_report(now, id, *report);
                self.drive(vertex);
            }
            Happening::Fault(fault) => self.break_something(fault),
        }
    }

    fn wake(&mut self, vertex: VertexId) {
        let now = self.now;
        let station = self.stations.get_mut(&vertex).expect("only stations have timers");
        if station.armed != Some(now.instant) {
            return;
        }
        station.armed = None;
        station.gist.handle_timeout(now.instant);
        station.nslp.handle_timeout(now);
        self.trace.note(now.instant, &format!("{vertex:?} wakes"), &[]);
        self.drive(vertex);
    }

    fn arm(&mut self, vertex: VertexId) {
        let now = self.now.instant;
        let station = self.stations.get_mut(&vertex).expect("only stations have timers");
        let due = station.gist.poll_timeout().into_iter().chain(station.nslp.poll_timeout()).min();
        let Some((due, _)) = due else { return };
        if station.armed.is_none_or(|armed| due < armed) {
            let due = due.max(now);
            station.armed = Some(due);
            self.schedule(due.since(now), Happening::Wake(vertex));
        }
    }

    /// Makes a call of the NSLP; the node's own address is where its routes lead toward the flow's end.
    fn call(&mut self, vertex: VertexId, call: ApiCall) {
        let (handle, mri) = match &call {
            ApiCall::SendMessage { handle, mri, .. } => (Some(*handle), mri),
            ApiCall::SetStateLifetime { mri, .. } | ApiCall::InvalidateRoutingState { mri, .. } => (None, mri),
        };
        let local = self.local_toward(vertex, mri);
        let now = self.now;
        let station = self.stations.get_mut(&vertex).expect("only stations make calls");
        if let Err(error) = station.gist.handle_api(now.instant, call, local) {
            self.trace.note(now.instant, &format!("{vertex:?} GIST refuses {handle:?}: {error}"), &[]);
            if let Some(handle) = handle {
                station.nslp.handle_api_error(now, handle, error);
            }
        }
    }

    fn local_toward(&self, vertex: VertexId, mri: &Mri) -> std::net::IpAddr {
        let (source, destination) = mri.addresses().expect("the world has path-coupled flows only");
        let end = if mri.direction() == Some(Direction::Upstream) { source } else { destination };
        let owner = self.topology.owner(end).expect("flows have their ends in the world");
        let link = self.topology.next_link(vertex, owner);
        link.map_or_else(|| self.topology.addresses(vertex)[0], |link| self.topology.address(vertex, link))
    }

    fn break_something(&mut self, fault: Fault) {
        self.trace.note(self.now.instant, &format!("{fault:?}"), &[]);
        match fault {
            Fault::LinkDown(link) => {
                self.links_down.insert(link);
            }
            Fault::LinkUp(link) => {
                self.links_down.remove(&link);
            }
            Fault::BreakConnections(vertex) => self.break_connections(vertex),
            Fault::Restart(vertex) => {
                let station = self.station(vertex);
                self.stations.insert(vertex, station);
                self.ends.retain(|(of, _), _| *of != vertex);
                self.break_connections(vertex);
            }
        }
    }

    fn advance_to(&mut self, instant: Instant) {
        self.now = self.now + instant.since(self.now.instant);
    }
}
