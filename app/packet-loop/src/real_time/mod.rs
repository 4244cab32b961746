// SPDX-License-Identifier: Apache-2.0
//! The real-time class: packet thread and workers before all usual programs of their cores, and a guard above them.
//!
//! Packet threads and workers have one priority and hand the core over to each other. The guard has the next one, so it runs
//! whatever they do. It takes the class away
//!
//! - from a worker that stays in one call, or in nothing while a packet thread waits for its core, for [`HOG_LOOKS_MAX`] looks,
//!   and runs for most of that time: it is usual for [`PENALTY`], and the watchdog of the packet loop ends it if it hangs;
//! - from a worker that has something to do in so many looks while the packet thread waits for packets: what workers do then
//!   is not worth the class, and time that nobody accounts for could be used up by one that never sleeps;
//! - from all of them for a moment when they have used up [`SHARE_MAX`] of the time of one core, so that the kernel never stops
//!   them (`sched_rt_runtime_us`) and other programs get some. Lanes on the same core use its time together.
//!
//! [`HOG_LOOKS_MAX`]: crate::limits::HOG_LOOKS_MAX
//! [`PENALTY`]: crate::limits::PENALTY
//! [`SHARE_MAX`]: crate::limits::SHARE_MAX
//!
//! Who is not in the class works as without it, only later; no packet passes by a module because of that.

mod guarded;
mod threads;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netserv_container::{Class, ScheduledThread};
use rustix::thread::sched_getaffinity;

use crate::limits::{GUARD_INTERVAL, SHARE_SPIN};
use guarded::{Guarded, Own};
pub(crate) use threads::{Candidate, Standing, used};
use threads::{PRIORITY, Pulse, nanos};

/// That of the guard.
const GUARD_PRIORITY: u8 = PRIORITY + 1;

/// The real-time class as the packet loop of a lane uses it. Threads return to the usual class when the last is dropped.
pub(crate) struct RealTime {
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

impl RealTime {
    /// Puts the calling thread into the class, and starts the guard on the same cores.
    pub(crate) fn begin() -> anyhow::Result<RealTime> {
        let (now, pulse) = (Instant::now(), Arc::<Pulse>::default());
        let own = raise_this(&pulse)?;
        let club = Club {
            begun: now,
            guarded: Arc::new(Mutex::new(Guarded::new(own, now))),
            in_force: Arc::new(AtomicBool::new(true)),
            may_spin: Arc::default(),
            ended: Arc::default(),
        };
        club.start_guard()?;
        Ok(RealTime { pulse, club: RealTimeClub(Arc::new(club)) })
    }

    /// Returns what the loops of other lanes join by.
    pub(crate) fn club(&self) -> RealTimeClub {
        self.club.clone()
    }

    /// Adds a worker's thread, whose standing tells from here on whether it is in the class.
    pub(crate) fn add(&self, candidate: Candidate, standing: Standing) {
        self.club.0.lock().add(candidate, standing);
    }

    /// Forgets a worker's thread.
    pub(crate) fn remove(&self, standing: &Standing) {
        self.club.0.lock().members.retain(|member| !Arc::ptr_eq(&member.standing.0, &standing.0));
    }

    /// Returns whether the packet thread is in the class at this moment.
    pub(crate) fn is_in_force(&self) -> bool {
        self.club.0.in_force.load(Ordering::Relaxed)
    }

    /// Returns whether there is time left to look for packets again and again.
    pub(crate) fn may_spin(&self) -> bool {
        self.club.0.may_spin.load(Ordering::Relaxed)
    }

    /// Says that the loop runs.
    pub(crate) fn beat(&self, now: Instant) {
        self.pulse.quiet_until_ns.store(self.nanos(now), Ordering::Relaxed);
    }

    /// Says that the loop sleeps for so long at most, and whether workers hold no packets.
    pub(crate) fn sleeps(&self, now: Instant, at_most: Duration, idle: bool) {
        self.beat(now + at_most);
        if idle {
            self.pulse.idle_since_ns.store(self.nanos(now), Ordering::Relaxed);
        }
    }

    /// Says that the loop woke up.
    pub(crate) fn wakes(&self, now: Instant) {
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
    pub(crate) fn join(&self) -> anyhow::Result<RealTime> {
        let pulse = Arc::<Pulse>::default();
        let own = raise_this(&pulse)?;
        let mut guarded = self.0.lock();
        pulse.quiet_until_ns.store(nanos(self.0.begun.elapsed()), Ordering::Relaxed);
        guarded.join(own);
        Ok(RealTime { pulse, club: self.clone() })
    }
}

/// Puts the calling thread into the class.
fn raise_this(pulse: &Arc<Pulse>) -> anyhow::Result<Own> {
    let own = ScheduledThread::this().context("the packet thread")?;
    own.set_class(Class::RealTime(PRIORITY)).context("the kernel refuses the real-time class")?;
    let cores = sched_getaffinity(None).context("the cores of the packet thread")?;
    Ok(Own::new(own, pulse.clone(), used(), cores))
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

#[cfg(test)]
mod tests;
