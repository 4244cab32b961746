// SPDX-License-Identifier: Apache-2.0
//! Where packets go: a bounded memory of what the kernel said about routes and neighbours.
//!
//! It is forgotten at every notice of a change, and after a short while in any case.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use netserv_plane::DriverError;

use super::kernel::{Interface, Kernel, Neighbour, Route, Rules, SourceCheck, Station};
use crate::limits;

/// What becomes of a packet that is to be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forwarding {
    /// Out by a device of ours.
    Out(Hop),
    /// Only the kernel can do it, and why.
    Kernel(&'static str),
    /// It must not be forwarded, and why.
    Refused(&'static str),
}

/// The next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hop {
    pub device: u32,
    /// The interface that it leaves by: the device, or the VLAN on it.
    pub interface: u32,
    pub neighbour: IpAddr,
    pub vlan: Option<u16>,
    pub source: Station,
    pub destination: Station,
    /// Bytes of the longest packet.
    pub mtu: usize,
}

/// What forwarding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    /// The interface where it came in; 0 for a packet of the node's own.
    came: u32,
    /// The source, where it is checked or a rule of routing looks at it.
    source: Option<IpAddr>,
    destination: IpAddr,
}

/// What was found so far.
pub(super) struct ForwardingCache {
    kernel: Kernel,
    interfaces: BTreeMap<u32, Interface>,
    /// The devices that packets can be sent by.
    served: BTreeSet<u32>,
    known: HashMap<Key, (Forwarding, Instant)>,
    /// Those used lately, each in the place that its key leads to.
    recent: Box<[Option<Recent>]>,
    /// What is recent is of this age; the others do not count.
    age: u64,
    aged: Instant,
    now: Instant,
    /// Some interface checks sources.
    checks_source: bool,
    rules: Rules,
    /// A change of rules was heard of, and what they are like is not known yet.
    rules_stale: bool,
    /// A change of links was heard of, and what they are like is not known yet.
    links_stale: bool,
}

#[derive(Clone, Copy)]
struct Recent {
    key: Key,
    age: u64,
    forwarding: Forwarding,
}

impl ForwardingCache {
    pub fn new(kernel: Kernel) -> Result<ForwardingCache, DriverError> {
        let now = Instant::now();
        let mut cache = ForwardingCache {
            interfaces: BTreeMap::new(),
            served: BTreeSet::new(),
            kernel,
            known: HashMap::new(),
            recent: vec![None; RECENT_WAYS].into(),
            age: 0,
            aged: now,
            now,
            checks_source: false,
            rules: Rules::default(),
            rules_stale: true,
            links_stale: true,
        };
        cache.ask_for_links()?;
        cache.ask_for_rules()?;
        Ok(cache)
    }

    /// Returns the interfaces as they were at the last look.
    pub fn interfaces(&self) -> &BTreeMap<u32, Interface> {
        &self.interfaces
    }

    /// Returns the kernel, to be asked.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Says which devices packets can be sent by.
    pub fn set_served(&mut self, served: BTreeSet<u32>) {
        if self.served != served {
            self.served = served;
            self.known.clear();
            self.forget_recent();
        }
    }

    /// Forgets what may have changed; returns whether links or addresses did. To be called now and then.
    ///
    /// # Errors
    /// If the kernel does not say what links are like; the next call asks again.
    pub fn look(&mut self, now: Instant) -> Result<bool, DriverError> {
        self.now = now;
        // All, so that all are emptied.
        let (links, routes, rules) =
            (self.kernel.links_changed(), self.kernel.ways_changed(), self.kernel.rules_changed());
        if links || routes || rules {
            self.known.clear();
            self.forget_recent();
        } else if now.duration_since(self.aged) > RECENT {
            self.forget_recent();
        }
        self.rules_stale |= rules;
        if self.rules_stale {
            self.ask_for_rules()?;
        }
        self.links_stale |= links;
        let changed = self.links_stale;
        if changed {
            self.ask_for_links()?;
        }
        Ok(changed)
    }

    fn ask_for_links(&mut self) -> Result<(), DriverError> {
        self.interfaces = self.kernel.interfaces()?;
        self.checks_source = self.interfaces.values().any(|interface| interface.source_check != SourceCheck::Off);
        self.links_stale = false;
        Ok(())
    }

    fn ask_for_rules(&mut self) -> Result<(), DriverError> {
        self.rules = self.kernel.rules()?;
        self.rules_stale = false;
        Ok(())
    }

    /// Returns what becomes of a packet that came in by an interface, or, without one, of a packet of the node's own.
    pub fn forwarding(&mut self, source: IpAddr, destination: IpAddr, came: Option<u32>) -> &Forwarding {
        let came_in = came.filter(|_| self.checks_source).and_then(|came| self.interfaces.get(&came));
        let checked = came_in.is_some_and(|interface| interface.source_check != SourceCheck::Off);
        let by_source = checked || self.rules.by_source;
        let key = Key { came: came.unwrap_or(0), source: by_source.then_some(source), destination };
        let place = place_of(&key);
        let age = self.age;
        if !self.recent[place].as_ref().is_some_and(|recent| recent.age == age && recent.key == key) {
            let known =
                self.known.get(&key).filter(|(_, found)| !is_old(*found, self.now)).map(|(forwarding, _)| *forwarding);
            let forwarding = known.unwrap_or_else(|| self.find(key, source));
            self.recent[place] = Some(Recent { key, age, forwarding });
        }
        match &self.recent[place] {
            Some(recent) => &recent.forwarding,
            None => unreachable!("it was just put there"),
        }
    }

    fn forget_recent(&mut self) {
        self.age += 1;
        self.aged = self.now;
    }

    fn find(&mut self, key: Key, source: IpAddr) -> Forwarding {
        let came = (key.came != 0).then_some(key.came);
        let forwards = came.is_none_or(|came| {
            let interface = self.interfaces.get(&came);
            interface.is_some_and(|one| if key.destination.is_ipv4() { one.forwards_v4 } else { one.forwards_v6 })
        });
        let unknown = self.rules.by_more || (self.rules.by_source && came.is_none());
        let forwarding = if forwards && unknown {
            Forwarding::Kernel("rules of routing look at more than the kernel is asked for")
        } else if forwards {
            self.ask(key.destination, came.map(|came| (came, source)))
        } else {
            Forwarding::Refused("the interface where it came in does not forward")
        };
        if self.known.len() >= limits::FORWARDING_MAX {
            self.known.clear();
        }
        // A neighbour that answers makes a notice; until then the kernel has the packets, and waits with them.
        self.known.insert(key, (forwarding, self.now));
        forwarding
    }

    fn ask(&self, destination: IpAddr, came: Option<(u32, IpAddr)>) -> Forwarding {
        let (interface, neighbour, mtu) = match self.kernel.route(destination, came) {
            Ok(Route::Next { interface, neighbour, mtu }) => (interface, neighbour, mtu),
            Ok(Route::Refused) => return Forwarding::Refused("its source cannot be true where it came in"),
            Ok(Route::Kernel(why)) => return Forwarding::Kernel(why),
            Err(error) => {
                tracing::debug!(%error, "a route is not known");
                return Forwarding::Kernel("its route could not be asked for");
            }
        };
        let Some(out) = self.interfaces.get(&interface).filter(|interface| interface.up) else {
            return Forwarding::Kernel("the interface of its route is down");
        };
        let Some(source) = out.station else { return Forwarding::Kernel("the interface of its route is no Ethernet") };
        let (device, vlan) = out.vlan.map_or((interface, None), |(device, vlan)| (device, Some(vlan)));
        if !self.served.contains(&device) {
            return Forwarding::Kernel("the device of its route is not served by the driver");
        }
        let destination = match self.kernel.neighbour(interface, neighbour) {
            Neighbour::Known(station) => station,
            Neighbour::Stale(station) => {
                self.kernel.use_neighbour(interface, neighbour);
                station
            }
            Neighbour::Unknown => return Forwarding::Kernel("the station of its next hop is not known yet"),
        };
        let mtu = mtu.unwrap_or(out.mtu).min(out.mtu);
        Forwarding::Out(Hop { device, interface, neighbour, vlan, source, destination, mtu })
    }
}

/// How long an entry is recent; after that its age is looked at.
const RECENT: Duration = Duration::from_millis(500);
/// Entries that are found without a search, a power of two.
const RECENT_WAYS: usize = 1024;

/// Returns the place where an entry is kept while it is recent.
fn place_of(key: &Key) -> usize {
    let folded = match key.destination {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => {
            let [a, b, c, d, e, f, g, h] = v6.segments().map(u64::from);
            (a << 48 | b << 32 | c << 16 | d) ^ (e << 48 | f << 32 | g << 16 | h).rotate_left(29)
        }
    };
    let mixed = (folded ^ u64::from(key.came) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    usize::try_from(mixed >> (64 - RECENT_WAYS.ilog2())).expect("a few bits")
}

/// How long an answer is believed without a notice: a neighbour that is used is asked for again about as often.
const BELIEVED: Duration = Duration::from_secs(5);

fn is_old(found: Instant, now: Instant) -> bool {
    now.duration_since(found) > BELIEVED
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// The way to each address of the loopback network is the kernel's business, and asking for it needs no rights.
    #[test]
    fn ways_max_ways_are_remembered() {
        let mut cache = ForwardingCache::new(Kernel::open().unwrap()).unwrap();
        let source = IpAddr::from([127, 0, 0, 1]);
        for number in 0..u32::try_from(limits::FORWARDING_MAX).unwrap() + 3 {
            let destination = IpAddr::V4(Ipv4Addr::from_bits(0x7f00_0000 + number));
            assert!(matches!(cache.forwarding(source, destination, None), Forwarding::Kernel(_)), "{destination}");
            assert!(cache.known.len() <= limits::FORWARDING_MAX);
        }
        assert_eq!(cache.known.len(), 3);
        cache.look(cache.now + 2 * BELIEVED).unwrap();
        cache.forwarding(source, IpAddr::from([127, 0, 0, 1]), None);
        assert!(cache.known.values().any(|(_, found)| *found == cache.now), "an old answer is asked for again");
    }
}
