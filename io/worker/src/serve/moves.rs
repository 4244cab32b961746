// SPDX-License-Identifier: Apache-2.0
//! How a module is asked for its state: its server part first, then the part that sees packets, then kv
//! is read.

use std::fs::File;
use std::os::fd::OwnedFd;

use netserv_model::effect::ModuleSlot;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::{FromWorker, LogLevel};
use netserv_worker_base::error::ServeError;
use netserv_worker_base::shared::state::{self, Said};
use netserv_worker_packet::chain::Surroundings as _;

use super::Worker;

impl Worker {
    /// Begins to write the state of a module.
    pub(super) fn export(&mut self, slot: ModuleSlot, descriptors: Vec<OwnedFd>) -> Result<(), ServeError> {
        let file = descriptors.into_iter().next().map(File::from);
        if !file.is_some_and(|file| self.moves.ask(slot, file)) {
            let refusal = Refusal::new(RefusalKind::NotRunning, "the module does not run at the moment");
            self.control.send(&FromWorker::Exported { slot, refusal: Some(refusal) });
            return Ok(());
        }
        // One that stands still has seen all that was there for it.
        self.recall()?;
        self.rounds.drain()?;
        if self.servers.ask_for_state(slot)? { Ok(()) } else { self.go_on_exporting(slot, Ok(None)) }
    }

    /// Goes on once the server part has said what it says.
    pub(super) fn go_on_exporting(
        &mut self,
        slot: ModuleSlot,
        server: Result<Option<Vec<u8>>, Refusal>,
    ) -> Result<(), ServeError> {
        self.recall()?;
        let packet = if server.is_ok() { self.packet_state(slot) } else { Ok(None) };
        let said = server.and_then(|server| packet.map(|packet| Said { packet, server }));
        // One that failed or was unloaded meanwhile is asked no more.
        let Some((file, owner)) = self.moves.answer(slot) else { return Ok(()) };
        let written = said.and_then(|said| state::write(file, &owner.name, owner.schema, &owner.kv, &said));
        self.control.send(&FromWorker::Exported { slot, refusal: written.err() });
        Ok(())
    }

    /// Says that a module runs.
    pub(super) fn say_loaded(&mut self, slot: ModuleSlot) {
        self.moves.loaded(slot);
        self.control.send(&FromWorker::Loaded { slot });
    }

    /// Forgets what is known of a module beside its parts.
    pub(super) fn forget(&mut self, slot: ModuleSlot) {
        self.ports.remove(&slot);
        self.end_moves(slot);
    }

    /// Forgets what is known of a module's state.
    pub(super) fn end_moves(&mut self, slot: ModuleSlot) {
        if let Some(text) = self.moves.end(slot) {
            self.control.send(&FromWorker::Log { slot: Some(slot), level: LogLevel::Warn, text });
        }
    }

    /// Returns what the part that sees packets says.
    /// As several instances it says nothing, for want of a common memory.
    fn packet_state(&mut self, slot: ModuleSlot) -> Result<Option<Vec<u8>>, Refusal> {
        let instances = self.rounds.chain.iter_mut().find(|(place, _)| *place == slot).map(|(_, instances)| instances);
        let Some(instances) = instances else { return Ok(None) };
        match &mut instances[..] {
            [instance] => {
                self.rounds.around.enter(slot);
                let said = instance.export_state();
                self.rounds.around.leave();
                said
            }
            several if several.iter().any(|instance| instance.has_state()) => {
                let detail = format!(
                    "the module runs as {} instances, of which each would say its own state; keep it in kv, or leave `parallel` out",
                    several.len()
                );
                Err(Refusal::new(RefusalKind::StateRefused, detail))
            }
            _ => Ok(None),
        }
    }
}
