// SPDX-License-Identifier: Apache-2.0
//! What addresses say of users, and who is behind checklists: each question is answered on a thread of its own. The controller bounds
//! how many there are at one time.

use std::net::IpAddr;
use std::sync::Arc;

use netserv_model::effect::EffectOutcome;
use netserv_model::evidence::{Checklist, Holder};
use netserv_model::policy::AddressTls;
use netserv_model::{Digest, Refusal, RefusalKind, UserId};
use netserv_repository::Asker;
use netserv_rpki::{Cache, Invalid, Spoken};

use super::ticket::Ticket;
use crate::logs::wall;

/// Asks an address what it says of a user.
pub fn ask(asker: &Arc<Asker>, (address, user, tls): (IpAddr, UserId, AddressTls), ticket: Ticket) {
    let asker = Arc::clone(asker);
    ticket.answer_apart("proof", move || asker.ask(address, &user, tls).map(EffectOutcome::Vouched));
}

/// Finds out who is behind a checklist that has to name a grant.
pub fn find_holder(cache: Option<&Arc<Cache>>, checklist: Checklist, grant: Digest, ticket: Ticket) {
    let Some(cache) = cache.map(Arc::clone) else {
        return ticket.refuse(Refusal::new(RefusalKind::BadProof, "the node has no cache of the RPKI"));
    };
    ticket.answer_apart("proof", move || {
        let now = wall();
        let found = cache.check(checklist.der(), &grant, now);
        let refusal = |invalid: Invalid| {
            let kind = if invalid.may_pass() { RefusalKind::FetchFailed } else { RefusalKind::BadProof };
            Refusal::new(kind, format!("checklist: {invalid}"))
        };
        found.map(|Spoken { prefixes, until }| EffectOutcome::Held(Holder { prefixes, until })).map_err(refusal)
    });
}
