// SPDX-License-Identifier: Apache-2.0
//! What all lists of system calls are made of.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

pub(super) type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// A filter that answers `clone3` as a kernel does that has no such call.
pub(super) fn no_clone3(arch: TargetArch) -> Result<BpfProgram, Error> {
    let no_clone3 = BTreeMap::from([(libc::SYS_clone3, vec![])]);
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    Ok(SeccompFilter::new(no_clone3, SeccompAction::Allow, unknown, arch)?.try_into()?)
}

/// A `clone` that makes a thread.
pub(super) fn clone_rule() -> Result<SeccompRule, Error> {
    let threads_only = u64::try_from(CLONE_WATCHED).expect("clone flags are positive");
    let thread = libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_FILES;
    let thread = u64::try_from(thread).expect("clone flags are positive");
    rule(&[(0, SeccompCmpOp::MaskedEq(threads_only), thread)])
}

pub(super) fn one_of(argument: u8, values: &[i32]) -> Result<Vec<SeccompRule>, Error> {
    values.iter().map(|value| rule(&[(argument, SeccompCmpOp::Eq, u64::from(value.unsigned_abs()))])).collect()
}

pub(super) fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, Error> {
    let conditions = conditions.iter().map(|(argument, operator, value)| {
        // A call looks at all 64 bits of a flag or a pointer, but only at 32 of a command or a descriptor.
        let length = match operator {
            SeccompCmpOp::Eq if *value == 0 => SeccompCmpArgLen::Qword,
            SeccompCmpOp::MaskedEq(_) => SeccompCmpArgLen::Qword,
            SeccompCmpOp::Eq
            | SeccompCmpOp::Ge
            | SeccompCmpOp::Gt
            | SeccompCmpOp::Le
            | SeccompCmpOp::Lt
            | SeccompCmpOp::Ne => SeccompCmpArgLen::Dword,
        };
        SeccompCondition::new(*argument, length, operator.clone(), *value)
    });
    Ok(SeccompRule::new(conditions.collect::<Result<Vec<SeccompCondition>, _>>()?)?)
}

/// Of these flags, a clone has exactly the first three: it makes a thread, with the descriptors of all others, which are
/// bounded together, and no namespace.
pub(super) const CLONE_WATCHED: libc::c_int = libc::CLONE_THREAD
    | libc::CLONE_VM
    | libc::CLONE_FILES
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_PTRACE;

pub(super) const AF_UNIX: u64 = 1;
pub(super) const F_SETFL: u64 = 4;
pub(super) const F_DUPFD_CLOEXEC: u64 = 1030;
const O_NONBLOCK: u64 = 0o4000;
pub(super) const O_ASYNC: u64 = 0o20000;
/// An `F_SETFL` that leaves, or makes, the descriptor non-blocking, and asks for no signals.
pub(super) const STAYS_NONBLOCKING: [(u8, SeccompCmpOp, u64); 2] =
    [(1, SeccompCmpOp::Eq, F_SETFL), (2, SeccompCmpOp::MaskedEq(O_NONBLOCK | O_ASYNC), O_NONBLOCK)];

/// Locks, seals and flags of the descriptor itself; copies and `F_SETFL` are looked at more closely.
pub(super) const FCNTL_COMMANDS: [i32; 7] =
    [libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETLK, libc::F_GETLK, libc::F_OFD_SETLK, libc::F_GET_SEALS];
