// SPDX-License-Identifier: Apache-2.0
//! Who waits for which package, and what is fetched and compiled next.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use anyhow::{Context, Result};
use netserv_container::BuildLimits;
use netserv_model::effect::{EffectId, EffectOutcome};
use netserv_model::request::StateSource;
use netserv_model::{Digest, ModuleRef, PublicKey, Refusal, RefusalKind, UserId};

use super::turns::Turns;
use super::{Packages, Ready};
use crate::effects::ticket::{Cargo, Ticket};
use crate::limits::{
    COMPILE_TIME_PER_CPU_TIME, FETCHES_MAX, FETCHES_PER_USER_MAX, QUICK_COMPILE_TIME_MAX, SLOW_USER_TIME,
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
    /// A compilation ended: whose turn it was, in which lane, what it was.
    Built(Box<Build>, CompileLane, Result<Option<PathBuf>, Refusal>),
}

/// Where code is compiled. There is one of each, so that two are compiled at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompileLane {
    /// For users whose code was quick of late; what takes longer is ended there and has its turn in the other.
    Quick,
    /// For everything.
    Slow,
}

/// Code that is to be made, and who waits for it.
pub struct Build {
    user: UserId,
    /// The packages that it is made of: whoever wants the same waits for this one.
    key: Vec<Digest>,
    what: What,
    waiters: Vec<(Ticket, Waiter)>,
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
    let schedule = Schedule {
        packages,
        requests: requests.clone(),
        fetches: Turns::new(FETCHES_PER_USER_MAX),
        builds: Turns::new(1),
        building: BTreeMap::new(),
        joined: BTreeMap::new(),
        slow: BTreeMap::new(),
    };
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

struct Schedule {
    packages: Packages,
    requests: Sender<PackageRequest>,
    fetches: Turns<Fetch>,
    builds: Turns<Build>,
    /// What is compiled at the moment.
    building: BTreeMap<CompileLane, Vec<Digest>>,
    /// Who waits for what is compiled at the moment, beside those for whom it was begun.
    joined: BTreeMap<Vec<Digest>, Vec<(Ticket, Waiter)>>,
    /// Users whose code was slow to compile, and until when they have no turn in the quick lane.
    slow: BTreeMap<UserId, Instant>,
}

impl Schedule {
    fn run(mut self, inbox: &Receiver<PackageRequest>) {
        while let Ok(request) = inbox.recv() {
            match request {
                PackageRequest::Fetch { user, url, digest, keys, state, ticket } => {
                    self.fetches.push(user, Fetch { url, digest, keys, state, ticket });
                }
                PackageRequest::Compose { user, parts, components, names, ticket } => {
                    let what = What::Compose { components, names };
                    self.build(Build { user, key: parts, what, waiters: vec![(ticket, Waiter::Composition)] });
                }
                PackageRequest::Abandon(id) => self.abandon(id),
                PackageRequest::Remove(code) => remove(&code),
                PackageRequest::Fetched(user, ticket, result) => self.fetched(user, ticket, result),
                PackageRequest::Built(build, lane, result) => self.built(*build, lane, &result),
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
                self.build(Build { user, key, what, waiters: vec![(ticket, Waiter::Package(ready))] });
            }
        }
    }

    /// Has something built, or joins those who wait for the same.
    fn build(&mut self, build: Build) {
        if self.building.values().any(|key| *key == build.key) {
            return self.joined.entry(build.key).or_default().extend(build.waiters);
        }
        if let Some(other) = self.builds.waiting_mut().find(|other| other.key == build.key) {
            return other.waiters.extend(build.waiters);
        }
        self.builds.push(build.user.clone(), build);
    }

    fn built(&mut self, mut build: Build, lane: CompileLane, result: &Result<Option<PathBuf>, Refusal>) {
        self.builds.end(&build.user);
        self.building.remove(&lane);
        build.waiters.extend(self.joined.remove(&build.key).unwrap_or_default());
        let overdue = result.as_ref().is_err_and(|refusal| refusal.kind == RefusalKind::CompileLimit);
        if overdue {
            self.slow.insert(build.user.clone(), Instant::now() + SLOW_USER_TIME);
        }
        if overdue && lane == CompileLane::Quick && !build.waiters.is_empty() {
            return self.builds.push(build.user.clone(), build);
        }
        for (ticket, waiter) in build.waiters {
            match (result, waiter) {
                (Err(refusal), _) => ticket.refuse(named(refusal, &build.what)),
                (Ok(_), Waiter::Package(ready)) => answer(ticket, *ready),
                (Ok(code), Waiter::Composition) => {
                    let cargo = code.clone().map(|code| Cargo::Composition(build.key.clone(), code));
                    ticket.answer(EffectOutcome::Done, cargo);
                }
            }
        }
    }

    /// Forgets who does not wait any more, and what nobody waits for. What is under way comes to its own end.
    fn abandon(&mut self, id: EffectId) {
        self.fetches.take_out(|fetch| fetch.ticket.id() != id);
        self.builds.take_out(|build| {
            build.waiters.retain(|(ticket, _)| ticket.id() != id);
            !build.waiters.is_empty()
        });
        for waiters in self.joined.values_mut() {
            waiters.retain(|(ticket, _)| ticket.id() != id);
        }
    }

    /// Begins whatever has its turn.
    fn begin(&mut self) {
        while self.fetches.running() < FETCHES_MAX
            && let Some((user, fetch)) = self.fetches.next(|_| true)
        {
            let (packages, requests, by) = (self.packages.clone(), self.requests.clone(), user.clone());
            let Fetch { url, digest, keys, state, ticket } = fetch;
            let begun = spawn("fetch", move || {
                let fetched = packages.fetch_with(&url, digest, &keys, state.as_ref()).map(Box::new);
                // The node may have ended.
                let _ = requests.send(PackageRequest::Fetched(user, ticket, fetched));
            });
            if !begun {
                self.fetches.end(&by);
            }
        }
        let now = Instant::now();
        self.slow.retain(|_, until| *until > now);
        for lane in [CompileLane::Quick, CompileLane::Slow] {
            let slow = &self.slow;
            if !self.building.contains_key(&lane)
                && let Some((_, build)) = self.builds.next(|user| lane == CompileLane::Slow || !slow.contains_key(user))
            {
                self.building.insert(lane, build.key.clone());
                let (packages, requests, by) = (self.packages.clone(), self.requests.clone(), build.user.clone());
                let begun = spawn("compile", move || {
                    let result = build.make(&packages, lane);
                    // The node may have ended.
                    let _ = requests.send(PackageRequest::Built(Box::new(build), lane, result));
                });
                if !begun {
                    self.builds.end(&by);
                    self.building.remove(&lane);
                }
            }
        }
    }
}

impl Build {
    fn make(&self, packages: &Packages, lane: CompileLane) -> Result<Option<PathBuf>, Refusal> {
        let cpu_time = packages.compile_cpu_time;
        let time = match lane {
            CompileLane::Quick => QUICK_COMPILE_TIME_MAX,
            CompileLane::Slow => cpu_time * COMPILE_TIME_PER_CPU_TIME,
        };
        let limits = BuildLimits { time, cpu_time, ..BuildLimits::CODE };
        match &self.what {
            What::Compile(files) => packages.compile(files, &limits).map(|()| None),
            What::Compose { components, .. } => packages.compose(components, &limits).map(Some),
        }
    }
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
    use super::*;

    #[test]
    fn refusals_name_modules() {
        let names: Vec<ModuleRef> = (1..=12).map(|n| format!("example.org/m{n}@1.0.0").parse().unwrap()).collect();
        let refusal = Refusal::new(RefusalKind::BadService, "part 12 cannot hand requests on to part 1: no part");
        let expected = "example.org/m12@1.0.0 cannot hand requests on to example.org/m1@1.0.0: no part";
        let what = What::Compose { components: Vec::new(), names };
        assert_eq!(named(&refusal, &what), Refusal::new(RefusalKind::BadService, expected));
    }
}
