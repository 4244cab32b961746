// SPDX-License-Identifier: Apache-2.0
//! The connections that a module may have, shared out by whose they are: while there is no place left, a connection of the
//! network that has most of them gives way to one of a network with fewer, and within a network one of the address with most.
//!
//! Only connections on which nothing is under way give way, the oldest first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netserv_model::share;
use tokio::sync::Notify;

use crate::limits;

/// The places of a module's connections.
#[derive(Debug, Default)]
pub struct Places(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    taken: BTreeMap<u64, Taken>,
    /// By network and address, in the order in which they came. Those that are to give way are out of it.
    by_client: BTreeMap<IpAddr, BTreeMap<IpAddr, BTreeSet<u64>>>,
}

#[derive(Debug)]
struct Taken {
    client: IpAddr,
    is_idle: IsIdle,
    gives_way: Arc<Notify>,
}

/// Says whether nothing is under way on a connection.
pub struct IsIdle(Box<dyn Fn() -> bool + Send + Sync>);

/// One place, until this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    number: u64,
    gives_way: Arc<Notify>,
}

impl Places {
    /// Takes a place for a client's connection. With as many as `most` taken, another one gives way if its client has more of
    /// them; else there is none.
    pub fn take(self: &Arc<Self>, client: IpAddr, most: usize, is_idle: IsIdle) -> Option<Place> {
        let mut inner = self.lock();
        if inner.taken.len() >= most {
            let given = inner.make_room(client.to_canonical())?;
            given.notify_one();
        }
        Some(self.add(inner, client, is_idle))
    }

    /// Takes a further place, over any bound, for what is left of a connection that has one already. It never gives way.
    pub fn take_beyond(self: &Arc<Self>, client: IpAddr) -> Place {
        self.add(self.lock(), client, IsIdle::from(|| false))
    }

    /// Returns how many places are taken.
    pub fn len(&self) -> usize {
        self.lock().taken.len()
    }

    fn add(self: &Arc<Self>, mut inner: MutexGuard<'_, Inner>, client: IpAddr, is_idle: IsIdle) -> Place {
        let (client, number, gives_way) = (client.to_canonical(), inner.next, Arc::<Notify>::default());
        inner.next += 1;
        inner.by_client.entry(network(client)).or_default().entry(client).or_default().insert(number);
        inner.taken.insert(number, Taken { client, is_idle, gives_way: Arc::clone(&gives_way) });
        Place { places: Arc::clone(self), number, gives_way }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Takes the place of a connection for a client's; returns what tells that one.
    fn make_room(&mut self, client: IpAddr) -> Option<Arc<Notify>> {
        let count = |addresses: &BTreeMap<IpAddr, BTreeSet<u64>>| addresses.values().map(BTreeSet::len).sum::<usize>();
        let own = network(client);
        let of_own = self.by_client.get(&own).map_or(0, count);
        let (largest, most) = self.by_client.iter().map(|(net, all)| (*net, count(all))).max_by_key(|(_, all)| *all)?;
        let from = if most > of_own { largest } else { own };
        let addresses = self.by_client.get(&from)?;
        let (address, numbers) = addresses.iter().max_by_key(|(_, all)| (all.len(), Reverse(all.first())))?;
        let of_client = addresses.get(&client).map_or(0, BTreeSet::len);
        // Within a network, who has most already has no more for it.
        if from == own && (*address == client || numbers.len() <= of_client) {
            return None;
        }
        let mut looked_at = numbers.iter().take(limits::GIVE_WAY_LOOKS_MAX);
        let number = *looked_at.find(|number| (self.taken[number].is_idle.0)())?;
        self.remove(number).map(|taken| taken.gives_way)
    }

    fn remove(&mut self, number: u64) -> Option<Taken> {
        let taken = self.taken.remove(&number)?;
        let net = network(taken.client);
        if let Some(addresses) = self.by_client.get_mut(&net) {
            if let Some(numbers) = addresses.get_mut(&taken.client) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    addresses.remove(&taken.client);
                }
            }
            if addresses.is_empty() {
                self.by_client.remove(&net);
            }
        }
        Some(taken)
    }
}

impl Place {
    /// Waits until the connection is to give way to another.
    pub async fn given(&self) {
        self.gives_way.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().remove(self.number);
    }
}

impl<F: Fn() -> bool + Send + Sync + 'static> From<F> for IsIdle {
    fn from(is_idle: F) -> IsIdle {
        IsIdle(Box::new(is_idle))
    }
}

impl std::fmt::Debug for IsIdle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("IsIdle")
    }
}

/// Returns the network under which a client's connections count: whoever has one address often has many beside it.
fn network(client: IpAddr) -> IpAddr {
    share::network(client, 16, 40)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const MOST: usize = 8;

    /// Places that were taken, by who took them, with whether each is idle.
    struct Rig {
        places: Arc<Places>,
        taken: Vec<(&'static str, Place, Arc<AtomicBool>)>,
    }

    impl Rig {
        fn new() -> Rig {
            Rig { places: Arc::default(), taken: Vec::new() }
        }

        fn take(&mut self, client: &'static str) -> bool {
            let idle = Arc::new(AtomicBool::new(true));
            let seen = Arc::clone(&idle);
            let is_idle = IsIdle::from(move || seen.load(Ordering::Relaxed));
            let place = self.places.take(client.parse().unwrap(), MOST, is_idle);
            let took = place.is_some();
            self.taken.extend(place.map(|place| (client, place, idle)));
            took
        }

        /// Takes away the places of those that gave way; returns whose they were.
        fn gave_way(&mut self) -> Vec<&'static str> {
            let mut gone = Vec::new();
            self.taken.retain(|(client, place, _)| {
                let stays = self.places.lock().taken.contains_key(&place.number);
                gone.extend((!stays).then_some(*client));
                stays
            });
            gone
        }
    }

    #[test]
    fn who_has_most_gives_way_and_gets_no_more() {
        for (attacker, neighbour, others) in [
            ("10.0.0.1", "10.0.9.9", ["192.0.2.1", "192.0.2.2", "198.51.100.1", "203.0.113.1"]),
            ("2001:db8::1", "2001:db8:0:1::1", ["2001:dc8::1", "2001:dc8::2", "2001:de8::1", "192.0.2.1"]),
        ] {
            let mut rig = Rig::new();
            assert!((0..MOST).all(|_| rig.take(attacker)) && !rig.take(attacker));
            for other in others {
                assert!(rig.take(other), "{other}");
                assert_eq!(rig.gave_way(), [attacker]);
            }
            // One of the same network has a share, too.
            assert!(rig.take(neighbour));
            assert_eq!(rig.gave_way(), [attacker]);
            assert!(!rig.take(attacker) && rig.gave_way().is_empty());
            assert_eq!(rig.places.len(), MOST);
        }
    }

    #[test]
    fn addresses_of_one_network_share_what_it_has() {
        let mut rig = Rig::new();
        let many = ["10.0.0.1", "10.0.0.2", "10.0.1.1", "10.0.1.2", "10.0.2.1", "10.0.2.2", "10.0.3.1", "10.0.3.2"];
        assert!(many.iter().all(|client| rig.take(client)));
        assert!(rig.take("10.0.4.1") && rig.take("192.0.2.1") && rig.take("192.0.2.1"));
        assert_eq!(rig.gave_way(), many[..3].to_vec(), "the oldest go first");
        assert!(!rig.take("10.0.4.1"), "nobody has more than it");
    }

    #[test]
    fn what_is_under_way_goes_on() {
        let mut rig = Rig::new();
        assert!((0..MOST).all(|_| rig.take("10.0.0.1")));
        rig.taken.iter().for_each(|(_, _, idle)| idle.store(false, Ordering::Relaxed));
        assert!(!rig.take("192.0.2.1"));
        rig.taken[3].2.store(true, Ordering::Relaxed);
        assert!(rig.take("192.0.2.1"));
        assert_eq!(rig.gave_way().len(), 1);
        let beyond = rig.places.take_beyond("10.0.0.1".parse().unwrap());
        assert_eq!(rig.places.len(), MOST + 1);
        drop((beyond, rig.taken));
        assert_eq!(rig.places.len(), 0);
        assert!(rig.places.lock().by_client.is_empty());
    }
}
