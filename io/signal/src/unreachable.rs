// SPDX-License-Identifier: Apache-2.0
//! Why a datagram of the node did not arrive.

/// Why a datagram did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnreachableKind {
    /// There is no route to its network.
    Network,
    /// Its host does not answer.
    Host,
    /// The host does not speak UDP.
    Protocol,
    /// Nobody listens on its port: the host is there, and is no NetServ node.
    Port,
    /// It is longer than the path allows.
    TooBig {
        /// The longest packet that the path takes, in bytes; 0 if that is not told.
        mtu: u16,
    },
    /// A filter on the way forbids it.
    Prohibited,
    /// Its TTL ran out.
    TimeExceeded,
    /// Something else.
    Other,
}
