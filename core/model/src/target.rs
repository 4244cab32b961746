// SPDX-License-Identifier: Apache-2.0
//! Which nodes of a path a request is for.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::dependency::Dependency;
use crate::ids::ParseIdError;
use crate::{DomainName, Flavour, NodeId};

/// Node names in one request.
pub const TARGET_NODES_MAX: usize = 32;
/// Domains in one request.
pub const TARGET_DOMAINS_MAX: usize = 8;
/// Prefixes of destinations in one request.
pub const DESTINATIONS_MAX: usize = 8;
/// Conditions in one request.
pub const CONDITIONS_MAX: usize = 16;

/// Which nodes a request is for: those that all of it is true of. Every other node passes the request on and says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Which places on the path.
    pub scope: Scope,
    /// Which names, at most [`TARGET_NODES_MAX`]; empty means every name.
    pub nodes: Vec<NodeId>,
    /// Of which operators' domains, at most [`TARGET_DOMAINS_MAX`]; empty means every node, also one of no domain.
    pub domains: Vec<DomainName>,
    /// What the nodes must have, at most [`CONDITIONS_MAX`].
    pub require: Vec<Condition>,
}

/// Where the flow leads that a request may follow: to an address in one of these, at most [`DESTINATIONS_MAX`]. Empty means anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destinations(pub Vec<IpNet>);

impl Destinations {
    /// Returns one address alone.
    #[must_use]
    pub fn one(address: IpAddr) -> Destinations {
        Destinations(vec![IpNet::from(address.to_canonical())])
    }

    /// Returns whether they are all addresses of an IP version, or more.
    #[must_use]
    pub fn are_any(&self) -> bool {
        self.0.is_empty() || self.0.iter().any(|prefix| prefix.prefix_len() == 0)
    }

    /// Returns whether all of a flow's destinations are among these; `bits` is the length of their common prefix.
    #[must_use]
    pub fn cover(&self, address: IpAddr, bits: u8) -> bool {
        let flow = IpNet::new(address, bits).ok();
        self.0.is_empty() || flow.is_some_and(|flow| self.0.iter().any(|prefix| prefix.contains(&flow)))
    }
}

impl fmt::Display for Destinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(|prefix| shortest(*prefix)).collect::<Vec<_>>().join(", "))
    }
}

/// One thing that the header `for` names, so that a copy of the request is taken nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A destination of the flow that the request follows: `to=203.0.113.9` or `to=203.0.113.0/24`.
    To(IpNet),
    /// An operator's domain: `domain=isp.example`.
    Domain(DomainName),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::To(prefix) => write!(f, "to={}", shortest(*prefix)),
            Bound::Domain(domain) => write!(f, "domain={domain}"),
        }
    }
}

impl FromStr for Bound {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Bound, ParseIdError> {
        let bad = || ParseIdError::new(text, "to=ADDRESS, to=PREFIX or domain=NAME");
        if let Some(prefix) = text.strip_prefix("to=") {
            let address = || prefix.parse().map(|address: IpAddr| IpNet::from(address.to_canonical()));
            let prefix = crate::prefix::parse(prefix).or_else(|| address().ok()).ok_or_else(bad)?;
            Ok(Bound::To(prefix.trunc()))
        } else if let Some(domain) = text.strip_prefix("domain=") {
            domain.parse().map(Bound::Domain).map_err(|_| bad())
        } else {
            Err(bad())
        }
    }
}

/// Returns a prefix as text; one of all bits as an address.
fn shortest(prefix: IpNet) -> String {
    let is_address = prefix.prefix_len() == prefix.max_prefix_len();
    if is_address { prefix.addr().to_string() } else { prefix.to_string() }
}

words! {
    /// Which places on a path a request is for.
    #[derive(Default)]
    pub enum Scope {
        /// Every node.
        #[default]
        All = "all",
        /// The node next to the requester.
        First = "first",
        /// The node next to the flow's destination.
        Last = "last",
        /// Both of these.
        Edge = "edge",
    }
}

impl Scope {
    /// Returns whether the first node is one of these.
    #[must_use]
    pub fn has_first(self) -> bool {
        matches!(self, Scope::All | Scope::First | Scope::Edge)
    }

    /// Returns whether the last node is one of these.
    #[must_use]
    pub fn has_last(self) -> bool {
        matches!(self, Scope::All | Scope::Last | Scope::Edge)
    }
}

impl FromStr for Scope {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Scope, ParseIdError> {
        Scope::from_word(text).ok_or_else(|| ParseIdError::new(text, "a scope (first, last, all or edge)"))
    }
}

/// Something that a node must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// It runs code of this flavour: `flavour=wasm`.
    Flavour(Flavour),
    /// It has this building block: `block=kv>=1`.
    Block(Dependency),
    /// So many bytes of its memory are free: `memory>=64M`, in binary K, M or G.
    MemoryFree(u64),
    /// Its load average over a minute is below so many thousandths: `load<0.8`, with three decimals at most.
    LoadBelow(u32),
}

const UNITS: [(char, u32); 3] = [('G', 30), ('M', 20), ('K', 10)];

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Flavour(flavour) => write!(f, "flavour={flavour}"),
            Condition::Block(block) => write!(f, "block={block}"),
            Condition::MemoryFree(bytes) => {
                let unit = UNITS.into_iter().find(|(_, shift)| *bytes > 0 && bytes.trailing_zeros() >= *shift);
                match unit {
                    Some((unit, shift)) => write!(f, "memory>={}{unit}", bytes >> shift),
                    None => write!(f, "memory>={bytes}"),
                }
            }
            Condition::LoadBelow(permille) => {
                let decimals = format!("{:03}", permille % 1000);
                let decimals = decimals.trim_end_matches('0');
                let point = if decimals.is_empty() { "" } else { "." };
                write!(f, "load<{}{point}{decimals}", permille / 1000)
            }
        }
    }
}

impl FromStr for Condition {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Condition, ParseIdError> {
        let what = "a condition such as flavour=wasm, block=kv>=1, memory>=64M or load<0.8";
        let bad = || ParseIdError::new(text, what);
        if let Some(flavour) = text.strip_prefix("flavour=") {
            flavour.parse().map(Condition::Flavour).map_err(|_| bad())
        } else if let Some(block) = text.strip_prefix("block=") {
            block.parse().map(Condition::Block).map_err(|_| bad())
        } else if let Some(bytes) = text.strip_prefix("memory>=") {
            parse_bytes(bytes).map(Condition::MemoryFree).ok_or_else(bad)
        } else if let Some(load) = text.strip_prefix("load<") {
            parse_permille(load).map(Condition::LoadBelow).ok_or_else(bad)
        } else {
            Err(bad())
        }
    }
}

fn parse_bytes(text: &str) -> Option<u64> {
    let unit = UNITS.into_iter().find_map(|(unit, shift)| text.strip_suffix(unit).map(|digits| (digits, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    parse_number::<u64>(digits)?.checked_mul(1 << shift)
}

fn parse_permille(text: &str) -> Option<u32> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let decimals = Some(decimals).filter(|decimals| (1..=3).contains(&decimals.len()))?;
    let thousandths = parse_number::<u32>(&format!("{decimals:0<3}"))?;
    parse_number::<u32>(whole)?.checked_mul(1000)?.checked_add(thousandths)
}

fn parse_number<T: FromStr>(digits: &str) -> Option<T> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_written() {
        for (text, condition) in [
            ("flavour=wasm", Condition::Flavour(Flavour::Wasm)),
            ("block=kv>=2", Condition::Block("kv>=2".parse().unwrap())),
            ("memory>=64M", Condition::MemoryFree(64 << 20)),
            ("memory>=3G", Condition::MemoryFree(3 << 30)),
            ("memory>=1000", Condition::MemoryFree(1000)),
            ("memory>=0", Condition::MemoryFree(0)),
            ("load<0.8", Condition::LoadBelow(800)),
            ("load<12.345", Condition::LoadBelow(12_345)),
            ("load<2", Condition::LoadBelow(2000)),
        ] {
            assert_eq!(text.parse(), Ok(condition.clone()), "{text}");
            assert_eq!(condition.to_string(), text);
        }
        assert_eq!("memory>=1024K".parse(), Ok(Condition::MemoryFree(1 << 20)));
        assert_eq!("load<0.80".parse(), Ok(Condition::LoadBelow(800)));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in [
            "",
            "wasm",
            "flavour=",
            "flavour=elf",
            "flavour==wasm",
            "block=",
            "block=KV",
            "block=kv>=x",
            "memory>=",
            "memory>=M",
            "memory>=-1",
            "memory>=1.5G",
            "memory>=64m",
            "memory>=99999999999G",
            "memory>64M",
            "load<",
            "load<.5",
            "load<0.",
            "load<0.1234",
            "load<1e3",
            "load<+1",
            "load<5000000",
            "load>0.8",
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            assert!(error.contains("a condition such as flavour=wasm"), "{text}: {error}");
        }
    }

    #[test]
    fn bounds_are_read_and_written() {
        for (text, written) in [
            ("to=203.0.113.9", "to=203.0.113.9"),
            ("to=203.0.113.9/32", "to=203.0.113.9"),
            ("to=203.0.113.9/24", "to=203.0.113.0/24"),
            ("to=::ffff:10.0.0.1", "to=10.0.0.1"),
            ("to=2001:db8::/32", "to=2001:db8::/32"),
            ("domain=isp.example", "domain=isp.example"),
        ] {
            let bound: Bound = text.parse().unwrap();
            assert_eq!(bound.to_string(), written);
            assert_eq!(written.parse(), Ok(bound));
        }
        for text in ["", "to", "to=", "to=x", "to=10.0.0.0/33", "to=host.example", "domain=", "domain=ISP", "node=r1"] {
            let error = text.parse::<Bound>().unwrap_err().to_string();
            assert!(error.contains("to=ADDRESS, to=PREFIX or domain=NAME"), "{text}: {error}");
        }
    }

    #[test]
    fn destinations_cover_flows_inside_of_one() {
        let named = Destinations(vec!["10.1.0.0/16".parse().unwrap(), "2001:db8::7/128".parse().unwrap()]);
        let cover = |address: &str, bits| named.cover(address.parse().unwrap(), bits);
        assert!(cover("10.1.2.3", 32) && cover("10.1.0.0", 16) && cover("2001:db8::7", 128));
        assert!(!cover("10.1.0.0", 15) && !cover("10.2.0.1", 32) && !cover("2001:db8::8", 128) && !cover("::", 0));
        assert!(!cover("10.1.2.3", 255), "no such prefix");
        assert!(Destinations::default().cover("::".parse().unwrap(), 0));
        assert!(Destinations::default().are_any() && !named.are_any());
        assert!(Destinations(vec!["0.0.0.0/0".parse().unwrap()]).are_any());
        assert_eq!(Destinations::one("::ffff:10.0.0.1".parse().unwrap()).to_string(), "10.0.0.1");
    }

    #[test]
    fn scopes_are_words() {
        for scope in Scope::ALL {
            assert_eq!(scope.to_string().parse(), Ok(scope));
        }
        assert!("middle".parse::<Scope>().is_err());
        assert_eq!(
            Scope::ALL.map(|scope| (scope.has_first(), scope.has_last())),
            [(true, true), (true, false), (false, true), (true, true)]
        );
    }
}
