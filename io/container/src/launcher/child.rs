// SPDX-License-Identifier: Apache-2.0
//! One container's birth: a clone into new namespaces that locks itself up step by step, then becomes the worker.
//!
//! Everything after the clone runs in a copy of the launcher's memory, which is safe because the launcher has one
//! thread.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope, path_beneath_rules,
};
use netserv_model::Flavour;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MoveMountFlags, UnmountFlags, move_mount, unmount};
use rustix::process::{Gid, Resource, Rlimit, Signal, Uid};
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};
use seccompiler::BpfProgram;
use serde::{Deserialize, Serialize};

use crate::host::launcher::seqpacket;
use crate::launcher::ffmpeg::Program;
use crate::limits::{JAVA_OPEN_FILES_MAX, NETWORK_OPEN_FILES_MAX, OPEN_FILES_MAX, PERMIT_TIME_MAX};
use crate::protocol::{MediaSetup, receive, send};
use crate::sandbox::cgroup::Group;
use crate::sandbox::rootfs::media::MediaRoot;
use crate::sandbox::rootfs::{DATA, NULL, Template, WORKER};
use crate::sandbox::seccomp::{self, once};
use crate::sandbox::storage::{STORE_CACHE, STORE_KV};
use crate::sys::{self, Cloned};

/// What all containers of a node have in common.
#[derive(Debug)]
pub(crate) struct Kit {
    pub(crate) wasm: Profile,
    /// Or why there are no Java workers.
    pub(crate) osgi: Result<Profile, String>,
    /// Or why there are no media jobs.
    pub(crate) media: Result<MediaKit, String>,
    /// The filter by which the worker's program is the last that is executed.
    pub(crate) once: BpfProgram,
}

impl Kit {
    fn profile(&self, orders: &Orders) -> Result<&Profile, StepError> {
        if orders.media.is_some() {
            return Ok(&self.media()?.profile);
        }
        match orders.flavour {
            Flavour::Wasm => Ok(&self.wasm),
            Flavour::Osgi => self.osgi.as_ref().map_err(|reason| step_error("prepare an osgi worker", reason)),
        }
    }

    fn media(&self) -> Result<&MediaKit, StepError> {
        self.media.as_ref().map_err(|reason| step_error("prepare a media job", reason))
    }
}

/// What all media jobs have in common.
#[derive(Debug)]
pub(crate) struct MediaKit {
    profile: Profile,
    root: MediaRoot,
}

impl MediaKit {
    pub(crate) fn new(setup: &MediaSetup) -> Result<MediaKit, StepError> {
        let root = MediaRoot::build(setup).step("build the root")?;
        let filters = seccomp::media::filters();
        let filters = filters.map_err(|error| step_error("compile the seccomp filter", &error))?;
        let profile = Profile { template: root.template.clone(), filters, network_filters: vec![] };
        Ok(MediaKit { profile, root })
    }
}

/// What all workers of one flavour have in common.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) template: Template,
    /// Loaded in containers without a network.
    pub(crate) filters: Vec<BpfProgram>,
    /// Loaded in containers with one.
    pub(crate) network_filters: Vec<BpfProgram>,
}

impl Profile {
    pub(crate) fn new(flavour: Flavour, template: Template) -> Result<Profile, StepError> {
        let compile = |network| {
            let filters = seccomp::filters(flavour, network);
            filters.map_err(|error| step_error("compile the seccomp filter", &error))
        };
        Ok(Profile { template, filters: compile(false)?, network_filters: compile(true)? })
    }
}

/// What a spare process has to become. Beside it go the file system for `/data`, the standard error, the network
/// namespace if there is to be one, a mount for each of `stores`, and one descriptor for each of `numbers`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) flavour: Flavour,
    /// The program of a media job; nothing for a worker.
    pub(crate) media: Option<Program>,
    /// The user and group to run as; nothing in a user namespace that has one user only.
    pub(crate) uid: Option<u32>,
    /// Bytes of the longest file.
    pub(crate) file_bytes: u64,
    pub(crate) network: bool,
    /// Where mounted files go.
    pub(crate) stores: Vec<String>,
    pub(crate) arguments: Vec<String>,
    /// The numbers that the descriptors get.
    pub(crate) numbers: Vec<RawFd>,
}

/// A process in its own namespaces and groups, ready to become a worker.
///
/// The launcher keeps a few of them ([`SPARES`](crate::limits::SPARES)), because entering a cgroup may take 20 ms, of
/// which a container's start then sees nothing. A spare may become a worker of any flavour.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) group: Group,
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    orders: OwnedFd,
    progress: OwnedFd,
}

/// A step that failed, and why.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StepError {
    pub(crate) step: String,
    pub(crate) detail: String,
}

/// What the new process says when it is about to become the worker. Beside it goes the descriptor at which it asks
/// whether it may, if the kernel has such questions.
#[derive(Debug, Serialize, Deserialize)]
struct Locked;

/// What the new process says before it becomes the worker. End of file after `Locked` means that it did.
#[derive(Debug, Serialize, Deserialize)]
enum Progress {
    Locked { landlock: String },
    Failed(StepError),
}

impl Spare {
    /// Forks a spare, which goes on by itself.
    pub(crate) fn fork(kit: &Kit, group: Group) -> Result<Spare, (StepError, Group)> {
        match Spare::try_fork(kit, &group) {
            Ok((pid, pidfd, orders, progress)) => Ok(Spare { group, pid, pidfd, orders, progress }),
            Err(error) => Err((error, group)),
        }
    }

    fn try_fork(kit: &Kit, group: &Group) -> Result<(i32, OwnedFd, OwnedFd, OwnedFd), StepError> {
        let (progress, report) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).step("pipe")?;
        let (orders, their_orders) = seqpacket().step("socket pair")?;
        match sys::clone_into(NAMESPACES).step("clone3")? {
            Cloned::Child => {
                drop((progress, orders));
                become_worker(kit, group, their_orders, report)
            }
            Cloned::Parent { pid, pidfd } => Ok((pid, pidfd, orders, progress)),
        }
    }

    /// Makes the spare a worker, in its own groups or in those of another, and waits until it is. Returns how much of
    /// Landlock is enforced. If it fails, the spare is dead, but not yet collected.
    pub(crate) fn become_worker(
        &mut self,
        orders: &Orders,
        beside: Option<&Group>,
        fds: &[OwnedFd],
    ) -> Result<String, StepError> {
        let outcome = self.try_become_worker(orders, beside, fds);
        if outcome.is_err() {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        outcome
    }

    fn try_become_worker(
        &mut self,
        orders: &Orders,
        beside: Option<&Group>,
        fds: &[OwnedFd],
    ) -> Result<String, StepError> {
        let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        let sent = send(&self.orders, orders, &fds);
        // Nothing comes if the new process dies, of which the report below tells.
        if let Ok(Some((Locked, mut listener))) = receive(&self.orders) {
            // Earlier the new process might still have been on its way into its own groups.
            beside.map_or(Ok(()), |group| group.admit(self.pid)).step("join cgroups")?;
            if let Some(listener) = listener.pop() {
                once::permit(listener, PERMIT_TIME_MAX).step("permit to exec the worker")?;
            }
        }
        let text = read_to_end(&self.progress, PERMIT_TIME_MAX).step("read progress")?;
        let mut landlock = None;
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(Progress::Locked { landlock: status }) => landlock = Some(status),
                Ok(Progress::Failed(error)) => return Err(error),
                Err(error) => return Err(step_error("read progress", &error)),
            }
        }
        sent.step("send orders")?;
        landlock.ok_or_else(|| step_error("lock up", &"the new process died"))
    }
}

/// Reads until the other end is closed, which a process may put off that gets no processor time.
fn read_to_end(progress: &OwnedFd, at_most: Duration) -> io::Result<String> {
    let until = Instant::now() + at_most;
    let (mut text, mut buffer) = (vec![], [0; 4096]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(progress, PollFlags::IN)], Some(&timeout))? == 0 {
            let detail = format!("the new process does not become the worker within {} s", at_most.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, detail));
        }
        match rustix::io::read(progress, &mut buffer)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            length => text.extend_from_slice(&buffer[..length]),
        }
    }
}

const NAMESPACES: libc::c_int =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWNET;

/// Where a spare keeps its orders and its report; the worker's own descriptors are lower.
const ORDERS_FD: RawFd = 14;
const REPORT_FD: RawFd = 15;

fn become_worker(kit: &Kit, group: &Group, orders: OwnedFd, report: OwnedFd) -> ! {
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
    set_rlimits(&orders).step("set resource limits")?;
    drop_privileges(orders.uid).step("drop privileges")?;
    // Changing the user clears this signal, so it is asked for afterwards. Should the launcher have died before, the
    // write of the report below fails, since the launcher alone reads it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).step("ask for the death signal")?;
    let landlock = restrict_files(orders.network).map_err(|error| step_error("landlock", &error))?;
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

fn set_rlimits(orders: &Orders) -> io::Result<()> {
    let open_files = match orders.flavour {
        Flavour::Wasm if orders.network => NETWORK_OPEN_FILES_MAX,
        Flavour::Wasm => OPEN_FILES_MAX,
        Flavour::Osgi => JAVA_OPEN_FILES_MAX,
    };
    let limits = [
        (Resource::Core, 0),
        (Resource::Nofile, open_files),
        (Resource::Fsize, orders.file_bytes),
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

/// Restricts files to reading the root and writing `/data` and what is in `/store`, and forbids abstract sockets and signals to the outside, and
/// TCP ports unless a network's own firewall looks after them. Returns how much of it the kernel enforces: all of it is
/// done by other means too.
fn restrict_files(network: bool) -> Result<String, landlock::RulesetError> {
    let abi = ABI::V6;
    let data = AccessFs::from_all(abi) & !AccessFs::Execute;
    let mut ruleset =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(abi))?;
    if !network {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    let status = ruleset
        .scope(Scope::from_all(abi))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(abi)))?
        .add_rules(path_beneath_rules([DATA], data))?
        .add_rules(path_beneath_rules([NULL], AccessFs::from_read(abi) | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules([STORE_KV, STORE_CACHE], AccessFs::from_file(abi) & !AccessFs::Execute))?
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_does_not_become_the_worker_is_not_waited_for() {
        let (progress, report) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&report, b"locked\n").unwrap();
        let error = read_to_end(&progress, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        rustix::io::write(&report, b"failed\n").unwrap();
        drop(report);
        assert_eq!(read_to_end(&progress, Duration::from_secs(5)).unwrap(), "failed\n");
    }
}
