// SPDX-License-Identifier: Apache-2.0
//! NSLPs of others on this node: who they are, and which names of theirs stand for what. What one of them names is of no use
//! to another.

mod flow;
mod peers;
mod told;

use std::collections::BTreeMap;

use netserv_gist::{Event, FailReason, MessageHandle, SendStatus, SiiHandle};
use netserv_model::SessionId;
use netserv_model::application::{ApplicationEvent, ApplicationInfo};
use netserv_wire::gist::Mri;
use serde::{Deserialize, Serialize};

pub(crate) use flow::mri_of;
use peers::Peers;
use told::Names;

/// Names the connection of a program that is an NSLP, or wants to be. No two have the same, ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientId(pub u64);

/// Which NSLPs of others a node takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationConfig {
    /// The value of the Router Alert Option for those that name none.
    pub router_alert: u16,
    /// NSLPs that the operator named, each with its value of the Router Alert Option; beside them, those of the ranges for
    /// private and experimental use are taken (RFC 5971 §9, RFC 5350).
    pub nslps: BTreeMap<u16, u16>,
}

netserv_model::counts! {
    /// What the NSLPs of others did.
    #[derive(Copy)]
    pub struct ApplicationCounters {
        /// Programs that registered.
        registered = "registered",
        /// Programs that went.
        gone = "gone",
        /// Calls that the node or GIST refused, registrations among them.
        refused = "call-refused",
        /// Messages that were given to GIST.
        sent = "message-sent",
        /// Events that went to a program.
        told = "told",
        /// Events for a program that is gone, or that it could not be told of.
        untold = "untold",
    }
}

/// The programs that are registered.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    clients: BTreeMap<ClientId, Application>,
    by_nslp: BTreeMap<u16, ClientId>,
    /// Messages without a status, by the node's own names for them.
    sent: BTreeMap<MessageHandle, Sent>,
    last: u64,
    pub(crate) counters: ApplicationCounters,
}

/// One program.
#[derive(Debug, Default)]
pub(crate) struct Application {
    pub(crate) nslp_id: u16,
    pub(crate) router_alert: u16,
    pub(crate) name: String,
    /// Its names for messages without a status.
    pub(crate) handles: BTreeMap<u64, MessageHandle>,
    /// Bytes of those.
    pub(crate) bytes: usize,
    peers: Peers,
}

/// A message without a status.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) client: ClientId,
    pub(crate) handle: u64,
    pub(crate) session: SessionId,
    pub(crate) mri: Mri,
    bytes: usize,
}

/// Whom an event of GIST is for.
#[derive(Debug)]
pub(crate) enum Told {
    /// NetServ's own NSLP.
    Own(Event),
    /// A program.
    Client(ClientId, ApplicationEvent),
    /// A program that is gone, or nothing that can be told.
    Nobody,
}

impl Applications {
    /// Returns a program that is registered.
    pub(crate) fn get(&self, client: ClientId) -> Option<&Application> {
        self.clients.get(&client)
    }

    /// Adds a program; the caller has checked that nobody has its NSLPID.
    pub(crate) fn add(&mut self, client: ClientId, nslp_id: u16, router_alert: u16, name: String) {
        self.counters.registered += 1;
        self.by_nslp.insert(nslp_id, client);
        self.clients.insert(client, Application { nslp_id, router_alert, name, ..Application::default() });
    }

    /// Forgets a program with all that it named; returns its NSLPID.
    pub(crate) fn remove(&mut self, client: ClientId) -> Option<u16> {
        let gone = self.clients.remove(&client)?;
        self.counters.gone += 1;
        self.by_nslp.remove(&gone.nslp_id);
        for handle in gone.handles.values() {
            self.sent.remove(handle);
        }
        Some(gone.nslp_id)
    }

    /// Returns the node's own name for a message of a program, which is open until [`Applications::ended`].
    pub(crate) fn send(
        &mut self,
        client: ClientId,
        handle: u64,
        bytes: usize,
        (session, mri): (SessionId, &Mri),
    ) -> Option<MessageHandle> {
        let application = self.clients.get_mut(&client)?;
        let own = MessageHandle(HANDLES_FIRST | self.last);
        self.last += 1;
        application.handles.insert(handle, own);
        application.bytes += bytes;
        self.sent.insert(own, Sent { client, handle, session, mri: mri.clone(), bytes });
        Some(own)
    }

    /// Returns a message of a program that has no status.
    pub(crate) fn waiting(&self, client: ClientId, handle: u64) -> Option<(MessageHandle, &Sent)> {
        let own = self.clients.get(&client)?.handles.get(&handle)?;
        Some((*own, self.sent.get(own)?))
    }

    /// Returns the names of a program's messages of a session that have no status.
    pub(crate) fn waiting_of(&self, client: ClientId, session: SessionId) -> Vec<u64> {
        let handles = self.clients.get(&client).map(|application| &application.handles);
        let is_of = |own: &MessageHandle| self.sent.get(own).is_some_and(|sent| sent.session == session);
        handles.into_iter().flatten().filter(|(_, own)| is_of(own)).map(|(handle, _)| *handle).collect()
    }

    /// Ends a message that was taken back before GIST had it; returns what its program is told.
    pub(crate) fn cancelled(&mut self, nslp_id: u16, own: MessageHandle) -> Told {
        let status = SendStatus::Failed(FailReason::Cancelled);
        self.tell(Event::MessageStatus { nslp_id, handle: own, status, carriage: None })
    }

    /// Ends a message; returns whose it was, and under which name.
    pub(crate) fn ended(&mut self, own: MessageHandle) -> Option<Sent> {
        let sent = self.sent.remove(&own)?;
        let application = self.clients.get_mut(&sent.client)?;
        application.handles.remove(&sent.handle);
        application.bytes -= sent.bytes;
        Some(sent)
    }

    /// Returns the peer that a program named.
    pub(crate) fn peer(&mut self, client: ClientId, name: u64) -> Option<SiiHandle> {
        self.clients.get_mut(&client)?.peers.named(name)
    }

    /// Finds out whom an event is for, and puts it in the words of who that is.
    pub(crate) fn tell(&mut self, event: Event) -> Told {
        let client = match &event {
            Event::RecvMessage { nslp_id, .. } | Event::NetworkNotification { nslp_id, .. } => {
                let Some(client) = self.by_nslp.get(nslp_id) else { return Told::Own(event) };
                *client
            }
            Event::MessageStatus { handle, .. } if handle.0 < HANDLES_FIRST => return Told::Own(event),
            Event::MessageStatus { handle, .. } => match self.ended(*handle) {
                Some(Sent { client, handle, .. }) => return self.told(client, told::status(handle, &event)),
                None => return self.untold(),
            },
            Event::Malformed { .. } => return Told::Own(event),
        };
        let Some(application) = self.clients.get_mut(&client) else { return self.untold() };
        let words = told::words(&event, &mut Names(&mut application.peers));
        self.told(client, words)
    }

    /// Returns what the operator sees, by NSLPID.
    pub(crate) fn list(&self) -> Vec<ApplicationInfo> {
        let of = |client: &ClientId| {
            let Application { nslp_id, router_alert, name, handles, .. } = self.clients.get(client)?;
            let waiting = u32::try_from(handles.len()).unwrap_or(u32::MAX);
            Some(ApplicationInfo { nslp_id: *nslp_id, router_alert: *router_alert, name: name.clone(), waiting })
        };
        self.by_nslp.values().filter_map(of).collect()
    }

    fn told(&mut self, client: ClientId, words: Option<ApplicationEvent>) -> Told {
        let Some(words) = words else { return self.untold() };
        self.counters.told += 1;
        Told::Client(client, words)
    }

    fn untold(&mut self) -> Told {
        self.counters.untold += 1;
        Told::Nobody
    }
}

/// The first name of a message of others; NetServ's own NSLP counts from one and never gets here.
const HANDLES_FIRST: u64 = 1 << 63;
