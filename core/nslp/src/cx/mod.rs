// SPDX-License-Identifier: Apache-2.0
//! What every part of the signaling is given to work with, besides its own state.

mod burst;
mod config;
mod hop;
mod outbox;
mod peer;

use std::time::Duration;

use netserv_gist::{ApiCall, MessageHandle, SendOptions, TransferAttributes};
use netserv_model::domain::DomainPolicy;
use netserv_model::request::Body;
use netserv_model::{Instant, ModuleName, SessionId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::Message;
use rand::rngs::StdRng;

pub use config::{Config, LocalId, LocalPath, LocalRequest};
pub use outbox::Withdrawal;

pub(crate) use burst::{Burst, SourceBursts};
pub(crate) use hop::{hop_to, note_hop};
pub(crate) use outbox::{ExchangeKey, Outbox, Route, Sent};
pub(crate) use peer::{Asker, Received, remember};

/// One call's surroundings, lent to whoever handles it.
pub(crate) struct Cx<'a> {
    pub(crate) now: Instant,
    pub(crate) config: &'a Config,
    pub(crate) domain: &'a DomainPolicy,
    pub(crate) random: &'a mut StdRng,
    pub(crate) out: &'a mut Outbox,
}

impl Cx<'_> {
    /// Has GIST send a text's parts by a route.
    pub(crate) fn send(
        &mut self,
        what: Sent,
        route: Route<'_>,
        pieces: Vec<Vec<u8>>,
        timeout: Duration,
        hops: Option<u8>,
    ) {
        let Route { session, mri, sii, reliable, inside } = route;
        for data in pieces {
            let handle: MessageHandle = self.out.handle_for(what);
            self.out.call(ApiCall::SendMessage {
                handle,
                nslp_id: self.config.nslp_id,
                session,
                mri: mri.clone(),
                attributes: TransferAttributes { reliable, secure: false, inside },
                sii,
                timeout,
                data,
                hops,
                options: SendOptions::default(),
            });
        }
    }

    /// Has GIST keep its state of a session and flow for so long; zero ends it.
    pub(crate) fn keep_state(&mut self, session: SessionId, mri: Mri, lifetime: Duration) {
        let (nslp_id, session, mri) = (self.config.nslp_id, Some(session), Some(mri));
        self.out.call(ApiCall::SetStateLifetime { nslp_id, session, mri, lifetime });
    }

    /// Returns whether a request is to stay in the domain.
    pub(crate) fn stays_inside(&self, message: &Message) -> bool {
        !self.domain.let_out.have(message.body(), message.user())
    }
}

/// Returns the module that a request installs or removes.
pub(crate) fn module_of(body: &Body) -> Option<&ModuleName> {
    body.module().filter(|_| matches!(body, Body::Setup(_) | Body::Remove(_)))
}
