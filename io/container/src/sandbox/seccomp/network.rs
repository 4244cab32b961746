// SPDX-License-Identifier: Apache-2.0
//! What a worker may do beside all else in a container with a network: TCP and UDP, of IPv4 and IPv6.

use seccompiler::{Error, SeccompCmpOp};

use super::rules::{Rules, one_of, rule};

/// Adds the rules. What sockets let through is for the firewall of the container.
pub(super) fn add(rules: &mut Rules) -> Result<(), Error> {
    rules.extend(CALLS.map(|call| (call, vec![])));
    let mut socket = vec![];
    for family in [libc::AF_INET, libc::AF_INET6] {
        for (kind, protocol) in [(libc::SOCK_STREAM, libc::IPPROTO_TCP), (libc::SOCK_DGRAM, libc::IPPROTO_UDP)] {
            for protocol in [0, protocol] {
                let [family, kind, protocol] = [family, kind, protocol].map(|value| u64::from(value.unsigned_abs()));
                socket.push(rule(&[
                    (0, SeccompCmpOp::Eq, family),
                    (1, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind),
                    (2, SeccompCmpOp::Eq, protocol),
                ])?);
            }
        }
    }
    rules.insert(libc::SYS_socket, socket);
    let mut options = one_of(1, &[libc::IPPROTO_IP, libc::IPPROTO_IPV6])?;
    let level = u64::from(libc::SOL_SOCKET.unsigned_abs());
    for option in SOCKET_OPTIONS.map(|option| u64::from(option.unsigned_abs())) {
        options.push(rule(&[(1, SeccompCmpOp::Eq, level), (2, SeccompCmpOp::Eq, option)])?);
    }
    // An upper layer protocol would have the kernel run, or even load, code that few others use.
    let [tcp, upper_layer] = [libc::IPPROTO_TCP, libc::TCP_ULP].map(|value| u64::from(value.unsigned_abs()));
    options.push(rule(&[(1, SeccompCmpOp::Eq, tcp), (2, SeccompCmpOp::Ne, upper_layer)])?);
    rules.insert(libc::SYS_setsockopt, options);
    Ok(())
}

/// What programs set of their sockets. Others load programs into the kernel (`SO_ATTACH_FILTER`, `SO_ATTACH_BPF` and those
/// for groups of sockets), name devices, keep a processor busy (`SO_BUSY_POLL`), or mark packets.
const SOCKET_OPTIONS: [i32; 11] = [
    libc::SO_REUSEADDR,
    libc::SO_BROADCAST,
    libc::SO_SNDBUF,
    libc::SO_RCVBUF,
    libc::SO_KEEPALIVE,
    libc::SO_OOBINLINE,
    libc::SO_LINGER,
    libc::SO_REUSEPORT,
    libc::SO_RCVTIMEO,
    libc::SO_SNDTIMEO,
    libc::SO_RCVLOWAT,
];

/// The bits of a socket's type that are not flags.
const SOCKET_KIND: u64 = 0xf;

const CALLS: [i64; 9] = [
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
];
