// SPDX-License-Identifier: Apache-2.0
//! How long rows live without messages (RFC 5971 appendix B.5).

use std::time::Duration;

use netserv_model::SessionId;
use netserv_wire::gist::Mri;

use super::attach::remove;
use super::key::RouteKey;
use super::row::Route;
use super::table::Routes;
use crate::api::{FailReason, RouteId, SendStatus};
use crate::associations::Associations;
use crate::cx::Cx;

/// Sets the lifetime of an NSLP's rows, of all sessions or flows where none is named.
pub(crate) fn set_lifetimes(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    nslp_id: u16,
    session: Option<SessionId>,
    mri: Option<&Mri>,
    lifetime: Duration,
) {
    if let (Some(session), Some(mri)) = (session, mri) {
        if let Some(id) = routes.find(&RouteKey { session, nslp_id, mri: mri.clone() }) {
            set_lifetime(cx, routes, associations, id, lifetime);
        }
        return;
    }
    let fits =
        |key: &RouteKey| session.is_none_or(|session| key.session == session) && mri.is_none_or(|mri| key.mri == *mri);
    for id in routes.matching_of(nslp_id, fits) {
        set_lifetime(cx, routes, associations, id, lifetime);
    }
}

fn set_lifetime(
    cx: &mut Cx<'_>,
    routes: &mut Routes,
    associations: &mut Associations,
    id: RouteId,
    lifetime: Duration,
) {
    if lifetime.is_zero() {
        remove(cx, routes, associations, id, SendStatus::Failed(FailReason::Cancelled));
        return;
    }
    if let Some(querier) = routes.get_mut(id).and_then(Route::querier_mut) {
        querier.set_lifetime(cx.now, lifetime);
    }
    routes.arm(cx.timers, id);
}
