// SPDX-License-Identifier: Apache-2.0
//! The launcher process: one thread, one loop. It makes containers, tells the node how they end, and takes all of them
//! along when the node dies.

mod child;
mod ffmpeg;
mod inputs;
mod kit;
mod orders;
mod places;
mod report;
mod spare;
mod spares;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, UserId};
use netserv_wire::container::{CONTROL_FD, RING_FD, WAKE_HOST_FD, WAKE_WORKER_FD};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, pidfd_send_signal, setrlimit};

use crate::limits::{BACKGROUND_WEIGHT_PART, BUILD_WEIGHT_PART, END_PATIENCE, MEDIA_SPARE_BYTES, SPARES, SPARES_PAUSE};
use crate::protocol::names::{ARCHIVE_FILE, COMPILE_OUTPUT, LAUNCHER_NAME};
use crate::protocol::socket::{receive, send};
use crate::protocol::step::{Step as _, StepError, step_error};
use crate::protocol::{MediaOrder, Reply, Request, Serve, StorageSetup};
use crate::sandbox::cgroup::{Cgroups, Group};
use crate::sandbox::paths::DATA;
use crate::sandbox::{rootfs, storage, user};
use crate::sys;
use ffmpeg::{Means, TEXT, arguments, numbers, program};
use inputs::{compile_input, copy_in, text_of, write_in};
use kit::Kit;
use orders::Orders;
use places::{Places, Running};
use report::summary;
use spare::Spare;
use spares::Spares;

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
    Some(match LauncherLoop::start(socket.as_fd()) {
        Ok(Some(mut launcher)) => {
            launcher.run();
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

/// How often the launcher tries again to remove groups.
const SWEEP_INTERVAL: Duration = Duration::from_millis(5);

/// The launcher's whole state.
struct LauncherLoop<'a> {
    socket: BorrowedFd<'a>,
    kit: Kit,
    java_home: Option<String>,
    spares: Spares,
    places: Places,
}

impl<'a> LauncherLoop<'a> {
    fn start(socket: BorrowedFd<'a>) -> Result<Option<LauncherLoop<'a>>, StepError> {
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
            user::enter_user_namespace().step("make a user namespace; run as root, or allow unprivileged ones")?;
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").step("read mountinfo")?;
        let kit = Kit::build(&setup)?;
        let cgroups = Cgroups::prepare(&mounts, &setup.instance, setup.cgroup_parent.as_deref());
        let (enforced, missing) = summary(&setup, &kit, &cgroups, privileged);
        send(socket, &Reply::Ready { enforced, missing }, &[]).step("answer the setup")?;
        let places = Places::new(privileged.then_some(setup.uid_base));
        let java_home = setup.jvm.map(|jvm| jvm.java_home.to_string_lossy().into_owned());
        Ok(Some(LauncherLoop { socket, kit, java_home, spares: Spares::new(cgroups), places }))
    }

    fn run(&mut self) {
        let mut asked: Option<Instant> = None;
        loop {
            let pause = asked.map_or(Duration::ZERO, |asked| SPARES_PAUSE.saturating_sub(asked.elapsed()));
            self.spares.refill(&self.kit, if pause.is_zero() { SPARES } else { 1 });
            let (request, ended) = self.wait(pause);
            for place in ended {
                self.reap(place);
            }
            self.spares.sweep();
            if !request {
                continue;
            }
            asked = Some(Instant::now());
            match receive::<Request>(self.socket) {
                Ok(Some((request, fds))) => self.handle(&request, fds),
                // The node is gone, or sent what only another program would send.
                Ok(None) | Err(_) => return self.end(),
            }
        }
    }

    /// Waits until there is a request, or processes ended, and returns which; while spares are missing, for no longer than a
    /// pause.
    fn wait(&self, pause: Duration) -> (bool, Vec<usize>) {
        let running: Vec<(usize, &Running)> = self.places.running().collect();
        let mut fds = vec![PollFd::from_borrowed_fd(self.socket, PollFlags::IN)];
        fds.extend(running.iter().map(|(_, process)| PollFd::new(&process.pidfd, PollFlags::IN)));
        let sweep = self.spares.are_leaving().then_some(SWEEP_INTERVAL);
        let refill = (self.spares.are_missing() && !pause.is_zero()).then_some(pause);
        let timeout = sweep.into_iter().chain(refill).min().and_then(|timeout| Timespec::try_from(timeout).ok());
        if poll(&mut fds, timeout.as_ref()).is_err() {
            return (false, vec![]);
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let ended = running.iter().zip(&ready[1..]).filter(|(_, ready)| **ready).map(|((place, _), _)| *place);
        (ready[0], ended.collect())
    }

    fn handle(&mut self, request: &Request, fds: Vec<OwnedFd>) {
        let outcome = match request {
            Request::Serve(serve) => self.serve(serve, fds),
            Request::Compile { limits, cpu_seconds } => self.compile(limits, *cpu_seconds, fds),
            Request::Archive { limits, cpu_seconds } => self.archive(limits, *cpu_seconds, fds),
            Request::Media(wanted) => self.media(wanted, fds),
            Request::Background { pid, limits } => self.to_background(*pid, limits),
            Request::Limit { user, limits } => self.limit(user, limits),
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

    fn serve(&mut self, wanted: &Serve, mut fds: Vec<OwnedFd>) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let network = if wanted.network { fds.pop() } else { None };
        let [control, ring, wake_worker, wake_host, exit] = take_fds(fds)?;
        let place = self.places.free()?;
        let arguments = self.serve_arguments(wanted)?;
        let data = rootfs::data(wanted.limits.disk_bytes, self.places.uid(place).unwrap_or(0)).step("make /data")?;
        let mut orders = self.orders(place, wanted.flavour, &wanted.limits, arguments);
        let stores = self.stores(wanted, place, &mut orders);
        (orders.network, orders.numbers) = (network.is_some(), SHARED_FDS.to_vec());
        let fds = network.into_iter().chain(stores).chain([control, ring, wake_worker, wake_host]).collect();
        let group = wanted.beside.and_then(|pid| self.places.group_of(&wanted.user, pid));
        let start = Start { place, worker: Some((wanted.user.clone(), wanted.flavour)), group, exit };
        let (reply, pidfd) = self.start_process(start, &wanted.limits, &orders, data, fds)?;
        Ok((reply, vec![pidfd]))
    }

    /// Returns the mounts of what a worker has on disk. One that had them before and still runs is ended first, since two
    /// would write over each other's.
    fn stores(&mut self, wanted: &Serve, place: usize, orders: &mut Orders) -> Vec<OwnedFd> {
        let Some(StorageSetup { directory, kv_bytes, cache_bytes }) = &wanted.storage else { return vec![] };
        let (user, flavour) = (&wanted.user, wanted.flavour);
        for place in self.places.workers_of(user, flavour) {
            self.end_one(place);
        }
        let (kv_bytes, cache_bytes) = (*kv_bytes, *cache_bytes);
        let owner = self.places.uid(place).unwrap_or(0);
        let files = storage::Wanted { user, flavour, directory, kv_bytes, cache_bytes };
        let (places, mounts): (Vec<&str>, Vec<OwnedFd>) = storage::mounts(&files, owner).into_iter().unzip();
        orders.stores = places.into_iter().map(str::to_owned).collect();
        orders.file_bytes = orders.file_bytes.max(kv_bytes).max(cache_bytes);
        mounts
    }

    /// Ends a process that may be about to end by itself, and collects it.
    fn end_one(&mut self, place: usize) {
        let Some(process) = self.places.get(place) else { return };
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

    /// The inputs come first, then the pipe for the exit report.
    fn compile(
        &mut self,
        limits: &ContainerLimits,
        cpu_seconds: u64,
        mut fds: Vec<OwnedFd>,
    ) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let exit = fds.split_off(fds.len().saturating_sub(1));
        let [exit] = take_fds(exit)?;
        let inputs = (0..fds.len()).map(|number| format!("{DATA}/{}", compile_input(number)));
        let mut arguments: Vec<String> = ["compile".to_owned()].into_iter().chain(inputs).collect();
        arguments.push(format!("{DATA}/{COMPILE_OUTPUT}"));
        self.make_file(Flavour::Wasm, limits, cpu_seconds, arguments, fds, exit)
    }

    fn archive(
        &mut self,
        limits: &ContainerLimits,
        cpu_seconds: u64,
        fds: Vec<OwnedFd>,
    ) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let [exit] = take_fds(fds)?;
        let out = format!("{DATA}/{ARCHIVE_FILE}");
        let arguments = ["archive", "--java-home", self.java_home()?, "--out", &out].map(str::to_owned).to_vec();
        self.make_file(Flavour::Osgi, limits, cpu_seconds, arguments, vec![], exit)
    }

    fn media(&mut self, wanted: &MediaOrder, mut fds: Vec<OwnedFd>) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let MediaOrder { task, limits } = wanted;
        let more = fds.split_off(fds.len().min(3));
        let [exit, input, output] = take_fds(fds)?;
        let place = self.places.free()?;
        let data = rootfs::data(limits.disk_bytes + MEDIA_SPARE_BYTES, self.places.uid(place).unwrap_or(0));
        let data = data.step("make /data")?;
        if let Some(text) = text_of(task) {
            write_in(&data, TEXT, text.as_bytes()).step("write the text")?;
        }
        let means = Means {
            threads: limits.cpu_permille.div_ceil(1000).clamp(1, 8),
            allocation_bytes: limits.memory_bytes / 2,
        };
        let mut orders = self.orders(place, Flavour::Wasm, limits, arguments(task, means));
        (orders.media, orders.numbers) = (Some(program(task)), numbers(task));
        let fds: Vec<OwnedFd> = [input, output].into_iter().chain(more).collect();
        if fds.len() != orders.numbers.len() {
            return Err(step_error("read a request", &"the descriptors are not as many as the job has pipes").into());
        }
        let start = Start { place, worker: None, group: None, exit };
        let (reply, pidfd) = self.start_process(start, limits, &orders, data, fds)?;
        Ok((reply, vec![pidfd]))
    }

    /// Starts a process that leaves its result in `/data`, which the node gets.
    fn make_file(
        &mut self,
        flavour: Flavour,
        limits: &ContainerLimits,
        cpu_seconds: u64,
        arguments: Vec<String>,
        inputs: Vec<OwnedFd>,
        exit: OwnedFd,
    ) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        let place = self.places.free()?;
        let data = rootfs::data(limits.disk_bytes, self.places.uid(place).unwrap_or(0)).step("make /data")?;
        for (number, input) in inputs.into_iter().enumerate() {
            copy_in(input, &compile_input(number), &data).step("copy the input")?;
        }
        let output = rustix::fs::openat(&data, ".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let output = output.step("open /data")?;
        let mut orders = self.orders(place, flavour, limits, arguments);
        orders.cpu_seconds = Some(cpu_seconds);
        // Nothing is shared, but what a worker opens gets the numbers after those all the same.
        orders.numbers = SHARED_FDS.to_vec();
        let null = || rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let nothing: Result<Vec<OwnedFd>, _> = SHARED_FDS.iter().map(|_| null()).collect();
        let start = Start { place, worker: None, group: None, exit };
        let (reply, pidfd) = self.start_process(start, limits, &orders, data, nothing.step("open /dev/null")?)?;
        if let Some(build) = self.places.get(place) {
            // It is a build all the same.
            let _ = build.group.weigh(BUILD_WEIGHT_PART);
        }
        Ok((reply, vec![pidfd, output]))
    }

    fn limit(&self, user: &UserId, limits: &ContainerLimits) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        self.places.groups_of(user).try_for_each(|group| group.change(limits)).step("change the limits")?;
        Ok((Reply::Limited, vec![]))
    }

    fn to_background(&self, pid: i32, limits: &ContainerLimits) -> Result<(Reply, Vec<OwnedFd>), Reply> {
        // It may have ended meanwhile.
        if let Some(group) = self.places.build(pid) {
            group.change(limits).and_then(|()| group.weigh(BACKGROUND_WEIGHT_PART)).step("change the limits")?;
        }
        Ok((Reply::Limited, vec![]))
    }

    fn orders(&self, place: usize, flavour: Flavour, limits: &ContainerLimits, arguments: Vec<String>) -> Orders {
        let (uid, file_bytes) = (self.places.uid(place), limits.disk_bytes);
        Orders {
            flavour,
            media: None,
            uid,
            file_bytes,
            cpu_seconds: None,
            network: false,
            stores: vec![],
            arguments,
            numbers: vec![],
        }
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
        let beside = start.group.as_deref();
        let (spare, landlock) = self.spares.start(&self.kit, limits, orders, beside, &all)?;
        let uid = orders.uid.unwrap_or_else(|| rustix::process::geteuid().as_raw());
        let Spare { group: own, pid, pidfd, .. } = spare;
        let their_pidfd = pidfd.try_clone().step("copy the pidfd");
        let group = match start.group {
            Some(group) => {
                self.spares.leave(own);
                group
            }
            None => Rc::new(own),
        };
        let memory = group.memory_file();
        let (cpu_seconds, exit) = (orders.cpu_seconds, start.exit);
        let process = Running { worker: start.worker, pid, pidfd, cpu_seconds, group, stderr, exit };
        self.places.put(start.place, process);
        Ok((Reply::Started { pid, uid, landlock, memory }, their_pidfd?))
    }

    /// Collects a process that ended, and tells the node how. The last worker of a container takes the groups along.
    fn reap(&mut self, place: usize) {
        let Some(process) = self.places.take(place) else { return };
        if let Ok(group) = Rc::try_unwrap(process.collect()) {
            self.spares.leave(group);
        }
    }

    /// Takes everything along.
    fn end(&mut self) {
        let running: Vec<usize> = self.places.running().map(|(place, _)| place).collect();
        for (_, process) in self.places.running() {
            let _ = pidfd_send_signal(&process.pidfd, Signal::KILL);
        }
        for place in running {
            self.reap(place);
        }
        self.spares.end();
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
