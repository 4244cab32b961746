// SPDX-License-Identifier: Apache-2.0
//! Sends UDP packets back to where they came from, as the first NetServ prototype did for port 44444.
//!
//! ```text
//! echo test | nc -u 10.2.0.1 44444
//! ```

use netserv_sdk::ip::{parse_udp, redirect_udp};
use netserv_sdk::{Counter, Packet, PacketModule, StartError, Verdict, netserv_module, property};

/// The module.
pub struct Echo {
    port: u16,
    echoed: Counter,
}

impl PacketModule for Echo {
    fn start() -> Result<Echo, StartError> {
        Ok(Echo { port: property::parse_or("port", 44_444)?, echoed: Counter::open("echoed")? })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        let Some(udp) = parse_udp(packet.bytes()) else { return Verdict::Pass };
        // A packet from the same port may be an echo itself, and two echoes would never stop.
        if udp.destination.port() != self.port || udp.source.port() == self.port {
            return Verdict::Pass;
        }
        if !redirect_udp(packet, &udp, udp.destination, udp.source) {
            return Verdict::Pass;
        }
        self.echoed.add(1);
        Verdict::Modified
    }
}

netserv_module!(Echo);
