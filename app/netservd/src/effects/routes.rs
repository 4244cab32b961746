// SPDX-License-Identifier: Apache-2.0
//! The node's own addresses, and those that it has toward others: asked of the kernel on a thread that waits for it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use ipnet::IpNet;
use netserv_model::effect::EffectOutcome;
use netserv_model::route::RouteChange;
use netserv_netlink::routes::{LocalAddresses, RouteMonitor, Routes};
use netserv_node::gist::{InterfaceId, Prefix};
use rustix::net::{AddressFamily, SocketType, netdevice, socket};
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::ticket::Ticket;
use crate::event::Event;
use crate::readable::readable;

/// What the thread is to find out.
pub enum RouteJob {
    /// The node's own address toward a destination.
    Source(IpAddr, Ticket),
    /// All addresses of the node, since routes changed.
    Addresses,
}

/// What changed since the thread looked last: of a full table that a routing daemon brings, it looks at all at once.
#[derive(Clone, Default)]
struct Changed(Arc<Mutex<Option<RouteChange>>>);

impl Changed {
    /// Adds a change. Returns whether the thread is to be told, since it has nothing to look at.
    fn add(&self, change: RouteChange) -> bool {
        let mut all = self.lock();
        if let Some(all) = &mut *all {
            all.add(change);
            return false;
        }
        *all = Some(change);
        true
    }

    fn take(&self) -> Option<RouteChange> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<RouteChange>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread, and returns the addresses that the node has. Changes come as [`Event::Addresses`], and where flows may
/// come in as [`Event::Ingress`], by names of interfaces, if the operator says so; the thread ends when every sender is dropped.
///
/// # Errors
/// The kernel does not tell, or the system gives no thread.
pub fn start(events: mpsc::Sender<Event>, ingress: Ingress) -> Result<(Sender<RouteJob>, LocalAddresses)> {
    let routes = Routes::open().context("the routing table cannot be asked")?;
    // Before the first look, so that no change is missed.
    let monitor = RouteMonitor::open()?;
    let addresses = routes.addresses()?;
    if !ingress.is_empty() {
        // The first event of all: no Query comes before it.
        let first = events.try_send(Event::Ingress(found(&ingress)?));
        first.map_err(|_| anyhow!("the first event finds no room"))?;
    }
    // The node asks once for each destination, and bounds those; of changes there is one job at a time.
    let (jobs, inbox) = channel();
    let changed = Changed::default();
    tokio::spawn(watch(readable(&monitor)?, monitor, changed.clone(), jobs.clone()));
    let thread = std::thread::Builder::new().name("routes".to_owned());
    thread.spawn(move || run(&routes, (&inbox, &changed), &events, &ingress)).context("thread for routes")?;
    Ok((jobs, addresses))
}

async fn watch(fd: AsyncFd<OwnedFd>, monitor: RouteMonitor, changed: Changed, jobs: Sender<RouteJob>) {
    loop {
        let Ok(mut ready) = fd.readable().await else { return };
        ready.clear_ready();
        if let Some(change) = monitor.changed()
            && changed.add(change)
        {
            if jobs.send(RouteJob::Addresses).is_err() {
                return;
            }
            // Changes come in bursts.
            tokio::time::sleep(CHANGES_EACH).await;
        }
    }
}

/// The time between two looks at what changed.
const CHANGES_EACH: Duration = Duration::from_millis(20);

/// Where flows come from, by the interface that they come in by.
pub type Ingress = BTreeMap<String, Vec<IpNet>>;

/// Returns those of the interfaces that are there.
fn found(ingress: &Ingress) -> Result<Vec<(InterfaceId, Vec<Prefix>)>> {
    let kernel =
        socket(AddressFamily::UNIX, SocketType::DGRAM, None).context("no descriptor is left for interfaces")?;
    let prefix = |net: &IpNet| Prefix { address: net.network(), bits: net.prefix_len() };
    let known = ingress.iter().filter_map(|(name, nets)| {
        let index = netdevice::name_to_index(&kernel, name)
            .inspect_err(|_| tracing::warn!(interface = name, "signaling.ingress names an interface that is not there"))
            .ok()?;
        Some((InterfaceId(index), nets.iter().map(prefix).collect()))
    });
    Ok(known.collect())
}

fn run(
    routes: &Routes,
    (inbox, changed): (&Receiver<RouteJob>, &Changed),
    events: &mpsc::Sender<Event>,
    ingress: &Ingress,
) {
    for job in inbox {
        match job {
            RouteJob::Source(destination, ticket) => {
                let found = routes.source_for(destination);
                let local = found
                    .inspect_err(|error| tracing::debug!(%error, %destination, "the kernel names no route"))
                    .ok()
                    .flatten()
                    .map(|(local, _)| local);
                ticket.answer(EffectOutcome::Routed(local), None);
            }
            RouteJob::Addresses => {
                let Some(change) = changed.take() else { continue };
                match routes.addresses() {
                    Ok(addresses) => {
                        if events.blocking_send(Event::Addresses(addresses, change)).is_err()
                            || !tell_ingress(ingress, events)
                        {
                            return;
                        }
                    }
                    Err(error) => tracing::warn!(%error, "the node keeps the addresses that it had"),
                }
            }
        }
    }
}

/// Says anew where flows may come in; returns whether somebody is there to hear it.
fn tell_ingress(ingress: &Ingress, events: &mpsc::Sender<Event>) -> bool {
    if ingress.is_empty() {
        return true;
    }
    match found(ingress) {
        Ok(found) => events.blocking_send(Event::Ingress(found)).is_ok(),
        Err(error) => {
            tracing::warn!(%error, "flows are let in as before");
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: while the thread is busy, a routing daemon's full table takes one job and no memory that grows.
    #[test]
    fn a_full_table_of_routes_is_one_change() {
        let changed = Changed::default();
        let route = |number: u32| {
            let net = IpNet::new(std::net::Ipv4Addr::from_bits(0x1400_0000 | number << 8).into(), 24).unwrap();
            RouteChange::Toward(vec![net])
        };
        assert_eq!((0..100_000).filter(|number| changed.add(route(*number))).count(), 1);
        assert_eq!((changed.take(), changed.take()), (Some(RouteChange::All), None));
        assert!(changed.add(route(0)) && !changed.add(route(1)));
        let Some(RouteChange::Toward(prefixes)) = changed.take() else { panic!("two prefixes are not all") };
        assert_eq!(prefixes.len(), 2);
    }
}
