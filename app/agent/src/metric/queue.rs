// SPDX-License-Identifier: Apache-2.0
//! What waits in the receive queues of UDP sockets of this machine, whosever they are: how far a server is behind.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result, ensure};

/// One UDP socket of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    at: SocketAddr,
    /// Bytes that wait in it.
    waits: u64,
    /// The number by which the kernel tells it from all others.
    inode: u64,
}

/// Returns the bytes that wait in the sockets with these addresses and ports, as the kernel counts them, and what tells these sockets from others
/// that take their place.
///
/// # Errors
/// One of them is not there.
pub fn read(wanted: &[SocketAddr]) -> Result<(f64, String)> {
    let sockets = all();
    let missing = wanted.iter().find(|at| !sockets.iter().any(|socket| socket.at == **at));
    ensure!(missing.is_none(), "there is no UDP socket {}", missing.map_or(String::new(), ToString::to_string));
    let own: Vec<&Socket> = sockets.iter().filter(|socket| wanted.contains(&socket.at)).collect();
    let mut inodes: Vec<u64> = own.iter().map(|socket| socket.inode).collect();
    inodes.sort_unstable();
    let waits: u64 = own.iter().map(|socket| socket.waits).sum();
    Ok((u32::try_from(waits).map(f64::from).context("too much waits to be true")?, format!("{inodes:?}")))
}

/// Returns the UDP sockets of this machine at some ports.
pub fn at_ports(ports: &[u16]) -> Vec<SocketAddr> {
    let mut found: Vec<_> = all().into_iter().map(|socket| socket.at).filter(|at| ports.contains(&at.port())).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn all() -> Vec<Socket> {
    let mut all = Vec::new();
    for file in ["/proc/self/net/udp", "/proc/self/net/udp6"] {
        // A kernel without IPv6 has no such file.
        let text = std::fs::read_to_string(file).unwrap_or_default();
        all.extend(text.lines().skip(1).filter_map(line));
    }
    all
}

/// Returns the socket of a line of `/proc/net/udp`.
fn line(line: &str) -> Option<Socket> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (address, port) = words.next()?.split_once(':')?;
    let (_, waits) = words.nth(2)?.split_once(':')?;
    let inode = words.nth(4)?.parse().ok()?;
    let at = SocketAddr::new(self::address(address)?, u16::from_str_radix(port, 16).ok()?);
    Some(Socket { at, waits: u64::from_str_radix(waits, 16).ok()?, inode })
}

/// Reads an address as the kernel writes it: words of four bytes in the machine's order.
fn address(hexadecimal: &str) -> Option<IpAddr> {
    let word = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::to_ne_bytes);
    if hexadecimal.len() == 8 {
        return Some(IpAddr::V4(Ipv4Addr::from(word(hexadecimal)?)));
    }
    if hexadecimal.len() != 32 {
        return None;
    }
    let mut octets = [0; 16];
    for (place, octets) in octets.chunks_mut(4).enumerate() {
        octets.copy_from_slice(&word(hexadecimal.get(8 * place..8 * place + 8)?)?);
    }
    Some(IpAddr::V6(Ipv6Addr::from(octets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let v4 =
            "  393: 0100007F:13C4 00000000:0000 07 00000000:0000A0F0 00:00000000 00000000     0        0 1234 2 x 0";
        let socket = |at: &str, waits, inode| Some(Socket { at: at.parse().unwrap(), waits, inode });
        assert_eq!(line(v4), socket("127.0.0.1:5060", 0xa0f0, 1234));
        let v6 = "   62: B80D0120000000000000000001000000:13C4 00000000000000000000000000000000:0000 07 00000000:00000300 00:00000000 00000000 0 0 99 2 x 0";
        assert_eq!(line(v6), socket("[2001:db8::1]:5060", 0x300, 99));
        for wrong in ["", "x", " 1: 0100007F 0 0 0", " 1: 0100:1 0:0 07 0:0", " 1: 0100007F:1 0:0 07 0"] {
            assert_eq!(line(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_waits_in_a_socket_is_read() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let socket = std::net::UdpSocket::bind(local).unwrap();
            let at = socket.local_addr().unwrap();
            let (waits, before) = read(&[at]).unwrap();
            assert_eq!(waits, 0.0);
            std::net::UdpSocket::bind(local).unwrap().send_to(&[0; 1000], at).unwrap();
            let (waits, same) = read(&[at]).unwrap();
            assert!(waits >= 1000.0 && same == before);
            assert!(at_ports(&[at.port()]).contains(&at));
            drop(socket);
            assert!(read(&[at]).unwrap_err().to_string().contains("no UDP socket"));
            let _other = std::net::UdpSocket::bind(at).unwrap();
            assert_ne!(read(&[at]).unwrap().1, before, "another program's");
        }
    }
}
