// SPDX-License-Identifier: Apache-2.0
//! Names of packets and of interfaces.

/// Names one received packet until its verdict is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u64);

/// A network interface by the kernel's index; 0 where the driver does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(pub u32);
