// SPDX-License-Identifier: Apache-2.0
//! Everything that can happen to a node.

use std::net::{IpAddr, SocketAddr};

use netserv_gist::{AssociationId, Channel, IcmpError, InterfaceId, Prefix};
use netserv_model::api::PostRequest;
use netserv_model::application::ApplicationCall;
use netserv_model::effect::{EffectId, EffectOutcome, News, Stored};
use netserv_model::policy::NodePolicy;
use netserv_model::route::RouteChange;
use serde::{Deserialize, Serialize};

use crate::applications::ClientId;

/// Names a call of the API, from its arrival to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub u64);

/// Names something that the shell holds for the node: an intercepted datagram, or a connection without association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub u64);

/// One input of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// What was installed and used when the node last ran; comes once, before anything else.
    Restore(Box<Stored>),
    /// The operator changed the policy; answered by [`Output::Applied`](crate::Output).
    Policy(CallId, Box<NodePolicy>),
    /// The node's own addresses are these from here on.
    Addresses(Vec<IpAddr>),
    /// Flows that come in by these interfaces come from these addresses.
    Ingress(Vec<(InterfaceId, Vec<Prefix>)>),
    /// Routes changed: what is known of the node's addresses toward destinations may be wrong.
    RoutesChanged(RouteChange),
    /// A datagram for this node.
    Datagram(Box<OwnedDatagram>),
    /// A datagram for somebody else, taken out of the packet stream; answered by [`Output::Release`](crate::Output).
    Intercepted(Token, Box<OwnedDatagram>),
    /// An ICMP error about a datagram of this node.
    Icmp(Box<IcmpError>),
    /// A peer connected, and spoke TLS if it has to; answered by [`Output::Attach`](crate::Output).
    Accepted(Token, Ends, Channel),
    /// A connection of this node is open.
    Connected(AssociationId, Channel),
    /// Bytes came over a connection, cut anywhere.
    Bytes(AssociationId, #[serde(with = "hex::serde")] Vec<u8>),
    /// A connection took so many bytes more of what was to be sent over it.
    Written(AssociationId, usize),
    /// A connection ended, or could not be opened; with the error unless the peer closed it in order.
    Closed(AssociationId, Option<String>),
    /// A client's request; answered by [`Output::Reply`](crate::Output).
    Post(CallId, Box<PostRequest>),
    /// A client wants to see the node with fresh counts; answered by [`Output::Fresh`](crate::Output).
    Ask(CallId, What),
    /// A program that is an NSLP, or wants to be, calls something, in a line of this number; it is told what comes of it by
    /// [`Output::Application`](crate::Output).
    Application(ClientId, u64, Box<ApplicationCall>),
    /// A program's connection ended.
    ApplicationGone(ClientId),
    /// The outcome of an effect.
    Done(EffectId, EffectOutcome),
    /// News of a worker.
    News(News),
    /// Time passed.
    Timeout,
    /// The node is to stop; answered by [`Output::Stopped`](crate::Output).
    Stop,
}

/// Which counts are to be fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// What modules counted, and how busy the machine is.
    Counters,
    /// What was used.
    Usage,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ends {
    /// This node's address.
    pub local: IpAddr,
    /// The peer's.
    pub peer: SocketAddr,
}

/// A UDP datagram with its payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedDatagram {
    /// Where it arrived.
    pub interface: InterfaceId,
    /// The node's address for those beyond that interface; unspecified if it has none that they reach.
    pub local: IpAddr,
    /// Its source.
    pub source: SocketAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// Its TTL or hop limit on arrival.
    pub ttl: u8,
    /// Its payload, magic number included.
    #[serde(with = "hex::serde")]
    pub payload: Vec<u8>,
}

impl OwnedDatagram {
    /// Returns it as GIST takes it.
    pub(crate) fn view(&self, destination_is_local: bool) -> netserv_gist::Datagram<'_> {
        netserv_gist::Datagram {
            interface: self.interface,
            local: self.local,
            source: self.source,
            destination: self.destination,
            destination_is_local,
            ttl: self.ttl,
            q_mode_interceptable: true,
            payload: &self.payload,
        }
    }
}
