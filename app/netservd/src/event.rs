// SPDX-License-Identifier: Apache-2.0
//! Everything that can happen to a node: what its threads and tasks send to the control loop. They know this file and
//! not the loop.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use netserv_api::{DrainReport, ModuleList, NodeInfo, Reloaded, UserList};
use netserv_container::network::ContainerNetwork;
use netserv_container::{Container, MediaJob};
use netserv_model::api::{PostRequest, RequestResult, UsageReport};
use netserv_model::application::{ApplicationCall, ApplicationEvent};
use netserv_model::effect::{ModuleSlot, News};
use netserv_model::route::RouteChange;
use netserv_model::trace::TraceRequest;
use netserv_model::{Refusal, UserId, WorkerId};
use netserv_netlink::routes::LocalAddresses;
use netserv_node::gist::{AssociationId, Channel, FlowScope, IcmpError, InterfaceId, Prefix};
use netserv_node::{ClientId, Ends, OwnedDatagram};
use netserv_packet_loop::PacketEvent;
use netserv_packet_loop::feed::{Feed, TraceRefusal};
use netserv_signal::Intercepted;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsStream;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::caller::Reply;
use crate::config::Config;
use crate::config::tls::Credentials;
use crate::metered::Metered;
use crate::tls::{Side, Trust};

/// Everything that can happen to a node.
pub enum Event {
    /// Something arrived from a signaling peer.
    Signal(SignalInput),
    /// Addresses or routes of the node changed.
    Addresses(LocalAddresses, RouteChange),
    /// Interfaces came or went that the operator names for flows; these are all that are there.
    Ingress(Vec<(InterfaceId, Vec<Prefix>)>),
    /// Something was intercepted and waits.
    Intercepted,
    /// A client of the HTTP API wants something.
    Api(Call),
    /// A program that is an NSLP, or wants to be, did something.
    Application(ApplicationInput),
    /// A worker did something.
    News(News),
    /// The configuration is to be read again.
    Reload,
    /// It was read again, or cannot be; the answer goes to who asked.
    Config(Result<Box<ReadConfig>>, ReloadReply),
    /// It is on the disk, or cannot be, whether the node is drained.
    Drained(bool, Result<(), String>, DrainReply),
    /// A trace runs, or why not.
    Traced(Box<TraceRequest>, Result<Feed, TraceRefusal>, TraceReply),
    /// The node is to stop.
    Stop,
}

/// A configuration that was read again.
pub struct ReadConfig {
    /// What the file says.
    pub config: Config,
    /// What the files of `signaling.tls` hold, if there is TLS.
    pub credentials: Option<Credentials>,
}

/// What arrives from the signaling network.
pub enum SignalInput {
    /// A datagram for somebody else, taken out of the packet stream.
    Intercepted(Box<Intercepted>),
    /// A datagram for this node.
    Datagram(Box<OwnedDatagram>),
    /// An ICMP error about a datagram of ours.
    Icmp(Box<IcmpError>),
    /// A peer connected.
    Accepted {
        /// Both ends.
        ends: Ends,
        /// How it is carried.
        channel: Channel,
        /// The connection.
        connection: Connection,
    },
    /// A connection of ours is open.
    Connected {
        /// Its association.
        association: AssociationId,
        /// How it is carried.
        channel: Channel,
        /// What the peer showed, if TLS is spoken.
        shown: Option<Box<Shown>>,
    },
    /// Bytes came over a connection.
    Bytes {
        /// Its association.
        association: AssociationId,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A connection took bytes.
    Written {
        /// Its association.
        association: AssociationId,
        /// How many more.
        bytes: usize,
    },
    /// A connection ended, or could not be opened.
    Closed {
        /// Its association.
        association: AssociationId,
        /// Why, unless the peer just closed it.
        error: Option<String>,
    },
}

/// What programs that are NSLPs do.
pub enum ApplicationInput {
    /// One connected.
    Opened(ClientId, ApplicationPort),
    /// One calls something, in the line of that number.
    Call(ClientId, u64, Box<ApplicationCall>),
    /// One is gone, or is to be.
    Gone(ClientId),
}

/// The way to a program. Dropping it says that the node stops.
pub struct ApplicationPort {
    /// What it is to be told; one that has no room is cut.
    pub events: mpsc::Sender<ApplicationEvent>,
    /// Ends the connection, since the program did not read.
    pub cut: oneshot::Sender<()>,
}

/// What became of an event for a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Offered {
    /// It waits for the program.
    Taken,
    /// It is lost, and only it: anybody can send such.
    Lost,
    /// It is lost, and the program has to be cut.
    Full,
}

impl ApplicationPort {
    /// Gives the program an event. What comes of who has not proven itself takes half of the room at most, so that a flood of it
    /// does not cost the program its connection.
    pub fn offer(&self, event: ApplicationEvent) -> Offered {
        let of_anybody = matches!(&event, ApplicationEvent::RecvMessage(message) if !message.validated);
        if of_anybody && self.events.capacity() <= self.events.max_capacity() / 2 {
            return Offered::Lost;
        }
        match self.events.try_send(event) {
            Ok(()) => Offered::Taken,
            Err(_) => Offered::Full,
        }
    }
}

/// An open connection with a signaling peer.
pub enum Connection {
    /// TCP as it is.
    Plain(TcpStream),
    /// TLS over it, and what the peer showed.
    Tls(Box<TlsStream<Metered>>, Box<Shown>),
}

/// What a peer showed to be believed, to be checked again when that changes by which it was.
pub struct Shown {
    /// Which end the peer is.
    pub side: Side,
    /// Its certificate and those between it and its authority; none if it showed none.
    pub chain: Vec<CertificateDer<'static>>,
    /// By what it was last checked.
    pub trust: Arc<Trust>,
    /// What flows it may speak about, by that.
    pub flows: FlowScope,
}

/// The way back to who had the configuration read again: what changed, or why it stays as it was.
pub type ReloadReply = Reply<Result<Reloaded, String>>;

/// The way back to who had the node drained: how far it is, or why it goes on as before.
pub type DrainReply = Reply<Result<DrainReport, String>>;

/// Who asked for a trace, and the way back; the answer comes with the driver and why that one.
pub type TraceReply = Reply<Result<(Feed, String), TraceRefusal>>;

/// What an API call asks of the control loop; each carries the way back.
pub enum Call {
    /// `POST /v1/requests`.
    Request(Box<PostRequest>, Reply<Result<RequestResult, Refusal>>),
    /// `GET /v1/node`.
    Node(Reply<NodeInfo>),
    /// `GET /v1/modules`.
    Modules(Reply<ModuleList>),
    /// `GET /v1/users`.
    Users(Reply<UserList>),
    /// `GET /v1/usage`.
    Usage(Reply<UsageReport>),
    /// `GET /metrics`.
    Metrics(Reply<String>),
    /// `POST /v1/reload`.
    Reload(ReloadReply),
    /// `GET /v1/drain`, or `POST` with whether the node is to be drained.
    Drain(Option<bool>, DrainReply),
    /// `POST /v1/trace`.
    Trace(Box<TraceRequest>, TraceReply),
}

/// What happens to workers, for their thread.
pub enum WorkerEvent {
    /// A worker's socket, process or deadline wants a look.
    Container(ContainerEvent),
    /// A worker was started, or could not be.
    Launched(Box<Launched>),
    /// Something about a media job.
    Media(MediaEvent),
    /// Sockets that a worker wanted, as many as it gets.
    Sockets(SocketWish, Vec<OwnedFd>),
    /// The packet loop reports.
    Packet(PacketEvent),
}

/// What workers want of their users' networks.
pub enum Wish {
    /// Sockets with which a worker speaks for others; answered by [`WorkerEvent::Sockets`].
    Sockets(SocketWish),
    /// A worker has no listening sockets any more, for a module or for all.
    DropListeners(WorkerId, Option<ModuleSlot>),
    /// No worker of the user's is in its network any more.
    Leave(UserId),
}

/// A user's network as its workers get to know it.
#[derive(Clone, Debug)]
pub struct UserNetwork {
    /// The network.
    pub network: Arc<ContainerNetwork>,
    /// The container's addresses in it.
    pub addresses: Vec<IpAddr>,
}

/// A worker's socket, process or deadline wants a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerEvent {
    /// The worker.
    pub worker: WorkerId,
    /// Its generation.
    pub generation: u64,
    /// It had its time to end.
    pub overdue: bool,
}

/// A worker that was started, or could not be.
pub struct Launched {
    /// Which worker.
    pub worker: WorkerId,
    /// Its generation.
    pub generation: u64,
    /// The worker in its container; dropping it ends it.
    pub result: Result<Container, Refusal>,
}

/// Sockets that a worker wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketWish {
    /// The worker.
    pub worker: WorkerId,
    /// Its generation.
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
    /// Its generation.
    pub generation: u64,
    /// The worker's own number for it.
    pub job: u64,
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
