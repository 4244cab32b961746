// SPDX-License-Identifier: Apache-2.0
//! Filters that lately began to show strangers' modules what web servers send: one may have come and gone while an address was asked.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use netserv_model::filter::Protocol;
use netserv_model::{Filter, Instant};

use crate::limits::{HEARING_MAX, PROOF_ANSWER_TIME_MAX};

/// The sources of such filters, for as long as a question to an address may take.
#[derive(Debug, Default)]
pub(crate) struct Hearing {
    begun: BTreeMap<IpNet, Instant>,
    /// When there were too many: until all of them are over, each address counts.
    overflowed: Option<Instant>,
}

impl Hearing {
    /// Takes note of a filter that is about to be installed.
    pub(crate) fn note(&mut self, now: Instant, filter: &Filter) {
        let Some(source) = filter.source().filter(|_| is_of_web(filter)) else { return };
        let is_full = |begun: &BTreeMap<IpNet, Instant>| begun.len() >= HEARING_MAX && !begun.contains_key(&source);
        if is_full(&self.begun) {
            self.begun.retain(|_, begun| is_recent(now, *begun));
        }
        if is_full(&self.begun) {
            self.overflowed = Some(now);
        } else {
            self.begun.insert(source, now);
        }
    }

    /// Returns whether one of them may have shown what an address said.
    pub(crate) fn has(&self, now: Instant, address: IpAddr) -> bool {
        let mut begun = self.begun.iter().filter(|(source, _)| source.contains(&IpNet::from(address)));
        self.overflowed.is_some_and(|begun| is_recent(now, begun)) || begun.any(|(_, begun)| is_recent(now, *begun))
    }
}

fn is_recent(now: Instant, begun: Instant) -> bool {
    now.since(begun) <= PROOF_ANSWER_TIME_MAX
}

/// Returns whether a filter has packets of web servers.
pub(crate) fn is_of_web(filter: &Filter) -> bool {
    matches!(filter.protocol(), Protocol::Any | Protocol::Tcp)
        && filter.source_ports().is_none_or(|ports| WEB.iter().any(|port| ports.contains(*port)))
}

/// The ports by which an address is asked.
const WEB: [u16; 2] = [80, 443];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_remembered_while_an_address_may_be_asked() {
        let (mut hearing, start) = (Hearing::default(), Instant::from_nanos(0));
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for filter in ["tcp src 10.2.0.0/24", "udp src 10.3.0.1", "tcp dst 10.4.0.1", "tcp src 10.5.0.1 sport 8080"] {
            hearing.note(start, &filter.parse().unwrap());
        }
        assert!(hearing.has(start + PROOF_ANSWER_TIME_MAX, address("10.2.0.9")));
        assert!(["10.3.0.1", "10.4.0.1", "10.5.0.1"].iter().all(|other| !hearing.has(start, address(other))));
        assert!(!hearing.has(start + PROOF_ANSWER_TIME_MAX * 2, address("10.2.0.9")));
        // If there are too many to remember, nobody gets in by that.
        for n in 0..u32::try_from(HEARING_MAX).unwrap() {
            hearing.note(start, &format!("tcp src {}", std::net::Ipv4Addr::from(n + (11 << 24))).parse().unwrap());
        }
        assert!(hearing.has(start, address("192.0.2.1")) && hearing.begun.len() == HEARING_MAX);
        let later = start + PROOF_ANSWER_TIME_MAX * 2;
        hearing.note(later, &"tcp src 10.2.0.9".parse().unwrap());
        assert!(!hearing.has(later, address("192.0.2.1")) && hearing.begun.len() == 1);
    }
}
