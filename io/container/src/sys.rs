// SPDX-License-Identifier: Apache-2.0
//! The system calls that have no safe form.
#![allow(unsafe_code, reason = "these calls have no safe form")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags};

/// Returns how often the calling thread slept, of itself, until something came that it waited for.
pub fn thread_sleeps() -> u64 {
    // SAFETY: all fields of `rusage` are integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes to `usage`, which outlives the call.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    // It fails for no thread that asks about itself.
    debug_assert_eq!(result, 0);
    u64::try_from(usage.ru_nvcsw).unwrap_or_default()
}

/// Which of the two processes a clone returns in.
#[derive(Debug)]
pub(crate) enum Cloned {
    Parent { pid: i32, pidfd: OwnedFd },
    Child,
}

/// Forks into new namespaces. The caller has no other thread, so that the child may go on as if nothing had happened.
pub(crate) fn clone_into(namespaces: libc::c_int) -> io::Result<Cloned> {
    let mut pidfd: RawFd = -1;
    let flags = libc::CLONE_PIDFD | namespaces;
    // SAFETY: all fields of `clone_args` are integers, for which zero is a value.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = u64::try_from(flags).expect("clone flags are positive");
    args.pidfd = ptr::from_mut(&mut pidfd).expose_provenance() as u64;
    args.exit_signal = libc::SIGCHLD.unsigned_abs().into();
    // SAFETY: without CLONE_VM the child gets a copy of the memory, as after fork; `args` and `pidfd` outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) };
    match i32::try_from(result).expect("a process number fits 32 bits") {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Cloned::Child),
        // SAFETY: CLONE_PIDFD made `pidfd` a descriptor that nobody else owns.
        pid => Ok(Cloned::Parent { pid, pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } }),
    }
}

/// Moves this process, which has one thread, into new namespaces.
pub(crate) fn unshare(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: the call touches no memory; the descriptor table stays shared with nobody.
    check(unsafe { libc::unshare(namespaces) })
}

/// How a child ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Processor time of all its threads.
    pub(crate) cpu_time: Duration,
}

/// Waits until a child of this process ended, and collects it.
pub(crate) fn wait(pid: i32) -> io::Result<Ended> {
    let mut status = 0;
    // SAFETY: all fields of `rusage` are integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes to `status` and `usage`, which outlive the call.
    check(unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) })?;
    let time = |time: libc::timeval| {
        let (seconds, micros) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec));
        Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_micros(micros.unwrap_or(0))
    };
    Ok(Ended {
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        cpu_time: time(usage.ru_utime) + time(usage.ru_stime),
    })
}

/// Returns how long all threads of a process were on a processor so far; `None` if there is no such process.
pub(crate) fn process_time(pid: i32) -> Option<Duration> {
    let mut clock = 0;
    // SAFETY: the number of the clock is written to `clock`, which outlives the call.
    if unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } != 0 {
        return None;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to `time`, which outlives the call.
    check(unsafe { libc::clock_gettime(clock, &raw mut time) }).ok()?;
    Some(
        Duration::from_secs(u64::try_from(time.tv_sec).ok()?) + Duration::from_nanos(u64::try_from(time.tv_nsec).ok()?),
    )
}

/// Gives a thread another scheduling policy, and there a priority.
pub(crate) fn set_scheduler(thread: i32, policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // SAFETY: all fields of `sched_param` are integers, for which zero is a value.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the kernel reads `parameters`, which outlives the call. What the thread starts does not inherit the policy.
    check(unsafe { libc::sched_setscheduler(thread, policy | libc::SCHED_RESET_ON_FORK, &raw const parameters) })
}

/// Has a thread of the usual policy keep a processor for so long at most while others want it. Its nice value stays; what the
/// thread starts does not inherit the slice, unless it would lose a precedence by that.
pub(crate) fn set_slice(thread: i32, slice: Duration) -> io::Result<()> {
    let nice = rustix::process::getpriority_process(rustix::process::Pid::from_raw(thread))?;
    let attributes = libc::sched_attr {
        size: u32::try_from(size_of::<libc::sched_attr>()).expect("a structure is short"),
        sched_policy: libc::SCHED_OTHER.unsigned_abs(),
        sched_flags: if nice < 0 { 0 } else { libc::SCHED_FLAG_RESET_ON_FORK.unsigned_abs().into() },
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX),
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads `attributes`, which outlive the call and have the size that they name.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) };
    check(i32::try_from(result).unwrap_or(-1))
}

/// Returns the slice of a thread; zero where the kernel gives no thread one of its own.
#[cfg(test)]
pub(crate) fn slice(thread: i32) -> io::Result<Duration> {
    // SAFETY: all fields of `sched_attr` are integers, for which zero is a value.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes as many bytes as it is told to `attributes`, which outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attributes, size, 0) };
    check(i32::try_from(result).unwrap_or(-1))?;
    Ok(Duration::from_nanos(attributes.sched_runtime))
}

/// Returns the scheduling policy of a thread; a negative number if there is no such thread.
pub(crate) fn scheduler(thread: i32) -> libc::c_int {
    // SAFETY: the call touches no memory.
    let policy = unsafe { libc::sched_getscheduler(thread) };
    if policy < 0 { policy } else { policy & !libc::SCHED_RESET_ON_FORK }
}

/// Lets a socket take any address as its own (`IP_TRANSPARENT`, `IPV6_TRANSPARENT`). Needs CAP_NET_ADMIN.
pub(crate) fn set_transparent(socket: BorrowedFd<'_>, v6: bool) -> io::Result<()> {
    let (level, option) =
        if v6 { (libc::SOL_IPV6, libc::IPV6_TRANSPARENT) } else { (libc::SOL_IP, libc::IP_TRANSPARENT) };
    let on: libc::c_int = 1;
    let bytes = libc::socklen_t::try_from(size_of_val(&on)).expect("a number is short");
    // SAFETY: `on` lives through the call and has as many bytes as are named.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const on).cast(), bytes) })
}

/// Puts copies of `fds` at the numbers beside them, closes everything from `first_closed` on, and marks what lies from
/// `first_cloexec` up to there to be closed by exec. None of `fds` has a number below `first_closed`.
///
/// Only for a process that is about to exec and drops no descriptor of its own any more.
pub(crate) fn place_fds(fds: Vec<(OwnedFd, RawFd)>, first_cloexec: RawFd, first_closed: RawFd) -> io::Result<()> {
    for (fd, number) in &fds {
        assert!(fd.as_raw_fd() >= first_closed && *number < first_closed, "descriptors were moved out of the way");
        // SAFETY: the numbers below `first_closed` belong to nobody in this process, which is about to exec.
        check(unsafe { libc::dup2(fd.as_raw_fd(), *number) })?;
    }
    drop(fds);
    let close_range = |first: RawFd, last: libc::c_uint, flags: libc::c_uint| {
        let first = libc::c_uint::try_from(first).expect("descriptors are positive");
        // SAFETY: nothing in this process, which is about to exec, uses or drops the descriptors that are closed here.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    close_range(first_cloexec, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)?;
    close_range(first_closed, libc::c_uint::MAX, 0)
}

/// Returns the owner of descriptor `number`, which [`place_fds`] put there.
pub(crate) fn placed(number: RawFd) -> OwnedFd {
    // SAFETY: `place_fds` gave it away, and the caller takes it once.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Moves this process into another network namespace.
pub(crate) fn enter_network(namespace: impl AsFd) -> io::Result<()> {
    // SAFETY: the call touches no memory.
    check(unsafe { libc::setns(namespace.as_fd().as_raw_fd(), libc::CLONE_NEWNET) })
}

/// Loads a system call filter into this process, which has one thread and can gain no privileges, and returns the
/// descriptor at which the filter's questions arrive.
pub(crate) fn load_filter_with_listener(filter: &[seccompiler::sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(io::Error::other)?,
        filter: filter.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // SAFETY: the kernel reads `program` and the instructions, which both types lay out as it wants, and writes nothing.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    match RawFd::try_from(result).expect("a descriptor fits 32 bits") {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the call made this descriptor, and nobody else owns it.
        listener => Ok(unsafe { OwnedFd::from_raw_fd(listener) }),
    }
}

/// Takes the next question of a system call filter, and has the kernel go on with the call.
pub(crate) fn permit_call(listener: impl AsFd) -> io::Result<()> {
    let listener = listener.as_fd().as_raw_fd();
    // SAFETY: all fields of `seccomp_notif` are integers, for which zero is a value.
    let mut question: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills `question`, which has the size that the command names.
    check(unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut question) })?;
    let flags = u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).expect("a flag fits 32 bits");
    let mut answer = libc::seccomp_notif_resp { id: question.id, val: 0, error: 0, flags };
    // SAFETY: the kernel reads `answer`, which has the size that the command names.
    check(unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) })
}

/// Adds attributes to a mount.
pub(crate) fn add_mount_attributes(mount: impl AsFd, attributes: u64) -> io::Result<()> {
    // SAFETY: all fields of `mount_attr` are integers, for which zero is a value.
    let mut change: libc::mount_attr = unsafe { std::mem::zeroed() };
    change.attr_set = attributes;
    let (fd, size) = (mount.as_fd().as_raw_fd(), size_of::<libc::mount_attr>());
    // SAFETY: the empty path and `change` outlive the call, and `size` is the size of `change`.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, fd, c"".as_ptr(), libc::AT_EMPTY_PATH, &raw const change, size)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the kernel's Landlock version, 0 if it has none.
pub(crate) fn landlock_version() -> u32 {
    const VERSION_FLAG: libc::c_uint = 1;
    // SAFETY: with this flag the kernel takes a null pointer of length zero and only returns a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<u8>(), 0_usize, VERSION_FLAG) };
    u32::try_from(version).unwrap_or(0)
}

/// Memory shared with another process, which may change it at any time.
#[derive(Debug)]
pub(crate) struct SharedWords {
    start: ptr::NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: atomics may be used from several threads, and the mapping belongs to no thread.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Maps a memfd of `words` 64-bit words whose size is sealed.
    pub(crate) fn map(memfd: impl AsFd, words: usize) -> io::Result<SharedWords> {
        let bytes = words * size_of::<AtomicU64>();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice takes nothing away from anybody.
        let start = unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, memfd, 0)? };
        let start = ptr::NonNull::new(start.cast()).ok_or_else(|| io::Error::other("a mapping at address zero"))?;
        Ok(SharedWords { start, words })
    }
}

impl AsRef<[AtomicU64]> for SharedWords {
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is that long, page-aligned, lives as long as `self`, and is only touched by atomics.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: nobody borrows the words any more, and `map` mapped exactly this.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.words * size_of::<AtomicU64>()) };
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
