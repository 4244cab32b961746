// SPDX-License-Identifier: Apache-2.0
//! Options of IPv4, and those in IPv6 extension headers.

use super::view::{
    EXTENSION_DESTINATION, EXTENSION_HOP_BY_HOP, EXTENSION_ROUTING, IPV4_HEADER_BYTES, IPV6_HEADER_BYTES,
    ROUTING_SOURCE, extension_bytes,
};
use super::{IpVersion, IpView};

impl<'a> IpView<'a> {
    /// Returns the value of the router alert option (RFC 2113, RFC 2711), if the packet has one.
    pub fn router_alert(&self) -> Option<u16> {
        let (mut options, alert) = match self.version() {
            IpVersion::V4 => (self.ipv4_options(), [IPV4_ROUTER_ALERT, IPV4_ROUTER_ALERT_BYTES]),
            IpVersion::V6 => {
                let hop_by_hop = self.extensions().next().filter(|(kind, _)| *kind == EXTENSION_HOP_BY_HOP)?;
                (ipv6_options(hop_by_hop.1), [IPV6_ROUTER_ALERT, IPV6_ROUTER_ALERT_BYTES])
            }
        };
        options.find_map(|option| match option {
            [kind, length, high, low] if [*kind, *length] == alert => Some(u16::from_be_bytes([*high, *low])),
            _ => None,
        })
    }

    /// Returns whether the packet names addresses that others take in the place of its source or destination: a loose or
    /// strict source route (RFC 791 §3.1), an IPv6 routing header of type 0 (RFC 5095), or a home address (RFC 6275
    /// §6.3). What is judged by the two addresses of its header is not all that such a packet does.
    pub fn names_other_addresses(&self) -> bool {
        match self.version() {
            IpVersion::V4 => self.ipv4_options().any(|option| IPV4_SOURCE_ROUTES.contains(&option[0])),
            IpVersion::V6 => self.extensions().any(|(kind, header)| match kind {
                EXTENSION_ROUTING => header[2] == ROUTING_SOURCE,
                EXTENSION_DESTINATION => ipv6_options(header).any(|option| option[0] == IPV6_HOME_ADDRESS),
                _ => false,
            }),
        }
    }

    fn ipv4_options(&self) -> Options<'a> {
        Options { version: IpVersion::V4, rest: &self.bytes()[IPV4_HEADER_BYTES..self.payload_offset()] }
    }

    /// Returns the kinds and bytes of the IPv6 extension headers before the payload. Each has at least 8 bytes.
    fn extensions(&self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let headers = &self.bytes()[..self.payload_offset()];
        let (mut kind, mut at) = (headers[6], IPV6_HEADER_BYTES);
        std::iter::from_fn(move || {
            let [next, length] = *headers.get(at..)?.first_chunk()?;
            let end = at + extension_bytes(kind, length);
            let found = (kind, headers.get(at..end)?);
            (kind, at) = (next, end);
            Some(found)
        })
    }
}

/// The options of one header, padding left out. Each starts with its kind, and all but a cut one follow.
struct Options<'a> {
    version: IpVersion,
    rest: &'a [u8],
}

/// Returns the options of a hop-by-hop or destination options header.
fn ipv6_options(header: &[u8]) -> Options<'_> {
    Options { version: IpVersion::V6, rest: &header[2..] }
}

impl<'a> Iterator for Options<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while let [kind, after_kind @ ..] = self.rest {
            // Both versions have one option of a single byte, for padding; IPv4 ends the list with another.
            match (self.version, *kind) {
                (IpVersion::V4, 0) => return None,
                (IpVersion::V4, 1) | (IpVersion::V6, 0) => {
                    self.rest = after_kind;
                    continue;
                }
                (IpVersion::V4 | IpVersion::V6, _) => {}
            }
            let length = *after_kind.first()?;
            let option_bytes = match self.version {
                IpVersion::V4 => usize::from(length).max(2),
                IpVersion::V6 => usize::from(length) + 2,
            };
            let option = self.rest.get(..option_bytes)?;
            self.rest = &self.rest[option_bytes..];
            return Some(option);
        }
        None
    }
}

/// RFC 2113 §2.1: the option and its length, header included.
const IPV4_ROUTER_ALERT: u8 = 0x94;
const IPV4_ROUTER_ALERT_BYTES: u8 = 4;
/// RFC 2711 §2.1: the option and the length of its value.
const IPV6_ROUTER_ALERT: u8 = 0x05;
const IPV6_ROUTER_ALERT_BYTES: u8 = 2;
/// RFC 791 §3.1: loose and strict source and record route.
const IPV4_SOURCE_ROUTES: [u8; 2] = [0x83, 0x89];
/// RFC 6275 §6.3.
const IPV6_HOME_ADDRESS: u8 = 0xC9;
