// SPDX-License-Identifier: Apache-2.0
//! What modules counted and how busy the machine is: every worker is asked, and a while is waited for answers.

use std::time::{Duration, Instant};

use netserv_model::effect::{EffectOutcome, Measured, ModuleCounts};
use netserv_wire::container::frames::ToWorker;

use super::Workers;
use crate::effects::ticket::{Cargo, Ticket};
use crate::machine::load;
use crate::metrics::gauges::{Counted, WorkerGauges};

/// How long the counters of containers are waited for.
const STATS_WAIT: Duration = Duration::from_millis(200);

/// A measurement under way.
pub struct Measuring {
    ticket: Ticket,
    until: Instant,
}

/// Waits until a measurement has had its time.
pub async fn until(measuring: Option<&Measuring>) {
    match measuring {
        Some(measuring) => tokio::time::sleep_until(measuring.until.into()).await,
        None => std::future::pending().await,
    }
}

impl Workers {
    pub(super) fn measure(&mut self, ticket: Ticket) {
        for running in self.workers.values_mut().filter(|running| running.can_be_asked()) {
            running.stats_asked = running.control.send(&ToWorker::Stats, &[]).is_ok();
        }
        // The node has one under way at a time; another one's ticket answers itself.
        self.measuring = Some(Measuring { ticket, until: Instant::now() + STATS_WAIT });
        self.end_measuring_if_complete();
    }

    pub(super) fn end_measuring_if_complete(&mut self) {
        if self.measuring.is_some() && !self.workers.values().any(|running| running.stats_asked) {
            self.end_measuring();
        }
    }

    pub(super) fn end_measuring(&mut self) {
        let Some(Measuring { ticket, .. }) = self.measuring.take() else { return };
        let counts = |((worker, slot), counted): (&(_, _), &Counted)| {
            let Counted { packets, counters, server } = counted.clone();
            ModuleCounts { worker: netserv_model::WorkerId::clone(worker), slot: *slot, packets, counters, server }
        };
        let measured = Measured {
            load: load::measure(self.parts.packets.totals().shown),
            modules: self.stats.iter().map(counts).collect(),
            addresses: self.networks.iter().map(|(user, network)| (user.clone(), network.addresses.clone())).collect(),
        };
        let storage = self.workers.iter().map(|(worker, running)| (worker.clone(), running.storage)).collect();
        let gauges = WorkerGauges { media: self.media_counts(), storage_failures: storage };
        ticket.answer(EffectOutcome::Measured(Box::new(measured)), Some(Cargo::Gauges(gauges)));
    }
}
