// SPDX-License-Identifier: Apache-2.0
//! The packet part.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use netserv_sdk::{Counter, Packet, PacketModule, StartError, Verdict, ip, kv, log, netserv_module, timer};

/// Senders that are counted; packets of further ones pass uncounted.
const SENDERS_MAX: usize = 4096;
/// How often counts are put where the page finds them.
const PUBLISHED_EACH: Duration = Duration::from_millis(500);

/// The module.
pub struct Guard {
    seen: BTreeMap<IpAddr, Seen>,
    blocked: BTreeSet<IpAddr>,
    dropped: Counter,
}

#[derive(Default)]
struct Seen {
    packets: u64,
    published: u64,
}

impl PacketModule for Guard {
    fn start() -> Result<Guard, StartError> {
        timer::every(0, PUBLISHED_EACH)?;
        let mut guard = Guard { seen: BTreeMap::new(), blocked: BTreeSet::new(), dropped: Counter::open("dropped")? };
        for key in kv::keys() {
            let Some((kind, address)) = std::str::from_utf8(&key).ok().and_then(|key| key.split_once('/')) else {
                continue;
            };
            match (kind, address.parse()) {
                ("blocked", Ok(address)) => {
                    guard.blocked.insert(address);
                }
                ("seen", Ok(address)) => {
                    let packets = kv::value(&key).and_then(|value| value.try_into().ok()).map_or(0, u64::from_le_bytes);
                    guard.seen.insert(address, Seen { packets, published: packets });
                }
                _ => {}
            }
        }
        Ok(guard)
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        let Some(ip) = ip::parse(packet.bytes()) else { return Verdict::Pass };
        if self.seen.len() < SENDERS_MAX || self.seen.contains_key(&ip.source) {
            self.seen.entry(ip.source).or_default().packets += 1;
        }
        if self.blocked.contains(&ip.source) {
            self.dropped.add(1);
            return Verdict::Drop;
        }
        Verdict::Pass
    }

    fn timer(&mut self, _: u32) {
        self.publish();
    }

    fn message(&mut self, message: &[u8]) {
        self.grant(message);
    }

    fn stop(&mut self) {
        self.publish();
    }
}

impl Guard {
    fn publish(&mut self) {
        for (address, seen) in &mut self.seen {
            if seen.packets != seen.published {
                // Over the quota, the page shows what it showed before.
                let _ = kv::set(format!("seen/{address}").as_bytes(), &seen.packets.to_le_bytes());
                seen.published = seen.packets;
            }
        }
    }

    /// Does what the page was asked for: `block ADDRESS` or `allow ADDRESS`.
    fn grant(&mut self, wish: &[u8]) {
        let text = String::from_utf8_lossy(wish);
        let Some((verb, Ok(address))) = text.split_once(' ').map(|(verb, address)| (verb, address.parse())) else {
            log::warn(&format!("a message was not understood: {text}"));
            return;
        };
        let key = format!("blocked/{address}");
        let kept = match verb {
            "block" if self.blocked.insert(address) => kv::set(key.as_bytes(), b""),
            "allow" if self.blocked.remove(&address) => kv::delete(key.as_bytes()),
            _ => return,
        };
        match kept {
            Ok(()) => log::info(&text),
            Err(error) => log::warn(&format!("{text} holds until the module ends: {error}")),
        }
    }
}

netserv_module!(Guard);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use netserv_sdk::fake;
    use netserv_testing::udp;

    use super::*;

    #[test]
    fn senders_are_counted_and_wishes_outlive_the_module() {
        fake::reset(&[]);
        let mut guard = Guard::start().unwrap();
        let packet = udp("192.0.2.1:1000", "192.0.2.9:9999", 60, b"x");
        assert_eq!(fake::process(&mut guard, &packet).0, Verdict::Pass);
        guard.message(b"block 192.0.2.1");
        assert_eq!(fake::process(&mut guard, &packet).0, Verdict::Drop);
        guard.stop();
        assert_eq!(kv::value(b"seen/192.0.2.1"), Some(2_u64.to_le_bytes().to_vec()));

        let mut next = Guard::start().unwrap();
        assert_eq!(fake::process(&mut next, &packet).0, Verdict::Drop);
        next.message(b"allow 192.0.2.1");
        assert_eq!(fake::process(&mut next, &packet).0, Verdict::Pass);
        assert_eq!(kv::value(b"blocked/192.0.2.1"), None);
    }

    #[test]
    fn nonsense_changes_nothing() {
        fake::reset(&[]);
        let mut guard = Guard::start().unwrap();
        for wish in [&b"block"[..], b"block everybody", b"\xff \xff", b"", b"praise 192.0.2.1"] {
            guard.message(wish);
        }
        assert!(guard.blocked.is_empty());
        assert_eq!(fake::process(&mut guard, b"not even IP").0, Verdict::Pass);
    }

    #[test]
    fn counted_senders_are_bounded() {
        fake::reset(&[]);
        let mut guard = Guard::start().unwrap();
        for number in 0..=u32::try_from(SENDERS_MAX).unwrap() {
            let source = Ipv4Addr::from(0x0a00_0000 + number);
            let packet = udp(&format!("{source}:1000"), "192.0.2.9:9999", 60, b"x");
            assert_eq!(fake::process(&mut guard, &packet).0, Verdict::Pass);
        }
        assert_eq!(guard.seen.len(), SENDERS_MAX);
    }
}
