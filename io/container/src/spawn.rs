// SPDX-License-Identifier: Apache-2.0
//! One container's birth: a clone into new namespaces that locks itself up step by step, then becomes the worker.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MoveMountFlags, UnmountFlags, move_mount, unmount};
use rustix::process::{Gid, Resource, Rlimit, Signal, Uid};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};
use seccompiler::BpfProgram;
use serde::{Deserialize, Serialize};

use crate::cgroup::Group;
use crate::limits::OPEN_FILES_MAX;
use crate::rootfs::{DATA, Template, WORKER};
use crate::sys::{self, Cloned};

/// Everything that a new container needs, prepared by the launcher.
pub(crate) struct Plan<'a> {
    pub(crate) template: &'a Template,
    pub(crate) filters: &'a [BpfProgram],
    pub(crate) group: &'a Group,
    /// The file system for `/data`, not mounted yet.
    pub(crate) data: OwnedFd,
    pub(crate) data_bytes: u64,
    /// The user and group to run as; nothing in a user namespace that has one user only.
    pub(crate) uid: Option<u32>,
    pub(crate) arguments: &'a [&'a str],
    /// Descriptors of the worker, with their numbers.
    pub(crate) fds: Vec<(OwnedFd, RawFd)>,
    pub(crate) stderr: OwnedFd,
}

/// A process that became the worker.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    pub(crate) landlock: String,
}

/// A step that failed, and why.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StepError {
    pub(crate) step: String,
    pub(crate) detail: String,
}

/// What the new process says before it becomes the worker. End of file after `Locked` means that it did.
#[derive(Debug, Serialize, Deserialize)]
enum Progress {
    Locked { landlock: String },
    Failed(StepError),
}

/// Starts a container and waits until its process is the worker.
pub(crate) fn spawn(plan: Plan<'_>) -> Result<Spawned, StepError> {
    let (progress, report) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).step("pipe")?;
    let namespaces =
        libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWNET;
    match sys::clone_into(namespaces).step("clone3")? {
        Cloned::Child => {
            drop(progress);
            become_worker(plan, File::from(report))
        }
        Cloned::Parent { pid, pidfd } => {
            drop(report);
            let failed = |error: StepError| {
                let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
                let options = rustix::process::WaitIdOptions::EXITED;
                let _ = rustix::process::waitid(rustix::process::WaitId::PidFd(pidfd.as_fd()), options);
                error
            };
            let mut text = String::new();
            File::from(progress).read_to_string(&mut text).step("read progress").map_err(failed)?;
            let mut landlock = None;
            for line in text.lines() {
                match serde_json::from_str(line) {
                    Ok(Progress::Locked { landlock: status }) => landlock = Some(status),
                    Ok(Progress::Failed(error)) => return Err(failed(error)),
                    Err(error) => return Err(failed(step_error("read progress", &error))),
                }
            }
            match landlock {
                Some(landlock) => Ok(Spawned { pid, pidfd, landlock }),
                None => Err(failed(step_error("lock up", &"the new process died"))),
            }
        }
    }
}

fn become_worker(plan: Plan<'_>, report: File) -> ! {
    let mut report = Some(report);
    let Err(failure) = lock_up_and_exec(plan, &mut report);
    let text = serde_json::to_string(&Progress::Failed(failure)).expect("an error is plain data");
    // Without a report, the launcher sees an end without a word, which is a failure too.
    let _ = report.map(|mut report| writeln!(report, "{text}"));
    std::process::exit(127)
}

fn lock_up_and_exec(plan: Plan<'_>, report: &mut Option<File>) -> Result<Infallible, StepError> {
    plan.group.enter().step("enter cgroups")?;
    // Of all processes of the machine, containers go first when memory is short. Best effort: it is no limit.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    let null = open_null().step("open /dev/null")?;
    enter_root(&plan.template.path, plan.data).step("enter the root")?;
    let placed = report.take().expect("the report is open until here");
    let report = report.insert(place_fds(plan.fds, null, plan.stderr, placed).step("place descriptors")?);
    rustix::process::setsid().step("setsid")?;
    rustix::system::sethostname(b"container").step("sethostname")?;
    set_rlimits(plan.data_bytes).step("set resource limits")?;
    drop_privileges(plan.uid).step("drop privileges")?;
    // Changing the user clears this signal, so it is asked for afterwards. Should the launcher have died before, the
    // write to `report` below fails, since the launcher alone reads it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).step("ask for the death signal")?;
    let landlock = restrict_files().map_err(|error| step_error("landlock", &error))?;
    let text = serde_json::to_string(&Progress::Locked { landlock }).expect("a status is plain data");
    writeln!(report, "{text}").step("report")?;
    for filter in plan.filters {
        seccompiler::apply_filter(filter).map_err(|error| step_error("seccomp", &error))?;
    }
    let mut command = Command::new(WORKER);
    command.arg0("netserv-worker").args(plan.arguments).env_clear().env("LD_LIBRARY_PATH", &plan.template.library_path);
    Err(step_error("exec the worker", &command.exec()))
}

/// Where the report goes while the worker's own descriptors have their places; the worker's are lower.
const REPORT_FD: RawFd = 15;

/// Gives the worker's descriptors their numbers and closes all that came from the launcher. Returns the report.
fn place_fds(fds: Vec<(OwnedFd, RawFd)>, null: OwnedFd, stderr: OwnedFd, report: File) -> io::Result<File> {
    let first_cloexec = fds.iter().map(|(_, number)| number + 1).max().unwrap_or(3);
    let first_closed = REPORT_FD + 1;
    let mut all = vec![(rustix::io::fcntl_dupfd_cloexec(&null, first_closed)?, 0), (null, 1), (stderr, 2)];
    all.push((report.into(), REPORT_FD));
    all.extend(fds);
    for (fd, _) in &mut all {
        *fd = rustix::io::fcntl_dupfd_cloexec(&*fd, first_closed)?;
    }
    sys::place_fds(all, first_cloexec, first_closed)?;
    Ok(sys::placed(REPORT_FD))
}

fn open_null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

fn enter_root(root: &Path, data: OwnedFd) -> io::Result<()> {
    let target = root.join(DATA.trim_start_matches('/'));
    move_mount(&data, "", CWD, target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    drop(data);
    rustix::process::chdir(root)?;
    // The new root lies over the old one until that is taken away.
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

fn set_rlimits(data_bytes: u64) -> io::Result<()> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Nofile, OPEN_FILES_MAX),
        (Resource::Fsize, data_bytes),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Sigpending, 64),
    ];
    for (resource, limit) in limits {
        let now = rustix::process::getrlimit(resource);
        let limit = now.maximum.map_or(limit, |maximum| maximum.min(limit));
        rustix::process::setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}

fn drop_privileges(uid: Option<u32>) -> io::Result<()> {
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    rustix::thread::set_capabilities_secure_bits(bits)?;
    for capability in (0..64).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The kernel knows no capability of this number, nor of any higher one.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(id) = uid {
        let (user, group) = (Uid::from_raw(id), Gid::from_raw(id));
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(group, group, group)?;
        rustix::thread::set_thread_res_uid(user, user, user)?;
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)?;
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// Restricts files to reading the root and writing `/data`, and forbids TCP ports, abstract sockets and signals to the
/// outside. Returns how much of it the kernel enforces: all of it is done by other means too.
fn restrict_files() -> Result<String, landlock::RulesetError> {
    let abi = ABI::V6;
    let data = AccessFs::from_all(abi) & !AccessFs::Execute;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules([DATA], data))?
        .restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => "fully enforced".to_owned(),
        RulesetStatus::PartiallyEnforced => "partly enforced".to_owned(),
        RulesetStatus::NotEnforced => "not enforced".to_owned(),
    })
}

pub(crate) fn step_error(step: &str, detail: &impl ToString) -> StepError {
    StepError { step: step.to_owned(), detail: detail.to_string() }
}

/// Names the step that failed.
pub(crate) trait Step<T> {
    fn step(self, step: &str) -> Result<T, StepError>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: &str) -> Result<T, StepError> {
        self.map_err(|error| step_error(step, &error.into()))
    }
}
