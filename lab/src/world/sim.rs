// SPDX-License-Identifier: Apache-2.0
//! The world itself: the queue of what happens when, the stations, what is asked of them and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use netserv_gist::{AssociationId, IcmpError, IcmpKind};
use netserv_model::api::{PathSpec, PostRequest};
use netserv_model::effect::{Effect, EffectOutcome, Job};
use netserv_model::request::{Ask, NodeReport, PathEnd, ReturnStack};
use netserv_model::route::RouteChange;
use netserv_model::target::{Destinations, Scope, Target};
use netserv_model::{Instant, ModuleName, Nonce, Now, Refusal, SessionId, UnixTime, UserId};
use netserv_node::{CallId, Input, NodeConfig, Output, Token, View};
use netserv_wire::nslp::RequestBuilder;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::catalogue;
use super::machine::{self, Machine, MachineQuality};
use super::net::Packet;
use super::station::Station;
use super::tcp::{Connection, ConnectionId, Segment, Side};
use super::topology::{Kind, LinkId, Topology, VertexId};
use super::trace::Trace;

/// Events at one instant, after which the world is taken for stuck.
const EVENTS_PER_INSTANT_MAX: u32 = 100_000;

/// How a world runs.
#[derive(Clone, Copy)]
pub struct Settings {
    /// Changes what every node comes with.
    pub config: fn(&mut NodeConfig),
    /// How machines carry effects out.
    pub machine: MachineQuality,
    /// Whether every node is recorded.
    pub records: bool,
    /// Whether nodes hear that routes changed, as their kernels tell them of their own.
    pub routes_are_told: bool,
}

impl Default for Settings {
    /// Returns nodes as they are shipped, on machines where nothing goes wrong.
    fn default() -> Settings {
        Settings { config: |_| {}, machine: MachineQuality::GOOD, records: false, routes_are_told: true }
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
    /// The node of the vertex loses its state and starts anew with what its machine has stored.
    Restart(VertexId),
    /// Routes lead around the link.
    RouteAround(LinkId),
    /// Routes use the link again.
    RouteOver(LinkId),
    /// Somebody tells the node of the vertex, in the name of an address, that nobody listens there, and brings back the last
    /// Query that another node sent.
    Lie(VertexId, IpAddr),
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
    /// What proves its end, if anything does.
    pub end: Option<PathEnd>,
    /// The stack of the way back, if the request was sent back.
    pub returned: Option<ReturnStack>,
    /// From asking to answer.
    pub took: Duration,
    /// When it was answered.
    pub at: Instant,
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
    /// Requests that controllers have not answered.
    pub requests: usize,
    /// Modules that controllers know.
    pub modules: usize,
    /// Effects under way, and those that wait for them.
    pub effects: usize,
    /// Workers on machines.
    pub workers: usize,
    /// Modules in those workers.
    pub loaded: usize,
    /// Rules of filters on machines.
    pub rules: usize,
    /// Records in stores.
    pub records: usize,
    /// Calls, messages and requests that wait inside nodes.
    pub waiting: usize,
}

/// A simulated world.
pub struct World {
    pub(super) topology: Topology,
    pub(super) now: Now,
    pub(super) rng: StdRng,
    pub(super) trace: Trace,
    pub(super) stations: BTreeMap<VertexId, Station>,
    pub(super) links_down: BTreeSet<LinkId>,
    links_avoided: BTreeSet<LinkId>,
    /// The last datagram in Q-mode, and whose it was.
    pub(super) last_query: Option<(VertexId, Vec<u8>)>,
    pub(super) connections: BTreeMap<ConnectionId, Connection>,
    pub(super) ends: BTreeMap<(VertexId, AssociationId), (ConnectionId, Side)>,
    pub(super) next_connection: u64,
    pub(super) tcp_port: u16,
    /// Datagrams that nodes look at before they go on.
    pub(super) held: BTreeMap<Token, (VertexId, Packet)>,
    pub(super) next_token: u64,
    settings: Settings,
    queue: BTreeMap<(Instant, u64), Happening>,
    next_sequence: u64,
    next_call: u64,
    asked: BTreeMap<CallId, Asked>,
    /// Whose module each session is about.
    sessions: BTreeMap<SessionId, machine::Key>,
    outcomes: BTreeMap<CallId, Outcome>,
}

/// A request that was or will be posted.
#[derive(Clone)]
struct Asked {
    origin: VertexId,
    destination: IpAddr,
    builder: RequestBuilder,
    user: &'static str,
    module: usize,
    session: SessionId,
}

/// Something that happens at a certain time.
#[derive(Debug)]
pub(super) enum Happening {
    Wake(VertexId),
    Post(CallId),
    Arrive(VertexId, LinkId, Packet),
    Tcp(ConnectionId, Segment),
    /// A node is told something, unless it was restarted since.
    Tell(VertexId, u32, Input),
    /// A machine does something, unless its node was restarted since.
    Machine(VertexId, u32, machine::Due),
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
            links_avoided: BTreeSet::new(),
            last_query: None,
            connections: BTreeMap::new(),
            ends: BTreeMap::new(),
            next_connection: 0,
            tcp_port: 0,
            held: BTreeMap::new(),
            next_token: 0,
            settings,
            queue: BTreeMap::new(),
            next_sequence: 0,
            next_call: 0,
            asked: BTreeMap::new(),
            sessions: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            topology,
        };
        for vertex in world.topology.of_kind(&[Kind::Node, Kind::NetServHost]) {
            world.start(vertex, Machine::new(settings.machine), 0);
        }
        world
    }

    /// Returns the network.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Asks every node on the path about itself and about modules, `after` a while.
    pub fn probe(&mut self, after: Duration, origin: VertexId, destination: VertexId) -> CallId {
        let builder = RequestBuilder::probe(&[Ask::Nodes, Ask::Modules]);
        self.post(after, origin, destination, None, builder, (catalogue::USERS[0], 0))
    }

    /// Asks every node on the path, and on the way back, about itself.
    pub fn round_trip(&mut self, after: Duration, origin: VertexId, destination: VertexId) -> CallId {
        let builder = RequestBuilder::probe(&[Ask::Nodes]).and_return();
        self.post(after, origin, destination, None, builder, (catalogue::USERS[0], 0))
    }

    /// Asks some nodes of the path for the first user's first module.
    pub fn setup_at(
        &mut self,
        after: Duration,
        origin: VertexId,
        destination: VertexId,
        ttl: Duration,
        scope: Scope,
    ) -> CallId {
        let builder = RequestBuilder::setup(&catalogue::module(0), "file:///package.nsm", catalogue::digest(0), ttl);
        let builder = builder.target(&Target { scope, ..Target::default() });
        self.post(after, origin, destination, None, builder, (catalogue::USERS[0], 0))
    }

    /// Asks for the first user's first module on every node of the path.
    pub fn setup(&mut self, after: Duration, origin: VertexId, destination: VertexId, ttl: Duration) -> CallId {
        self.setup_of(after, origin, destination, ttl, (0, 0))
    }

    /// Asks for a module on every node of the path; `what` are the places of the user in [`super::USERS`] and of the
    /// module in [`super::MODULES`].
    pub fn setup_of(
        &mut self,
        after: Duration,
        origin: VertexId,
        destination: VertexId,
        ttl: Duration,
        what: (usize, usize),
    ) -> CallId {
        let (user, place) = what;
        let digest = catalogue::digest(place);
        let builder = RequestBuilder::setup(&catalogue::module(place), "file:///package.nsm", digest, ttl);
        self.post(after, origin, destination, None, builder, (catalogue::USERS[user], place))
    }

    /// Removes what an earlier SETUP asked for from every node of the path, in the same session.
    pub fn remove(&mut self, after: Duration, origin: VertexId, destination: VertexId, earlier: CallId) -> CallId {
        let Asked { user, module, session, .. } = self.asked[&earlier].clone();
        let builder = RequestBuilder::remove(&catalogue::module(module).name);
        self.post(after, origin, destination, Some(session), builder, (user, module))
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
    pub fn outcome(&self, id: CallId) -> Option<&Outcome> {
        self.outcomes.get(&id)
    }

    /// Returns how often the controller of a vertex was given a request that it had before.
    pub fn repeated_requests(&self, vertex: VertexId) -> usize {
        self.stations.get(&vertex).map_or(0, Station::repeated)
    }

    /// Returns what the node of a vertex was given and did since it started, if the world records.
    pub fn recording(&self, vertex: VertexId) -> Option<&str> {
        self.stations.get(&vertex)?.recording()
    }

    /// Returns something that nodes count, summed over all stations as they are.
    pub fn sum(&self, of: impl Fn(&View<'_>) -> u64) -> u64 {
        self.stations.values().map(|station| of(&station.node.view())).sum()
    }

    /// Returns what state is left.
    pub fn leftovers(&self) -> Leftovers {
        let mut left = Leftovers { connections: self.connections.len(), ..Leftovers::default() };
        for station in self.stations.values() {
            let view = station.node.view();
            let (gist, nslp, node) = (view.gist.state_counts(), view.nslp.state_counts(), station.node.counters());
            left.routes += gist.querying + gist.responding;
            left.waiting_bytes += gist.pending_bytes;
            left.associations += gist.associations;
            left.exchanges += nslp.pending + nslp.finished + nslp.assemblies;
            left.sessions += nslp.sessions;
            left.effects += node.effects_open + node.effects_waiting;
            left.requests += station.requests() + node.requests_open;
            left.modules += view.controller.modules(self.now).len();
            let machine = station.machine.counts();
            left.workers += machine.workers;
            left.loaded += machine.modules;
            left.rules += machine.rules;
            left.records += machine.records;
            left.waiting += node.posts_open + node.route_waiters + node.count_waiters;
        }
        left
    }

    /// Returns whether the node of a vertex has a module of a user's installed.
    pub fn has_module(&self, vertex: VertexId, user: &UserId, module: &ModuleName) -> bool {
        self.stations.get(&vertex).is_some_and(|station| station.node.view().controller.place(user, module).is_some())
    }

    /// Returns what sums the run up.
    pub fn trace_hash(&self) -> u64 {
        self.trace.hash()
    }

    /// Returns how many things happened.
    pub fn events(&self) -> u64 {
        self.trace.events()
    }

    /// Gives a node an input, takes what comes out of it, and arms its timer.
    pub(super) fn input(&mut self, vertex: VertexId, input: Input) {
        let now = self.now;
        self.station(vertex).handle(now, input);
        while let Some(output) = self.station(vertex).poll_output(now) {
            self.take(vertex, output);
        }
        self.arm(vertex);
    }

    pub(super) fn schedule(&mut self, after: Duration, happening: Happening) {
        let due = self.now.instant + after;
        self.queue.insert((due, self.next_sequence), happening);
        self.next_sequence += 1;
    }

    fn take(&mut self, vertex: VertexId, output: Output) {
        match output {
            Output::Send(transmit) => self.transmit(vertex, transmit),
            Output::Attach(token, association) => self.tcp_attach(vertex, token, association),
            Output::Release(token, disposition) => self.release(vertex, token, disposition),
            Output::Do(effect) => self.begin(vertex, effect),
            // Its package is fetched all the same, and the node told.
            Output::Abandon(_) => {}
            Output::Reply(call, result) => {
                let result = result.expect("the world's requests are good");
                self.trace.note(self.now.instant, &format!("{call:?} answered {:?}", result.incomplete), &[]);
                let took = Duration::from_micros(result.took_us);
                let (session, nodes, incomplete, end) = (result.session, result.nodes, result.incomplete, result.end);
                let returned = result.returned;
                let outcome = Outcome { session, nodes, incomplete, end, returned, took, at: self.now.instant };
                let earlier = self.outcomes.insert(call, outcome);
                assert_eq!(earlier, None, "{call:?} is answered once");
            }
            Output::Fresh(_) => unreachable!("nobody in the world looks at counters"),
            Output::Stopped => unreachable!("nodes of the world do not stop in order"),
            Output::Application(..) => unreachable!("no programs of the world are NSLPs"),
            Output::Applied(..) => unreachable!("no operator of the world changes a policy"),
            Output::Notice(notice) => {
                if let Some((session, outcome)) = self.station(vertex).take_notice(notice) {
                    let module = &self.sessions[&session];
                    self.stations[&vertex].machine.check_answer(module, &outcome);
                }
            }
        }
    }

    /// Begins an effect on a node's machine. The world itself knows the routes.
    fn begin(&mut self, vertex: VertexId, effect: Effect) {
        let restarts = self.station(vertex).restarts;
        let id = effect.id;
        let route = if let Job::Route(destination) = effect.job { Some(destination) } else { None };
        let station = self.stations.get_mut(&vertex).expect("only stations are driven");
        let (after, due) = match route {
            None => {
                let (after, due) = station.machine.begin(effect, &mut self.rng);
                (after, Happening::Machine(vertex, restarts, due))
            }
            Some(destination) => {
                let local = self.local_toward(vertex, destination);
                let after = self.rng.random_range(Duration::ZERO..=self.settings.machine.time_max);
                (after, Happening::Tell(vertex, restarts, Input::Done(id, EffectOutcome::Routed(Some(local)))))
            }
        };
        self.schedule(after, due);
    }

    pub(super) fn station(&mut self, vertex: VertexId) -> &mut Station {
        self.stations.get_mut(&vertex).expect("only stations have nodes")
    }

    /// Starts a node with what its machine has stored.
    fn start(&mut self, vertex: VertexId, mut machine: Machine, restarts: u32) {
        let name = self.topology.name(vertex);
        let node: netserv_model::NodeId = name.parse().expect("vertex names are node names");
        let mut identity = name.into_bytes();
        identity.extend(self.rng.random::<[u8; 8]>());
        let host_only = self.topology.kind(vertex) == Kind::NetServHost;
        let mut config = NodeConfig::new(node.clone(), identity);
        config.nslp.host_only = host_only;
        (self.settings.config)(&mut config);
        self.tcp_port = config.gist.tcp_port;
        let policy = catalogue::policy(node, host_only);
        let stored = machine.restart();
        let station = Station::new(machine, restarts, config, policy, self.rng.random(), self.settings.records);
        self.stations.insert(vertex, station);
        self.input(vertex, Input::Restore(Box::new(stored)));
        self.input(vertex, Input::Addresses(self.topology.addresses(vertex)));
    }

    fn post(
        &mut self,
        after: Duration,
        origin: VertexId,
        destination: VertexId,
        session: Option<SessionId>,
        builder: RequestBuilder,
        (user, module): (&'static str, usize),
    ) -> CallId {
        let id = CallId(self.next_call);
        self.next_call += 1;
        let link = self.topology.next_link(destination, origin).expect("the two are connected and apart");
        let destination = self.topology.address(destination, link);
        let session = session.unwrap_or_else(|| SessionId(self.rng.random()));
        let about = (catalogue::user_id(user), catalogue::module(module).name);
        // The way back has a session of its own.
        self.sessions.insert(SessionId(session.0.map(|byte| !byte)), about.clone());
        self.sessions.insert(session, about);
        // As clients do: what comes back follows a flow to an address that the node alone knows.
        let builder = if builder.comes_back() { builder } else { builder.along(&Destinations::one(destination)) };
        self.asked.insert(id, Asked { origin, destination, builder, user, module, session });
        self.schedule(after, Happening::Post(id));
        id
    }

    fn hand_in(&mut self, call: CallId) {
        let Asked { origin, destination, builder, user, session, .. } = self.asked[&call].clone();
        let message = catalogue::signed(builder, user, self.now.wall, Nonce(self.rng.random()));
        self.trace.note(self.now.instant, &format!("{origin:?} asks {call:?}"), message.as_bytes());
        let path = Some(PathSpec { destination, source: None });
        let request = PostRequest { message, path, session: Some(session), timeout_ms: 0 };
        self.input(origin, Input::Post(call, Box::new(request)));
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Wake(vertex) => self.wake(vertex),
            Happening::Post(call) => self.hand_in(call),
            Happening::Arrive(vertex, link, packet) => self.arrive(vertex, link, packet),
            Happening::Tcp(connection, segment) => self.tcp(connection, segment),
            Happening::Tell(vertex, restarts, input) => {
                if self.station(vertex).restarts == restarts {
                    self.input(vertex, input);
                }
            }
            Happening::Machine(vertex, restarts, due) => self.work(vertex, restarts, due),
            Happening::Fault(fault) => self.break_something(fault),
        }
    }

    fn work(&mut self, vertex: VertexId, restarts: u32, due: machine::Due) {
        let station = self.stations.get_mut(&vertex).expect("only stations have machines");
        if station.restarts != restarts {
            return;
        }
        self.trace.note(self.now.instant, &format!("{vertex:?} {due:?}"), &[]);
        let (input, then) = station.machine.happen(due, &mut self.rng);
        for (after, due) in then {
            self.schedule(after, Happening::Machine(vertex, restarts, due));
        }
        if let Some(input) = input {
            self.input(vertex, input);
        }
    }

    fn wake(&mut self, vertex: VertexId) {
        let now = self.now.instant;
        let station = self.station(vertex);
        if station.armed != Some(now) {
            return;
        }
        station.armed = None;
        self.trace.note(now, &format!("{vertex:?} wakes"), &[]);
        self.input(vertex, Input::Timeout);
    }

    fn arm(&mut self, vertex: VertexId) {
        let now = self.now.instant;
        let station = self.station(vertex);
        let Some((due, _)) = station.node.poll_timeout() else { return };
        if station.armed.is_none_or(|armed| due < armed) {
            let due = due.max(now);
            station.armed = Some(due);
            self.schedule(due.since(now), Happening::Wake(vertex));
        }
    }

    /// Returns the address that a vertex uses toward another.
    fn local_toward(&self, vertex: VertexId, destination: IpAddr) -> IpAddr {
        let owner = self.topology.owner(destination).expect("flows have their ends in the world");
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
            Fault::RouteAround(link) => {
                self.links_avoided.insert(link);
                self.reroute();
            }
            Fault::RouteOver(link) => {
                self.links_avoided.remove(&link);
                self.reroute();
            }
            Fault::Lie(vertex, reporter) => {
                let query = self.last_query.clone().filter(|(of, _)| *of != vertex);
                let quoted = query.map_or_else(Vec::new, |(_, payload)| payload);
                let error = IcmpError { kind: IcmpKind::Port, reporter: Some(reporter), quoted };
                self.input(vertex, Input::Icmp(Box::new(error)));
            }
            Fault::BreakConnections(vertex) => self.break_connections(vertex),
            Fault::Restart(vertex) => {
                self.ends.retain(|(of, _), _| *of != vertex);
                let station = self.stations.remove(&vertex).expect("only stations are restarted");
                self.start(vertex, station.machine, station.restarts + 1);
                self.break_connections(vertex);
            }
        }
    }

    /// Has routes follow which links are avoided, and nodes hear of it.
    fn reroute(&mut self) {
        self.topology.route_without(self.now.instant, &self.links_avoided);
        let told = self.settings.routes_are_told;
        let stations: Vec<VertexId> = self.stations.keys().copied().filter(|_| told).collect();
        for vertex in stations {
            self.input(vertex, Input::RoutesChanged(RouteChange::All));
        }
    }

    fn advance_to(&mut self, instant: Instant) {
        self.now = self.now + instant.since(self.now.instant);
    }
}
