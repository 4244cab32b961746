// SPDX-License-Identifier: Apache-2.0
//! Routes that an NSLP says may be wrong (RFC 5971 §7.1, appendix B.6).

use std::net::IpAddr;

use netserv_model::SessionId;
use netserv_wire::gist::Mri;

use super::handshake::start;
use crate::api::{ApiError, FailReason, Notification, RouteId, RouteStatus, SendStatus};
use crate::associations::Associations;
use crate::cx::Cx;
use crate::limits;
use crate::messages::is_reached;
use crate::routing::{self, Phase, Querier, Route, RouteKey, Routes, query_target};

/// What an NSLP says of routes that may be wrong.
pub(crate) struct Doubt {
    /// `None` for all.
    pub(crate) nslp_id: Option<u16>,
    /// `None` for all.
    pub(crate) session: Option<SessionId>,
    pub(crate) mri: Mri,
    pub(crate) bad: bool,
    /// What the next handshake says to the NSLP that it finds.
    pub(crate) data: Option<Vec<u8>>,
}

impl Doubt {
    fn is_about(&self, key: &RouteKey) -> bool {
        self.nslp_id.is_none_or(|nslp_id| key.nslp_id == nslp_id)
            && self.session.is_none_or(|session| key.session == session)
            && key.mri == self.mri
    }
}

/// Has rows checked or, if they are bad, made anew; `local` is the node's address in their direction now.
pub(crate) fn invalidate(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    doubt: &Doubt,
    local: IpAddr,
) -> Result<(), ApiError> {
    let bytes = doubt.data.as_ref().map_or(0, Vec::len);
    if bytes > limits::HANDSHAKE_DATA_BYTES_MAX {
        return Err(ApiError::TooLarge { bytes, max: limits::HANDSHAKE_DATA_BYTES_MAX });
    }
    for id in doubted(routes, doubt) {
        let querying = routes.get_mut(id).is_some_and(|route| {
            let Some(querier) = route.querier_mut() else { return false };
            querier.set_payload(doubt.data.clone());
            if is_reached(local) {
                route.set_local(local);
            }
            true
        });
        match (querying, doubt.bad) {
            (true, true) => {
                note(cx, routes, id, RouteStatus::Bad);
                routing::attach(cx, routes, associations, id, None);
                routes.set_peer(id, None);
                start(cx, routes, id, Phase::Asking, cx.now);
            }
            (true, false) => {
                let phase = routes.get(id).and_then(Route::querier).map(Querier::phase);
                note(cx, routes, id, RouteStatus::Tentative);
                if phase == Some(Phase::Established) {
                    start(cx, routes, id, Phase::Refreshing, cx.now);
                }
            }
            (false, true) => {
                note(cx, routes, id, RouteStatus::Bad);
                routing::remove(cx, routes, associations, id, SendStatus::Failed(FailReason::Cancelled));
            }
            (false, false) => {}
        }
    }
    Ok(())
}

/// Returns the rows that a doubt is about.
fn doubted(routes: &Routes, doubt: &Doubt) -> Vec<RouteId> {
    let fits = |key: &RouteKey| doubt.is_about(key);
    match (doubt.nslp_id.zip(doubt.session), query_target(&doubt.mri).filter(|_| !doubt.bad)) {
        (Some((nslp_id, session)), _) => {
            routes.find(&RouteKey { session, nslp_id, mri: doubt.mri.clone() }).into_iter().collect()
        }
        (None, Some(target)) => {
            let fits = |id: &RouteId| routes.get(*id).is_some_and(|route| fits(route.key()));
            routes.asking(target).filter(fits).collect()
        }
        (None, None) => match doubt.nslp_id {
            Some(nslp_id) => routes.matching_of(nslp_id, fits),
            None => routes.matching(fits),
        },
    }
}

/// Tells the NSLP that the row's peer, if there is one, is not as good as it was.
fn note(cx: &mut Cx<'_>, routes: &mut Routes, id: RouteId, status: RouteStatus) {
    let Some(route) = routes.get_mut(id).filter(|route| route.peer().is_some()) else { return };
    if let Some(querier) = route.querier_mut() {
        querier.doubt();
    }
    routes.notify(cx.out, id, Notification::StatusChange(status));
}
