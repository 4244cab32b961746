// SPDX-License-Identifier: Apache-2.0
//! Counts packets by source address, destination address and time to live, as the NetMonitor of the 2011 paper does.
//!
//! The counts are kept in kv state under keys such as `10.1.0.2 10.2.0.1 61`, so that they outlive an upgrade of the
//! module, and are shown as counters of the same names as far as there are enough. Property `sample=100` looks at one
//! packet in a hundred and counts it as a hundred; `netserv tell … --topic sample 100` changes that while it runs, and 0 switches
//! it off until another number comes. Topic `where` has it say on which node it runs. Its counts and its number go along when it
//! moves to another node.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use netserv_sdk::{
    Counter, Packet, PacketModule, StartError, Verdict, control, ip, kv, netserv_module, node, property, timer,
};

/// The module.
pub struct NetMonitor {
    sample: u64,
    /// Packets until the next one that is looked at; more than there will be if none is to be.
    until_sample: u64,
    packets: Counter,
    not_kept: Counter,
    /// What was counted since the last flush. Between flushes the kv state belongs to nobody, so that two versions of
    /// the module can count at the same time.
    counts: BTreeMap<Key, u64>,
    last: Option<(Key, u64)>,
    seen: u64,
}

/// Source, destination, time to live.
type Key = (IpAddr, IpAddr, u8);

impl PacketModule for NetMonitor {
    fn start() -> Result<NetMonitor, StartError> {
        let sample = property::parse_or("sample", 1)?;
        if sample == 0 {
            return Err("property `sample` is 0; write one packet in how many is looked at".into());
        }
        let (packets, not_kept) = (Counter::open("packets")?, Counter::open("not-kept")?);
        show_kept_counts();
        timer::every(FLUSH_TIMER, FLUSH_PERIOD)?;
        let counts = BTreeMap::new();
        Ok(NetMonitor { sample, until_sample: sample, packets, not_kept, counts, last: None, seen: 0 })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        self.seen += 1;
        self.until_sample -= 1;
        if self.until_sample == 0 {
            self.until_sample = self.sample;
            if let Some(ip) = ip::parse(packet.bytes()) {
                self.count((ip.source, ip.destination, ip.ttl));
            }
        }
        Verdict::Pass
    }

    fn control(&mut self, message: &control::Message<'_>) {
        let number = std::str::from_utf8(message.body).ok().and_then(|text| text.trim().parse().ok());
        let answer = match (message.topic, number) {
            ("sample", Some(sample)) => {
                self.look_at_one_in(sample);
                format!("sample is {sample}")
            }
            ("where", _) => {
                let uplink = node::fact("uplink").unwrap_or_default();
                format!("{} in {}, uplink {uplink}", node::id(), node::place())
            }
            ("sample", None) => "sample is a number".to_owned(),
            _ => format!("nothing is known of {}", message.topic),
        };
        // Its user may tell it more than it may answer.
        let _ = control::notify(message.topic, answer.as_bytes());
    }

    /// The counts are in kv; how much is looked at is said by whoever told it.
    fn export_state(&mut self) -> Result<Vec<u8>, StartError> {
        self.flush();
        Ok(self.sample.to_be_bytes().to_vec())
    }

    fn import_state(&mut self, state: &[u8]) -> Result<(), StartError> {
        let sample = <[u8; 8]>::try_from(state).map_err(|_| "the state is no number of eight bytes")?;
        self.look_at_one_in(u64::from_be_bytes(sample));
        show_kept_counts();
        Ok(())
    }

    fn timer(&mut self, _: u32) {
        self.flush();
    }

    fn stop(&mut self) {
        self.flush();
    }
}

netserv_module!(NetMonitor, control, state);

impl NetMonitor {
    fn look_at_one_in(&mut self, sample: u64) {
        self.put_last_away();
        self.sample = sample;
        self.until_sample = if sample > 0 { sample } else { u64::MAX };
    }

    /// Packets come in runs, so the last key is at hand.
    fn count(&mut self, key: Key) {
        match &mut self.last {
            Some((last, count)) if *last == key => *count += self.sample,
            Some(_) | None => {
                self.put_last_away();
                self.last = Some((key, self.sample));
            }
        }
    }

    fn put_last_away(&mut self) {
        let Some((key, count)) = self.last.take() else { return };
        if self.counts.len() >= KEYS_MAX && !self.counts.contains_key(&key) {
            self.flush_counts();
        }
        *self.counts.entry(key).or_default() += count;
    }

    fn flush(&mut self) {
        self.packets.add(std::mem::take(&mut self.seen));
        self.put_last_away();
        self.flush_counts();
    }

    fn flush_counts(&mut self) {
        for ((source, destination, ttl), count) in std::mem::take(&mut self.counts) {
            let name = format!("{source} {destination} {ttl}");
            let kept = kept_count(name.as_bytes()).unwrap_or(0) + count;
            if kv::set(name.as_bytes(), kept.to_string().as_bytes()).is_err() {
                self.not_kept.add(count);
                continue;
            }
            show(&name, kept);
        }
    }
}

fn show_kept_counts() {
    for key in kv::keys() {
        if let (Ok(name), Some(count)) = (std::str::from_utf8(&key), kept_count(&key)) {
            show(name, count);
        }
    }
}

fn kept_count(key: &[u8]) -> Option<u64> {
    String::from_utf8(kv::value(key)?).ok()?.parse().ok()
}

/// Shows a count as a counter. What has no counter any more, or too long a name for one, is in the kv state.
fn show(name: &str, count: u64) {
    if let Ok(counter) = Counter::open(name) {
        counter.set(count);
    }
}

const FLUSH_TIMER: u32 = 1;
const FLUSH_PERIOD: Duration = Duration::from_secs(1);
/// Keys that are counted between two flushes.
const KEYS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use netserv_sdk::fake;
    use netserv_testing::udp;

    use super::*;

    fn owned((key, value): (&str, &str)) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    fn packet(host: u8, ttl: u8) -> Vec<u8> {
        udp(&format!("10.1.0.{host}:1"), "10.2.0.1:5060", ttl, b"x")
    }

    #[test]
    fn packets_are_counted_by_source_destination_and_ttl() {
        fake::reset(&[]);
        let mut module = NetMonitor::start().unwrap();
        for (host, ttl) in [(1, 61), (1, 61), (2, 61), (1, 60), (1, 61)] {
            assert_eq!(fake::process(&mut module, &packet(host, ttl)).0, Verdict::Pass);
        }
        fake::with(|node| assert_eq!(node.counter("packets"), 0));
        fake::advance(&mut module, FLUSH_PERIOD);
        fake::with(|node| {
            assert_eq!(node.counter("packets"), 5);
            assert_eq!(node.counter("10.1.0.1 10.2.0.1 61"), 3);
            assert_eq!(node.counter("10.1.0.2 10.2.0.1 61"), 1);
            assert_eq!(node.counter("10.1.0.1 10.2.0.1 60"), 1);
            assert_eq!(node.kv[&b"10.1.0.1 10.2.0.1 61"[..]], b"3");
        });
    }

    #[test]
    fn counts_outlive_an_upgrade_that_overlaps() {
        fake::reset(&[]);
        let mut old = NetMonitor::start().unwrap();
        fake::process(&mut old, &packet(1, 61));
        old.stop();
        let mut old = NetMonitor::start().unwrap();
        let mut new = NetMonitor::start().unwrap();
        fake::with(|node| assert_eq!(node.counter("10.1.0.1 10.2.0.1 61"), 1));
        fake::process(&mut old, &packet(1, 61));
        fake::process(&mut new, &packet(1, 61));
        old.stop();
        new.stop();
        fake::with(|node| assert_eq!(node.counter("10.1.0.1 10.2.0.1 61"), 3));
    }

    #[test]
    fn a_sample_counts_for_all() {
        fake::reset(&[("sample", "10")]);
        let mut module = NetMonitor::start().unwrap();
        for _ in 0..25 {
            fake::process(&mut module, &packet(1, 61));
        }
        module.stop();
        fake::with(|node| {
            assert_eq!(node.counter("packets"), 25);
            assert_eq!(node.counter("10.1.0.1 10.2.0.1 61"), 20);
        });
        fake::reset(&[("sample", "0")]);
        assert!(NetMonitor::start().is_err());
    }

    #[test]
    fn its_user_changes_the_sample_and_switches_it_off_and_on() {
        fake::reset(&[]);
        let mut module = NetMonitor::start().unwrap();
        let tell = |module: &mut NetMonitor, topic: &str, body: &[u8]| {
            fake::tell(module, &control::Message { topic, seq: 1, body });
            for _ in 0..20 {
                fake::process(module, &packet(1, 61));
            }
            fake::advance(module, FLUSH_PERIOD);
            fake::with(|node| node.counter("10.1.0.1 10.2.0.1 61"))
        };
        assert_eq!(tell(&mut module, "sample", b"10"), 20);
        assert_eq!(tell(&mut module, "sample", b"0"), 20);
        assert_eq!(tell(&mut module, "sample", b"many"), 20);
        assert_eq!(tell(&mut module, "other", b"1"), 20);
        fake::with(|node| node.info = [("id", "n1"), ("place", "berlin"), ("fact.uplink", "10G")].map(owned).into());
        assert_eq!(tell(&mut module, "where", b""), 20);
        assert_eq!(tell(&mut module, "sample", b"1\n"), 40);
        let said: Vec<String> = fake::with(|node| node.notified.clone())
            .into_iter()
            .map(|(topic, body)| format!("{topic}: {}", String::from_utf8(body).unwrap()))
            .collect();
        assert_eq!(said[..2], ["sample: sample is 10", "sample: sample is 0"]);
        assert_eq!(said[2..4], ["sample: sample is a number", "other: nothing is known of other"]);
        assert_eq!(said[4], "where: n1 in berlin, uplink 10G");
        fake::with(|node| assert_eq!(node.counter("packets"), 120));
    }

    #[test]
    fn keys_are_bounded() {
        fake::reset(&[]);
        let mut module = NetMonitor::start().unwrap();
        for n in 0..=u16::try_from(KEYS_MAX).unwrap() + 1 {
            let [high, low] = n.to_be_bytes();
            fake::process(&mut module, &udp(&format!("10.1.{high}.{low}:1"), "10.2.0.1:5060", 61, b""));
            assert!(module.counts.len() <= KEYS_MAX);
        }
        fake::with(|node| assert_eq!(node.kv.len(), KEYS_MAX));
        module.stop();
        fake::with(|node| assert_eq!(node.kv.len(), KEYS_MAX + 2));
    }

    #[test]
    fn damaged_packets_pass() {
        fake::reset(&[]);
        let mut module = NetMonitor::start().unwrap();
        assert_eq!(fake::process(&mut module, &[0x45; 19]).0, Verdict::Pass);
        module.stop();
        fake::with(|node| assert!(node.kv.is_empty()));
    }
}
