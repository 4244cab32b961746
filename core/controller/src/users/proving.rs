// SPDX-License-Identifier: Apache-2.0
//! Requests whose users are not proven before an address has said what it knows of them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_model::effect::{EffectId, Job};
use netserv_model::request::Request;
use netserv_model::{Refusal, RefusalKind, share};

use crate::cx::Cx;
use crate::cx::effects::Purpose;
use crate::cx::request::PendingAnswer;
use crate::cx::timers::Timer;
use crate::limits::{PROOF_ANSWER_TIME_MAX, PROOFS_MAX, PROOFS_OF_SITE_MAX};

/// The requests that wait for that.
#[derive(Debug, Default)]
pub(crate) struct Proving {
    waiting: BTreeMap<EffectId, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    ticket: PendingAnswer,
    request: Request,
    site: IpAddr,
}

impl Proving {
    /// Has an address asked; until it answers, the request waits.
    pub(crate) fn ask(&mut self, cx: &mut Cx, ticket: PendingAnswer, request: Request, address: IpAddr) {
        let Some(user) = request.user.clone() else { return };
        let site = share::network(address, 24, 48);
        let of_site = self.waiting.values().filter(|waiting| waiting.site == site).count();
        if self.waiting.len() >= PROOFS_MAX || of_site >= PROOFS_OF_SITE_MAX {
            let detail = format!(
                "the node asks {PROOFS_MAX} addresses at a time whom they vouch for, {PROOFS_OF_SITE_MAX} of one site"
            );
            return cx.refuse(ticket, Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        let job = Job::AskAddress { address, user: user.clone(), tls: cx.policy.address_tls };
        let id = cx.start_effect(&user, job, Purpose::Prove);
        cx.timers.set(Timer::Prove(id), cx.now.instant + PROOF_ANSWER_TIME_MAX);
        self.waiting.insert(id, Waiting { ticket, request, site });
    }

    /// Returns the request that waited for an effect, unless it was given up.
    pub(crate) fn take(&mut self, cx: &mut Cx, id: EffectId) -> Option<(PendingAnswer, Request)> {
        cx.timers.cancel(&Timer::Prove(id));
        self.waiting.remove(&id).map(|waiting| (waiting.ticket, waiting.request))
    }

    /// An address did not answer in time.
    pub(crate) fn overdue(&mut self, cx: &mut Cx, id: EffectId) {
        if let Some((ticket, _)) = self.take(cx, id) {
            let detail =
                format!("the address did not say within {} s whom it vouches for", PROOF_ANSWER_TIME_MAX.as_secs());
            cx.refuse(ticket, Refusal::new(RefusalKind::FetchFailed, detail));
        }
    }
}
