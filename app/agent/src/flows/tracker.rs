// SPDX-License-Identifier: Apache-2.0
//! Which flows are new, and whose go on.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use super::diag::Flow;
use crate::limits::{FLOW_COUNTS_AGAIN, FLOW_SEEN_EVERY, FLOWS_KNOWN_MAX};

/// The flows of the last look.
#[derive(Debug, Default)]
pub struct Tracker(HashMap<(SocketAddr, SocketAddr), Known>);

#[derive(Clone, Copy, Debug)]
struct Known {
    /// When it counted last.
    counted: Instant,
    /// When its client was said to be there last.
    said: Instant,
}

impl Tracker {
    /// Takes what there is; returns the clients that are to be told of, each with how many flows count: new ones, and each that goes on for
    /// [`FLOW_COUNTS_AGAIN`]. A client whose flows only go on has none of these, and is seen all the same. Of a listing that is not whole, the
    /// flows that it leaves out are known on, as far as there is room.
    pub fn note(&mut self, now: Instant, flows: &[Flow], is_whole: bool) -> BTreeMap<IpAddr, u32> {
        let mut before = std::mem::take(&mut self.0);
        let mut clients = BTreeMap::new();
        for flow in flows.iter().filter(|flow| is_between_machines(flow)) {
            let ends = (flow.local, flow.remote);
            let known = before.remove(&ends);
            let counts = known.is_none_or(|known| flow.is_open && now - known.counted >= FLOW_COUNTS_AGAIN);
            let is_said = counts || known.is_some_and(|known| flow.is_open && now - known.said >= FLOW_SEEN_EVERY);
            let at = |last: Option<Instant>, is_now: bool| last.filter(|_| !is_now).unwrap_or(now);
            let counted = at(known.map(|known| known.counted), counts);
            self.0.insert(ends, Known { counted, said: at(known.map(|known| known.said), is_said) });
            if is_said {
                *clients.entry(flow.remote.ip()).or_default() += u32::from(counts);
            }
        }
        if !is_whole {
            let room = FLOWS_KNOWN_MAX.saturating_sub(self.0.len());
            self.0.extend(before.into_iter().take(room));
        }
        clients
    }

    /// Returns the clients of all flows, each with how many it has: for who has not been told of any yet.
    pub fn clients(&self) -> BTreeMap<IpAddr, u32> {
        let mut clients = BTreeMap::new();
        for (_, remote) in self.0.keys() {
            *clients.entry(remote.ip()).or_default() += 1;
        }
        clients
    }

    /// Takes a flow that is over; returns its client if it was not known.
    pub fn closed(&mut self, now: Instant, flow: &Flow) -> Option<IpAddr> {
        let ends = (flow.local, flow.remote);
        let is_new = is_between_machines(flow) && !self.0.contains_key(&ends) && self.0.len() < FLOWS_KNOWN_MAX;
        // The kernel may list it a while longer.
        is_new.then(|| self.0.insert(ends, Known { counted: now, said: now }));
        is_new.then(|| flow.remote.ip())
    }

    /// Returns how many flows there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Returns whether a flow may have nodes on its way.
fn is_between_machines(flow: &Flow) -> bool {
    let remote = flow.remote.ip();
    let is_near = match remote {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !(is_near || remote.is_loopback() || remote.is_unspecified() || remote.is_multicast() || remote == flow.local.ip())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn flow(local: &str, remote: &str, is_open: bool) -> Flow {
        Flow { local: local.parse().unwrap(), remote: remote.parse().unwrap(), is_open }
    }

    #[test]
    fn a_new_flow_counts_once_and_one_that_lasts_each_minute() {
        let (mut tracker, begun) = (Tracker::default(), Instant::now());
        let mut look = |after: Duration, flows: &[Flow]| {
            let told = tracker.note(begun + after, flows, true);
            told.into_iter().map(|(client, count)| format!("{client} {count}")).collect::<Vec<_>>().join(", ")
        };
        let first = flow("192.0.2.1:1000", "198.51.100.7:80", true);
        let second = flow("192.0.2.1:1001", "198.51.100.7:80", true);
        let over = Flow { is_open: false, ..second };
        assert_eq!(look(Duration::ZERO, &[first]), "198.51.100.7 1");
        assert_eq!(look(Duration::from_secs(1), &[first, second]), "198.51.100.7 1");
        assert_eq!(look(Duration::from_secs(2), &[first, over]), "");
        assert_eq!(look(FLOW_SEEN_EVERY, &[first, over]), "198.51.100.7 0");
        assert_eq!(look(FLOW_COUNTS_AGAIN, &[first, over]), "198.51.100.7 1", "what is over counts no more");
        assert_eq!(look(FLOW_COUNTS_AGAIN + Duration::from_secs(1), &[]), "");
        // The same ends, after it was gone, are another flow; one that was over when it was first seen counts, too.
        assert_eq!(look(FLOW_COUNTS_AGAIN + Duration::from_secs(2), &[over]), "198.51.100.7 1");
    }

    #[test]
    fn a_flow_that_is_over_between_two_looks_counts_once() {
        let (mut tracker, now) = (Tracker::default(), Instant::now());
        let [first, second] = ["80", "81"].map(|port| flow("192.0.2.1:1000", &format!("198.51.100.7:{port}"), true));
        let over = |flow: Flow| Flow { is_open: false, ..flow };
        assert_eq!(tracker.note(now, &[first], true).len(), 1);
        assert_eq!(tracker.closed(now, &over(first)), None);
        assert_eq!(tracker.closed(now, &over(second)), Some(second.remote.ip()));
        assert!(tracker.closed(now, &over(second)).is_none() && tracker.note(now, &[over(second)], true).is_empty());
        assert!(tracker.note(now, &[], true).is_empty());
        assert_eq!(tracker.closed(now, &over(second)), Some(second.remote.ip()), "the same ends, later");
        for port in 0..FLOWS_KNOWN_MAX {
            let other = format!("[2001:db8::{:x}]:{}", port >> 8, 1 + (port & 255));
            tracker.closed(now, &flow("[2001:db8:1::1]:1", &other, false));
        }
        assert_eq!(tracker.len(), FLOWS_KNOWN_MAX);
    }

    #[test]
    fn flows_that_stay_near_are_none() {
        let mut tracker = Tracker::default();
        for (local, remote) in [
            ("127.0.0.1:1", "127.0.0.1:80"),
            ("192.0.2.1:1", "192.0.2.1:80"),
            ("192.0.2.1:1", "169.254.1.1:80"),
            ("192.0.2.1:1", "224.0.0.1:80"),
            ("192.0.2.1:1", "255.255.255.255:80"),
            ("[2001:db8::1]:1", "[fe80::1]:80"),
            ("[2001:db8::1]:1", "[ff02::1]:80"),
            ("[::1]:1", "[::1]:80"),
            ("0.0.0.0:1", "0.0.0.0:80"),
        ] {
            assert!(tracker.note(Instant::now(), &[flow(local, remote, true)], true).is_empty(), "{remote}");
        }
        assert_eq!(tracker.len(), 0);
        assert_eq!(tracker.note(Instant::now(), &[flow("[2001:db8::1]:1", "[2001:db8::2]:80", true)], true).len(), 1);
    }

    #[test]
    fn a_flow_that_a_cut_listing_leaves_out_does_not_count_again() {
        let (mut tracker, now) = (Tracker::default(), Instant::now());
        let flows: Vec<Flow> = (0..=FLOWS_KNOWN_MAX)
            .map(|number| {
                flow("192.0.2.1:1000", &format!("[2001:db8::{:x}]:{}", number >> 8, 1 + (number & 255)), true)
            })
            .collect();
        let told = |clients: BTreeMap<IpAddr, u32>| clients.values().sum::<u32>();
        assert_eq!(told(tracker.note(now, &flows[..100], false)), 100);
        assert_eq!(told(tracker.note(now, &flows[50..150], false)), 50);
        assert_eq!((told(tracker.note(now, &flows[..50], false)), told(tracker.clients())), (0, 150));
        assert_eq!(told(tracker.note(now, &flows[1..], false)) as usize, FLOWS_KNOWN_MAX - 149);
        assert_eq!(tracker.len(), FLOWS_KNOWN_MAX, "with the first one there is no room");
        assert_eq!(told(tracker.note(now, &flows[..1], true)), 1);
        assert_eq!(tracker.len(), 1);
    }
}
