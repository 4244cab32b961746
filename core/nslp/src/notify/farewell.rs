// SPDX-License-Identifier: Apache-2.0
//! A node that is going to stop tells whoever sent a SETUP for what it has.

use netserv_model::Instant;
use netserv_model::notify::NotifyEvent;

use super::tell::tell;
use crate::cx::Cx;
use crate::limits::{FAREWELL_INTERVAL, FAREWELL_TIME_MAX, FAREWELLS_AT_ONCE_MAX};
use crate::sessions::{LeaseId, Leases};

/// How far a node is with telling that it is going to stop, if it is.
#[derive(Debug, Default)]
pub(crate) struct Farewell(Option<Progress>);

#[derive(Debug)]
struct Progress {
    /// When the next ones are told; nothing once all are.
    at: Option<Instant>,
    /// The lease of which was told last.
    after: Option<LeaseId>,
    /// When it ends at the latest.
    until: Instant,
}

impl Farewell {
    /// Takes that the node is going to stop in order: whoever sent a SETUP for what it has is told, some at a time.
    pub(crate) fn begin(&mut self, cx: &mut Cx<'_>, leases: &mut Leases) {
        let begins = || Progress { at: Some(cx.now), after: None, until: cx.now + FAREWELL_TIME_MAX };
        self.0.get_or_insert_with(begins);
        self.go_on(cx, leases);
    }

    /// Tells the next ones, if that is due.
    pub(crate) fn go_on(&mut self, cx: &mut Cx<'_>, leases: &mut Leases) {
        let is_due = |farewell: &&mut Progress| farewell.at.is_some_and(|at| at <= cx.now);
        let Some(farewell) = self.0.as_mut().filter(is_due) else { return };
        let ids: Vec<LeaseId> = leases.after(farewell.after).take(FAREWELLS_AT_ONCE_MAX).collect();
        farewell.after = ids.last().copied();
        let goes_on = ids.len() == FAREWELLS_AT_ONCE_MAX && cx.now < farewell.until;
        farewell.at = goes_on.then(|| cx.now + FAREWELL_INTERVAL);
        for id in ids {
            let detail = format!("{} is about to stop; what is installed starts with it again", cx.config.node);
            tell(cx, leases, id, NotifyEvent::NodeDraining, Vec::new(), &detail);
        }
    }

    /// Returns whether all are told and no news are on their way, or the time for that is up.
    pub(crate) fn is_over(&self, now: Instant, has_news: bool) -> bool {
        self.0.as_ref().is_some_and(|farewell| farewell.until <= now || (farewell.at.is_none() && !has_news))
    }

    /// Returns when something is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|farewell| farewell.at)
    }
}
