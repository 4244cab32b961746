// SPDX-License-Identifier: Apache-2.0
//! How a module gets into its worker: what it is loaded from, and what it is told, and in which order packets meet modules.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_model::effect::{Event as ControllerEvent, Load, ModuleSlot};
use netserv_model::manifest::ServerPart;
use netserv_model::{Flavour, Refusal, RefusalKind, UserId, WorkerId};
use netserv_wire::container::frames::{PartKind, ServerLoad, ToWorker};

use crate::effects::Executor;
use crate::event::CodeParts;
use crate::packet_loop::PacketCommand;

impl Executor {
    pub(in crate::effects) fn load(&mut self, load: Load) {
        let intercepts = load.server.as_ref().is_some_and(|server| !server.intercept.is_empty());
        if intercepts { self.ask_for_listeners(load) } else { self.load_with(load, Ok(vec![])) }
    }

    /// Loads a module, with the listening sockets that its intercepted connections arrive at.
    pub(in crate::effects) fn load_with(&mut self, load: Load, listeners: Result<Vec<(PartKind, OwnedFd)>>) {
        // Its death will be told, which settles this too.
        if self.workers.get(&load.worker).is_some_and(|running| running.dying.is_some()) {
            return;
        }
        let (worker, slot) = (load.worker.clone(), load.slot);
        if let Err(error) = listeners.and_then(|listeners| self.try_load(load, listeners)) {
            self.drop_listeners(&worker, Some(slot));
            let detail = format!("the module could not be given to its worker: {error:#}");
            let refusal = Refusal::new(RefusalKind::NodeFailed, detail);
            self.happened.push_back(ControllerEvent::ModuleFailed { worker, slot, refusal });
        }
    }

    /// Has packets go through a worker's modules in an order.
    pub(in crate::effects) fn order(&mut self, worker: &WorkerId, slots: Vec<ModuleSlot>) {
        let Some(running) = self.workers.get_mut(worker).filter(|running| running.dying.is_none()) else { return };
        if let Err(error) = running.control.send(&ToWorker::Order { slots }, &[]) {
            let detail = format!("the worker does not take frames: {error}");
            self.kill_worker(worker, Refusal::new(RefusalKind::NodeFailed, detail), None);
        }
    }

    fn try_load(&mut self, load: Load, listeners: Vec<(PartKind, OwnedFd)>) -> Result<()> {
        ensure!(self.workers.contains_key(&load.worker), "there is no worker");
        let mut descriptors = self.files(&load)?;
        descriptors.extend(listeners);
        let server = load.server.as_ref().map(|server| self.server_load(&load.worker.user, server));
        let blocks = self.blocks.clone();
        let Load { worker, slot, module, digest, properties, limits, state_schema, .. } = load;
        let running = self.workers.get_mut(&worker).context("there is no worker")?;
        running.serves |= server.is_some();
        let parts = self.parts.as_ref().context("this machine runs no modules")?;
        let call = Duration::from_millis(limits.call_ms.into());
        self.modules.insert((worker.clone(), slot), module.clone());
        let kinds = descriptors.iter().map(|(kind, _)| *kind).collect();
        let frame = ToWorker::Load { slot, module, properties, limits, state_schema, parts: kinds, server, blocks };
        // Before the module starts, which is its first call.
        self.packets.send(PacketCommand::SetCallTime { worker, slot, call });
        let borrowed: Vec<_> = descriptors.iter().map(|(_, descriptor)| descriptor.as_fd()).collect();
        running.control.send(&frame, &borrowed)?;
        parts.packages.repository.pin(digest);
        if let Some(before) = running.pinned.insert(slot, digest) {
            parts.packages.repository.unpin(before);
        }
        Ok(())
    }

    /// Opens the module's files, which go beside the frame.
    fn files(&self, load: &Load) -> Result<Vec<(PartKind, OwnedFd)>> {
        let code = self.code.get(&(load.digest, load.worker.flavour)).context("the package was not fetched")?;
        let mut descriptors = Vec::new();
        let composed = self.composed.get(&load.chain);
        ensure!(load.chain.is_empty() || composed.is_some(), "the service was not composed");
        for (kind, path) in files(code, composed, load) {
            let path = path.with_context(|| format!("the package was fetched without its part `{kind:?}`"))?;
            let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            descriptors.push((kind, OwnedFd::from(file)));
        }
        Ok(descriptors)
    }

    fn server_load(&self, user: &UserId, server: &ServerPart) -> ServerLoad {
        ServerLoad {
            listen: server.listen.clone(),
            intercept: server.intercept.clone(),
            addresses: self.addresses(user),
            connect: self.book.permits(user).connect,
        }
    }
}

/// Returns the files that a module is loaded from; nothing in place of one that is not there.
fn files<'a>(code: &'a CodeParts, composed: Option<&'a PathBuf>, load: &Load) -> Vec<(PartKind, Option<&'a PathBuf>)> {
    let mut files = Vec::new();
    match load.worker.flavour {
        Flavour::Osgi => files.push((PartKind::Packet, code.packet.as_ref())),
        Flavour::Wasm => {
            if load.packet {
                files.push((PartKind::Packet, code.packet.as_ref()));
            }
            if let Some(server) = &load.server {
                files.push((PartKind::Server, composed.or(code.server.as_ref())));
                files.extend(server.tls.as_ref().map(|_| (PartKind::Tls, code.tls.as_ref())));
            }
        }
    }
    files
}
