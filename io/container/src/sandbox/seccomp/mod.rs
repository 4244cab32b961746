// SPDX-License-Identifier: Apache-2.0
//! Which system calls a worker may make.
//!
//! Everything that is not named here is answered with `EPERM`: nothing a worker needs is missing, libraries that try a
//! newer call fall back to an older one, and who took over a worker learns only that a call failed. `clone3` is answered
//! with `ENOSYS`, since a filter cannot look at its flags and the C library then uses `clone`, at whose flags it can.
//! `execve` works once, for the worker itself ([`once`]).
//!
//! Left out on purpose: every way to make a process, a namespace or a mount; `ptrace`, `bpf`, `io_uring`, `keyctl`,
//! `userfaultfd`, `perf_event_open`; signals to other processes; sockets, of which a worker in a container with a network
//! gets those of TCP and UDP ([`network`]); taking `O_NONBLOCK` off the eventfds, because they are shared with the
//! node, which must never block on them; and `sendmsg` to the node, since descriptors that come along are closed by who
//! receives them, and closing may wait for as long as the sender likes (`SO_LINGER`). Left out too is what tells of the
//! machine or runs more of the kernel than a worker needs: `inotify`, which sees who opens the files that all containers
//! share; `sysinfo`, with the machine's load, memory and number of processes, but for Java, whose C library takes what is in
//! memory for the answer if the call fails; `O_ASYNC`, for which the kernel keeps a list of who is to get signals; and
//! options of sockets that load programs into the kernel (`SO_ATTACH_FILTER` and its like).

mod java;
pub(crate) mod media;
mod network;
pub(crate) mod once;
mod rules;

use std::collections::BTreeMap;

use netserv_model::Flavour;
use seccompiler::{BpfProgram, Error, SeccompAction, SeccompCmpOp, SeccompFilter, TargetArch};

use rules::{AF_UNIX, F_DUPFD_CLOEXEC, FCNTL_COMMANDS, Rules, STAYS_NONBLOCKING, clone_rule, no_clone3, one_of, rule};

/// The filters of a worker, in the order in which they are loaded.
///
/// Sockets are made only in a container with a network.
pub(crate) fn filters(flavour: Flavour, network: bool) -> Result<Vec<BpfProgram>, Error> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let mut rules: Rules = ALLOWED.iter().chain(per_arch()).map(|call| (*call, vec![])).collect();
    rules.extend(conditional()?);
    match flavour {
        Flavour::Wasm => rules.extend(wasm(network)?),
        Flavour::Osgi => rules.extend(java::rules(network)?),
    }
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let allow_list = SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?;

    Ok(vec![no_clone3(arch)?, allow_list.try_into()?])
}

fn conditional() -> Result<Rules, Error> {
    let names = [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA];
    Ok(BTreeMap::from([
        (libc::SYS_clone, vec![clone_rule()?]),
        (libc::SYS_prlimit64, vec![rule(&[(2, SeccompCmpOp::Eq, 0)])?]),
        (libc::SYS_prctl, one_of(0, &names)?),
    ]))
}

/// What a Wasm worker may do with its descriptors.
fn wasm(network: bool) -> Result<Rules, Error> {
    let mut rules: Rules = WASM_ALLOWED.iter().map(|call| (*call, vec![])).collect();
    let mut fcntl = one_of(1, &FCNTL_COMMANDS)?;
    fcntl.push(rule(&[(1, SeccompCmpOp::Eq, F_DUPFD_CLOEXEC)])?);
    fcntl.push(rule(&STAYS_NONBLOCKING)?);
    // What memories start with is sealed before it is mapped; the ring's own seals are sealed.
    fcntl.push(rule(&[(1, SeccompCmpOp::Eq, F_ADD_SEALS)])?);
    // The runtime of server modules makes itself a pair for signals, of which none comes.
    rules.insert(libc::SYS_socketpair, vec![rule(&[(0, SeccompCmpOp::Eq, AF_UNIX)])?]);
    if network {
        network::add(&mut rules)?;
    }
    rules.insert(libc::SYS_fcntl, fcntl);
    Ok(rules)
}

const F_ADD_SEALS: u64 = 1033;

const ALLOWED: [i64; 74] = [
    // Memory. Compiled code is made executable, so PROT_EXEC cannot be refused.
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    // Threads and signals of the process itself.
    libc::SYS_clone3,
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_restart_syscall,
    // Who and when.
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getrusage,
    libc::SYS_getcwd,
    libc::SYS_uname,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    // Descriptors that it has.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_ppoll,
    libc::SYS_eventfd2,
    libc::SYS_pipe2,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    // Files, of which the container's root has few.
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_getdents64,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_umask,
];

/// What a Java worker gets with conditions, or not.
const WASM_ALLOWED: [i64; 5] =
    [libc::SYS_memfd_create, libc::SYS_recvmsg, libc::SYS_close, libc::SYS_dup, libc::SYS_close_range];

/// Older forms of the calls above, which C libraries still use on this processor.
#[cfg(target_arch = "x86_64")]
fn per_arch() -> &'static [i64] {
    &[
        libc::SYS_arch_prctl,
        libc::SYS_access,
        libc::SYS_open,
        libc::SYS_stat,
        libc::SYS_lstat,
        libc::SYS_poll,
        libc::SYS_epoll_wait,
        libc::SYS_readlink,
        libc::SYS_mkdir,
        libc::SYS_unlink,
        libc::SYS_rmdir,
        libc::SYS_rename,
        libc::SYS_time,
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn per_arch() -> &'static [i64] {
    &[libc::SYS_renameat]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the calls do inside a container is tested with a real one, in `tests/sandbox.rs` and `tests/java.rs`.
    #[test]
    fn the_filters_fit_the_kernel() {
        let flavours = [Flavour::Wasm, Flavour::Osgi];
        for (flavour, network) in flavours.into_iter().flat_map(|flavour| [(flavour, false), (flavour, true)]) {
            let filters = filters(flavour, network).unwrap();
            assert_eq!(filters.len(), 2);
            assert!(filters.iter().all(|filter| (1..4096).contains(&filter.len())));
        }
    }

    #[test]
    fn nothing_is_allowed_twice_or_against_the_list_of_omissions() {
        let common: Vec<i64> = ALLOWED.iter().chain(per_arch()).copied().collect();
        let never = [
            libc::SYS_ptrace,
            libc::SYS_bpf,
            libc::SYS_seccomp,
            libc::SYS_io_uring_setup,
            libc::SYS_keyctl,
            libc::SYS_mount,
            libc::SYS_move_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_kill,
            libc::SYS_execveat,
            libc::SYS_vfork,
            libc::SYS_userfaultfd,
            libc::SYS_perf_event_open,
            libc::SYS_pidfd_getfd,
            libc::SYS_inotify_init1,
            libc::SYS_inotify_add_watch,
            libc::SYS_fanotify_init,
        ];
        let without_network = [libc::SYS_socket, libc::SYS_bind, libc::SYS_connect, libc::SYS_accept4];
        let lists = [
            (
                wasm(false).unwrap(),
                [&without_network[..], &[libc::SYS_sendmsg, libc::SYS_ioctl, libc::SYS_sysinfo]].concat(),
            ),
            (wasm(true).unwrap(), vec![libc::SYS_ioctl, libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_sysinfo]),
            (java::rules(false).unwrap(), without_network.to_vec()),
            (java::rules(true).unwrap(), vec![]),
        ];
        for (own, not_there) in lists {
            let mut calls: Vec<i64> = common.iter().chain(own.keys()).copied().collect();
            for call in never.iter().chain(&not_there) {
                assert!(!calls.contains(call), "system call {call}");
            }
            let all = calls.len();
            calls.sort_unstable();
            calls.dedup();
            assert_eq!(calls.len(), all);
        }
    }
}
