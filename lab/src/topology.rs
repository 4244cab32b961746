// SPDX-License-Identifier: Apache-2.0
//! Networks as values: machines, links, addresses, routes. Nothing here touches the system.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Machines in one lab at most: a link's number is one byte of its addresses.
pub const LINKS_MAX: usize = 200;

/// A network to be built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// The machines, named.
    pub machines: Vec<Machine>,
    /// The links between them.
    pub links: Vec<Link>,
}

/// One machine: one network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name in the lab, 1–8 letters and digits.
    pub name: String,
    /// What it does.
    pub kind: Kind,
}

/// What a machine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Forwards nothing.
    Host,
    /// Forwards packets and knows nothing of NetServ.
    Router,
    /// Forwards packets and runs `netservd`.
    Node,
    /// Hides the hosts that it has links to behind its address on the other links, and forgets flows soon.
    Nat,
}

/// A link between two machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// One end.
    pub a: String,
    /// The other end.
    pub b: String,
    /// What the link does to packets.
    #[serde(default)]
    pub impairment: Impairment,
}

impl Link {
    fn ends(&self) -> [&str; 2] {
        [&self.a, &self.b]
    }
}

/// What a link does to packets in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Impairment {
    /// How long each packet is under way.
    pub delay: Duration,
    /// How much longer or shorter, at most; packets may overtake each other.
    pub jitter: Duration,
    /// How many of 10,000 packets are lost.
    pub loss_per_10000: u32,
    /// How much it carries, in thousands of bits a second; 0 is all there is.
    #[serde(default)]
    pub kbit_per_s: u32,
    /// What the losses and the jitter are drawn from.
    pub seed: u64,
}

impl Impairment {
    /// Returns whether the link does anything to packets.
    pub fn is_some(&self) -> bool {
        !self.delay.is_zero() || !self.jitter.is_zero() || self.loss_per_10000 > 0 || self.kbit_per_s > 0
    }
}

/// One end of a link with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The machine.
    pub machine: String,
    /// The interface's name there.
    pub name: String,
    /// Its IPv4 address, of a /24.
    pub v4: Ipv4Addr,
    /// Its IPv6 address, of a /64.
    pub v6: Ipv6Addr,
}

/// A route of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination prefix.
    pub prefix: String,
    /// The next hop.
    pub via: IpAddr,
}

impl Topology {
    /// Returns a chain of machines: `chain(&[("sender", Host), ("n1", Node), …])`.
    pub fn chain(machines: &[(&str, Kind)]) -> Topology {
        let machines: Vec<Machine> =
            machines.iter().map(|(name, kind)| Machine { name: (*name).to_owned(), kind: *kind }).collect();
        let links = machines
            .windows(2)
            .map(|pair| Link { a: pair[0].name.clone(), b: pair[1].name.clone(), impairment: Impairment::default() })
            .collect();
        Topology { machines, links }
    }

    /// Returns `sender – n1 – r – n2 – receiver`, with a plain router between the nodes.
    pub fn two_nodes() -> Topology {
        Topology::chain(&[
            ("sender", Kind::Host),
            ("n1", Kind::Node),
            ("r", Kind::Router),
            ("n2", Kind::Node),
            ("receiver", Kind::Host),
        ])
    }

    /// Checks names, ends of links, and that everything hangs together.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self) -> Result<()> {
        ensure!(!self.machines.is_empty(), "a network needs a machine");
        ensure!(self.links.len() <= LINKS_MAX, "{} links, at most {LINKS_MAX}", self.links.len());
        let mut seen = BTreeMap::new();
        for machine in &self.machines {
            let name = &machine.name;
            let good = (1..=8).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric());
            ensure!(good, "`{name}` is no name of a machine (1-8 letters and digits)");
            ensure!(seen.insert(name, ()).is_none(), "two machines are called `{name}`");
        }
        for link in &self.links {
            for end in [&link.a, &link.b] {
                ensure!(seen.contains_key(end), "a link ends at `{end}`, which is no machine");
            }
            ensure!(link.a != link.b, "a link has both ends at `{}`", link.a);
        }
        let reached = self.next_hops(&self.machines[0].name).len() + 1;
        ensure!(reached == self.machines.len(), "some machines have no link to the others");
        Ok(())
    }

    /// Returns both ends of link number `index`.
    pub fn interfaces(&self, index: usize) -> (Interface, Interface) {
        let link = &self.links[index];
        let number = u8::try_from(index + 1).unwrap_or(u8::MAX);
        let end = |machine: &String, toward: &String, host: u8| Interface {
            machine: machine.clone(),
            name: format!("to-{toward}"),
            v4: Ipv4Addr::new(10, number, 0, host),
            v6: Ipv6Addr::new(0xfd00, u16::from(number), 0, 0, 0, 0, 0, u16::from(host)),
        };
        (end(&link.a, &link.b, 1), end(&link.b, &link.a, 2))
    }

    /// Returns a machine's interfaces, in the order of its links.
    pub fn interfaces_of(&self, machine: &str) -> Vec<Interface> {
        let both = (0..self.links.len()).map(|index| self.interfaces(index));
        both.flat_map(|(a, b)| [a, b]).filter(|interface| interface.machine == machine).collect()
    }

    /// Returns the NAT that hides a link.
    fn hider(&self, index: usize) -> Option<&str> {
        let [a, b] = self.links[index].ends();
        let is = |name: &str, kind| self.machines.iter().any(|machine| machine.name == name && machine.kind == kind);
        [(a, b), (b, a)].into_iter().find(|(nat, host)| is(nat, Kind::Nat) && is(host, Kind::Host)).map(|(nat, _)| nat)
    }

    /// Returns the interfaces of a machine by which it reaches what it does not hide.
    pub fn outside_of(&self, nat: &str) -> Vec<Interface> {
        let seen = (0..self.links.len()).filter(|index| self.hider(*index) != Some(nat));
        let ends = seen.map(|index| self.interfaces(index)).flat_map(|(a, b)| [a, b]);
        ends.filter(|interface| interface.machine == nat).collect()
    }

    /// Returns a machine's routes to every prefix that it has no interface in and that no NAT hides from it, by the fewest links.
    pub fn routes_of(&self, machine: &str) -> Vec<Route> {
        let next_hops = self.next_hops(machine);
        let own = (0..self.links.len()).filter(|index| self.links[*index].ends().contains(&machine));
        let hiders: Vec<_> = own.map(|index| self.hider(index)).collect();
        let mut routes = Vec::new();
        for index in 0..self.links.len() {
            let (a, b) = self.interfaces(index);
            let hides = |nat: &str| !hiders.contains(&Some(nat));
            if a.machine == machine || b.machine == machine || self.hider(index).is_some_and(hides) {
                continue;
            }
            let nearer = [&a, &b].into_iter().filter_map(|end| next_hops.get(&end.machine)).min_by_key(|hop| hop.0);
            if let Some((_, via)) = nearer {
                let number = index + 1;
                routes.push(Route { prefix: format!("10.{number}.0.0/24"), via: via.v4.into() });
                routes.push(Route { prefix: format!("fd00:{number:x}::/64"), via: via.v6.into() });
            }
        }
        routes
    }

    /// Returns, for each other machine, its distance in links and the neighbour through which it is reached.
    fn next_hops(&self, from: &str) -> BTreeMap<String, (usize, Interface)> {
        let mut found: BTreeMap<String, (usize, Interface)> = BTreeMap::new();
        let mut queue = VecDeque::from([(from.to_owned(), 0, None::<Interface>)]);
        while let Some((machine, distance, first)) = queue.pop_front() {
            for index in 0..self.links.len() {
                let (a, b) = self.interfaces(index);
                let far = match (a.machine == machine, b.machine == machine) {
                    (true, _) => b,
                    (_, true) => a,
                    (false, false) => continue,
                };
                if far.machine == from || found.contains_key(&far.machine) {
                    continue;
                }
                let first = first.clone().unwrap_or_else(|| far.clone());
                found.insert(far.machine.clone(), (distance + 1, first.clone()));
                queue.push_back((far.machine, distance + 1, Some(first)));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_has_routes_both_ways() {
        let topology =
            Topology::chain(&[("h1", Kind::Host), ("n1", Kind::Node), ("r", Kind::Router), ("h2", Kind::Host)]);
        topology.check().unwrap();
        let routes = topology.routes_of("h1");
        assert_eq!(routes.len(), 4);
        assert!(routes.iter().all(|route| ["10.1.0.2", "fd00:1::2"].contains(&route.via.to_string().as_str())));
        let back: Vec<_> =
            topology.routes_of("r").into_iter().map(|route| (route.prefix, route.via.to_string())).collect();
        assert_eq!(back[0], ("10.1.0.0/24".to_owned(), "10.2.0.1".to_owned()));
        assert_eq!(topology.interfaces_of("n1").len(), 2);
    }

    #[test]
    fn nobody_outside_has_a_route_to_what_a_nat_hides() {
        let mut topology =
            Topology::chain(&[("h1", Kind::Host), ("r", Kind::Router), ("nat", Kind::Nat), ("h2", Kind::Host)]);
        topology.machines.push(Machine { name: "h3".to_owned(), kind: Kind::Host });
        topology.links.push(Link { a: "h3".to_owned(), b: "nat".to_owned(), impairment: Impairment::default() });
        topology.check().unwrap();
        let prefixes = |machine| topology.routes_of(machine).into_iter().map(|route| route.prefix).collect::<Vec<_>>();
        assert_eq!(prefixes("h1"), ["10.2.0.0/24", "fd00:2::/64"]);
        assert_eq!(prefixes("r"), [""; 0]);
        assert_eq!(prefixes("nat"), ["10.1.0.0/24", "fd00:1::/64"]);
        assert_eq!(prefixes("h2").len(), 6);
        let outside: Vec<_> = topology.outside_of("nat").into_iter().map(|interface| interface.name).collect();
        assert_eq!(outside, ["to-r"]);
    }

    #[test]
    fn impossible_networks_are_refused() {
        let good = Topology::chain(&[("a", Kind::Host), ("b", Kind::Host)]);
        let check = |change: &dyn Fn(&mut Topology), named: &str| {
            let mut topology = good.clone();
            change(&mut topology);
            let error = topology.check().unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        };
        check(&|t| t.machines[1].name = "a".into(), "two machines");
        check(&|t| t.machines[1].name = "b/..".into(), "b/..");
        check(&|t| t.links[0].b = "c".into(), "`c`");
        check(&|t| t.links[0].b = "a".into(), "both ends");
        check(&|t| t.links.clear(), "no link");
        check(&|t| t.links = vec![t.links[0].clone(); LINKS_MAX + 1], "at most");
    }
}
