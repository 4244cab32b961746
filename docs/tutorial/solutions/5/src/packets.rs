// SPDX-License-Identifier: Apache-2.0
//! The packet part.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use netserv_sdk::{Counter, Packet, PacketModule, StartError, Verdict, clock, ip, kv, netserv_module, property};

struct Module {
    knocks: Vec<u16>,
    door: u16,
    open_for: Duration,
    /// How far each sender has come.
    progress: BTreeMap<IpAddr, usize>,
    opened: Counter,
    refused: Counter,
}

/// Senders whose progress is kept; the rest has to knock again later.
const SENDERS_MAX: usize = 10_000;

impl PacketModule for Module {
    fn start() -> Result<Module, StartError> {
        let list = property::text("knock").unwrap_or_else(|| "7001,7002,7003".to_owned());
        let knocks = list.split(',').map(|port| port.trim().parse());
        let knocks = knocks.collect::<Result<_, _>>().map_err(|_| StartError::from("`knock` is no list of ports"))?;
        Ok(Module {
            knocks,
            door: property::parse_or("door", 22)?,
            open_for: Duration::from_secs(property::parse_or("open-seconds", 60)?),
            progress: BTreeMap::new(),
            opened: Counter::open("opened")?,
            refused: Counter::open("refused")?,
        })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        let Some(udp) = ip::parse_udp(packet.bytes()) else { return Verdict::Pass };
        let (source, port) = (udp.source.ip(), udp.destination.port());
        if port == self.door {
            return self.at_the_door(source);
        }
        if self.knocks.contains(&port) {
            self.knock(source, port);
            return Verdict::Drop;
        }
        Verdict::Pass
    }
}

impl Module {
    fn at_the_door(&mut self, source: IpAddr) -> Verdict {
        let until = kv::value(&key(source)).and_then(|value| value.try_into().ok()).map_or(0, u64::from_le_bytes);
        if now_ms() < until {
            return Verdict::Pass;
        }
        self.refused.add(1);
        Verdict::Drop
    }

    fn knock(&mut self, source: IpAddr, port: u16) {
        let come = self.progress.remove(&source).unwrap_or(0);
        // A wrong knock may be the first one of a new try.
        let come = if self.knocks[come] == port { come + 1 } else { usize::from(self.knocks[0] == port) };
        if come < self.knocks.len() {
            if come > 0 && self.progress.len() < SENDERS_MAX {
                self.progress.insert(source, come);
            }
            return;
        }
        let until = now_ms() + u64::try_from(self.open_for.as_millis()).unwrap_or(u64::MAX / 2);
        if kv::set(&key(source), &until.to_le_bytes()).is_ok() {
            self.opened.add(1);
        }
    }
}

fn now_ms() -> u64 {
    u64::try_from(clock::wall().as_millis()).unwrap_or(u64::MAX)
}

/// In kv state, so that the next version of the module knows it too.
fn key(source: IpAddr) -> Vec<u8> {
    format!("open/{source}").into_bytes()
}

netserv_module!(Module);
