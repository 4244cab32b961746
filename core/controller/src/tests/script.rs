// SPDX-License-Identifier: Apache-2.0
//! The node that the tests talk to.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ed25519_dalek::{Signer as _, SigningKey};
use netserv_model::audit::Proven;
use netserv_model::control::ControlMessage;
use netserv_model::effect::{
    Buffering, Command, EffectId, EffectOutcome, FilterId, InstalledRecord, InterceptJob, Job, ModuleExport,
    ModuleNews, ModuleSlot, News, Notice, PackageJob, PolicyChange, RequestId, StoreJob, WorkerJob, WorkerNews,
};
use netserv_model::manifest::{Amounts, Manifest, ModuleLimits, PacketPart};
use netserv_model::notify::NotifyEvent;
use netserv_model::policy::{NodePolicy, UserPolicy};
use netserv_model::request::{Ask, Body, NodeReport, Outcome, Probe, Remove, Request, Setup, Tell};
use netserv_model::usage::Meters;
use netserv_model::{Digest, Flavour, Instant, ModuleName, Nonce, Now, PublicKey, Refusal, RefusalKind, SessionId};
use netserv_model::{Signature, UnixTime, UserId, WorkerId};

use crate::Controller;
use crate::cx::timers::Timer;

/// When every script starts.
pub(crate) const START: Now = Now { instant: Instant::from_millis(5000), wall: UnixTime::from_secs(1_800_000_000) };

/// Compares the commands that came out with what was expected, one text each.
macro_rules! commands {
    ($node:expr, $($command:expr),* $(,)?) => {{
        let expected: Vec<String> = vec![$($command.to_string()),*];
        assert_eq!($node.commands(), expected);
    }};
}
pub(crate) use commands;

/// A controller with its clock and its user `jane`, who owns 10.2.0.0/16.
pub(crate) struct Node {
    pub(crate) controller: Controller,
    pub(crate) now: Now,
    pub(crate) policy: NodePolicy,
    /// The report of each answer.
    pub(crate) reports: BTreeMap<u64, NodeReport>,
    /// By what each answered request is proven to be its user's.
    pub(crate) proven: BTreeMap<u64, Option<Proven>>,
    /// The requests that were found to be their users', before they were answered.
    pub(crate) found: Vec<u64>,
    /// Of whom modules were removed as rights ended, and what these came from.
    pub(crate) ended: Vec<(UserId, Option<String>)>,
    /// Every job that was seen, in order.
    pub(crate) jobs: Vec<Job>,
    pub(crate) requests: u64,
    /// Changes of the policy, of which as many are in force.
    pub(crate) changes: (u64, u64),
    /// The effects about packages, which scripts number from 0.
    packages: Vec<EffectId>,
    /// The revocation lists that are asked for, by their URLs.
    asked: Vec<(String, EffectId)>,
    /// What readings of meters find, until what ended was read.
    pub(crate) meters: Meters,
    /// The rule whose installation is refused.
    refused: Option<FilterId>,
    /// Whether the next change of floating addresses is refused.
    floating_refused: bool,
    /// Whether changes of filters are not done before they are released, and those that are not.
    holds_filters: bool,
    held_filters: Vec<EffectId>,
    /// What requesters were told, in order.
    pub(crate) told: Vec<String>,
    /// What came out and was not looked at.
    lines: VecDeque<String>,
}

impl Node {
    pub(crate) fn new() -> Node {
        Node::with(policy())
    }

    pub(crate) fn with(policy: NodePolicy) -> Node {
        let controller = Controller::new(policy.clone());
        Node {
            controller,
            now: START,
            policy,
            reports: BTreeMap::new(),
            proven: BTreeMap::new(),
            found: Vec::new(),
            ended: Vec::new(),
            jobs: Vec::new(),
            requests: 0,
            changes: (0, 0),
            packages: Vec::new(),
            asked: Vec::new(),
            meters: Meters::default(),
            refused: None,
            floating_refused: false,
            holds_filters: false,
            held_filters: Vec::new(),
            told: Vec::new(),
            lines: VecDeque::new(),
        }
    }

    /// Puts the node's policy in force, which scripts may have changed.
    pub(crate) fn apply_policy(&mut self) {
        self.controller.set_policy(self.now, PolicyChange(self.changes.0), self.policy.clone());
        self.changes.0 += 1;
    }

    /// Sends a request as it is; returns the number of its answer.
    pub(crate) fn send(&mut self, request: Request) -> u64 {
        let id = self.requests;
        self.requests += 1;
        self.controller.handle_request(self.now, RequestId(id), request);
        id
    }

    /// Makes a request that is fresh, with a nonce of its own and signed by its user.
    pub(crate) fn request(&self, user: &str, body: Body) -> Request {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.requests.to_be_bytes());
        let request = Request {
            session: SessionId([9; 16]),
            user: Some(user.parse().unwrap()),
            created: self.now.wall,
            nonce: Nonce(nonce),
            body,
            signed_bytes: format!("request {}", self.requests).into_bytes(),
            signature: None,
            grants: Vec::new(),
            address_proof: None,
            checklist: None,
            dry_run: false,
            nodes: Vec::new(),
            is_bound: false,
            require: Vec::new(),
            passed_by: None,
            from: None,
        };
        sign(request, &key(user))
    }

    pub(crate) fn setup(&mut self, setup: Setup) -> u64 {
        self.setup_by("jane", setup)
    }

    pub(crate) fn setup_by(&mut self, user: &str, setup: Setup) -> u64 {
        let request = self.request(user, Body::from(setup));
        self.send(request)
    }

    pub(crate) fn remove(&mut self, module: &str) -> u64 {
        let request =
            self.request("jane", Body::Remove(Remove { module: name(module), force: false, all: false, epoch: None }));
        self.send(request)
    }

    /// Tells a module of `jane` something of two bytes.
    pub(crate) fn tell(&mut self, module: &str, topic: &str, seq: u64) -> u64 {
        let request = self.request("jane", tell(module, topic, seq));
        self.send(request)
    }

    /// Sends a TELL, whose message the worker takes if it is asked; returns the outcome.
    pub(crate) fn take(&mut self, request: Request) -> Outcome {
        let id = self.send(request);
        self.pull();
        if !self.reports.contains_key(&id) {
            self.package(self.packages.len() as u64 - 1, EffectOutcome::Done);
        }
        self.commands();
        self.reports.get(&id).expect("it is answered when the worker has it").outcome.clone()
    }

    pub(crate) fn probe(&mut self, ask: &[Ask]) -> NodeReport {
        let request = self.request("jane", Body::Probe(Probe { ask: ask.to_vec() }));
        self.ask(request)
    }

    /// Sends a request that is answered at once; returns the report.
    pub(crate) fn ask(&mut self, request: Request) -> NodeReport {
        let id = self.send(request);
        self.commands();
        self.reports.get(&id).expect("it is answered at once").clone()
    }

    /// Lets time pass, stopping at each timer.
    pub(crate) fn sleep(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((at, _)) = self.controller.poll_timeout().filter(|(at, _)| *at <= end.instant) {
            let step = at.since(self.now.instant);
            self.now = self.now + step;
            self.controller.handle_timeout(self.now);
        }
        self.now = end;
        self.controller.handle_timeout(end);
    }

    pub(crate) fn sleep_ms(&mut self, ms: u64) {
        self.sleep(Duration::from_millis(ms));
    }

    /// Gives the outcome of an effect about packages.
    pub(crate) fn package(&mut self, number: u64, outcome: EffectOutcome) {
        self.pull();
        let id = usize::try_from(number).ok().and_then(|number| self.packages.get(number)).copied();
        self.controller.handle_outcome(self.now, id.unwrap_or(EffectId(u64::MAX)), outcome);
    }

    /// Returns how often the revocation list at a URL is asked for, without an answer.
    pub(crate) fn asks(&mut self, url: &str) -> usize {
        self.pull();
        self.asked.iter().filter(|(asked, _)| asked == url).count()
    }

    /// Gives what came of asking for the revocation list at a URL.
    pub(crate) fn listed(&mut self, url: &str, outcome: EffectOutcome) {
        self.pull();
        let at = self.asked.iter().position(|(asked, _)| asked == url).expect("it is asked for");
        let (_, id) = self.asked.remove(at);
        self.controller.handle_outcome(self.now, id, outcome);
    }

    /// Has the package arrive that was asked for last.
    pub(crate) fn fetched_last(&mut self, manifest: Manifest) {
        self.pull();
        self.fetched(self.packages.len() as u64 - 1, manifest);
    }

    pub(crate) fn fetched(&mut self, job: u64, manifest: Manifest) {
        self.fetched_as(Flavour::Wasm, job, manifest);
    }

    pub(crate) fn fetched_as(&mut self, flavour: Flavour, job: u64, manifest: Manifest) {
        self.package(job, EffectOutcome::Fetched { manifest: Box::new(manifest), flavour });
    }

    pub(crate) fn composed(&mut self, job: u64) {
        self.package(job, EffectOutcome::Done);
    }

    pub(crate) fn fetch_failed(&mut self, job: u64, kind: RefusalKind) {
        self.package(job, EffectOutcome::Refused(refusal(kind)));
    }

    /// Tells news of the worker that was started last.
    pub(crate) fn news(&mut self, worker: &WorkerId, what: WorkerNews) {
        self.pull();
        let generation = self.controller.modules.tenants.worker_mut(worker).and_then(|worker| worker.generation);
        let generation = generation.unwrap_or(EffectId(u64::MAX));
        self.controller.handle_news(self.now, News { worker: worker.clone(), generation, what });
    }

    /// The Wasm worker is ready, as in all that follows where no flavour is named.
    pub(crate) fn ready(&mut self) {
        self.ready_as(Flavour::Wasm);
    }

    pub(crate) fn ready_as(&mut self, flavour: Flavour) {
        self.news(&jane(flavour), WorkerNews::Ready { addresses: Vec::new() });
    }

    pub(crate) fn died(&mut self, culprit: Option<u8>) {
        self.died_as(Flavour::Wasm, culprit);
    }

    pub(crate) fn died_as(&mut self, flavour: Flavour, culprit: Option<u8>) {
        let (refusal, culprit) = (refusal(RefusalKind::NodeFailed), culprit.map(ModuleSlot));
        self.news(&jane(flavour), WorkerNews::Died { refusal, culprit });
    }

    pub(crate) fn loaded(&mut self, slot: u8) {
        self.loaded_as(Flavour::Wasm, slot);
    }

    pub(crate) fn loaded_as(&mut self, flavour: Flavour, slot: u8) {
        self.news(&jane(flavour), WorkerNews::Loaded(ModuleSlot(slot)));
    }

    pub(crate) fn trapped(&mut self, slot: u8) {
        self.trapped_as(Flavour::Wasm, slot);
    }

    pub(crate) fn trapped_as(&mut self, flavour: Flavour, slot: u8) {
        self.failed_as(flavour, slot, RefusalKind::Trapped);
    }

    pub(crate) fn failed_as(&mut self, flavour: Flavour, slot: u8, kind: RefusalKind) {
        self.news(&jane(flavour), WorkerNews::Failed { slot: ModuleSlot(slot), refusal: refusal(kind) });
    }

    /// Has the worker say that no connection of a module is left.
    pub(crate) fn drained(&mut self, slot: u8) {
        self.news(&jane(Flavour::Wasm), WorkerNews::Drained(ModuleSlot(slot)));
    }

    /// Has the installation of a rule refused.
    pub(crate) fn refuse_rule(&mut self, id: u64) {
        self.refused = Some(FilterId(id));
    }

    /// Has the next change of floating addresses refused.
    pub(crate) fn refuse_floating(&mut self) {
        self.floating_refused = true;
    }

    /// Has no change of filters be done from here on.
    pub(crate) fn hold_filters(&mut self) {
        self.holds_filters = true;
    }

    /// Has all changes of filters be done.
    pub(crate) fn release_filters(&mut self) {
        self.pull();
        self.holds_filters = false;
        for id in std::mem::take(&mut self.held_filters) {
            self.controller.handle_outcome(self.now, id, EffectOutcome::Done);
        }
    }

    /// Drains the commands, as text; what they want is done at once, but for packages.
    pub(crate) fn commands(&mut self) -> Vec<String> {
        self.pull();
        self.lines.drain(..).collect()
    }

    /// Returns one command, as text.
    pub(crate) fn command(&mut self) -> Option<String> {
        self.pull();
        self.lines.pop_front()
    }

    fn pull(&mut self) {
        while let Some(command) = self.controller.poll_command() {
            match command {
                Command::Do(effect) => {
                    if let Job::AskList { url, .. } = &effect.job {
                        self.lines.extend(lines(&effect.job));
                        self.asked.push((url.clone(), effect.id));
                    } else if self.holds_filters && matches!(effect.job, Job::Filters(_)) {
                        self.lines.extend(lines(&effect.job));
                        self.held_filters.push(effect.id);
                    } else if effect.job.is_ordered() || effect.user.is_none() || matches!(effect.job, Job::Store(_)) {
                        self.lines.extend(lines(&effect.job));
                        let outcome = self.outcome_of(&effect.job);
                        self.controller.handle_outcome(self.now, effect.id, outcome);
                    } else {
                        let number = self.packages.len();
                        self.lines.extend(
                            lines(&effect.job).into_iter().map(|line| line.replacen('#', &number.to_string(), 1)),
                        );
                        self.packages.push(effect.id);
                    }
                    self.jobs.push(effect.job);
                }
                Command::Abandon(id) => {
                    let outcome = EffectOutcome::Refused(refusal(RefusalKind::Timeout));
                    self.controller.handle_outcome(self.now, id, outcome);
                }
                Command::Proven(request) => {
                    assert!(!self.reports.contains_key(&request.0), "it is answered");
                    self.found.push(request.0);
                }
                Command::Answer { request, report, proven } => {
                    self.lines.push_back(format!("answer {} {}", request.0, outcome(&report.outcome)));
                    let before = self.reports.insert(request.0, *report);
                    assert!(before.is_none(), "request {} is answered twice", request.0);
                    self.proven.insert(request.0, proven);
                }
                Command::Notify(notice) => {
                    self.lines.push_back(said(&notice));
                    if let Notice::Revoked { user, evidence, .. } = notice {
                        self.ended.push((user, evidence));
                    }
                }
                Command::TellRequesters(news) => {
                    let ModuleNews { user, module, is_for_one, event, detail, .. } = &*news;
                    let ended_for_one = *is_for_one && *event == NotifyEvent::LeaseEnded;
                    let whom = if ended_for_one { " to one" } else { "" };
                    self.told.push(format!("{user} {} {}{whom}: {detail}", short(module), event.as_str()));
                }
                Command::Settled => self.lines.push_back("settled".to_owned()),
                Command::InForce(change, late) => {
                    assert_eq!(change, PolicyChange(self.changes.1));
                    self.changes.1 += 1;
                    self.lines.extend(late.iter().map(|late| format!("late {}", late.refusal.kind)));
                }
            }
        }
    }

    fn outcome_of(&mut self, job: &Job) -> EffectOutcome {
        if matches!(job, Job::ReadMeters) {
            let meters = self.meters.clone();
            self.meters.end();
            return EffectOutcome::Metered(Box::new(meters));
        }
        let installs = match job {
            Job::Filters(change) => change.add.iter().any(|rule| Some(rule.id) == self.refused),
            Job::Intercepts(InterceptJob::Begin(rule)) => Some(rule.id) == self.refused,
            Job::Limit(limits) => limits.memory_bytes == 0,
            Job::Floating(_) => std::mem::take(&mut self.floating_refused),
            Job::Store(StoreJob::PutList(list)) => list.issuer == "full-disk",
            Job::Packages(_)
            | Job::Workers(_)
            | Job::Intercepts(_)
            | Job::Permit(_)
            | Job::Addresses(_)
            | Job::Store(_)
            | Job::Measure
            | Job::ReadMeters
            | Job::Route(_)
            | Job::AskAddress { .. }
            | Job::FindHolder { .. }
            | Job::AskList { .. } => false,
        };
        match installs {
            true => {
                self.refused = None;
                EffectOutcome::Refused(refusal(RefusalKind::NodeFailed))
            }
            false => EffectOutcome::Done,
        }
    }

    /// Installs a module, whatever commands that takes.
    pub(crate) fn install(&mut self, setup: Setup) {
        self.install_as(Flavour::Wasm, setup);
    }

    /// Installs a module of which the node takes this flavour.
    pub(crate) fn install_as(&mut self, flavour: Flavour, setup: Setup) {
        let manifest = manifest(&setup);
        let id = self.setup(setup);
        self.carry_out_as(flavour, &manifest);
        assert!(self.reports[&id].outcome.is_ok(), "{:?}", self.reports[&id].outcome);
    }

    /// Carries everything out with success until there is no more to do.
    pub(crate) fn carry_out(&mut self, manifest: &Manifest) {
        self.carry_out_as(Flavour::Wasm, manifest);
    }

    fn carry_out_as(&mut self, flavour: Flavour, manifest: &Manifest) {
        let mut seen = self.jobs.len();
        self.pull();
        while let Some(job) = self.jobs.get(seen).cloned() {
            seen += 1;
            match job {
                Job::Packages(PackageJob::Fetch { .. }) => {
                    self.fetched_as(flavour, self.packages.len() as u64 - 1, manifest.clone());
                }
                Job::Packages(PackageJob::Compose { .. }) => self.composed(self.packages.len() as u64 - 1),
                Job::Workers(WorkerJob::Start { worker, .. }) => {
                    self.news(&worker, WorkerNews::Ready { addresses: Vec::new() });
                }
                Job::Workers(WorkerJob::Load(load)) => self.news(&load.worker, WorkerNews::Loaded(load.slot)),
                Job::Workers(_)
                | Job::Filters(_)
                | Job::Intercepts(_)
                | Job::Permit(_)
                | Job::Limit(_)
                | Job::Floating(_)
                | Job::Addresses(_)
                | Job::Store(_)
                | Job::Measure
                | Job::ReadMeters
                | Job::Route(_)
                | Job::AskAddress { .. }
                | Job::FindHolder { .. }
                | Job::AskList { .. } => {}
            }
            self.pull();
        }
        self.lines.clear();
    }

    /// Returns what the installed modules are doing: `m@1.0.0 Running`.
    pub(crate) fn states(&self) -> Vec<String> {
        let short = |module: String| module.replace("example.org/", "");
        let modules = self.controller.modules(self.now).into_iter();
        modules.map(|status| format!("{} {:?}", short(status.module.to_string()), status.state)).collect()
    }

    /// Asserts that nothing is left of any module.
    pub(crate) fn assert_empty(&self) {
        let controller = &self.controller;
        assert!(controller.modules.tenants.is_empty(), "{:?}", controller.modules.tenants);
        assert!(controller.cx.is_idle(), "{:?}", controller.cx);
        assert!(controller.changes.is_empty() && self.changes.0 == self.changes.1, "{:?}", self.changes);
        let timers = controller.cx.timers.len() - usize::from(controller.cx.timers.runs(&Timer::ReadMeters));
        assert_eq!((timers, controller.cx.in_flight()), (0, 0), "{:?}", controller.cx.timers);
        assert!(controller.modules.buffers.is_empty() && controller.modules.later.is_empty());
    }
}

/// Asserts that a request was refused, and why.
#[track_caller]
pub(crate) fn assert_refused(report: &NodeReport, kind: RefusalKind, detail: &str) {
    let Outcome::Refused(refusal) = &report.outcome else { panic!("not refused: {:?}", report.outcome) };
    assert_eq!(refusal.kind, kind, "{}", refusal.detail);
    assert!(refusal.detail.contains(detail), "`{}` has no `{detail}`", refusal.detail);
}

/// Returns a job as text; `#` stands for the number of one about packages.
fn lines(job: &Job) -> Vec<String> {
    let line = match job {
        Job::Packages(PackageJob::Fetch { digest, state, .. }) => {
            let with = state.as_ref().map(|state| format!(" with {}", state.digest.0[0])).unwrap_or_default();
            format!("fetch # {}{with}", digest.0[0])
        }
        Job::Packages(PackageJob::Compose { parts, names }) => {
            assert!(!names.is_empty() && names.len() <= parts.len());
            let parts: Vec<String> = parts.iter().map(|digest| digest.0[0].to_string()).collect();
            format!("compose # {}", parts.join("+"))
        }
        Job::Workers(WorkerJob::Order { worker, slots }) => {
            let slots: Vec<String> = slots.iter().map(|slot| slot.0.to_string()).collect();
            format!("order {} {}", place(worker), slots.join(" "))
        }
        Job::Workers(WorkerJob::Start { worker, .. }) => format!("start {}", place(worker)),
        Job::Workers(WorkerJob::Stop { worker }) => format!("stop {}", place(worker)),
        Job::Workers(WorkerJob::Load(load)) => {
            let given = load.messages.iter().map(|message| format!(" {}", message.seq)).collect::<String>();
            let with = load.state.map(|digest| format!(" with {}", digest.0[0])).unwrap_or_default();
            format!("load {} {} {}{given}{with}", place(&load.worker), load.slot.0, short(&load.module))
        }
        Job::Workers(WorkerJob::Unload { worker, slot }) => format!("unload {} {}", place(worker), slot.0),
        Job::Workers(WorkerJob::Drain { worker, slot, finish }) => {
            let how = if *finish { "finish" } else { "drain" };
            format!("{how} {} {}", place(worker), slot.0)
        }
        Job::Workers(WorkerJob::Confirm { worker, slot }) => format!("confirm {} {}", place(worker), slot.0),
        Job::Filters(change) => {
            let add = change.add.iter().map(|rule| {
                let what = match rule.buffering {
                    None => "filter".to_owned(),
                    Some(Buffering { is_seen_there: false, .. }) => "buffer".to_owned(),
                    Some(Buffering { other, .. }) => format!("buffer not from {other}"),
                };
                format!("{what} {} {} {} {}", rule.id.0, place(&rule.worker), rule.slot.0, rule.filter)
            });
            return add.chain(change.remove.iter().map(|id| format!("unfilter {}", id.0))).collect();
        }
        Job::Intercepts(InterceptJob::Begin(rule)) => {
            format!("intercept {} {} {} {}", rule.id.0, place(&rule.worker), rule.slot.0, rule.filter)
        }
        Job::Intercepts(InterceptJob::Suspend(id)) => format!("suspend {}", id.0),
        Job::Intercepts(InterceptJob::Drain(id)) => format!("let-go {}", id.0),
        Job::Intercepts(InterceptJob::End(id)) => format!("unintercept {}", id.0),
        Job::Permit(permits) => {
            let filters = permits.listen.iter().chain(&permits.connect).map(ToString::to_string);
            format!("permit {} {}", permits.rate.packets_per_second, filters.collect::<Vec<_>>().join(", "))
        }
        Job::Limit(limits) => format!("limit {}", limits.memory_bytes),
        Job::Floating(addresses) => {
            format!("float {}", addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        }
        Job::Addresses(plan) => {
            format!("addresses {:?} {:?}", plan.prefixes, plan.users.values().flatten().collect::<Vec<_>>())
        }
        Job::Store(StoreJob::Put(record)) => format!("store {} {}", record.user, short(&record.module)),
        Job::Store(StoreJob::Forget { user, module }) => format!("forget {user} {}", short(module)),
        Job::Workers(WorkerJob::Tell { worker, slot, message }) => {
            format!("tell # {} {} {} {}", place(worker), slot.0, message.topic, message.seq)
        }
        Job::Workers(WorkerJob::Export(export)) => {
            let ModuleExport { worker, slot, module, url, .. } = &**export;
            format!("export # {} {} {} {url}", place(worker), slot.0, short(module))
        }
        Job::Store(StoreJob::PutMessage { user, module, message }) => {
            format!("keep {user} {} {} {}", short(module), message.topic, message.seq)
        }
        Job::Store(StoreJob::ForgetUser { user }) => format!("forget-user {user}"),
        Job::Store(StoreJob::PutUsage(_)) => "put-usage".to_owned(),
        // It may be read at any time.
        Job::ReadMeters => return Vec::new(),
        Job::AskAddress { address, user, tls } => format!("ask # {address} {user} {tls}"),
        Job::FindHolder { grant, is_again, .. } => {
            format!("find-holder # {grant}{}", if *is_again { " again" } else { "" })
        }
        Job::AskList { url, etag } => format!("ask {url} {}", etag.as_deref().unwrap_or("-")),
        Job::Store(StoreJob::PutList(list)) => format!("keep-list {}", list.issuer),
        Job::Measure | Job::Route(_) => unreachable!("the controller measures and routes nothing"),
    };
    vec![line]
}

fn said(notice: &Notice) -> String {
    match notice {
        Notice::Dissolved { user, module, refusal } => format!("dissolved {user} {} {}", short(module), refusal.kind),
        Notice::Revoked { user, module, refusal, .. } => {
            format!("revoked {user} {} {}", short(module), refusal.kind)
        }
        Notice::Expired { user, module, .. } => format!("expired {user} {}", short(module)),
        Notice::Resumed { user, module, .. } => format!("resumed {user} {}", short(module)),
        Notice::Forgotten { user, refusal, evidence } => format!("forgotten {user} {} {evidence}", refusal.kind),
        Notice::GaveUp { user, module, addresses, epoch } => {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            format!("gave-up {user} {} {} {epoch}", short(module), addresses.join(" "))
        }
        Notice::NotStored { user, module, refusal } => format!("not-stored {user} {} {}", short(module), refusal.kind),
        Notice::Listed { issuer, number, .. } => format!("listed {issuer} {number}"),
        Notice::NotListed { issuer, refusal } => format!("not-listed {issuer} {}", refusal.kind),
        Notice::Requested { .. } | Notice::Answered { .. } | Notice::Notified(_) => {
            unreachable!("the controller does not say that")
        }
    }
}

fn short(text: &dyn ToString) -> String {
    text.to_string().replace("example.org/", "")
}

/// Returns `jane` for the Wasm worker and `jane/osgi` for the other.
fn place(worker: &WorkerId) -> String {
    match worker.flavour {
        Flavour::Wasm => worker.user.to_string(),
        Flavour::Osgi => format!("{}/osgi", worker.user),
    }
}

pub(crate) fn tell(module: &str, topic: &str, seq: u64) -> Body {
    let message = ControlMessage { topic: topic.parse().unwrap(), seq, body: b"\x00\xff".to_vec() };
    Body::Tell(Tell { module: name(module), message })
}

pub(crate) fn jane(flavour: Flavour) -> WorkerId {
    WorkerId::new(user("jane"), flavour)
}

pub(crate) fn sign(mut request: Request, key: &SigningKey) -> Request {
    request.signature = Some(Signature(key.sign(&request.signed_bytes).to_bytes()));
    request
}

/// Returns a SETUP of `example.org/m@1.0.0` with one filter; each version has a digest of its own.
pub(crate) fn setup(module: &str) -> Setup {
    let (_, version) = module.split_once('@').expect("written name@version");
    Setup {
        module: format!("example.org/{module}").parse().unwrap(),
        url: "https://cp.example/m.nsm".to_owned(),
        digest: digest(version.replace('.', "").parse().expect("three digits up to 255")),
        filters: vec!["udp dst 10.2.0.0/24".parse().unwrap()],
        intercept: Vec::new(),
        properties: BTreeMap::new(),
        dependencies: Vec::new(),
        ttl: Duration::from_secs(60),
        epoch: 0,
        state: None,
        prepare: false,
        buffer: None,
        floating: Vec::new(),
    }
}

/// Returns what a node remembers of a module that a SETUP of `jane` installed, with an hour left.
pub(crate) fn record(setup: Setup) -> InstalledRecord {
    InstalledRecord {
        user: user("jane"),
        module: setup.module,
        url: setup.url,
        digest: setup.digest,
        evidence: None,
        suspended: None,
        session: SessionId([9; 16]),
        nonce: None,
        filters: setup.filters,
        intercept: setup.intercept,
        properties: setup.properties,
        lease_until: START.wall + Duration::from_secs(3600),
        sessions: Vec::new(),
        wish: None,
        order: 0,
        flavour: None,
        epoch: 0,
        floating: setup.floating,
        given_up: Vec::new(),
        state: None,
        moved_in: None,
    }
}

/// Returns the manifest of the package that a SETUP names.
pub(crate) fn manifest(setup: &Setup) -> Manifest {
    Manifest {
        manifest: 1,
        requires: [].into(),
        name: setup.module.name.clone(),
        version: setup.module.version.clone(),
        description: String::new(),
        dependencies: Vec::new(),
        packet: Some(PacketPart { abi: 1, ..PacketPart::default() }),
        server: None,
        service: None,
        limits: ModuleLimits::default(),
        needs: Amounts::new(),
        properties: BTreeMap::new(),
        state_schema: 1,
    }
}

/// Returns a manifest's part in the packet path, to be changed.
pub(crate) fn packet(manifest: &mut Manifest) -> &mut PacketPart {
    manifest.packet.get_or_insert_default()
}

pub(crate) fn policy() -> NodePolicy {
    let mut policy = NodePolicy::new("r1".parse().unwrap());
    policy.ttl_max = Duration::from_secs(3600);
    policy.blocks = BTreeMap::from([("kv".to_owned(), 2), ("packet".to_owned(), 1)]);
    policy.users = BTreeMap::from([(user("jane"), user_policy("jane", "10.2.0.0/16"))]);
    policy
}

pub(crate) fn user_policy(user: &str, prefix: &str) -> UserPolicy {
    UserPolicy {
        keys: vec![PublicKey([0; 32]), public(user)],
        prefixes: vec![prefix.parse().unwrap()],
        modules_max: 100,
        module_limits: ModuleLimits::default(),
        ..UserPolicy::default()
    }
}

pub(crate) fn key(user: &str) -> SigningKey {
    SigningKey::from_bytes(&[user.bytes().fold(0, u8::wrapping_add); 32])
}

pub(crate) fn public(user: &str) -> PublicKey {
    PublicKey(key(user).verifying_key().to_bytes())
}

pub(crate) fn user(name: &str) -> UserId {
    name.parse().unwrap()
}

pub(crate) fn name(module: &str) -> ModuleName {
    format!("example.org/{module}").parse().unwrap()
}

pub(crate) fn digest(n: u8) -> Digest {
    Digest([n; 32])
}

pub(crate) fn refusal(kind: RefusalKind) -> Refusal {
    Refusal::new(kind, "as the test says")
}

fn outcome(outcome: &Outcome) -> String {
    match (outcome, outcome.lease_s()) {
        (Outcome::WouldDo { action }, _) => format!("would {action}"),
        (Outcome::Refused(refusal), _) => refusal.kind.to_string(),
        (_, Some(lease_s)) => format!("{} {lease_s}", outcome.word()),
        (_, None) => outcome.word().to_owned(),
    }
}
