// SPDX-License-Identifier: Apache-2.0
//! Events of GIST in the words of programs.

use netserv_gist::{
    Carriage, Event, FailReason, IcmpKind, Mode, NoPeerReason, Notification, RouteStatus, SendStatus, SiiHandle,
};
use netserv_model::application::{
    ApplicationEvent, Carried, Carrier, MessageStatus, NetworkNotification, Payload, RecvMessage, RouteNews, SentAs,
};

use super::flow::flow_of;
use super::peers::Peers;

/// One program's names for peers.
pub(super) struct Names<'a>(pub(super) &'a mut Peers);

impl Names<'_> {
    /// Returns the name of a peer, if the handle is somebody's.
    fn of(&mut self, sii: SiiHandle) -> Option<u64> {
        sii.is_node_of(sii).then(|| self.0.name(sii))
    }
}

/// Returns an event about a session of a program; nothing if the program has no words for it.
pub(super) fn words(event: &Event, names: &mut Names<'_>) -> Option<ApplicationEvent> {
    match event {
        Event::RecvMessage {
            session,
            mri,
            data,
            sii,
            peer,
            local,
            interface,
            ip_distance,
            attributes,
            validated,
            peer_name,
            hops,
            nslp_id: _,
            association: _,
            provenance,
            query: _,
            claims: _,
        } => Some(ApplicationEvent::RecvMessage(Box::new(RecvMessage {
            session: *session,
            flow: flow_of(mri)?,
            data: Payload(data.clone()),
            peer: names.of(*sii),
            peer_address: *peer,
            local_address: *local,
            interface: interface.0,
            ip_distance: *ip_distance,
            ip_ttl: provenance.ip_ttl,
            reliable: attributes.reliable,
            secure: attributes.secure,
            validated: *validated,
            peer_name: peer_name.clone(),
            hops: *hops,
        }))),
        Event::NetworkNotification { session, mri, kind, nslp_id: _ } => {
            let (kind, sii) = news(*kind);
            let flow = flow_of(mri)?;
            let peer = sii.and_then(|sii| names.of(sii));
            let notification = NetworkNotification { session: *session, flow, kind, peer };
            Some(ApplicationEvent::NetworkNotification(Box::new(notification)))
        }
        Event::MessageStatus { .. } | Event::Malformed { .. } => None,
    }
}

/// Returns the status of a message under the program's name for it.
pub(super) fn status(handle: u64, event: &Event) -> Option<ApplicationEvent> {
    let Event::MessageStatus { status, carriage, .. } = event else { return None };
    let (status, why) = match status {
        SendStatus::Sent => (SentAs::Sent, None),
        SendStatus::NoPeer(reason) => (SentAs::NoPeer, Some(no_peer(*reason))),
        SendStatus::Failed(reason) => (SentAs::Failed, Some(failed(*reason))),
    };
    let (reason, detail) = why.unzip();
    let reason = reason.map(str::to_owned);
    Some(ApplicationEvent::MessageStatus(MessageStatus {
        handle,
        status,
        reason,
        detail,
        carried: carriage.map(carried),
    }))
}

fn carried(Carriage { attributes, mode }: Carriage) -> Carried {
    let by = match mode {
        Mode::Connection => Carrier::Connection,
        Mode::Datagram => Carrier::Datagram,
        Mode::QMode => Carrier::QMode,
    };
    Carried { by, reliable: attributes.reliable, secure: attributes.secure }
}

fn news(kind: Notification) -> (RouteNews, Option<SiiHandle>) {
    match kind {
        Notification::LastNode => (RouteNews::LastNode, None),
        Notification::StatusChange(RouteStatus::Bad) => (RouteNews::RouteBad, None),
        Notification::StatusChange(RouteStatus::Tentative) => (RouteNews::RouteTentative, None),
        Notification::StatusChange(RouteStatus::Good(sii)) => (RouteNews::RouteGood, Some(sii)),
        Notification::RouteDeletion => (RouteNews::RouteDeletion, None),
        Notification::CommunicationFailure => (RouteNews::CommunicationFailure, None),
    }
}

fn no_peer(reason: NoPeerReason) -> (&'static str, String) {
    match reason {
        NoPeerReason::Timeout => ("timeout", "no node answered; there may be some".to_owned()),
        NoPeerReason::Hindered { kind, reporter } => {
            let what = match kind {
                IcmpKind::Port => "port unreachable",
                IcmpKind::Protocol => "protocol unreachable",
                IcmpKind::Host => "host unreachable",
                IcmpKind::Network => "network unreachable",
                IcmpKind::Prohibited => "prohibited",
                IcmpKind::TimeExceeded => "time exceeded",
                IcmpKind::TooBig { .. } => "too big",
            };
            ("hindered", format!("no node answered, and {reporter} reports: {what}; there may be some"))
        }
        NoPeerReason::Unreachable => {
            ("unreachable", "the flow's endpoint was reached, and speaks no GIST: this node is the last".to_owned())
        }
        NoPeerReason::EndpointFound => (
            "endpoint-found",
            "the flow's endpoint was reached, and has not this NSLP: this node is the last".to_owned(),
        ),
    }
}

fn failed(reason: FailReason) -> (&'static str, String) {
    let name = match reason {
        FailReason::Timeout => "timeout",
        FailReason::Association => "association",
        FailReason::NoStack => "no-stack",
        FailReason::NoConnection => "no-connection",
        FailReason::TooLong => "too-long",
        FailReason::NoAssociation => "no-association",
        FailReason::Congested => "congested",
        FailReason::RateLimited => "rate-limited",
        FailReason::Rejected { .. } => "rejected",
        FailReason::Outside => "outside",
        FailReason::Cancelled => "cancelled",
    };
    (name, reason.text())
}
