// SPDX-License-Identifier: Apache-2.0
//! The launcher process: one thread, one loop. It makes containers, tells the node how they end, and takes all of them
//! along when the node dies.

pub(crate) mod child;
pub(crate) mod ffmpeg;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use netserv_model::limits::BLOB_BYTES_MAX;
use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};
use netserv_wire::container::media::{MediaLayer, MediaTask};
use netserv_wire::container::{CONTROL_FD, RING_FD, WAKE_HOST_FD, WAKE_WORKER_FD};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{
    Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, pidfd_send_signal, setrlimit, waitid,
};

use crate::launcher::child::{Kit, MediaKit, Orders, Profile, Spare, Step as _, StepError, step_error};
use crate::launcher::ffmpeg::{Means, PICTURE_FD, Program, TEXT, arguments};
use crate::limits::{END_PATIENCE, MEDIA_SPARE_BYTES, PROCESSES_MAX, SPARES, STDERR_BYTES_MAX};
use crate::protocol::{ExitReport, MediaOrder, Reply, Request, Serve, Setup, StorageSetup, receive, send};
use crate::sandbox::cgroup::{Cgroups, Group};
use crate::sandbox::rootfs::{self, DATA, Template};
use crate::sandbox::seccomp::once;
use crate::sandbox::storage;
use crate::{doctor, sys};

/// The name under which a program starts itself as launcher.
pub(crate) const LAUNCHER_NAME: &str = "netserv-launcher";
/// What the names of a compilation's inputs inside its container start with.
pub(crate) const COMPILE_INPUT: &str = "in";
/// A compilation's output inside its container.
pub(crate) const COMPILE_OUTPUT: &str = "out.cwasm";
/// The name of the archive of classes, in `/data` of the container that makes it and in the directory of archives.
pub const ARCHIVE_FILE: &str = "host.jsa";

/// Becomes the launcher if this process was started as one; call it first in `main`, before any thread.
///
/// Returns nothing if it was not: go on with `main`.
#[must_use = "the launcher ends with this exit code"]
pub fn run_if_launcher() -> Option<ExitCode> {
    let name = std::env::args_os().next()?;
    if name != OsStr::new(LAUNCHER_NAME) {
        return None;
    }
    // The node's end of this socket is open as long as the node lives.
    let socket = io::stdin();
    Some(match Helper::start(socket.as_fd()) {
        Ok(Some(mut helper)) => {
            helper.run();
            ExitCode::SUCCESS
        }
        Ok(None) => ExitCode::SUCCESS,
        Err(error) => {
            let StepError { step, detail } = error;
            let _ = send(socket.as_fd(), &Reply::Failed { step, detail, quota: false }, &[]);
            ExitCode::FAILURE
        }
    })
}

/// What a node and a worker share.
const SHARED_FDS: [i32; 4] = [CONTROL_FD, RING_FD, WAKE_WORKER_FD, WAKE_HOST_FD];

/// The launcher's whole state.
struct Helper<'a> {
    socket: BorrowedFd<'a>,
    kit: Kit,
    java_home: Option<String>,
    cgroups: Cgroups,
    spares: Vec<Spare>,
    /// Counts groups, so that no two have the same name.
    groups: u64,
    /// Each place is one user id.
    processes: Vec<Option<Process>>,
    /// The first user id; nothing if there is but one.
    uid_base: Option<u32>,
    /// Groups that a process was still leaving when they were to be removed.
    leaving: Vec<Group>,
}

/// A worker or compilation that runs.
struct Process {
    /// Whose worker of which flavour it is; nobody's if it is something else.
    worker: Option<(UserId, Flavour)>,
    pid: i32,
    pidfd: OwnedFd,
    /// Shared with the user's other worker.
    group: Rc<Group>,
    stderr: OwnedFd,
    exit: OwnedFd,
}

impl<'a> Helper<'a> {
    fn start(socket: BorrowedFd<'a>) -> Result<Option<Helper<'a>>, StepError> {
        let Some((request, _)) = receive::<Request>(socket).step("read the setup")? else { return Ok(None) };
        let Request::Setup(setup) = request else { return Err(step_error("read the setup", &"it is another request")) };
        // A terminal's signals are for the node, which ends the launcher by closing the socket.
        let _ = rustix::process::setsid();
        raise_open_files();
        // What is made here is for containers to read.
        rustix::process::umask(Mode::from_raw_mode(0o022));
        let privileged = rustix::process::geteuid().is_root();
        if privileged {
            sys::unshare(libc::CLONE_NEWNS).step("make a mount namespace")?;
        } else {
            enter_user_namespace().step("make a user namespace; run as root, or allow unprivileged ones")?;
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").step("read mountinfo")?;
        let kit = kit(&setup)?;
        let cgroups = Cgroups::prepare(&mounts, &setup.instance, setup.cgroup_parent.as_deref());
        let (enforced, missing) = summary(&setup, &kit, &cgroups, privileged);
        send(socket, &Reply::Ready { enforced, missing }, &[]).step("answer the setup")?;
        let processes = std::iter::repeat_with(|| None).take(PROCESSES_MAX).collect();
        let uid_base = privileged.then_some(setup.uid_base);
        let java_home = setup.jvm.map(|jvm| jvm.java_home.to_string_lossy().into_owned());
        let (spares, groups, leaving) = (vec![], 0, vec![]);
        Ok(Some(Helper { socket, kit, java_home, cgroups, spares, groups, processes, uid_base, leaving }))
    }

    fn run(&mut self) {
        loop {
            self.refill();
            let (request, ended) = self.wait();
            for place in ended {
                self.reap(place);
            }
            self.leaving.retain_mut(|group| !group.remove());
            if !request {
                continue;
            }
            match receive::<Request>(self.socket) {
                Ok(Some((request, fds))) => self.handle(&request, fds),
                // The node is gone, or sent what only another program would send.
                Ok(None) | Err(_) => return self.end(),
            }
        }
    }

    /// Waits until there is a request, or processes ended, and returns which.
    fn wait(&self) -> (bool, Vec<usize>) {
        let running: Vec<(usize, &Process)> =
            self.processes.iter().enumerate().filter_map(|(place, one)| Some((place, one.as_ref()?))).collect();
        let mut fds = vec![PollFd::from_borrowed_fd(self.socket, PollFlags::IN)];
        fds.extend(running.iter().map(|(_, process)| PollFd::new(&process.pidfd, PollFlags::IN)));
        let soon = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        let timeout = (!self.leaving.is_empty()).then_some(&soon);
        if poll(&mut fds, timeout).is_err() {
            return (false, vec![]);
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let ended = running.iter().zip(&ready[1..]).filter(|(_, ready)| **ready).map(|((place, _), _)| *place);
        (ready[0], ended.collect())
    }

    fn handle(&mut self, request: &Request, fds: Vec<OwnedFd>) {
        let outcome = match request {
            Request::Serve(serve) => self.serve(serve, fds),
            Request::Compile { limits } => self.compile(limits, fds),
            Request::Archive { limits } => self.archive(limits, fds),
            Request::Media(wanted) => self.media(wanted, fds),
            Request::Setup(_) => Err(step_error("read a request", &"the setup was there already").into()),
        };
        let sent = match &outcome {
            Ok((reply, fds)) => {
                let fds: Vec<BorrowedFd<'_>> = fds.iter().map(|fd| fd.as_fd()).collect();
                send(self.socket, reply, &fds)
            }
            Err(reply) => send(self.socket, reply, &[]),
        };
        // If the node is gone, the socket says so next.
        drop(sent);
    }

    /// Makes spares. What goes wrong here is told with the next container, which then makes one for itself.
    fn refill(&mut self) {
        while self.spares.len() < SPARES {
            let Ok(spare) = self.new_spare() else { return };
            self.spares.push(spare);
        }
    }

    fn new_spare(&mut self) -> Result<Spare, StepError> {
        self.groups += 1;
        let group = self.cgroups.create(&format!("c{}", self.groups)).step("make cgroups")?;
        Spare::fork(&self.kit, group).map_err(|(error, group)| {
            self.leaving.push(group);
            error
        })
    }

    fn serve(&mut self, wanted: &Serve, mut fds: Vec<OwnedFd>) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let network = if wanted.network { fds.pop() } else { None };
        let [control, ring, wake_worker, wake_host, exit] = take_fds(fds)?;
        let place = self.free_place()?;
        let arguments = self.serve_arguments(wanted)?;
        let data = rootfs::data(wanted.limits.disk_bytes, self.uid(place).unwrap_or(0)).step("make /data")?;
        let mut orders = self.orders(place, wanted.flavour, &wanted.limits, arguments);
        let stores = self.stores(wanted, place, &mut orders);
        (orders.network, orders.numbers) = (network.is_some(), SHARED_FDS.to_vec());
        let fds = network.into_iter().chain(stores).chain([control, ring, wake_worker, wake_host]).collect();
        let group = wanted.beside.and_then(|pid| self.group_of(&wanted.user, pid));
        let start = Start { place, worker: Some((wanted.user.clone(), wanted.flavour)), group, exit };
        let (reply, pidfd) = self.start_process(start, &wanted.limits, &orders, data, fds)?;
        Ok((reply, vec![pidfd]))
    }

    /// Returns the mounts of what a worker has on disk. One that had them before and still runs is ended first, since two
    /// would write over each other's.
    fn stores(&mut self, wanted: &Serve, place: usize, orders: &mut Orders) -> Vec<OwnedFd> {
        let Some(StorageSetup { directory, kv_bytes, cache_bytes }) = &wanted.storage else { return vec![] };
        let (user, flavour) = (&wanted.user, wanted.flavour);
        let is_earlier =
            |process: &Process| process.worker.as_ref().is_some_and(|one| one.0 == *user && one.1 == flavour);
        let earlier: Vec<usize> =
            (0..self.processes.len()).filter(|place| self.processes[*place].as_ref().is_some_and(is_earlier)).collect();
        for place in earlier {
            self.end_one(place);
        }
        let (kv_bytes, cache_bytes) = (*kv_bytes, *cache_bytes);
        let owner = self.uid(place).unwrap_or(0);
        let files = storage::Wanted { user, flavour, directory, kv_bytes, cache_bytes };
        let (places, mounts): (Vec<&str>, Vec<OwnedFd>) = storage::mounts(&files, owner).into_iter().unzip();
        orders.stores = places.into_iter().map(str::to_owned).collect();
        orders.file_bytes = orders.file_bytes.max(kv_bytes).max(cache_bytes);
        mounts
    }

    /// Ends a process that may be about to end by itself, and collects it.
    fn end_one(&mut self, place: usize) {
        let Some(process) = &self.processes[place] else { return };
        let patience = Timespec { tv_sec: 0, tv_nsec: END_PATIENCE.subsec_nanos().into() };
        if poll(&mut [PollFd::new(&process.pidfd, PollFlags::IN)], Some(&patience)) != Ok(1) {
            let _ = pidfd_send_signal(&process.pidfd, Signal::KILL);
        }
        self.reap(place);
    }

    fn serve_arguments(&self, wanted: &Serve) -> Result<Vec<String>, StepError> {
        let memory = wanted.limits.memory_bytes.to_string();
        let mut arguments = ["serve", "--memory-bytes", &memory].map(str::to_owned).to_vec();
        if wanted.flavour == Flavour::Osgi {
            arguments.extend(["--java-home", self.java_home()?].map(str::to_owned));
        }
        Ok(arguments)
    }

    fn java_home(&self) -> Result<&str, StepError> {
        self.java_home.as_deref().ok_or_else(|| step_error("start an osgi worker", &"this node has no Java"))
    }

    /// Returns the groups of a user's worker that runs.
    fn group_of(&self, user: &UserId, pid: i32) -> Option<Rc<Group>> {
        let mut running = self.processes.iter().flatten();
        let is_theirs = |process: &Process| process.worker.as_ref().is_some_and(|(owner, _)| owner == user);
        let found = running.find(|process| process.pid == pid && is_theirs(process))?;
        Some(Rc::clone(&found.group))
    }

    /// The inputs come first, then the pipe for the exit report.
    fn compile(&mut self, limits: &ContainerLimits, mut fds: Vec<OwnedFd>) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let exit = fds.split_off(fds.len().saturating_sub(1));
        let [exit] = take_fds(exit)?;
        let inputs = (0..fds.len()).map(|number| format!("{DATA}/{}", compile_input(number)));
        let mut arguments: Vec<String> = ["compile".to_owned()].into_iter().chain(inputs).collect();
        arguments.push(format!("{DATA}/{COMPILE_OUTPUT}"));
        self.make_file(Flavour::Wasm, limits, arguments, fds, exit)
    }

    fn archive(&mut self, limits: &ContainerLimits, fds: Vec<OwnedFd>) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let [exit] = take_fds(fds)?;
        let out = format!("{DATA}/{ARCHIVE_FILE}");
        let arguments = ["archive", "--java-home", self.java_home()?, "--out", &out].map(str::to_owned).to_vec();
        self.make_file(Flavour::Osgi, limits, arguments, vec![], exit)
    }

    fn media(&mut self, wanted: &MediaOrder, mut fds: Vec<OwnedFd>) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let MediaOrder { task, limits } = wanted;
        let picture = if task.has_picture() { fds.pop() } else { None };
        let [exit, input, output] = take_fds(fds)?;
        let place = self.free_place()?;
        let data = rootfs::data(limits.disk_bytes + MEDIA_SPARE_BYTES, self.uid(place).unwrap_or(0));
        let data = data.step("make /data")?;
        if let Some(text) = text_of(task) {
            write_in(&data, TEXT, text.as_bytes()).step("write the text")?;
        }
        let means = Means {
            threads: limits.cpu_permille.div_ceil(1000).clamp(1, 8),
            allocation_bytes: limits.memory_bytes / 2,
        };
        let mut orders = self.orders(place, Flavour::Wasm, limits, arguments(task, means));
        (orders.media, orders.numbers) = (Some(Program::of(task)), vec![0, 1]);
        orders.numbers.extend(picture.as_ref().map(|_| PICTURE_FD));
        let fds = [input, output].into_iter().chain(picture).collect();
        let start = Start { place, worker: None, group: None, exit };
        let (reply, pidfd) = self.start_process(start, limits, &orders, data, fds)?;
        Ok((reply, vec![pidfd]))
    }

    /// Starts a process that leaves its result in `/data`, which the node gets.
    fn make_file(
        &mut self,
        flavour: Flavour,
        limits: &ContainerLimits,
        arguments: Vec<String>,
        inputs: Vec<OwnedFd>,
        exit: OwnedFd,
    ) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let place = self.free_place()?;
        let data = rootfs::data(limits.disk_bytes, self.uid(place).unwrap_or(0)).step("make /data")?;
        for (number, input) in inputs.into_iter().enumerate() {
            copy_in(input, &compile_input(number), &data).step("copy the input")?;
        }
        let output = rustix::fs::openat(&data, ".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let output = output.step("open /data")?;
        let mut orders = self.orders(place, flavour, limits, arguments);
        // Nothing is shared, but what a worker opens gets the numbers after those all the same.
        orders.numbers = SHARED_FDS.to_vec();
        let null = || rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let nothing: Result<Vec<OwnedFd>, _> = SHARED_FDS.iter().map(|_| null()).collect();
        let start = Start { place, worker: None, group: None, exit };
        let (reply, pidfd) = self.start_process(start, limits, &orders, data, nothing.step("open /dev/null")?)?;
        Ok((reply, vec![pidfd, output]))
    }

    fn orders(&self, place: usize, flavour: Flavour, limits: &ContainerLimits, arguments: Vec<String>) -> Orders {
        let (uid, file_bytes) = (self.uid(place), limits.disk_bytes);
        Orders { flavour, media: None, uid, file_bytes, network: false, stores: vec![], arguments, numbers: vec![] }
    }

    fn start_process(
        &mut self,
        start: Start,
        limits: &ContainerLimits,
        orders: &Orders,
        data: OwnedFd,
        fds: Vec<OwnedFd>,
    ) -> Result<(Reply, OwnedFd), Reply> {
        let (stderr, their_stderr) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).step("pipe")?;
        // A dead worker's end may live on in a message that nobody read, so reading must not wait for its end.
        rustix::fs::fcntl_setfl(&stderr, OFlags::NONBLOCK).step("pipe")?;
        if orders.media.is_some() {
            // ffmpeg may have more to say of a bad input than anybody reads before its end, and does not wait then.
            rustix::fs::fcntl_setfl(&their_stderr, OFlags::NONBLOCK).step("pipe")?;
        }
        let mut all = vec![data, their_stderr];
        all.extend(fds);
        let (spare, landlock) = self.start_spare(limits, orders, start.group.as_deref(), &all)?;
        let uid = orders.uid.unwrap_or_else(|| rustix::process::geteuid().as_raw());
        let Spare { group: own, pid, pidfd, .. } = spare;
        let their_pidfd = pidfd.try_clone().step("copy the pidfd");
        let group = match start.group {
            Some(group) => {
                self.leaving.push(own);
                group
            }
            None => Rc::new(own),
        };
        let process = Process { worker: start.worker, pid, pidfd, group, stderr, exit: start.exit };
        self.processes[start.place] = Some(process);
        Ok((Reply::Started { pid, uid, landlock }, their_pidfd?))
    }

    /// Makes a spare a worker, in its own groups with these limits or in those of another worker.
    fn start_spare(
        &mut self,
        limits: &ContainerLimits,
        orders: &Orders,
        beside: Option<&Group>,
        fds: &[OwnedFd],
    ) -> Result<(Spare, String), StepError> {
        // A spare may have died while it waited, so its failure is not the last word.
        let waiting = self.spares.pop();
        let last = waiting.is_none();
        let mut spare = waiting.map_or_else(|| self.new_spare(), Ok)?;
        let limited = match beside {
            Some(_) => Ok(()),
            None => spare.group.limit(limits).step("limit cgroups"),
        };
        match limited.and_then(|()| spare.become_worker(orders, beside, fds)) {
            Ok(landlock) => Ok((spare, landlock)),
            Err(error) => {
                self.discard(spare);
                if last { Err(error) } else { self.start_spare(limits, orders, beside, fds) }
            }
        }
    }

    fn discard(&mut self, spare: Spare) {
        let _ = pidfd_send_signal(&spare.pidfd, Signal::KILL);
        let _ = waitid(WaitId::PidFd(spare.pidfd.as_fd()), WaitIdOptions::EXITED);
        self.leaving.push(spare.group);
    }

    fn free_place(&self) -> Result<usize, Reply> {
        self.processes.iter().position(Option::is_none).ok_or_else(|| Reply::Failed {
            step: "find a free place".to_owned(),
            detail: format!("{PROCESSES_MAX} containers run"),
            quota: true,
        })
    }

    fn uid(&self, place: usize) -> Option<u32> {
        let place = u32::try_from(place).expect("places are few");
        self.uid_base.map(|base| base + place)
    }

    /// Collects a process that ended, and tells the node how.
    fn reap(&mut self, place: usize) {
        let Some(process) = self.processes[place].take() else { return };
        let status = waitid(WaitId::PidFd(process.pidfd.as_fd()), WaitIdOptions::EXITED).ok().flatten();
        let signal = status.as_ref().and_then(|status| status.terminating_signal());
        let report = ExitReport {
            code: status.as_ref().and_then(|status| status.exit_status()),
            signal,
            out_of_memory: signal.is_some() && process.group.take_out_of_memory(),
            stderr: last_words(process.stderr),
        };
        let bytes = serde_json::to_vec(&report).expect("a report is plain data");
        // The node may have forgotten the container already.
        let _ = File::from(process.exit).write_all(&bytes);
        // The last worker of a container takes the groups along.
        if let Ok(mut group) = Rc::try_unwrap(process.group)
            && !group.remove()
        {
            self.leaving.push(group);
        }
    }

    /// Takes everything along.
    fn end(&mut self) {
        for process in self.processes.iter().flatten() {
            let _ = pidfd_send_signal(&process.pidfd, Signal::KILL);
        }
        for place in 0..self.processes.len() {
            self.reap(place);
        }
        for spare in std::mem::take(&mut self.spares) {
            self.discard(spare);
        }
        for _ in 0..200 {
            self.leaving.retain_mut(|group| !group.remove());
            if self.leaving.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.cgroups.remove_parents();
    }
}

/// Who starts, and where.
struct Start {
    place: usize,
    worker: Option<(UserId, Flavour)>,
    /// The groups to join; its own if there are none.
    group: Option<Rc<Group>>,
    exit: OwnedFd,
}

impl From<StepError> for Reply {
    fn from(error: StepError) -> Reply {
        Reply::Failed { step: error.step, detail: error.detail, quota: false }
    }
}

fn take_fds<const N: usize>(fds: Vec<OwnedFd>) -> Result<[OwnedFd; N], StepError> {
    fds.try_into().map_err(|_| step_error("read a request", &"the descriptors are not the right ones"))
}

/// Three descriptors per container add up to more than the usual soft limit.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Makes this process root over itself and nobody else.
fn enter_user_namespace() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    sys::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Returns the name of one of the files that a compiler reads.
fn compile_input(number: usize) -> String {
    format!("{COMPILE_INPUT}{number}.wasm")
}

fn copy_in(wasm: OwnedFd, name: &str, data: &OwnedFd) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut input = File::from(wasm).take(BLOB_BYTES_MAX + 1);
    let mut copy = File::from(rustix::fs::openat(data, name, flags, Mode::from_raw_mode(0o444))?);
    rustix::fs::chmodat(data, name, Mode::from_raw_mode(0o444), AtFlags::empty())?;
    let bytes = io::copy(&mut input, &mut copy)?;
    if bytes > BLOB_BYTES_MAX {
        return Err(io::Error::other(format!("the module is over {BLOB_BYTES_MAX} bytes")));
    }
    Ok(())
}

fn text_of(task: &MediaTask) -> Option<&str> {
    let MediaTask::Transcode { settings, .. } = task else { return None };
    match &settings.overlay.as_ref()?.layer {
        MediaLayer::Text(text) => Some(text),
        MediaLayer::Png | MediaLayer::Jpeg => None,
    }
}

/// Writes a file for everybody to read.
fn write_in(data: &OwnedFd, name: &str, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(data, name, flags, Mode::from_raw_mode(0o444))?;
    File::from(file).write_all(bytes)
}

/// Returns the end of what a process wrote to its standard error. What is no text becomes spaces, since each of it would
/// take six bytes in a report, and the report has to fit into what its reader takes.
fn last_words(stderr: OwnedFd) -> String {
    let mut bytes = vec![];
    let _ = File::from(stderr).read_to_end(&mut bytes);
    let from = bytes.len().saturating_sub(STDERR_BYTES_MAX);
    let text = String::from_utf8_lossy(&bytes[from..]).trim().to_owned();
    text.replace(|c: char| c.is_control() && c != '\n', " ")
}

/// Builds what containers are made of. A node whose Java is not as it should be runs Wasm all the same.
fn kit(setup: &Setup) -> Result<Kit, StepError> {
    rootfs::isolate().step("make mounts private")?;
    let template = Template::wasm(setup).step("build the root")?;
    let wasm = Profile::new(Flavour::Wasm, template)?;
    let osgi = match &setup.jvm {
        None => Err("this node has no Java".to_owned()),
        Some(jvm) => match Template::osgi(&jvm.root, jvm) {
            Ok(template) => Ok(Profile::new(Flavour::Osgi, template)?),
            Err(error) => Err(error.to_string()),
        },
    };
    let media = match &setup.media {
        None => Err("this node has no ffmpeg".to_owned()),
        Some(media) => MediaKit::new(media).map_err(|error| error.detail),
    };
    let once = once::filter().map_err(|error| step_error("compile the seccomp filter", &error))?;
    Ok(Kit { wasm, osgi, media, once })
}

fn summary(setup: &Setup, kit: &Kit, cgroups: &Cgroups, privileged: bool) -> (Vec<String>, Vec<String>) {
    let mut enforced = cgroups.enforced();
    let mut missing = cgroups.missing.clone();
    match (&setup.jvm, &kit.osgi) {
        (Some(jvm), Ok(_)) => enforced.push(format!("the same for Java workers, with {}", jvm.java_home.display())),
        (Some(_), Err(reason)) => missing.push(format!("Java workers: {reason}")),
        (None, _) => {}
    }
    match (&setup.media, &kit.media) {
        (Some(media), Ok(_)) => {
            enforced.push(format!("the same for media jobs, with {}", media.files.ffmpeg.display()));
        }
        (Some(_), Err(reason)) => missing.push(format!("media jobs: {reason}")),
        (None, _) => {}
    }
    enforced.push("mount, pid, ipc, uts and network namespaces; read-only root; seccomp allow-list".to_owned());
    let ids = format!("user ids from {}", setup.uid_base);
    if privileged {
        enforced.push(ids);
    } else {
        missing.push(format!("{ids}: the node does not run as root, so containers run as the node's own user"));
    }
    match doctor::landlock() {
        Ok(version) => enforced.push(version),
        Err(reason) => missing.push(reason),
    }
    (enforced, missing)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::limits::{EXIT_REPORT_BYTES_MAX, UID_BASE};

    #[test]
    fn every_place_has_its_user_and_there_are_no_more() {
        let socket = io::stdin();
        let mut helper = Helper {
            socket: socket.as_fd(),
            kit: Kit { wasm: no_profile(), osgi: Err(String::new()), media: Err(String::new()), once: vec![] },
            java_home: None,
            cgroups: Cgroups::prepare("", "ns-container-none", None),
            spares: vec![],
            groups: 0,
            processes: std::iter::repeat_with(|| None).take(PROCESSES_MAX).collect(),
            uid_base: Some(UID_BASE),
            leaving: vec![],
        };
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        for expected in 0..PROCESSES_MAX {
            assert_eq!(helper.free_place().unwrap(), expected);
            let group = Rc::new(helper.cgroups.create("c").unwrap());
            let (stderr, exit) = (null(), null());
            helper.processes[expected] = Some(Process { worker: None, pid: 1, pidfd: null(), group, stderr, exit });
        }
        assert_eq!(helper.uid(PROCESSES_MAX - 1), Some(UID_BASE + 1023));
        assert!(matches!(helper.free_place(), Err(Reply::Failed { quota: true, .. })));
        helper.processes[7] = None;
        assert_eq!(helper.free_place().unwrap(), 7);
    }

    fn no_profile() -> Profile {
        let template = Template { path: PathBuf::new(), library_path: String::new() };
        Profile { template, filters: vec![], network_filters: vec![] }
    }

    #[test]
    fn only_the_end_of_the_last_words_is_kept() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK).unwrap();
        let text = format!("{}the end\n", "x".repeat(STDERR_BYTES_MAX));
        rustix::io::write(&writer, text.as_bytes()).unwrap();
        // The writer stays open: reading must not wait for it.
        let words = last_words(reader);
        assert!(words.len() < STDERR_BYTES_MAX && words.ends_with("xthe end"));
    }

    #[test]
    fn whatever_the_last_words_are_their_report_is_read_whole() {
        for bytes in [b"\x01", b"\"", b"\xff", b"\x7f"] {
            let (reader, writer) = rustix::pipe::pipe().unwrap();
            rustix::io::write(&writer, &[b"x", &bytes.repeat(STDERR_BYTES_MAX)[..], b"x"].concat()).unwrap();
            drop(writer);
            let stderr = last_words(reader);
            let report = ExitReport { code: Some(i32::MIN), signal: Some(i32::MIN), out_of_memory: false, stderr };
            let length = serde_json::to_vec(&report).unwrap().len();
            assert!(length < EXIT_REPORT_BYTES_MAX, "{bytes:?}: {length}");
        }
    }
}
