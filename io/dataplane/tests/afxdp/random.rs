// SPDX-License-Identifier: Apache-2.0
//! Random filters and frames, the same for the same seed.

use netserv_model::Filter;

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(u64::try_from(length).unwrap())).unwrap()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// Returns a filter of the few that frames of [`Random::frame`] often match.
    pub(crate) fn filter(&mut self) -> String {
        let protocol = self.pick(&["ip", "tcp", "udp", "udp", "icmp"]);
        let mut text = protocol.to_owned();
        let v6 = self.below(2) == 0;
        for side in ["src", "dst"] {
            match (self.below(3), v6) {
                (0, _) => {}
                (_, false) => text += &format!(" {side} 10.{}.0.0/{}", self.below(4), self.pick(&[8, 15, 16, 24])),
                (_, true) => text += &format!(" {side} fd00:{}::/{}", self.below(4), self.pick(&[16, 31, 32, 64])),
            }
        }
        for side in ["sport", "port"] {
            if (protocol == "udp" || protocol == "tcp") && self.below(2) == 0 {
                let first = self.below(6);
                text += &format!(" {side} {first}-{}", first + self.pick(&[0, 0, 1, 3]));
            }
        }
        text
    }

    /// Returns a filter with prefixes of any length, so that many of them have many masks.
    pub(crate) fn fine_filter(&mut self) -> Filter {
        let v6 = self.below(2) == 0;
        let prefix = |random: &mut Random, side: &str| match v6 {
            false => format!("{side} 10.{}.{}.0/{}", random.below(4), random.byte(), 8 + random.below(25)),
            true => format!("{side} fd00:{}::1/{}", random.below(4), 16 + random.below(113)),
        };
        let (source, destination) = (prefix(self, "src"), prefix(self, "dst"));
        let protocol = self.pick(&["ip", "udp", "tcp"]);
        let sides = self.pick(&[[true, false], [false, true], [true, true]]);
        let text =
            format!("{protocol} {} {}", if sides[0] { &source } else { "" }, if sides[1] { &destination } else { "" });
        text.parse().unwrap()
    }

    /// Returns a frame for a station: mostly good, of either version, with options, fragments or extension headers.
    pub(crate) fn frame(&mut self, station: [u8; 6]) -> Vec<u8> {
        let v6 = self.below(2) == 0;
        let protocol = self.pick(&[1, 6, 17, 17, 58, 50, 132]);
        let mut payload = Vec::new();
        for _ in 0..2 {
            payload.extend([0, self.below(9).to_le_bytes()[0]]);
        }
        if self.below(20) == 0 {
            payload[2..4].copy_from_slice(&270_u16.to_be_bytes());
        }
        let length = self.below(30);
        payload.extend((0..length).map(|_| 0));
        payload.truncate(if self.below(10) == 0 { usize::try_from(self.below(5)).unwrap() } else { 64 });
        let packet = if v6 { self.packet_v6(protocol, payload) } else { self.packet_v4(protocol, payload) };
        let kind: [u8; 2] = if v6 { [0x86, 0xdd] } else { [8, 0] };
        let mut frame = [&station[..], &[2; 6], &kind, &packet].concat();
        match self.below(12) {
            0 => frame.truncate(14 + usize::try_from(self.below(80)).unwrap()),
            1 => frame.extend([0; 20]),
            2 => {
                let at = 14 + usize::try_from(self.below(u64::try_from(packet.len()).unwrap())).unwrap();
                frame[at] = self.byte();
            }
            _ => {}
        }
        // The kernel takes no shorter ones for a test.
        frame.resize(frame.len().max(16), 0);
        frame
    }

    fn packet_v4(&mut self, protocol: u8, payload: Vec<u8>) -> Vec<u8> {
        let options = self.pick(&[0_u8, 0, 0, 1, 10]);
        let total = 20 + 4 * usize::from(options) + payload.len();
        let [high, low] = u16::try_from(total).unwrap().to_be_bytes();
        let fragment = self.pick(&[[0x40, 0], [0, 0], [0x20, 0], [0x20, 5], [0, 9]]);
        let mut packet = vec![0x45 + options, 0, high, low, 0, 0, fragment[0], fragment[1], 64, protocol, 0, 0];
        for _ in 0..2 {
            packet.extend([self.pick(&[10, 10, 10, 10, 169, 127, 224]), self.byte() & 3, 9, 9]);
        }
        packet.extend((0..4 * usize::from(options)).map(|_| 1));
        packet.extend(payload);
        packet
    }

    fn packet_v6(&mut self, protocol: u8, payload: Vec<u8>) -> Vec<u8> {
        let mut headers: Vec<(u8, Vec<u8>)> = Vec::new();
        let count = self.pick(&[0, 0, 0, 1, 2, 3, 8, 9]);
        for _ in 0..count {
            let kind = self.pick(&[0, 43, 44, 51, 60, 135, 139, 140]);
            let words = self.below(3).to_le_bytes()[0];
            let bytes = match kind {
                44 => 8,
                51 => 4 * (usize::from(words) + 2),
                _ => 8 * (usize::from(words) + 1),
            };
            let mut header = vec![0; bytes];
            header[1] = words;
            if kind == 44 {
                header[2..4].copy_from_slice(&self.pick(&[[0, 1], [0, 0], [0, 8], [1, 1]]));
            }
            headers.push((kind, header));
        }
        let mut rest = Vec::new();
        for at in 0..headers.len() {
            let next = headers.get(at + 1).map_or(protocol, |(kind, _)| *kind);
            headers[at].1[0] = next;
            rest.extend(&headers[at].1);
        }
        let first = headers.first().map_or(protocol, |(kind, _)| *kind);
        rest.extend(payload);
        let [high, low] = u16::try_from(rest.len()).unwrap().to_be_bytes();
        let mut packet = vec![0x60, 0, 0, 0, high, low, first, 64];
        // Sources on the link alone are the kernel's, so there are none here.
        for heads in [&[0xfd_u8, 0xfd][..], &[0xfd, 0xfd, 0xfd, 0xfe, 0xff]] {
            let head = self.pick(heads);
            let second = if head == 0xfe { 0x80 } else { 0 };
            packet.extend([head, second, 0, self.byte() & 3]);
            packet.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        }
        packet.extend(rest);
        packet
    }
}
