// SPDX-License-Identifier: Apache-2.0
//! Names of modules, and requests that are to be answered.

use netserv_model::audit::Proven;
use netserv_model::effect::{RequestId, Wish};
use netserv_model::{Instant, ModuleName, Nonce, Refusal, RefusalKind, SessionId, UserId};

/// Names a module on the node.
pub(crate) type Key = (UserId, ModuleName);

/// A request that must be answered; using it up is answering.
#[derive(Debug)]
pub(crate) struct PendingAnswer {
    pub(crate) request: RequestId,
    pub(crate) method: &'static str,
    pub(crate) received: Instant,
    /// By what it is proven to be of the user whom it names, once it is.
    pub(crate) proven: Option<Proven>,
}

/// Where a request is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) session: SessionId,
    /// Unknown only of what an earlier version stored.
    pub(crate) nonce: Option<Nonce>,
    /// What it wants the module to be, if it is a SETUP; likewise.
    pub(crate) wish: Option<Wish>,
}

/// Says that there is nothing to remove.
pub(crate) fn not_installed(key: &Key) -> Refusal {
    Refusal::new(RefusalKind::NotInstalled, format!("no module {} of user `{}`", key.1, key.0))
}
