// SPDX-License-Identifier: Apache-2.0
//! A request as it came to this node.

use std::net::IpAddr;
use std::time::Duration;

use netserv_model::Refusal;
use netserv_wire::gist::Mri;
use netserv_wire::nslp::{Message, Spread};

use crate::cx::{Asker, ExchangeKey, LocalId};

/// A request as it came to this node.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// The request.
    pub message: Message,
    /// Who waits for the answer.
    pub requester: Requester,
    /// The flow, downstream; `None` for a request to this node alone.
    pub mri: Option<Mri>,
    /// By which address the previous hop knows this node.
    pub address: Option<IpAddr>,
    /// How long it may take.
    pub time: Duration,
    /// GIST hops that it may still travel; `None` for as many as GIST gives a message.
    pub hops: Option<u8>,
    /// Why this node does nothing, if it knows that without its controller.
    pub refusal: Option<Refusal>,
    /// Nodes that it passed before.
    pub passed: u32,
    /// The last node may send it back to its source.
    pub may_return: bool,
    /// It came from outside of the domain.
    pub is_outside: bool,
    /// Its path is looked for from the beginning, whatever GIST knows of it from the session's earlier messages.
    pub is_afresh: bool,
    /// The last node of its path sent it back.
    pub is_back: bool,
    /// It came to this node off its path, and may go so far.
    pub copy: Option<Spread>,
}

impl Arrival {
    /// Returns one of a request of this node's own, or one that it looks at a path with.
    pub(crate) fn own(message: Message, requester: Requester, mri: Option<Mri>, address: Option<IpAddr>) -> Arrival {
        Arrival {
            message,
            requester,
            mri,
            address,
            time: Duration::ZERO,
            hops: None,
            refusal: None,
            passed: 0,
            may_return: false,
            is_outside: false,
            is_afresh: false,
            is_back: false,
            copy: None,
        }
    }
}

/// Who waits for the answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Requester {
    /// Another exchange of this node, which is the last one of its path: this is the return path.
    Return(ExchangeKey),
    /// The previous node, as GIST names it; while a path changes, there may be several.
    Upstream(Vec<Asker>),
    /// Nobody: this node looks where the path leads.
    Nobody,
    /// Clients of this node.
    Local(Vec<LocalId>),
}
