// SPDX-License-Identifier: Apache-2.0
//! Kernel limits for memory, processor and processes: control groups, version 1 and 2 and both at a time.
//!
//! Every group of a node lies below a parent named after the instance, `netserv-<instance>`, so that what an earlier
//! run left is found by name. The parent lies at the root of each hierarchy, or below the path that the operator gave
//! (under systemd: the service's own group, with `Delegate=yes`).

mod layout;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use netserv_model::policy::ContainerLimits;
use rustix::process::{Pid, Signal};

use crate::limits::SOCKET_MEMORY_SHARE;

pub(crate) use layout::{Controller, Hierarchy, Version, detect};

/// Where a node's groups are.
#[derive(Debug)]
pub(crate) struct Cgroups {
    hierarchies: Vec<Hierarchy>,
    parents: Vec<PathBuf>,
    /// Controllers that cannot be used, each with the reason.
    pub(crate) missing: Vec<String>,
}

impl Cgroups {
    /// Makes the node's parent groups in each hierarchy that has a controller of interest.
    pub(crate) fn prepare(mounts: &str, instance: &str, below: Option<&Path>) -> Cgroups {
        let mut cgroups = Cgroups { hierarchies: vec![], parents: vec![], missing: vec![] };
        let mut wanted = Controller::ALL.to_vec();
        for mut hierarchy in detect(mounts) {
            let parent = parent_group(&hierarchy, instance, below);
            match make_parent(&hierarchy, &parent) {
                Ok(()) => {
                    hierarchy.controllers.retain(|controller| wanted.contains(controller));
                    wanted.retain(|controller| !hierarchy.controllers.contains(controller));
                    cgroups.hierarchies.push(hierarchy);
                    cgroups.parents.push(parent);
                }
                Err(error) => {
                    let names: Vec<&str> = hierarchy.controllers.iter().map(|one| one.as_str()).collect();
                    let names = names.join(", ");
                    cgroups.missing.push(format!("{names} limits: cannot use {}: {error}", parent.display()));
                    wanted.retain(|controller| !hierarchy.controllers.contains(controller));
                }
            }
        }
        let absent = wanted.iter().map(|one| format!("{} limits: no cgroup controller is mounted", one.as_str()));
        cgroups.missing.extend(absent);
        cgroups
    }

    /// Returns what is limited, and by which version.
    pub(crate) fn enforced(&self) -> Vec<String> {
        let one = |hierarchy: &Hierarchy| {
            let version = hierarchy.version;
            let names = hierarchy.controllers.iter().map(move |one| format!("{} limits ({version})", one.as_str()));
            names.collect::<Vec<String>>()
        };
        self.hierarchies.iter().flat_map(one).collect()
    }

    /// Makes a group of each hierarchy for one container, without limits yet.
    pub(crate) fn create(&self, name: &str) -> io::Result<Group> {
        let mut group = Group { hierarchies: vec![], kills_told: Cell::new(0) };
        for (hierarchy, parent) in self.hierarchies.iter().zip(&self.parents) {
            let directory = parent.join(name);
            if let Err(error) = fs::create_dir(&directory) {
                group.remove();
                return Err(io::Error::new(error.kind(), format!("{}: {error}", directory.display())));
            }
            group.hierarchies.push((hierarchy.clone(), directory));
        }
        Ok(group)
    }

    /// Removes the parents, if nothing is left in them.
    pub(crate) fn remove_parents(&self) {
        for parent in &self.parents {
            let _ = fs::remove_dir(parent);
        }
    }
}

/// The groups of one container, each with its hierarchy.
#[derive(Debug)]
pub(crate) struct Group {
    hierarchies: Vec<(Hierarchy, PathBuf)>,
    /// For how many of its processes it was told that the kernel killed them.
    kills_told: Cell<u64>,
}

impl Group {
    /// Limits what the processes in the groups may use.
    pub(crate) fn limit(&self, limits: &ContainerLimits) -> io::Result<()> {
        for (hierarchy, directory) in &self.hierarchies {
            for controller in &hierarchy.controllers {
                write_limits(hierarchy.version, *controller, directory, limits)?;
            }
        }
        Ok(())
    }

    /// Limits what the processes in the groups may use otherwise than before, while they run.
    ///
    /// # Errors
    /// They hold more memory than they may by that; then all is as it was.
    pub(crate) fn change(&self, limits: &ContainerLimits) -> io::Result<()> {
        for (hierarchy, directory) in &self.hierarchies {
            if hierarchy.controllers.contains(&Controller::Memory) {
                // Version 2 would kill them, version 1 refuses.
                if hierarchy.version == Version::V2 {
                    check_memory(directory, limits.memory_bytes)?;
                }
                write_limits(hierarchy.version, Controller::Memory, directory, limits)?;
            }
        }
        self.limit(limits)
    }

    /// Gives the processes in the groups a part of the usual weight where others want processor time, too.
    pub(crate) fn weigh(&self, part: u64) -> io::Result<()> {
        let cpu = |(hierarchy, _): &&(Hierarchy, PathBuf)| hierarchy.controllers.contains(&Controller::Cpu);
        let Some((hierarchy, directory)) = self.hierarchies.iter().find(cpu) else { return Ok(()) };
        // The kernel's usual weights.
        let (file, usual) = match hierarchy.version {
            Version::V1 => ("cpu.shares", 1024),
            Version::V2 => ("cpu.weight", 100),
        };
        write(&directory.join(file), &(usual / part).to_string())
    }

    /// Moves the calling process, which has one thread, into the groups. Under version 1 this waits for every processor
    /// (10 to 20 ms) unless another process was moved shortly before.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.move_in("0")
    }

    /// Moves another process with all its threads into the groups, which takes as long.
    pub(crate) fn admit(&self, pid: i32) -> io::Result<()> {
        self.move_in(&pid.to_string())
    }

    fn move_in(&self, pid: &str) -> io::Result<()> {
        self.hierarchies.iter().try_for_each(|(_, directory)| write(&directory.join("cgroup.procs"), pid))
    }

    /// Returns whether the kernel killed a process of the group for want of memory that this was not yet said of. Ask
    /// once for each process that ended by a signal.
    pub(crate) fn take_out_of_memory(&self) -> bool {
        let kills = self.hierarchies.iter().map(|(hierarchy, directory)| kills(hierarchy.version, directory)).sum();
        let news = self.kills_told.get() < kills;
        self.kills_told.update(|told| told + u64::from(news));
        news
    }

    /// Returns the file that says how many bytes of memory the processes in the groups hold.
    pub(crate) fn memory_file(&self) -> Option<PathBuf> {
        let holds = |(hierarchy, _): &&(Hierarchy, PathBuf)| hierarchy.controllers.contains(&Controller::Memory);
        let (hierarchy, directory) = self.hierarchies.iter().find(holds)?;
        Some(directory.join(match hierarchy.version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        }))
    }

    /// Removes the groups. Returns false if a process is still leaving one; try again later.
    pub(crate) fn remove(&mut self) -> bool {
        self.hierarchies.retain(|(_, directory)| match fs::remove_dir(directory) {
            Ok(()) => false,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        });
        self.hierarchies.is_empty()
    }
}

/// Kills what an earlier run of the instance left in its groups, and removes them. Returns how many groups there were.
pub(crate) fn cleanup(mounts: &str, instance: &str, below: Option<&Path>) -> usize {
    let mut found = 0;
    for hierarchy in detect(mounts) {
        let parent = parent_group(&hierarchy, instance, below);
        for child in subdirectories(&parent) {
            found += 1;
            empty_group(&child);
            let _ = fs::remove_dir(&child);
        }
        let _ = fs::remove_dir(&parent);
    }
    found
}

fn check_memory(directory: &Path, most: u64) -> io::Result<()> {
    let text = fs::read_to_string(directory.join("memory.current"))?;
    let held: u64 = text.trim().parse().unwrap_or(0);
    if held <= most {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("the container holds {held} bytes of memory")))
}

fn kills(version: Version, directory: &Path) -> u64 {
    let file = match version {
        Version::V1 => "memory.oom_control",
        Version::V2 => "memory.events",
    };
    let text = fs::read_to_string(directory.join(file)).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok()).sum()
}

fn parent_group(hierarchy: &Hierarchy, instance: &str, below: Option<&Path>) -> PathBuf {
    let name = format!("netserv-{instance}");
    match below {
        Some(below) => hierarchy.mount.join(below.strip_prefix("/").unwrap_or(below)).join(name),
        None => hierarchy.mount.join(name),
    }
}

fn make_parent(hierarchy: &Hierarchy, parent: &Path) -> io::Result<()> {
    match fs::create_dir(parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    match hierarchy.version {
        Version::V1 => {
            if hierarchy.controllers.contains(&Controller::Memory) {
                // Only kernels before 5.11 have groups that are not hierarchical.
                let _ = fs::write(parent.join("memory.use_hierarchy"), "1");
            }
            Ok(())
        }
        Version::V2 => {
            let enable: Vec<String> = hierarchy.controllers.iter().map(|one| format!("+{}", one.as_str())).collect();
            let above = parent.parent().expect("the parent group lies below a mount");
            write(&above.join("cgroup.subtree_control"), &enable.join(" "))?;
            write(&parent.join("cgroup.subtree_control"), &enable.join(" "))
        }
    }
}

fn write_limits(
    version: Version,
    controller: Controller,
    directory: &Path,
    limits: &ContainerLimits,
) -> io::Result<()> {
    let (quota_us, period_us) = cpu_quota(limits.cpu_permille);
    match (version, controller) {
        (Version::V1, Controller::Memory) => {
            // Without swap accounting the file is not there, and mostly no swap either. It must never be the lower one of
            // the two, so a higher limit is written here before the other, and a lower one after it.
            let with_swap =
                || fs::write(directory.join("memory.memsw.limit_in_bytes"), limits.memory_bytes.to_string());
            let _ = with_swap();
            write(&directory.join("memory.limit_in_bytes"), &limits.memory_bytes.to_string())?;
            let _ = with_swap();
            let _ = fs::write(directory.join("memory.swappiness"), "0");
            // What sockets hold is not in the limit above, and without one of its own not counted at all. Kernels without
            // this counter have no file of this name.
            let sockets = limits.memory_bytes / SOCKET_MEMORY_SHARE;
            match write(&directory.join("memory.kmem.tcp.limit_in_bytes"), &sockets.to_string()) {
                Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
                Ok(()) | Err(_) => Ok(()),
            }
        }
        (Version::V1, Controller::Cpu) => {
            write(&directory.join("cpu.cfs_period_us"), &period_us.to_string())?;
            write(&directory.join("cpu.cfs_quota_us"), &quota_us.to_string())
        }
        (Version::V2, Controller::Memory) => {
            write(&directory.join("memory.max"), &limits.memory_bytes.to_string())?;
            write(&directory.join("memory.oom.group"), "1")?;
            let _ = fs::write(directory.join("memory.swap.max"), "0");
            Ok(())
        }
        (Version::V2, Controller::Cpu) => write(&directory.join("cpu.max"), &format!("{quota_us} {period_us}")),
        (Version::V1 | Version::V2, Controller::Pids) => write(&directory.join("pids.max"), &limits.pids.to_string()),
    }
}

/// Returns quota and period in microseconds. Short periods keep a throttled worker's packets from waiting long; the
/// kernel takes no quota below 1 ms. With a whole processor a packet thread is never throttled, and each period of each
/// container that works costs the machine an interrupt.
fn cpu_quota(permille: u32) -> (u64, u64) {
    let period_us = if (100..1000).contains(&permille) { 10_000 } else { 100_000 };
    (u64::from(permille.max(10)) * period_us / 1000, period_us)
}

fn empty_group(group: &Path) {
    let until = Instant::now() + Duration::from_secs(2);
    loop {
        let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        let pids: Vec<Pid> = text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect();
        if pids.is_empty() || Instant::now() > until {
            return;
        }
        for pid in pids {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn subdirectories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}
