// SPDX-License-Identifier: Apache-2.0
//! What waits to be polled, what sent messages stand for, and the counters.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use netserv_gist::{ApiCall, MessageHandle, SiiHandle};
use netserv_model::api::RequestResult;
use netserv_model::effect::RequestId;
use netserv_model::notify::Notify;
use netserv_model::request::Request;
use netserv_model::{ModuleName, Nonce, SessionId, UserId};
use netserv_wire::gist::Mri;

use super::config::LocalId;
use crate::counters::Counters;

/// Names an exchange.
pub(crate) type ExchangeKey = (SessionId, Nonce);

/// A module that is to go, since the path of the SETUP that installed it leads elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// Its owner.
    pub user: UserId,
    /// The module.
    pub module: ModuleName,
    /// The nonce of the SETUP: what came after it stays.
    pub nonce: Nonce,
}

/// What a message handle stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sent {
    Request(ExchangeKey),
    /// A request to a neighbour off the path.
    Copy(ExchangeKey, IpAddr),
    Answer,
    News,
}

/// Where a message goes.
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    pub(crate) session: SessionId,
    pub(crate) mri: &'a Mri,
    /// A peer that need not be the next one any more.
    pub(crate) sii: Option<SiiHandle>,
    /// If not, it goes by datagram where there is no connection, or past the path at once or not at all.
    pub(crate) reliable: bool,
    /// It is not to leave the domain.
    pub(crate) inside: bool,
}

/// All that goes out.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    calls: VecDeque<ApiCall>,
    requests: VecDeque<(RequestId, Request)>,
    results: VecDeque<(LocalId, RequestResult)>,
    withdrawals: VecDeque<Withdrawal>,
    notifies: VecDeque<Notify>,
    /// The messages of which GIST has still to say what became of them.
    sent: BTreeMap<MessageHandle, Sent>,
    last_handle: u64,
    pub(crate) counters: Counters,
}

impl Outbox {
    pub(crate) fn call(&mut self, call: ApiCall) {
        self.calls.push_back(call);
    }

    pub(crate) fn request(&mut self, id: RequestId, request: Request) {
        self.requests.push_back((id, request));
    }

    pub(crate) fn result(&mut self, id: LocalId, result: RequestResult) {
        self.results.push_back((id, result));
    }

    pub(crate) fn withdraw(&mut self, withdrawal: Withdrawal) {
        self.withdrawals.push_back(withdrawal);
    }

    pub(crate) fn notify(&mut self, notify: Notify) {
        self.notifies.push_back(notify);
    }

    /// Returns a new handle of a message.
    pub(crate) fn handle_for(&mut self, what: Sent) -> MessageHandle {
        self.last_handle += 1;
        let handle = MessageHandle(self.last_handle);
        self.sent.insert(handle, what);
        handle
    }

    /// Takes that GIST says no more of a message; returns what it was.
    pub(crate) fn settled(&mut self, handle: MessageHandle) -> Option<Sent> {
        self.sent.remove(&handle)
    }

    /// Returns whether news are on their way.
    pub(crate) fn has_news(&self) -> bool {
        self.sent.values().any(|sent| matches!(sent, Sent::News))
    }

    pub(crate) fn poll_call(&mut self) -> Option<ApiCall> {
        self.calls.pop_front()
    }

    pub(crate) fn poll_request(&mut self) -> Option<(RequestId, Request)> {
        self.requests.pop_front()
    }

    pub(crate) fn poll_result(&mut self) -> Option<(LocalId, RequestResult)> {
        self.results.pop_front()
    }

    pub(crate) fn poll_withdrawal(&mut self) -> Option<Withdrawal> {
        self.withdrawals.pop_front()
    }

    pub(crate) fn poll_notify(&mut self) -> Option<Notify> {
        self.notifies.pop_front()
    }
}
