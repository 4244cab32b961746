// SPDX-License-Identifier: Apache-2.0
//! The node's one control loop: every input is an [`Event`], every engine is called here and nowhere else.
//!
//! After each event the loop drains the engines in a fixed order: NSLP calls → GIST, GIST events → NSLP, NSLP requests →
//! controller, commands → executor, results → API, transmits → network. Then it sleeps until the next event or the
//! earliest deadline.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_controller::Controller;
use netserv_gist as gist;
use netserv_model::api::{ModuleList, NodeInfo, PostRequest, RequestResult};
use netserv_model::effect::RequestId;
use netserv_model::request::{Ask, Body, ModuleStatus, NodeReport, Request};
use netserv_model::{Instant, Now, Refusal, RefusalKind, limits};
use netserv_nslp::{LocalId, LocalPath, LocalRequest, Nslp};
use netserv_wire::gist::{Direction, Mri};
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;
use crate::config::{Config, Role};
use crate::effects::Executor;
use crate::event::{Call, ContainerEvent, Event, SignalInput};
use crate::logs::Logs;
use crate::machine::about::About;
use crate::machine::load;
use crate::metrics;
use crate::metrics::exposition::Exposition;
use crate::metrics::gauges::Counted;
use crate::packet_loop::PacketEvent;
use crate::packet_loop::feed::TraceRefusal;
use crate::record::Record;
use crate::signal::SignalIo;

/// Steps of one drain; what is left is done after the next event, so that the engines cannot keep the loop to themselves.
const DRAIN_STEPS_MAX: usize = 10_000;
/// How long an answer waits for the counters of containers.
const STATS_WAIT: std::time::Duration = std::time::Duration::from_millis(200);
/// How long an answer waits for the packet thread to name its devices.
const DEVICES_WAIT: std::time::Duration = std::time::Duration::from_millis(100);

/// The loop's state.
pub struct ControlLoop {
    clock: Clock,
    config: Config,
    logs: Logs,
    engine: gist::Engine,
    nslp: Nslp,
    controller: Controller,
    executor: Executor,
    signal: SignalIo,
    record: Record,
    posted: BTreeMap<LocalId, oneshot::Sender<Result<RequestResult, Refusal>>>,
    next_local: u64,
    /// When each request arrived that the controller has not answered; it answers each, and the NSLP bounds them.
    arrived: BTreeMap<RequestId, Instant>,
    waiting_for_stats: Vec<StatsWaiter>,
    about: About,
}

struct StatsWaiter {
    deadline: Instant,
    reply: StatsReply,
}

enum StatsReply {
    Request(RequestId, Box<Request>),
    Modules(oneshot::Sender<ModuleList>),
    Metrics(oneshot::Sender<String>),
}

/// The parts that the loop is made of.
pub struct Parts {
    /// The node's clocks.
    pub clock: Clock,
    /// What the operator set.
    pub config: Config,
    /// The node's log.
    pub logs: Logs,
    /// The GIST engine.
    pub engine: gist::Engine,
    /// The NSLP.
    pub nslp: Nslp,
    /// The controller.
    pub controller: Controller,
    /// Carries out commands.
    pub executor: Executor,
    /// Signaling sockets.
    pub signal: SignalIo,
    /// Records inputs.
    pub record: Record,
    /// What the node says of itself.
    pub about: About,
}

impl ControlLoop {
    /// Puts the loop together.
    pub fn new(parts: Parts) -> ControlLoop {
        let Parts { clock, config, logs, engine, nslp, controller, executor, signal, record, about } = parts;
        ControlLoop {
            clock,
            config,
            logs,
            engine,
            nslp,
            controller,
            executor,
            signal,
            record,
            posted: BTreeMap::new(),
            next_local: 0,
            arrived: BTreeMap::new(),
            waiting_for_stats: Vec::new(),
            about,
        }
    }

    /// Runs until told to stop, then takes away what the node added to the machine.
    pub async fn run(mut self, mut events: mpsc::Receiver<Event>) {
        self.restore();
        self.drain();
        loop {
            let deadline = self.deadline();
            let event = tokio::select! {
                event = events.recv() => event,
                // Other tasks have their turn first.
                () = tokio::task::yield_now(), if self.executor.has_unheard() => {
                    self.hear_one();
                    self.drain();
                    continue;
                }
                () = sleep_until(self.clock, deadline) => {
                    self.handle_timeout();
                    self.drain();
                    continue;
                }
            };
            match event {
                None | Some(Event::Stop) => break,
                Some(event) => self.handle(event),
            }
            self.drain();
        }
        self.executor.stop();
        self.signal.stop();
    }

    fn restore(&mut self) {
        match self.executor.stored() {
            Ok(records) => {
                if !records.is_empty() {
                    tracing::info!(modules = records.len(), "restoring what was installed");
                }
                self.controller.restore(self.clock.now(), records);
            }
            Err(error) => tracing::error!(%error, "the stored modules cannot be read"),
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.clock.now();
        if let Some(addresses) = self.signal.changed_addresses() {
            self.nslp.handle_addresses(addresses);
        }
        match event {
            Event::Signal(input) => self.handle_signal(now, input),
            Event::Intercepted => {
                for packet in self.signal.intercepted() {
                    self.handle_signal(now, SignalInput::Intercepted(Box::new(packet)));
                }
            }
            Event::Api(call) => self.handle_call(call),
            Event::Container(event) => self.handle_container(&event),
            Event::Launched(launched) => self.executor.launched(*launched),
            Event::Network(event) => self.executor.network_changed(event),
            Event::Media(event) => self.executor.media_changed(event),
            Event::Fetched(job, result) => self.executor.fetched(job, result),
            Event::Composed(parts, result) => self.executor.composed(parts, result),
            Event::Packet(event) => self.handle_packet_event(event),
            Event::TraceEnded(id) => self.executor.end_trace(id),
            Event::Reload => self.reload(),
            Event::Stop => {}
        }
    }

    fn handle_signal(&mut self, now: Now, input: SignalInput) {
        self.record.write(now, &input);
        self.signal.handle(now, input, &mut self.engine);
    }

    fn handle_timeout(&mut self) {
        let now = self.clock.now();
        self.engine.handle_timeout(now.instant);
        self.nslp.handle_timeout(now);
        self.controller.handle_timeout(now);
        self.answer_stats_waiters(now.instant);
    }

    fn deadline(&self) -> Option<Instant> {
        let engines = [self.engine.poll_timeout(), self.nslp.poll_timeout(), self.controller.poll_timeout()];
        let engines = engines.into_iter().flatten().map(|(at, _)| at);
        engines.chain(self.waiting_for_stats.iter().map(|waiter| waiter.deadline)).min()
    }

    fn drain(&mut self) {
        for _ in 0..DRAIN_STEPS_MAX {
            // Filter changes are made together when nothing else is to be done, and may themselves have consequences.
            if !self.drain_step() && !self.executor.finish_commands() {
                return;
            }
        }
        tracing::warn!(steps = DRAIN_STEPS_MAX, "the engines kept the control loop busy; the rest waits for its turn");
    }

    /// Moves one thing from one engine to the next; returns whether there was one.
    fn drain_step(&mut self) -> bool {
        let now = self.clock.now();
        if let Some(call) = self.nslp.poll_api_call() {
            self.hand_to_gist(call);
        } else if let Some(event) = self.engine.poll_event() {
            if let gist::Event::Malformed { from, error } = &event {
                tracing::debug!(?from, %error, "malformed GIST message");
            }
            self.nslp.handle_event(now, event);
        } else if let Some(transmit) = self.engine.poll_transmit() {
            // Before the commands: the next node is to work on a request while this one does.
            self.signal.transmit(transmit);
        } else if let Some((id, request)) = self.nslp.poll_request() {
            self.take_request(now, id, request);
        } else if let Some(event) = self.executor.poll_event() {
            // Before further commands: a command that failed must not be followed as if it had not.
            self.controller.handle_event(now, event);
        } else if !self.executor.is_busy()
            && let Some(command) = self.controller.poll_command()
        {
            self.executor.carry_out(command);
        } else if let Some((id, report)) = self.executor.poll_report() {
            self.take_report(now, id, report);
        } else if let Some((id, result)) = self.nslp.poll_result() {
            if let Some(reply) = self.posted.remove(&id) {
                // The client may have gone.
                let _ = reply.send(Ok(result));
            }
        } else {
            return false;
        }
        true
    }

    /// Gives a request to the controller; one that asks for modules waits for their counters first.
    fn take_request(&mut self, now: Now, id: RequestId, request: Request) {
        let user = request.user.as_ref().map(ToString::to_string);
        tracing::info!(method = request.body.method(), user, session = %request.session, "request");
        self.arrived.insert(id, now.instant);
        match &request.body {
            Body::Probe(probe) if probe.ask.contains(&Ask::Modules) => {
                self.wait_for_stats(StatsReply::Request(id, Box::new(request)));
            }
            Body::Probe(_) | Body::Setup(_) | Body::Remove(_) => self.hand_to_controller(now, id, request),
        }
    }

    fn hand_to_controller(&mut self, now: Now, id: RequestId, request: Request) {
        self.controller.set_load(load::measure(self.controller.load(), self.executor.packet_totals().shown));
        self.controller.handle_request(now, id, request);
    }

    /// Completes the controller's report with what only the daemon knows, and gives it to the NSLP.
    fn take_report(&mut self, now: Now, id: RequestId, mut report: NodeReport) {
        if let Some(arrived) = self.arrived.remove(&id) {
            report.took_us = u64::try_from(now.instant.since(arrived).as_micros()).unwrap_or(u64::MAX);
        }
        self.add_stats(&mut report.modules);
        tracing::info!(outcome = %report.outcome, took_us = report.took_us, "answer");
        self.nslp.handle_report(now, id, report);
    }

    fn hand_to_gist(&mut self, call: gist::ApiCall) {
        let now = self.clock.now();
        let (handle, mri) = match &call {
            gist::ApiCall::SendMessage { handle, mri, .. } => (Some(*handle), mri),
            gist::ApiCall::SetStateLifetime { mri, .. } | gist::ApiCall::InvalidateRoutingState { mri, .. } => {
                (None, mri)
            }
        };
        let local = toward(mri).and_then(|address| self.signal.source_for(address));
        let result = match local {
            Some(local) => self.engine.handle_api(now.instant, call, local),
            None => Err(gist::ApiError::NoRoute),
        };
        if let Err(error) = result {
            tracing::debug!(%error, "GIST refused a call");
            if let Some(handle) = handle {
                self.nslp.handle_api_error(now, handle, error);
            }
        }
    }

    fn handle_call(&mut self, call: Call) {
        match call {
            Call::Request(request, reply) => self.post(*request, reply),
            Call::Node(reply) => self.tell_node(reply),
            Call::Modules(reply) => self.wait_for_stats(StatsReply::Modules(reply)),
            Call::Metrics(reply) => self.wait_for_stats(StatsReply::Metrics(reply)),
            Call::Trace(request, reply) => {
                let started = match self.config.role {
                    Role::Host => Err(TraceRefusal::Host),
                    Role::Node => self.executor.start_trace(&request),
                };
                // If the client has gone, its feed ends the trace with it.
                let _ = reply.send(started.map(|feed| (feed, self.about.driver.clone())));
            }
        }
    }

    fn tell_node(&mut self, reply: oneshot::Sender<NodeInfo>) {
        let mut info = NodeInfo {
            node: self.config.node.clone(),
            role: self.config.role.as_str().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            driver: self.about.driver.clone(),
            started: self.about.started,
            load: load::measure(self.controller.load(), self.executor.packet_totals().shown),
            missing: self.about.missing.clone(),
            devices: self.about.devices.clone(),
            planes: self.about.planes.clone(),
        };
        let devices = self.executor.ask_devices();
        tokio::spawn(async move {
            // Those of the start, if the packet thread has no time; none, if it has ended.
            if let Ok(devices) = tokio::time::timeout(DEVICES_WAIT, devices).await {
                info.devices = devices.unwrap_or_default();
            }
            // The client may have gone.
            let _ = reply.send(info);
        });
    }

    fn post(&mut self, request: PostRequest, reply: oneshot::Sender<Result<RequestResult, Refusal>>) {
        let now = self.clock.now();
        let result = self.start_request(now, request);
        match result {
            Ok(id) => {
                self.posted.insert(id, reply);
            }
            Err(refusal) => {
                let _ = reply.send(Err(refusal));
            }
        }
    }

    fn start_request(&mut self, now: Now, request: PostRequest) -> Result<LocalId, Refusal> {
        if self.posted.len() >= limits::REQUESTS_PENDING_MAX {
            return Err(Refusal::new(RefusalKind::QuotaExceeded, "the node works on too many requests"));
        }
        let path = match request.path {
            None => None,
            Some(path) => {
                let no_route = || Refusal::new(RefusalKind::NoNode, format!("no route to {}", path.destination));
                let source = match path.source {
                    Some(source) => source,
                    None => self.signal.source_for(path.destination).ok_or_else(no_route)?,
                };
                Some(LocalPath { source, destination: path.destination })
            }
        };
        let id = LocalId(self.next_local);
        self.next_local += 1;
        let timeout = std::time::Duration::from_millis(request.timeout_ms);
        let local = LocalRequest { id, message: request.message, path, session: request.session, timeout };
        self.nslp.handle_local(now, local)?;
        Ok(id)
    }

    fn hear_one(&mut self) {
        if let Some(event) = self.executor.poll_unheard() {
            self.handle_container(&event);
        }
    }

    fn handle_container(&mut self, event: &ContainerEvent) {
        for line in self.executor.container_changed(event) {
            let module = line.slot.and_then(|slot| self.controller.module_at(&line.worker, slot));
            let user = &line.worker.user;
            let source = module.map_or_else(|| user.to_string(), |module| format!("{user}/{module}"));
            self.logs.push(line.level.as_str(), &source, &line.text);
        }
        self.answer_stats_waiters(self.clock.now().instant);
    }

    fn handle_packet_event(&mut self, event: PacketEvent) {
        match event {
            PacketEvent::Stalled { worker, generation, slot } => {
                let refusal = Refusal::new(RefusalKind::Stalled, "the module did not come to an end in time");
                self.executor.condemn(&worker, generation, refusal, slot);
            }
            PacketEvent::RingBroken { worker, generation, detail } => {
                tracing::warn!(%worker, detail, "a worker broke the rules of its ring");
                let refusal = Refusal::new(RefusalKind::NodeFailed, format!("broke the rules of its ring: {detail}"));
                self.executor.condemn(&worker, generation, refusal, None);
            }
            PacketEvent::DriverFailed { detail } => {
                tracing::error!(detail, "the forwarding plane failed; packets pass unseen until the node is restarted");
            }
        }
    }

    fn reload(&mut self) {
        let Some(path) = self.executor.config_path() else {
            return tracing::warn!("there is no configuration file to read again");
        };
        match Config::load(&path).and_then(|config| Ok((config.policy()?, config))) {
            Ok((mut policy, config)) => {
                self.about.runtimes.add_to(&mut policy);
                let revoked = self.controller.counters().revoked;
                self.controller.set_policy(self.clock.now(), policy);
                let modules = self.controller.counters().revoked - revoked;
                if modules > 0 {
                    tracing::warn!(modules, "modules are removed, since the configuration no longer allows them");
                }
                self.executor.set_users(&config);
                self.config.users = config.users;
                self.config.admission = config.admission;
                tracing::info!("users and admission are read again; other changes need a restart");
            }
            Err(error) => tracing::error!(error = format!("{error:#}"), "the configuration stays as it was"),
        }
    }

    fn wait_for_stats(&mut self, reply: StatsReply) {
        let now = self.clock.now().instant;
        self.executor.ask_stats();
        self.waiting_for_stats.push(StatsWaiter { deadline: now + STATS_WAIT, reply });
        self.answer_stats_waiters(now);
    }

    fn answer_stats_waiters(&mut self, now: Instant) {
        let complete = !self.executor.stats_missing();
        let waiters = std::mem::take(&mut self.waiting_for_stats);
        for waiter in waiters {
            if !complete && waiter.deadline > now {
                self.waiting_for_stats.push(waiter);
                continue;
            }
            match waiter.reply {
                StatsReply::Request(id, request) => self.hand_to_controller(self.clock.now(), id, *request),
                StatsReply::Modules(reply) => {
                    let _ = reply.send(ModuleList { modules: self.modules() });
                }
                StatsReply::Metrics(reply) => self.answer_metrics(reply),
            }
        }
    }

    fn modules(&self) -> Vec<ModuleStatus> {
        let mut modules = self.controller.modules(self.clock.now());
        self.add_stats(&mut modules);
        modules
    }

    fn add_stats(&self, modules: &mut [ModuleStatus]) {
        for status in modules {
            status.addresses = self.executor.addresses(&status.user);
            let place = self.controller.place(&status.user, &status.module.name);
            if let Some(Counted { packets, counters, server }) = place.and_then(|place| self.executor.stats(&place)) {
                status.server = *server;
                (status.packets, status.counters) = (*packets, counters.clone());
            }
        }
    }

    /// Answers with the metrics; beside the loop, since the kernel is asked once for each container.
    fn answer_metrics(&self, reply: oneshot::Sender<String>) {
        let (mut out, container_drops) = (self.metrics(), self.executor.container_drops());
        tokio::task::spawn_blocking(move || {
            metrics::container_drops(&mut out, &container_drops());
            let _ = reply.send(out.finish());
        });
    }

    fn metrics(&self) -> Exposition {
        let mut out = Exposition::default();
        metrics::write(
            &mut out,
            &metrics::Sources {
                host_only: self.config.role == Role::Host,
                started: self.about.started,
                gist: &self.engine,
                nslp: &self.nslp,
                controller: &self.controller,
                packets: self.executor.packet_totals(),
                modules: self.modules(),
                media: self.executor.media_counts(),
                storage_failures: self.executor.storage_failures().collect(),
            },
        );
        out
    }
}

/// Returns the end of a flow toward which an MRI points.
fn toward(mri: &Mri) -> Option<IpAddr> {
    let (source, destination) = mri.addresses()?;
    Some(if mri.direction()? == Direction::Downstream { destination } else { source })
}

async fn sleep_until(clock: Clock, deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep(clock.until(deadline)).await,
        None => std::future::pending().await,
    }
}
