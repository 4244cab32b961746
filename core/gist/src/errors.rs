// SPDX-License-Identifier: Apache-2.0
//! Error messages (RFC 5971 §4.4.6, appendix A.4): telling peers, and doing what they tell.

use std::net::SocketAddr;

use netserv_model::Instant;
use netserv_wire::gist::{
    AdditionalInfo, DecodeError, ErrorCode, ErrorObject, Header, Message, MessageType, Mri, NatTraversal, Nli, UDP_PORT,
};

use crate::api::{Audience, Counter, Event, FailReason, NoPeerReason, Notification, RouteId, SendStatus, TlsPolicy};
use crate::associations::stack::Stack;
use crate::context::is_unicast;
use crate::engine::{Arrival, Engine, Via};
use crate::querier::{Phase, query_target};
use crate::routing::{Route, RouteKey};

/// Object types that Errors of the engine name.
pub(crate) const MRI: u16 = 0;
pub(crate) const NLI: u16 = 2;
pub(crate) const STACK_PROPOSAL: u16 = 3;
pub(crate) const STACK_CONFIGURATION: u16 = 4;

/// What is wrong with a message that could be read.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) code: ErrorCode,
    /// The object to blame.
    info: Option<AdditionalInfo>,
}

impl Fault {
    pub(crate) fn missing(object: u16) -> Fault {
        Fault::of_type(ErrorCode::MissingObject, object)
    }

    /// Returns a fault that the object's type shows.
    pub(crate) fn of_type(code: ErrorCode, object: u16) -> Fault {
        Fault { code, info: Some(AdditionalInfo::ObjectType(object)) }
    }

    /// Returns the fault of a message that is longer than a link takes, whose packets have at most `mtu` bytes.
    pub(crate) fn too_large(mtu: u16) -> Fault {
        Fault { code: ErrorCode::MessageTooLarge, info: Some(AdditionalInfo::Mtu(mtu)) }
    }

    /// Returns a fault of the MRI at a byte of its value.
    pub(crate) fn of_mri(code: ErrorCode, mri: &Mri, offset: usize) -> Fault {
        Fault { code, info: Some(AdditionalInfo::invalid_mri(mri, offset)) }
    }

    /// Returns a fault of the NAT traversal object at a byte of its value.
    pub(crate) fn of_nat_traversal(code: ErrorCode, object: &NatTraversal, offset: usize) -> Fault {
        Fault { code, info: Some(AdditionalInfo::invalid_nat_traversal(object, offset)) }
    }

    /// Returns a fault of the NLI at a byte of its value.
    pub(crate) fn of_nli(code: ErrorCode, nli: &Nli, offset: usize) -> Fault {
        Fault { code, info: Some(AdditionalInfo::invalid_nli(nli, offset)) }
    }
}

impl From<ErrorCode> for Fault {
    fn from(code: ErrorCode) -> Fault {
        Fault { code, info: None }
    }
}

impl Engine {
    /// Tells the sender of a message what is wrong with it.
    pub(crate) fn send_error(&mut self, now: Instant, arrival: &Arrival, fault: Fault, offender: &Message) {
        let datagram = matches!(arrival.via, Via::Datagram { .. });
        let q_mode = datagram && offender.context_free;
        let Some(header) = arrival.header else { return };
        let mut object = ErrorObject::new(fault.code, header, datagram, q_mode);
        object.session = offender.session;
        object.mri = offender.mri.clone();
        object.infos.extend(fault.info);
        self.send_error_object(now, arrival, object, offender.nli.as_ref(), offender.nat_traversal.as_ref());
    }

    /// Counts and reports bytes that are no message, and tells their sender.
    pub(crate) fn on_malformed(&mut self, now: Instant, arrival: &Arrival, error: DecodeError) {
        self.out.count(Counter::Malformed);
        let datagram = matches!(arrival.via, Via::Datagram { .. });
        let q_mode = datagram && arrival.header.is_some_and(|header| header[6] & C_FLAG != 0);
        if let Some(object) = error.error_object(datagram, q_mode) {
            let context = &error.context;
            self.send_error_object(now, arrival, object, context.nli.as_ref(), context.nat_traversal.as_ref());
        }
        let from = match arrival.via {
            Via::Datagram { source, .. } => Some(source),
            Via::Association(id) => self.associations.peer(id),
        };
        self.out.event(Event::Malformed { from, error });
    }

    /// RFC 5971 §4.4.6: the Error goes where the offender came from, by the offender alone. There is none for an Error
    /// or a Response, so that forged messages do not make this node send to strangers.
    fn send_error_object(
        &mut self,
        now: Instant,
        arrival: &Arrival,
        object: ErrorObject,
        nli: Option<&Nli>,
        nat_traversal: Option<&NatTraversal>,
    ) {
        let kind = object.header[6] & TYPE_MASK;
        if !self.settings.config().send_errors || kind == ERROR_TYPE || kind == RESPONSE_TYPE {
            return;
        }
        let signaller = object.header[7] & S_FLAG != 0;
        let untranslated = object.error_code() == Some(ErrorCode::UntranslatedObject);
        let in_d_mode = object.datagram && !object.q_mode;
        let mut message = Message::new(MessageType::Error, 0);
        (message.error, message.nat_traversal) = (Some(object), nat_traversal.cloned());
        match arrival.via {
            Via::Association(id) => {
                self.out.count(Counter::ErrorsSent);
                self.send_on_association(now, id, &message);
            }
            Via::Datagram { source, .. } => {
                let named = nli.map(|nli| nli.address).filter(|address| address.is_ipv4() == arrival.local.is_ipv4());
                let own = signaller.then_some(source.ip());
                // RFC 5971 §7.2: what is behind a NAT is only reached by the way that its message came. In normal D-mode, S=0
                // says that there is a NAT.
                let natted = named.filter(|_| !signaller && in_d_mode).map(|_| source.ip());
                let address = if untranslated { own } else { natted.or(named).or(own) };
                let Some(address) = address else { return };
                if !self.settings.may_answer(address) {
                    self.out.count(Counter::Unanswerable);
                    return;
                }
                if !self.out.may_send_error(now) {
                    self.out.count(Counter::ErrorsLimited);
                    return;
                }
                let port = if source.port() == 0 { UDP_PORT } else { source.port() };
                message.nli = Some(self.settings.nli(arrival.local, self.validity()));
                // RFC 5971 §7.2: a NAT lets in what comes from where the Query went.
                let own = arrival.destination == arrival.local || !untranslated || !is_unicast(arrival.destination);
                let (audience, from) = match own {
                    true => (Audience::Offender, arrival.local),
                    false => (Audience::BehindNat, arrival.destination),
                };
                message.source_is_signaller = own;
                let peer = SocketAddr::new(address, port);
                if self.out.send_to(now, audience, (from, peer), None, &message) {
                    self.out.count(Counter::ErrorsSent);
                }
            }
        }
    }

    /// Does what a received Error asks for. The 128-bit session in it shows that its sender saw a message of ours; that the
    /// flow ends with its sender only the flow's endpoint can say.
    pub(crate) fn on_error(&mut self, now: Instant, arrival: &Arrival, message: Message) {
        self.out.count(Counter::ErrorsReceived);
        let Some(object) = message.error else { return };
        let Some((id, kind)) = self.offender(&object, message.nat_traversal) else { return };
        let querying = self.routes.get(id).is_some_and(|route| route.querier().is_some());
        if matches!(object.code, NO_ROUTING_STATE | INCORRECTLY_DELIVERED) && !self.is_believed(id, arrival) {
            self.out.count(Counter::ErrorsDoubted);
            return;
        }
        match (object.code, kind) {
            (NO_ROUTING_STATE | INCORRECTLY_DELIVERED, kind) if querying => {
                self.rehandshake(now, id);
                self.refused_data(id, kind);
            }
            (NO_ROUTING_STATE, _) => {
                self.notify(id, Notification::RouteDeletion);
                self.remove_route(now, id, SendStatus::Failed(FailReason::Cancelled));
            }
            (ENDPOINT_FOUND, MessageType::Query) if self.is_endpoint(id, arrival) => {
                self.path_ends(now, id, NoPeerReason::EndpointFound);
            }
            (HOP_LIMIT_EXCEEDED, MessageType::Query) => self.ask_further(now, id, &object),
            (MESSAGE_TOO_LARGE, _) => self.ask_for_association(now, id),
            (_, MessageType::Query) => self.on_refusal(now, id, &object),
            (_, _) => {}
        }
    }

    /// Returns the row whose message an Error is about, and the message's type. What NATs translated is known by the MRI that
    /// they found in it (RFC 5971 §7.2).
    fn offender(&self, object: &ErrorObject, nats: Option<NatTraversal>) -> Option<(RouteId, MessageType)> {
        let header = Header::parse(&object.header).ok()?;
        let mri = nats.map(|nats| nats.mri).or_else(|| object.mri.clone())?;
        let key = RouteKey { session: object.session?, nslp_id: header.nslp_id, mri };
        Some((self.routes.find_meant(&key)?, header.kind))
    }

    /// Returns whether who says that it has no state for a row may be its peer: it has the peer's address or connection. Where the
    /// two speak TLS, only over TLS (RFC 5971 §4.4.6).
    fn is_believed(&self, id: RouteId, arrival: &Arrival) -> bool {
        let Some(route) = self.routes.get(id) else { return false };
        let Some(peer) = route.peer.and_then(|sii| self.peers.get(sii)) else { return false };
        let secure = |association| self.associations.has_stack(association, Stack::Tls);
        let needs_tls = route.association.is_some_and(secure) || self.settings.config().tls == TlsPolicy::Required;
        match arrival.via {
            Via::Datagram { source, .. } => !needs_tls && source.ip() == peer.address,
            Via::Association(id) => {
                let name = self.associations.name(id);
                let is_peer = name.is_some_and(|(identity, _)| identity == peer.identity);
                is_peer && (!needs_tls || secure(id))
            }
        }
    }

    /// Returns whether a datagram comes from where the row's Queries go.
    fn is_endpoint(&self, id: RouteId, arrival: &Arrival) -> bool {
        let target = self.routes.get(id).and_then(|route| query_target(&route.key.mri));
        match arrival.via {
            Via::Datagram { source, .. } => target == Some(source.ip()),
            Via::Association(_) => false,
        }
    }

    /// Asks once more with as many hops as there are.
    fn ask_further(&mut self, now: Instant, id: RouteId, object: &ErrorObject) {
        let Some(route) = self.routes.get_mut(id) else { return };
        if route.hops == u8::MAX {
            self.on_refusal(now, id, object);
            return;
        }
        route.hops = u8::MAX;
        if let Some(phase) = route.querier().map(|querier| querier.phase) {
            self.start_handshake(now, id, phase, now);
        }
    }

    /// Turns to a connection, since datagrams are too large for the path.
    pub(crate) fn ask_for_association(&mut self, now: Instant, id: RouteId) {
        let Some(querier) = self.routes.get_mut(id).and_then(Route::querier_mut) else { return };
        if !querier.wants_association {
            querier.wants_association = true;
            self.rehandshake(now, id);
        }
    }

    /// Tells the NSLP that the peer dropped a reliable message.
    fn refused_data(&mut self, id: RouteId, kind: MessageType) {
        let Some(route) = self.routes.get_mut(id).filter(|_| kind == MessageType::Data) else { return };
        if std::mem::take(&mut route.reliable_sent) {
            self.notify(id, Notification::CommunicationFailure);
        }
    }

    /// Ends a handshake that the peer refuses.
    fn on_refusal(&mut self, now: Instant, id: RouteId, object: &ErrorObject) {
        let phase = self.routes.get(id).and_then(Route::querier).map(|querier| querier.phase);
        if phase == Some(Phase::Asking) {
            let reason = FailReason::Rejected { code: object.code, subcode: object.subcode };
            self.remove_route(now, id, SendStatus::Failed(reason));
        }
    }
}

/// Codes of received Errors that this node does something about (RFC 5971 A.4.4).
const HOP_LIMIT_EXCEEDED: u16 = 0x0002;
const INCORRECTLY_DELIVERED: u16 = 0x0004;
const NO_ROUTING_STATE: u16 = 0x0005;
const ENDPOINT_FOUND: u16 = 0x0007;
const MESSAGE_TOO_LARGE: u16 = 0x0008;

/// Parts of bytes 6 and 7 of the common header (RFC 5971 A.1), for headers that need not be valid.
const C_FLAG: u8 = 0x80;
const TYPE_MASK: u8 = 0x7f;
const S_FLAG: u8 = 0x80;
const RESPONSE_TYPE: u8 = 1;
const ERROR_TYPE: u8 = 4;
