// SPDX-License-Identifier: Apache-2.0
//! What this machine lets containers do, for `netserv doctor` and for people.

mod check;

use std::fs;
use std::io;

use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::host::{Class, ScheduledThread};
use crate::sandbox::cgroup::{Controller, detect};
use crate::sandbox::landlock;

pub use check::Check;

/// Looks at the machine without changing it.
pub fn doctor() -> Vec<Check> {
    vec![privileges(), user_namespaces(), cgroups(), pidfds(), landlock_check(), seccomp()]
}

/// Looks whether threads of this process get into the real-time class, without keeping one there.
pub fn real_time() -> Check {
    let attempt = || ScheduledThread::this()?.set_class(Class::RealTime(1));
    let tried = std::thread::spawn(attempt).join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    let share = fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_else(|_| "?".to_owned());
    Check {
        what: "real-time class",
        ok: tried.is_ok(),
        found: match tried {
            Ok(()) => format!("{} µs of each second by sched_rt_runtime_us", share.trim()),
            Err(error) => error.to_string(),
        },
        fix: "CAP_SYS_NICE; where the kernel groups real time, a share for the node's own group (cpu.rt_runtime_us)",
    }
}

fn privileges() -> Check {
    let user = rustix::process::geteuid();
    Check {
        what: "root",
        ok: user.is_root(),
        found: format!("user id {}", user.as_raw()),
        fix: "run as root; without it, containers share the node's user id and mostly have no cgroup limits",
    }
}

fn user_namespaces() -> Check {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
    let max = read("/proc/sys/user/max_user_namespaces").unwrap_or_else(|_| "0".to_owned());
    let switch = read("/proc/sys/kernel/unprivileged_userns_clone").unwrap_or_else(|_| "1".to_owned());
    Check {
        what: "user namespaces",
        ok: max != "0" && switch != "0",
        found: format!("at most {max}, unprivileged: {switch}"),
        fix: "only needed without root: sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone=1",
    }
}

fn cgroups() -> Check {
    let hierarchies = fs::read_to_string("/proc/self/mountinfo").map(|mounts| detect(&mounts)).unwrap_or_default();
    let of = |one: Controller| hierarchies.iter().find(|hierarchy| hierarchy.controllers.contains(&one));
    let found = Controller::ALL.map(|one| match of(one) {
        Some(hierarchy) => format!("{}: {}", one.as_str(), hierarchy.version),
        None => format!("{}: not there", one.as_str()),
    });
    Check {
        what: "cgroup controllers memory, cpu, pids",
        ok: Controller::ALL.into_iter().all(|one| of(one).is_some()),
        found: found.join(", "),
        fix: "mount cgroup2 (or the v1 controllers) at /sys/fs/cgroup",
    }
}

fn pidfds() -> Check {
    let opened = pidfd_open(getpid(), PidfdFlags::empty());
    Check {
        what: "pidfds, clone3, the mount API",
        ok: opened.is_ok(),
        found: opened.map_or_else(|error| error.to_string(), |_| "pidfd_open works".to_owned()),
        fix: "use Linux 5.12 or later",
    }
}

fn landlock_check() -> Check {
    let found = landlock::version();
    Check {
        what: "Landlock",
        ok: found.is_ok(),
        found: found.unwrap_or_else(|reason| reason),
        fix: "use Linux 6.12 or later with Landlock on; containers run without it, behind the other walls",
    }
}

fn seccomp() -> Check {
    let actions: io::Result<String> = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail");
    Check {
        what: "seccomp filters",
        ok: actions.as_ref().is_ok_and(|actions| actions.contains("errno")),
        found: actions.map_or_else(|error| error.to_string(), |actions| actions.trim().to_owned()),
        fix: "use a kernel with CONFIG_SECCOMP_FILTER",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_says_what_it_found_and_what_to_do() {
        let checks = doctor();
        assert_eq!(checks.len(), 6);
        assert!(checks.iter().all(|check| !check.found.is_empty() && !check.fix.is_empty()), "{checks:?}");
        let root = checks.iter().find(|check| check.what == "root").unwrap();
        assert_eq!(root.ok, rustix::process::geteuid().is_root());
    }
}
