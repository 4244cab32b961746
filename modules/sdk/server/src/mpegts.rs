// SPDX-License-Identifier: Apache-2.0
//! Cuts MPEG transport streams where pictures can be begun with.
//!
//! What a job of [`jobs`](crate::jobs) gives with `segments` is cut into these; the outputs of two jobs over one input with
//! `Segments::Source` and `keep-times` are cut at the same pictures, so that a stream changes its quality by going on with the
//! other job's next segment. See ISO/IEC 13818-1 §2.4.

/// Bytes of a packet.
const PACKET: usize = 188;
const SYNC: u8 = 0x47;
/// The packet identifiers of the program association table, and of the last one for descriptions.
const ASSOCIATION: u16 = 0;
const LAST_OF_TABLES: u16 = 0x1f;
/// Packets of tables that are kept until it shows what follows; more of them are given away before that.
const TABLES_MAX: usize = 16;
/// Types of streams that are pictures: MPEG-1, MPEG-2, MPEG-4, H.264, H.265.
const PICTURES: [u8; 5] = [0x01, 0x02, 0x10, 0x1b, 0x24];

/// Cuts a stream as it comes.
#[derive(Debug, Default)]
pub struct Cutter {
    /// The start of a packet.
    rest: Vec<u8>,
    /// Tables that belong to what follows.
    tables: Vec<u8>,
    map: Option<u16>,
    pictures: Option<u16>,
}

impl Cutter {
    /// Returns one at the start of a stream.
    pub fn new() -> Cutter {
        Cutter::default()
    }

    /// Takes bytes of the stream, and gives whole packets to `give`, with whether a segment begins with them. Bytes that are
    /// in no packet are left out.
    pub fn push(&mut self, bytes: &[u8], mut give: impl FnMut(bool, &[u8])) {
        self.rest.extend(bytes);
        let rest = std::mem::take(&mut self.rest);
        let mut left = rest.as_slice();
        while let Some(start) = left.iter().position(|byte| *byte == SYNC) {
            left = &left[start..];
            let Some((packet, after)) = left.split_at_checked(PACKET) else { break };
            self.packet(packet, &mut give);
            left = after;
        }
        if left.first() == Some(&SYNC) {
            self.rest = left.to_vec();
        }
    }

    fn packet(&mut self, packet: &[u8], give: &mut impl FnMut(bool, &[u8])) {
        let number = u16::from(packet[1] & 0x1f) << 8 | u16::from(packet[2]);
        let is_table = number <= LAST_OF_TABLES || Some(number) == self.map;
        if is_table {
            self.learn(number, packet);
            if self.tables.len() < TABLES_MAX * PACKET {
                self.tables.extend(packet);
                return;
            }
        }
        let begins = Some(number) == self.pictures && is_random_access(packet);
        let tables = std::mem::take(&mut self.tables);
        if !tables.is_empty() {
            give(begins, &tables);
        }
        give(begins && tables.is_empty(), packet);
    }

    /// Reads which stream is pictures.
    fn learn(&mut self, number: u16, packet: &[u8]) {
        let Some(section) = section(packet) else { return };
        let identifier = |bytes: &[u8]| u16::from(bytes[0] & 0x1f) << 8 | u16::from(bytes[1]);
        if number == ASSOCIATION {
            let programs = section.get(8..).unwrap_or_default().chunks_exact(4);
            // Program 0 is where the network's table is.
            self.map = programs.filter(|entry| entry[..2] != [0, 0]).map(|entry| identifier(&entry[2..])).next();
        } else if Some(number) == self.map {
            let Some(described) = section.get(10..12).map(|length| usize::from(identifier(length) & 0xfff)) else {
                return;
            };
            let mut streams = section.get(12 + described..).unwrap_or_default();
            while let [kind, high, low, length_high, length_low, after @ ..] = streams {
                if PICTURES.contains(kind) {
                    self.pictures = Some(identifier(&[*high, *low]));
                    return;
                }
                let described = usize::from(length_high & 0x0f) << 8 | usize::from(*length_low);
                streams = after.get(described..).unwrap_or_default();
            }
        }
    }
}

fn is_random_access(packet: &[u8]) -> bool {
    let [starts, adapted] = [packet[1] & 0x40 != 0, packet[3] & 0x20 != 0];
    starts && adapted && packet[4] > 0 && packet[5] & 0x40 != 0
}

/// Returns the section that begins in a packet, without its check sum.
fn section(packet: &[u8]) -> Option<&[u8]> {
    let adaptation = if packet[3] & 0x20 == 0 { 0 } else { 1 + usize::from(packet[4]) };
    let payload = packet.get(4 + adaptation..).filter(|_| packet[1] & 0x40 != 0 && packet[3] & 0x10 != 0)?;
    let section = payload.get(1 + usize::from(*payload.first()?)..)?;
    let length = usize::from(section.get(1)? & 0x0f) << 8 | usize::from(*section.get(2)?);
    section.get(..(3 + length).checked_sub(4)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_cut_before_the_tables_of_its_key_pictures() {
        let stream =
            [pat(), pmt(), key(), plain(), pat(), pmt(), plain(), sound(), key(), pat(), pmt(), key()].concat();
        let expected = vec![
            (true, 2),
            (false, 1),
            (false, 1),
            (false, 2),
            (false, 1),
            (false, 1),
            (true, 1),
            (true, 2),
            (false, 1),
        ];
        for piece in [1, 7, 188, 1000, stream.len()] {
            let (mut cutter, mut given, mut all) = (Cutter::new(), vec![], vec![]);
            for bytes in stream.chunks(piece) {
                cutter.push(bytes, |begins, packets| {
                    given.push((begins, packets.len() / PACKET));
                    all.extend(packets);
                });
            }
            assert_eq!((given, all.as_slice()), (expected.clone(), stream.as_slice()), "in pieces of {piece}");
        }
    }

    #[test]
    fn rubbish_is_left_out_and_bounded() {
        let (mut cutter, mut given) = (Cutter::new(), 0);
        cutter.push(&[0; 5000], |_, _| given += 1);
        assert_eq!((given, cutter.rest.len()), (0, 0));
        let tables = pat().repeat(TABLES_MAX + 1);
        cutter.push(&tables, |_, packets| given += packets.len());
        assert_eq!((given, cutter.tables.len()), (tables.len(), 0));
        for last in 0..=255 {
            let mut odd = [last; PACKET];
            odd[..4].copy_from_slice(&[SYNC, 0x40, last % 2, 0x30]);
            cutter.push(&odd, |_, _| {});
        }
    }

    fn packet(number: u16, flags: [u8; 2], payload: &[u8]) -> Vec<u8> {
        let [high, low] = number.to_be_bytes();
        let mut packet = vec![SYNC, flags[0] | high, low, flags[1]];
        packet.extend(payload);
        packet.resize(PACKET, 0xff);
        packet
    }

    fn pat() -> Vec<u8> {
        packet(0, [0x40, 0x10], &[0, 0, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0, 1, 2, 3, 4])
    }

    fn pmt() -> Vec<u8> {
        let section =
            [0, 2, 0xb0, 25, 0, 1, 0xc1, 0, 0, 0xe1, 1, 0xf0, 0, 0x0f, 0xe1, 1, 0xf0, 2, 9, 9, 0x1b, 0xe1, 0, 0xf0, 0];
        packet(0x1000, [0x40, 0x10], &[section.as_slice(), &[1, 2, 3, 4]].concat())
    }

    fn key() -> Vec<u8> {
        packet(0x100, [0x40, 0x30], &[1, 0x40])
    }

    fn plain() -> Vec<u8> {
        packet(0x100, [0x40, 0x10], &[1, 2])
    }

    fn sound() -> Vec<u8> {
        packet(0x101, [0x40, 0x30], &[1, 0x40])
    }
}
