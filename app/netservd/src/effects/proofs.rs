// SPDX-License-Identifier: Apache-2.0
//! What addresses say of users: each is asked on a thread of its own. The controller bounds how many are asked at one time.

use std::net::IpAddr;
use std::sync::Arc;

use netserv_model::UserId;
use netserv_model::effect::EffectOutcome;
use netserv_model::policy::AddressTls;
use netserv_repository::Asker;

use super::ticket::Ticket;

/// Asks an address what it says of a user.
pub fn ask(asker: &Arc<Asker>, (address, user, tls): (IpAddr, UserId, AddressTls), ticket: Ticket) {
    let asker = Arc::clone(asker);
    let thread = std::thread::Builder::new().name("proof".to_owned());
    let asked = thread.spawn(move || match asker.ask(address, &user, tls) {
        Ok(said) => ticket.answer(EffectOutcome::Vouched(said), None),
        Err(refusal) => ticket.refuse(refusal),
    });
    if let Err(error) = asked {
        // The ticket is dropped with what the thread would have done, and refuses.
        tracing::error!(%error, "no thread to ask an address");
    }
}
