// SPDX-License-Identifier: Apache-2.0
//! Leases after a REMOVE: each goes on as long as a node holds the module by it.

use netserv_model::notify::NotifyEvent;
use netserv_model::request::Outcome;
use netserv_model::target::Target;
use netserv_model::{Instant, RefusalKind, SessionId};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::Message;

use super::Nslp;
use crate::exchange::{Beyond, Exchange, Own};
use crate::leases::{Installed, Lease};

impl Nslp {
    /// Ends the leases of a REMOVE's session family toward its destination, each if no node holds the module by it any more. If only other
    /// nodes hold it, this node follows its path for them. A REMOVE for all sessions that removed the module here also ends the
    /// leases of other families.
    pub(super) fn remove_leases(
        &mut self,
        now: Instant,
        session: SessionId,
        Installed { user, module }: &Installed,
        mri: Option<&Mri>,
        (ends_all, done): (bool, &Done),
    ) {
        let toward = |mri: &Mri| (mri.direction(), mri.addresses().map(|(_, destination)| destination));
        for id in self.leases.all_of_module(user, module) {
            let Some(lease) = self.leases.get(id) else { continue };
            let is_its = mri.is_some_and(|mri| toward(mri) == toward(&lease.mri));
            if is_its && lease.session.family() == session.family() {
                match done.holders(lease) {
                    Holders::Nobody => {
                        self.leave(id);
                        if let Some(lease) = self.end_lease(id) {
                            self.forget_answer(&lease);
                            self.withdrawn.remember(now, &lease);
                        }
                    }
                    Holders::OthersOnly => {
                        let (session, nonce) = (lease.session, lease.nonce);
                        self.leases.change(id, |lease| lease.is_here = false);
                        self.forget_answered((session, nonce));
                    }
                    Holders::ThisNode => {}
                }
            } else if ends_all && lease.is_here {
                self.tell(now, id, NotifyEvent::LeaseEnded, Vec::new(), "its user removed it");
                self.lose_lease(id);
            }
        }
    }
}

/// What a REMOVE did here and further on.
pub(super) struct Done {
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
    pub(super) fn of(exchange: &Exchange) -> Done {
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
