// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a forwarding plane.

use std::io;
use std::net::IpAddr;

use netserv_model::effect::FilterId;
use netserv_netlink::routes::Unanswered;

/// Why a driver, or the signaling beside it, could not do something.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The kernel or this build lacks something.
    #[error("{what} is not to be had here: {why}")]
    Unsupported {
        /// What is lacking.
        what: &'static str,
        /// How that showed.
        why: String,
    },
    /// The process lacks a capability.
    #[error("{what} needs CAP_NET_ADMIN and CAP_NET_RAW; run netservd as root")]
    NotPermitted {
        /// What was tried.
        what: &'static str,
    },
    /// No driver, or no usable one, has this name.
    #[error("no driver `{name}` here: {why}")]
    NoDriver {
        /// What the configuration asked for.
        name: String,
        /// What is there instead.
        why: String,
    },
    /// The packet filter did not tell its rules.
    #[error("`{command}` failed: {message}")]
    Rules {
        /// The program.
        command: &'static str,
        /// What it said.
        message: String,
    },
    /// Every queue number that may be used belongs to another process.
    #[error("the netfilter queues {first} to {last} all belong to other processes")]
    QueuesTaken {
        /// The first number tried.
        first: u16,
        /// The last number tried.
        last: u16,
    },
    /// A filter of this name is there already.
    #[error("filter {} is installed already", .0.0)]
    FilterExists(FilterId),
    /// No filter has this name.
    #[error("filter {} is not installed", .0.0)]
    FilterUnknown(FilterId),
    /// There are as many filters as a node takes.
    #[error("{} filters are installed, which is the most that a node takes", crate::limits::FILTERS_MAX)]
    FiltersFull,
    /// There are more prefixes of destinations to be counted than a plane counts.
    #[error("packets to {0} prefixes are to be counted, at most {max} can be", max = crate::limits::COUNTED_PREFIXES_MAX)]
    PrefixesFull(usize),
    /// The driver that the filters belong to is gone.
    #[error("the driver is closed")]
    Closed,
    /// Bytes that are no whole IP packet.
    #[error("not a whole IP packet: {why}")]
    BadPacket {
        /// What is wrong with them.
        why: String,
    },
    /// A packet for this machine itself, for those on one link, for many, or for nobody that a route leads to.
    #[error("{0} is no address of another machine that a route leads to")]
    NoMachine(IpAddr),
    /// The fault wrapper was told to fail here.
    #[error("a fault made on purpose at call {0}")]
    Fault(u64),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl From<Unanswered> for DriverError {
    fn from(Unanswered { what, source }: Unanswered) -> DriverError {
        DriverError::system(what, source)
    }
}

impl DriverError {
    /// Returns the error for a failed system call; lack of permission becomes [`DriverError::NotPermitted`].
    pub fn system(what: &'static str, source: impl Into<io::Error>) -> DriverError {
        let source = source.into();
        if source.kind() == io::ErrorKind::PermissionDenied {
            return DriverError::NotPermitted { what };
        }
        DriverError::System { what, source }
    }

    /// Returns whether a packet was not sent since it is longer than its path takes.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        matches!(self, DriverError::System { source, .. } if source.raw_os_error() == Some(libc::EMSGSIZE))
    }
}
