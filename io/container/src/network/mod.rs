// SPDX-License-Identifier: Apache-2.0
//! A container's own network: a namespace, a link to the node, addresses, and a firewall that the container cannot change.
//!
//! The node routes packets for the container's addresses to its end of the link; both ends know each other's station, so
//! that nobody has to ask, and the next hop is an address of one link that nobody needs to have. The firewall is inside
//! the namespace, where the container has no right to change it, and goes away with it.

mod addresses;
mod container_network;
mod detached;
mod doctor;
mod error;
mod firewall;
mod floating;
mod host_intercepts;
mod intercept;
mod leftovers;
pub mod limits;
mod link;
mod link_state;
mod matching;
mod namespace;
mod rate;
mod routing;
mod sent;
mod sockets;
mod transparent;

pub use addresses::{AddressWatch, node_addresses};
pub use container_network::{ContainerNetwork, NetworkSpec};
pub use doctor::{doctor, forwarding};
pub use error::NetworkError;
pub use host_intercepts::{HostIntercepts, remove_intercepts};
pub use leftovers::remove_networks;
pub use link_state::FLOATING_PROTOCOL;
pub use matching::{Intercept, ListenerPorts};
pub use routing::PRIORITY as ROUTING_PRIORITY;
pub use transparent::Listeners;
