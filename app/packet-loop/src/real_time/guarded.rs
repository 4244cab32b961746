// SPDX-License-Identifier: Apache-2.0
//! What the guard looks at: packet threads, workers' threads, and the time that is left for the class.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use netserv_container::{Activity, Class, ScheduledThread};
use rustix::thread::CpuSet;

use super::threads::{Candidate, PRIORITY, Pulse, Standing, Used, nanos};
use crate::limits::{
    ASKED_PER_LOOK_MAX, GUARD_INTERVAL, HOG_LOOKS_MAX, IDLE_LOOKS_MAX, PENALTY, SHARE_BURST, SHARE_MAX, SHARE_RETURN,
};

/// What the guard knows.
pub(super) struct Guarded {
    /// The packet threads, by lane.
    pub(super) own: Vec<Own>,
    pub(super) members: Vec<Member>,
    /// Whether packet thread and workers are in the class.
    pub(super) in_force: bool,
    pub(super) share: Share,
    looked_at: Instant,
    /// The place of the member that is asked next whether it runs.
    asked: usize,
}

/// A packet thread.
pub(super) struct Own {
    pub(super) thread: ScheduledThread,
    pub(super) pulse: Arc<Pulse>,
    pub(super) used: Used,
    /// The cores that it may run on.
    pub(super) cores: CpuSet,
    idle_ns: u64,
    /// Since when it says nothing although it should.
    silent: Option<Watched>,
}

/// What a thread had used of a processor at a moment.
struct Watched {
    at: Instant,
    /// `None` if that is not told.
    used: Option<Duration>,
    looks: u32,
}

impl Watched {
    fn begin(at: Instant, used: Option<Duration>) -> Watched {
        Watched { at, used, looks: 0 }
    }

    /// Returns whether it ran for most of the time since then. One of which that is not told did.
    fn ran(&self, now: Instant, used: Option<Duration>) -> bool {
        let (Some(before), Some(used)) = (self.used, used) else { return true };
        used.saturating_sub(before) * 2 >= now.saturating_duration_since(self.at)
    }
}

pub(super) struct Member {
    pub(super) candidate: Candidate,
    pub(super) standing: Standing,
    /// What it did at the last look, and for how many looks it has been at that.
    activity: Activity,
    looks: u32,
    /// Since when it is in a call, or a packet thread without its core.
    suspected: Option<Watched>,
    /// For how many looks it has been running although there are no packets.
    runs: u32,
    /// Until when it is usual.
    banned_until: Option<Instant>,
}

impl Guarded {
    pub(super) fn new(own: Own, now: Instant) -> Guarded {
        let (own, members) = (vec![own], Vec::new());
        Guarded { own, members, in_force: true, share: Share::default(), looked_at: now, asked: 0 }
    }

    /// Adds the thread of a further lane.
    pub(super) fn join(&mut self, own: Own) {
        if !self.in_force {
            note(own.thread.set_class(Class::Usual));
        }
        self.own.push(own);
    }

    /// Forgets the thread of a lane that ends.
    pub(super) fn leave(&mut self, pulse: &Arc<Pulse>) {
        self.own.retain(|own| !Arc::ptr_eq(&own.pulse, pulse));
    }

    pub(super) fn add(&mut self, candidate: Candidate, standing: Standing) {
        let activity = (candidate.activity)();
        let mut member =
            Member { candidate, standing, activity, looks: 0, suspected: None, runs: 0, banned_until: None };
        member.stand(self.in_force);
        self.members.push(member);
    }

    /// Looks at everybody; returns whether packet threads are in the class from here on.
    pub(super) fn look(&mut self, now: Instant, begun: Instant) -> bool {
        let now_ns = nanos(now.saturating_duration_since(begun));
        let passed = now.saturating_duration_since(self.looked_at);
        self.looked_at = now;
        let used = self.used(now_ns, passed);
        // A worker that runs meanwhile uses the class up.
        let used = if used * 2 < passed && self.one_runs(now) { passed } else { used };
        let wanted = self.share.spend(passed, used, self.in_force);
        let starved = self.own.iter_mut().map(|own| own.starved(now, now_ns)).max().unwrap_or(Starved::No);
        for member in &mut self.members {
            member.look(now, starved, self.in_force);
        }
        if wanted != self.in_force {
            self.set_all(wanted);
        }
        self.in_force
    }

    /// Returns how much of the time that passed lanes used of the core of which they used most. Lanes whose threads have the
    /// same cores share them; one thread is never on two.
    fn used(&mut self, now_ns: u64, passed: Duration) -> Duration {
        let used = |own: &mut Own| (own.cores, passed.saturating_sub(own.idled(now_ns)));
        let used: Vec<(CpuSet, Duration)> = self.own.iter_mut().map(used).collect();
        let of_core = |cores: CpuSet| {
            let sharing = used.iter().filter(|(theirs, _)| *theirs == cores);
            let (lanes, sum) =
                sharing.fold((0, Duration::ZERO), |(lanes, sum), (_, used)| (lanes + 1, sum.saturating_add(*used)));
            sum / cores.count().clamp(1, lanes)
        };
        used.iter().map(|(cores, _)| of_core(*cores)).max().unwrap_or_default().min(passed)
    }

    /// Returns whether a worker runs although there are no packets. It asks some, and first the one that did at the last look.
    pub(super) fn one_runs(&mut self, now: Instant) -> bool {
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

    pub(super) fn set_all(&mut self, in_force: bool) {
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

/// Whether a packet thread wants its core and does not have it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Starved {
    No,
    /// It has said nothing for a while, for whatever reason.
    Perhaps,
    Yes,
}

impl Own {
    pub(super) fn new(thread: ScheduledThread, pulse: Arc<Pulse>, used: Used, cores: CpuSet) -> Own {
        Own { thread, pulse, used, cores, idle_ns: 0, silent: None }
    }

    /// Returns for how long it waited for packets since the last look.
    fn idled(&mut self, now_ns: u64) -> Duration {
        let idle_since = self.pulse.idle_since_ns.load(Ordering::Relaxed);
        let idles = if idle_since == 0 { 0 } else { now_ns.saturating_sub(idle_since) };
        let before = self.idle_ns;
        self.idle_ns = (self.pulse.idle_ns.load(Ordering::Relaxed) + idles).max(before);
        Duration::from_nanos(self.idle_ns - before)
    }

    fn starved(&mut self, now: Instant, now_ns: u64) -> Starved {
        let silence = self.silence(now_ns);
        if silence <= GUARD_INTERVAL {
            self.silent = None;
            return Starved::No;
        }
        let used = (self.used)(&self.thread);
        let silent = self.silent.get_or_insert_with(|| Watched::begin(now, used));
        silent.looks += 1;
        // A long turn of its own is nobody's fault, nor is that it waits for something else than the core.
        let waits = used.is_some() && silent.ran(now, used) || !self.thread.is_running();
        match silence > GUARD_INTERVAL * HOG_LOOKS_MAX && silent.looks > 1 && !waits {
            true => Starved::Yes,
            false => Starved::Perhaps,
        }
    }

    /// Returns for how long it has said nothing although it should have.
    fn silence(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.pulse.quiet_until_ns.load(Ordering::Relaxed)))
    }
}

impl Member {
    fn look(&mut self, now: Instant, starved: Starved, in_force: bool) {
        let activity = (self.candidate.activity)();
        // By looks and not by time, so that a machine that stood still blames nobody.
        self.looks = if activity == self.activity { self.looks + 1 } else { 0 };
        self.activity = activity;
        let is_hog = self.keeps_its_core(now, starved);
        if is_hog && self.standing.is_real_time() {
            tracing::debug!(?activity, "a worker keeps its core, and leaves the real-time class for a while");
            self.ban(now);
        } else if self.banned_until.is_some_and(|until| until <= now) {
            self.banned_until = None;
            self.stand(in_force);
        }
    }

    /// Returns whether it has been in one call for too long, or a packet thread without its core, and it runs meanwhile.
    fn keeps_its_core(&mut self, now: Instant, starved: Starved) -> bool {
        let is_in_call = self.activity.module.is_some();
        if self.looks == 0 || starved == Starved::No && !is_in_call {
            self.suspected = None;
            return false;
        }
        let used = (self.candidate.used)(&self.candidate.thread);
        let suspected = self.suspected.get_or_insert_with(|| Watched::begin(now, used));
        suspected.looks += 1;
        let is_long = self.looks >= HOG_LOOKS_MAX && suspected.looks > 1;
        is_long && (starved == Starved::Yes || is_in_call) && suspected.ran(now, used)
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
        self.suspected = None;
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
pub(super) struct Share {
    pub(super) left: Duration,
}

impl Default for Share {
    fn default() -> Share {
        Share { left: SHARE_BURST }
    }
}

impl Share {
    /// Takes what was used of the time that passed; returns whether the class may be in force from here on.
    pub(super) fn spend(&mut self, passed: Duration, used: Duration, in_force: bool) -> bool {
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
