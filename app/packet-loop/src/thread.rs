// SPDX-License-Identifier: Apache-2.0
//! The packet threads from outside, one for each lane: commands, wake-ups, counters.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use netserv_container::ScheduledThread;
use netserv_model::limits::LANES_MAX;
use netserv_plane::Driver;
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use super::counters::{PacketCounters, PacketTotals};
use super::{LanePlace, PacketCommand, PacketEvent, PacketLoop, RealTimeClub, Report};
use crate::limits::GATHER_TIME_MAX;

/// How packet threads use the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketThreadConfig {
    /// The cores that they may run on, counted from 0; none means all that the process may use. A single packet thread may run
    /// on each of them; of several, each has one, in the order of lanes, and those left over begin with the first again.
    pub cores: Vec<usize>,
    /// How long they look for packets again and again before they sleep. It takes a core of its own to gain by that.
    pub busy_poll: Duration,
    /// How long packets gather after a small batch, while they are frequent, so that one wake-up serves several of them; at most
    /// [`GATHER_TIME_MAX`]. Threads with `busy_poll` take each as it comes.
    pub gather: Duration,
    /// Whether they and the workers that may be in the real-time class are in it. They should have cores of their own.
    pub real_time: bool,
}

/// The packet threads of a node, one for each lane of its driver. They end with this.
pub struct PacketThread {
    sender: PacketSender,
    threads: Vec<JoinHandle<()>>,
    usual: Option<String>,
}

/// The way to the packet threads; clones lead to the same ones.
#[derive(Clone)]
pub struct PacketSender {
    lanes: Arc<[LaneSender]>,
    /// Held while a command goes to several lanes, so that all of them have commands in the same order.
    order: Arc<Mutex<()>>,
}

/// The way to one packet thread.
struct LaneSender {
    commands: Sender<PacketCommand>,
    wake: OwnedFd,
    counters: Arc<PacketCounters>,
}

impl LaneSender {
    fn send(&self, command: PacketCommand) -> bool {
        let sent = self.commands.send(command).is_ok();
        // The counter of an eventfd cannot overflow by ones; a thread that is awake needs no wake-up.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        sent
    }
}

impl PacketSender {
    /// Gives the packet thread of each lane a command, without waiting; false if one has ended.
    pub fn send(&self, command: PacketCommand) -> bool {
        let [first, others @ ..] = &*self.lanes else { return false };
        if others.is_empty() {
            return first.send(command);
        }
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let missed = others.iter().filter(|lane| !lane.send(command.clone())).count();
        first.send(command) && missed == 0
    }

    /// Returns what became of packets so far, in all lanes.
    pub fn totals(&self) -> PacketTotals {
        self.lanes.iter().map(|lane| lane.counters.totals()).reduce(PacketTotals::with).unwrap_or_default()
    }

    /// Returns how many lanes there are.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }
}

impl PacketThread {
    /// Starts a packet thread for each lane of a driver, of which there is at least one.
    ///
    /// # Errors
    /// The system gives no eventfd or no thread, or a core that is to be used is not there; or there are no lanes, or more than
    /// [`LANES_MAX`].
    pub fn start(lanes: Vec<Box<dyn Driver>>, config: &PacketThreadConfig, report: Report) -> Result<PacketThread> {
        let count = lanes.len();
        ensure!((1..=LANES_MAX).contains(&count), "a driver has 1 to {LANES_MAX} lanes, and not {count}");
        let (senders, inboxes): (Vec<LaneSender>, Vec<Inbox>) =
            (0..count).map(|_| inbox()).collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let sender = PacketSender { lanes: senders.into(), order: Arc::default() };
        let ending = Ending { sender: sender.clone(), is_told: Arc::default(), report };
        let mut threads = PacketThread { sender, threads: Vec::new(), usual: None };
        let mut club = None;
        for (number, ((driver, inbox), place)) in lanes.into_iter().zip(inboxes).zip(LanePlace::all(count)).enumerate()
        {
            let Inbox { commands, wake } = inbox;
            let (name, counters) = (place.thread_name(), threads.sender.lanes[number].counters.clone());
            let mut packet_loop = PacketLoop::new(driver, place, counters, commands, wake, ending.report.clone())?;
            packet_loop.set_busy_poll(config.busy_poll);
            if config.busy_poll.is_zero() {
                packet_loop.set_coalescing(config.gather.min(GATHER_TIME_MAX));
            }
            let cores = cores(cores_of(&config.cores, number, count))?;
            let class = if config.real_time { Class::RealTime(club.clone()) } else { Class::Usual };
            let (thread, started) = spawn(name, packet_loop, cores, class, ending.clone())?;
            threads.threads.push(thread);
            let started = started.recv().context("packet thread")?;
            let Started { usual, club: joined } = started.context("the packet thread cannot have its cores")?;
            club = club.or(joined);
            threads.usual = threads.usual.take().or(usual);
        }
        Ok(threads)
    }

    /// Returns the way to them.
    pub fn sender(&self) -> PacketSender {
        self.sender.clone()
    }

    /// Returns why they are not in the real-time class although they were to be.
    pub fn why_usual(&self) -> Option<&str> {
        self.usual.as_deref()
    }

    /// Ends the threads and waits for them; the driver takes its rules away.
    pub fn stop(&mut self) {
        self.sender.send(PacketCommand::Stop);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a packet thread had panicked");
            }
        }
    }
}

/// A packet thread's end of what leads to it.
struct Inbox {
    commands: Receiver<PacketCommand>,
    wake: OwnedFd,
}

fn inbox() -> Result<(LaneSender, Inbox)> {
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).context("eventfd")?;
    let theirs = rustix::io::fcntl_dupfd_cloexec(&wake, 0).context("eventfd")?;
    // Commands are as many as effects lead to; each is taken before the next batch of packets.
    let (commands, inbox) = channel();
    let sender = LaneSender { commands, wake, counters: Arc::default() };
    Ok((sender, Inbox { commands: inbox, wake: theirs }))
}

/// The scheduling class of a packet thread: the first one in the real-time class begins it, and the others join.
enum Class {
    Usual,
    RealTime(Option<RealTimeClub>),
}

/// What a packet thread says when it begins.
struct Started {
    /// Why it is not in the real-time class although it was to be.
    usual: Option<String>,
    club: Option<RealTimeClub>,
}

type Starting = Receiver<rustix::io::Result<Started>>;

fn spawn(
    name: String,
    mut packet_loop: PacketLoop,
    cores: Option<CpuSet>,
    class: Class,
    ending: Ending,
) -> Result<(JoinHandle<()>, Starting)> {
    let (started, is_started) = channel();
    let run = move || {
        let pinned = cores.map_or(Ok(()), |cores| sched_setaffinity(None, &cores));
        let ready = pinned.is_ok();
        // Moments are short here. Nothing is lost if the kernel adds to them.
        let _ = set_current_timer_slack(NonZeroU64::new(TIMER_SLACK_NS));
        if let Err(error) = ScheduledThread::this().and_then(|thread| thread.shorten_slice()) {
            tracing::debug!(%error, "the packet thread has slices as all programs do");
        }
        let raised = match class {
            Class::RealTime(None) if ready => packet_loop.begin_real_time(),
            Class::RealTime(Some(club)) if ready => packet_loop.join_real_time(&club),
            Class::RealTime(_) | Class::Usual => Ok(()),
        };
        let usual = raised.err().map(|error| format!("{error:#}"));
        let begun = Started { usual, club: packet_loop.real_time_club() };
        // The receiver waits for it.
        let _ = started.send(pinned.map(|()| begun));
        if ready {
            ending.run(packet_loop);
        }
    };
    Ok((std::thread::Builder::new().name(name).spawn(run).context("packet thread")?, is_started))
}

/// Returns the cores of one of so many lanes.
fn cores_of(cores: &[usize], number: usize, count: usize) -> &[usize] {
    if count == 1 || cores.is_empty() {
        return cores;
    }
    &cores[number % cores.len()..][..1]
}

/// Returns the cores as the system wants them; `None` if any will do.
fn cores(wanted: &[usize]) -> Result<Option<CpuSet>> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let available = sched_getaffinity(None).context("the cores of the process")?;
    let mut cores = CpuSet::new();
    for core in wanted {
        if *core >= CpuSet::MAX_CPU || !available.is_set(*core) {
            let available = (0..CpuSet::MAX_CPU).filter(|core| available.is_set(*core)).map(|core| core.to_string());
            let available = available.collect::<Vec<_>>().join(", ");
            bail!("the packet thread cannot run on core {core}: the cores of this process are {available}");
        }
        cores.set(*core);
    }
    Ok(Some(cores))
}

/// How the lanes end: one that fails ends all of them, and the control loop is told of it once.
#[derive(Clone)]
struct Ending {
    sender: PacketSender,
    is_told: Arc<AtomicBool>,
    report: Report,
}

impl Ending {
    /// Runs a lane's loop, and tells the control loop if it ends without being told to, in whatever way.
    ///
    /// The lane's driver is gone by then, and soon those of the others; they have taken their rules along, so packets pass.
    fn run(self, packet_loop: PacketLoop) {
        let detail = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| packet_loop.run())) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "a packet thread panicked".to_owned(),
        };
        if self.is_told.swap(true, Ordering::AcqRel) {
            return tracing::debug!(detail, "a further lane failed");
        }
        self.sender.send(PacketCommand::Stop);
        for _ in 0..REPORT_TRIES {
            if (self.report)(PacketEvent::DriverFailed { detail: detail.clone() }) {
                return;
            }
            std::thread::sleep(REPORT_INTERVAL);
        }
        tracing::error!(detail, "the forwarding plane failed, and the control loop does not listen");
    }
}

/// How late the kernel may end a sleep of a packet thread; usually it may by 50 µs.
const TIMER_SLACK_NS: u64 = 1000;
/// How often the end of the packet threads is reported until the control loop has room for it.
const REPORT_TRIES: u32 = 100;
const REPORT_INTERVAL: Duration = Duration::from_millis(20);

impl Drop for PacketThread {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use netserv_plane::dummy::Dummy;

    use super::*;

    #[test]
    fn a_packet_thread_runs_on_its_core() {
        let available = sched_getaffinity(None).unwrap();
        let core = (0..CpuSet::MAX_CPU).find(|core| available.is_set(*core)).unwrap();
        let config = PacketThreadConfig { cores: vec![core], ..PacketThreadConfig::default() };
        let _port = start(&config).unwrap();
        let of_thread =
            |file: &str, task: &std::path::Path| std::fs::read_to_string(task.join(file)).unwrap_or_default();
        let pinned = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path()).any(|task| {
            let on_core = format!("Cpus_allowed_list:\t{core}\n");
            of_thread("comm", &task) == "packets\n" && of_thread("status", &task).contains(&on_core)
        });
        assert!(pinned);
    }

    /// Goal: the packet thread of a host, which has no packets for modules, sleeps: it wakes 4 times a second, where it woke a thousand times.
    #[test]
    fn a_packet_thread_without_packets_sleeps() {
        let begun = Instant::now();
        let _port = start(&PacketThreadConfig::default()).unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let of_thread =
            |file: &str, task: &std::path::Path| std::fs::read_to_string(task.join(file)).unwrap_or_default();
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
        let thread = tasks.into_iter().find(|task| of_thread("comm", task) == "packets\n").unwrap();
        let status = of_thread("status", &thread);
        let slept = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        let slept: u128 = slept.trim().parse().unwrap();
        assert!(slept <= 10 + begun.elapsed().as_millis() / 50, "{slept} times in {:?}", begun.elapsed());
    }

    #[test]
    fn a_core_that_is_not_there_is_named() {
        for core in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            let config = PacketThreadConfig { cores: vec![core], ..PacketThreadConfig::default() };
            let error = start(&config).err().unwrap().to_string();
            let expected = format!("the packet thread cannot run on core {core}: the cores of this process are ");
            assert!(error.starts_with(&expected) && error.len() > expected.len(), "{error}");
        }
    }

    #[test]
    fn each_of_several_packet_threads_has_a_core() {
        let cores = [2, 5, 7];
        let of = |count| (0..count).map(|number| cores_of(&cores, number, count).to_vec()).collect::<Vec<_>>();
        assert_eq!(of(1), [vec![2, 5, 7]]);
        assert_eq!(of(2), [[2], [5]]);
        assert_eq!(of(4), [[2], [5], [7], [2]]);
        assert_eq!(cores_of(&[], 3, 4), [0_usize; 0]);
    }

    #[test]
    fn there_are_one_to_lanes_max_packet_threads() {
        for (lanes, fits) in [(0, false), (1, true), (LANES_MAX, true), (LANES_MAX + 1, false)] {
            let drivers = (0..lanes).map(|_| Box::new(Dummy::new().0) as Box<dyn Driver>).collect();
            let threads = PacketThread::start(drivers, &PacketThreadConfig::default(), Arc::new(|_| true));
            assert_eq!(threads.is_ok(), fits, "{lanes}");
            assert!(threads.is_ok_and(|threads| threads.sender().lanes() == lanes) || !fits);
        }
    }

    fn start(config: &PacketThreadConfig) -> Result<PacketThread> {
        PacketThread::start(vec![Box::new(Dummy::new().0)], config, Arc::new(|_| true))
    }
}
