// SPDX-License-Identifier: Apache-2.0
//! What a module may send.

use std::net::IpAddr;

use ipnet::IpNet;
use netserv_model::{DropReason, Flow};
use netserv_wire::ip::IpView;

/// Returns the flow of a packet that a module changed or made, if the packet may be sent.
///
/// `before` is what it was. A source that is not the user's may stay only on a packet that goes where it went, or to
/// the user: sent to anybody else, it would be a packet in another's name.
pub(super) fn judge(bytes: &[u8], before: Option<&Flow>, prefixes: &[IpNet]) -> Result<Flow, DropReason> {
    let view = IpView::parse(bytes).map_err(|_| DropReason::BadVerdict)?;
    if view.bytes().len() != bytes.len() {
        // The driver would not send it.
        return Err(DropReason::BadVerdict);
    }
    if view.names_other_addresses() {
        return Err(DropReason::RouteRefused);
    }
    let flow = view.flow();
    let own = |address: IpAddr| prefixes.iter().any(|prefix| prefix.contains(&address));
    let stays = |before: &Flow| before.destination == flow.destination || own(flow.destination);
    let kept = before.is_some_and(|before| before.source == flow.source && stays(before));
    if kept || own(flow.source) { Ok(flow) } else { Err(DropReason::SourceRefused) }
}
