// SPDX-License-Identifier: Apache-2.0
//! What is done for one verb only. What a request changed along its path is noted once it is answered.

mod remove;
mod setup;
mod tell;

use netserv_wire::nslp::Response;

use crate::cx::{Cx, ExchangeKey};
use crate::exchanges::Exchanges;
use crate::off_path::OffPath;
use crate::sessions::Sessions;

pub(crate) use setup::look;
pub(crate) use tell::ends_here;

/// Takes note of what a request that is answered changed along its path.
pub(crate) fn answered(
    cx: &mut Cx<'_>,
    exchanges: &mut Exchanges,
    sessions: &mut Sessions,
    off_path: &mut OffPath,
    key: ExchangeKey,
    answer: &Response,
) {
    let Some(exchange) = exchanges.get(key).filter(|exchange| !exchange.message.is_dry_run()) else { return };
    if exchange.copy.is_some() {
        return off_path.brought.note_by(cx.now, key.0, exchange);
    }
    let Some(user) = exchange.message.user().cloned() else { return };
    setup::answered(cx, exchanges, sessions, key, &user, answer);
    remove::answered(cx, exchanges, sessions, key, &user, answer);
}
