// SPDX-License-Identifier: Apache-2.0
//! The node's one control loop: an event becomes an input of the [`Node`], and each output goes to whoever carries it out.
//!
//! It decides nothing and waits for nothing but the next event, answer or deadline: no file, process, lock or answer of the
//! kernel about addresses, routes or rules. What needs one of those is an effect.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use netserv_api::{ConfigChange, DrainReport, ModuleList, NodeInfo, Reloaded, UserList};
use netserv_model::NodeId;
use netserv_model::api::{RequestResult, UsageReport};
use netserv_model::application::ApplicationEvent;
use netserv_model::effect::{Late, Notice, Stored};
use netserv_model::exposition::Exposition;
use netserv_model::notify::Notify;
use netserv_model::policy::NodePolicy;
use netserv_model::trace::TraceRequest;
use netserv_model::{Instant, Now, Refusal, Topic};
use netserv_node::{CallId, ClientId, Input, Node, Output, What};
use netserv_packet_loop::PacketCommand;
use netserv_packet_loop::feed::{Feed, TraceRefusal};
use netserv_packet_loop::thread::PacketThread;
use tokio::sync::{mpsc, oneshot, watch};

use crate::audit::AuditLog;
use crate::caller::{Caller, Reply};
use crate::clock::Clock;
use crate::config::domain::networks_of;
use crate::config::reload::put_off;
use crate::config::tls::Tls;
use crate::config::{Config, Role};
use crate::effects::Effects;
use crate::effects::ticket::Answer;
use crate::event::{
    ApplicationInput, ApplicationPort, Call, DrainReply, Event, Offered, ReadConfig, ReloadReply, SignalInput,
    TraceReply,
};
use crate::inbox::Inbox;
use crate::machine::about::About;
use crate::machine::maintenance::Mark;
use crate::machine::processor::ThreadTime;
use crate::metrics::gauges::{ApplicationCounts, Histogram};
use crate::metrics::{self, Sources};
use crate::newsfeed::NewsFeed;
use crate::operator::Operator;
use crate::record::Recording;
use crate::signal::SignalIo;

/// How long an answer waits for the packet thread to name its devices.
const DEVICES_WAIT: Duration = Duration::from_millis(100);
/// How long metrics wait for the counters of containers' firewalls.
const DROPS_WAIT: Duration = Duration::from_secs(1);

/// The loop's state.
pub struct ControlLoop {
    parts: Parts,
    calls: BTreeMap<CallId, Pending>,
    next_call: u64,
    /// Programs that are NSLPs, or want to be. Their socket bounds them.
    applications: BTreeMap<ClientId, ApplicationPort>,
    /// Those that had no room for what they are to be told, and that the node has to hear of.
    unread: Vec<ClientId>,
    /// Whether it is being written down that the node is drained, or not any more.
    is_marking: bool,
    /// How long single turns held the loop, without what they waited for a processor.
    turns: Histogram,
    /// How late the loop came to what was due.
    lateness: Histogram,
    /// How long single turns waited for something else than a processor.
    waits: Histogram,
    /// That of the loop's thread.
    thread: ThreadTime,
    stop: Stop,
}

/// How far the node's stop is.
#[derive(PartialEq)]
enum Stop {
    No,
    Asked,
    Done,
}

/// Who waits for an answer of the node.
enum Pending {
    Request(Reply<Result<RequestResult, Refusal>>),
    Node(Reply<NodeInfo>),
    Modules(Reply<ModuleList>),
    Usage(Reply<UsageReport>),
    Metrics(Reply<String>),
    Reload(Vec<ConfigChange>, ReloadReply),
    Drain(DrainReply),
}

/// The parts that the loop is made of.
pub struct Parts {
    /// The node's clocks.
    pub clock: Clock,
    /// The node.
    pub node: Node,
    /// What carries out effects.
    pub effects: Effects,
    /// Signaling sockets.
    pub signal: SignalIo,
    /// The packet thread.
    pub packets: PacketThread,
    /// What is counted of programs that are NSLPs.
    pub application_counts: Arc<ApplicationCounts>,
    /// What is recorded, if anything.
    pub recording: Option<Recording>,
    /// What the node says of itself.
    pub about: About,
    /// The operator as a user of the node's own.
    pub operator: Operator,
    /// Keeps over restarts whether the operator drains the node,
    pub mark: Mark,
    /// and whether that is in force.
    pub maintenance: bool,
    /// The configuration file, to be read again on request.
    pub config_path: Option<PathBuf>,
    /// The configuration in force, for the API.
    pub config: watch::Sender<Arc<Config>>,
    /// News for requesters, for the API.
    pub news: NewsFeed,
    /// What was decided.
    pub audit: AuditLog,
    /// The way for events that the loop's own tasks make.
    pub events: mpsc::Sender<Event>,
}

impl ControlLoop {
    /// Puts the loop together. Call it on the thread that will run it.
    pub fn new(parts: Parts) -> ControlLoop {
        let (turns, waits, lateness) = (Histogram::default(), Histogram::default(), Histogram::default());
        let thread = ThreadTime::of_this_thread();
        let (calls, applications, unread) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let (next_call, stop) = (0, Stop::No);
        let is_marking = false;
        ControlLoop { parts, calls, next_call, applications, unread, is_marking, turns, waits, lateness, thread, stop }
    }

    /// Runs until told to stop, and the node has stopped or it is told again; then takes away what the node added to the
    /// machine. `begun` is when the node began: older requests are stale. `stored` is what it kept when it last ran.
    pub async fn run(
        mut self,
        begun: Now,
        stored: Stored,
        mut inbox: Inbox<Event>,
        mut answers: mpsc::UnboundedReceiver<Answer>,
    ) {
        if !stored.installed.is_empty() {
            tracing::info!(modules = stored.installed.len(), "restoring what was installed");
        }
        self.input_at(begun, Input::Restore(Box::new(stored)));
        while self.stop != Stop::Done {
            let deadline = self.parts.node.poll_timeout().map(|(at, _)| at);
            let clock = self.parts.clock;
            tokio::select! {
                biased;
                answer = answers.recv() => self.timed(|this| answer.into_iter().for_each(|answer| this.answer(answer))),
                () = sleep_until(clock, deadline) => self.timed(|this| this.timeout(deadline)),
                event = inbox.next() => match event {
                    None => break,
                    Some(Event::Stop) if self.stop == Stop::Asked => break,
                    Some(event) => self.timed(|this| this.handle(event)),
                },
            }
            // The tasks that read and write are on the same thread.
            tokio::task::yield_now().await;
        }
        // Programs are told by that.
        drop(self.applications);
        let Parts { mut packets, mut signal, effects, recording, audit, .. } = self.parts;
        drop(audit);
        // The rules go with the driver, before what they lead to.
        packets.stop();
        effects.stop().await;
        signal.stop();
        drop(recording);
    }

    fn timed(&mut self, turn: impl FnOnce(&mut ControlLoop)) {
        let begun = self.parts.clock.now().instant;
        let before = self.thread.spent();
        turn(self);
        let spent = self.thread.spent().since(before);
        let held = self.parts.clock.now().instant.since(begun).saturating_sub(spent.runnable);
        self.turns.add(held);
        let slept = if spent.sleeps > 0 { held.saturating_sub(spent.running) } else { Duration::ZERO };
        self.waits.add(slept);
    }

    fn timeout(&mut self, due: Option<Instant>) {
        if let Some(due) = due {
            self.lateness.add(self.parts.clock.now().instant.since(due));
        }
        self.input(Input::Timeout);
    }

    fn answer(&mut self, Answer { id, outcome, cargo }: Answer) {
        if let Some(cargo) = cargo {
            self.parts.effects.keep(cargo);
        }
        self.input(Input::Done(id, outcome));
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Signal(input) => self.signal(input),
            Event::Intercepted => {
                for packet in self.parts.signal.intercepted() {
                    self.signal(SignalInput::Intercepted(Box::new(packet)));
                }
            }
            Event::Addresses(addresses, change) => {
                let all = addresses.all().iter().map(|local| local.address).collect();
                self.parts.signal.set_addresses(addresses);
                self.input(Input::RoutesChanged(change));
                self.input(Input::Addresses(all));
                self.neighbours_may_be_others();
            }
            Event::Ingress(ingress) => self.input(Input::Ingress(ingress)),
            Event::Api(call) => self.call(call),
            Event::Application(input) => self.application(input),
            Event::News(news) => self.input(Input::News(news)),
            Event::Reload => self.read_config(ReloadReply::of_the_node()),
            Event::Config(config, reply) => self.reload(config, reply),
            Event::Drained(on, kept, reply) => self.drained(on, kept, reply),
            Event::Traced(request, feed, reply) => self.traced(&request, feed, reply),
            Event::Stop => {
                self.stop = Stop::Asked;
                self.input(Input::Stop);
            }
        }
    }

    fn signal(&mut self, input: SignalInput) {
        let input = self.parts.signal.input(input);
        self.input(input);
    }

    /// What a program does counts as long as its port is there.
    fn application(&mut self, input: ApplicationInput) {
        match input {
            ApplicationInput::Opened(client, port) => drop(self.applications.insert(client, port)),
            ApplicationInput::Call(client, line, call) if self.applications.contains_key(&client) => {
                self.input(Input::Application(client, line, call));
            }
            ApplicationInput::Call(..) => {}
            ApplicationInput::Gone(client) => {
                if self.applications.remove(&client).is_some() {
                    self.input(Input::ApplicationGone(client));
                }
            }
        }
    }

    /// Tells a program something; one that left no room for it is none any more.
    fn tell_application(&mut self, client: ClientId, event: ApplicationEvent) {
        let counts = &self.parts.application_counts;
        let Some(port) = self.applications.get(&client) else { return ApplicationCounts::add(&counts.lost) };
        match port.offer(event) {
            Offered::Taken => return,
            Offered::Lost => return ApplicationCounts::add(&counts.lost),
            Offered::Full => ApplicationCounts::add(&counts.lost),
        }
        ApplicationCounts::add(&counts.cut);
        if let Some(port) = self.applications.remove(&client) {
            // It may have gone by itself.
            let _ = port.cut.send(());
            self.unread.push(client);
        }
    }

    /// Gives the node an input, and carries out all that comes of it.
    fn input(&mut self, input: Input) {
        self.input_alone(input);
        while let Some(client) = self.unread.pop() {
            self.input_alone(Input::ApplicationGone(client));
        }
    }

    fn input_alone(&mut self, input: Input) {
        self.input_at(self.parts.clock.now(), input);
    }

    fn input_at(&mut self, now: Now, input: Input) {
        if let Some(recording) = &mut self.parts.recording {
            recording.begin(now, &input);
        }
        self.parts.node.handle(now, input);
        while let Some(output) = self.parts.node.poll_output() {
            if let Some(recording) = &mut self.parts.recording {
                recording.output(&output);
            }
            self.carry_out(output);
        }
        if let Some(recording) = &mut self.parts.recording {
            recording.end();
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Send(transmit) => self.parts.signal.transmit(transmit),
            Output::Attach(token, association) => self.parts.signal.attach(token, association),
            Output::Release(token, disposition) => self.parts.signal.release(token, disposition),
            Output::Do(effect) => self.parts.effects.begin(effect),
            Output::Abandon(id) => self.parts.effects.abandon(id),
            Output::Reply(call, result) => {
                if let Some(Pending::Request(reply)) = self.calls.remove(&call) {
                    // The client may have gone.
                    reply.send(*result);
                }
            }
            Output::Fresh(call) => self.fresh(call),
            Output::Application(client, event) => self.tell_application(client, event),
            Output::Applied(call, late) => self.applied(call, &late),
            Output::Notice(notice) => self.tell(notice),
            Output::Stopped => self.stop = Stop::Done,
        }
    }

    fn tell(&mut self, notice: Notice) {
        log(&notice);
        match notice {
            Notice::Notified(notify) => self.parts.news.push(*notify),
            notice @ (Notice::Requested { .. }
            | Notice::Answered { .. }
            | Notice::Dissolved { .. }
            | Notice::Revoked { .. }
            | Notice::Expired { .. }
            | Notice::Resumed { .. }
            | Notice::Forgotten { .. }
            | Notice::Listed { .. }
            | Notice::NotListed { .. }
            | Notice::GaveUp { .. }
            | Notice::NotStored { .. }) => self.parts.audit.take(self.parts.clock.now(), notice),
        }
    }

    fn call(&mut self, call: Call) {
        match call {
            Call::Request(request, reply) => {
                let id = self.pending(Pending::Request(reply));
                self.input(Input::Post(id, request));
            }
            Call::Node(reply) => self.ask(Pending::Node(reply), What::Counters),
            Call::Modules(reply) => self.ask(Pending::Modules(reply), What::Counters),
            Call::Users(reply) => {
                let users = self.parts.node.view().controller.users(self.parts.clock.now());
                reply.send(UserList { users });
            }
            Call::Usage(reply) => self.ask(Pending::Usage(reply), What::Usage),
            Call::Metrics(reply) => self.ask(Pending::Metrics(reply), What::Counters),
            Call::Trace(request, reply) => self.trace(request, reply),
            Call::Reload(reply) => self.read_config(reply),
            Call::Drain(None, reply) => self.ask(Pending::Drain(reply), What::Counters),
            Call::Drain(Some(on), reply) => self.drain(on, reply),
        }
    }

    fn ask(&mut self, pending: Pending, what: What) {
        let id = self.pending(pending);
        self.input(Input::Ask(id, what));
    }

    /// Names a call that waits. The API bounds its clients, and with them these.
    fn pending(&mut self, pending: Pending) -> CallId {
        let id = CallId(self.next_call);
        self.next_call += 1;
        self.calls.insert(id, pending);
        id
    }

    /// Answers a call that waited for fresh counters. The client may have gone.
    fn fresh(&mut self, call: CallId) {
        match self.calls.remove(&call) {
            Some(Pending::Node(reply)) => self.tell_node(reply),
            Some(Pending::Modules(reply)) => {
                let modules = self.parts.node.modules(self.parts.clock.now());
                reply.send(ModuleList { modules });
            }
            Some(Pending::Usage(reply)) => reply.send(self.parts.node.view().controller.usage()),
            Some(Pending::Metrics(reply)) => self.tell_metrics(reply),
            Some(Pending::Drain(reply)) => self.tell_drain(reply),
            Some(Pending::Request(_) | Pending::Reload(..)) | None => {}
        }
    }

    fn trace(&mut self, request: Box<TraceRequest>, reply: TraceReply) {
        if self.parts.config.borrow().role == Role::Host {
            return self.traced(&request, Err(TraceRefusal::Host), reply);
        }
        let (started, is_started) = oneshot::channel();
        self.parts.effects.trace(request.clone(), started);
        let events = self.parts.events.clone();
        tokio::spawn(async move {
            let feed = is_started.await.unwrap_or(Err(TraceRefusal::Ended));
            // The loop may have ended.
            let _ = events.send(Event::Traced(request, feed, reply)).await;
        });
    }

    /// Answers, once it is clear what came of it. If the client has gone, its feed ends the trace with it.
    fn traced(&self, request: &TraceRequest, feed: Result<Feed, TraceRefusal>, reply: TraceReply) {
        let filters: Vec<String> = request.filters.iter().map(ToString::to_string).collect();
        let filters = filters.join(", ");
        match &feed {
            Ok(_) => self.audit(reply.caller, "TRACE", Ok(&filters)),
            Err(refusal) => self.audit(reply.caller, "TRACE", Err(&format!("{filters}: {refusal}"))),
        }
        reply.send(feed.map(|feed| (feed, self.parts.about.driver.clone())));
    }

    fn tell_node(&self, reply: Reply<NodeInfo>) {
        let about = &self.parts.about;
        let config = self.parts.config.borrow();
        let mut info = NodeInfo {
            node: config.node.clone(),
            role: config.role.as_str().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            driver: about.driver.clone(),
            lanes: u32::try_from(self.parts.packets.sender().lanes()).unwrap_or(u32::MAX),
            started: about.started,
            load: self.parts.node.load(),
            packets: self.parts.packets.sender().totals().sums(),
            missing: [about.missing.clone(), about.notices.lines()].concat(),
            devices: about.devices.clone(),
            planes: about.planes.clone(),
            applications: self.parts.node.applications(),
            services: self.parts.operator.services(),
            revocations: self.parts.node.view().controller.revocations(self.parts.clock.now()),
        };
        let (named, devices) = oneshot::channel();
        self.parts.packets.sender().send(PacketCommand::Devices(named.into()));
        tokio::spawn(async move {
            // Those of the start, if the packet thread has no time; none, if it has ended.
            if let Ok(devices) = tokio::time::timeout(DEVICES_WAIT, devices).await {
                info.devices = devices.unwrap_or_default();
            }
            reply.send(info);
        });
    }

    fn tell_metrics(&self, reply: Reply<String>) {
        let mut out = self.metrics();
        let drops = self.parts.effects.count_drops();
        tokio::spawn(async move {
            if let Ok(Ok(drops)) = tokio::time::timeout(DROPS_WAIT, drops).await {
                metrics::container_drops(&mut out, &drops);
            }
            reply.send(out.finish());
        });
    }

    fn metrics(&self) -> Exposition {
        let mut out = Exposition::default();
        let (view, now) = (self.parts.node.view(), self.parts.clock.now());
        metrics::write(
            &mut out,
            &Sources {
                host_only: self.parts.config.borrow().role == Role::Host,
                started: self.parts.about.started,
                gist: view.gist,
                sent: self.parts.signal.send_counters(),
                intercepted: self.parts.signal.interceptor_counters(),
                unread: self.parts.signal.unread(),
                handshakes: self.parts.signal.handshakes(),
                nslp: view.nslp,
                controller: view.controller,
                node: self.parts.node.counters(),
                applications: self.parts.node.applications(),
                application_counters: self.parts.node.application_counters(),
                application_counts: &self.parts.application_counts,
                packets: self.parts.packets.sender().totals(),
                modules: self.parts.node.modules(now),
                revocations: view.controller.revocations(now),
                workers: self.parts.effects.gauges(),
                turns: &self.turns,
                waits: &self.waits,
                lateness: &self.lateness,
                audit: self.parts.audit.counts(),
            },
        );
        out
    }

    /// Returns what the node goes by, with what this machine has now.
    fn policy(&self, config: &Config) -> anyhow::Result<NodePolicy> {
        let addresses = self.parts.signal.addresses();
        let mut policy = config.policy(&|interface| networks_of(addresses, interface))?;
        self.parts.about.runtimes.add_to(&mut policy);
        self.parts.operator.add_to(&mut policy);
        policy.maintenance = self.parts.maintenance;
        Ok(policy)
    }

    /// Puts the policy in force anew where it depends on the addresses of interfaces.
    fn neighbours_may_be_others(&mut self) {
        let config = Arc::clone(&self.parts.config.borrow());
        if !config.signaling.domain.names_interfaces() {
            return;
        }
        match self.policy(&config) {
            Ok(policy) => {
                // Nobody waits for it.
                let call = CallId(self.next_call);
                self.next_call += 1;
                self.input(Input::Policy(call, Box::new(policy)));
            }
            Err(error) => tracing::error!(error = format!("{error:#}"), "the domain's border stays as it was"),
        }
    }

    fn read_config(&self, reply: ReloadReply) {
        let (path, events) = (self.parts.config_path.clone(), self.parts.events.clone());
        tokio::task::spawn_blocking(move || {
            let none = || anyhow!("netservd was started without a configuration file");
            let read = path.ok_or_else(none).and_then(|path| {
                let config = Config::load(&path)?;
                let tls = Some(&config.signaling.tls).filter(|tls| tls.is_on());
                let credentials = tls.map(Tls::read).transpose()?;
                Ok(Box::new(ReadConfig { config, credentials }))
            });
            // The loop may have ended.
            let _ = events.blocking_send(Event::Config(read, reply));
        });
    }

    /// Puts a configuration in force that was read again, as far as it can be while the node runs.
    fn reload(&mut self, read: anyhow::Result<Box<ReadConfig>>, reply: ReloadReply) {
        let reload = read.and_then(|read| {
            let ReadConfig { config, credentials } = *read;
            let reload = self.parts.config.borrow().reload(config)?;
            let policy = self.policy(&reload.in_force)?;
            credentials.map(|credentials| self.parts.signal.set_credentials(credentials)).transpose()?;
            Ok((policy, reload))
        });
        let (policy, reload) = match reload {
            Ok(read) => read,
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "the configuration stays as it was");
                self.audit(reply.caller, "RELOAD", Err(&error));
                return reply.send(Err(error));
            }
        };
        self.parts.config.send_replace(Arc::new(reload.in_force));
        let keys: Vec<&str> = reload.changes.iter().map(|change| change.key.as_str()).collect();
        self.audit(reply.caller, "RELOAD", Ok(&keys.join(", ")));
        let call = self.pending(Pending::Reload(reload.changes, reply));
        self.input(Input::Policy(call, Box::new(policy)));
    }

    fn audit(&self, caller: Caller, verb: &str, result: Result<&str, &str>) {
        self.parts.audit.take_operation(self.parts.clock.now(), caller, verb, result);
    }

    /// Has it kept whether the node is drained, before it is.
    fn drain(&mut self, on: bool, reply: DrainReply) {
        let refused = match (self.parts.config.borrow().role, self.is_marking) {
            (Role::Host, _) => Some("a host runs no modules"),
            (Role::Node, true) => Some("another request for it is under way"),
            (Role::Node, false) => None,
        };
        if let Some(why) = refused {
            self.audit(reply.caller, drain_verb(on), Err(why));
            reply.send(Err(why.to_owned()));
            return;
        }
        self.is_marking = true;
        let (mark, events) = (self.parts.mark.clone(), self.parts.events.clone());
        tokio::task::spawn_blocking(move || {
            let kept = mark.set(on).map_err(|error| format!("the state directory: {error}"));
            // The loop may have ended.
            let _ = events.blocking_send(Event::Drained(on, kept, reply));
        });
    }

    fn drained(&mut self, on: bool, kept: Result<(), String>, reply: DrainReply) {
        self.is_marking = false;
        let config = Arc::clone(&self.parts.config.borrow());
        let before = self.parts.maintenance;
        let is_kept = kept.is_ok();
        let policy = kept.and_then(|()| {
            self.parts.maintenance = on;
            self.policy(&config).map_err(|error| format!("{error:#}"))
        });
        match policy {
            Ok(policy) => {
                tracing::info!(maintenance = policy.maintenance, "the node is drained, or takes modules again");
                self.audit(reply.caller, drain_verb(on), Ok(""));
                let call = self.pending(Pending::Drain(reply));
                self.input(Input::Policy(call, Box::new(policy)));
            }
            Err(error) => {
                self.parts.maintenance = before;
                if is_kept {
                    let mark = self.parts.mark.clone();
                    tokio::task::spawn_blocking(move || mark.set(before));
                }
                self.audit(reply.caller, drain_verb(on), Err(&error));
                reply.send(Err(error));
            }
        }
    }

    fn tell_drain(&self, reply: DrainReply) {
        let left = self.parts.node.user_modules(self.parts.clock.now());
        reply.send(Ok(DrainReport { maintenance: self.parts.maintenance, left }));
    }

    fn applied(&mut self, call: CallId, late: &[Late]) {
        let (mut changes, reply) = match self.calls.remove(&call) {
            Some(Pending::Reload(changes, reply)) => (changes, reply),
            Some(Pending::Drain(reply)) => return self.tell_drain(reply),
            Some(
                Pending::Request(_) | Pending::Node(_) | Pending::Modules(_) | Pending::Usage(_) | Pending::Metrics(_),
            )
            | None => return,
        };
        put_off(&mut changes, late);
        for ConfigChange { key, from, why } in &changes {
            tracing::info!(key, %from, why, "configuration changed");
        }
        tracing::info!(changes = changes.len(), "the configuration is read again");
        reply.send(Ok(Reloaded { changes }));
    }
}

fn log(notice: &Notice) {
    match notice {
        Notice::Requested { request, method, user, session } => {
            let user = user.as_ref().map(ToString::to_string);
            tracing::info!(request = request.0, method, user, %session, "request");
        }
        Notice::Answered { request, outcome, took_us, .. } => {
            tracing::info!(request = request.0, %outcome, took_us, "answer");
        }
        Notice::Notified(notify) => {
            let Notify { session, user, module, node, event, nodes, detail, topic, nonce: _, body: _ } = &**notify;
            let topic = topic.as_ref().map(Topic::as_str);
            let nodes = nodes.iter().map(NodeId::as_str).collect::<Vec<_>>().join(", ");
            tracing::info!(%session, %user, %module, %node, event = event.as_str(), topic, nodes, detail, "news of a path");
        }
        Notice::Dissolved { user, module, refusal } => {
            tracing::warn!(%user, %module, %refusal, "a service is removed");
        }
        Notice::Revoked { user, module, refusal, evidence: _, is_stranger: _ } => {
            tracing::warn!(%user, %module, %refusal, "a module is removed, since its user may no longer run it");
        }
        Notice::Expired { user, module, evidence: _, is_stranger: _ } => {
            tracing::info!(%user, %module, "a module is removed, since its lease ended");
        }
        Notice::Resumed { user, module, evidence: _ } => {
            tracing::info!(%user, %module, "a module is back, since its user has rights again");
        }
        Notice::Forgotten { user, refusal, evidence: _ } => {
            tracing::info!(%user, %refusal, "a user is forgotten, with what its modules kept");
        }
        Notice::GaveUp { user, module, addresses, epoch } => {
            tracing::info!(%user, %module, ?addresses, epoch, "floating addresses are given up, another owner has them");
        }
        Notice::Listed { issuer, number, made } => {
            tracing::info!(issuer, number, %made, "a revocation list is in force");
        }
        Notice::NotListed { issuer, refusal } => {
            tracing::warn!(issuer, %refusal, "a revocation list cannot be had or kept");
        }
        Notice::NotStored { user, module, refusal } => {
            tracing::error!(%user, %module, %refusal, "after a restart, a module will be as it was before");
        }
    }
}

/// What the audit log calls it.
fn drain_verb(on: bool) -> &'static str {
    if on { "DRAIN" } else { "UNDRAIN" }
}

/// Ends at once if the deadline has passed: a sleep that has just begun never does, and while there are always events none
/// gets older.
async fn sleep_until(clock: Clock, deadline: Option<Instant>) {
    match deadline.map(|deadline| clock.until(deadline)) {
        Some(Duration::ZERO) => {}
        Some(left) => tokio::time::sleep(left).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_due_does_not_wait_for_the_events_to_end() {
        let clock = Clock::start();
        let due = clock.now().instant;
        assert!(sleep_until(clock, Some(due)).now_or_never().is_some());
        assert!(sleep_until(clock, Some(due + Duration::from_secs(60))).now_or_never().is_none());
        assert!(sleep_until(clock, None).now_or_never().is_none());
    }
}
