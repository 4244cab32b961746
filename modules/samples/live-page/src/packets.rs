// SPDX-License-Identifier: Apache-2.0
//! The packet part: counts packets, and publishes how many there were.

use std::time::Duration;

use netserv_sdk::{Packet, PacketModule, StartError, Verdict, channel, netserv_module, timer};

/// The module.
pub struct Count {
    packets: u64,
    published: u64,
}

impl PacketModule for Count {
    fn start() -> Result<Count, StartError> {
        timer::every(PUBLISH_TIMER, PUBLISH_PERIOD)?;
        Ok(Count { packets: 0, published: 0 })
    }

    fn process(&mut self, _: &mut Packet<'_>) -> Verdict {
        self.packets += 1;
        Verdict::Pass
    }

    fn timer(&mut self, _: u32) {
        if self.packets == self.published {
            return;
        }
        let event = format!("event: packets\ndata: {}\n\n", self.packets);
        // By its key, a client that comes later gets the last number only. Without room the next one may have some.
        if channel::publish_keyed("page", event.as_bytes(), b"packets").is_ok() {
            self.published = self.packets;
        }
    }
}

netserv_module!(Count);

const PUBLISH_TIMER: u32 = 1;
const PUBLISH_PERIOD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use netserv_sdk::fake;

    use super::*;

    #[test]
    fn each_new_number_is_published_once() {
        fake::reset(&[]);
        let mut module = Count::start().unwrap();
        for packets in [2, 0, 1] {
            (0..packets).for_each(|_| drop(fake::process(&mut module, &[0x45; 20])));
            fake::advance(&mut module, PUBLISH_PERIOD);
        }
        let published = fake::with(|node| node.published.clone());
        let events: Vec<_> = published.iter().map(|(_, event, _)| String::from_utf8_lossy(event)).collect();
        assert_eq!(events, ["event: packets\ndata: 2\n\n", "event: packets\ndata: 3\n\n"]);
    }
}
