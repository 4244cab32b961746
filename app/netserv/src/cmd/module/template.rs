// SPDX-License-Identifier: Apache-2.0
//! The files of a new module.

use std::net::SocketAddr;
use std::path::PathBuf;

use netserv_model::ModuleName;
use netserv_wire::ip::build;

use crate::exit::{Failure, OrFail};

include!(concat!(env!("OUT_DIR"), "/sdk_files.rs"));

const CARGO_TOML: &str = include_str!("template/Cargo.toml.in");
const MANIFEST: &str = include_str!("template/netserv.toml.in");
const LIB: &str = include_str!("template/lib.rs.in");
const README: &str = include_str!("template/README.md.in");
const GITIGNORE: &str = "/target\n*.nsm\n";

/// The port that the new module drops packets to, unless its property says otherwise.
const BLOCKED_PORT: u16 = 9;

/// Returns each file of a new module with its path in the module's folder.
///
/// # Errors
/// Never in practice: the sample packets are fixed.
pub fn files(module: &ModuleName, short: &str) -> Result<Vec<(PathBuf, Vec<u8>)>, Failure> {
    // A crate's name may not have dots, nor begin with a digit.
    let crate_name = format!("module-{}", short.replace('.', "-"));
    let fill = |text: &str| {
        let text = text.replace("@MODULE@", module.as_str()).replace("@CRATE@", &crate_name);
        text.replace("@CRATE_FILE@", &crate_name.replace('-', "_")).into_bytes()
    };
    let ports = [5060, BLOCKED_PORT, 53];
    let packets = ports.iter().map(|port| sample_packet(*port)).collect::<Result<Vec<_>, _>>()?;
    let passing: Vec<_> = packets.iter().zip(ports).filter(|(_, port)| *port != BLOCKED_PORT).collect();
    let mut files: Vec<(PathBuf, Vec<u8>)> = vec![
        ("netserv.toml".into(), fill(MANIFEST)),
        ("src/lib.rs".into(), fill(LIB)),
        ("Cargo.toml".into(), fill(CARGO_TOML)),
        ("README.md".into(), fill(README)),
        (".gitignore".into(), GITIGNORE.into()),
        ("tests/in.pcap".into(), pcap(packets.iter())),
        ("tests/out.pcap".into(), pcap(passing.into_iter().map(|(packet, _)| packet))),
    ];
    files.extend(SDK_FILES.iter().map(|(path, bytes)| (PathBuf::from("sdk").join(path), bytes.to_vec())));
    Ok(files)
}

/// A UDP packet over IPv4 with good checksums.
fn sample_packet(port: u16) -> Result<Vec<u8>, Failure> {
    let source = SocketAddr::from(([192, 0, 2, 1], 40_000));
    let destination = SocketAddr::from(([198, 51, 100, 7], port));
    build::udp(source, destination, 64, b"hello").or_fail("cannot make a sample packet", "report this as a bug")
}

/// A capture file of raw IP packets, one each millisecond.
fn pcap<'a>(packets: impl Iterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    // Magic number, version 2.4, time zone 0, accuracy 0, 65,535 bytes of each packet, LINKTYPE_RAW.
    let mut file = Vec::new();
    file.extend_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
    file.extend_from_slice(&[2, 0, 4, 0]);
    [0_u32, 0, 65_535, 101].iter().for_each(|word| file.extend_from_slice(&word.to_le_bytes()));
    for (micros, packet) in (0_u32..).step_by(1000).zip(packets) {
        let length = u32::try_from(packet.len()).expect("sample packets are short");
        [0, micros, length, length].iter().for_each(|word| file.extend_from_slice(&word.to_le_bytes()));
        file.extend_from_slice(packet);
    }
    file
}
