// SPDX-License-Identifier: Apache-2.0
//! The parts of modules: which of them sees packets, on the packet thread, and which takes connections, on the server
//! thread. A module is loaded once both run, and fails with either.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use netserv_model::effect::ModuleSlot;
use netserv_model::request::ServerCounts;
use netserv_model::{Filter, Refusal, RefusalKind};
use netserv_wire::container::frames::{PartKind, ToWorker};
use netserv_worker_base::error::ServeError;
use netserv_worker_base::shared::log::Line;
use netserv_worker_base::shared::state::Said;
use netserv_worker_base::wakeup::Wakeup;
use netserv_worker_server::module::{Module, Profile, Shared};
use netserv_worker_server::{Order, Report, Server, ServerLoad};

/// What came with a load frame.
pub struct Parts {
    /// What the module is told of itself.
    pub profile: Profile,
    /// The version of its kv state.
    pub state_schema: u32,
    /// The state that it begins with.
    pub state: Option<File>,
    packet: Option<File>,
    /// Whether it may run as several instances.
    parallel: bool,
    server: Option<File>,
    tls: Option<File>,
    listeners: [Option<OwnedFd>; 2],
}

/// The part of a module that sees packets.
pub struct PacketPart {
    /// Its compiled code.
    pub code: File,
    /// What the module is told of itself.
    pub profile: Profile,
    /// Whether it may run as several instances.
    pub parallel: bool,
    /// What it shares with the server part.
    pub shared: Shared,
    /// What another instance said of its state.
    pub state: Option<Vec<u8>>,
}

/// How loading a module goes on.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, on the stack")]
pub enum Step {
    /// There is nothing to wait for: the part that sees packets starts.
    Start(PacketPart),
    /// There is nothing at all to run.
    Fail(Refusal),
    /// The server thread reports.
    Wait,
}

/// What the server thread's report means.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, on the stack")]
pub enum News {
    /// A server part runs: the part that sees packets starts, if there is one.
    Loaded(ModuleSlot, Option<PacketPart>),
    /// A server part ended: so does the rest of its module. With the last lines of its log.
    Failed(ModuleSlot, Refusal, Vec<Line>),
    /// No connection is left of a server part that was drained.
    Drained(ModuleSlot),
    /// What a server part said of its state, if it says something.
    Exported(ModuleSlot, Result<Option<Vec<u8>>, Refusal>),
    /// Sockets are wanted that may take any address as their own.
    WantsSockets {
        /// How many.
        count: u32,
        /// Whether they are to be of IPv6.
        v6: bool,
    },
}

impl Parts {
    /// Returns whether there is a part that sees packets, and whether there is one that takes connections.
    pub fn which(&self) -> (bool, bool) {
        (self.packet.is_some(), self.server.is_some())
    }

    /// Sorts what came with a load frame; nothing if it is another frame.
    pub fn new(frame: ToWorker, descriptors: Vec<OwnedFd>) -> Option<Parts> {
        let ToWorker::Load { slot, module, properties, limits, state_schema, parts: kinds, server, blocks, parallel } =
            frame
        else {
            return None;
        };
        let network = server.unwrap_or_default();
        let profile = Profile { slot, name: module, properties, limits, blocks, network };
        let mut parts = Parts {
            profile,
            state_schema,
            state: None,
            packet: None,
            parallel,
            server: None,
            tls: None,
            listeners: [None, None],
        };
        for (kind, descriptor) in kinds.into_iter().zip(descriptors) {
            match kind {
                PartKind::Packet => parts.packet = Some(descriptor.into()),
                PartKind::Server => parts.server = Some(descriptor.into()),
                PartKind::Tls => parts.tls = Some(descriptor.into()),
                PartKind::ListenerV4 => parts.listeners[0] = Some(descriptor),
                PartKind::ListenerV6 => parts.listeners[1] = Some(descriptor),
                PartKind::State => parts.state = Some(descriptor.into()),
            }
        }
        Some(parts)
    }
}

/// The server parts of the container's modules, seen from the packet thread.
pub struct Servers {
    thread: Server,
    tickets: u64,
    there: BTreeMap<ModuleSlot, Served>,
    /// What was replaced, and may still write to its log.
    leaving: Vec<Arc<Module>>,
}

struct Served {
    ticket: u64,
    module: Arc<Module>,
    /// What starts once the server part runs.
    packet: Option<PacketPart>,
}

impl Servers {
    /// Returns an empty set in a container of `memory_bytes`, whose news raise `wake`.
    pub fn new(wake: Arc<Wakeup>, memory_bytes: u64) -> Servers {
        Servers { thread: Server::new(wake, memory_bytes), tickets: 0, there: BTreeMap::new(), leaving: Vec::new() }
    }

    /// Returns what is readable when there are news.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.thread.wake().as_fd()
    }

    /// Makes it unreadable again, before the news are looked at.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn clear(&self) -> Result<(), ServeError> {
        self.thread.wake().clear()
    }

    /// Loads the server part of a module, if it has one.
    /// Its parts are told what another instance said of its state.
    ///
    /// # Errors
    /// The server thread is gone, or does not start.
    pub fn load(&mut self, parts: Parts, shared: Shared, said: Said) -> Result<Step, ServeError> {
        let Parts { profile, packet, parallel, server, tls, listeners, .. } = parts;
        let slot = profile.slot;
        let (of_packet, state) = (said.packet, said.server);
        let packet = packet.map(|code| {
            let (profile, shared) = (profile.clone(), shared.clone());
            PacketPart { code, profile, parallel, shared, state: of_packet }
        });
        let Some(code) = server else {
            self.unload(slot)?;
            let nothing = || Step::Fail(Refusal::new(RefusalKind::NodeFailed, "a load frame came without code"));
            return Ok(packet.map_or_else(nothing, Step::Start));
        };
        self.tickets += 1;
        let ticket = self.tickets;
        let module = Arc::new(Module::new(profile, shared, Arc::clone(self.thread.wake())));
        let served = Served { ticket, module: Arc::clone(&module), packet };
        if let Some(old) = self.there.insert(slot, served) {
            self.leaving.push(old.module);
        }
        self.thread.order(Order::Load(Box::new(ServerLoad { module, ticket, code, tls, listeners, state })))?;
        Ok(Step::Wait)
    }

    /// Ends the server part of a module, if it has one. Returns the last lines of its log.
    ///
    /// # Errors
    /// The server thread is gone.
    pub fn unload(&mut self, slot: ModuleSlot) -> Result<Vec<Line>, ServeError> {
        let Some(served) = self.there.remove(&slot) else { return Ok(Vec::new()) };
        self.thread.order(Order::Unload(slot))?;
        Ok(served.module.take_last_log())
    }

    /// Ends the server part of a module, whose connections go on, with it if `finish`. Returns whether there is one;
    /// [`News::Drained`] follows.
    ///
    /// # Errors
    /// The server thread is gone.
    pub fn drain(&mut self, slot: ModuleSlot, finish: bool) -> Result<bool, ServeError> {
        let Some(served) = self.there.get(&slot) else { return Ok(false) };
        self.thread.order(Order::Drain { slot, ticket: served.ticket, finish })?;
        Ok(true)
    }

    /// Asks the server part of a module for its state, if it has one. Returns whether it has.
    ///
    /// # Errors
    /// The server thread is gone.
    pub fn ask_for_state(&mut self, slot: ModuleSlot) -> Result<bool, ServeError> {
        let is_there = self.there.contains_key(&slot);
        if is_there {
            self.thread.order(Order::Export(slot))?;
        }
        Ok(is_there)
    }

    /// Takes note of what the user's modules may do in the network from here on.
    pub fn permit(&self, connect: &[Filter], listen: &[Filter]) {
        self.there.values().for_each(|served| served.module.permit(connect, listen));
    }

    /// Hands on sockets that were asked for.
    ///
    /// # Errors
    /// The server thread is gone.
    pub fn sockets(&mut self, v6: bool, sockets: Vec<OwnedFd>) -> Result<(), ServeError> {
        self.thread.order(Order::Sockets { v6, sockets })
    }

    /// Returns the next news. What the thread says of a load that was overtaken means nothing.
    ///
    /// # Errors
    /// The server thread is gone.
    pub fn news(&mut self) -> Result<Option<News>, ServeError> {
        while let Some(report) = self.thread.report()? {
            match report {
                Report::Loaded { slot, ticket } => {
                    if let Some(served) = self.there.get_mut(&slot).filter(|served| served.ticket == ticket) {
                        return Ok(Some(News::Loaded(slot, served.packet.take())));
                    }
                }
                Report::Failed { slot, ticket, refusal } => {
                    if self.there.get(&slot).is_some_and(|served| served.ticket == ticket) {
                        let lines = self.unload(slot)?;
                        return Ok(Some(News::Failed(slot, refusal, lines)));
                    }
                }
                Report::Drained { slot, ticket } => {
                    if self.there.get(&slot).is_some_and(|served| served.ticket == ticket) {
                        return Ok(Some(News::Drained(slot)));
                    }
                }
                Report::Exported { slot, said } => return Ok(Some(News::Exported(slot, said))),
                Report::WantsSockets { count, v6 } => return Ok(Some(News::WantsSockets { count, v6 })),
            }
        }
        Ok(None)
    }

    /// Returns what modules wrote to their logs.
    pub fn lines(&mut self) -> Vec<(ModuleSlot, Vec<Line>)> {
        let all = self.leaving.iter().chain(self.there.values().map(|served| &served.module));
        let lines = all.map(|module| (module.slot, module.take_log())).filter(|(_, lines)| !lines.is_empty()).collect();
        self.leaving.retain(|module| Arc::strong_count(module) > 1);
        lines
    }

    /// Returns the counters and counts of all server parts.
    pub fn counted(&self) -> BTreeMap<ModuleSlot, (BTreeMap<String, u64>, ServerCounts)> {
        let of = |served: &Served| (served.module.lock_counters().all(), served.module.counts.all());
        self.there.iter().map(|(slot, served)| (*slot, of(served))).collect()
    }

    /// Ends all server parts.
    pub fn end(&mut self) {
        self.thread.end();
    }
}
