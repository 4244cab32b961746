// SPDX-License-Identifier: Apache-2.0
//! Which core does what, so that a generator does not take from the node what the node is measured by.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_container::{Class, ScheduledThread};
use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::netns::Lab;

/// Which core carries what of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// What a veth does where it is sent to runs on the generator's core: all of the kernel's forwarding, or the XDP program
    /// with its copy. The rest of a node is on its core.
    Split,
    /// All of the router is on the node's core, and generator and sink are on the other.
    OneCore,
}

/// The core of generator and sink.
pub const OUTSIDE_CORE: usize = 0;
/// The core of the node: its kernel's forwarding, `netservd` and workers.
pub const NODE_CORE: usize = 1;
/// The priority (`nice`) of what is measured: other programs of the machine take less from it.
const FIRST: i32 = -20;
/// The scheduler's weight of that priority.
const FIRST_SHARES: &str = "88761";

/// Gives the node's core to a process, its threads, its descendants and their threads, before all other programs of the
/// machine.
///
/// # Errors
/// The machine has no such core, or the process is gone.
pub fn to_node_core(pid: u32) -> Result<()> {
    place(pid, true)
}

/// Gives the node's core to the same, with the priorities that they have.
///
/// # Errors
/// The machine has no such core, or the process is gone.
pub fn keep(pid: u32) -> Result<()> {
    place(pid, false)
}

/// Gives the node's core to the calling thread, before all other programs of the machine.
///
/// # Errors
/// The machine has no such core.
pub fn thread_to_node_core() -> Result<()> {
    let mut core = CpuSet::new();
    core.set(NODE_CORE);
    sched_setaffinity(None, &core).with_context(|| format!("cannot keep a thread on core {NODE_CORE}"))?;
    Ok(setpriority_process(None, FIRST)?)
}

fn place(pid: u32, first: bool) -> Result<()> {
    let mut core = CpuSet::new();
    core.set(NODE_CORE);
    for pid in family(pid)? {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).filter_map(Pid::from_raw) {
            let kept = sched_setaffinity(Some(task), &core);
            let favour = || if first { setpriority_process(Some(task), FIRST) } else { Ok(()) };
            match kept.and_then(|()| favour()) {
                // It ended in between.
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error).with_context(|| format!("cannot keep {pid} on core {NODE_CORE}")),
            }
        }
        if first {
            favour_group(pid);
        }
    }
    Ok(())
}

/// Gives the session that this process and what it starts are in precedence over other sessions, where the kernel shares
/// processor time between sessions first: priorities count within one only.
pub fn favour_session() {
    // Without autogroups there is no such file, and nothing to do.
    let _ = std::fs::write("/proc/self/autogroup", FIRST.to_string());
}

/// Gives the control groups of a daemon's workers precedence over other programs of the machine, and those above them, in which
/// further workers start.
///
/// # Errors
/// `/proc` cannot be read.
pub fn favour_workers(netservd: u32) -> Result<()> {
    workers(netservd)?.into_iter().for_each(favour_group);
    Ok(())
}

/// Gives a process's control group the weight of a single process of the first priority, which it would else not have
/// against the daemon's.
fn favour_group(pid: u32) {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, file, weight) = match controllers {
            "" => (String::new(), "cpu.weight", "10000"),
            some if some.split(',').any(|controller| controller == "cpu") => {
                (format!("/{some}"), "cpu.shares", FIRST_SHARES)
            }
            _ => continue,
        };
        // The groups above it count, too; where a file is not there, a group has no say in processor time.
        for group in Path::new(path).ancestors().filter(|group| group.parent().is_some()) {
            let _ = std::fs::write(format!("/sys/fs/cgroup{root}{}/{file}", group.display()), weight);
        }
    }
}

/// Has one core of the machine look after what arrives at an interface; `None` leaves it to the core where it arrives.
///
/// # Errors
/// The kernel has no receive packet steering.
pub fn steer(lab: &Lab, machine: &str, interface: &str, core: Option<usize>) -> Result<()> {
    let cores = core.map_or(0, |core| 1_u64 << core);
    set(lab, machine, interface, &format!("echo {cores:x} > $1/queues/rx-0/rps_cpus"))
}

/// Has a thread of the kernel take what arrives at an interface, in place of an interrupt on the sender's core; or
/// not. [`place_threads`] says which core it runs on. An interface that takes one packet at a time has no such thread.
///
/// The thread looks again after a while by itself, as a card does that mitigates its interrupts: in a virtual machine the
/// sender pays some 10 µs for each time that it wakes a thread of another core.
///
/// # Errors
/// The interface cannot be reached.
pub fn receive_in_thread(lab: &Lab, machine: &str, interface: &str, on: bool) -> Result<()> {
    let (interval, looks) = if on { (MITIGATION.as_nanos(), 2) } else { (0, 0) };
    let script = format!(
        "echo {interval} > $1/gro_flush_timeout; echo {looks} > $1/napi_defer_hard_irqs
         echo {} > $1/threaded 2> /dev/null || true",
        u8::from(on)
    );
    set(lab, machine, interface, &script)
}

/// How long what arrived waits at most for the thread: a veth's ring has room for 256 frames.
const MITIGATION: Duration = Duration::from_micros(50);

/// Puts the kernel's threads for what arrives at interfaces on the core of generator and sink, before the generator, as the
/// interrupts are whose work they do: behind it, one would wait for the kernel's tick, and a veth's ring is full after 256
/// frames.
///
/// # Errors
/// There is such a thread, and it cannot be moved.
pub fn place_threads() -> Result<()> {
    let mut core = CpuSet::new();
    core.set(OUTSIDE_CORE);
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if name.starts_with("napi/to-") {
            let pid = entry.file_name().to_str().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
            sched_setaffinity(pid, &core).with_context(|| format!("cannot keep {name} on core {OUTSIDE_CORE}"))?;
            let number = pid.map_or(0, Pid::as_raw_pid);
            ScheduledThread::first_of(number)
                .and_then(|thread| thread.set_class(Class::RealTime(1)))
                .with_context(|| format!("cannot put {name} before the generator"))?;
        }
    }
    Ok(())
}

/// Runs a shell script with the directory of an interface as its argument.
fn set(lab: &Lab, machine: &str, interface: &str, script: &str) -> Result<()> {
    // A new /sys, as `ip netns exec` mounts it, shows the interfaces of the namespace.
    let output = std::process::Command::new("ip")
        .args(["netns", "exec", &lab.namespace(machine), "sh", "-c", script, "sh"])
        .arg(format!("/sys/class/net/{interface}"))
        .output()
        .context("cannot run ip")?;
    ensure!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// Returns a process and its descendants.
///
/// # Errors
/// `/proc` cannot be read.
pub fn family(pid: u32) -> Result<BTreeSet<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may have ended.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{child}/stat")) else { continue };
        // The name, in parentheses, can hold anything; after it come the state and the parent.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        children.entry(parent.unwrap_or(0)).or_default().push(child);
    }
    let (mut found, mut open) = (BTreeSet::new(), vec![pid]);
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(children.get(&next).into_iter().flatten());
        }
    }
    Ok(found)
}

/// Returns the workers among a process's descendants.
///
/// # Errors
/// `/proc` cannot be read.
pub fn workers(pid: u32) -> Result<Vec<u32>> {
    let serves = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.next().is_some_and(|name| name.ends_with(b"netserv-worker") || name.ends_with(b"netserv-jvm"))
            && words.any(|word| word == b"serve")
    };
    Ok(family(pid)?.into_iter().filter(serves).collect())
}
