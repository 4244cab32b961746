// SPDX-License-Identifier: Apache-2.0
//! The node's face: inputs in, outputs out. How things move between the engines is in `drain.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use netserv_controller::Controller;
use netserv_gist::{Disposition, Engine, QueryId};
use netserv_model::api::PostRequest;
use netserv_model::application::ApplicationInfo;
use netserv_model::audit::Asked;
use netserv_model::effect::{Effect, EffectId, EffectOutcome, Job, Measured, PolicyChange, RequestId};
use netserv_model::policy::NodePolicy;
use netserv_model::request::{ModuleState, ModuleStatus};
use netserv_model::{Instant, NodeId, Now, Refusal, RefusalKind};
use netserv_nslp::{LocalId, LocalPath, LocalRequest, Nslp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::applications::{ApplicationConfig, ApplicationCounters, Applications};
use crate::calls::{self, Calls};
use crate::config::NodeConfig;
use crate::input::{CallId, Input, Token, What};
use crate::lanes::Lanes;
use crate::limits::{DRAIN_STEPS_MAX, STOP_WAIT};
use crate::output::Output;
use crate::routes::{self, Look, Routes};

/// One node. Its engines are one each.
#[derive(Debug)]
pub struct Node {
    pub(crate) gist: Engine,
    pub(crate) nslp: Nslp,
    pub(crate) controller: Controller,
    /// The clocks at the last input.
    pub(crate) now: Now,
    pub(crate) lanes: Lanes,
    /// Effects that were given out and have no outcome yet.
    open: BTreeSet<EffectId>,
    pub(crate) routes: Routes,
    pub(crate) calls: Calls,
    /// Those who wait for a reading of meters.
    pub(crate) usage_calls: Calls,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) measured: Measured,
    /// When each request arrived that is not answered, and what it asks; the controller bounds them.
    pub(crate) arrived: BTreeMap<RequestId, (Instant, Box<Asked>)>,
    pub(crate) posted: BTreeMap<LocalId, CallId>,
    pub(crate) name: NodeId,
    pub(crate) application_config: ApplicationConfig,
    pub(crate) applications: Applications,
    /// Datagrams that wait for an NSLP's decision; GIST bounds them.
    pub(crate) held: BTreeMap<QueryId, Token>,
    pub(crate) counters: NodeCounters,
    pub(crate) stop: Stop,
    /// Steps that are left of this drain.
    steps: usize,
    next_local: u64,
    next_effect: u64,
}

/// How far the node's stop is.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    /// When it ends at the latest; nothing if nobody wants it.
    by: Option<Instant>,
    /// What was used is stored.
    pub(crate) settled: bool,
    /// It was said that it ended.
    said: bool,
}

/// What a node counted by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Outcomes of effects that nothing waited for.
    pub stray_outcomes: u64,
    /// Calls of the NSLP that GIST refused.
    pub calls_refused: u64,
    /// Drains that were cut off at [`DRAIN_STEPS_MAX`].
    pub drains_cut: u64,
    /// Effects under way.
    pub effects_open: usize,
    /// Ordered effects that wait for those.
    pub effects_waiting: usize,
    /// Requests that the controller has not answered.
    pub requests_open: usize,
    /// Clients' requests that the NSLP has not answered.
    pub posts_open: usize,
    /// Messages and clients' requests that wait for the node's own address toward a destination.
    pub route_waiters: usize,
    /// Calls and requests that wait for fresh counters.
    pub count_waiters: usize,
}

/// What can be seen of a node without changing it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// GIST.
    pub gist: &'a Engine,
    /// The NSLP.
    pub nslp: &'a Nslp,
    /// The controller.
    pub controller: &'a Controller,
    /// What was last measured.
    pub measured: &'a Measured,
}

impl Node {
    /// Returns a node without modules or state. Give a `seed` that nobody can guess: cookies and session ids are made
    /// from it.
    ///
    /// # Panics
    /// If the peer identity is empty or too long, as [`Engine::new`].
    pub fn new(config: NodeConfig, policy: NodePolicy, seed: [u8; 32]) -> Node {
        // Each part has a seed of its own, so that none sees another's random numbers.
        let mut rng = StdRng::from_seed(seed);
        let mut gist = Engine::new(config.gist, rng.random());
        gist.set_own_addresses(config.nslp.own_addresses.iter().copied());
        let name = config.nslp.node.clone();
        let mut nslp = Nslp::new(config.nslp, rng.random());
        gist.set_neighbours(policy.domain.neighbours.clone());
        nslp.handle_domain(policy.domain.clone());
        Node {
            gist,
            name,
            application_config: config.applications,
            applications: Applications::default(),
            nslp,
            controller: Controller::new(policy),
            now: Now::default(),
            lanes: Lanes::default(),
            open: BTreeSet::new(),
            routes: Routes::default(),
            calls: Calls::default(),
            usage_calls: Calls::default(),
            outputs: VecDeque::new(),
            measured: Measured::default(),
            arrived: BTreeMap::new(),
            posted: BTreeMap::new(),
            held: BTreeMap::new(),
            counters: NodeCounters::default(),
            stop: Stop::default(),
            steps: usize::MAX,
            next_local: 0,
            next_effect: EFFECTS_FIRST,
        }
    }

    /// Takes one input. Take every output before the next.
    pub fn handle(&mut self, now: Now, input: Input) {
        self.now = now;
        self.steps = DRAIN_STEPS_MAX;
        let at = now.instant;
        match input {
            Input::Restore(stored) => self.controller.restore(now, *stored),
            Input::Policy(call, policy) => {
                self.gist.set_neighbours(policy.domain.neighbours.clone());
                self.nslp.handle_domain(policy.domain.clone());
                self.controller.set_policy(now, PolicyChange(call.0), *policy);
            }
            Input::Addresses(addresses) => {
                self.gist.set_own_addresses(addresses.iter().copied());
                self.nslp.handle_addresses(addresses);
            }
            Input::Ingress(ingress) => self.gist.set_ingress(ingress),
            Input::RoutesChanged(change) => {
                self.routes.changed();
                self.nslp.handle_routes(now, change);
            }
            // A datagram for the node itself never goes on.
            Input::Datagram(datagram) => drop(self.gist.handle_datagram(at, datagram.view(true))),
            Input::Intercepted(token, datagram) => {
                let disposition = self.gist.handle_datagram(at, datagram.view(false));
                match disposition {
                    Disposition::Held(query) => drop(self.held.insert(query, token)),
                    Disposition::Consumed | Disposition::Forward { .. } => {
                        self.outputs.push_back(Output::Release(token, disposition));
                    }
                }
            }
            Input::Icmp(error) => self.gist.handle_icmp_error(at, &error),
            Input::Accepted(token, ends, channel) => {
                let association = self.gist.handle_accepted(at, ends.local, ends.peer, channel);
                self.outputs.push_back(Output::Attach(token, association));
            }
            Input::Connected(association, channel) => self.gist.handle_connected(at, association, channel),
            Input::Bytes(association, bytes) => self.gist.handle_stream(at, association, &bytes),
            Input::Written(association, bytes) => self.gist.handle_written(at, association, bytes),
            Input::Closed(association, error) => self.gist.handle_closed(at, association, error),
            Input::Post(call, request) => self.post(call, request),
            Input::Ask(call, what) => {
                let calls = match what {
                    What::Counters => &mut self.calls,
                    What::Usage => &mut self.usage_calls,
                };
                if calls.wait(calls::Waiter::Call(call)).is_some() {
                    self.outputs.push_back(Output::Fresh(call));
                }
            }
            Input::Application(client, line, call) => self.application(client, line, *call),
            Input::ApplicationGone(client) => self.application_gone(client),
            Input::Done(id, outcome) => self.done(id, outcome),
            Input::News(news) => self.controller.handle_news(now, news),
            Input::Timeout => {
                self.gist.handle_timeout(at);
                self.nslp.handle_timeout(now);
                self.controller.handle_timeout(now);
            }
            Input::Stop => {
                self.stop.by.get_or_insert(at + STOP_WAIT);
                self.nslp.handle_stop(now);
                self.controller.handle_stop(now);
            }
        }
    }

    /// Returns the next output, or nothing if there is none for now.
    pub fn poll_output(&mut self) -> Option<Output> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            // Counted down also by the last step, so that a cut is told from an end.
            self.steps = self.steps.checked_sub(1)?;
            if self.steps == 0 {
                self.counters.drains_cut += 1;
                return None;
            }
            if !self.step() {
                self.steps = usize::MAX;
                return None;
            }
        }
    }

    /// Returns when [`Input::Timeout`] is due next, and for what.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.steps == 0 {
            return Some((self.now.instant, "rest of a drain"));
        }
        let stop = self.stop.by.filter(|_| !self.stop.said).map(|by| (by, "stop"));
        let engines = [self.gist.poll_timeout(), self.nslp.poll_timeout(), self.controller.poll_timeout(), stop];
        engines.into_iter().flatten().min()
    }

    /// Returns what can be seen of the node.
    pub fn view(&self) -> View<'_> {
        View { gist: &self.gist, nslp: &self.nslp, controller: &self.controller, measured: &self.measured }
    }

    /// Returns what the node counted by itself.
    pub fn counters(&self) -> NodeCounters {
        NodeCounters {
            effects_open: self.open.len(),
            effects_waiting: self.lanes.waiting(),
            requests_open: self.arrived.len(),
            posts_open: self.posted.len(),
            route_waiters: self.routes.waiting(),
            count_waiters: self.calls.waiting() + self.usage_calls.waiting(),
            ..self.counters
        }
    }

    /// Returns the programs that are NSLPs, by NSLPID.
    pub fn applications(&self) -> Vec<ApplicationInfo> {
        self.applications.list()
    }

    /// Returns what was counted of those.
    pub fn application_counters(&self) -> ApplicationCounters {
        self.applications.counters
    }

    /// Returns the modules with what they were last found to have counted, by user and install order.
    pub fn modules(&self, now: Now) -> Vec<ModuleStatus> {
        let mut modules = self.controller.modules(now);
        self.fill_in(&mut modules);
        modules
    }

    /// Returns the modules of users that are left on the node.
    pub fn user_modules(&self, now: Now) -> Vec<ModuleStatus> {
        let mut modules = self.controller.user_modules(now);
        self.fill_in(&mut modules);
        modules
    }

    /// Returns how busy the node was when it was last measured.
    pub fn load(&self) -> netserv_model::request::NodeLoad {
        self.controller.load()
    }

    /// Puts into reports what only measuring tells.
    pub(crate) fn fill_in(&self, modules: &mut [ModuleStatus]) {
        if modules.is_empty() {
            return;
        }
        let counts: BTreeMap<_, _> =
            self.measured.modules.iter().map(|counts| ((&counts.worker, counts.slot), counts)).collect();
        for status in modules {
            status.addresses = self.measured.addresses.get(&status.user).cloned().unwrap_or_default();
            // What drains has another place than what is installed under its name.
            if status.state == ModuleState::Draining {
                continue;
            }
            let place = self.controller.place(&status.user, &status.module.name);
            if let Some(counts) = place.as_ref().and_then(|(worker, slot)| counts.get(&(worker, *slot))) {
                (status.packets, status.counters) = (counts.packets, counts.counters.clone());
                status.server = counts.server;
            }
        }
    }

    /// Starts an effect of the node's own.
    pub(crate) fn start(&mut self, id: EffectId, job: Job) {
        self.next_effect = self.next_effect.max(id.0 + 1);
        self.give_out(Effect { id, user: None, job });
    }

    /// Gives an effect to the shell.
    pub(crate) fn give_out(&mut self, effect: Effect) {
        self.open.insert(effect.id);
        self.outputs.push_back(Output::Do(effect));
    }

    /// Returns the name of the next effect of the node's own.
    pub(crate) fn next_effect(&self) -> EffectId {
        EffectId(self.next_effect)
    }

    fn post(&mut self, call: CallId, request: Box<PostRequest>) {
        match request.path {
            Some(path) if path.source.is_none() => self.look(path.destination, routes::Waiter::Post(call, request)),
            Some(_) | None => self.post_from(call, *request, None),
        }
    }

    /// Hands a client's request to the NSLP; `source` is the node's own address toward its destination, if it is not in
    /// the request.
    pub(crate) fn post_from(&mut self, call: CallId, request: PostRequest, source: Option<std::net::IpAddr>) {
        let path = match request.path {
            None => None,
            Some(path) => match path.source.or(source) {
                Some(source) => Some(LocalPath { source, destination: path.destination }),
                None => {
                    let refusal = Refusal::new(RefusalKind::NoNode, format!("no route to {}", path.destination));
                    return self.reply(call, refusal);
                }
            },
        };
        let id = LocalId(self.next_local);
        self.next_local += 1;
        let timeout = std::time::Duration::from_millis(request.timeout_ms);
        let local = LocalRequest { id, message: request.message, path, session: request.session, timeout };
        match self.nslp.handle_local(self.now, local) {
            Ok(()) => drop(self.posted.insert(id, call)),
            Err(refusal) => self.reply(call, refusal),
        }
    }

    /// Goes on with what needs the node's own address toward a destination, as soon as that is known.
    pub(crate) fn look(&mut self, destination: std::net::IpAddr, waiter: routes::Waiter) {
        let effect = self.next_effect();
        match self.routes.look(destination, waiter, effect) {
            Look::Known(waiter, local) => self.routed(waiter, local),
            Look::Ask => self.start(effect, Job::Route(destination)),
            Look::Wait => {}
        }
    }

    fn done(&mut self, id: EffectId, outcome: EffectOutcome) {
        if !self.open.remove(&id) {
            self.counters.stray_outcomes += 1;
            return;
        }
        if id.0 < EFFECTS_FIRST {
            if let Some(next) = self.lanes.done(id) {
                self.give_out(next);
            }
            self.controller.handle_outcome(self.now, id, outcome);
            let waiters = self.usage_calls.end(id);
            return self.fresh(waiters);
        }
        if self.routes.is_asking(id) {
            let local = if let EffectOutcome::Routed(local) = outcome { local } else { None };
            return self.route_known(id, local);
        }
        let waiters = self.calls.end(id);
        self.counted(waiters, outcome);
    }

    /// Says that the node has stopped, once that is so; returns whether it did.
    pub(crate) fn stopped(&mut self) -> bool {
        let now = self.now.instant;
        let done = || self.stop.settled && self.lanes.is_empty() && self.nslp.has_said_farewell(now);
        let stops = !self.stop.said && self.stop.by.is_some_and(|by| by <= now || done());
        if stops {
            self.stop.said = true;
            self.outputs.push_back(Output::Stopped);
        }
        stops
    }

    fn reply(&mut self, call: CallId, refusal: Refusal) {
        self.outputs.push_back(Output::Reply(call, Box::new(Err(refusal))));
    }
}

/// The first name of an effect of the node's own; the controller counts from zero and never gets here.
const EFFECTS_FIRST: u64 = 1 << 63;
