// SPDX-License-Identifier: Apache-2.0
//! Starts containers on a thread of their own, since a start may take long.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context, Result};
use netserv_container::network::ContainerNetwork;
use netserv_container::{Container, LaunchSpec, Launcher, MediaLimits, Storage};
use netserv_model::limits::CACHE_BYTES_PER_MEMORY_BYTE_MAX;
use netserv_model::policy::ContainerLimits;
use netserv_model::{Flavour, Refusal, RefusalKind, UserId, WorkerId};
use netserv_wire::container::media::MediaTask;
use tokio::sync::mpsc;

use crate::effects::ticket::Ticket;
use crate::event::{JobKey, Launched, MediaEvent, WorkerEvent};
use crate::machine::keeper::Keeper;

/// What the workers of a node may keep on its disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The directory of their files.
    pub directory: PathBuf,
    /// Bytes of kv state of one user and flavour; 0 for none.
    pub kv_bytes: u64,
    /// Bytes of the cache of one user and flavour; 0 for none.
    pub cache_bytes: u64,
}

impl Disk {
    /// Returns what a worker may keep whose container may use this: of kv state a part is in memory, and of the cache
    /// what is where.
    fn storage(&self, limits: &ContainerLimits) -> Storage<'_> {
        let memory = limits.memory_bytes;
        let kv_bytes = self.kv_bytes.min(memory);
        let cache_bytes = self.cache_bytes.min(memory.saturating_mul(CACHE_BYTES_PER_MEMORY_BYTE_MAX));
        Storage { directory: &self.directory, kv_bytes, cache_bytes }
    }
}

/// The cores on which workers may be in the real-time class, none if they may not, and whose workers are permitted to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealTime {
    cores: Vec<usize>,
    users: BTreeSet<UserId>,
}

impl RealTime {
    /// Permits it on these cores.
    pub fn on(cores: Vec<usize>) -> RealTime {
        RealTime { cores, users: BTreeSet::new() }
    }

    /// Lets a worker be in the class, if its container may use a whole processor.
    fn permit(&mut self, container: &mut Container, launch: &Launch) {
        let Launch { worker, limits, .. } = launch;
        if self.cores.is_empty() || worker.flavour != Flavour::Wasm {
            return;
        }
        self.users.remove(&worker.user);
        if limits.cpu_permille < WHOLE_PROCESSOR_PERMILLE {
            return;
        }
        match container.permit_real_time(&self.cores) {
            Ok(()) => drop(self.users.insert(worker.user.clone())),
            Err(error) => tracing::warn!(%worker, %error, "a worker stays in the usual scheduling class"),
        }
    }

    /// Refuses limits to which a worker that runs could not be held.
    fn check(&self, user: &UserId, limits: &ContainerLimits) -> Result<(), Refusal> {
        if limits.cpu_permille >= WHOLE_PROCESSOR_PERMILLE || !self.users.contains(user) {
            return Ok(());
        }
        let detail = "their worker was permitted the real-time class, with a whole processor";
        Err(Refusal::new(RefusalKind::QuotaExceeded, detail))
    }
}

/// The processor time of a container that may use one processor all the time.
const WHOLE_PROCESSOR_PERMILLE: u32 = 1000;

/// What the thread that starts workers is to do.
#[derive(Debug)]
pub enum Job {
    /// A worker is to be started.
    Start(Launch),
    /// A media job is to be started.
    Media(Box<MediaLaunch>),
    /// A user's containers that run are to be held to other limits.
    Limit(UserId, ContainerLimits, Ticket),
}

/// A media job to be started.
#[derive(Debug)]
pub struct MediaLaunch {
    /// Which job.
    pub key: JobKey,
    /// What is to be done.
    pub task: MediaTask,
    /// What it may use.
    pub limits: MediaLimits,
}

/// A worker to be started.
#[derive(Debug)]
pub struct Launch {
    /// Which worker.
    pub worker: WorkerId,
    /// Its generation.
    pub generation: u64,
    /// What the user's container may use as a whole.
    pub limits: ContainerLimits,
    /// The process of the user's other worker, whose container this one joins.
    pub beside: Option<i32>,
    /// The network of the user's container; nothing for none.
    pub network: Option<Arc<ContainerNetwork>>,
}

/// Starts the thread that starts containers, one after the other. It ends when the sender is dropped.
///
/// # Errors
/// The system gives no thread.
pub fn start_thread(
    keeper: Arc<Keeper>,
    disk: Disk,
    lanes: usize,
    mut real_time: RealTime,
    events: mpsc::Sender<WorkerEvent>,
) -> Result<Sender<Job>> {
    // As many wait as there are users one of whose workers is to start: one at a time for each.
    let (jobs, inbox) = channel();
    let thread = std::thread::Builder::new().name("launches".into());
    thread.spawn(move || run(&keeper, (&disk, lanes, &mut real_time), (&inbox, &events))).context("launch thread")?;
    Ok(jobs)
}

fn run(
    keeper: &Keeper,
    (disk, lanes, real_time): (&Disk, usize, &mut RealTime),
    (inbox, events): (&Receiver<Job>, &mpsc::Sender<WorkerEvent>),
) {
    for job in inbox {
        let launch = match job {
            Job::Start(launch) => launch,
            Job::Limit(user, limits, ticket) => {
                let limited =
                    real_time.check(&user, &limits).and_then(|()| Ok(keeper.launcher()?.limit(&user, &limits)?));
                ticket.end(limited);
                continue;
            }
            Job::Media(launch) => {
                let MediaLaunch { key, task, limits } = *launch;
                let started = keeper.launcher().and_then(|launcher| Ok(launcher.start_media(&task, &limits)?));
                if events.blocking_send(WorkerEvent::Media(MediaEvent::Started(key, started))).is_err() {
                    return;
                }
                continue;
            }
        };
        let mut result = keeper.launcher().and_then(|launcher| start_worker(&launcher, disk, lanes, &launch));
        if let Ok(container) = &mut result {
            real_time.permit(container, &launch);
        }
        let launched = Launched { worker: launch.worker, generation: launch.generation, result };
        if events.blocking_send(WorkerEvent::Launched(Box::new(launched))).is_err() {
            return;
        }
    }
}

fn start_worker(launcher: &Launcher, disk: &Disk, lanes: usize, launch: &Launch) -> Result<Container, Refusal> {
    let Launch { worker, limits, beside, network, .. } = launch;
    let network = network.as_deref();
    let storage = Some(disk.storage(limits));
    let spec = LaunchSpec {
        beside: *beside,
        network,
        storage,
        lanes,
        ..LaunchSpec::new(&worker.user, worker.flavour, limits)
    };
    launcher.launch(&spec).map_err(Refusal::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_permitted_the_class_is_not_held_to_less_than_a_processor() {
        let [jane, john] = ["jane", "john"].map(|name| name.parse::<UserId>().unwrap());
        let real_time = RealTime { cores: vec![0], users: BTreeSet::from([jane.clone()]) };
        let limits = |cpu_permille| ContainerLimits { cpu_permille, ..ContainerLimits::default() };
        assert!(real_time.check(&jane, &limits(1000)).is_ok() && real_time.check(&john, &limits(999)).is_ok());
        let refused = real_time.check(&jane, &limits(999)).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::QuotaExceeded);
    }

    #[test]
    fn a_small_container_gets_small_files() {
        let disk = Disk { directory: PathBuf::from("/store"), kv_bytes: 64 << 20, cache_bytes: 16 << 30 };
        for (memory, kv, cache) in [(512 << 20, 64 << 20, 16 << 30), (32 << 20, 32 << 20, 4 << 30)] {
            let storage = disk.storage(&ContainerLimits { memory_bytes: memory, ..ContainerLimits::default() });
            assert_eq!((storage.kv_bytes, storage.cache_bytes), (kv, cache));
        }
    }
}
