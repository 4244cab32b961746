// SPDX-License-Identifier: Apache-2.0
//! NSLPs of others on a node: what their programs and the node tell each other, a line of JSON each (`docs/nslp-api.md`).

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{NodeId, SessionId};

/// The version of the lines.
pub const VERSION: u32 = 1;

/// What a program calls; the first line registers, no other does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "call", rename_all = "kebab-case")]
pub enum ApplicationCall {
    /// Says which NSLP the program is; answered by [`ApplicationEvent::Registered`].
    Register(Register),
    /// Sends a message to the next node of the NSLP; answered by one [`ApplicationEvent::MessageStatus`], or refused.
    SendMessage(SendMessage),
    /// Takes a message back that was not sent yet; its status is then `failed`, `cancelled` (RFC 5971 B.3).
    AbortMessage(AbortMessage),
    /// Takes all messages of a session back that were not sent yet; each has its own status.
    AbortSession(AbortSession),
    /// Says how long routing state lives without messages (RFC 5971 B.5).
    SetStateLifetime(SetStateLifetime),
    /// Says that the next node may be the wrong one (RFC 5971 B.6).
    InvalidateRoutingState(InvalidateRoutingState),
}

/// Which NSLP a program is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Register {
    /// The version of the lines that it speaks: 1.
    pub version: u32,
    /// The NSLPID: 32704 to 32767 (private and experimental use), or one that the operator named.
    pub nslp_id: u16,
    /// The value of the Router Alert Option in its Queries: 65503 to 65534 (experimental). Without it, that of NetServ, or
    /// what the operator named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router_alert: Option<u16>,
    /// What the operator sees as its name: at most 32 characters.
    #[serde(default)]
    pub name: String,
}

/// A message for the next node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    /// The program's own name for the message. It may be used again after the message's status.
    pub handle: u64,
    /// The session: 32 hex digits that nobody can guess.
    pub session: SessionId,
    /// The flow, with the direction in which the message goes. Upstream needs routing state that the peer made before.
    pub flow: ApplicationFlow,
    /// At most 16,380 bytes, as hex digits. They arrive with zeros up to a multiple of 4.
    pub data: Payload,
    /// Whether it arrives once and in order, or its loss is told.
    #[serde(default)]
    pub reliable: bool,
    /// Whether it goes over TLS or not at all.
    #[serde(default)]
    pub secure: bool,
    /// Whether it goes to a peer inside of the operator's domain or not at all.
    #[serde(default)]
    pub inside: bool,
    /// A certain peer, as an event named it to this program, which need not be the next one any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<u64>,
    /// How long it may wait for a handshake or a connection, in milliseconds; at most an hour.
    #[serde(default = "timeout_default")]
    pub timeout_ms: u64,
    /// Nodes of any NSLP that it may still cross; who relays a message passes on what it received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hops: Option<u8>,
    /// Which routing state the message needs.
    #[serde(default, skip_serializing_if = "RoutingState::is_needed")]
    pub state: RoutingState,
    /// Of messages that wait for one route or connection, those of a greater priority go first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: u8,
    /// The TTL or hop limit of its datagrams and of the Queries downstream that it starts: not 0. Without it, the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_ttl: Option<u8>,
}

/// Which routing state a message needs (RFC 5971 §4.3.3, §5.8.1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingState {
    /// Downstream a handshake makes it; upstream it is there already, since the peer made it.
    #[default]
    Needed,
    /// A handshake makes it in either direction. Upstream that finds a peer only if none but a router without GIST is between.
    Queried,
    /// None: a message that is neither reliable nor secure and fits a datagram goes at once to whoever is next, and nobody can
    /// say whether it arrived. Others are treated as those that need it.
    NotNeeded,
}

impl RoutingState {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    fn is_needed(&self) -> bool {
        *self == RoutingState::Needed
    }
}

/// A message that is not to be sent any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbortMessage {
    /// The program's name for the message.
    pub handle: u64,
}

/// A session whose messages are not to be sent any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbortSession {
    /// The session.
    pub session: SessionId,
}

/// How long routing state lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetStateLifetime {
    /// The session; without it all of the program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The flow and the direction; without it all of the program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<ApplicationFlow>,
    /// In milliseconds; 0 gives the state up at once.
    pub lifetime_ms: u64,
}

/// A doubt about the next node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InvalidateRoutingState {
    /// The flow and the direction.
    pub flow: ApplicationFlow,
    /// Whether the state must not be used before a new handshake; otherwise it is only checked.
    #[serde(default)]
    pub bad: bool,
    /// What the Queries of the next handshake say to the program that they find: at most 128 bytes, unprotected, and perhaps
    /// more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Payload>,
}

/// A flow, and a direction along it: a message routing information (RFC 5971 A.3.1). What is left out matches everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplicationFlow {
    /// How the path of signaling follows from the flow.
    #[serde(default, skip_serializing_if = "RoutingMethod::is_path_coupled")]
    pub method: RoutingMethod,
    /// The flow's source.
    pub source: IpAddr,
    /// The flow's destination, of the same version of IP.
    pub destination: IpAddr,
    /// Which way the message goes, or lies the peer.
    pub direction: FlowDirection,
    /// Significant bits of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_prefix: Option<u8>,
    /// Significant bits of the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_prefix: Option<u8>,
    /// The protocol's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
    /// The source port; needs the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<u16>,
    /// The destination port; needs the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<u16>,
    /// The index of IPsec's security parameters; needs the protocol, and excludes ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spi: Option<u32>,
    /// The differentiated services code point: 6 bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// The flow label of IPv6: 20 bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_label: Option<u32>,
}

/// How the path of signaling follows from a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingMethod {
    /// Along the path of the flow.
    #[default]
    PathCoupled,
    /// Towards the edge of the network; with addresses and direction alone.
    LooseEnd,
}

impl RoutingMethod {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    fn is_path_coupled(&self) -> bool {
        *self == RoutingMethod::PathCoupled
    }
}

/// Which way along a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowDirection {
    /// With the flow.
    Downstream,
    /// Against the flow.
    Upstream,
}

/// What the node tells a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum ApplicationEvent {
    /// The program is the NSLP from here on, until its connection ends.
    Registered(Registered),
    /// A message of a peer (RFC 5971 B.2).
    RecvMessage(Box<RecvMessage>),
    /// What became of a message (RFC 5971 B.3).
    MessageStatus(MessageStatus),
    /// Something about a route that has or had state (RFC 5971 B.4).
    NetworkNotification(Box<NetworkNotification>),
    /// A line was not taken, or the connection ends.
    Error(ApplicationError),
}

/// The answer to a program that registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registered {
    /// The version of the lines that the node speaks.
    pub version: u32,
    /// The node's name.
    pub node: NodeId,
    /// The NSLPID.
    pub nslp_id: u16,
    /// The value of the Router Alert Option in the NSLP's Queries.
    pub router_alert: u16,
}

/// A message of a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecvMessage {
    /// The session.
    pub session: SessionId,
    /// The flow, with the direction in which the message goes: answers go the other way.
    pub flow: ApplicationFlow,
    /// The payload, with the zeros that its sender added up to a multiple of 4 bytes.
    pub data: Payload,
    /// The peer, by the name that this program has for it; nothing if no handshake has proven it.
    pub peer: Option<u64>,
    /// The peer's address.
    pub peer_address: IpAddr,
    /// The node's address toward it.
    pub local_address: IpAddr,
    /// The index of the interface where it came; 0 over a connection.
    pub interface: u32,
    /// Hops of IP to the peer, if they are known: 0 if no router lies between.
    pub ip_distance: Option<u8>,
    /// The TTL or hop limit with which it came; nothing over a connection.
    #[serde(default)]
    pub ip_ttl: Option<u8>,
    /// Whether it came over a connection.
    pub reliable: bool,
    /// Whether it came over TLS.
    pub secure: bool,
    /// Whether the sender has answered at its address and is the peer that routing state names. A program must not make state
    /// for a message of which this is false.
    pub validated: bool,
    /// The name in the sender's certificate, if it showed one.
    pub peer_name: Option<String>,
    /// Nodes of any NSLP that it may still cross.
    pub hops: u8,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageStatus {
    /// The program's name for the message.
    pub handle: u64,
    /// What became of it.
    pub status: SentAs,
    /// Why, unless it was sent: `timeout`, `hindered`, `unreachable`, `endpoint-found`, `association`, `no-stack`,
    /// `no-connection`, `no-association`, `too-long`, `congested`, `rate-limited`, `rejected`, `outside`, `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How it was carried, if it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
}

/// How a message was carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Carried {
    /// By what.
    pub by: Carrier,
    /// Whether it arrives once and in order, or its loss is told.
    pub reliable: bool,
    /// Whether it went over TLS.
    pub secure: bool,
}

/// What a message was carried by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// A connection with the peer.
    Connection,
    /// A datagram to the peer.
    Datagram,
    /// A datagram along the flow, for whoever is next.
    QMode,
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SentAs {
    /// It is on its way to the peer.
    Sent,
    /// There is no next node, or none that answers.
    NoPeer,
    /// There is or may be one, and the message did not go there.
    Failed,
}

/// Something about a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkNotification {
    /// The session.
    pub session: SessionId,
    /// The flow, with the direction toward the peer.
    pub flow: ApplicationFlow,
    /// What happened.
    pub kind: RouteNews,
    /// The peer, where it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<u64>,
}

/// What happened to a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouteNews {
    /// This node is the last one on the path of the flow.
    LastNode,
    /// The peer is not to be used.
    RouteBad,
    /// The peer can be used while it is checked.
    RouteTentative,
    /// The peer is the one that is named: newly, or again after a doubt.
    RouteGood,
    /// The state is gone.
    RouteDeletion,
    /// Reliable messages may have been lost with their connection.
    CommunicationFailure,
}

/// Why a line was not taken, or why the connection ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationError {
    /// What is wrong.
    pub error: ApplicationErrorKind,
    /// The same for people.
    pub cause: String,
    /// What to do.
    pub fix: String,
    /// The number of the line, from 1, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The message, if it is about one: no status follows for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<u64>,
    /// Whether the node ends the connection.
    pub fatal: bool,
}

impl ApplicationError {
    /// Returns an error about a line.
    pub fn new(error: ApplicationErrorKind, cause: impl Into<String>, line: Option<u64>) -> ApplicationError {
        ApplicationError {
            error,
            cause: cause.into(),
            fix: error.fix().to_owned(),
            line,
            handle: None,
            fatal: error.is_fatal(),
        }
    }
}

words! {
    serde
    /// What is wrong with a line, or with its program.
    pub enum ApplicationErrorKind {
        /// It is no call.
        Malformed = "malformed" => "send one JSON object a line, as docs/nslp-api.md has them",
        /// The first line does not register, or a later one does.
        Order = "order" => "let the first line register, and no other",
        /// The program speaks another version of the lines.
        Version = "version" => "speak version 1 of the lines, or update one of the two",
        /// The NSLPID or the value of the Router Alert Option is not for it.
        NotAllowed = "not-allowed" =>
            "take an NSLPID of 32704 to 32767 and a Router Alert value of 65503 to 65534, or have the operator name the pair in signaling.applications.nslps",
        /// The NSLPID has a program already.
        Taken = "taken" => "take another NSLPID, or end the program that has this one",
        /// The node has as many programs as it may.
        TooManyPrograms = "too-many-programs" => "end a program that is an NSLP on this node",
        /// A message of the program has that handle and no status yet.
        HandleInUse = "handle-in-use" => "take another handle, or wait for the status of that message",
        /// Too much of the program's waits.
        TooManyWaiting = "too-many-waiting" => "wait for the status of messages, then send on",
        /// No such message waits: it was sent, or has its status already.
        NotWaiting = "not-waiting" => "nothing: the message was sent or is over; its status says which",
        /// The program knows no such peer.
        UnknownPeer = "unknown-peer" => "name a peer by the number in an event that this connection got lately",
        /// GIST does not take the call.
        Refused = "refused" => "mend what the cause names, or try later",
        /// Too many lines were malformed.
        TooManyErrors = "too-many-errors" => "mend the program; the lines before say what is wrong",
        /// The program did not read what it was told.
        TooSlow = "too-slow" => "read events as they come, and register again",
        /// The program said nothing in time.
        Silent = "silent" => "register with the first line, at once",
        /// The node stops.
        Stopping = "stopping" => "connect again once the node runs",
    }
    /// Returns what to do.
    fn fix
}

impl ApplicationErrorKind {
    /// Returns whether the connection ends with it.
    pub fn is_fatal(self) -> bool {
        match self {
            ApplicationErrorKind::Version
            | ApplicationErrorKind::NotAllowed
            | ApplicationErrorKind::Taken
            | ApplicationErrorKind::TooManyPrograms
            | ApplicationErrorKind::TooManyErrors
            | ApplicationErrorKind::TooSlow
            | ApplicationErrorKind::Silent
            | ApplicationErrorKind::Stopping => true,
            ApplicationErrorKind::Malformed
            | ApplicationErrorKind::Order
            | ApplicationErrorKind::HandleInUse
            | ApplicationErrorKind::TooManyWaiting
            | ApplicationErrorKind::NotWaiting
            | ApplicationErrorKind::UnknownPeer
            | ApplicationErrorKind::Refused => false,
        }
    }
}

/// Bytes, as hex digits in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload(pub Vec<u8>);

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hex::serde::serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Payload, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = hex::decode(text);
        bytes.map(Payload).map_err(|_| serde::de::Error::custom("bytes are an even number of hex digits"))
    }
}

impl JsonSchema for Payload {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Payload".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^([0-9a-fA-F]{2})*$", "description": "Bytes, as hex digits." })
    }
}

/// A program that is an NSLP on a node, for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationInfo {
    /// The NSLPID.
    pub nslp_id: u16,
    /// The value of the Router Alert Option in its Queries.
    pub router_alert: u16,
    /// Its own name for itself.
    pub name: String,
    /// Messages of it without a status yet.
    pub waiting: u32,
}

fn timeout_default() -> u64 {
    10_000
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_and_written_alike() {
        let flow = r#""flow":{"source":"10.0.0.1","destination":"10.0.9.9","direction":"downstream""#;
        for text in [
            r#"{"call":"register","version":1,"nslp_id":32710,"router_alert":65504,"name":"ping"}"#.to_owned(),
            format!(
                r#"{{"call":"send-message","handle":7,"session":"{}",{flow},"protocol":17,"destination_port":5060}},"data":"00ff","reliable":true,"secure":false,"inside":false,"peer":3,"timeout_ms":5,"hops":4}}"#,
                "0a".repeat(16)
            ),
            format!(
                r#"{{"call":"send-message","handle":7,"session":"{}",{flow}}},"data":"","reliable":false,"secure":false,"inside":false,"timeout_ms":5,"state":"not-needed","priority":7,"ip_ttl":9}}"#,
                "0a".repeat(16)
            ),
            r#"{"call":"abort-message","handle":7}"#.to_owned(),
            format!(r#"{{"call":"abort-session","session":"{}"}}"#, "0a".repeat(16)),
            r#"{"call":"set-state-lifetime","lifetime_ms":0}"#.to_owned(),
            format!(r#"{{"call":"invalidate-routing-state",{flow}}},"bad":true}}"#),
            format!(r#"{{"call":"invalidate-routing-state",{flow}}},"bad":false,"data":"0aff"}}"#),
        ] {
            let call: ApplicationCall = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(serde_json::to_string(&call).unwrap(), text);
        }
    }

    #[test]
    fn what_is_no_call_is_refused() {
        for text in [
            "{}",
            "[]",
            r#"{"call":"fly"}"#,
            r#"{"call":"register","version":1}"#,
            r#"{"call":"register","version":1,"nslp_id":70000}"#,
            r#"{"call":"register","version":1,"nslp_id":1,"colour":"red"}"#,
            r#"{"call":"set-state-lifetime","lifetime_ms":-1}"#,
            r#"{"call":"invalidate-routing-state","flow":{"source":"10.0.0.1","destination":"x","direction":"upstream"}}"#,
        ] {
            assert!(serde_json::from_str::<ApplicationCall>(text).is_err(), "{text}");
        }
        for text in ["\"0\"", "\"0g\"", "\"+1\"", "\"é0\"", "5"] {
            assert!(serde_json::from_str::<Payload>(text).is_err(), "{text}");
        }
        assert_eq!(serde_json::from_str::<Payload>("\"0AfF\"").unwrap(), Payload(vec![10, 255]));
    }

    #[test]
    fn every_error_has_its_name_and_says_what_to_do() {
        for kind in ApplicationErrorKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.as_str()));
            assert!(kind.fix().len() > 10);
        }
    }
}
