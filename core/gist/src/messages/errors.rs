// SPDX-License-Identifier: Apache-2.0
//! Error messages to peers (RFC 5971 §4.4.6, appendix A.4).

use std::net::SocketAddr;

use netserv_wire::gist::{
    AdditionalInfo, DecodeError, ErrorCode, ErrorObject, Message, MessageType, Mri, NatTraversal, Nli, UDP_PORT,
};

use super::arrival::{Arrival, Via};
use crate::api::{Audience, Counter, Event};
use crate::associations::Associations;
use crate::cx::{Cx, is_unicast};
use crate::routing::Routes;

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

/// Tells the sender of a message what is wrong with it.
pub(crate) fn send_error(
    cx: &mut Cx<'_>,
    routes: &Routes,
    associations: &mut Associations,
    arrival: &Arrival,
    fault: Fault,
    offender: &Message,
) {
    let datagram = arrival.is_datagram();
    let q_mode = datagram && offender.context_free;
    let Some(header) = arrival.header else { return };
    let mut object = ErrorObject::new(fault.code, header, datagram, q_mode);
    object.session = offender.session;
    object.mri = offender.mri.clone();
    object.infos.extend(fault.info);
    let (nli, nats) = (offender.nli.as_ref(), offender.nat_traversal.as_ref());
    send_error_object(cx, routes, associations, arrival, object, nli, nats);
}

/// Counts and reports bytes that are no message, and tells their sender.
pub(crate) fn on_malformed(
    cx: &mut Cx<'_>,
    routes: &Routes,
    associations: &mut Associations,
    arrival: &Arrival,
    error: DecodeError,
) {
    cx.out.count(Counter::Malformed);
    let datagram = arrival.is_datagram();
    let q_mode = datagram && arrival.header.is_some_and(|header| header[6] & C_FLAG != 0);
    if let Some(object) = error.error_object(datagram, q_mode) {
        let (nli, nats) = (error.context.nli.as_ref(), error.context.nat_traversal.as_ref());
        send_error_object(cx, routes, associations, arrival, object, nli, nats);
    }
    let from = match arrival.via {
        Via::Datagram { source, .. } => Some(source),
        Via::Association(id) => associations.peer(id),
    };
    cx.out.event(Event::Malformed { from, error });
}

/// RFC 5971 §4.4.6: the Error goes where the offender came from, by the offender alone. There is none for an Error or a
/// Response, so that forged messages do not make this node send to strangers.
fn send_error_object(
    cx: &mut Cx<'_>,
    routes: &Routes,
    associations: &mut Associations,
    arrival: &Arrival,
    object: ErrorObject,
    nli: Option<&Nli>,
    nat_traversal: Option<&NatTraversal>,
) {
    let kind = object.header[6] & TYPE_MASK;
    if !cx.config().send_errors || kind == ERROR_TYPE || kind == RESPONSE_TYPE {
        return;
    }
    let signaller = object.header[7] & S_FLAG != 0;
    let untranslated = object.error_code() == Some(ErrorCode::UntranslatedObject);
    let in_d_mode = object.datagram && !object.q_mode;
    let mut message = Message::new(MessageType::Error, 0);
    (message.error, message.nat_traversal) = (Some(object), nat_traversal.cloned());
    match arrival.via {
        Via::Association(id) => {
            cx.out.count(Counter::ErrorsSent);
            associations.send(cx, id, &message);
        }
        Via::Datagram { source, .. } => {
            let named = nli.map(|nli| nli.address).filter(|address| address.is_ipv4() == arrival.local.is_ipv4());
            let own = signaller.then_some(source.ip());
            // RFC 5971 §7.2: what is behind a NAT is only reached by the way that its message came. In normal D-mode, S=0
            // says that there is a NAT.
            let natted = named.filter(|_| !signaller && in_d_mode).map(|_| source.ip());
            let address = if untranslated { own } else { natted.or(named).or(own) };
            let Some(address) = address else { return };
            if !cx.settings.may_answer(address) {
                cx.out.count(Counter::Unanswerable);
                return;
            }
            if !cx.out.may_send_error(cx.now) {
                cx.out.count(Counter::ErrorsLimited);
                return;
            }
            let port = if source.port() == 0 { UDP_PORT } else { source.port() };
            message.nli = Some(cx.settings.nli(arrival.local, routes.validity(cx.config())));
            // RFC 5971 §7.2: a NAT lets in what comes from where the Query went.
            let own = arrival.destination == arrival.local || !untranslated || !is_unicast(arrival.destination);
            let (audience, from) = match own {
                true => (Audience::Offender, arrival.local),
                false => (Audience::BehindNat, arrival.destination),
            };
            message.source_is_signaller = own;
            let peer = SocketAddr::new(address, port);
            if cx.out.send_to(cx.now, audience, (from, peer), None, &message) {
                cx.out.count(Counter::ErrorsSent);
            }
        }
    }
}

/// Parts of bytes 6 and 7 of the common header (RFC 5971 A.1), for headers that need not be valid.
const C_FLAG: u8 = 0x80;
const TYPE_MASK: u8 = 0x7f;
const S_FLAG: u8 = 0x80;
const RESPONSE_TYPE: u8 = 1;
const ERROR_TYPE: u8 = 4;
