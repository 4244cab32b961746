// SPDX-License-Identifier: Apache-2.0
//! A packet thread from outside: commands, a wake-up, counters.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use netserv_dataplane::Driver;
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::counters::{PacketCounters, PacketTotals};
use super::{PacketCommand, PacketEvent, PacketLoop, Report};

/// How a packet thread uses the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketThreadConfig {
    /// The cores that it may run on, counted from 0; none means all that the process may use.
    pub cores: Vec<usize>,
    /// How long it looks for packets again and again before it sleeps. It takes a core of its own to gain by that.
    pub busy_poll: Duration,
    /// Whether it and the workers that may be in the real-time class are in it. They should have cores of their own.
    pub real_time: bool,
}

/// A packet thread. It ends with this.
pub struct PacketThread {
    sender: PacketSender,
    thread: Option<JoinHandle<()>>,
    usual: Option<String>,
}

/// The way to a packet thread; clones lead to the same one.
#[derive(Clone)]
pub struct PacketSender {
    commands: Sender<PacketCommand>,
    wake: Arc<OwnedFd>,
    counters: Arc<PacketCounters>,
}

impl PacketSender {
    /// Gives the packet thread a command, without waiting; false if the thread has ended.
    pub fn send(&self, command: PacketCommand) -> bool {
        let sent = self.commands.send(command).is_ok();
        // The counter of an eventfd cannot overflow by ones; a thread that is awake needs no wake-up.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        sent
    }

    /// Returns what became of packets so far.
    pub fn totals(&self) -> PacketTotals {
        self.counters.totals()
    }
}

impl PacketThread {
    /// Starts the packet thread of a driver.
    ///
    /// # Errors
    /// The system gives no eventfd or no thread, or a core that is to be used is not there.
    pub fn start(driver: Box<dyn Driver>, config: &PacketThreadConfig, report: Report) -> Result<PacketThread> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).context("eventfd")?;
        let theirs = rustix::io::fcntl_dupfd_cloexec(&wake, 0).context("eventfd")?;
        // Commands are as many as effects lead to; each is taken before the next batch of packets.
        let (commands, inbox) = channel();
        let counters = Arc::new(PacketCounters::default());
        let mut packet_loop = PacketLoop::new(driver, counters.clone(), inbox, theirs, report.clone())?;
        packet_loop.set_busy_poll(config.busy_poll);
        let cores = cores(&config.cores)?;
        let real_time = config.real_time;
        let (pinned, is_pinned) = channel();
        let thread = std::thread::Builder::new().name("packets".into()).spawn(move || {
            let result = cores.map_or(Ok(()), |cores| sched_setaffinity(None, &cores));
            let ready = result.is_ok();
            let raised = if real_time && ready { packet_loop.begin_real_time() } else { Ok(()) };
            // The receiver waits for it.
            let _ = pinned.send(result.map(|()| raised.err().map(|error| format!("{error:#}"))));
            if ready {
                run(packet_loop, &report);
            }
        });
        let thread = thread.context("packet thread")?;
        let usual = is_pinned.recv().context("packet thread")?.context("the packet thread cannot have its cores")?;
        let sender = PacketSender { commands, wake: Arc::new(wake), counters };
        Ok(PacketThread { sender, thread: Some(thread), usual })
    }

    /// Returns the way to it.
    pub fn sender(&self) -> PacketSender {
        self.sender.clone()
    }

    /// Returns why it is not in the real-time class although it was to be.
    pub fn why_usual(&self) -> Option<&str> {
        self.usual.as_deref()
    }

    /// Ends the thread and waits for it; the driver takes its rules away.
    pub fn stop(&mut self) {
        self.sender.send(PacketCommand::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the packet thread had panicked");
        }
    }
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

/// Runs the loop, and tells the control loop if it ends without being told to, in whatever way.
///
/// The driver is gone by then and has taken its rules along, so packets pass.
fn run(packet_loop: PacketLoop, report: &Report) {
    let detail = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| packet_loop.run())) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the packet thread panicked".to_owned(),
    };
    for _ in 0..REPORT_TRIES {
        if report(PacketEvent::DriverFailed { detail: detail.clone() }) {
            return;
        }
        std::thread::sleep(REPORT_INTERVAL);
    }
    tracing::error!(detail, "the forwarding plane failed, and the control loop does not listen");
}

/// How often the end of the packet thread is reported until the control loop has room for it.
const REPORT_TRIES: u32 = 100;
const REPORT_INTERVAL: Duration = Duration::from_millis(20);

impl Drop for PacketThread {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use netserv_dataplane::dummy::Dummy;

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

    #[test]
    fn a_core_that_is_not_there_is_named() {
        for core in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            let config = PacketThreadConfig { cores: vec![core], ..PacketThreadConfig::default() };
            let error = start(&config).err().unwrap().to_string();
            let expected = format!("the packet thread cannot run on core {core}: the cores of this process are ");
            assert!(error.starts_with(&expected) && error.len() > expected.len(), "{error}");
        }
    }

    fn start(config: &PacketThreadConfig) -> Result<PacketThread> {
        PacketThread::start(Box::new(Dummy::new().0), config, Arc::new(|_| true))
    }
}
