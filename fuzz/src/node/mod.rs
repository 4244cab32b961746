// SPDX-License-Identifier: Apache-2.0
//! Two whole nodes on the path of one flow, a bad network between them, and machines that answer when and as they like.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use netserv_gist::{AssociationId, Channel, InterfaceId, Transmit};
use netserv_model::api::{PathSpec, PostRequest};
use netserv_model::effect::{
    Effect, EffectId, EffectOutcome, Job, ModuleSlot, News, PackageJob, WorkerJob, WorkerNews,
};
use netserv_model::evidence::Holder;
use netserv_model::request::Ask;
use netserv_model::{Digest, Flavour, Instant, Nonce, Now, Refusal, RefusalKind, SessionId, UnixTime, WorkerId};
use netserv_node::limits::{FRESH_WAITING_MAX, POSTS_MAX, ROUTE_WAITING_MAX};
use netserv_node::recording::{Header, Line, OutputDigest, Replay, VERSION};
use netserv_node::{CallId, Ends, Input, Node, NodeConfig, Output, OwnedDatagram, Token, What};
use netserv_wire::gist::UDP_PORT;
use netserv_wire::nslp::RequestBuilder;

use crate::input::Input as Script;
use crate::network::{ADDRESSES, FLOW_DESTINATION, Network, Segment};

mod catalogue;

/// Plays a script: what clients, the network, the machines and the clock do to two nodes.
///
/// # Panics
/// If a call, a request or an intercepted datagram is not answered exactly once, an effect is given out twice or beside
/// another of its user, a table is over its bound, or the inputs as they are recorded do not give the same outputs again.
pub fn node(data: &[u8]) {
    World::play(data).finish();
}

/// Timers after the script, by which every request is answered.
const LAST_TIMERS_MAX: usize = 20_000;
const ROUTES_MAX: usize = 64;
const ASSOCIATIONS_MAX: usize = 8;

struct World {
    now: Now,
    stations: [Station; 2],
    network: Network,
    next: u64,
}

struct Station {
    node: Node,
    recording: Vec<String>,
    /// Effects that were given out and not answered.
    open: Vec<Effect>,
    effects: BTreeSet<EffectId>,
    /// The last start of each worker.
    starts: BTreeMap<WorkerId, EffectId>,
    loads: Vec<(WorkerId, ModuleSlot)>,
    /// Calls that were not answered.
    calls: BTreeSet<CallId>,
    /// What was answered well, to see that scripts get somewhere.
    installed: u32,
}

impl World {
    fn new() -> World {
        let now = Now { instant: Instant::from_millis(1000), wall: UnixTime::from_secs(1_800_000_000) };
        let stations = [0, 1].map(Station::new);
        let mut world = World { now, stations, network: Network::default(), next: 0 };
        for (at, address) in ADDRESSES.into_iter().enumerate() {
            world.give(at, Input::Restore(Box::default()));
            while let Some(effect) = world.stations[at].open.pop() {
                world.give(at, Input::Done(effect.id, good(&effect.job, at)));
            }
            world.give(at, Input::Addresses(vec![address]));
        }
        world
    }

    fn play(script: &[u8]) -> World {
        let mut world = World::new();
        let mut script = Script::new(script);
        while let Some(step) = script.next() {
            world.step(step, &mut script);
            world.network.shed();
        }
        world
    }

    fn step(&mut self, step: u8, script: &mut Script<'_>) {
        match step % 16 {
            0..=2 => self.deliver(script, true),
            3 => self.deliver(script, false),
            4 => self.network.repeat(script),
            5 => self.network.damage(script),
            6 | 7 => self.deliver_segment(),
            8 => self.break_connection(script),
            9 => self.post(script),
            10 | 11 => self.answer(script, true),
            12 => self.answer(script, false),
            13 => self.sleep(Duration::from_millis(u64::from(script.byte()) * 100)),
            14 => self.tell(script),
            _ => self.rarely(script),
        }
    }

    /// Posts a request that two bytes choose.
    fn post(&mut self, script: &mut Script<'_>) {
        let (what, which) = (script.byte(), script.byte());
        let at = usize::from(what & 1);
        let module = catalogue::module(which);
        let builder = match what >> 1 & 3 {
            0 | 1 => {
                let ttl = Duration::from_secs(if which & 0x80 == 0 { 60 } else { 1 });
                RequestBuilder::setup(&module, "file:///m.nsm", catalogue::digest(which), ttl)
            }
            2 => RequestBuilder::remove(&module.name),
            _ => RequestBuilder::probe(&[Ask::Modules, Ask::Load]),
        };
        let user = catalogue::USERS[usize::from(what >> 3 & 1)].parse().expect("a good name");
        self.next += 1;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.next.to_be_bytes());
        let unsigned = builder.user(&user).build(self.now.wall, Nonce(nonce)).expect("a good request");
        let source = (what & 0x20 != 0).then_some(ADDRESSES[at]);
        let path = (what & 0x10 != 0).then_some(PathSpec { destination: FLOW_DESTINATION, source });
        let session = (what & 0x40 != 0).then_some(SessionId([which % 3; 16]));
        let message = unsigned.into_message().as_str().to_owned();
        self.call(at, |call| Input::Post(call, Box::new(PostRequest { message, path, session, timeout_ms: 0 })));
    }

    fn call(&mut self, at: usize, input: impl FnOnce(CallId) -> Input) {
        self.next += 1;
        let call = CallId(self.next);
        self.stations[at].calls.insert(call);
        self.give(at, input(call));
    }

    /// Answers one of the open effects, well or in any way.
    fn answer(&mut self, script: &mut Script<'_>, well: bool) {
        let which = script.byte();
        let at = usize::from(which & 1);
        let open = &mut self.stations[at].open;
        if open.is_empty() {
            return;
        }
        let effect = open.swap_remove(usize::from(which >> 1) % open.len());
        let outcome = if well { good(&effect.job, at) } else { any_outcome(script.byte()) };
        self.give(at, Input::Done(effect.id, outcome));
    }

    /// Tells news of a worker; most are of one that was started, and of a module that was loaded into it.
    fn tell(&mut self, script: &mut Script<'_>) {
        let (what, which, slot) = (script.byte(), script.byte(), script.byte());
        let at = usize::from(what & 1);
        let station = &self.stations[at];
        let starts: Vec<_> = station.starts.iter().collect();
        let any = || WorkerId::new(catalogue::USERS[0].parse().expect("a good name"), Flavour::Osgi);
        let started = starts.get(usize::from(which) % starts.len().max(1));
        let (worker, generation) =
            started.map_or_else(|| (any(), EffectId(which.into())), |(worker, id)| ((*worker).clone(), **id));
        let loaded = station.loads.iter().rev().find(|(loaded, _)| *loaded == worker).map(|(_, slot)| *slot);
        let slot = loaded.filter(|_| slot & 0x80 == 0).unwrap_or(ModuleSlot(slot));
        let refusal = Refusal::new(RefusalKind::Trapped, "fuzzed");
        let what = match what >> 1 & 7 {
            0..=2 => WorkerNews::Ready { addresses: Vec::new() },
            3..=5 => WorkerNews::Loaded(slot),
            6 => WorkerNews::Failed { slot, refusal },
            _ => WorkerNews::Died { refusal, culprit: (what & 0x10 != 0).then_some(slot) },
        };
        self.give(at, Input::News(News { worker, generation, what }));
    }

    fn rarely(&mut self, script: &mut Script<'_>) {
        let what = script.byte();
        let at = usize::from(what & 1);
        match what >> 1 & 7 {
            0 if what & 0x60 == 0x60 => self.give(at, Input::Stop),
            0 => {
                let asked = if what & 0x10 == 0 { What::Counters } else { What::Usage };
                self.call(at, |call| Input::Ask(call, asked));
            }
            1 => {
                let error = self.network.icmp_error(script);
                self.give(at, Input::Icmp(Box::new(error)));
            }
            2 => self.give(at, Input::RoutesChanged(netserv_model::route::RouteChange::All)),
            3 => {
                let mut policy = catalogue::policy(at);
                policy.users.retain(|name, user| {
                    let change = script.byte();
                    user.network.packets_per_second += u64::from(change & 2);
                    user.container.memory_bytes += u64::from(change & 4);
                    user.addresses.extend((change & 8 != 0).then_some(FLOW_DESTINATION));
                    change & 1 == 0 || name.as_str() != catalogue::USERS[0]
                });
                self.call(at, |call| Input::Policy(call, Box::new(policy)));
            }
            4 => {
                let id = EffectId(u64::from(script.byte()) | u64::from(script.byte() & 1) << 63);
                // One that is under way would be no stray.
                if self.stations[at].open.iter().all(|effect| effect.id != id) {
                    self.give(at, Input::Done(id, any_outcome(script.byte())));
                }
            }
            5 => {
                let (association, length) = (AssociationId(script.byte().into()), usize::from(script.byte()));
                self.give(at, Input::Bytes(association, script.take(length).to_vec()));
            }
            6 => self.give(at, Input::Closed(AssociationId(script.byte().into()), None)),
            _ => self.network.make_up(at, script),
        }
    }

    fn sleep(&mut self, time: Duration) {
        self.now = self.now + time;
        for at in 0..2 {
            self.give(at, Input::Timeout);
        }
    }

    fn deliver(&mut self, script: &mut Script<'_>, arrives: bool) {
        let Some(flight) = self.network.take(script).filter(|_| arrives) else { return };
        let at = flight.to;
        let datagram = Box::new(OwnedDatagram {
            interface: InterfaceId(1),
            local: ADDRESSES[at],
            source: SocketAddr::new(flight.source, UDP_PORT),
            destination: flight.destination,
            ttl: 63,
            payload: flight.payload,
        });
        if flight.destination == ADDRESSES[at] {
            return self.give(at, Input::Datagram(datagram));
        }
        self.next += 1;
        self.give(at, Input::Intercepted(Token(self.next), datagram));
    }

    fn deliver_segment(&mut self) {
        let Some((connection, segment)) = self.network.next_segment() else { return };
        match segment {
            Segment::Connect { from, association, tls: _ } => {
                let to = 1 - from;
                let ends = Ends { local: ADDRESSES[to], peer: SocketAddr::new(ADDRESSES[from], 40_000) };
                let token = Token(u64::try_from(connection).expect("connections are few"));
                self.give(to, Input::Accepted(token, ends, Channel::Plain));
                if self.network.connections[connection][from].is_some() {
                    self.give(from, Input::Connected(association, Channel::Plain));
                }
            }
            Segment::Bytes { from, bytes } => {
                if let Some(association) = self.network.connections[connection][from] {
                    self.give(from, Input::Written(association, bytes.len()));
                }
                if let Some(association) = self.network.connections[connection][1 - from] {
                    self.give(1 - from, Input::Bytes(association, bytes));
                }
            }
            Segment::Close { from } => {
                if let Some(association) = self.network.connections[connection][1 - from].take() {
                    self.give(1 - from, Input::Closed(association, None));
                }
            }
        }
    }

    fn break_connection(&mut self, script: &mut Script<'_>) {
        for (at, association) in self.network.cut(script).into_iter().enumerate() {
            if let Some(association) = association {
                self.give(at, Input::Closed(association, Some("connection reset".to_owned())));
            }
        }
    }

    /// Gives a node an input, takes what comes out, and looks at what it keeps.
    fn give(&mut self, at: usize, input: Input) {
        let token = if let Input::Intercepted(token, _) = input { Some(token) } else { None };
        let outputs = self.stations[at].handle(self.now, input);
        let mut released = Vec::new();
        for output in outputs {
            match output {
                Output::Send(transmit) => {
                    let closed = if let Transmit::Close { association } = transmit { Some(association) } else { None };
                    self.network.carry(at, transmit);
                    closed.into_iter().for_each(|association| self.network.leave(at, association));
                }
                Output::Attach(token, association) => {
                    let connection = usize::try_from(token.0).expect("tokens of connections are their places");
                    self.network.connections[connection][at] = Some(association);
                }
                // One that goes on leaves these two behind.
                Output::Release(token, _) => released.push(token),
                output @ (Output::Do(_)
                | Output::Abandon(_)
                | Output::Reply(..)
                | Output::Fresh(_)
                | Output::Applied(..)) => {
                    self.stations[at].take(output);
                }
                Output::Notice(_) | Output::Application(..) | Output::Stopped => {}
            }
        }
        assert_eq!(released, Vec::from_iter(token), "what is intercepted is released once, at once");
        self.stations[at].check();
    }

    /// Lets time run without a network, on machines where all goes well but no worker ever says a word, until every
    /// request has had its time.
    fn finish(mut self) {
        for _ in 0..LAST_TIMERS_MAX {
            for at in 0..2 {
                while let Some(effect) = self.stations[at].open.pop() {
                    self.give(at, Input::Done(effect.id, good(&effect.job, at)));
                }
            }
            let busy = |station: &Station| !station.calls.is_empty() || station.node.counters().requests_open > 0;
            let timers = self.stations.iter().filter_map(|station| station.node.poll_timeout());
            let Some((next, _)) = timers.min() else { break };
            if !self.stations.iter().any(busy) {
                break;
            }
            self.network.clear();
            self.sleep(next.since(self.now.instant));
        }
        for station in &self.stations {
            assert_eq!(station.calls, BTreeSet::new(), "calls are not answered");
            assert_eq!(station.node.counters().requests_open, 0);
            station.replay();
        }
    }
}

impl Station {
    fn new(number: u8) -> Station {
        let at = usize::from(number);
        let policy = catalogue::policy(at);
        let mut config = NodeConfig::new(policy.node.clone(), vec![number; 16]);
        config.gist.associations_max = ASSOCIATIONS_MAX;
        config.gist.routes_max = ROUTES_MAX;
        let header = Header { recording: VERSION, software: String::new(), config, policy, seed: [number; 32] };
        Station {
            node: header.node(),
            recording: vec![header.to_line()],
            open: Vec::new(),
            effects: BTreeSet::new(),
            starts: BTreeMap::new(),
            loads: Vec::new(),
            calls: BTreeSet::new(),
            installed: 0,
        }
    }

    fn handle(&mut self, now: Now, input: Input) -> Vec<Output> {
        self.node.handle(now, input.clone());
        let outputs: Vec<Output> = std::iter::from_fn(|| self.node.poll_output()).collect();
        let mut digest = OutputDigest::default();
        outputs.iter().for_each(|output| digest.add(output));
        self.recording.push(Line { now, input, outputs: digest.to_hex() }.to_line());
        outputs
    }

    fn take(&mut self, output: Output) {
        match output {
            Output::Do(effect) => {
                assert!(self.effects.insert(effect.id), "{effect:?} is given out twice");
                let beside = |other: &Effect| other.job.is_ordered() && other.user == effect.user;
                assert!(!effect.job.is_ordered() || !self.open.iter().any(beside), "{effect:?} overtakes");
                if let Job::Workers(WorkerJob::Start { worker, .. }) = &effect.job {
                    self.starts.insert(worker.clone(), effect.id);
                }
                if let Job::Workers(WorkerJob::Load(load)) = &effect.job {
                    self.loads.push((load.worker.clone(), load.slot));
                }
                self.open.push(effect);
            }
            Output::Abandon(id) => {
                let abandoned = self.open.iter().find(|effect| effect.id == id);
                assert!(abandoned.is_some_and(|effect| !effect.job.is_ordered()), "{id:?} cannot be abandoned");
            }
            Output::Reply(call, result) => {
                assert!(self.calls.remove(&call), "{call:?} is answered twice");
                let nodes = result.map(|result| result.nodes).unwrap_or_default();
                self.installed += u32::from(nodes.iter().any(|node| node.outcome.is_ok()));
            }
            Output::Fresh(call) | Output::Applied(call, _) => {
                assert!(self.calls.remove(&call), "{call:?} is answered twice")
            }
            Output::Send(_)
            | Output::Attach(..)
            | Output::Release(..)
            | Output::Notice(_)
            | Output::Application(..)
            | Output::Stopped => {}
        }
    }

    fn check(&self) {
        let (counters, gist) = (self.node.counters(), self.node.view().gist.state_counts());
        assert_eq!(counters.effects_open, self.open.len());
        assert!(counters.posts_open <= POSTS_MAX);
        assert!(counters.route_waiters <= ROUTE_WAITING_MAX && counters.count_waiters <= FRESH_WAITING_MAX);
        assert!(gist.querying + gist.responding <= ROUTES_MAX && gist.associations <= ASSOCIATIONS_MAX);
    }

    /// Gives what was recorded to a new node.
    fn replay(&self) {
        let mut replay = Replay::begin(&self.recording[0]).expect("a good header");
        for line in &self.recording[1..] {
            replay.line(line).expect("the same outputs");
        }
    }
}

/// Returns the outcome of a job where all goes well.
fn good(job: &Job, at: usize) -> EffectOutcome {
    match job {
        Job::Packages(PackageJob::Fetch { digest: Digest(bytes), .. }) => {
            let flavour = if bytes[0] & 0x20 == 0 { Flavour::Wasm } else { Flavour::Osgi };
            EffectOutcome::Fetched { manifest: Box::new(catalogue::manifest(bytes[0])), flavour }
        }
        Job::Measure => EffectOutcome::Measured(Box::default()),
        Job::ReadMeters => EffectOutcome::Metered(Box::default()),
        Job::AskAddress { .. } => EffectOutcome::Vouched(Digest([7; 32])),
        Job::FindHolder { .. } => EffectOutcome::Held(Holder { prefixes: Vec::new(), until: UnixTime(0) }),
        Job::AskList { .. } => EffectOutcome::Listed(None),
        Job::Route(_) => EffectOutcome::Routed(Some(ADDRESSES[at])),
        Job::Packages(PackageJob::Compose { .. })
        | Job::Workers(_)
        | Job::Filters(_)
        | Job::Intercepts(_)
        | Job::Permit(_)
        | Job::Limit(_)
        | Job::Floating(_)
        | Job::Addresses(_)
        | Job::Store(_) => EffectOutcome::Done,
    }
}

fn any_outcome(which: u8) -> EffectOutcome {
    match which % 6 {
        0 | 1 => EffectOutcome::Refused(Refusal::new(RefusalKind::NodeFailed, "fuzzed")),
        2 => EffectOutcome::Done,
        3 => EffectOutcome::Routed(None),
        4 if which & 0x40 != 0 => EffectOutcome::Metered(Box::default()),
        4 => EffectOutcome::Measured(Box::default()),
        _ => {
            let flavour = if which & 0x80 == 0 { Flavour::Wasm } else { Flavour::Osgi };
            EffectOutcome::Fetched { manifest: Box::new(catalogue::manifest(which)), flavour }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the seeds get to where modules are installed on both nodes, or the fuzzer would have to guess the way.
    #[test]
    fn seeds_reach_what_they_are_for() {
        for (seed, installed) in [("alone", [1, 0]), ("path", [1, 0]), ("removed", [2, 0]), ("service", [3, 0])] {
            let path = format!("{}/corpus/node/{seed}", env!("CARGO_MANIFEST_DIR"));
            let world = World::play(&std::fs::read(path).expect("the seed is there"));
            assert_eq!(world.stations.map(|station| station.installed), installed, "{seed}");
        }
    }

    #[test]
    fn modules_are_in_the_catalogue() {
        for which in 0..=u8::MAX {
            assert_eq!(catalogue::manifest(which).module(), catalogue::module(which));
        }
    }
}
