// SPDX-License-Identifier: Apache-2.0
//! Which connections between others are taken over for whom: rules by their number, and where modules wait for them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use netserv_container::network::{Intercept, ListenerPorts};
use netserv_model::effect::{FilterId, ModuleSlot};
use netserv_model::verdict::FailureMode;
use netserv_model::{Filter, UserId, WorkerId};

use crate::limits::{INTERCEPT_REST, SOCKET_BATCHES_BURST, SOCKET_BATCHES_PER_SECOND};

/// The rules of a node.
#[derive(Debug, Default)]
pub struct Interceptions {
    rules: BTreeMap<FilterId, InterceptRule>,
    /// Where modules take connections, for as long as their workers have the listening sockets.
    ports: BTreeMap<(WorkerId, ModuleSlot), ListenerPorts>,
    budgets: BTreeMap<UserId, SocketBudget>,
}

#[derive(Clone, Debug)]
struct InterceptRule {
    worker: WorkerId,
    slot: ModuleSlot,
    filter: Filter,
    refuse: bool,
    /// New connections are taken.
    active: bool,
    /// When it goes, which it does once its connections have been ended.
    until: Option<Instant>,
}

impl Interceptions {
    /// Takes note of a rule, or of that a module takes its connections again.
    pub fn install(
        &mut self,
        id: FilterId,
        worker: &WorkerId,
        slot: ModuleSlot,
        filter: &Filter,
        on_failure: FailureMode,
    ) {
        let refuse = match on_failure {
            FailureMode::Open => false,
            FailureMode::Closed => true,
        };
        let (worker, filter) = (worker.clone(), filter.clone());
        self.rules.insert(id, InterceptRule { worker, slot, filter, refuse, active: true, until: None });
    }

    /// Has a rule take no new connections; returns whose it is.
    pub fn suspend(&mut self, id: FilterId) -> Option<UserId> {
        let rule = self.rules.get_mut(&id)?;
        rule.active = false;
        Some(rule.worker.user.clone())
    }

    /// Has a rule take no new connections, which pass; returns whose it is.
    pub fn drain(&mut self, id: FilterId) -> Option<UserId> {
        let rule = self.rules.get_mut(&id)?;
        // Nobody is refused for a module that is gone.
        (rule.active, rule.refuse) = (false, false);
        Some(rule.worker.user.clone())
    }

    /// Has a rule take no new connections, and go in a while; returns whose it is.
    pub fn end(&mut self, id: FilterId, now: Instant) -> Option<UserId> {
        let rule = self.rules.get_mut(&id)?;
        // Nobody is refused for a module that is gone.
        (rule.active, rule.refuse, rule.until) = (false, false, Some(now + INTERCEPT_REST));
        Some(rule.worker.user.clone())
    }

    /// Forgets a rule that could not be carried out.
    pub fn forget(&mut self, id: FilterId) {
        self.rules.remove(&id);
    }

    /// Forgets rules whose time is over; returns whose they were.
    pub fn sweep(&mut self, now: Instant) -> BTreeSet<UserId> {
        let over = |rule: &InterceptRule| rule.until.is_some_and(|until| until <= now);
        let users = self.rules.values().filter(|rule| over(rule)).map(|rule| rule.worker.user.clone()).collect();
        self.rules.retain(|_, rule| !over(rule));
        users
    }

    /// Returns what a user's container takes over.
    pub fn of(&self, user: &UserId) -> Vec<Intercept> {
        let mut all: Vec<Intercept> = Vec::new();
        for rule in self.rules.values().filter(|rule| rule.worker.user == *user) {
            let place = (rule.worker.clone(), rule.slot);
            let ports = self.ports.get(&place).copied().filter(|_| rule.active);
            // A version that goes and the one that comes have the same filter for a while, and so may other modules.
            match all.iter_mut().find(|other| other.filter == rule.filter) {
                Some(other) => (other.ports, other.refuse) = (other.ports.or(ports), other.refuse || rule.refuse),
                None => all.push(Intercept { filter: rule.filter.clone(), ports, refuse: rule.refuse }),
            }
        }
        // Nobody gets past a module that is down and does not want that.
        let down = |rule: &&InterceptRule| rule.worker.user == *user && !rule.active && rule.refuse;
        for rule in self.rules.values().filter(down) {
            all.iter_mut().filter(|other| other.filter == rule.filter).for_each(|other| other.ports = None);
        }
        all
    }

    /// Returns whether a worker has listening sockets for a module, which its next version goes on with.
    pub fn has_ports(&self, worker: &WorkerId, slot: ModuleSlot) -> bool {
        self.ports.contains_key(&(worker.clone(), slot))
    }

    /// Takes note of the listening sockets that a worker gets for a module.
    pub fn set_ports(&mut self, worker: &WorkerId, slot: ModuleSlot, ports: ListenerPorts) {
        self.ports.insert((worker.clone(), slot), ports);
    }

    /// Takes note that a worker has no listening sockets any more, for a module or for all.
    pub fn drop_ports(&mut self, worker: &WorkerId, slot: Option<ModuleSlot>) {
        self.ports.retain(|(owner, place), _| owner != worker || slot.is_some_and(|slot| slot != *place));
    }

    /// Returns whether a user's container may have another batch of sockets just now.
    pub fn spend_sockets(&mut self, user: &UserId, now: Instant) -> bool {
        self.budgets.entry(user.clone()).or_insert_with(|| SocketBudget::new(now)).spend(now)
    }
}

/// Batches of sockets that a container may have.
#[derive(Clone, Copy, Debug)]
struct SocketBudget {
    left: f64,
    seen: Instant,
}

impl SocketBudget {
    fn new(now: Instant) -> SocketBudget {
        SocketBudget { left: SOCKET_BATCHES_BURST, seen: now }
    }

    fn spend(&mut self, now: Instant) -> bool {
        let earned = now.saturating_duration_since(self.seen).as_secs_f64() * SOCKET_BATCHES_PER_SECOND;
        (self.left, self.seen) = ((self.left + earned).min(SOCKET_BATCHES_BURST), now);
        let may = self.left >= 1.0;
        self.left -= if may { 1.0 } else { 0.0 };
        may
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use netserv_model::Flavour;

    use super::*;

    const SLOT: ModuleSlot = ModuleSlot(3);

    fn worker(user: &str) -> WorkerId {
        WorkerId::new(user.parse().unwrap(), Flavour::Wasm)
    }

    fn install(all: &mut Interceptions, id: u64, user: &str, filter: &str, on_failure: FailureMode) {
        all.install(FilterId(id), &worker(user), SLOT, &filter.parse().unwrap(), on_failure);
    }

    #[test]
    fn a_rule_takes_connections_while_its_module_does() {
        let (mut all, now) = (Interceptions::default(), Instant::now());
        let ports = ListenerPorts { v4: Some(7), v6: None };
        all.set_ports(&worker("alice"), SLOT, ports);
        install(&mut all, 1, "alice", "tcp dst 10.0.0.0/8 port 80", FailureMode::Closed);
        install(&mut all, 2, "bob", "tcp dst 10.0.0.0/8 port 80", FailureMode::Open);
        let alice: UserId = "alice".parse().unwrap();
        let check = |all: &Interceptions, expected: &[(Option<ListenerPorts>, bool)]| {
            let found: Vec<_> = all.of(&alice).iter().map(|one| (one.ports, one.refuse)).collect();
            assert_eq!(found, expected);
        };
        check(&all, &[(Some(ports), true)]);
        assert_eq!(all.suspend(FilterId(1)), Some(alice.clone()));
        check(&all, &[(None, true)]);
        // It comes back with another worker, and nothing is known of its sockets.
        all.drop_ports(&worker("alice"), None);
        install(&mut all, 1, "alice", "tcp dst 10.0.0.0/8 port 80", FailureMode::Closed);
        check(&all, &[(None, true)]);
        all.set_ports(&worker("alice"), SLOT, ports);
        // Another version takes over before the old one goes.
        install(&mut all, 3, "alice", "tcp dst 10.0.0.0/8 port 80", FailureMode::Open);
        assert_eq!(all.end(FilterId(1), now), Some(alice.clone()));
        check(&all, &[(Some(ports), false)]);
        install(&mut all, 3, "alice", "tcp dst 10.0.0.0/8 port 80", FailureMode::Closed);
        assert_eq!(all.drain(FilterId(3)), Some(alice.clone()));
        check(&all, &[(None, false)]);
        assert_eq!(all.drain(FilterId(9)), None);
        check(&all, &[(None, false)]);
        all.end(FilterId(3), now);
        check(&all, &[(None, false)]);
        assert!(all.sweep(now).is_empty());
        assert_eq!(all.sweep(now + INTERCEPT_REST), BTreeSet::from([alice.clone()]));
        check(&all, &[]);
        assert_eq!(all.of(&"bob".parse().unwrap()).len(), 1);
    }

    #[test]
    fn nobody_gets_past_a_module_that_is_down_and_does_not_want_that() {
        let mut all = Interceptions::default();
        let [first, second] = [ListenerPorts { v4: Some(1), v6: None }, ListenerPorts { v4: Some(2), v6: None }];
        let (filter, alice): (_, UserId) = ("tcp dst 10.0.0.0/8 port 80", "alice".parse().unwrap());
        let place = |all: &mut Interceptions, id: u64, slot: u8, on_failure: FailureMode| {
            all.install(FilterId(id), &worker("alice"), ModuleSlot(slot), &filter.parse().unwrap(), on_failure);
        };
        all.set_ports(&worker("alice"), ModuleSlot(1), first);
        all.set_ports(&worker("alice"), ModuleSlot(2), second);
        for (on_failure, expected) in [(FailureMode::Open, Some(second)), (FailureMode::Closed, None)] {
            place(&mut all, 1, 1, on_failure);
            place(&mut all, 2, 2, FailureMode::Open);
            assert_eq!(all.of(&alice)[0].ports, Some(first), "the one that came first has it first");
            all.suspend(FilterId(1));
            let led = all.of(&alice);
            assert_eq!((led.len(), led[0].ports, led[0].refuse), (1, expected, on_failure == FailureMode::Closed));
        }
        all.drain(FilterId(1));
        assert_eq!(all.of(&alice)[0].ports, Some(second), "it is gone");
    }

    #[test]
    fn ports_go_with_their_module_or_worker() {
        let mut all = Interceptions::default();
        let (alice, other) = (worker("alice"), ModuleSlot(4));
        all.set_ports(&alice, SLOT, ListenerPorts::default());
        all.set_ports(&alice, other, ListenerPorts::default());
        all.drop_ports(&alice, Some(other));
        assert!(all.has_ports(&alice, SLOT) && !all.has_ports(&alice, other));
        all.drop_ports(&alice, None);
        assert!(!all.has_ports(&alice, SLOT));
    }

    #[test]
    fn a_container_gets_only_so_many_sockets_at_a_time() {
        let (mut all, now) = (Interceptions::default(), Instant::now());
        let [alice, bob]: [UserId; 2] = ["alice", "bob"].map(|name| name.parse().unwrap());
        let mut batches = 0;
        while all.spend_sockets(&alice, now) {
            batches += 1;
        }
        assert_eq!(f64::from(batches), SOCKET_BATCHES_BURST);
        assert!(all.spend_sockets(&bob, now), "others have their own");
        let later = now + Duration::from_secs_f64(1.5 / SOCKET_BATCHES_PER_SECOND);
        assert!(all.spend_sockets(&alice, later) && !all.spend_sockets(&alice, later));
    }
}
