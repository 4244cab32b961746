// SPDX-License-Identifier: Apache-2.0
//! The packets that modules of two flavours are compared with, and captures of them.

use std::collections::BTreeMap;
use std::path::Path;

use super::mutate::{Random, cut, rewrite, spoil, spoil_one, with_extensions, with_options, with_payload};

/// Returns packets for a module that looks at IP headers.
pub fn of_net_monitor(random: &mut Random) -> Vec<Vec<u8>> {
    let whole = captured("apps/net-monitor/tests/count.pcap");
    let (v4, v6) = (whole[0].clone(), whole[5].clone());
    let mut packets = whole.clone();
    for packet in variants(&v4, &v6) {
        packets.extend(cut(&packet));
        packets.extend(spoil(&packet, 96, random));
    }
    // Many keys, of which some come again, in runs of any length.
    for _ in 0..3000 {
        let mut packet = if random.below(3) > 0 { v4.clone() } else { v6.clone() };
        let at = if packet[0] >> 4 == 4 { [8, 13, 15, 19] } else { [7, 8, 23, 39] };
        for place in at {
            packet[place] =
                [packet[place], 0, 1, 0xff][random.below(4)].wrapping_add(u8::try_from(random.below(4)).unwrap());
        }
        packets.extend(std::iter::repeat_n(packet, 1 + random.below(3)));
    }
    packets
}

/// Returns packets for a module that reads SIP over UDP.
pub fn of_keep_alive(random: &mut Random) -> Vec<Vec<u8>> {
    let mut whole = captured("samples/keep-alive/tests/answered.in.pcap");
    whole.extend(captured("samples/keep-alive/tests/pass.pcap"));
    let (v4, v6) = (whole[0].clone(), whole[1].clone());
    whole.extend(texts().iter().map(|text| with_payload(&v4, 28, text.as_bytes())));
    whole.extend(texts().iter().map(|text| with_payload(&v6, 48, text.as_bytes())));
    let mut packets = whole.clone();
    for packet in variants(&v4, &v6) {
        packets.extend(cut(&packet));
        packets.extend(spoil(&packet, 80, random));
    }
    for packet in &whole {
        packets.extend(spoil(packet, packet.len(), random).into_iter().filter(|_| packet.len() < 300));
    }
    for _ in 0..4000 {
        packets.push(rewrite(&whole[random.below(whole.len())], random));
        packets.push(spoil_one(&whole[random.below(whole.len())], random));
    }
    packets.retain(|packet| packet.len() <= 1984);
    packets
}

/// Returns both packets as they are, as fragments, and with options and extension headers of all kinds.
fn variants(v4: &[u8], v6: &[u8]) -> Vec<Vec<u8>> {
    let fragment = |field: u16| [&[0, 0][..], &field.to_be_bytes(), &[0, 0, 0, 1]].concat();
    let (atomic, first, last) = (fragment(0), fragment(1), fragment(0x0b8));
    let (hop, long) = ([0, 0, 1, 4, 0, 0, 0, 0], [0, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let authentication = [0, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9];
    let mut variants = vec![v4.to_vec(), v6.to_vec(), with_options(v4, &[1; 4]), with_options(v4, &[1; 40])];
    for field in [0x2000_u16, 0x4000, 0x8000, 0x00b9, 0x2001] {
        let mut packet = v4.to_vec();
        packet[6..8].copy_from_slice(&field.to_be_bytes());
        variants.push(packet);
    }
    variants.extend([
        with_extensions(v6, &[(0, &hop), (44, &atomic)]),
        with_extensions(v6, &[(44, &first)]),
        with_extensions(v6, &[(60, &long), (44, &last), (43, &hop)]),
        with_extensions(v6, &[(51, &authentication), (60, &hop)]),
        with_extensions(v6, &[(60, &hop[..]); 8]),
        with_extensions(v6, &[(60, &hop[..]); 9]),
        with_extensions(v6, &[(135, &hop), (60, &hop)]),
    ]);
    variants
}

/// Requests that use what the recorded ones do not.
fn texts() -> Vec<String> {
    let request = |method: &str, uri: &str, headers: &str| {
        format!("{method} {uri} SIP/2.0\r\n{headers}CSeq: 1 {method}\r\nContent-Length: 0\r\n\r\n")
    };
    let short = "v:SIP/2.0/UDP 192.0.2.9;branch=z9hG4bK1\r\nf:<sip:a@b>;tag=1\r\nt:sip:b\r\ni:1\r\n";
    let folded = "Via: SIP/2.0/UDP\r\n 10.0.0.5:5062\r\n\t;branch=z;rport\r\nFrom:\r\n a\r\nTo : \"x;tag=1\" <sip:b>\r\n  ;q\r\n\
                  Call-ID: 1\r\n";
    let several = "Via: SIP/2.0/UDP [2001:db8:9::9]:5060;x=\"a,b;\\\"c\";received=1.1.1.1 , SIP/2.0/TCP b;z\r\n\
                   Via: SIP/2.0/UDP c, SIP/2.0/UDP d\r\nv: e\r\nFROM: a\r\nto: <sip:b>\r\ncall-id: 12345678\r\n";
    let tagged = "Via: SIP/2.0/UDP 10.0.0.5\r\nFrom: a\r\nTo: <sip:b>;tag=x\r\nCall-ID: 123456789\r\n";
    let mut texts = Vec::new();
    for headers in [short, folded, several, tagged] {
        texts.push(request("OPTIONS", "sip:example.com", headers));
        texts.push(request("NOTIFY", "sip:a@example.com", &format!("{headers}Event: keep-alive\r\n")));
        texts.push(request("NOTIFY", "sip:example.com", &format!("o: KEEP-ALIVE ;id=7\r\n{headers}")));
    }
    let many = |name: &str, count: usize| request("OPTIONS", "sips:x", &(name.repeat(count) + short));
    texts.extend([many("X: y\r\n", 57), many("X: y\r\n", 58), many("X: y\r\n", 59), many("v: SIP/2.0/UDP z\r\n", 58)]);
    // Answers that only just fit, and that do not.
    texts.extend((1600..1720).step_by(8).map(|length| many(&format!("v: {}\r\n", "z".repeat(length)), 1)));
    texts.extend(
        ["NOTIFY ", "NOTIFY", "OPTIONS ", "OPTIONS", "\r\n\r\n", "\r\n", "\n\r", "\r\r\n\n"].map(str::to_owned),
    );
    texts
}

/// Returns a pcap file of raw IP packets, with the milliseconds at which they were seen.
pub fn capture(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut put = |word: u64| file.extend_from_slice(&u32::try_from(word).unwrap().to_le_bytes());
    [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101].into_iter().for_each(&mut put);
    for (millis, packet) in packets {
        let length = packet.len() as u64;
        let mut put = |word: u64| file.extend_from_slice(&u32::try_from(word).unwrap().to_le_bytes());
        [1_795_219_200 + millis / 1000, millis % 1000 * 1000, length, length].into_iter().for_each(&mut put);
        file.extend_from_slice(packet);
    }
    file
}

/// Returns the packets of a capture that a flavour wrote, by the milliseconds at which they were seen.
pub fn by_time(file: &[u8]) -> BTreeMap<u64, Vec<Vec<u8>>> {
    let mut found: BTreeMap<u64, Vec<Vec<u8>>> = BTreeMap::new();
    for (millis, packet) in records(file, 1_000_000) {
        found.entry(millis).or_default().push(packet);
    }
    found
}

/// Returns the packets of a capture of a module's.
fn captured(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules").join(name);
    let file = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    records(&file, 1000).into_iter().map(|(_, packet)| packet).collect()
}

fn records(file: &[u8], ticks_per_milli: u64) -> Vec<(u64, Vec<u8>)> {
    let word = |at: usize| u64::from(u32::from_le_bytes(file[at..at + 4].try_into().unwrap()));
    let (mut records, mut at) = (Vec::new(), 24);
    while at < file.len() {
        let millis = (word(at) - 1_795_219_200) * 1000 + word(at + 4) / ticks_per_milli;
        let length = usize::try_from(word(at + 8)).unwrap();
        records.push((millis, file[at + 16..at + 16 + length].to_vec()));
        at += 16 + length;
    }
    records
}
