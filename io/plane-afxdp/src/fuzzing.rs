// SPDX-License-Identifier: Apache-2.0
//! What the fuzz targets need of the driver's inside. Nobody else is to use it, and it may change at any time.

use std::net::IpAddr;
use std::sync::Arc;

use netserv_plane::FilterTable;
use netserv_wire::ip::IpView;

use super::frame::{self, EthernetRepr};
pub use super::layout::TABLE_WORDS;
use super::layout::{self, InterfaceRepr};
pub use super::table::Maps;
use super::table::Table;

/// Returns the driver's table of filters over other maps than those of a program in the kernel.
pub fn table<M: Maps + 'static>(maps: Arc<M>) -> Arc<dyn FilterTable> {
    Arc::new(Table::without_thread(maps))
}

/// Returns a key of the map `own`.
pub fn own_key(address: IpAddr) -> [u8; 16] {
    layout::address_bytes(address)
}

/// Returns an entry of the map `interfaces` for a device with one queue, or for a VLAN on it.
pub fn interface(
    device: u32,
    vlan: Option<u16>,
    station: [u8; 6],
    flags: u16,
    frame_bytes_max: u32,
) -> ([u8; 8], [u8; 20]) {
    let value = InterfaceRepr { station, flags, first_socket: 0, queues: 1, frame_bytes_max };
    (layout::interface_key(device, vlan), value.emit())
}

/// Returns the length of the header of a frame with an IP packet, and its VLAN.
pub fn link_header(frame: &[u8]) -> Option<(usize, Option<u16>)> {
    EthernetRepr::parse(frame)
}

/// Returns why a packet cannot be forwarded by looking at its addresses alone, if so.
pub fn why_not_plain(view: &IpView<'_>) -> Option<&'static str> {
    frame::why_not_plain(view)
}

/// Fills in the checksum of a packet that its sender left to the card.
pub fn complete_checksum(packet: &mut [u8]) {
    frame::complete_checksum(packet);
}
