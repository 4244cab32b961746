// SPDX-License-Identifier: Apache-2.0
//! Requests whose users are not proven before somebody was asked: an address what it says of them, the RPKI who is behind a
//! checklist. The latter is asked again and again, as the answer may change.

use std::collections::BTreeMap;
use std::net::IpAddr;

use netserv_authority::Question;
use netserv_model::effect::{EffectId, Job};
use netserv_model::request::Request;
use netserv_model::{Refusal, RefusalKind, UserId, share};

use crate::cx::Cx;
use crate::cx::effects::{Checking, Purpose};
use crate::cx::request::PendingAnswer;
use crate::cx::timers::Timer;
use crate::limits::{PROOF_ANSWER_TIME_MAX, PROOFS_MAX, PROOFS_OF_PEERS_MAX, PROOFS_OF_SITE_MAX};

/// The requests that wait for that.
#[derive(Debug, Default)]
pub(crate) struct Proving {
    waiting: BTreeMap<EffectId, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    ticket: PendingAnswer,
    request: Request,
    asked: Asked,
    /// The site of the address that is asked.
    site: Option<IpAddr>,
    /// The site of the peer that brought the request; nothing if that was a client of this node.
    peer: Option<IpAddr>,
}

/// Who is asked. Addresses may be slow, and checklists do not wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Address,
    Holder,
}

impl Proving {
    /// Has a question asked; until it is answered, the request waits.
    pub(crate) fn ask(&mut self, cx: &mut Cx, ticket: PendingAnswer, request: Request, question: Question) {
        let Some(user) = request.user.clone() else { return };
        let (asked, address) = match &question {
            Question::Address(address) => (Asked::Address, Some(*address)),
            Question::Holder { .. } => (Asked::Holder, None),
        };
        let [site, peer] = [address, request.from].map(|of| of.map(|address| share::network(address, 24, 48)));
        let alike = || self.waiting.values().filter(|waiting| waiting.asked == asked);
        let of_site = alike().filter(|waiting| site.is_some() && waiting.site == site).count();
        let of_peer = alike().filter(|waiting| peer.is_some() && waiting.peer == peer).count();
        if alike().count() >= PROOFS_MAX || of_site >= PROOFS_OF_SITE_MAX || of_peer >= PROOFS_OF_PEERS_MAX {
            let detail = format!(
                "the node asks {PROOFS_MAX} questions at a time who vouches for users, {PROOFS_OF_PEERS_MAX} for peers of \
                 one site, and {PROOFS_OF_SITE_MAX} of the addresses of one"
            );
            return cx.refuse(ticket, Refusal::new(RefusalKind::QuotaExceeded, detail));
        }
        let job = job_of(cx, question, &user, false);
        let id = cx.start_effect(&user, job, Purpose::Prove);
        cx.timers.set(Timer::Prove(id), cx.now.instant + PROOF_ANSWER_TIME_MAX);
        self.waiting.insert(id, Waiting { ticket, request, asked, site, peer });
    }

    /// Returns the request that waited for an effect, unless it was given up.
    pub(crate) fn take(&mut self, cx: &mut Cx, id: EffectId) -> Option<(PendingAnswer, Request)> {
        cx.timers.cancel(&Timer::Prove(id));
        self.waiting.remove(&id).map(|waiting| (waiting.ticket, waiting.request))
    }

    /// A question was not answered in time.
    pub(crate) fn overdue(&mut self, cx: &mut Cx, id: EffectId) {
        if let Some((ticket, request)) = self.take(cx, id) {
            let seconds = PROOF_ANSWER_TIME_MAX.as_secs();
            let refusal = match request.checklist {
                Some(_) => nobody_found(),
                None => {
                    let detail = format!("the address did not say within {seconds} s whom it vouches for");
                    Refusal::new(RefusalKind::FetchFailed, detail)
                }
            };
            cx.refuse(ticket, refusal);
        }
    }
}

/// Has the checklists looked at again, one after the other: that of the next user after one, or the first. If one is being looked at, the rest
/// follows anyway.
pub(crate) fn check_again(cx: &mut Cx, after: Option<&UserId>) {
    if cx.checking.is_some() {
        return;
    }
    if after.is_none() {
        cx.checked_from = cx.now.instant;
    }
    let next = cx.authority.next_checklist(after).map(|(user, question)| (user.clone(), question));
    match next {
        Some((user, question)) => {
            let Question::Holder { checklist, .. } = &question else { return };
            let checklist = checklist.clone();
            let job = job_of(cx, question, &user, true);
            let id = cx.start_effect(&user, job, Purpose::CheckAgain);
            let checking = Checking { id, user, checklist, started: cx.now.instant };
            cx.timers.set(Timer::Checklists, checking.until());
            cx.checking = Some(checking);
        }
        None => cx.watch_checklists(cx.checked_from),
    }
}

/// Says that it was not found out in time who is behind a checklist.
pub(crate) fn nobody_found() -> Refusal {
    let seconds = PROOF_ANSWER_TIME_MAX.as_secs();
    let detail = format!("the node did not find out within {seconds} s who is behind the checklist");
    Refusal::new(RefusalKind::FetchFailed, detail)
}

fn job_of(cx: &Cx, question: Question, user: &UserId, is_again: bool) -> Job {
    match question {
        Question::Address(address) => Job::AskAddress { address, user: user.clone(), tls: cx.policy.address_tls },
        Question::Holder { checklist, grant } => Job::FindHolder { checklist, grant, is_again },
    }
}
