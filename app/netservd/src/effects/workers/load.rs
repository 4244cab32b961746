// SPDX-License-Identifier: Apache-2.0
//! How a module gets into its worker: what it is loaded from, and what it is told, and in which order packets meet modules.

use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use netserv_model::effect::{EffectId, ModuleLoad, ModuleSlot};
use netserv_model::manifest::ServerPart;
use netserv_model::verdict::FailureMode;
use netserv_model::{Flavour, Refusal, RefusalKind, UserId, WorkerId};
use netserv_packet_loop::PacketCommand;
use netserv_repository::Downloaded;
use netserv_wire::container::frames::{PartKind, ServerLoad, ToWorker};

use super::Workers;
use crate::event::CodeParts;

/// A module that is to be loaded.
pub struct Loading {
    /// What the controller says of it.
    pub load: ModuleLoad,
    /// Where its code is.
    pub files: LoadFiles,
    /// The listening sockets that its intercepted connections arrive at, or why there are none.
    pub listeners: Result<Vec<(PartKind, OwnedFd)>>,
}

/// Where a module's code is, as far as that is known.
#[derive(Clone, Debug, Default)]
pub struct LoadFiles {
    /// That of its package.
    pub code: Option<CodeParts>,
    /// Its service's composition.
    pub composition: Option<PathBuf>,
    /// The state that it begins with.
    pub state: Option<Arc<Downloaded>>,
}

impl Workers {
    /// Tells a worker to load a module.
    ///
    /// # Errors
    /// There is no worker, or a file or socket is missing. The module that was in the place stays.
    pub(super) fn load(&mut self, loading: Loading, id: EffectId) -> Result<(), Refusal> {
        let Loading { load, files, listeners } = loading;
        // Its death will be told, which settles this too.
        if self.workers.get(&load.worker).is_some_and(|running| running.dying.is_some()) {
            return Ok(());
        }
        let (worker, slot) = (load.worker.clone(), load.slot);
        listeners.and_then(|listeners| self.try_load(id, load, &files, listeners)).map_err(|error| {
            self.drop_listeners(&worker, Some(slot));
            Refusal::new(RefusalKind::NodeFailed, format!("the module could not be given to its worker: {error:#}"))
        })
    }

    /// Has packets go through a worker's modules in an order.
    pub(super) fn order(&mut self, worker: &WorkerId, slots: Vec<ModuleSlot>) {
        let Some(running) = self.workers.get_mut(worker).filter(|running| running.dying.is_none()) else { return };
        if let Err(error) = running.control.send(&ToWorker::Order { slots }, &[]) {
            let detail = format!("the worker does not take frames: {error}");
            self.kill_worker(worker, Refusal::new(RefusalKind::NodeFailed, detail), None);
        }
    }

    fn try_load(
        &mut self,
        id: EffectId,
        load: ModuleLoad,
        files: &LoadFiles,
        listeners: Vec<(PartKind, OwnedFd)>,
    ) -> Result<()> {
        ensure!(self.workers.contains_key(&load.worker), "there is no worker");
        ensure!(self.metered.has_room(), "nobody reads what modules used before");
        let mut descriptors = open(files, &load)?;
        descriptors.extend(listeners);
        let server = load.server.as_ref().map(|server| self.server_load(&load.worker.user, server));
        let ModuleLoad { worker, slot, module, digest, properties, limits, state_schema, blocks, messages, .. } = load;
        let running = self.workers.get_mut(&worker).context("there is no worker")?;
        running.serves |= server.is_some();
        let call = Duration::from_millis(limits.call_ms.into());
        let user = worker.user.clone();
        self.modules.insert((worker.clone(), slot), module.clone());
        let name = module.name.clone();
        let kinds = descriptors.iter().map(|(kind, _)| *kind).collect();
        let parts = kinds;
        // Threads of lanes would be usual programs, which lanes in the real-time class leave no core. Those of a container
        // with less processor time would use it up together, and all stand still until there is more.
        let has_time = load.processors as usize >= self.parts.packets.lanes();
        let parallel = load.parallel && has_time && !running.real_time;
        let frame = ToWorker::Load { slot, module, properties, limits, state_schema, parts, server, blocks, parallel };
        // Before the module starts, which is its first call.
        self.parts.packets.send(PacketCommand::SetCallTime { worker: worker.clone(), slot, call });
        let borrowed: Vec<_> = descriptors.iter().map(|(_, descriptor)| descriptor.as_fd()).collect();
        if !messages.is_empty() {
            running.control.send(&ToWorker::Kept { slot, module: name.clone(), messages }, &[])?;
        }
        running.control.send(&frame, &borrowed)?;
        // Before it is shown a packet, which is after it said that it runs.
        self.metered.begin(id, &worker, slot, name);
        self.parts.packets.send(PacketCommand::Meter { worker, slot, load: id });
        self.parts.repository.pin(&user, digest);
        if let Some(before) = running.pinned.insert(slot, digest) {
            self.parts.repository.unpin(&user, before);
        }
        Ok(())
    }

    fn server_load(&self, user: &UserId, server: &ServerPart) -> ServerLoad {
        ServerLoad {
            refuse: server.on_failure == FailureMode::Closed,
            listen: server.listen.clone(),
            intercept: server.intercept.clone(),
            addresses: self.addresses(user),
            connect: self.permits(user).connect,
            intercept_tls: server.intercept_tls.clone(),
        }
    }
}

/// Opens the module's files, which go beside the frame.
fn open(found: &LoadFiles, load: &ModuleLoad) -> Result<Vec<(PartKind, OwnedFd)>> {
    let code = found.code.as_ref().context("the package was not fetched")?;
    ensure!(load.chain.is_empty() || found.composition.is_some(), "the service was not composed");
    let mut descriptors = Vec::new();
    for (kind, path) in files(code, found.composition.as_ref(), load) {
        let path = path.with_context(|| format!("the package was fetched without its part `{kind:?}`"))?;
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        descriptors.push((kind, OwnedFd::from(file)));
    }
    if load.state.is_some() {
        let state = found.state.as_ref().context("the state that it should begin with gave way to others")?;
        descriptors.push((PartKind::State, state.as_fd().try_clone_to_owned()?));
    }
    Ok(descriptors)
}

/// Returns the files that a module is loaded from; nothing in place of one that is not there.
fn files<'a>(
    code: &'a CodeParts,
    composed: Option<&'a PathBuf>,
    load: &ModuleLoad,
) -> Vec<(PartKind, Option<&'a PathBuf>)> {
    let mut files = Vec::new();
    match load.worker.flavour {
        Flavour::Osgi => files.push((PartKind::Packet, code.packet.as_ref())),
        Flavour::Wasm => {
            if load.packet {
                files.push((PartKind::Packet, code.packet.as_ref()));
            }
            if let Some(server) = &load.server {
                files.push((PartKind::Server, composed.or(code.server.as_ref())));
                files.extend(server.tls.then_some((PartKind::Tls, code.tls.as_ref())));
            }
        }
    }
    files
}
