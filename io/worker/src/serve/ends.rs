// SPDX-License-Identifier: Apache-2.0
//! How modules end: they fail, are unloaded, or leave their connections behind.

use netserv_model::Refusal;
use netserv_model::effect::ModuleSlot;
use netserv_wire::container::frames::FromWorker;
use netserv_worker_base::error::ServeError;
use netserv_worker_packet::host::Clock;

use super::Worker;

impl Worker {
    /// Ends what packets a module sees, and tells the node why.
    pub(super) fn fail(&mut self, slot: ModuleSlot, refusal: Refusal) {
        self.forget(slot);
        if let Some(old) = self.rounds.chain.remove(slot) {
            self.stop(slot, old);
        }
        self.control.send(&FromWorker::Failed { slot, refusal });
    }

    pub(super) fn unload(&mut self, slot: ModuleSlot) -> Result<(), ServeError> {
        self.take_out(slot, Self::end_server)
    }

    /// Ends a module whose connections go on.
    pub(super) fn drain(&mut self, slot: ModuleSlot, finish: bool) -> Result<(), ServeError> {
        self.take_out(slot, |this, slot| {
            if !this.servers.drain(slot, finish)? {
                this.control.send(&FromWorker::Drained { slot });
            }
            Ok(())
        })
    }

    /// Ends a module, whose server part is ended by `server`.
    fn take_out(
        &mut self,
        slot: ModuleSlot,
        server: impl FnOnce(&mut Self, ModuleSlot) -> Result<(), ServeError>,
    ) -> Result<(), ServeError> {
        self.settle()?;
        self.forget(slot);
        server(self, slot)?;
        if let Some(instances) = self.rounds.chain.remove(slot) {
            self.stop(slot, instances);
        }
        self.kv.handle_timeout(Clock::System.instant());
        self.deliver()
    }

    /// Ends the server part of a module, if it has one.
    pub(super) fn end_server(&mut self, slot: ModuleSlot) -> Result<(), ServeError> {
        let lines = self.servers.unload(slot)?;
        self.control.send_log(Some(slot), lines);
        Ok(())
    }
}
