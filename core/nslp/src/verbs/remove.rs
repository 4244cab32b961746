// SPDX-License-Identifier: Apache-2.0
//! REMOVE: each lease goes on as long as a node holds the module by it.

use netserv_model::notify::NotifyEvent;
use netserv_model::request::{Body, Outcome};
use netserv_model::target::Target;
use netserv_model::{RefusalKind, UserId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::{Message, Response};

use crate::cx::{Cx, ExchangeKey};
use crate::exchanges::{Beyond, Exchange, Exchanges, Own};
use crate::notify::tell;
use crate::sessions::{Lease, Sessions, end_lease, leave, lose_lease};

/// Ends the leases of a REMOVE's session family toward its destination, each if no node holds the module by it any more. If only other
/// nodes hold it, this node follows its path for them. A REMOVE for all sessions that removed the module here also ends the
/// leases of other families.
pub(super) fn answered(
    cx: &mut Cx<'_>,
    exchanges: &mut Exchanges,
    sessions: &mut Sessions,
    key: ExchangeKey,
    user: &UserId,
    answer: &Response,
) {
    let Some(exchange) = exchanges.get(key) else { return };
    let Body::Remove(remove) = exchange.message.body() else { return };
    if !answer.entries.iter().any(|entry| entry.outcome == Outcome::Removed) {
        return;
    }
    let module = remove.module.clone();
    let ends_all = (remove.all || remove.epoch.is_some()) && exchange.own.removed();
    let (mri, done) = (exchange.mri.clone(), Done::of(exchange));
    let toward = |mri: &Mri| (mri.direction(), mri.addresses().map(|(_, destination)| destination));
    for id in sessions.leases.all_of_module(user, &module) {
        let Some(lease) = sessions.leases.get(id) else { continue };
        let setup = (lease.session, lease.nonce);
        let is_its = mri.as_ref().is_some_and(|mri| toward(mri) == toward(&lease.mri));
        if is_its && lease.session.family() == key.0.family() {
            match done.holders(lease) {
                Holders::Nobody => {
                    leave(cx, &mut sessions.leases, id);
                    if let Some(lease) = end_lease(cx, exchanges, &mut sessions.leases, id) {
                        exchanges.forget_answer(cx, setup);
                        sessions.withdrawn.remember(cx.now, &lease);
                    }
                }
                Holders::OthersOnly => {
                    sessions.leases.change(id, |lease| lease.is_here = false);
                    exchanges.forget_answer(cx, setup);
                }
                Holders::ThisNode => {}
            }
        } else if ends_all && lease.is_here {
            let detail = "its user removed it";
            tell(cx, &mut sessions.leases, id, NotifyEvent::LeaseEnded, Vec::new(), detail);
            lose_lease(cx, exchanges, sessions, id);
        }
    }
}

/// What a REMOVE did here and further on.
struct Done {
    target: Target,
    /// The module is not on this node any more.
    here: bool,
    /// No node further on has it any more.
    beyond: bool,
}

/// Who has a module by a lease after a REMOVE.
enum Holders {
    Nobody,
    /// Nodes further on.
    OthersOnly,
    /// This node, at least.
    ThisNode,
}

impl Done {
    fn of(exchange: &Exchange) -> Done {
        let is_gone =
            |outcome: &Outcome| *outcome == Outcome::Removed || outcome.is_refused_for(RefusalKind::NotInstalled);
        let here = matches!(&exchange.own, Own::Reported(report) if is_gone(&report.outcome));
        let beyond = match &exchange.beyond {
            Beyond::Waiting { .. } => false,
            Beyond::Known { entries, incomplete, withheld, .. } => {
                let all_gone = entries.iter().all(|entry| is_gone(&entry.outcome));
                all_gone && incomplete.is_none() && withheld.nodes == 0
            }
        };
        Done { target: exchange.message.target().clone(), here, beyond }
    }

    /// Returns who has a module by a lease now. A REMOVE for all nodes that the lease's SETUP was for leaves nobody: nodes that
    /// it did not reach are told by TEAR.
    fn holders(&self, lease: &Lease) -> Holders {
        if lease.is_here && !self.here {
            return Holders::ThisNode;
        }
        let reaches_all = self.target == Target::default() || {
            let setup = Message::parse(lease.text.whole().as_bytes());
            setup.is_ok_and(|setup| *setup.target() == self.target)
        };
        if reaches_all || self.beyond { Holders::Nobody } else { Holders::OthersOnly }
    }
}
