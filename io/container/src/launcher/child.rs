// SPDX-License-Identifier: Apache-2.0
//! The new process, from its clone to its becoming the worker.
//!
//! All of this runs in a copy of the launcher's memory, which is safe because the launcher has one thread.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use netserv_model::Flavour;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MoveMountFlags, UnmountFlags, move_mount, unmount};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::kit::Kit;
use super::orders::Orders;
use crate::protocol::socket::{receive, send};
use crate::protocol::step::{Step as _, StepError, step_error};
use crate::sandbox::cgroup::Group;
use crate::sandbox::paths::{DATA, WORKER};
use crate::sandbox::seccomp::once;
use crate::sandbox::{landlock, rlimits, user};
use crate::sys;

/// What the new process says when it is about to become the worker. Beside it goes the descriptor at which it asks
/// whether it may, if the kernel has such questions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Locked;

/// What the new process says before it becomes the worker. End of file after `Locked` means that it did.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Progress {
    Locked { landlock: String },
    Failed(StepError),
}

/// Where a spare keeps its orders and its report; the worker's own descriptors are lower.
const ORDERS_FD: RawFd = 14;
const REPORT_FD: RawFd = 15;

/// Goes on in the new process, which waits for its orders, locks itself up step by step, and becomes the worker.
pub(super) fn become_worker(kit: &Kit, group: &Group, orders: OwnedFd, report: OwnedFd) -> ! {
    let mut report = Some(report);
    let Err(failure) = lock_up_and_exec(kit, group, orders, &mut report);
    let text = serde_json::to_string(&Progress::Failed(failure)).expect("an error is plain data");
    // Without a report, the launcher sees an end without a word, which is a failure too.
    let _ = report.map(|report| writeln!(File::from(report), "{text}"));
    std::process::exit(127)
}

fn lock_up_and_exec(
    kit: &Kit,
    group: &Group,
    orders: OwnedFd,
    report: &mut Option<OwnedFd>,
) -> Result<Infallible, StepError> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).step("open /dev/null")?;
    let null_too = null.try_clone().step("copy a descriptor")?;
    let placed = report.take().expect("the report is open until here");
    place_fds(vec![(null, 0), (null_too, 1), (orders, ORDERS_FD), (placed, REPORT_FD)], 3).step("place descriptors")?;
    let (orders, report) = (sys::placed(ORDERS_FD), report.insert(sys::placed(REPORT_FD)));
    group.enter().step("enter cgroups")?;
    // Of all processes of the machine, containers go first when memory is short. Best effort: it is no limit.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    rustix::process::setsid().step("setsid")?;
    rustix::system::sethostname(b"container").step("sethostname")?;

    let socket = orders;
    let Some((orders, fds)) = receive::<Orders>(&socket).step("wait for orders")? else { std::process::exit(0) };
    let mut fds = fds.into_iter();
    let (Some(data), Some(stderr)) = (fds.next(), fds.next()) else {
        return Err(step_error("wait for orders", &"descriptors are missing"));
    };
    let profile = kit.profile(&orders)?;
    if orders.media.is_some() {
        kit.media()?.root.fill().step("fill the root")?;
    }
    enter_root(&profile.template.path).step("enter the root")?;
    if orders.network {
        let namespace = fds.next().ok_or_else(|| step_error("wait for orders", &"the network is missing"))?;
        sys::enter_network(namespace).step("enter the network namespace")?;
    }
    move_mount(&data, "", CWD, DATA, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).step("mount /data")?;
    drop(data);
    for place in &orders.stores {
        let mount = fds.next().ok_or_else(|| step_error("wait for orders", &"a file is missing"))?;
        move_mount(&mount, "", CWD, place.as_str(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).step("mount a file")?;
    }
    let first_cloexec = orders.numbers.iter().map(|number| number + 1).fold(3, RawFd::max);
    if orders.media.is_some() {
        rustix::process::chdir(DATA).step("enter /data")?;
    }
    let mut own: Vec<(OwnedFd, RawFd)> = fds.zip(orders.numbers.iter().copied()).collect();
    own.push((stderr, 2));
    place_fds(own, first_cloexec).step("place descriptors")?;
    rlimits::set(orders.flavour, orders.network, orders.file_bytes, orders.cpu_seconds).step("set resource limits")?;
    user::drop_privileges(orders.uid).step("drop privileges")?;
    // Changing the user clears this signal, so it is asked for afterwards. Should the launcher have died before, the
    // write of the report below fails, since the launcher alone reads it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).step("ask for the death signal")?;
    let landlock = landlock::restrict(orders.network).map_err(|error| step_error("landlock", &error))?;
    let text = serde_json::to_string(&Progress::Locked { landlock }).expect("a status is plain data");
    rustix::io::write(&*report, format!("{text}\n").as_bytes()).step("report")?;
    // Without such questions, as inside some other sandboxes, the worker can execute itself again, and nothing else.
    let listener = once::load(&kit.once).ok();
    let ours: Vec<BorrowedFd<'_>> = listener.iter().map(AsFd::as_fd).collect();
    send(&socket, &Locked, &ours).step("hand over the right to exec")?;
    let filters = if orders.network { &profile.network_filters } else { &profile.filters };
    for filter in filters {
        seccompiler::apply_filter(filter).map_err(|error| step_error("seccomp", &error))?;
    }
    let mut command = match orders.media {
        Some(program) => Command::new(program.path()),
        None => {
            let mut command = Command::new(WORKER);
            command.arg0(worker_name(orders.flavour));
            command
        }
    };
    command.args(orders.arguments);
    command.env_clear().env("LD_LIBRARY_PATH", &profile.template.library_path);
    Err(step_error("exec the worker", &command.exec()))
}

fn worker_name(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Wasm => "netserv-worker",
        Flavour::Osgi => "netserv-jvm",
    }
}

/// Gives descriptors their numbers and closes all that came from the launcher.
fn place_fds(mut fds: Vec<(OwnedFd, RawFd)>, first_cloexec: RawFd) -> io::Result<()> {
    let first_closed = REPORT_FD + 1;
    for (fd, _) in &mut fds {
        *fd = rustix::io::fcntl_dupfd_cloexec(&*fd, first_closed)?;
    }
    sys::place_fds(fds, first_cloexec, first_closed)
}

fn enter_root(root: &Path) -> io::Result<()> {
    rustix::process::chdir(root)?;
    // The new root lies over the old one until that is taken away.
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}
