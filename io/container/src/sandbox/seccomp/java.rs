// SPDX-License-Identifier: Apache-2.0
//! What a Java worker may do beside what all workers may.
//!
//! Java makes its own sockets blocking and non-blocking as it likes, so the rule that keeps the node's eventfds
//! non-blocking looks at descriptor numbers. It holds since nothing can give the four shared ones another number or
//! another file theirs: they are neither copied nor closed, and descriptors are received over the control socket only,
//! whose other end is the node's.

use netserv_wire::container::{CONTROL_FD, RING_FD, WAKE_HOST_FD, WAKE_WORKER_FD};
use seccompiler::{Error, SeccompCmpOp, SeccompRule};

use super::network;
use super::rules::{
    AF_UNIX, F_DUPFD_CLOEXEC, F_SETFL, FCNTL_COMMANDS, O_ASYNC, Rules, STAYS_NONBLOCKING, one_of, rule,
};

/// Returns the rules for calls that other workers do not have, or have without conditions.
pub(super) fn rules(network: bool) -> Result<Rules, Error> {
    let mut rules: Rules = ALLOWED.iter().chain(per_arch()).map(|call| (*call, vec![])).collect();
    let own = first_own();
    let unshared =
        |argument| [(argument, SeccompCmpOp::Ge, FIRST_OWN_FD), (argument, SeccompCmpOp::Le, STANDARD_ERROR)];
    let pairs = unshared(0).into_iter().flat_map(|from| unshared(1).map(|to| [from.clone(), to]));
    let copies: Vec<SeccompRule> = pairs.map(|pair| rule(&pair)).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_close, vec![rule(std::slice::from_ref(&own))?]);
    rules.insert(
        libc::SYS_dup,
        unshared(0).iter().map(|one| rule(std::slice::from_ref(one))).collect::<Result<_, _>>()?,
    );
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_dup2, copies.clone());
    rules.insert(libc::SYS_dup3, copies);
    rules.insert(libc::SYS_recvmsg, vec![rule(&[(0, SeccompCmpOp::Eq, control_fd())])?]);
    rules.insert(libc::SYS_sendmsg, vec![rule(std::slice::from_ref(&own))?]);
    let mut fcntl = one_of(1, &FCNTL_COMMANDS)?;
    fcntl.push(rule(&[(1, SeccompCmpOp::Eq, F_SETLKW)])?);
    fcntl.push(rule(&[own.clone(), (1, SeccompCmpOp::Eq, F_DUPFD_CLOEXEC)])?);
    fcntl.push(rule(&[own, (1, SeccompCmpOp::Eq, F_SETFL), (2, SeccompCmpOp::MaskedEq(O_ASYNC), 0)])?);
    fcntl.push(rule(&STAYS_NONBLOCKING)?);
    rules.insert(libc::SYS_fcntl, fcntl);
    // Java's channels take half of such a pair for a descriptor that is at its end.
    rules.insert(libc::SYS_socketpair, vec![rule(&[(0, SeccompCmpOp::Eq, AF_UNIX)])?]);
    rules.insert(libc::SYS_ioctl, vec![rule(&[(1, SeccompCmpOp::Eq, FIONREAD)])?]);
    // Everything but having the kernel forget what it read of files that all containers share.
    rules.insert(libc::SYS_fadvise64, vec![rule(&[(3, SeccompCmpOp::Ne, FADVISE_DONTNEED)])?]);
    if network {
        network::add(&mut rules)?;
        rules.entry(libc::SYS_ioctl).or_default().extend(
            INTERFACE_QUESTIONS
                .map(|question| rule(&[(1, SeccompCmpOp::Eq, question)]))
                .into_iter()
                .collect::<Result<Vec<_>, _>>()?,
        );
        rules.insert(libc::SYS_sendmmsg, vec![rule(&[first_own()])?]);
    }
    Ok(rules)
}

/// The first descriptor that is not shared with the node, in front of which the standard ones and the shared ones are.
const FIRST_OWN_FD: u64 = 7;
const _: () = assert!(CONTROL_FD == 3 && RING_FD == 4 && WAKE_WORKER_FD == 5 && WAKE_HOST_FD == 6);

/// A call whose first argument is such a descriptor.
fn first_own() -> (u8, SeccompCmpOp, u64) {
    (0, SeccompCmpOp::Ge, FIRST_OWN_FD)
}

const STANDARD_ERROR: u64 = 2;

fn control_fd() -> u64 {
    u64::from(CONTROL_FD.unsigned_abs())
}

const F_SETLKW: u64 = 7;
const FADVISE_DONTNEED: u64 = 4;
const FIONREAD: u64 = 0x541b;
/// `SIOCGIFNAME`, `…CONF`, `…FLAGS`, `…ADDR`, `…DSTADDR`, `…BRDADDR`, `…NETMASK`, `…MTU`, `…HWADDR`, `…INDEX`.
const INTERFACE_QUESTIONS: [u64; 10] = [0x8910, 0x8912, 0x8913, 0x8915, 0x8917, 0x8919, 0x891b, 0x8921, 0x8927, 0x8933];

const ALLOWED: [i64; 12] = [
    // Files.
    libc::SYS_msync,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_truncate,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_utimensat,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    // Who and when. The C library does not look whether the first one failed, and the JVM asks it for the free memory.
    libc::SYS_sysinfo,
    libc::SYS_times,
    libc::SYS_getgroups,
];

#[cfg(target_arch = "x86_64")]
fn per_arch() -> &'static [i64] {
    &[libc::SYS_chmod, libc::SYS_utimes]
}

#[cfg(not(target_arch = "x86_64"))]
fn per_arch() -> &'static [i64] {
    &[]
}
