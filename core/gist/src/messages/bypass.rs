// SPDX-License-Identifier: Apache-2.0
//! Datagrams for somebody else, which this node sees on their way.

use netserv_wire::gist::{ErrorCode, Header, MAGIC, Message};

use super::arrival::Arrival;
use super::errors::{Fault, send_error};
use crate::api::{Counter, Datagram, Disposition};
use crate::associations::Associations;
use crate::cx::Cx;
use crate::routing::Routes;

/// Decides on a datagram for somebody else; `None` if this node has to take it all the same.
pub(crate) fn bypass(
    cx: &mut Cx<'_>,
    routes: &Routes,
    associations: &mut Associations,
    rx: &Datagram<'_>,
    bytes: &[u8],
) -> Option<Disposition> {
    // RFC 5971 §5.3.2.3: what looks like GIST but is not in Q-mode goes on untouched.
    let header = Header::parse(bytes).ok().filter(|header| header.context_free && rx.q_mode_interceptable);
    let Some(header) = header else {
        cx.out.count(Counter::Passed);
        return Some(UNCHANGED);
    };
    let hosted = cx.settings.hosts(header.nslp_id);
    if hosted && rx.local.is_unspecified() {
        // Nobody could answer, and those further on would vanish with this node.
        cx.out.count(Counter::NoAddress);
        return Some(UNCHANGED);
    }
    if hosted && !cx.settings.declines(&header, bytes) {
        return None;
    }
    // RFC 5971 §4.3.4: a message for another NSLP goes on with one hop less, and nothing else is looked at.
    if header.hops <= 1 {
        if let Ok(message) = Message::parse(bytes) {
            let arrival = Arrival::by_datagram(rx, bytes);
            send_error(cx, routes, associations, &arrival, ErrorCode::HopLimitExceeded.into(), &message);
        }
        return Some(Disposition::Consumed);
    }
    if let Some(mtu) = cx.out.path_mtus.too_long_for(cx.now, rx.destination, rx.payload)
        && let Ok(message) = Message::parse(bytes)
    {
        let arrival = Arrival::by_datagram(rx, bytes);
        send_error(cx, routes, associations, &arrival, Fault::too_large(mtu), &message);
        return Some(Disposition::Consumed);
    }
    let mut payload = rx.payload.to_vec();
    payload[MAGIC_BYTES + HOPS_OFFSET] = header.hops - 1;
    cx.out.count(if hosted { Counter::Declined } else { Counter::Bypassed });
    Some(Disposition::Forward { payload: Some(payload) })
}

pub(crate) const UNCHANGED: Disposition = Disposition::Forward { payload: None };
const MAGIC_BYTES: usize = size_of_val(&MAGIC);
const HOPS_OFFSET: usize = 1;
