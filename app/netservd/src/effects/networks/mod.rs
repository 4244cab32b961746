// SPDX-License-Identifier: Apache-2.0
//! The networks of users' containers: made with a user's first worker, kept while the user has a module.
//!
//! One thread has all of it ([`jobs`]); nobody else asks the kernel for anything in containers' networks.

pub mod addresses;
pub mod interceptions;
pub mod jobs;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use netserv_container::network::limits::TRANSPARENT_SOCKETS_MAX;
use netserv_container::network::{
    ContainerNetwork, HostIntercepts, Listeners, NetworkSpec, ROUTING_PRIORITY, node_addresses, remove_networks,
};
use netserv_model::container_link::{CONTAINER_LINKS_MAX, container_link};
use netserv_model::effect::{InterceptJob, ModuleSlot};
use netserv_model::policy::{AddressPlan, Permits};
use netserv_model::usage::{NetworkMeter, Traffic};
use netserv_model::{Filter, ModuleName, Refusal, RefusalKind, UserId, WorkerId};
use netserv_wire::container::frames::PartKind;

use crate::effects::store::Store;
use crate::event::UserNetwork;
use crate::limits::METERED_NETWORKS_MAX;
use crate::machine::notices::Notices;
use addresses::Addresses;
use interceptions::Interceptions;

/// All networks of a node.
pub struct Networks {
    instance: String,
    store: Store,
    addresses: Addresses,
    installed: BTreeSet<(UserId, ModuleName)>,
    made: BTreeMap<UserId, Made>,
    /// How many were made.
    count: u64,
    /// The last counts of those that are gone, until they are read.
    gone: Vec<NetworkMeter>,
    /// What leads packets of others to containers.
    host: HostIntercepts,
    interceptions: Interceptions,
    /// The floating addresses that lead to each user's container.
    floating: BTreeMap<UserId, BTreeSet<IpAddr>>,
    /// When it was last looked whether all rules are there.
    looked_at: Instant,
    notices: Notices,
}

/// How often it is looked whether all rules are there.
const RULES_LOOK_TIME: Duration = Duration::from_secs(1);

struct Made {
    number: u32,
    network: Arc<ContainerNetwork>,
    /// Whether a worker is in it.
    in_use: bool,
    /// Which one it is of all.
    count: u64,
    /// What went through it when that was last read.
    traffic: Traffic,
}

impl Made {
    /// Returns what went through it; what was last read, if the kernel does not tell.
    fn read(&mut self, user: &UserId, ended: bool) -> NetworkMeter {
        match self.network.traffic() {
            Ok(traffic) => self.traffic = traffic,
            Err(error) => tracing::warn!(%user, %error, "what goes through a network is not counted"),
        }
        NetworkMeter { user: user.clone(), made: self.count, traffic: self.traffic, ended }
    }
}

impl Networks {
    /// Returns the networks of an instance, none at first. `store` has which addresses were chosen when the node last ran.
    ///
    /// # Errors
    /// The kernel does not say what is intercepted.
    pub fn new(store: Store, instance: String, notices: Notices) -> Result<Networks> {
        let chosen = store.addresses().unwrap_or_else(|error| {
            tracing::error!(%error, "containers get other addresses than before");
            BTreeMap::new()
        });
        let host = HostIntercepts::open(&instance).context("interception of connections")?;
        Ok(Networks {
            instance,
            store,
            addresses: Addresses::new(chosen),
            installed: BTreeSet::new(),
            made: BTreeMap::new(),
            count: 0,
            gone: Vec::new(),
            host,
            interceptions: Interceptions::default(),
            floating: BTreeMap::new(),
            looked_at: Instant::now(),
            notices,
        })
    }

    /// Takes over of what containers get their addresses; networks that are there keep theirs.
    pub fn set_plan(&mut self, plan: AddressPlan) {
        for user in self.addresses.set_plan(plan) {
            if let Err(error) = self.store.forget_addresses(&user) {
                tracing::warn!(%error, %user, "addresses are kept that are nobody's");
            }
        }
    }

    /// Has a user's network, if there is one, permit this.
    ///
    /// # Errors
    /// The kernel refuses, and the network permits what it did before; or there is none although there is to be one.
    pub fn permit(&self, user: &UserId, permits: &Permits) -> Result<(), Refusal> {
        let Some(made) = self.made.get(user) else {
            let none = || Refusal::new(RefusalKind::NoNetwork, "the container was started without a network");
            return if permits.needs_network() { Err(none()) } else { Ok(()) };
        };
        let Permits { listen, connect, rate, .. } = permits;
        if made.network.permitted() != (listen.clone(), connect.clone(), *rate) {
            made.network.permit(listen, connect, *rate)?;
        }
        Ok(())
    }

    /// Returns a user's network: the one that there is or a new one; nothing for a user who is permitted nothing. One that
    /// a worker is in is not replaced, whatever its addresses.
    ///
    /// # Errors
    /// There is no address for it, the kernel refuses, or something of what is permitted is over a bound.
    pub fn make(&mut self, user: &UserId, permits: &Permits) -> Result<Option<UserNetwork>, Refusal> {
        if !permits.needs_network() {
            return Ok(None);
        }
        let addresses = self.choose(user)?;
        if let Some(made) = self.made.get_mut(user)
            && (made.in_use || made.network.addresses() == addresses)
        {
            made.in_use = true;
            self.permit(user, permits)?;
            let made = &self.made[user];
            let addresses = made.network.addresses().to_vec();
            return Ok(Some(UserNetwork { network: made.network.clone(), addresses }));
        }
        if self.gone.len() >= METERED_NETWORKS_MAX {
            let detail = "nobody reads what went through networks before";
            return Err(Refusal::new(RefusalKind::NodeFailed, detail));
        }
        self.release(user);
        let number = self.free_number()?;
        let name = container_link(&self.instance, number);
        let Permits { listen, connect, rate, .. } = permits.clone();
        let spec = NetworkSpec { name, addresses: addresses.clone(), listen, connect, rate };
        let network = Arc::new(ContainerNetwork::create(&spec)?);
        if let Some(floating) = self.floating.get(user) {
            network.float(floating)?;
        }
        tracing::debug!(%user, number, ?addresses, "a container has a network");
        self.count += 1;
        let (count, traffic) = (self.count, Traffic::default());
        self.made.insert(user.clone(), Made { number, network: network.clone(), in_use: true, count, traffic });
        Ok(Some(UserNetwork { network, addresses }))
    }

    /// Leads these floating addresses to a user's container, and no others.
    ///
    /// # Errors
    /// An address is the node's or leads to another container (`address-taken`), the container has no network, or the kernel
    /// refuses; then those from before lead there.
    pub fn float(&mut self, user: &UserId, wanted: BTreeSet<IpAddr>) -> Result<(), Refusal> {
        let before = self.floating.get(user).cloned().unwrap_or_default();
        let come: Vec<IpAddr> = wanted.difference(&before).copied().collect();
        if let Some((address, whose)) = self.taken(user, &come)? {
            let detail = format!("floating address {address} {whose}");
            return Err(Refusal::new(RefusalKind::AddressTaken, detail));
        }
        match self.network(user) {
            Some(network) => network.float(&wanted)?,
            None if wanted.is_empty() => {}
            None => return Err(Refusal::new(RefusalKind::NoNetwork, "the container has no network")),
        }
        tracing::info!(%user, addresses = ?wanted, "floating addresses lead to a container");
        match wanted.is_empty() {
            true => drop(self.floating.remove(user)),
            false => drop(self.floating.insert(user.clone(), wanted)),
        }
        if !self.interceptions.of(user).is_empty()
            && let Err(refusal) = self.lead(user)
        {
            tracing::warn!(%user, %refusal, "what a container sends from floating addresses is judged as before");
        }
        Ok(())
    }

    /// Takes note that no worker is in a user's network. It goes unless a module is installed.
    pub fn leave(&mut self, user: &UserId) {
        if let Some(made) = self.made.get_mut(user) {
            made.in_use = false;
        }
        self.spare(user);
    }

    /// Takes note that a module is installed.
    pub fn installed(&mut self, user: UserId, module: ModuleName) {
        self.installed.insert((user, module));
    }

    /// Takes note that a module is gone. Its user's network goes unless somebody needs it.
    pub fn gone(&mut self, user: &UserId, module: &ModuleName) {
        self.installed.remove(&(user.clone(), module.clone()));
        self.spare(user);
    }

    /// Removes all networks, and the rules about them.
    pub fn end(&mut self) {
        self.made.clear();
        if self.count == 0 {
            return;
        }
        if let Err(error) = remove_networks(&self.instance) {
            tracing::warn!(%error, "links of containers are left behind");
        }
    }

    /// Makes the listening sockets at which a module's intercepted connections arrive, for its worker; none if that has
    /// them from the module's last version.
    ///
    /// # Errors
    /// There is no network, or the kernel refuses.
    pub fn listeners(&mut self, worker: &WorkerId, slot: ModuleSlot) -> Result<Vec<(PartKind, OwnedFd)>> {
        if self.interceptions.has_ports(worker, slot) {
            return Ok(Vec::new());
        }
        let network = self.network(&worker.user).context("the container has no network")?;
        let Listeners { v4, v6, ports } = network.listeners()?;
        self.interceptions.set_ports(worker, slot, ports);
        let (v4, v6) = (v4.map(|fd| (PartKind::ListenerV4, fd)), v6.map(|fd| (PartKind::ListenerV6, fd)));
        Ok(v4.into_iter().chain(v6).collect())
    }

    /// Takes note that a worker has no listening sockets any more, for a module or for all.
    pub fn drop_listeners(&mut self, worker: &WorkerId, slot: Option<ModuleSlot>) {
        self.interceptions.drop_ports(worker, slot);
    }

    /// Makes sockets with which a container speaks for others; none if it had too many of late.
    ///
    /// # Errors
    /// There is no network, or the kernel refuses.
    pub fn sockets(&mut self, user: &UserId, v6: bool, count: usize) -> Result<Vec<OwnedFd>> {
        if !self.interceptions.spend_sockets(user, Instant::now()) {
            return Ok(Vec::new());
        }
        let network = self.network(user).context("the container has no network")?;
        Ok(network.transparent_sockets(v6, count.min(TRANSPARENT_SOCKETS_MAX))?)
    }

    /// Changes what is intercepted.
    ///
    /// # Errors
    /// The kernel refuses a new rule, or there are too many; nothing of it is left then.
    pub fn intercept(&mut self, job: &InterceptJob) -> Result<(), Refusal> {
        let user = match job {
            InterceptJob::Begin(rule) => {
                self.interceptions.install(rule.id, &rule.worker, rule.slot, &rule.filter, rule.on_failure);
                Some(rule.worker.user.clone())
            }
            InterceptJob::Suspend(id) => self.interceptions.suspend(*id),
            InterceptJob::Drain(id) => self.interceptions.drain(*id),
            InterceptJob::End(id) => self.interceptions.end(*id, Instant::now()),
        };
        let Some(user) = user else { return Ok(()) };
        let Err(refusal) = self.lead(&user) else { return Ok(()) };
        tracing::warn!(%user, %refusal, ?job, "what is intercepted cannot be changed");
        let InterceptJob::Begin(rule) = job else { return Ok(()) };
        self.interceptions.forget(rule.id);
        if let Err(refusal) = self.lead(&user) {
            tracing::warn!(%user, %refusal, "a refused interception is left in the container's network");
        }
        Err(refusal)
    }

    /// Forgets rules of interception whose connections had their time.
    pub fn sweep(&mut self, now: Instant) {
        if now >= self.looked_at + RULES_LOOK_TIME {
            self.looked_at = now;
            self.restore_rules();
        }
        for user in self.interceptions.sweep(now) {
            if let Err(refusal) = self.lead(&user) {
                tracing::warn!(%user, %refusal, "connections go on to be led to a container");
            }
        }
    }

    /// Puts back what somebody took away: other programs remove rules of policy routing that they did not make, and whole tables of the
    /// packet filter.
    fn restore_rules(&self) {
        let mut lost = None;
        for (user, made) in &self.made {
            match made.network.restore_link() {
                Ok(missing) if missing.is_empty() => {}
                Ok(missing) => {
                    let missing = missing.join(", ");
                    tracing::warn!(%user, missing, "somebody took away what leads to a container; it is there again");
                }
                Err(error) => {
                    lost = Some(format!(
                        "nothing leads to that of {user}: {error}; fix: end its modules, and install them again"
                    ));
                }
            }
        }
        self.notices.set("networks of containers", lost);
        let preceding = self.host.preceding().unwrap_or_else(|error| vec![error.to_string()]);
        let preceding = (!preceding.is_empty()).then(|| {
            let rules = preceding.join(", ");
            format!(
                "rules of policy routing come before the node's, and what they match may pass modules unseen: {rules}; fix: give \
                 them priorities above {ROUTING_PRIORITY}"
            )
        });
        self.notices.set("interception", preceding);
        match self.host.restore() {
            Ok(missing) if missing.is_empty() => {}
            Ok(missing) => {
                let missing = missing.join(", ");
                tracing::warn!(missing, "somebody took away what leads packets to modules; it is there again");
            }
            Err(error) => tracing::warn!(%error, "what leads packets to modules is not there"),
        }
        for (user, made) in &self.made {
            match made.network.restore() {
                Ok(false) => {}
                Ok(true) => {
                    tracing::warn!(%user, "somebody took away what bounds a container's packets; it is there again");
                }
                Err(error) => tracing::warn!(%user, %error, "what bounds a container's packets is not there"),
            }
        }
    }

    /// Returns whether an address is a container's.
    pub fn has_address(&self, address: IpAddr) -> bool {
        let floats = self.floating.values().any(|floating| floating.contains(&address));
        floats || self.made.values().any(|made| made.network.addresses().contains(&address))
    }

    /// Returns the first of some addresses that leads elsewhere than to a user's container, and where.
    fn taken(&self, user: &UserId, addresses: &[IpAddr]) -> Result<Option<(IpAddr, &'static str)>, Refusal> {
        if addresses.is_empty() {
            return Ok(None);
        }
        let node = node_addresses()?;
        let others = || self.floating.iter().filter(|(other, _)| *other != user).map(|(_, floating)| floating);
        let whose = |address: &IpAddr| {
            let elsewhere = [
                (node.contains(address), "is the node's own"),
                (self.addresses.has(*address), "is that of a container"),
                (others().any(|floating| floating.contains(address)), "leads to another container"),
            ];
            elsewhere.into_iter().find(|(is, _)| *is).map(|(_, whose)| whose)
        };
        Ok(addresses.iter().find_map(|address| whose(address).map(|whose| (*address, whose))))
    }

    /// Keeps containers from the node's addresses as these are.
    pub fn follow_node(&self) {
        for (user, made) in &self.made {
            if let Err(error) = made.network.follow_node() {
                tracing::warn!(%user, %error, "a container is not kept from a new address of this node");
            }
        }
    }

    /// Returns how many packets the firewall of each user's container dropped, by reason: about 13 µs each.
    pub fn dropped(&self) -> BTreeMap<UserId, BTreeMap<String, u64>> {
        let read = |(user, made): (&UserId, &Made)| {
            let counted = made.network.dropped().and_then(|mut dropped| {
                for (reason, packets) in self.host.dropped(&made.network)? {
                    *dropped.entry(reason.to_owned()).or_default() += packets;
                }
                Ok(dropped)
            });
            let counted = counted.inspect_err(|error| tracing::debug!(%user, %error, "a firewall does not count"));
            Some((user.clone(), counted.ok()?))
        };
        self.made.iter().filter_map(read).collect()
    }

    /// Returns what went through all networks, also those that are gone, for the last time.
    pub fn read_meters(&mut self) -> Vec<NetworkMeter> {
        let read = self.made.iter_mut().map(|(user, made)| made.read(user, false));
        std::mem::take(&mut self.gone).into_iter().chain(read).collect()
    }

    /// Returns a user's addresses, of which it may be the first time that they are wanted.
    fn choose(&mut self, user: &UserId) -> Result<Vec<IpAddr>, Refusal> {
        if self.addresses.of(user).is_empty() {
            let floating = self.floating.values().flatten().copied();
            // Also of users who are not known any more and whose networks are still there.
            let made = self.made.values().flat_map(|made| made.network.addresses().to_vec());
            let taken = node_addresses()?.into_iter().chain(floating).chain(made).collect();
            let addresses = self.addresses.choose(user, &taken)?;
            if let Err(error) = self.store.put_addresses(user, &addresses) {
                tracing::error!(%error, %user, "a container may have other addresses after a restart");
            }
        }
        Ok(self.addresses.of(user).to_vec())
    }

    /// Removes a user's network if no worker is in it and nothing is installed.
    fn spare(&mut self, user: &UserId) {
        let in_use = self.made.get(user).is_some_and(|made| made.in_use);
        if !in_use && !self.installed.iter().any(|(owner, _)| owner == user) {
            self.release(user);
        }
    }

    /// Removes a user's network, if there is one: about 30 ms.
    fn release(&mut self, user: &UserId) {
        let Some(mut made) = self.made.remove(user) else { return };
        self.gone.push(made.read(user, true));
        let network = made.network;
        if let Err(error) = self.host.forget(&network) {
            tracing::warn!(%user, %error, "rules of interception are left behind");
        }
        // A worker that is being started may hold it for a moment, and its name is to be free at once.
        match network.remove() {
            Ok(()) => tracing::debug!(%user, "a container's network is removed"),
            Err(error) => tracing::warn!(%user, %error, "a container's network is left behind"),
        }
    }

    /// Has the kernel do what the rules of interception of a user say.
    fn lead(&self, user: &UserId) -> Result<(), Refusal> {
        let wanted = self.interceptions.of(user);
        let Some(network) = self.network(user) else {
            let none = || Refusal::new(RefusalKind::NoNetwork, "the container has no network");
            return if wanted.iter().all(|intercept| intercept.ports.is_none()) { Ok(()) } else { Err(none()) };
        };
        let filters: Vec<Filter> = wanted.iter().map(|intercept| intercept.filter.clone()).collect();
        // Packets are led to a container only while it knows what to do with them.
        if wanted.is_empty() {
            self.host.set(network, &filters)?;
            network.intercept(&wanted)?;
        } else {
            network.intercept(&wanted)?;
            self.host.set(network, &filters)?;
        }
        Ok(())
    }

    fn network(&self, user: &UserId) -> Option<&ContainerNetwork> {
        self.made.get(user).map(|made| &*made.network)
    }

    fn free_number(&self) -> Result<u32, Refusal> {
        let free = (0..CONTAINER_LINKS_MAX).find(|number| self.made.values().all(|made| made.number != *number));
        let detail = || format!("{CONTAINER_LINKS_MAX} containers have networks, which is the most");
        free.ok_or_else(|| Refusal::new(RefusalKind::QuotaExceeded, detail()))
    }
}

#[cfg(test)]
mod tests;
