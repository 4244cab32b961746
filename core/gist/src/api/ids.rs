// SPDX-License-Identifier: Apache-2.0
//! Names of messages, peers, connections, interfaces, Queries and rows.

use serde::{Deserialize, Serialize};

/// The NSLP's own name for one message, handed back in [`crate::Event::MessageStatus`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageHandle(pub u64);

/// An opaque name for one signaling peer at one of its addresses (RFC 5971 §4.1.1, "SII-handle").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiiHandle(pub u64);

impl SiiHandle {
    /// Returns the handle of a node, numbered from 1 on, at one of its addresses; of node 0, the handle that names nobody.
    pub const fn new(node: u32, address: u32) -> SiiHandle {
        SiiHandle((node as u64) << 32 | address as u64)
    }

    /// Returns whether two handles are of one node, which is somebody.
    pub fn is_node_of(self, other: SiiHandle) -> bool {
        self.0 >> 32 == other.0 >> 32 && self.0 >> 32 != 0
    }
}

/// One messaging association (MA), so one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AssociationId(pub u64);

/// The kernel's index of a network interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InterfaceId(pub u32);

/// Names a Query that waits for its NSLP's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(pub u64);

/// One row's name inside the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RouteId(pub(crate) u64);
