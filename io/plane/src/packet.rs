// SPDX-License-Identifier: Apache-2.0
//! What the drivers ask of a packet before they send it.

use netserv_wire::ip::IpView;

use crate::DriverError;

/// Takes apart a packet that ends where its own header says.
#[inline]
pub fn whole(packet: &[u8]) -> Result<IpView<'_>, DriverError> {
    let view = IpView::parse(packet).map_err(|error| DriverError::BadPacket { why: error.to_string() })?;
    if view.bytes().len() == packet.len() {
        return Ok(view);
    }
    Err(DriverError::BadPacket { why: format!("{} bytes follow its end", packet.len() - view.bytes().len()) })
}

/// Why a verdict's bytes are no packet, for people.
pub const NOT_WHOLE: &str = "its new bytes are no whole IP packet";
/// Why a destination is refused, for people.
pub const NO_MACHINE: &str = "its new destination is no address of another machine that a route leads to";

#[cfg(test)]
pub(crate) mod testing {
    use netserv_wire::ip::build;

    /// Returns a UDP packet with TTL 64.
    pub(crate) fn udp(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
        build::udp(source.parse().unwrap(), destination.parse().unwrap(), 64, payload).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_cut_short_or_too_long_are_refused() {
        for packet in [
            testing::udp("10.0.0.1:1", "10.0.0.2:2", b"abc"),
            testing::udp("[2001:db8::1]:1", "[2001:db8::2]:2", b"abc"),
        ] {
            assert!(whole(&packet).is_ok());
            for length in 0..packet.len() {
                assert!(whole(&packet[..length]).is_err(), "{length}");
            }
            assert!(whole(&[packet.as_slice(), &[0]].concat()).is_err());
        }
    }
}
