// SPDX-License-Identifier: Apache-2.0
//! Who waits for which package, and what is fetched and compiled next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use netserv_container::{BuildLimits, Progress};
use netserv_model::effect::{EffectId, EffectOutcome};
use netserv_model::request::StateSource;
use netserv_model::{Digest, ModuleRef, PublicKey, Refusal, RefusalKind, UserId};
use netserv_repository::Stored;

use super::lanes::{BuildId, CompileLane, Lanes, counted};
use super::turns::Turns;
use super::{Packages, Ready};
use crate::effects::ticket::{Cargo, Ticket};
use crate::limits::{
    ABANDONED_BUILD_TIME, ABANDONED_BUILDS_PER_USER_MAX, BUILD_TIME_PER_CPU_TIME, FETCHES_MAX, FETCHES_OF_ALL_MAX,
    FETCHES_PER_USER_MAX, QUICK_COMPILE_MEMORY_BYTES,
};

/// What is wanted of packages, or what came of it.
pub enum PackageRequest {
    /// Fetch a package and compile what of it is not compiled.
    Fetch {
        user: UserId,
        url: String,
        digest: Digest,
        keys: Vec<PublicKey>,
        state: Option<StateSource>,
        ticket: Ticket,
    },
    /// Compose components of packages, which refusals call by their modules' names.
    Compose { user: UserId, parts: Vec<Digest>, components: Vec<PathBuf>, names: Vec<ModuleRef>, ticket: Ticket },
    /// Nobody waits for an effect any more.
    Abandon(EffectId),
    /// Nobody needs a composition any more.
    Remove(PathBuf),
    /// A download ended.
    Fetched(UserId, Ticket, Result<Box<Ready>, Refusal>),
    /// A compilation moved to another lane, which leaves a free place in its old one.
    Promoted,
    /// A compilation ended.
    Built(BuildId, Box<Build>, Made),
}

/// Code that is to be made, and who waits for it.
pub struct Build {
    /// Who wants it.
    users: BTreeSet<UserId>,
    /// The packages that it is made of: whoever wants the same waits for this one.
    key: Vec<Digest>,
    what: What,
    waiters: Vec<(Ticket, Waiter)>,
    /// Keeps the package in the store.
    package: Option<Arc<Stored>>,
    /// Since when nobody waits for it.
    abandoned: Option<Instant>,
}

/// What came of a compilation.
pub struct Made {
    /// How it ended; or the lane in which it is to have its turn, since there was no place to go on.
    end: Result<Result<Option<PathBuf>, Refusal>, CompileLane>,
    cpu_time: Duration,
    time: Duration,
}

enum What {
    Compile(Vec<(PathBuf, PathBuf)>),
    Compose { components: Vec<PathBuf>, names: Vec<ModuleRef> },
}

enum Waiter {
    Package(Box<Ready>),
    Composition,
}

/// Starts the thread. It ends when every sender is dropped.
///
/// # Errors
/// The system gives no thread.
pub fn start(packages: Packages) -> Result<Sender<PackageRequest>> {
    // As many wait as the controller has effects under way, each of which has an end.
    let (requests, inbox) = channel();
    let schedule = Schedule::new(packages, requests.clone());
    let thread = std::thread::Builder::new().name("packages".to_owned());
    thread.spawn(move || schedule.run(&inbox)).context("thread for packages")?;
    Ok(requests)
}

struct Fetch {
    url: String,
    digest: Digest,
    keys: Vec<PublicKey>,
    state: Option<StateSource>,
    ticket: Ticket,
}

/// Who wants what is compiled at the moment, beside those for whom it was begun.
#[derive(Default)]
struct Joined {
    users: BTreeSet<UserId>,
    waiters: Vec<(Ticket, Waiter)>,
}

struct Schedule {
    packages: Packages,
    requests: Sender<PackageRequest>,
    fetches: Turns<Fetch>,
    /// Shared with the threads that compile, which change lanes by themselves.
    builds: Arc<Mutex<Lanes<Build>>>,
    /// What is compiled at the moment, and who waits for it beside those for whom it was begun.
    building: BTreeMap<Vec<Digest>, Joined>,
}

impl Schedule {
    fn new(packages: Packages, requests: Sender<PackageRequest>) -> Schedule {
        let (fetches, builds) = (Turns::new(FETCHES_PER_USER_MAX), Arc::new(Mutex::new(Lanes::new())));
        Schedule { packages, requests, fetches, builds, building: BTreeMap::new() }
    }

    fn run(mut self, inbox: &Receiver<PackageRequest>) {
        while let Ok(request) = inbox.recv() {
            match request {
                PackageRequest::Fetch { user, url, digest, keys, state, ticket } => {
                    self.fetches.push(user, Fetch { url, digest, keys, state, ticket });
                }
                PackageRequest::Compose { user, parts, components, names, ticket } => {
                    let what = What::Compose { components, names };
                    let waiters = vec![(ticket, Waiter::Composition)];
                    self.build(
                        user,
                        Build { users: BTreeSet::new(), key: parts, what, waiters, package: None, abandoned: None },
                    );
                }
                PackageRequest::Abandon(id) => self.abandon(id),
                PackageRequest::Remove(code) => remove(&code),
                PackageRequest::Fetched(user, ticket, result) => self.fetched(user, ticket, result),
                PackageRequest::Promoted => {}
                PackageRequest::Built(id, build, made) => self.built(id, *build, made),
            }
            self.begin();
        }
    }

    fn fetched(&mut self, user: UserId, ticket: Ticket, result: Result<Box<Ready>, Refusal>) {
        self.fetches.end(&user);
        match result {
            Err(refusal) => ticket.refuse(refusal),
            Ok(ready) if ready.to_compile.is_empty() => answer(ticket, *ready),
            Ok(ready) => {
                let (key, what) = (vec![ready.stored.digest], What::Compile(ready.to_compile.clone()));
                let package = Some(Arc::clone(&ready.stored));
                let waiters = vec![(ticket, Waiter::Package(ready))];
                self.build(user, Build { users: BTreeSet::new(), key, what, waiters, package, abandoned: None });
            }
        }
    }

    /// Has something built, or joins those who wait for the same.
    fn build(&mut self, user: UserId, mut build: Build) {
        if let Some(joined) = self.building.get_mut(&build.key) {
            joined.users.insert(user);
            return joined.waiters.extend(build.waiters);
        }
        let (now, mut builds) = (Instant::now(), lock(&self.builds));
        if let Some(other) = builds.claim(now, &user, |other| other.key == build.key) {
            other.abandoned = None;
            other.users.insert(user);
            return other.waiters.extend(build.waiters);
        }
        build.users.insert(user.clone());
        builds.push(now, [&user], CompileLane::Quick, build);
    }

    fn built(&mut self, id: BuildId, mut build: Build, made: Made) {
        let now = Instant::now();
        lock(&self.builds).end(id, now, made.cpu_time, made.time);
        let joined = self.building.remove(&build.key).unwrap_or_default();
        build.users.extend(joined.users);
        build.waiters.extend(joined.waiters);
        let result = match made.end {
            Ok(result) => result,
            Err(lane) => {
                build.abandoned = build.waiters.is_empty().then(|| build.abandoned.unwrap_or(now));
                let users = build.users.clone();
                lock(&self.builds).push(now, &users, lane, build);
                return self.forget_abandoned(now);
            }
        };
        if let (true, Ok(Some(code))) = (build.waiters.is_empty(), &result) {
            remove(code);
        }
        for (ticket, waiter) in build.waiters {
            match (&result, waiter) {
                (Err(refusal), _) => ticket.refuse(named(refusal, &build.what)),
                (Ok(_), Waiter::Package(ready)) => answer(ticket, *ready),
                (Ok(code), Waiter::Composition) => {
                    let cargo = code.clone().map(|code| Cargo::Composition(build.key.clone(), code));
                    ticket.answer(EffectOutcome::Done, cargo);
                }
            }
        }
    }

    /// Drops the entries of askers that gave up. A package's code keeps its place in the queue for a while, for an asker that comes back.
    fn abandon(&mut self, id: EffectId) {
        let now = Instant::now();
        self.fetches.take_out(|fetch| fetch.ticket.id() != id);
        for (_, build) in lock(&self.builds).waiting_mut() {
            build.waiters.retain(|(ticket, _)| ticket.id() != id);
            build.abandoned = build.waiters.is_empty().then(|| build.abandoned.unwrap_or(now));
        }
        for joined in self.building.values_mut() {
            joined.waiters.retain(|(ticket, _)| ticket.id() != id);
        }
        self.forget_abandoned(now);
    }

    /// Forgets what nobody has waited for in a long time, compositions, which nobody would find, and what one user has too many of.
    fn forget_abandoned(&self, now: Instant) {
        let mut builds = lock(&self.builds);
        builds.take_out(|_, build| {
            let is_fresh = |since: Instant| now < since + ABANDONED_BUILD_TIME && build.package.is_some();
            build.abandoned.is_none_or(is_fresh)
        });
        let mut by_user: BTreeMap<UserId, Vec<Instant>> = BTreeMap::new();
        for (user, build) in builds.waiting_mut() {
            by_user.entry(user.clone()).or_default().extend(build.abandoned);
        }
        for times in by_user.values_mut() {
            times.sort_unstable();
        }
        builds.take_out(|user, build| {
            let mut too_many = by_user.get_mut(user).filter(|times| times.len() > ABANDONED_BUILDS_PER_USER_MAX);
            let is_first = too_many.as_ref().is_some_and(|times| build.abandoned == times.first().copied());
            if let (true, Some(times)) = (is_first, &mut too_many) {
                times.remove(0);
            }
            !is_first
        });
    }

    /// Begins whatever has its turn.
    fn begin(&mut self) {
        while self.fetches.running() < FETCHES_OF_ALL_MAX
            && let Some((user, fetch)) = self.fetches.next(self.fetches.running() >= FETCHES_MAX)
        {
            let (packages, requests, by) = (self.packages.clone(), self.requests.clone(), user.clone());
            let Fetch { url, digest, keys, state, ticket } = fetch;
            let begun = spawn("fetch", move || {
                let fetched = packages.fetch_with(&user, &url, digest, &keys, state.as_ref()).map(Box::new);
                // The node may have ended.
                let _ = requests.send(PackageRequest::Fetched(user, ticket, fetched));
            });
            if !begun {
                self.fetches.end(&by);
            }
        }
        let now = Instant::now();
        while let Some((id, lane, build)) = self.next_build(now) {
            self.building.insert(build.key.clone(), Joined::default());
            let (key, lanes) = (build.key.clone(), Arc::clone(&self.builds));
            let (packages, requests) = (self.packages.clone(), self.requests.clone());
            let begun = spawn("compile", move || {
                let mut slices = Slices {
                    id,
                    lane,
                    lanes,
                    requests,
                    before: Duration::ZERO,
                    cpu_time: Duration::ZERO,
                    is_in_background: false,
                };
                let begun = Instant::now();
                let result = build.make(&packages, begun, &mut slices);
                let (cpu_time, time) = (slices.cpu_time, begun.elapsed());
                // The node may have ended.
                let _ = slices.requests.send(PackageRequest::Built(
                    id,
                    Box::new(build),
                    Made { end: result, cpu_time, time },
                ));
            });
            if !begun {
                lock(&self.builds).end(id, now, Duration::ZERO, Duration::ZERO);
                self.building.remove(&key);
            }
        }
    }

    fn next_build(&self, now: Instant) -> Option<(BuildId, CompileLane, Build)> {
        lock(&self.builds).next(now)
    }
}

/// What a build has of the compiler: a place in a lane after the other.
struct Slices {
    id: BuildId,
    lane: CompileLane,
    lanes: Arc<Mutex<Lanes<Build>>>,
    requests: Sender<PackageRequest>,
    /// Processor time of the files before.
    before: Duration,
    /// That of all of them.
    cpu_time: Duration,
    is_in_background: bool,
}

impl Slices {
    /// Takes note of how long it took so far. Returns whether it may go on.
    fn may_go_on(&mut self, begun: Instant, progress: &Progress<'_>) -> bool {
        if self.before + progress.cpu_time < self.cpu_time {
            // Another file.
            (self.before, self.is_in_background) = (self.cpu_time, false);
        }
        self.cpu_time = self.before + progress.cpu_time;
        if counted(self.cpu_time, begun.elapsed()) >= self.lane.cpu_time() {
            let Some(next) = lock(&self.lanes).promote(self.id) else { return false };
            self.lane = next;
            // The node may have ended.
            let _ = self.requests.send(PackageRequest::Promoted);
        }
        if self.lane != CompileLane::Quick
            && !std::mem::replace(&mut self.is_in_background, true)
            && let Err(error) = progress.to_background(&BuildLimits::CODE.container)
        {
            tracing::debug!(%error, "a compilation keeps its weight");
        }
        true
    }
}

impl Build {
    fn make(
        &self,
        packages: &Packages,
        begun: Instant,
        slices: &mut Slices,
    ) -> Result<Result<Option<PathBuf>, Refusal>, CompileLane> {
        let cpu_time = packages.compile_cpu_time;
        let mut limits = BuildLimits { time: cpu_time * BUILD_TIME_PER_CPU_TIME, cpu_time, ..BuildLimits::CODE };
        if slices.lane == CompileLane::Quick {
            limits.container.memory_bytes = QUICK_COMPILE_MEMORY_BYTES;
        }
        let mut goes_on = true;
        let mut may_go_on = |progress: &Progress<'_>| {
            goes_on = slices.may_go_on(begun, progress);
            goes_on
        };
        let result = match &self.what {
            What::Compile(files) => packages.compile(files, &limits, &mut may_go_on).map(|()| None),
            What::Compose { components, .. } => packages.compose(components, &limits, &mut may_go_on).map(Some),
        };
        let has_too_little = |refusal: &Refusal| {
            !goes_on || (slices.lane == CompileLane::Quick && refusal.kind == RefusalKind::MemoryLimit)
        };
        match slices.lane.next().filter(|_| result.as_ref().is_err_and(has_too_little)) {
            Some(next) => Err(next),
            None => Ok(result),
        }
    }
}

fn lock(lanes: &Mutex<Lanes<Build>>) -> MutexGuard<'_, Lanes<Build>> {
    lanes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(code: &std::path::Path) {
    if let Err(error) = std::fs::remove_file(code) {
        tracing::debug!(%error, code = %code.display(), "a composition is left behind");
    }
}

fn answer(ticket: Ticket, ready: Ready) {
    let Ready { stored, flavour, parts, state, .. } = ready;
    let manifest = Box::new(stored.manifest.clone());
    let cargo = match state {
        None => Cargo::Code(stored.digest, flavour, parts),
        Some((state, file)) => Cargo::CodeAndState(stored.digest, flavour, parts, state, file),
    };
    ticket.answer(EffectOutcome::Fetched { manifest, flavour }, Some(cargo));
}

/// Runs something that blocks on a thread of its own; false without a thread, and its ticket is dropped, which answers it.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    spawned.inspect_err(|error| tracing::error!(%error, "the system gives no thread to {name}")).is_ok()
}

/// Puts modules' names in the place of `part 1` and so on, which is all that a compiler knows.
fn named(refusal: &Refusal, what: &What) -> Refusal {
    let What::Compose { names, .. } = what else { return refusal.clone() };
    // The last first, as `part 1` is also how `part 12` begins.
    let detail = names.iter().enumerate().rev().fold(refusal.detail.clone(), |detail, (before, name)| {
        detail.replace(&format!("part {}", before + 1), &name.to_string())
    });
    Refusal::new(refusal.kind, detail).with_context(&refusal.context)
}

#[cfg(test)]
mod tests {
    use netserv_model::Flavour;
    use netserv_repository::Part;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::effects::packages::tests::{packages, store};

    /// Goal: who gives up waiting and asks again finds the place in the queue that it had. Method: one more than there may be is
    /// given up, then one of them is asked for anew.
    #[test]
    fn code_that_nobody_waits_for_keeps_its_place_within_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let packages = packages(dir.path(), &[Flavour::Wasm]);
        let package = Arc::new(store(dir.path(), &packages, &[Part::Core], false));
        let mut schedule = Schedule::new(packages, channel().0);
        let (answers, _inbox) = unbounded_channel();
        let user: UserId = "jane".parse().unwrap();
        let ask = |schedule: &mut Schedule, number: usize, ticket: u64, package: Option<&Arc<Stored>>| {
            let waiters = vec![(Ticket::new(EffectId(ticket), answers.clone()), Waiter::Composition)];
            let (what, key) = (What::Compile(Vec::new()), vec![Digest([u8::try_from(number).unwrap(); 32])]);
            let package = package.cloned();
            let build = Build { users: BTreeSet::new(), key, what, waiters, package, abandoned: None };
            schedule.build(user.clone(), build);
        };
        let numbers = |schedule: &Schedule| {
            lock(&schedule.builds).waiting_mut().map(|(_, build)| build.key[0].0[0].into()).collect::<Vec<usize>>()
        };
        for number in 0..=ABANDONED_BUILDS_PER_USER_MAX {
            ask(&mut schedule, number, number as u64, Some(&package));
        }
        for number in 0..=ABANDONED_BUILDS_PER_USER_MAX {
            schedule.abandon(EffectId(number as u64));
        }
        let kept: Vec<usize> = (1..=ABANDONED_BUILDS_PER_USER_MAX).collect();
        assert_eq!(numbers(&schedule), kept, "the one that was given up first goes");
        ask(&mut schedule, 3, 100, Some(&package));
        assert_eq!(numbers(&schedule), kept, "it has the place that it had");
        // What is waited for is not among them, and a composition that nobody waits for is of no use.
        ask(&mut schedule, 99, 101, None);
        schedule.abandon(EffectId(101));
        let later = Instant::now() + ABANDONED_BUILD_TIME;
        schedule.forget_abandoned(later);
        assert_eq!(numbers(&schedule), [3]);
    }

    #[test]
    fn refusals_name_modules() {
        let names: Vec<ModuleRef> = (1..=12).map(|n| format!("example.org/m{n}@1.0.0").parse().unwrap()).collect();
        let refusal = Refusal::new(RefusalKind::BadService, "part 12 cannot hand requests on to part 1: no part");
        let expected = "example.org/m12@1.0.0 cannot hand requests on to example.org/m1@1.0.0: no part";
        let what = What::Compose { components: Vec::new(), names };
        assert_eq!(named(&refusal, &what), Refusal::new(RefusalKind::BadService, expected));
    }
}
