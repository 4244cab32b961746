// SPDX-License-Identifier: Apache-2.0
//! The real-time class: packet thread and workers before all usual programs of their cores, and a guard above them.
//!
//! Packet threads and workers have one priority and hand the core over to each other. The guard has the next one, so it runs
//! whatever they do. It takes the class away
//!
//! - from a worker that stays in one call, or keeps the packet thread from its core, for [`HOG_LOOKS_MAX`] looks: it is usual for
//!   [`PENALTY`], and the watchdog of the packet loop ends it if it hangs;
//! - from a worker that has something to do in so many looks while the packet thread waits for packets: what workers do then
//!   is not worth the class, and time that nobody accounts for could be used up by one that never sleeps;
//! - from all of them for a moment when they have used up [`SHARE_MAX`] of the time, so that the kernel never stops them
//!   (`sched_rt_runtime_us`) and other programs get some.
//!
//! Who is not in the class works as without it, only later; no packet passes by a module because of that.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netserv_container::{Activity, Class, ScheduledThread};

use crate::limits::{
    ASKED_PER_LOOK_MAX, GUARD_INTERVAL, HOG_LOOKS_MAX, IDLE_LOOKS_MAX, PENALTY, SHARE_BURST, SHARE_MAX, SHARE_RETURN,
    SHARE_SPIN,
};

/// The priority of packet thread and workers; nearly everything else in the class goes before them.
const PRIORITY: u8 = 2;
/// That of the guard.
const GUARD_PRIORITY: u8 = PRIORITY + 1;

/// What the packet loop and the guard tell each other.
#[derive(Default)]
pub(super) struct Pulse {
    /// Until when nobody has to wonder that the loop says nothing, in nanoseconds since the beginning.
    quiet_until_ns: AtomicU64,
    /// Since when the loop waits for packets and no worker has any; 0 while that is not so.
    idle_since_ns: AtomicU64,
    /// How long that was so before.
    idle_ns: AtomicU64,
}

/// The real-time class as the packet loop of a lane uses it. Threads return to the usual class when the last is dropped.
pub(super) struct RealTime {
    pulse: Arc<Pulse>,
    club: RealTimeClub,
}

/// What the packet loops of all lanes share of the real-time class.
#[derive(Clone)]
pub struct RealTimeClub(Arc<Club>);

struct Club {
    begun: Instant,
    guarded: Arc<Mutex<Guarded>>,
    in_force: Arc<AtomicBool>,
    may_spin: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
}

/// Says whether a worker's thread is in the class at this moment.
#[derive(Clone, Default)]
pub(super) struct Standing(pub(super) Arc<AtomicBool>);

impl Standing {
    pub(super) fn is_real_time(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A thread that may be in the class.
pub(super) struct Candidate {
    /// The thread.
    pub(super) thread: ScheduledThread,
    /// Tells what the worker is doing.
    pub(super) activity: Box<dyn Fn() -> Activity + Send + Sync>,
}

impl RealTime {
    /// Puts the calling thread into the class, and starts the guard on the same cores.
    pub(super) fn begin() -> anyhow::Result<RealTime> {
        let own = raise_this()?;
        let (now, pulse) = (Instant::now(), Arc::<Pulse>::default());
        let club = Club {
            begun: now,
            guarded: Arc::new(Mutex::new(Guarded::new(own, pulse.clone(), now))),
            in_force: Arc::new(AtomicBool::new(true)),
            may_spin: Arc::default(),
            ended: Arc::default(),
        };
        club.start_guard()?;
        Ok(RealTime { pulse, club: RealTimeClub(Arc::new(club)) })
    }

    /// Returns what the loops of other lanes join by.
    pub(super) fn club(&self) -> RealTimeClub {
        self.club.clone()
    }

    /// Adds a worker's thread, whose standing tells from here on whether it is in the class.
    pub(super) fn add(&self, candidate: Candidate, standing: Standing) {
        self.club.0.lock().add(candidate, standing);
    }

    /// Forgets a worker's thread.
    pub(super) fn remove(&self, standing: &Standing) {
        self.club.0.lock().members.retain(|member| !Arc::ptr_eq(&member.standing.0, &standing.0));
    }

    /// Returns whether the packet thread is in the class at this moment.
    pub(super) fn is_in_force(&self) -> bool {
        self.club.0.in_force.load(Ordering::Relaxed)
    }

    /// Returns whether there is time left to look for packets again and again.
    pub(super) fn may_spin(&self) -> bool {
        self.club.0.may_spin.load(Ordering::Relaxed)
    }

    /// Says that the loop runs.
    pub(super) fn beat(&self, now: Instant) {
        self.pulse.quiet_until_ns.store(self.nanos(now), Ordering::Relaxed);
    }

    /// Says that the loop sleeps for so long at most, and whether workers hold no packets.
    pub(super) fn sleeps(&self, now: Instant, at_most: Duration, idle: bool) {
        self.beat(now + at_most);
        if idle {
            self.pulse.idle_since_ns.store(self.nanos(now), Ordering::Relaxed);
        }
    }

    /// Says that the loop woke up.
    pub(super) fn wakes(&self, now: Instant) {
        let since = self.pulse.idle_since_ns.swap(0, Ordering::Relaxed);
        if since > 0 {
            self.pulse.idle_ns.fetch_add(self.nanos(now).saturating_sub(since), Ordering::Relaxed);
        }
        self.beat(now);
    }

    fn nanos(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.club.0.begun))
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        // A thread that ended says nothing any more.
        self.club.0.lock().leave(&self.pulse);
    }
}

impl RealTimeClub {
    /// Puts the calling thread, that of another lane, into the class.
    pub(super) fn join(&self) -> anyhow::Result<RealTime> {
        let (own, pulse) = (raise_this()?, Arc::<Pulse>::default());
        let mut guarded = self.0.lock();
        pulse.quiet_until_ns.store(nanos(self.0.begun.elapsed()), Ordering::Relaxed);
        guarded.join(own, pulse.clone());
        Ok(RealTime { pulse, club: self.clone() })
    }
}

/// Puts the calling thread into the class.
fn raise_this() -> anyhow::Result<ScheduledThread> {
    let own = ScheduledThread::this().context("the packet thread")?;
    own.set_class(Class::RealTime(PRIORITY)).context("the kernel refuses the real-time class")?;
    Ok(own)
}

impl Club {
    fn start_guard(&self) -> anyhow::Result<()> {
        let guarded = self.guarded.clone();
        let (begun, ended) = (self.begun, self.ended.clone());
        let (in_force, may_spin) = (self.in_force.clone(), self.may_spin.clone());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let guard = move || {
            let raised = ScheduledThread::this().and_then(|this| this.set_class(Class::RealTime(GUARD_PRIORITY)));
            let ok = raised.is_ok();
            // The receiver waits for it.
            let _ = ready.send(raised);
            while ok && !ended.load(Ordering::Relaxed) {
                std::thread::sleep(GUARD_INTERVAL);
                let mut guarded = guarded.lock().unwrap_or_else(PoisonError::into_inner);
                in_force.store(guarded.look(Instant::now(), begun), Ordering::Relaxed);
                may_spin.store(guarded.in_force && guarded.share.left >= SHARE_SPIN, Ordering::Relaxed);
            }
        };
        std::thread::Builder::new().name("guard".into()).spawn(guard).context("the guard's thread")?;
        is_ready.recv().context("the guard's thread")?.context("the kernel refuses the guard's priority")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Guarded> {
        self.guarded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Club {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let mut guarded = self.lock();
        guarded.set_all(false);
        guarded.members.clear();
    }
}

/// What the guard knows.
struct Guarded {
    /// The packet threads, by lane.
    own: Vec<Own>,
    members: Vec<Member>,
    /// Whether packet thread and workers are in the class.
    in_force: bool,
    share: Share,
    looked_at: Instant,
    /// The place of the member that is asked next whether it runs.
    asked: usize,
}

/// A packet thread.
struct Own {
    thread: ScheduledThread,
    pulse: Arc<Pulse>,
    idle_ns: u64,
}

struct Member {
    candidate: Candidate,
    standing: Standing,
    /// What it did at the last look, and for how many looks it has been at that.
    activity: Activity,
    looks: u32,
    /// For how many looks it has been running although there are no packets.
    runs: u32,
    /// Until when it is usual.
    banned_until: Option<Instant>,
}

impl Guarded {
    fn new(own: ScheduledThread, pulse: Arc<Pulse>, now: Instant) -> Guarded {
        let (own, members) = (vec![Own { thread: own, pulse, idle_ns: 0 }], Vec::new());
        Guarded { own, members, in_force: true, share: Share::default(), looked_at: now, asked: 0 }
    }

    /// Adds the thread of a further lane.
    fn join(&mut self, thread: ScheduledThread, pulse: Arc<Pulse>) {
        if !self.in_force {
            note(thread.set_class(Class::Usual));
        }
        self.own.push(Own { thread, pulse, idle_ns: 0 });
    }

    /// Forgets the thread of a lane that ends.
    fn leave(&mut self, pulse: &Arc<Pulse>) {
        self.own.retain(|own| !Arc::ptr_eq(&own.pulse, pulse));
    }

    fn add(&mut self, candidate: Candidate, standing: Standing) {
        let activity = (candidate.activity)();
        let mut member = Member { candidate, standing, activity, looks: 0, runs: 0, banned_until: None };
        member.stand(self.in_force);
        self.members.push(member);
    }

    /// Looks at everybody; returns whether packet threads are in the class from here on.
    fn look(&mut self, now: Instant, begun: Instant) -> bool {
        let now_ns = nanos(now.saturating_duration_since(begun));
        // Each has a core of its own, and what the busiest one uses is what counts.
        let idle = self.own.iter_mut().map(|own| own.idled(now_ns)).min().unwrap_or_default();
        let passed = now.saturating_duration_since(self.looked_at);
        self.looked_at = now;
        // A worker that runs meanwhile uses the class up.
        let used = if idle * 2 > passed && self.one_runs(now) { passed } else { passed.saturating_sub(idle) };
        let wanted = self.share.spend(passed, used, self.in_force);
        let starved = self.own.iter().any(|own| own.silence(now_ns) > GUARD_INTERVAL * HOG_LOOKS_MAX);
        for member in &mut self.members {
            member.look(now, starved, self.in_force);
        }
        if wanted != self.in_force {
            self.set_all(wanted);
        }
        self.in_force
    }

    /// Returns whether a worker runs although there are no packets. It asks some, and first the one that did at the last look.
    fn one_runs(&mut self, now: Instant) -> bool {
        let count = self.members.len();
        for _ in 0..count.min(ASKED_PER_LOOK_MAX) {
            self.asked %= count;
            if self.members[self.asked].runs_idly(now) {
                return true;
            }
            self.asked += 1;
        }
        false
    }

    fn set_all(&mut self, in_force: bool) {
        self.in_force = in_force;
        // Workers go last into the class, and leave it first, so that none is in it without the packet thread.
        if in_force {
            self.in_force = self.own.iter().all(|own| own.thread.set_class(Class::RealTime(PRIORITY)).is_ok());
        }
        let in_force = self.in_force;
        self.members.iter_mut().for_each(|member| member.stand(in_force));
        if !in_force {
            self.own.iter().for_each(|own| note(own.thread.set_class(Class::Usual)));
        }
    }
}

impl Own {
    /// Returns for how long it waited for packets since the last look.
    fn idled(&mut self, now_ns: u64) -> Duration {
        let idle_since = self.pulse.idle_since_ns.load(Ordering::Relaxed);
        let idles = if idle_since == 0 { 0 } else { now_ns.saturating_sub(idle_since) };
        let before = self.idle_ns;
        self.idle_ns = (self.pulse.idle_ns.load(Ordering::Relaxed) + idles).max(before);
        Duration::from_nanos(self.idle_ns - before)
    }

    /// Returns for how long it has said nothing although it should have.
    fn silence(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.pulse.quiet_until_ns.load(Ordering::Relaxed)))
    }
}

impl Member {
    fn look(&mut self, now: Instant, starved: bool, in_force: bool) {
        let activity = (self.candidate.activity)();
        // By looks and not by time, so that a machine that stood still blames nobody.
        self.looks = if activity == self.activity { self.looks + 1 } else { 0 };
        self.activity = activity;
        if self.looks >= HOG_LOOKS_MAX && (starved || activity.module.is_some()) && self.standing.is_real_time() {
            tracing::debug!(?activity, "a worker keeps its core, and leaves the real-time class for a while");
            self.ban(now);
        } else if self.banned_until.is_some_and(|until| until <= now) {
            self.banned_until = None;
            self.stand(in_force);
        }
    }

    /// Returns whether it is in the class and has something to do while there are no packets.
    fn runs_idly(&mut self, now: Instant) -> bool {
        if !self.standing.is_real_time() || !self.candidate.thread.is_running() {
            self.runs = 0;
            return false;
        }
        self.runs += 1;
        // One that has little to do is met at it now and then.
        if self.runs >= IDLE_LOOKS_MAX {
            tracing::debug!("a worker without packets does not sleep, and leaves the real-time class for a while");
            self.ban(now);
        }
        true
    }

    fn ban(&mut self, now: Instant) {
        (self.banned_until, self.runs) = (Some(now + PENALTY), 0);
        self.stand(false);
    }

    fn stand(&mut self, in_force: bool) {
        let in_force = in_force && self.banned_until.is_none();
        let class = if in_force { Class::RealTime(PRIORITY) } else { Class::Usual };
        let set = self.candidate.thread.set_class(class);
        self.standing.0.store(in_force && set.is_ok(), Ordering::Relaxed);
        note(set);
    }
}

/// What is left of the time that the class may take.
struct Share {
    left: Duration,
}

impl Default for Share {
    fn default() -> Share {
        Share { left: SHARE_BURST }
    }
}

impl Share {
    /// Takes what was used of the time that passed; returns whether the class may be in force from here on.
    fn spend(&mut self, passed: Duration, used: Duration, in_force: bool) -> bool {
        let used = if in_force { used } else { Duration::ZERO };
        self.left = (self.left + passed.mul_f64(SHARE_MAX)).saturating_sub(used).min(SHARE_BURST);
        self.left >= if in_force { GUARD_INTERVAL } else { SHARE_RETURN }
    }
}

/// A thread that just ended has no class any more.
fn note(set: io::Result<()>) {
    if let Err(error) = set {
        tracing::debug!(%error, "a thread's class cannot be set");
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
