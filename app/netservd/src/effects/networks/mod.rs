// SPDX-License-Identifier: Apache-2.0
//! The networks of users' containers: made with a user's first worker, kept while the user has a module.
//!
//! The [`Book`] is the control loop's: addresses and permissions. [`Networks`] has what the kernel has of it.

pub mod addresses;
pub mod interceptions;
pub mod jobs;
mod orders;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use netserv_container::network::limits::TRANSPARENT_SOCKETS_MAX;
use netserv_container::network::{
    AddressWatch, ContainerNetwork, HostIntercepts, Listeners, NetworkSpec, node_addresses, remove_networks,
};
use netserv_model::container_link::{CONTAINER_LINKS_MAX, container_link};
use netserv_model::effect::ModuleSlot;
use netserv_model::{Filter, Refusal, RefusalKind, UserId, WorkerId};
use netserv_wire::container::frames::PartKind;

use addresses::Addresses;
use interceptions::Interceptions;

use crate::config::{Config, User};
use crate::effects::store::Store;

/// What a user's container is to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// What its firewall permits.
    pub permits: Permits,
}

/// What a container may do in its network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// What it may accept.
    pub listen: Vec<Filter>,
    /// What it may open.
    pub connect: Vec<Filter>,
}

/// What the configuration gives users, and which addresses they have.
#[derive(Debug)]
pub struct Book {
    addresses: Addresses,
    permits: BTreeMap<UserId, Permits>,
    /// Users who may have a network.
    asked: BTreeSet<UserId>,
}

impl Book {
    /// Returns what was chosen when the node last ran. A configuration is to be taken over next.
    pub fn new(store: &Store) -> Book {
        let chosen = store.addresses().unwrap_or_else(|error| {
            tracing::error!(%error, "containers get other addresses than before");
            BTreeMap::new()
        });
        Book { addresses: Addresses::new(chosen), permits: BTreeMap::new(), asked: BTreeSet::new() }
    }

    /// Takes a configuration over. Returns whose permissions are other ones, and which, of those who may have a network.
    pub fn set_users(&mut self, config: &Config, store: &Store) -> Vec<(UserId, Permits)> {
        for user in self.addresses.set_users(config) {
            if let Err(error) = store.forget_addresses(&user) {
                tracing::warn!(%error, %user, "addresses are kept that are nobody's");
            }
        }
        let of = |user: &User| Permits { listen: user.listen.clone(), connect: user.connect.clone() };
        let permits = config.users.iter().map(|user| (user.name.clone(), of(user))).collect();
        let before = std::mem::replace(&mut self.permits, permits);
        let now = |user: &UserId| self.permits.get(user).cloned().unwrap_or_default();
        let changed = self.asked.iter().filter(|user| before.get(user).cloned().unwrap_or_default() != now(user));
        changed.map(|user| (user.clone(), now(user))).collect()
    }

    /// Returns what the network of a user's container is to be; nothing for a user who is permitted nothing.
    ///
    /// # Errors
    /// There is no address for it.
    pub fn want(&mut self, user: &UserId, store: &Store) -> Result<Option<Wanted>, Refusal> {
        let Some(permits) = self.permits.get(user).filter(|permits| **permits != Permits::default()).cloned() else {
            return Ok(None);
        };
        if self.addresses.of(user).is_empty() {
            let addresses = self.addresses.choose(user, &node_addresses()?)?;
            if let Err(error) = store.put_addresses(user, &addresses) {
                tracing::error!(%error, %user, "a container may have other addresses after a restart");
            }
        }
        self.asked.insert(user.clone());
        Ok(Some(Wanted { addresses: self.addresses.of(user).to_vec(), permits }))
    }

    /// Returns what a user's container may do in its network.
    pub fn permits(&self, user: &UserId) -> Permits {
        self.permits.get(user).cloned().unwrap_or_default()
    }

    /// Notes that a user's network is not needed any more. Returns whether the user may have one.
    pub fn let_go(&mut self, user: &UserId) -> bool {
        self.asked.remove(user)
    }

    /// Returns the addresses of a user's container; none if it has no network.
    pub fn addresses(&self, user: &UserId) -> &[IpAddr] {
        if self.asked.contains(user) { self.addresses.of(user) } else { &[] }
    }
}

/// All networks of a node. They are made and removed on one thread, since both take the kernel's time.
#[derive(Debug)]
pub struct Networks {
    instance: String,
    made: Mutex<BTreeMap<UserId, Made>>,
    /// What users may do by now, whatever it was when their networks were asked for.
    granted: Mutex<BTreeMap<UserId, Permits>>,
    /// What leads packets of others to containers.
    host: HostIntercepts,
    interceptions: Mutex<Interceptions>,
    /// Whether the forwarding plane sends packets on before the kernel could lead them to a container.
    past_kernel: AtomicBool,
}

#[derive(Clone, Debug)]
struct Made {
    number: u32,
    network: Arc<ContainerNetwork>,
}

impl Networks {
    /// Returns the networks of an instance, none at first, and keeps them from the node's addresses as these change.
    ///
    /// # Errors
    /// The kernel does not tell of changes, or gives no thread.
    pub fn start(instance: &str) -> Result<Arc<Networks>> {
        let host = HostIntercepts::open(instance).context("interception of connections")?;
        let (made, granted, interceptions) = (Mutex::default(), Mutex::default(), Mutex::default());
        let past_kernel = AtomicBool::new(false);
        let networks =
            Arc::new(Networks { instance: instance.to_owned(), made, granted, host, interceptions, past_kernel });
        let (watch, weak) = (AddressWatch::open().context("changes of addresses")?, Arc::downgrade(&networks));
        let thread = std::thread::Builder::new().name("addresses".to_owned());
        thread.spawn(move || follow(&watch, &weak)).context("thread for addresses")?;
        Ok(networks)
    }

    /// Returns a user's network: the one that there is or a new one, with the permissions that are wanted or were granted
    /// since. One that a worker uses (`in_use`) is not replaced, whatever its addresses.
    ///
    /// # Errors
    /// The kernel refuses, or something of what is wanted is over a bound.
    pub fn of(&self, user: &UserId, wanted: &Wanted, in_use: bool) -> Result<Arc<ContainerNetwork>, Refusal> {
        let made = self.made().get(user).cloned();
        if let Some(Made { network, .. }) = made {
            if in_use || network.addresses() == wanted.addresses {
                network.permit(&wanted.permits.listen, &wanted.permits.connect)?;
                self.catch_up(user, &network, &wanted.permits)?;
                return Ok(network);
            }
            self.release(user);
        }
        let Wanted { addresses, permits: Permits { listen, connect } } = wanted.clone();
        let number = self.free_number()?;
        let name = container_link(&self.instance, number);
        let network = Arc::new(ContainerNetwork::create(&NetworkSpec { name, addresses, listen, connect })?);
        tracing::debug!(%user, number, addresses = ?wanted.addresses, "a container has a network");
        self.made().insert(user.clone(), Made { number, network: network.clone() });
        // From here on, whoever changes what is granted finds the network.
        self.catch_up(user, &network, &wanted.permits)?;
        Ok(network)
    }

    /// Takes note of what a user's container may do. A network that is there permits it with the next
    /// [`permit`](Networks::permit), one that was asked for when it is made. Only one thread may call it.
    pub fn grant(&self, user: &UserId, permits: &Permits) {
        self.granted().insert(user.clone(), permits.clone());
    }

    /// Forgets what a user's container may do, whose network is to be removed. Likewise.
    pub fn revoke(&self, user: &UserId) {
        self.granted().remove(user);
    }

    /// Has a user's network permit what is granted by now, if there is one.
    pub fn permit(&self, user: &UserId) {
        let Some(network) = self.network(user) else { return };
        let Some(granted) = self.granted().get(user).cloned() else { return };
        let permitted = network.permit(&granted.listen, &granted.connect).map_err(Refusal::from);
        if let Err(error) = permitted.and_then(|()| self.catch_up(user, &network, &granted)) {
            tracing::error!(%user, %error, "a container may do what it might before");
        }
    }

    /// Removes a user's network, if there is one: about 30 ms.
    pub fn release(&self, user: &UserId) {
        // Nobody is to lead packets to it from here on.
        let alone = self.interceptions();
        let Some(Made { network, .. }) = self.made().remove(user) else { return };
        if let Err(error) = self.host.forget(&network) {
            tracing::warn!(%user, %error, "rules of interception are left behind");
        }
        drop(alone);
        // Somebody else may hold it for a moment, and its name is to be free at once.
        match network.remove() {
            Ok(()) => tracing::debug!(%user, "a container's network is removed"),
            Err(error) => tracing::warn!(%user, %error, "a container's network is left behind"),
        }
    }

    /// Removes all networks.
    pub fn end(&self) {
        let _alone = self.interceptions();
        let made = std::mem::take(&mut *self.made());
        if made.is_empty() {
            return;
        }
        if let Err(error) = remove_networks(&self.instance) {
            tracing::warn!(%error, "links of containers are left behind");
        }
    }

    /// Says whether the forwarding plane sends packets on before the kernel sees them: then nothing can be intercepted.
    pub fn set_past_kernel(&self, past_kernel: bool) {
        self.past_kernel.store(past_kernel, Ordering::Relaxed);
    }

    /// Makes the listening sockets at which a module's intercepted connections arrive, for its worker; none if that has
    /// them from the module's last version.
    ///
    /// # Errors
    /// There is no network, or the kernel refuses.
    pub fn listeners(&self, worker: &WorkerId, slot: ModuleSlot) -> Result<Vec<(PartKind, OwnedFd)>> {
        if self.interceptions().has_ports(worker, slot) {
            return Ok(Vec::new());
        }
        let past_kernel = self.past_kernel.load(Ordering::Relaxed);
        ensure!(!past_kernel, "with `dataplane.xdp-forward`, packets do not reach who takes over their connections");
        let network = self.network(&worker.user).context("the container has no network")?;
        let Listeners { v4, v6, ports } = network.listeners()?;
        self.interceptions().set_ports(worker, slot, ports);
        let (v4, v6) = (v4.map(|fd| (PartKind::ListenerV4, fd)), v6.map(|fd| (PartKind::ListenerV6, fd)));
        Ok(v4.into_iter().chain(v6).collect())
    }

    /// Makes sockets with which a container speaks for others; none if it had too many of late.
    ///
    /// # Errors
    /// There is no network, or the kernel refuses.
    pub fn sockets(&self, user: &UserId, v6: bool, count: usize) -> Result<Vec<OwnedFd>> {
        if !self.interceptions().spend_sockets(user, Instant::now()) {
            return Ok(Vec::new());
        }
        let network = self.network(user).context("the container has no network")?;
        Ok(network.transparent_sockets(v6, count.min(TRANSPARENT_SOCKETS_MAX))?)
    }

    /// Changes the rules of interception, and carries out those of the user that this returns.
    ///
    /// # Errors
    /// The kernel refuses, or there are too many.
    pub fn change_interceptions(
        &self,
        change: impl FnOnce(&mut Interceptions) -> Option<UserId>,
    ) -> Result<(), Refusal> {
        let mut interceptions = self.interceptions();
        let Some(user) = change(&mut interceptions) else { return Ok(()) };
        self.lead(&user, &interceptions)
    }

    /// Forgets rules whose connections had their time.
    pub fn sweep(&self) {
        let mut interceptions = self.interceptions();
        for user in interceptions.sweep(Instant::now()) {
            if let Err(refusal) = self.lead(&user, &interceptions) {
                tracing::warn!(%user, %refusal, "connections go on to be led to a container");
            }
        }
    }

    /// Has the kernel do what the rules of a user say.
    fn lead(&self, user: &UserId, interceptions: &Interceptions) -> Result<(), Refusal> {
        let wanted = interceptions.of(user);
        let Some(network) = self.network(user) else {
            let none = || Refusal::new(RefusalKind::NoNetwork, "the container has no network");
            return if wanted.iter().all(|intercept| intercept.ports.is_none()) { Ok(()) } else { Err(none()) };
        };
        let filters: Vec<Filter> = wanted.iter().map(|intercept| intercept.filter.clone()).collect();
        // Packets are led to a container only while it knows what to do with them.
        if wanted.is_empty() {
            self.host.set(&network, &filters)?;
            network.intercept(&wanted)?;
        } else {
            network.intercept(&wanted)?;
            self.host.set(&network, &filters)?;
        }
        Ok(())
    }

    /// Returns whether an address is a container's.
    pub fn has_address(&self, address: IpAddr) -> bool {
        self.made().values().any(|made| made.network.addresses().contains(&address))
    }

    fn network(&self, user: &UserId) -> Option<Arc<ContainerNetwork>> {
        self.made().get(user).map(|made| Arc::clone(&made.network))
    }

    /// Whoever also asks for what is made asks for this first.
    fn interceptions(&self) -> MutexGuard<'_, Interceptions> {
        self.interceptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many packets the firewall of each user's container dropped, by reason.
    pub fn dropped(&self) -> BTreeMap<UserId, BTreeMap<String, u64>> {
        let made: Vec<(UserId, Made)> = self.made().iter().map(|(user, made)| (user.clone(), made.clone())).collect();
        let read = |(user, made): (UserId, Made)| {
            let counted: io::Result<BTreeMap<String, u64>> = made.network.dropped();
            let counted = counted.inspect_err(|error| tracing::debug!(%user, %error, "a firewall does not count"));
            Some((user, counted.ok()?))
        };
        made.into_iter().filter_map(read).collect()
    }

    /// Has a network permit what is granted by now, if that is not what was `applied` to it. The last one to apply looks
    /// once more, so that two who do that at a time leave what was granted last.
    fn catch_up(&self, user: &UserId, network: &ContainerNetwork, applied: &Permits) -> Result<(), Refusal> {
        let mut applied = applied.clone();
        loop {
            let granted = self.granted().get(user).cloned();
            let Some(granted) = granted.filter(|granted| *granted != applied) else { return Ok(()) };
            network.permit(&granted.listen, &granted.connect)?;
            applied = granted;
        }
    }

    fn free_number(&self) -> Result<u32, Refusal> {
        let made = self.made();
        let free = (0..CONTAINER_LINKS_MAX).find(|number| made.values().all(|made| made.number != *number));
        let detail = || format!("{CONTAINER_LINKS_MAX} containers have networks, which is the most");
        free.ok_or_else(|| Refusal::new(RefusalKind::QuotaExceeded, detail()))
    }

    fn granted(&self) -> MutexGuard<'_, BTreeMap<UserId, Permits>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self) -> MutexGuard<'_, BTreeMap<UserId, Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often the thread that follows addresses looks whether it is still needed.
const WATCH_TIME: Duration = Duration::from_secs(1);

fn follow(watch: &AddressWatch, networks: &Weak<Networks>) {
    loop {
        let changed = watch.wait(WATCH_TIME);
        let Some(networks) = networks.upgrade() else { return };
        if !changed {
            continue;
        }
        let made: Vec<Made> = networks.made().values().cloned().collect();
        for Made { network, .. } in made {
            if let Err(error) = network.follow_node() {
                tracing::warn!(%error, "a container is not kept from a new address of this node");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering};

    use netserv_model::container_link::is_container_link;
    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

    use super::*;

    #[test]
    fn a_user_who_is_permitted_something_gets_addresses_that_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node.db");
        let store = Store::open(&path).unwrap();
        let [alice, bob] = users();
        let mut book = Book::new(&store);
        assert!(book.set_users(&config("listen = ['tcp port 80']"), &store).is_empty());
        assert_eq!(book.want(&bob, &store).unwrap(), None, "nothing is permitted");
        assert!(book.addresses(&alice).is_empty());
        let wanted = book.want(&alice, &store).unwrap().unwrap();
        assert_eq!(wanted.permits.listen[0].to_string(), "tcp port 80");
        assert_eq!((book.addresses(&alice), wanted.addresses.len()), (&*wanted.addresses, 2));
        let changed = book.set_users(&config("listen = ['tcp port 90']"), &store);
        assert_eq!((changed.len(), changed[0].1.listen[0].to_string()), (1, "tcp port 90".to_owned()));
        assert!(book.set_users(&config("listen = ['tcp port 90']"), &store).is_empty(), "nothing is new");
        assert!(book.let_go(&alice) && !book.let_go(&alice) && !book.let_go(&bob));
        assert!(book.addresses(&alice).is_empty());
        // As after a restart, with other users in front.
        let store = Store::open(&path).unwrap();
        let mut book = Book::new(&store);
        book.set_users(&config("connect = ['tcp port 443']"), &store);
        assert_eq!(book.want(&alice, &store).unwrap().unwrap().addresses, wanted.addresses);
        book.set_users(&Config::default(), &store);
        assert!(store.addresses().unwrap().is_empty(), "the user is gone");
    }

    #[test]
    fn a_network_is_shared_kept_and_removed() {
        let Some(_node) = Namespace::enter("a_network_is_shared_kept_and_removed") else { return };
        let networks = Networks::start("0a1b2c3d").unwrap();
        let [alice, bob] = users();
        let first = networks.of(&alice, &wanted(1), false).unwrap();
        assert!(Arc::ptr_eq(&first, &networks.of(&alice, &wanted(1), true).unwrap()), "both workers share it");
        assert!(Arc::ptr_eq(&first, &networks.of(&alice, &wanted(3), true).unwrap()), "a worker is in it");
        let other = networks.of(&bob, &wanted(2), false).unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        assert_eq!(links(), ["ns0a1b2c3dn0", "ns0a1b2c3dn1"]);
        let moved = networks.of(&alice, &wanted(3), false).unwrap();
        assert_eq!((moved.addresses(), links().len()), (wanted(3).addresses, 2));
        assert_eq!(networks.dropped().keys().collect::<Vec<_>>(), [&alice, &bob]);
        networks.release(&alice);
        networks.release(&alice);
        assert_eq!(links(), ["ns0a1b2c3dn1"], "also while somebody holds what was one");
        let again = networks.of(&alice, &wanted(3), false).unwrap();
        let taken = networks.of(&"carol".parse().unwrap(), &wanted(3), false).unwrap_err();
        assert!(taken.kind == RefusalKind::NodeFailed && taken.detail.contains("10.71.9.3"), "{taken}");
        drop(again);
        networks.end();
        assert!(links().is_empty());
    }

    /// What was asked for may be older than what is granted by the time that somebody makes it.
    #[test]
    fn what_was_taken_back_while_a_network_was_asked_for_stays_so() {
        let Some(_node) = Namespace::enter("what_was_taken_back_while_a_network_was_asked_for_stays_so") else {
            return;
        };
        let networks = Networks::start("0a1b2c3e").unwrap();
        let [alice, _] = users();
        let listen = |text: &str| Permits { listen: vec![text.parse().unwrap()], connect: vec![] };
        let wanted = Wanted { permits: listen("tcp port 80"), ..wanted(1) };
        networks.grant(&alice, &wanted.permits);
        networks.grant(&alice, &Permits::default());
        networks.permit(&alice);
        let network = networks.of(&alice, &wanted, false).unwrap();
        assert_eq!(network.permitted(), (vec![], vec![]), "a new one");
        networks.grant(&alice, &listen("tcp port 90"));
        networks.permit(&alice);
        assert_eq!(network.permitted().0, listen("tcp port 90").listen);
        networks.of(&alice, &wanted, true).unwrap();
        assert_eq!(network.permitted().0, listen("tcp port 90").listen, "one that is there");
        networks.grant(&alice, &wanted.permits);
        networks.of(&alice, &wanted, true).unwrap();
        assert_eq!(network.permitted().0, wanted.permits.listen);
        networks.end();
    }

    fn users() -> [UserId; 2] {
        ["alice", "bob"].map(|name| name.parse().unwrap())
    }

    fn config(permits: &str) -> Config {
        let user = |name: &str, more: &str| format!("[[user]]\nname = '{name}'\nkeys = []\nprefixes = []\n{more}\n");
        let users = user("bob", "") + &user("alice", permits);
        Config::parse(&format!("[network]\nprefixes = ['198.51.100.0/29', '2001:db8::/64']\n{users}")).unwrap()
    }

    fn wanted(number: u8) -> Wanted {
        Wanted { addresses: vec![IpAddr::from([10, 71, 9, number])], permits: Permits::default() }
    }

    fn links() -> Vec<String> {
        let output = Command::new("ip").args(["-br", "link"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let names = text.lines().filter_map(|line| line.split(['@', ' ']).next());
        let mut names: Vec<String> = names.filter(|name| is_container_link(name)).map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    /// A network namespace in which the test's thread is.
    struct Namespace(String);

    impl Namespace {
        fn enter(test: &str) -> Option<Namespace> {
            if !rustix::process::geteuid().is_root() {
                netserv_skips::skipped(test, "networks need root");
                return None;
            }
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let namespace = Namespace(format!("ns-network-d{}-{number}", std::process::id()));
            assert!(Command::new("ip").args(["netns", "add", &namespace.0]).status().unwrap().success());
            let file = File::open(format!("/run/netns/{}", namespace.0)).unwrap();
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            Some(namespace)
        }
    }

    impl Drop for Namespace {
        fn drop(&mut self) {
            let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
        }
    }
}
