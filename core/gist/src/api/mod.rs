// SPDX-License-Identifier: Apache-2.0
//! What goes into the engine and what comes out of it, as plain data.

mod call;
mod config;
mod counters;
mod error;
mod event;
mod flows;
mod icmp;
mod ids;
mod peering;
mod transport;

pub use call::{ApiCall, SendOptions, StateUse, TransferAttributes};
pub use config::{Config, ResponderPolicy, TlsPolicy};
pub use counters::{Counter, Counters, StateCounts};
pub use error::{ApiError, HostError};
pub use event::{Carriage, Event, FailReason, Mode, NoPeerReason, Notification, Provenance, RouteStatus, SendStatus};
pub use flows::{FlowRule, FlowScope, Prefix};
pub use icmp::{IcmpError, IcmpKind};
pub(crate) use ids::RouteId;
pub use ids::{AssociationId, InterfaceId, MessageHandle, QueryId, SiiHandle};
pub use peering::{PeerChoice, PeerRule, Peering, QueryDecision};
pub use transport::{Audience, Channel, Datagram, Disposition, Transmit};
