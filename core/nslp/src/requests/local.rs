// SPDX-License-Identifier: Apache-2.0
//! Requests of the node's own clients.

use std::time::Duration;

use netserv_model::{Refusal, RefusalKind};
use netserv_wire::gist::{Mri, PathCoupled};
use netserv_wire::nslp::Message;

use super::progress::{make_room, start};
use super::state::Requests;
use crate::cx::{Cx, ExchangeKey, LocalId, LocalPath, LocalRequest};
use crate::exchanges::{Arrival, Exchanges, Requester, misdirected, result};
use crate::limits::WAITERS_MAX;
use crate::sessions::SessionIds;

/// Takes the request of a local client.
pub(crate) fn on_local(
    cx: &mut Cx<'_>,
    requests: &mut Requests,
    ids: &SessionIds,
    request: LocalRequest,
) -> Result<(), Refusal> {
    let LocalRequest { id, message: text, path, session, timeout } = request;
    let message = Message::parse(text.as_bytes())?;
    cx.out.counters.requests_local += 1;
    // Nodes that came since are found by those who do not say that they go on with a session.
    let is_afresh = session.is_none();
    let session = session.unwrap_or_else(|| ids.of(cx.random, &message, path));
    let key = (session, message.nonce());
    if requests.exchanges.contains(key) {
        return on_duplicate(cx, &mut requests.exchanges, key, &message, id);
    }
    let flow = |path: LocalPath| PathCoupled::new(path.source, path.destination).map(Mri::PathCoupled);
    let mri = match path.map(flow) {
        None => None,
        Some(Some(mri)) => Some(mri),
        Some(None) => {
            let detail = "the path's source and destination are of two IP versions";
            return Err(Refusal::new(RefusalKind::BadRequest, detail));
        }
    };
    if let Some(refusal) = misdirected(&message, mri.as_ref(), true) {
        return Err(refusal);
    }
    make_room(cx, requests, &message, true)?;
    let time = if timeout.is_zero() { cx.config.timeout_default } else { timeout };
    let own = &cx.config.own_addresses;
    let address = path.map(|path| path.source).or_else(|| own.first().copied());
    let may_return = path.is_some_and(|path| own.contains(&path.source));
    let arrival = Arrival::own(message, Requester::Local(vec![id]), mri, address);
    start(cx, requests, key, Arrival { time, may_return, is_afresh, ..arrival });
    Ok(())
}

fn on_duplicate(
    cx: &mut Cx<'_>,
    exchanges: &mut Exchanges,
    key: ExchangeKey,
    message: &Message,
    id: LocalId,
) -> Result<(), Refusal> {
    cx.out.counters.requests_duplicate += 1;
    let exchange = exchanges.get_mut(key).expect("the caller found it");
    if exchange.message.as_str() != message.as_str() {
        let detail = "another request of this session has the same nonce";
        return Err(Refusal::new(RefusalKind::Replayed, detail));
    }
    if let Some(answer) = exchange.answer.clone() {
        cx.out.result(id, result(answer, Duration::ZERO));
        return Ok(());
    }
    match &mut exchange.requester {
        Requester::Local(waiters) if waiters.len() < WAITERS_MAX => {
            waiters.push(id);
            Ok(())
        }
        Requester::Local(_) => {
            let detail = format!("{WAITERS_MAX} callers wait for this request already");
            Err(Refusal::new(RefusalKind::QuotaExceeded, detail))
        }
        requester @ Requester::Nobody => {
            *requester = Requester::Local(vec![id]);
            Ok(())
        }
        Requester::Upstream(_) | Requester::Return(_) => {
            Err(Refusal::new(RefusalKind::Replayed, "this request came from another node already"))
        }
    }
}
