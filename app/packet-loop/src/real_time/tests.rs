// SPDX-License-Identifier: Apache-2.0
//! The guard of the real-time class, with a clock of the test's own and with threads of the machine.

use std::process::{Child, Command};
use std::sync::atomic::AtomicU64;

use netserv_container::Activity;
use netserv_model::effect::ModuleSlot;
use netserv_patience::grown;
use netserv_skips::not_run;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::guarded::Share;
use super::threads::Used;
use super::*;
use crate::limits::{ASKED_PER_LOOK_MAX, HOG_LOOKS_MAX, IDLE_LOOKS_MAX, PENALTY, SHARE_MAX};

#[test]
fn no_second_has_more_than_its_share_of_the_class() {
    let (mut share, mut in_force, mut used) = (Share::default(), true, Vec::new());
    for _ in 0..2000 {
        used.push(u32::from(in_force));
        in_force = share.spend(GUARD_INTERVAL, GUARD_INTERVAL, in_force);
    }
    let second = usize::try_from(Duration::from_secs(1).as_nanos() / GUARD_INTERVAL.as_nanos()).unwrap();
    let most = used.windows(second).map(|window| window.iter().sum::<u32>()).max().unwrap();
    assert!(GUARD_INTERVAL * most < Duration::from_millis(950), "{most}");
    assert!(GUARD_INTERVAL * most > Duration::from_millis(800), "{most}");
}

#[test]
fn who_idles_a_tenth_stays_in_the_class() {
    let mut share = Share::default();
    assert!((0..10_000).all(|_| share.spend(GUARD_INTERVAL, GUARD_INTERVAL.mul_f64(SHARE_MAX), true)));
}

#[test]
fn hog_looks_max_in_one_call_is_banned_for_penalty() {
    let begun = Instant::now();
    let pulse = Arc::<Pulse>::default();
    let clock = Clock::default();
    let mut guarded = Guarded::new(lane(&pulse, clock.never(), 0), begun);
    let candidate = candidate(Some(ModuleSlot(1)), clock.always());
    let standing = Standing::default();
    guarded.add(candidate, standing.clone());
    if !standing.is_real_time() {
        return not_run("hog_looks_max_in_one_call_is_banned_for_penalty", "no real-time class here");
    }
    let mut looked = begun;
    let mut look = |guarded: &mut Guarded, until: Instant| {
        while looked < until {
            looked += GUARD_INTERVAL;
            clock.set(looked - begun);
            pulse.quiet_until_ns.store(nanos(looked - begun), Ordering::Relaxed);
            pulse.idle_ns.fetch_add(nanos(GUARD_INTERVAL), Ordering::Relaxed);
            guarded.look(looked, begun);
        }
        looked
    };
    let hogged = GUARD_INTERVAL * HOG_LOOKS_MAX;
    look(&mut guarded, begun + hogged - GUARD_INTERVAL);
    assert!(standing.is_real_time());
    let banned = look(&mut guarded, begun + hogged + GUARD_INTERVAL);
    assert!(!standing.is_real_time());
    look(&mut guarded, banned + PENALTY - GUARD_INTERVAL * 2);
    assert!(!standing.is_real_time());
    guarded.members.clear();
    guarded.set_all(false);
}

/// A worker is put out for what it does with the processor itself. Method: it stays where it is, in a call or in none, while
/// the second of two packet threads says nothing; both of them run or do not.
#[test]
fn one_that_runs_while_a_lane_waits_for_its_core_is_banned() {
    for (in_call, is_silent, lane_runs, worker_runs, is_banned) in [
        (false, true, false, true, true),
        // The lane takes long by itself, or another program has its core.
        (false, true, true, false, false),
        (false, true, true, true, false),
        (false, true, false, false, false),
        (false, false, false, true, false),
        (true, false, false, true, true),
        // It waits for its core in the middle of a call.
        (true, false, false, false, false),
        (true, true, true, false, false),
    ] {
        let (begun, clock) = (Instant::now(), Clock::default());
        let pulses = [Arc::<Pulse>::default(), Arc::<Pulse>::default()];
        let mut guarded = Guarded::new(lane(&pulses[0], clock.never(), 0), begun);
        guarded.join(lane(&pulses[1], clock.of(lane_runs), 1));
        let standing = Standing::default();
        guarded.add(candidate(in_call.then_some(ModuleSlot(1)), clock.of(worker_runs)), standing.clone());
        if !standing.is_real_time() {
            return not_run("one_that_runs_while_a_lane_waits_for_its_core_is_banned", "no real-time class here");
        }
        for look in 1..=HOG_LOOKS_MAX * 2 + 1 {
            let now = begun + GUARD_INTERVAL * look;
            clock.set(now - begun);
            for (pulse, is_silent) in pulses.iter().zip([false, is_silent]) {
                pulse.idle_ns.fetch_add(nanos(GUARD_INTERVAL), Ordering::Relaxed);
                if !is_silent {
                    pulse.quiet_until_ns.store(nanos(now - begun), Ordering::Relaxed);
                }
            }
            guarded.look(now, begun);
        }
        let case = (in_call, is_silent, lane_runs, worker_runs);
        assert_eq!(standing.is_real_time(), !is_banned, "{case:?}");
        guarded.leave(&pulses[1]);
        assert_eq!(guarded.own.len(), 1);
        guarded.members.clear();
        guarded.set_all(false);
    }
}

/// The class has no more time than the packet threads of each core leave. Method: two of them wait for packets for a share of
/// the time, on one core or on two.
#[test]
fn time_is_used_up_by_all_lanes_of_a_core() {
    for (idle, cores, stays) in [
        ([1.0, 0.0], [0, 1], false),
        ([0.5, 0.5], [0, 1], true),
        ([0.5, 0.5], [0, 0], false),
        ([0.6, 0.6], [0, 0], true),
        ([0.02, 0.6], [0, 1], false),
    ] {
        let (begun, clock) = (Instant::now(), Clock::default());
        let pulses = [Arc::<Pulse>::default(), Arc::<Pulse>::default()];
        let mut guarded = Guarded::new(lane(&pulses[0], clock.never(), cores[0]), begun);
        guarded.join(lane(&pulses[1], clock.never(), cores[1]));
        let mut in_force = true;
        for look in 1..=100 {
            let now = begun + GUARD_INTERVAL * look;
            for (pulse, idle) in pulses.iter().zip(idle) {
                pulse.quiet_until_ns.store(nanos(now - begun), Ordering::Relaxed);
                pulse.idle_ns.fetch_add(nanos(GUARD_INTERVAL.mul_f64(idle)), Ordering::Relaxed);
            }
            in_force &= guarded.look(now, begun);
        }
        assert_eq!(in_force, stays, "{idle:?} on {cores:?}");
        guarded.set_all(false);
    }
}

/// A worker that never gives the core back. Method: packet thread and a process that computes for ever, both in the class on
/// one core; the packet thread yields to it, and has the core again because the guard puts the other one out.
#[test]
fn one_that_spins_for_ever_in_the_class_is_put_out_of_it() {
    const TEST: &str = "one_that_spins_for_ever_in_the_class_is_put_out_of_it";
    std::thread::spawn(|| {
        let available = sched_getaffinity(None).unwrap();
        let mut core = CpuSet::new();
        core.set((0..CpuSet::MAX_CPU).rfind(|core| available.is_set(*core)).unwrap());
        sched_setaffinity(None, &core).unwrap();
        let real_time = match RealTime::begin() {
            Ok(real_time) => real_time,
            Err(error) => return not_run(TEST, &format!("{error:#}")),
        };
        for module in [Some(ModuleSlot(3)), None] {
            let hog = Running::start("while :; do :; done");
            let pid = hog.0.id().cast_signed();
            sched_setaffinity(Pid::from_raw(pid), &core).unwrap();
            let thread = ScheduledThread::first_of(pid).unwrap();
            if thread.set_class(Class::RealTime(1)).is_err() {
                // A group of its own without a share.
                return not_run(TEST, "no real-time class for another process");
            }
            let activity = Box::new(move || Activity { steps: 1, module });
            let standing = Standing::default();
            real_time.add(Candidate { thread, activity, used: used() }, standing.clone());
            assert!(standing.is_real_time());
            let begun = Instant::now();
            while standing.is_real_time() {
                real_time.beat(Instant::now());
                std::thread::yield_now();
                assert!(begun.elapsed() < Duration::from_secs(60), "it holds the core");
            }
            assert!(begun.elapsed() < grown(GUARD_INTERVAL * HOG_LOOKS_MAX * 20), "{:?}", begun.elapsed());
            real_time.remove(&standing);
        }
    })
    .join()
    .unwrap();
}

/// Goal: one that does not sleep although it has no packets leaves the class, however many others sleep.
#[test]
fn one_that_runs_without_packets_for_idle_looks_max_leaves_the_class() {
    let begun = Instant::now();
    let mut guarded = Guarded::new(lane(&Arc::default(), used(), 0), begun);
    let sleepers: Vec<Running> = (0..ASKED_PER_LOOK_MAX * 2).map(|_| Running::start("exec sleep 60")).collect();
    let hog = Running::start("while :; do :; done");
    let mut standings = Vec::new();
    for process in sleepers.iter().chain([&hog]) {
        let thread = ScheduledThread::first_of(process.0.id().cast_signed()).unwrap();
        let activity = Box::new(|| Activity { steps: 0, module: None });
        let candidate = Candidate { thread, activity, used: used() };
        let standing = Standing(Arc::new(AtomicBool::new(true)));
        guarded.in_force = false;
        guarded.add(candidate, standing.clone());
        standing.0.store(true, Ordering::Relaxed);
        standings.push(standing);
    }
    let until = Instant::now() + Duration::from_secs(60);
    while guarded.members.iter().take(sleepers.len()).any(|member| member.candidate.thread.is_running()) {
        assert!(Instant::now() < until, "they do not sleep");
        std::thread::sleep(Duration::from_millis(1));
    }
    let found = (1..).find(|look| {
        guarded.one_runs(begun + GUARD_INTERVAL * *look);
        assert!(*look < 100, "it is not found");
        !standings[sleepers.len()].is_real_time()
    });
    assert!((IDLE_LOOKS_MAX..=IDLE_LOOKS_MAX + 3).contains(&found.unwrap()), "{found:?}");
    assert!(standings[..sleepers.len()].iter().all(Standing::is_real_time));
}

/// A processor clock of the test's own.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn set(&self, passed: Duration) {
        self.0.store(nanos(passed), Ordering::Relaxed);
    }

    /// Returns what tells the time of a thread that always runs or never does.
    fn of(&self, runs: bool) -> Used {
        let clock = self.clone();
        let runs = u64::from(runs);
        Box::new(move |_| Some(Duration::from_nanos(clock.0.load(Ordering::Relaxed) * runs)))
    }

    fn always(&self) -> Used {
        self.of(true)
    }

    fn never(&self) -> Used {
        self.of(false)
    }
}

/// Returns the packet thread of a lane, on a core.
fn lane(pulse: &Arc<Pulse>, used: Used, core: usize) -> Own {
    let mut cores = CpuSet::new();
    cores.set(core);
    Own::new(ScheduledThread::this().unwrap(), pulse.clone(), used, cores)
}

/// Returns a worker that makes no steps.
fn candidate(module: Option<ModuleSlot>, used: Used) -> Candidate {
    let activity = Box::new(move || Activity { steps: 7, module });
    Candidate { thread: ScheduledThread::this().unwrap(), activity, used }
}

struct Running(Child);

impl Running {
    fn start(script: &str) -> Running {
        Running(Command::new("sh").args(["-c", script]).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
