// SPDX-License-Identifier: Apache-2.0
//! Which system calls ffmpeg may make: those that it was seen to make for every format and codec that jobs name
//! (`strace -f`), without the ones that it can do without.
//!
//! It makes threads, reads and writes descriptors that it has, and opens files, of which its root has few. It makes no
//! memory executable that is not a file's, takes no signals from others and sends none but to itself.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, Error, SeccompAction, SeccompCmpOp, SeccompFilter, TargetArch};

use super::rules::{Rules, clone_rule, no_clone3, one_of, rule};

/// Returns the filters of a media job, in the order in which they are loaded.
pub(crate) fn filters() -> Result<Vec<BpfProgram>, Error> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let allow_list = SeccompFilter::new(rules()?, refuse, SeccompAction::Allow, arch)?;
    Ok(vec![no_clone3(arch)?, allow_list.try_into()?])
}

fn rules() -> Result<Rules, Error> {
    let mut rules: Rules = ALLOWED.iter().chain(per_arch()).map(|call| (*call, vec![])).collect();
    rules.extend(BTreeMap::from([
        (libc::SYS_clone, vec![clone_rule()?]),
        (libc::SYS_prlimit64, vec![rule(&[(2, SeccompCmpOp::Eq, 0)])?]),
        (libc::SYS_prctl, one_of(0, &[libc::PR_SET_NAME, libc::PR_GET_NAME])?),
        (libc::SYS_fcntl, one_of(1, &[libc::F_GETFD, libc::F_SETFD, libc::F_GETFL])?),
        (libc::SYS_mprotect, vec![rule(&[(2, SeccompCmpOp::MaskedEq(EXECUTABLE), 0)])?]),
        (
            libc::SYS_mmap,
            vec![
                rule(&[(2, SeccompCmpOp::MaskedEq(EXECUTABLE), 0)])?,
                rule(&[(2, SeccompCmpOp::MaskedEq(WRITABLE), 0), (3, SeccompCmpOp::MaskedEq(ANONYMOUS), 0)])?,
            ],
        ),
    ]));
    Ok(rules)
}

const WRITABLE: u64 = 2;
const EXECUTABLE: u64 = 4;
const ANONYMOUS: u64 = 0x20;

const ALLOWED: [i64; 46] = [
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
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
    libc::SYS_tgkill,
    libc::SYS_restart_syscall,
    // Who and when.
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getrusage,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_gettimeofday,
    // Descriptors that it has.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_pread64,
    // Files, of which its root has few.
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_fstat,
    libc::SYS_statfs,
    libc::SYS_getdents64,
    libc::SYS_unlinkat,
];

#[cfg(target_arch = "x86_64")]
fn per_arch() -> &'static [i64] {
    &[libc::SYS_arch_prctl, libc::SYS_access, libc::SYS_unlink]
}

#[cfg(not(target_arch = "x86_64"))]
fn per_arch() -> &'static [i64] {
    &[libc::SYS_faccessat]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_fit_the_kernel_and_lack_what_they_should() {
        let filters = filters().unwrap();
        assert!(filters.len() == 2 && filters.iter().all(|filter| (1..4096).contains(&filter.len())));
        let rules = rules().unwrap();
        let never = [
            libc::SYS_socket,
            libc::SYS_socketpair,
            libc::SYS_sendmsg,
            libc::SYS_recvmsg,
            libc::SYS_kill,
            libc::SYS_tkill,
            libc::SYS_ioctl,
            libc::SYS_dup,
            libc::SYS_pipe2,
            libc::SYS_ptrace,
            libc::SYS_bpf,
            libc::SYS_io_uring_setup,
            libc::SYS_memfd_create,
            libc::SYS_mount,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_vfork,
            libc::SYS_execveat,
            libc::SYS_symlinkat,
            libc::SYS_renameat2,
        ];
        assert!(never.iter().all(|call| !rules.contains_key(call)));
        for call in [libc::SYS_clone, libc::SYS_mprotect, libc::SYS_mmap, libc::SYS_prctl, libc::SYS_fcntl] {
            assert!(!rules[&call].is_empty(), "system call {call}");
        }
    }
}
