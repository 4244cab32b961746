// SPDX-License-Identifier: Apache-2.0
//! Session descriptions (RFC 8866): where media is to go, and the same with other addresses.
//!
//! Lines of unknown types stay as they are; sdp-types drops them, and adds those that are missing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::limits::{SDP_BYTES_MAX, STREAMS_MAX, WORD_BYTES_MAX};

/// Why a description cannot be used, as rtpengine says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdpError {
    /// It is none, or longer than it may be.
    Damaged,
    /// A stream has no address.
    Incomplete,
    /// It has more streams than a call may have.
    TooMany,
}

impl SdpError {
    /// Returns what the client is told.
    pub fn reason(self) -> &'static str {
        match self {
            SdpError::Damaged => "Failed to parse SDP",
            SdpError::Incomplete => "Incomplete SDP specification",
            SdpError::TooMany => "Too many media streams in SDP",
        }
    }
}

/// A session description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sdp<'a> {
    /// Lines without their ends, each with the stream that it belongs to.
    lines: Vec<(Option<usize>, &'a [u8])>,
    /// The streams.
    pub media: Vec<Media<'a>>,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media<'a> {
    /// `audio`, for example.
    pub kind: &'a [u8],
    /// `RTP/AVP`, for example.
    pub protocol: &'a [u8],
    /// Where it is sent to; 0 if it is rejected.
    pub port: u16,
    /// The version of IP is 6.
    pub is_v6: bool,
    /// The address; nothing for one that is written as a name.
    pub address: Option<IpAddr>,
    /// What `a=rtcp` says (RFC 3605).
    pub rtcp: Option<(u16, Option<IpAddr>)>,
    /// RTCP may come to the port of RTP (RFC 5761).
    pub has_mux: bool,
    /// It is on hold: of its two directions at most one is in use.
    pub is_still: bool,
    /// It is carried by UDP.
    pub is_relayed: bool,
}

/// Ports that a description gets in place of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Of RTP.
    pub rtp: u16,
    /// Of RTCP.
    pub rtcp: u16,
}

impl<'a> Sdp<'a> {
    /// Reads a description.
    ///
    /// # Errors
    /// See [`SdpError`].
    pub fn parse(bytes: &'a [u8]) -> Result<Sdp<'a>, SdpError> {
        if bytes.len() > SDP_BYTES_MAX || !bytes.starts_with(b"v=") {
            return Err(SdpError::Damaged);
        }
        let mut sdp = Sdp { lines: Vec::new(), media: Vec::new() };
        let mut session = Session::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            if let Some(value) = line.strip_prefix(b"m=") {
                if sdp.media.len() == STREAMS_MAX {
                    return Err(SdpError::TooMany);
                }
                sdp.media.push(media(value).ok_or(SdpError::Damaged)?);
                session.own.push(Own::default());
            }
            let place = sdp.media.len().checked_sub(1);
            sdp.lines.push((place, line));
            session.read(line, sdp.media.last_mut()).ok_or(SdpError::Damaged)?;
        }
        for (media, own) in sdp.media.iter_mut().zip(session.own) {
            let connection = own.connection.or(session.connection);
            if connection.is_none() && media.is_relayed && media.port > 0 {
                return Err(SdpError::Incomplete);
            }
            (media.is_v6, media.address) = connection.unwrap_or((false, None));
            let is_nowhere = media.address.is_some_and(|address| address.is_unspecified());
            media.is_still = own.is_still.unwrap_or(session.is_still) || is_nowhere;
        }
        Ok(sdp)
    }

    /// Returns whether an attribute begins so, of the session or of a stream.
    pub fn has_attribute(&self, start: &str) -> bool {
        let of =
            |line: &[u8]| line.strip_prefix(b"a=").is_some_and(|attribute| attribute.starts_with(start.as_bytes()));
        self.lines.iter().any(|(_, line)| of(line))
    }

    /// Has streams lead to an address, with the ports that they have, but for those on hold without one and those for which `keep` says so.
    pub fn lead_to(&mut self, address: IpAddr, keep: &[bool]) {
        let led = self.media.iter_mut().zip(keep).filter(|(media, keep)| !**keep && media.is_relayed);
        for (media, _) in led.filter(|(media, _)| media.address.is_none_or(|known| !known.is_unspecified())) {
            media.rtcp = media.rtcp.map(|(port, _)| (port, None));
            (media.address, media.is_v6) = (Some(address), address.is_ipv6());
        }
    }

    /// Writes the description with another address, and other ports for those streams that have some. The origin has the address,
    /// too, if it is to be replaced. ICE and bundles are left out: each stream goes through ports of its own.
    pub fn rewrite(&self, address: IpAddr, ports: &[Option<Ports>], replaces_origin: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let connection = format!("c={}", network(address));
        for (place, line) in &self.lines {
            let own = place.map(|place| ports.get(place).copied().flatten());
            match (line, own) {
                // What is not relayed keeps its own lines.
                (_, Some(None)) => put(&mut out, line),
                ([b'o', b'=', ..], None) if replaces_origin => put(&mut out, &origin(line, address)),
                ([b'c', b'=', ..], _) if is_unspecified(line) => put(&mut out, line),
                ([b'c', b'=', ..], _) => put(&mut out, connection.as_bytes()),
                ([b'm', b'=', ..], Some(Some(ports))) => put(&mut out, &with_port(line, ports.rtp)),
                ([b'a', b'=', attribute @ ..], own) => {
                    if is_left_out(attribute) {
                        continue;
                    }
                    match own.flatten().filter(|_| attribute.starts_with(b"rtcp:")) {
                        Some(ports) => put(&mut out, &rtcp_line(attribute, ports, address)),
                        None => put(&mut out, line),
                    }
                }
                _ => put(&mut out, line),
            }
            if let (Some(place), Some(None), [b'm', b'=', ..]) = (*place, own, line) {
                self.keep_connection(place, &mut out);
            }
        }
        out
    }

    /// Writes the session's own address for a stream that is not relayed and has none.
    fn keep_connection(&self, place: usize, out: &mut Vec<u8>) {
        let connection = |of| self.lines.iter().find(|(own, line)| *own == of && line.starts_with(b"c="));
        let needs_one = self.media[place].port > 0 && connection(Some(place)).is_none();
        if let Some((_, line)) = connection(None).filter(|_| needs_one) {
            put(out, line);
        }
    }
}

impl Media<'_> {
    /// Returns where RTP and RTCP go to; nothing if it is nowhere, or to no machine of its own.
    pub fn ends(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let Some(address) = self.address.filter(|address| self.port > 0 && is_machine(*address)) else {
            return (None, None);
        };
        let (port, rtcp) = self.rtcp.unwrap_or((self.port.saturating_add(1), None));
        let rtcp = rtcp.filter(|rtcp| is_machine(*rtcp) && rtcp.is_ipv4() == address.is_ipv4()).unwrap_or(address);
        (Some(SocketAddr::new(address, self.port)), Some(SocketAddr::new(rtcp, port)).filter(|end| end.port() > 0))
    }
}

/// Returns whether an address can be one of another machine.
pub fn is_machine(address: IpAddr) -> bool {
    let is_near = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.to_ipv4_mapped().is_some(),
    };
    !is_near && !address.is_loopback() && !address.is_multicast() && !address.is_unspecified()
}

/// A version of IP, and an address that is no name.
type Connection = (bool, Option<IpAddr>);

/// What is said for all streams, and what is said of each.
#[derive(Default)]
struct Session {
    connection: Option<Connection>,
    is_still: bool,
    own: Vec<Own>,
}

/// What a stream says in the session's place.
#[derive(Default)]
struct Own {
    connection: Option<Connection>,
    is_still: Option<bool>,
}

impl Session {
    fn read(&mut self, line: &[u8], media: Option<&mut Media<'_>>) -> Option<()> {
        match line {
            [b'c', b'=', value @ ..] => {
                let connection = connection(value)?;
                match self.own.last_mut() {
                    Some(own) => _ = own.connection.get_or_insert(connection),
                    None => _ = self.connection.get_or_insert(connection),
                }
            }
            [b'a', b'=', attribute @ ..] => {
                let is_still = match attribute {
                    b"sendrecv" => Some(false),
                    b"sendonly" | b"recvonly" | b"inactive" => Some(true),
                    _ => None,
                };
                match self.own.last_mut() {
                    Some(own) => own.is_still = is_still.or(own.is_still),
                    None => self.is_still = is_still.unwrap_or(self.is_still),
                }
                if let Some(media) = media {
                    read_attribute(attribute, media);
                }
            }
            _ => {}
        }
        Some(())
    }
}

/// Takes what an attribute says. One that is damaged says nothing, as to most phones: it ends no call.
fn read_attribute(attribute: &[u8], media: &mut Media<'_>) {
    match attribute {
        b"rtcp-mux" => media.has_mux = true,
        _ => {
            if let Some(value) = attribute.strip_prefix(b"rtcp:") {
                let mut words = words(value);
                let port = words.next().and_then(number);
                let address = words.nth(2).and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
                media.rtcp = port.map(|port| (port, address)).or(media.rtcp);
            }
        }
    }
}

/// Reads what is behind `m=`.
fn media(value: &[u8]) -> Option<Media<'_>> {
    value.first().filter(|first| **first != b' ')?;
    let mut words = words(value);
    let (kind, port, protocol) = (words.next()?, words.next()?, words.next()?);
    let port = number(port.split(|byte| *byte == b'/').next()?)?;
    if kind.len() > WORD_BYTES_MAX || protocol.len() > WORD_BYTES_MAX {
        return None;
    }
    let starts =
        |with: &str| protocol.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()));
    let is_relayed = ["RTP/", "UDP/", "UDPTL", "DTLS/"].into_iter().any(starts);
    Some(Media {
        kind,
        protocol,
        port,
        is_v6: false,
        address: None,
        rtcp: None,
        has_mux: false,
        is_still: false,
        is_relayed,
    })
}

/// Reads what is behind `c=`: `IN IP4 192.0.2.1`, of a group also with a TTL.
fn connection(value: &[u8]) -> Option<Connection> {
    let mut words = words(value);
    let (net, version, address) = (words.next()?, words.next()?, words.next()?);
    let is_v6 = version.eq_ignore_ascii_case(b"IP6");
    if !net.eq_ignore_ascii_case(b"IN") || !(is_v6 || version.eq_ignore_ascii_case(b"IP4")) {
        return None;
    }
    let address = std::str::from_utf8(address.split(|byte| *byte == b'/').next()?).ok()?;
    let parsed = address.parse().ok().filter(|address: &IpAddr| address.is_ipv6() == is_v6);
    Some((is_v6, parsed))
}

fn is_unspecified(line: &[u8]) -> bool {
    let zero = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    connection(&line[2..]).and_then(|(_, address)| address).is_some_and(|address| zero.contains(&address))
}

fn network(address: IpAddr) -> String {
    format!("IN IP{} {address}", if address.is_ipv4() { 4 } else { 6 })
}

/// Returns an origin with another address: its last three words are network, version and address.
fn origin(line: &[u8], address: IpAddr) -> Vec<u8> {
    let kept: Vec<&[u8]> = words(line).take(3).collect();
    [&kept.join(&b' ')[..], b" ", network(address).as_bytes()].concat()
}

fn with_port(line: &[u8], port: u16) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = words(line).collect();
    let port = port.to_string();
    kept[1] = port.as_bytes();
    kept.join(&b' ')
}

fn rtcp_line(attribute: &[u8], ports: Ports, address: IpAddr) -> Vec<u8> {
    let with_address = words(attribute).count() > 1;
    let network = if with_address { format!(" {}", network(address)) } else { String::new() };
    format!("a=rtcp:{}{network}", ports.rtcp).into_bytes()
}

/// Returns whether an attribute is of ICE, or of streams in one port.
fn is_left_out(attribute: &[u8]) -> bool {
    const LEFT_OUT: [&[u8]; 11] = [
        b"candidate:",
        b"ice-ufrag:",
        b"ice-pwd:",
        b"ice-options:",
        b"ice-pacing:",
        b"ice-lite",
        b"ice-mismatch",
        b"remote-candidates:",
        b"end-of-candidates",
        b"group:BUNDLE",
        b"bundle-only",
    ];
    LEFT_OUT.iter().any(|name| attribute.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

fn number(word: &[u8]) -> Option<u16> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

fn put(out: &mut Vec<u8>, line: &[u8]) {
    out.extend_from_slice(line);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
