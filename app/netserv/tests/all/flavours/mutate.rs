// SPDX-License-Identifier: Apache-2.0
//! Packets that are like others, but damaged: the same ones for the same seed.

/// Makes numbers that only look random (SplitMix64).
pub struct Random(u64);

impl Random {
    /// Returns the numbers of the environment's seed, or always the same.
    pub fn seeded() -> Random {
        let seed = std::env::var("NETSERV_SEED").map_or(4, |seed| seed.parse().unwrap());
        eprintln!("NETSERV_SEED={seed}");
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Returns a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// Returns one of them.
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Returns the packet cut at each length that a node still takes for a packet.
pub fn cut(packet: &[u8]) -> Vec<Vec<u8>> {
    (20..packet.len()).map(|length| packet[..length].to_vec()).collect()
}

/// Returns the packet with each of its first bytes turned over, and with each replaced by one that SIP cares for.
pub fn spoil(packet: &[u8], first: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let places = || 0..packet.len().min(first);
    let flipped: Vec<_> = places().map(|at| with_byte(packet, at, !packet[at])).collect();
    let replaced = places().map(|at| with_byte(packet, at, random.one(SPECIAL)));
    flipped.into_iter().chain(replaced).collect()
}

/// Returns the packet with one of its bytes replaced.
pub fn spoil_one(packet: &[u8], random: &mut Random) -> Vec<u8> {
    let at = random.below(packet.len());
    with_byte(packet, at, random.one(SPECIAL))
}

fn with_byte(packet: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut spoilt = packet.to_vec();
    spoilt[at] = byte;
    spoilt
}

/// Returns the packet with some changes to its payload: whole lines or words go, come twice, move or become others. Its
/// lengths are right again, so that the text is what is looked at.
pub fn rewrite(packet: &[u8], random: &mut Random) -> Vec<u8> {
    let start = if packet[0] >> 4 == 4 { 28 } else { 48 };
    let mut payload = packet[start..].to_vec();
    for _ in 0..=random.below(4) {
        rewrite_once(&mut payload, random);
    }
    payload.truncate(1984 - start);
    with_payload(packet, start, &payload)
}

fn rewrite_once(payload: &mut Vec<u8>, random: &mut Random) {
    let (from, to) = (random.below(payload.len() + 1), random.below(payload.len() + 1));
    let word = random.one(WORDS);
    match random.below(8) {
        0 => drop(payload.splice(from..from, word.iter().copied())),
        1 => drop(payload.splice(from..(from + random.below(8)).min(payload.len()), word.iter().copied())),
        2 => drop(payload.drain(from.min(to)..(from.min(to) + 5).min(from.max(to)))),
        3 => payload.insert(from, random.one(SPECIAL)),
        4 => move_line(payload, random, true),
        5 => move_line(payload, random, false),
        6 => {
            let line = [random.one(NAMES), b":", random.one(WORDS), b"\r\n"].concat();
            let at = line_start(payload, from);
            payload.splice(at..at, line);
        }
        _ => {
            let at = line_start(payload, from);
            let line = [random.one(NAMES), &b" : "[..], random.one(WORDS), b"\r\n ", word, b"\r\n"].concat();
            payload.splice(at..at, line);
        }
    }
}

/// Puts a line somewhere else, or there a second time.
fn move_line(payload: &mut Vec<u8>, random: &mut Random, keep: bool) {
    let start = line_start(payload, random.below(payload.len() + 1));
    let end = line_start(payload, start + 2).max(start);
    let line = payload[start..end].to_vec();
    if !keep {
        payload.drain(start..end);
    }
    let at = line_start(payload, random.below(payload.len() + 1));
    payload.splice(at..at, line);
}

/// Returns where the first line begins that begins at `at` or after it; the end if there is none.
fn line_start(payload: &[u8], at: usize) -> usize {
    let rest = payload.get(at..).unwrap_or_default();
    rest.windows(2).position(|pair| pair == b"\r\n").map_or(payload.len(), |found| at + found + 2)
}

/// Returns the packet with another payload of UDP, and lengths that fit. Its checksums are not those any more, which
/// modules do not look at.
pub fn with_payload(packet: &[u8], start: usize, payload: &[u8]) -> Vec<u8> {
    let mut new = [&packet[..start], payload].concat();
    let (total, udp) = (u16::try_from(new.len()).unwrap(), u16::try_from(payload.len() + 8).unwrap());
    if start == 28 {
        new[2..4].copy_from_slice(&total.to_be_bytes());
    } else {
        new[4..6].copy_from_slice(&(total - 40).to_be_bytes());
    }
    new[start - 4..start - 2].copy_from_slice(&udp.to_be_bytes());
    new
}

/// Returns an IPv6 packet with other headers between the first and what it carries.
pub fn with_extensions(packet: &[u8], headers: &[(u8, &[u8])]) -> Vec<u8> {
    let mut new = packet[..40].to_vec();
    let mut next_at = 6;
    for (number, header) in headers {
        new[next_at] = *number;
        next_at = new.len();
        new.extend_from_slice(header);
    }
    new[next_at] = packet[6];
    new.extend_from_slice(&packet[40..]);
    let length = u16::try_from(new.len() - 40).unwrap();
    new[4..6].copy_from_slice(&length.to_be_bytes());
    new
}

/// Returns an IPv4 packet with options, whose header checksum is wrong.
pub fn with_options(packet: &[u8], options: &[u8]) -> Vec<u8> {
    let mut new = [&packet[..20], options, &packet[20..]].concat();
    new[0] = 0x45 + u8::try_from(options.len() / 4).unwrap();
    let length = u16::try_from(new.len()).unwrap();
    new[2..4].copy_from_slice(&length.to_be_bytes());
    new
}

const SPECIAL: &[u8] = b"\0\r\n\t\x0b\x0c :;,<>\"\\[]@=.0a\x7f\x80\xff";

const NAMES: &[&[u8]] = &[
    b"Via",
    b"v",
    b"VIA",
    b"From",
    b"f",
    b"To",
    b"t",
    b"Call-ID",
    b"i",
    b"CSeq",
    b"Event",
    b"o",
    b"Require",
    b"Proxy-Require",
    b"X",
    b"Supported",
    b"Content-Length",
    b"",
    b"V\x80",
];

const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\r\n ",
    b"\r\n\t",
    b"\r\n\r\n",
    b" ",
    b"\t",
    b"\x0b",
    b"\x0c",
    b";rport",
    b";RPORT",
    b";rport=",
    b";rport = 5",
    b";received=1.2.3.4",
    b"; Received ",
    b";maddr=224.0.0.1",
    b";tag=",
    b" ; Tag = 9",
    b";tagged",
    b"\"",
    b"\\\"",
    b"\"a;,b\"",
    b"<",
    b">",
    b"<sip:x@y;tag=1>",
    b",",
    b", SIP/2.0/UDP z",
    b"SIP/2.0/UDP ",
    b"sip/2.0/udp\t[2001:db8::9]",
    b"SIP/2.0/TCP a",
    b"SIP/2.0/UDP [::ffff:192.0.2.9]:5060;branch=1",
    b"SIP/2.0/UDP 192.0.2.9",
    b"SIP/2.0/UDP a:0",
    b"SIP/2.0/UDP a:65535",
    b"SIP/2.0/UDP a:65536",
    b"SIP/2.0/UDP a : 5062 ;x",
    b"7 NOTIFY",
    b"7 OPTIONS",
    b"1\tNOTIFY",
    b"7",
    b" NOTIFY ",
    b"OPTIONS ",
    b"keep-alive",
    b"KEEP-alive ; x",
    b"presence",
    b"sip:",
    b"sips:a",
    b"@",
    b"SIP/2.0",
    b"0",
    b"5060",
    b"\0",
    b"\xff\xfe",
];
