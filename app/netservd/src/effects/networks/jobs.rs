// SPDX-License-Identifier: Apache-2.0
//! What the thread for networks is asked for, and how it works: one job after the other, since each takes the kernel
//! milliseconds, and more on a busy machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use netserv_container::network::AddressWatch;
use netserv_model::effect::{InterceptJob, ModuleSlot};
use netserv_model::policy::{AddressPlan, Permits};
use netserv_model::usage::NetworkMeter;
use netserv_model::{ModuleName, Refusal, UserId, WorkerId};
use netserv_wire::container::frames::PartKind;
use tokio::sync::oneshot;

use super::Networks;
use crate::effects::ticket::Ticket;
use crate::event::{SocketWish, UserNetwork};

/// What goes on with what was made, on the thread that made it: it must not wait.
pub type Then<T> = Box<dyn FnOnce(T) + Send>;

/// The listening sockets at which a module's intercepted connections arrive.
pub type Listeners = Vec<(PartKind, OwnedFd)>;

/// What is to be done.
pub enum NetworkJob {
    /// Give networks that are made from here on addresses of this plan.
    Addresses(Box<AddressPlan>, Ticket),
    /// Have a user's network permit this.
    Permit(UserId, Box<Permits>, Then<Result<(), Refusal>>),
    /// Lead these floating addresses to a user's container, and no others.
    Floating(UserId, BTreeSet<IpAddr>, Ticket),
    /// A user's worker is to be started: make its network, unless the user is permitted nothing.
    Make(UserId, Box<Permits>, Then<Result<Option<UserNetwork>, Refusal>>),
    /// No worker of the user's is in its network any more.
    Leave(UserId),
    /// A module is installed, so that its user's network stays.
    Installed(UserId, ModuleName),
    /// A module is gone.
    Gone(UserId, ModuleName),
    /// Make the listening sockets of a module that is to be loaded.
    Listeners(WorkerId, ModuleSlot, Then<Result<Listeners>>),
    /// A worker has no listening sockets any more, for a module or for all.
    DropListeners(WorkerId, Option<ModuleSlot>),
    /// Make sockets with which a worker speaks for others, as many as it gets.
    Sockets(SocketWish, Then<Vec<OwnedFd>>),
    /// Change what is intercepted.
    Intercept(InterceptJob, Ticket),
    /// Tell how many packets the firewall of each user's container dropped, by reason.
    CountDrops(oneshot::Sender<BTreeMap<UserId, BTreeMap<String, u64>>>),
    /// Read what went through all networks.
    ReadMeters(Then<Vec<NetworkMeter>>),
    /// Tell whether an address is a container's.
    HasAddress(IpAddr, Sender<bool>),
    /// The node has other addresses.
    FollowNode,
    /// Remove all networks, and end.
    End(oneshot::Sender<()>),
}

/// Returns whether an address is a container's; waits for the thread. Without it there is no container.
pub fn has_address(jobs: &Sender<NetworkJob>, address: IpAddr) -> bool {
    let (reply, answer) = channel();
    jobs.send(NetworkJob::HasAddress(address, reply)).is_ok() && answer.recv().unwrap_or(false)
}

/// Starts the thread, and one that says when the node's addresses change.
///
/// # Errors
/// The system gives no thread, or the kernel does not tell of changes.
pub fn start(mut networks: Networks) -> Result<Sender<NetworkJob>> {
    // Each user has one effect under way, and each worker one batch of sockets.
    let (jobs, inbox) = channel();
    let (watch, follow) = (AddressWatch::open().context("changes of addresses")?, jobs.clone());
    let alive = Arc::new(());
    let is_alive = Arc::downgrade(&alive);
    let thread = std::thread::Builder::new().name("addresses".to_owned());
    let spawned = thread.spawn(move || {
        while is_alive.strong_count() > 0 {
            if watch.wait(LOOK_TIME) && follow.send(NetworkJob::FollowNode).is_err() {
                return;
            }
        }
    });
    spawned.context("thread for addresses")?;
    let thread = std::thread::Builder::new().name("networks".to_owned());
    let spawned = thread.spawn(move || {
        run(&mut networks, &inbox);
        drop(alive);
    });
    spawned.context("thread for networks")?;
    Ok(jobs)
}

/// How often the thread that watches addresses looks whether it is still needed, and rules of interception are looked
/// through whose connections had their time.
const LOOK_TIME: Duration = Duration::from_secs(1);

fn run(networks: &mut Networks, inbox: &Receiver<NetworkJob>) {
    loop {
        match inbox.recv_timeout(LOOK_TIME) {
            Ok(NetworkJob::End(ended)) => {
                networks.end();
                // Whoever asked may be gone.
                let _ = ended.send(());
                return;
            }
            Ok(job) => work(networks, job),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return networks.end(),
        }
        networks.sweep(Instant::now());
    }
}

fn work(networks: &mut Networks, job: NetworkJob) {
    match job {
        NetworkJob::Addresses(plan, ticket) => {
            networks.set_plan(*plan);
            ticket.done();
        }
        NetworkJob::Permit(user, permits, then) => then(networks.permit(&user, &permits)),
        NetworkJob::Floating(user, addresses, ticket) => ticket.end(networks.float(&user, addresses)),
        NetworkJob::Make(user, permits, then) => then(networks.make(&user, &permits)),
        NetworkJob::Leave(user) => networks.leave(&user),
        NetworkJob::Installed(user, module) => networks.installed(user, module),
        NetworkJob::Gone(user, module) => networks.gone(&user, &module),
        NetworkJob::Listeners(worker, slot, then) => then(networks.listeners(&worker, slot)),
        NetworkJob::DropListeners(worker, slot) => networks.drop_listeners(&worker, slot),
        NetworkJob::Sockets(wish, then) => {
            let made = networks.sockets(&wish.worker.user, wish.v6, wish.count).inspect_err(|error| {
                tracing::warn!(worker = %wish.worker, %error, "a worker gets no sockets for connections");
            });
            then(made.unwrap_or_default());
        }
        NetworkJob::Intercept(job, ticket) => ticket.end(networks.intercept(&job)),
        NetworkJob::CountDrops(reply) => {
            // Whoever asked may be gone.
            let _ = reply.send(networks.dropped());
        }
        NetworkJob::ReadMeters(then) => then(networks.read_meters()),
        NetworkJob::HasAddress(address, reply) => {
            let _ = reply.send(networks.has_address(address));
        }
        NetworkJob::FollowNode => networks.follow_node(),
        NetworkJob::End(_) => {}
    }
}
