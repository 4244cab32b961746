// SPDX-License-Identifier: Apache-2.0
//! What waits in the receive queues of UDP sockets of this machine, whosever they are: how far a server is behind.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::{Context, Result, ensure};

/// Returns the bytes that wait in the sockets with these addresses and ports, as the kernel counts them.
///
/// # Errors
/// One of them is not there.
pub fn read(sockets: &[SocketAddr]) -> Result<f64> {
    let mut waiting: Vec<Option<u64>> = vec![None; sockets.len()];
    for file in ["/proc/self/net/udp", "/proc/self/net/udp6"] {
        // A kernel without IPv6 has no such file.
        let text = std::fs::read_to_string(file).unwrap_or_default();
        for (socket, bytes) in text.lines().skip(1).filter_map(line) {
            for (wanted, sum) in sockets.iter().zip(&mut waiting) {
                if *wanted == socket {
                    *sum = Some(sum.unwrap_or(0) + bytes);
                }
            }
        }
    }
    let missing = sockets.iter().zip(&waiting).find(|(_, sum)| sum.is_none());
    ensure!(
        missing.is_none(),
        "there is no UDP socket {}",
        missing.map_or(String::new(), |(socket, _)| socket.to_string())
    );
    let sum: u64 = waiting.into_iter().flatten().sum();
    u32::try_from(sum).map(f64::from).context("too much waits to be true")
}

/// Returns a socket of a line of `/proc/net/udp`, and what waits in it.
fn line(line: &str) -> Option<(SocketAddr, u64)> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (address, port) = words.next()?.split_once(':')?;
    let (_, waiting) = words.nth(2)?.split_once(':')?;
    let socket = SocketAddr::new(self::address(address)?, u16::from_str_radix(port, 16).ok()?);
    Some((socket, u64::from_str_radix(waiting, 16).ok()?))
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
        assert_eq!(line(v4), Some(("127.0.0.1:5060".parse().unwrap(), 0xa0f0)));
        let v6 =
            "   62: B80D0120000000000000000001000000:13C4 00000000000000000000000000000000:0000 07 00000000:00000300 x";
        assert_eq!(line(v6), Some(("[2001:db8::1]:5060".parse().unwrap(), 0x300)));
        for wrong in ["", "x", " 1: 0100007F 0 0 0", " 1: 0100:1 0:0 07 0:0", " 1: 0100007F:1 0:0 07 0"] {
            assert_eq!(line(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_waits_in_a_socket_is_read() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let socket = std::net::UdpSocket::bind(local).unwrap();
            let at = socket.local_addr().unwrap();
            assert_eq!(read(&[at]).unwrap(), 0.0);
            std::net::UdpSocket::bind(local).unwrap().send_to(&[0; 1000], at).unwrap();
            assert!(read(&[at]).unwrap() >= 1000.0);
            drop(socket);
            assert!(read(&[at]).unwrap_err().to_string().contains("no UDP socket"));
        }
    }
}
