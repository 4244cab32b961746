// SPDX-License-Identifier: Apache-2.0
//! The guard of the real-time class, with a clock of the test's own and with threads of the machine.

use std::process::{Child, Command};

use netserv_model::effect::ModuleSlot;
use netserv_skips::not_run;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::*;

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
    let mut guarded = Guarded::new(ScheduledThread::this().unwrap(), pulse.clone(), begun);
    let candidate = Candidate {
        thread: ScheduledThread::this().unwrap(),
        activity: Box::new(|| Activity { steps: 7, module: Some(ModuleSlot(1)) }),
    };
    let standing = Standing::default();
    guarded.add(candidate, standing.clone());
    if !standing.is_real_time() {
        return not_run("hog_looks_max_in_one_call_is_banned_for_penalty", "no real-time class here");
    }
    let mut looked = begun;
    let mut look = |guarded: &mut Guarded, until: Instant| {
        while looked < until {
            looked += GUARD_INTERVAL;
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

/// A worker outside of modules that keeps one of two packet threads from its core, the second, is put out of the class.
#[test]
fn one_that_starves_any_lane_is_banned() {
    const TEST: &str = "one_that_starves_any_lane_is_banned";
    for starved in [false, true] {
        let begun = Instant::now();
        let pulses = [Arc::<Pulse>::default(), Arc::<Pulse>::default()];
        let mut guarded = Guarded::new(ScheduledThread::this().unwrap(), pulses[0].clone(), begun);
        guarded.join(ScheduledThread::this().unwrap(), pulses[1].clone());
        let candidate = Candidate {
            thread: ScheduledThread::this().unwrap(),
            activity: Box::new(|| Activity { steps: 7, module: None }),
        };
        let standing = Standing::default();
        guarded.add(candidate, standing.clone());
        if !standing.is_real_time() {
            return not_run(TEST, "no real-time class here");
        }
        for look in 1..=HOG_LOOKS_MAX * 2 + 1 {
            let now = begun + GUARD_INTERVAL * look;
            for (pulse, is_quiet) in pulses.iter().zip([false, starved]) {
                pulse.idle_ns.fetch_add(nanos(GUARD_INTERVAL), Ordering::Relaxed);
                if !is_quiet {
                    pulse.quiet_until_ns.store(nanos(now - begun), Ordering::Relaxed);
                }
            }
            guarded.look(now, begun);
        }
        assert_eq!(standing.is_real_time(), !starved);
        guarded.leave(&pulses[1]);
        assert_eq!(guarded.own.len(), 1);
        guarded.members.clear();
        guarded.set_all(false);
    }
}

/// The class has no more time than the busiest of its packet threads leaves.
#[test]
fn time_is_used_up_by_the_busiest_lane() {
    let begun = Instant::now();
    let pulses = [Arc::<Pulse>::default(), Arc::<Pulse>::default()];
    let mut guarded = Guarded::new(ScheduledThread::this().unwrap(), pulses[0].clone(), begun);
    guarded.join(ScheduledThread::this().unwrap(), pulses[1].clone());
    let mut in_force = true;
    for look in 1..=100 {
        let now = begun + GUARD_INTERVAL * look;
        pulses.iter().for_each(|pulse| pulse.quiet_until_ns.store(nanos(now - begun), Ordering::Relaxed));
        // The first waits for packets all the time, the second never.
        pulses[0].idle_ns.fetch_add(nanos(GUARD_INTERVAL), Ordering::Relaxed);
        in_force &= guarded.look(now, begun);
    }
    assert!(!in_force, "it leaves the class for a moment");
    guarded.set_all(false);
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
            real_time.add(Candidate { thread, activity }, standing.clone());
            assert!(standing.is_real_time());
            let begun = Instant::now();
            while standing.is_real_time() {
                real_time.beat(Instant::now());
                std::thread::yield_now();
                assert!(begun.elapsed() < Duration::from_secs(5), "it holds the core");
            }
            assert!(begun.elapsed() < GUARD_INTERVAL * HOG_LOOKS_MAX * 20, "{:?}", begun.elapsed());
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
    let mut guarded = Guarded::new(ScheduledThread::this().unwrap(), Arc::default(), begun);
    let sleepers: Vec<Running> = (0..ASKED_PER_LOOK_MAX * 2).map(|_| Running::start("exec sleep 60")).collect();
    let hog = Running::start("while :; do :; done");
    let mut standings = Vec::new();
    for process in sleepers.iter().chain([&hog]) {
        let thread = ScheduledThread::first_of(process.0.id().cast_signed()).unwrap();
        let candidate = Candidate { thread, activity: Box::new(|| Activity { steps: 0, module: None }) };
        let standing = Standing(Arc::new(AtomicBool::new(true)));
        guarded.in_force = false;
        guarded.add(candidate, standing.clone());
        standing.0.store(true, Ordering::Relaxed);
        standings.push(standing);
    }
    let until = Instant::now() + Duration::from_secs(20);
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
