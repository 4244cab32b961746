// SPDX-License-Identifier: Apache-2.0
//! TELL.

use netserv_model::NodeId;
use netserv_model::request::Body;
use netserv_model::target::{Scope, Target};
use netserv_wire::nslp::Message;

/// Returns whether a request ends at this node, as it is for no other: a TELL that names it alone. Whatever lies behind takes no
/// part in it, and no time.
pub(crate) fn ends_here(message: &Message, own: &NodeId) -> bool {
    let Target { scope, nodes, .. } = message.target();
    let is_named = matches!(&nodes[..], [only] if only == own);
    // By other scopes it is for this node only if it is the first or the last one.
    matches!(message.body(), Body::Tell(_)) && is_named && *scope == Scope::All
}
