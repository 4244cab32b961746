// SPDX-License-Identifier: Apache-2.0
//! Everything that can happen to a node: what its threads and tasks send to the control loop. They know this file and
//! not the loop.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use anyhow::Result;
use netserv_container::{Container, MediaJob};
use netserv_dataplane::signal::Intercepted;
use netserv_gist::{AssociationId, InterfaceId};
use netserv_model::api::{ModuleList, NodeInfo, PostRequest, RequestResult};
use netserv_model::effect::{FilterId, JobId, Load};
use netserv_model::manifest::Manifest;
use netserv_model::trace::TraceRequest;
use netserv_model::{Digest, Flavour, Refusal, WorkerId};
use netserv_wire::container::frames::PartKind;
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::packet_loop::feed::{Feed, TraceRefusal};
use crate::packet_loop::{PacketEvent, TraceId};

/// Events waiting for the loop; whoever has more waits.
pub const EVENTS_MAX: usize = 4096;

/// Everything that can happen to a node.
pub enum Event {
    /// Something arrived from a signaling peer.
    Signal(SignalInput),
    /// Something was intercepted and waits.
    Intercepted,
    /// A client of the HTTP API wants something.
    Api(Call),
    /// A worker did something.
    Container(ContainerEvent),
    /// A worker was started, or could not be.
    Launched(Box<Launched>),
    /// The kernel did what was wanted of a container's network, or did not.
    Network(NetworkEvent),
    /// Something about a media job.
    Media(MediaEvent),
    /// A package was fetched, or could not be.
    Fetched(JobId, Result<Fetched, Refusal>),
    /// A composition of packages came to its end: the packages, the code.
    Composed(Vec<Digest>, Result<PathBuf, Refusal>),
    /// The packet loop reports.
    Packet(PacketEvent),
    /// Nobody reads a trace any more.
    TraceEnded(TraceId),
    /// The configuration is to be read again.
    Reload,
    /// The node is to stop.
    Stop,
}

/// What arrives from the signaling network.
pub enum SignalInput {
    /// A datagram for somebody else, taken out of the packet stream.
    Intercepted(Box<Intercepted>),
    /// A datagram for this node.
    Datagram(Box<OwnedDatagram>),
    /// A Query of ours reached a host where nobody listens.
    Unreachable {
        /// Where the Query was going.
        destination: IpAddr,
    },
    /// A peer connected.
    Accepted {
        /// The node's address.
        local: IpAddr,
        /// The peer's.
        peer: SocketAddr,
        /// The connection.
        stream: TcpStream,
    },
    /// A connection of ours is open.
    Connected {
        /// Its association.
        association: AssociationId,
    },
    /// Bytes came over a connection.
    Bytes {
        /// Its association.
        association: AssociationId,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A connection ended, or could not be opened.
    Closed {
        /// Its association.
        association: AssociationId,
        /// Why, unless the peer just closed it.
        error: Option<String>,
    },
}

/// A datagram that arrived for this node.
pub struct OwnedDatagram {
    /// Where it arrived.
    pub interface: InterfaceId,
    /// The node's address on that interface.
    pub local: IpAddr,
    /// Its source.
    pub source: SocketAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// What is left of its TTL.
    pub ttl: u8,
    /// Its content.
    pub payload: Vec<u8>,
}

/// What an API call asks of the control loop; each carries the way back.
pub enum Call {
    /// `POST /v1/requests`.
    Request(Box<PostRequest>, oneshot::Sender<Result<RequestResult, Refusal>>),
    /// `GET /v1/node`.
    Node(oneshot::Sender<NodeInfo>),
    /// `GET /v1/modules`.
    Modules(oneshot::Sender<ModuleList>),
    /// `GET /metrics`.
    Metrics(oneshot::Sender<String>),
    /// `POST /v1/trace`; the answer comes with the driver and why that one.
    Trace(Box<TraceRequest>, oneshot::Sender<Result<(Feed, String), TraceRefusal>>),
}

/// A worker's socket, process or deadline wants a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerEvent {
    /// The worker.
    pub worker: WorkerId,
    /// Which of those that follow each other.
    pub generation: u64,
    /// It had its time to end.
    pub overdue: bool,
}

/// A worker that was started, or could not be.
pub struct Launched {
    /// Which worker.
    pub worker: WorkerId,
    /// Which of those that follow each other.
    pub generation: u64,
    /// The worker in its container; dropping it ends it.
    pub result: Result<Container, Refusal>,
}

/// What the kernel did, or did not.
#[derive(Debug)]
pub enum NetworkEvent {
    /// The listening sockets of a module that is to be loaded, or why there are none.
    Listeners(Box<Load>, Result<Vec<(PartKind, OwnedFd)>>),
    /// Sockets that a worker wanted, as many as it gets.
    Sockets(SocketWish, Vec<OwnedFd>),
    /// Connections are handed to a module, or why they are not.
    Intercepted(FilterId, Result<(), Refusal>),
}

/// Sockets that a worker wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketWish {
    /// The worker.
    pub worker: WorkerId,
    /// Which of those that follow each other.
    pub generation: u64,
    /// Whether they are to be of IPv6.
    pub v6: bool,
    /// How many.
    pub count: usize,
}

/// Something about a media job.
#[derive(Debug)]
pub enum MediaEvent {
    /// It was started, or could not be.
    Started(JobKey, Result<MediaJob, Refusal>),
    /// Its process ended.
    Ended(JobKey),
    /// It is time to see which jobs have had their time.
    Tick,
}

/// Which job of which worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobKey {
    /// The worker that asked for it.
    pub worker: WorkerId,
    /// Which of those that follow each other.
    pub generation: u64,
    /// The worker's own number for it.
    pub job: u64,
}

/// A package that is in the store, with its code ready to be loaded.
pub struct Fetched {
    /// Its digest.
    pub digest: Digest,
    /// Which of its flavours this node takes.
    pub flavour: Flavour,
    /// Where the parts of that are.
    pub parts: CodeParts,
    /// What it says of itself.
    pub manifest: Box<Manifest>,
}

/// Where what a worker gets to load is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeParts {
    /// The code that sees packets: the compiled core module, or the bundle itself, which may also be a server.
    pub packet: Option<PathBuf>,
    /// The compiled component, which takes connections.
    pub server: Option<PathBuf>,
    /// The component as it came, of which services are composed.
    pub component: Option<PathBuf>,
    /// The certificate chain and its key.
    pub tls: Option<PathBuf>,
}
