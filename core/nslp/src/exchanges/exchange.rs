// SPDX-License-Identifier: Apache-2.0
//! One request on this node, from its arrival until it is forgotten.

use std::net::IpAddr;
use std::time::Duration;

use netserv_gist::SiiHandle;
use netserv_model::effect::RequestId;
use netserv_model::off_path::Off;
use netserv_model::request::{NodeReport, Outcome, PathEnd, ReturnStack, Withheld};
use netserv_model::{Instant, Refusal};
use netserv_wire::gist::Mri;
use netserv_wire::nslp::{Message, Response, Spread};

use super::arrival::{Arrival, Requester};
use super::copies::Copies;
use crate::limits::{BUDGET_MIN, HOP_TIME, RESENDS_MAX};

/// One request on this node.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// How the controller knows it.
    pub request: RequestId,
    /// Who waits for the answer.
    pub requester: Requester,
    /// The request.
    pub message: Message,
    /// The flow, downstream; `None` for a request to this node alone.
    pub mri: Option<Mri>,
    /// By which address the previous hop knows this node.
    pub address: Option<IpAddr>,
    /// When it came.
    pub started: Instant,
    /// How long it may take.
    pub time: Duration,
    /// When it is answered at the latest; once it is finished, when it is forgotten.
    pub timer: Instant,
    /// GIST hops that it may still travel; `None` for as many as GIST gives a message.
    pub hops: Option<u8>,
    /// Nodes that it passed before.
    pub passed: u32,
    /// The last node may send it back to its source.
    pub may_return: bool,
    /// What became of it on its return path, if this node sent it there.
    pub returning: Returning,
    /// Why it is not for this node, if its place or name is not meant.
    pub passed_by: Option<String>,
    /// The controller knows its user, or it is for this node.
    pub is_vouched: bool,
    /// The controller has found that it is of the user whom it names.
    pub is_proven: bool,
    /// A next node got it, or could not be looked for.
    pub has_next: bool,
    /// It was sent to the next node, so GIST may have state for it.
    pub goes_on: bool,
    /// What this node says.
    pub own: Own,
    /// What the nodes further on say.
    pub beyond: Beyond,
    /// Who said what [`Exchange::beyond`] has.
    pub downstream: Option<SiiHandle>,
    /// The next node that GIST named last while this was under way.
    pub moved: Option<SiiHandle>,
    /// Whoever asked said since that the path leads elsewhere.
    pub torn: bool,
    /// It came from outside of the domain.
    pub is_outside: bool,
    /// Its path is looked for from the beginning, whatever GIST knows of it from the session's earlier messages.
    pub is_afresh: bool,
    /// The last node of its path sent it back.
    pub is_back: bool,
    /// It came to this node off its path, and may go so far.
    pub copy: Option<Spread>,
    /// Its copies to neighbours off the path.
    pub copies: Copies,
    /// The answer, once it is finished.
    pub answer: Option<Response>,
}

/// What became of a request on its return path.
#[derive(Debug)]
pub(crate) enum Returning {
    /// It was not sent back.
    No,
    /// It is on its way.
    Waiting,
    /// What the nodes there said.
    Known(ReturnStack),
}

/// What this node says.
#[derive(Debug)]
pub(crate) enum Own {
    /// It is not known yet whether the request is for this node.
    Unasked,
    /// The controller still works on it.
    Pending,
    /// The controller's report.
    Reported(Box<NodeReport>),
    /// A host that has nothing to say.
    LeftOut,
}

impl Own {
    /// Returns whether this node removed what it was asked to.
    pub(crate) fn removed(&self) -> bool {
        matches!(self, Own::Reported(report) if report.outcome == Outcome::Removed)
    }
}

/// What the nodes further on say.
#[derive(Debug)]
pub(crate) enum Beyond {
    /// The request went on, or waits for a handshake.
    Waiting {
        /// GIST said that it went to a peer.
        sent: bool,
        /// Times that it may be sent again.
        resends_left: u8,
    },
    /// Their entries, or none if this node is the last one.
    Known {
        /// Nearest first.
        entries: Vec<NodeReport>,
        /// Why the entries end before the last node, if they do.
        incomplete: Option<Refusal>,
        /// What proves that they do not; nothing if no path was asked.
        end: Option<PathEnd>,
        /// How many of the entries, at the far end, are of nodes outside of the domain.
        foreign: usize,
        /// The nodes that have no entry, since their operators do not show it.
        withheld: Withheld,
        /// What nodes off the path further on say.
        beside: Off,
    },
}

impl Beyond {
    /// Returns the state of a request that goes on.
    pub(crate) fn waiting() -> Beyond {
        Beyond::Waiting { sent: false, resends_left: RESENDS_MAX }
    }

    /// Returns that there is nobody further on, by this proof.
    pub(crate) fn nobody(end: Option<PathEnd>) -> Beyond {
        Beyond::Known {
            entries: Vec::new(),
            incomplete: None,
            end,
            foreign: 0,
            withheld: Withheld::default(),
            beside: Off::default(),
        }
    }

    /// Returns that nothing is known of those further on.
    pub(crate) fn unknown(refusal: Refusal) -> Beyond {
        let incomplete = Some(refusal);
        Beyond::Known {
            entries: Vec::new(),
            incomplete,
            end: None,
            foreign: 0,
            withheld: Withheld::default(),
            beside: Off::default(),
        }
    }

    /// Returns whether a request like this was sent more than once.
    pub(crate) fn was_resent(&self) -> bool {
        matches!(self, Beyond::Waiting { resends_left, .. } if *resends_left < RESENDS_MAX)
    }
}

impl Exchange {
    /// Returns the exchange that an arrival begins.
    pub(crate) fn new(now: Instant, request: RequestId, arrival: Arrival, beyond: Beyond) -> Exchange {
        let Arrival { message, requester, mri, address, time, hops, passed, may_return, .. } = arrival;
        let (is_outside, is_afresh, is_back, copy) =
            (arrival.is_outside, arrival.is_afresh, arrival.is_back, arrival.copy);
        // Who sends a request back said on the path there what it has to say, unless it is for the return path alone.
        let has_said = matches!(requester, Requester::Return(_)) && !message.is_for_way_back();
        let own = if has_said { Own::LeftOut } else { Own::Unasked };
        Exchange {
            request,
            requester,
            message,
            mri,
            address,
            started: now,
            time,
            timer: now + time,
            hops,
            passed,
            may_return,
            returning: Returning::No,
            passed_by: None,
            is_vouched: true,
            is_proven: false,
            has_next: matches!(beyond, Beyond::Known { incomplete: Some(_), .. }),
            goes_on: matches!(beyond, Beyond::Waiting { .. }),
            own,
            beyond,
            downstream: None,
            moved: None,
            torn: false,
            is_outside,
            is_afresh,
            is_back,
            copy,
            copies: Copies::default(),
            answer: None,
        }
    }

    /// Returns whether the answer is still to come.
    pub(crate) fn is_pending(&self) -> bool {
        self.answer.is_none()
    }

    /// Returns whether it went on, has no answer yet, and can be sent once more.
    pub(crate) fn may_be_resent(&self, now: Instant) -> bool {
        let waits = matches!(self.beyond, Beyond::Waiting { sent: true, resends_left: 1.. });
        waits && self.budget(now).is_some()
    }

    /// Returns how long the next node may take to answer a request that is sent on now.
    pub(crate) fn budget(&self, now: Instant) -> Option<Duration> {
        budget_of(self.timer.since(now))
    }

    /// Returns how long the lease runs that a SETUP of this length brought: as this node's controller says. Where the SETUP is
    /// for others, and on a host, what its own clients install runs as long as the answer tells, and not longer than was
    /// asked for.
    pub(crate) fn lease_time(&self, answer: &Response, ttl: Duration, host_only: bool) -> Option<Duration> {
        let seconds = match &self.own {
            Own::Reported(report) if report.outcome.is_not_targeted() && self.is_vouched => longest_lease(answer),
            Own::Reported(report) => report.outcome.lease_s(),
            Own::LeftOut if matches!(self.requester, Requester::Return(_)) => longest_lease(answer),
            Own::LeftOut if host_only && !matches!(self.requester, Requester::Upstream(_)) => longest_lease(answer),
            Own::Unasked | Own::Pending | Own::LeftOut => None,
        };
        seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds).min(ttl))
    }

    /// Returns whether the controller said that the SETUP's module runs here.
    pub(crate) fn runs_here(&self) -> bool {
        matches!(&self.own, Own::Reported(report) if report.outcome.lease_s().is_some())
    }

    /// Returns whether the request was for others, and its user is known here.
    pub(crate) fn is_passed_on(&self) -> bool {
        matches!(&self.own, Own::Reported(report) if report.outcome.is_not_targeted()) && self.is_vouched
    }

    /// Returns whether no node comes after this one, as far as is known; nothing while that is not.
    pub(crate) fn is_last(&self) -> Option<bool> {
        match &self.beyond {
            Beyond::Waiting { .. } => None,
            Beyond::Known { entries, incomplete, withheld, .. } => {
                let nobody_answered = entries.is_empty() && withheld.nodes == 0;
                Some(nobody_answered && (incomplete.is_none() || !self.has_next))
            }
        }
    }

    /// Returns whether a node further on did what is asked.
    pub(crate) fn is_done_beyond(&self) -> bool {
        let done = |entry: &NodeReport| entry.outcome.lease_s().is_some() || matches!(entry.outcome, Outcome::Removed);
        match &self.beyond {
            Beyond::Waiting { .. } => false,
            Beyond::Known { entries, withheld, .. } => withheld.lease_s > 0 || entries.iter().any(done),
        }
    }

    /// Returns whether nothing more is waited for.
    pub(crate) fn is_ready(&self) -> bool {
        let is_back = !matches!(self.returning, Returning::Waiting) && !self.copies.are_waited_for();
        is_back && !matches!(self.own, Own::Unasked | Own::Pending) && !matches!(self.beyond, Beyond::Waiting { .. })
    }
}

/// Returns how long the next node may take to answer in time for this one, if that has so long; nothing if it is too short.
pub(crate) fn budget_of(time: Duration) -> Option<Duration> {
    let budget = time - HOP_TIME.min(time / 2);
    Some(budget).filter(|budget| *budget >= BUDGET_MIN)
}

/// Returns the seconds of the lease that ends last, of those that an answer tells of; nothing if no node has one.
pub(crate) fn longest_lease(answer: &Response) -> Option<u64> {
    let shown = answer.entries.iter().filter_map(|entry| entry.outcome.lease_s());
    shown.chain(Some(answer.withheld.lease_s)).max().filter(|seconds| *seconds > 0)
}
