// SPDX-License-Identifier: Apache-2.0
//! Drops what comes from some senders, except to one UDP port.

use std::collections::BTreeSet;
use std::net::IpAddr;

use netserv_sdk::{Counter, Packet, PacketModule, StartError, Verdict, ip, netserv_module, property};

struct Module {
    blocked: BTreeSet<IpAddr>,
    open_port: u16,
    dropped: Counter,
}

impl PacketModule for Module {
    fn start() -> Result<Module, StartError> {
        let list = property::text("block-from").unwrap_or_default();
        let senders = list.split(',').map(str::trim).filter(|sender| !sender.is_empty());
        let blocked = senders
            .map(|sender| sender.parse().map_err(|_| StartError::from(format!("`{sender}` is no address"))))
            .collect::<Result<BTreeSet<IpAddr>, StartError>>()?;
        let open_port = property::parse_or("open-port", 5060)?;
        Ok(Module { blocked, open_port, dropped: Counter::open("dropped")? })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        let Some(header) = ip::parse(packet.bytes()) else { return Verdict::Pass };
        if !self.blocked.contains(&header.source) {
            return Verdict::Pass;
        }
        match ip::parse_udp(packet.bytes()) {
            Some(udp) if udp.destination.port() == self.open_port => Verdict::Pass,
            Some(_) | None => {
                self.dropped.add(1);
                Verdict::Drop
            }
        }
    }
}

netserv_module!(Module);
