// SPDX-License-Identifier: Apache-2.0
//! Walks over every byte of every packet, as the service of AMnet's figures 3 and 4 does (2003): a load of known weight.
//!
//! Property `loops` is how often, 1 to 64. Each step depends on the one before, so that no compiler makes them fewer.

use netserv_sdk::{Counter, Packet, PacketModule, StartError, Verdict, netserv_module, property};

/// The module.
pub struct ByteLoop {
    loops: u32,
    sum: u32,
    bytes: u64,
    counters: [Counter; 2],
}

impl PacketModule for ByteLoop {
    fn start() -> Result<ByteLoop, StartError> {
        let loops = property::parse_or("loops", 1)?;
        if !(1..=LOOPS_MAX).contains(&loops) {
            return Err(format!("property `loops` is {loops}; 1 to {LOOPS_MAX} are possible").into());
        }
        Ok(ByteLoop { loops, sum: 0, bytes: 0, counters: [Counter::open("bytes")?, Counter::open("sum")?] })
    }

    fn process(&mut self, packet: &mut Packet<'_>) -> Verdict {
        let bytes = packet.bytes();
        for _ in 0..self.loops {
            self.sum = bytes.iter().fold(self.sum, |sum, byte| step(sum, *byte));
        }
        self.bytes += u64::try_from(bytes.len()).unwrap_or(0) * u64::from(self.loops);
        Verdict::Pass
    }

    fn stop(&mut self) {
        let [bytes, sum] = self.counters;
        bytes.add(std::mem::take(&mut self.bytes));
        sum.set(u64::from(self.sum));
    }
}

netserv_module!(ByteLoop);

fn step(sum: u32, byte: u8) -> u32 {
    (sum ^ u32::from(byte)).rotate_left(5)
}

/// Walks over a packet at most.
const LOOPS_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use netserv_sdk::fake;
    use netserv_testing::udp;

    use super::*;

    fn walk(loops: &str, packets: &[Vec<u8>]) -> (u64, u64) {
        fake::reset(&[("loops", loops)]);
        let mut module = ByteLoop::start().unwrap();
        for packet in packets {
            assert_eq!(fake::process(&mut module, packet).0, Verdict::Pass);
        }
        module.stop();
        fake::with(|node| (node.counter("bytes"), node.counter("sum")))
    }

    #[test]
    fn every_byte_is_walked_over_as_often_as_wanted() {
        let packet = udp("10.1.0.1:1", "10.2.0.1:9000", 61, b"hello");
        let length = u64::try_from(packet.len()).unwrap();
        let (bytes, once) = walk("1", std::slice::from_ref(&packet));
        assert_eq!(bytes, length);
        assert_eq!(once, u64::from(packet.iter().fold(0, |sum, byte| step(sum, *byte))));
        let (bytes, thrice) = walk("3", std::slice::from_ref(&packet));
        assert_eq!(bytes, 3 * length);
        assert_eq!(thrice, walk("1", &[packet.clone(), packet.clone(), packet]).1);
    }

    #[test]
    fn the_number_of_loops_is_bounded() {
        for loops in ["0", "65", "many"] {
            fake::reset(&[("loops", loops)]);
            assert!(ByteLoop::start().is_err(), "{loops}");
        }
    }
}
