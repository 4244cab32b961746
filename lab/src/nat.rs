// SPDX-License-Identifier: Apache-2.0
//! A NAT that knows GIST (RFC 5971 §7.2.2): the kernel translates packets, and this what Queries say in them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::AsFd;

use anyhow::{Context, Result, ensure};
use netserv_plane::DriverConfig;
use netserv_signal::{Intercepted, Interceptor};
use netserv_wire::gist::{Message, NatTraversal, strip_magic};
use rustix::event::{PollFd, PollFlags, poll};

/// Reads an address inside and the one that it has outside.
///
/// # Errors
/// They are no two addresses of one IP version with `=` between.
pub fn binding(text: &str) -> Result<(IpAddr, IpAddr)> {
    let (inside, outside) = text.split_once('=').context("an address inside, `=` and an address outside")?;
    let (inside, outside): (IpAddr, IpAddr) = (inside.parse()?, outside.parse()?);
    ensure!(inside.is_ipv4() == outside.is_ipv4(), "{inside} and {outside} are of two IP versions");
    Ok((inside, outside))
}

/// Translates passing Queries of the addresses inside until the process is ended.
///
/// # Errors
/// The packet filter or its queues cannot be used.
pub fn translate(outside_of: &BTreeMap<IpAddr, IpAddr>) -> Result<()> {
    ensure!(!outside_of.is_empty(), "no address to translate; give INSIDE=OUTSIDE");
    let mut interceptor = Interceptor::open(&DriverConfig::new("gist-nat"), None)?;
    println!("translating {} addresses", outside_of.len());
    let mut passing = Vec::new();
    loop {
        poll(&mut [PollFd::from_borrowed_fd(interceptor.as_fd(), PollFlags::IN)], None).context("poll")?;
        while interceptor.receive(&mut passing)? > 0 {}
        for packet in passing.drain(..) {
            match translated(&packet, outside_of) {
                Some(payload) => interceptor.accept_modified(packet.id, &payload)?,
                None => interceptor.accept(packet.id)?,
            }
        }
    }
}

/// Returns what a message becomes; nothing if it stays as it is, since it does not come from inside or is no Query.
fn translated(packet: &Intercepted, outside_of: &BTreeMap<IpAddr, IpAddr>) -> Option<Vec<u8>> {
    let outside = outside_of.get(&packet.source.ip())?;
    let mut message = Message::parse(strip_magic(packet.payload())?).ok()?;
    let address = |inside| outside_of.get(&inside).copied().unwrap_or(inside);
    // RFC 5971 A.3.8: for the NAT itself, on the way back.
    let note = outside.to_string();
    NatTraversal::translate(&mut message, note.as_bytes(), address).then(|| message.emit_datagram())
}
