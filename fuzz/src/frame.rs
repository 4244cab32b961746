// SPDX-License-Identifier: Apache-2.0
//! What the driver does with a frame before and after anybody judges it.

use netserv_plane_afxdp::fuzzing::{complete_checksum, link_header, why_not_plain};
use netserv_wire::ip::checksum::{TransportChecksum, verify_header, verify_transport};
use netserv_wire::ip::{IpVersion, IpView, decrement_ttl};

/// Takes a frame apart, completes the packet's checksum and counts down its TTL.
///
/// # Panics
/// If anything but checksums and the TTL changes, if a completed checksum is wrong, or if damage is covered up.
pub fn ethernet_frame(data: &[u8]) {
    let Some((header_bytes, vlan)) = link_header(data) else { return };
    assert!([14, 18].contains(&header_bytes) && data.len() >= header_bytes);
    assert!(vlan.is_none_or(|vlan| header_bytes == 18 && (1..0x1000).contains(&vlan)));
    assert!(matches!(data[header_bytes - 2..header_bytes], [0x08, 0x00] | [0x86, 0xdd]));
    let before = &data[header_bytes..];
    let mut packet = before.to_vec();
    complete_checksum(&mut packet);
    let Ok(view) = IpView::parse(&packet) else {
        assert_eq!(packet, before, "what is no packet is left as it is");
        return;
    };
    let view_before = IpView::parse(before).expect("checksums do not make a packet");
    assert_eq!(verify_header(&view), verify_header(&view_before), "a damaged header is damaged still");
    if packet != before {
        assert_eq!(verify_transport(&view), TransportChecksum::Good);
        let field = view.payload_offset() + if view.protocol() == 17 { 6 } else { 16 };
        let outside = |at: &usize| !(field..field + 2).contains(at);
        let changed = (0..packet.len()).find(|at| outside(at) && packet[*at] != before[*at]);
        assert_eq!(changed, None, "only the checksum changes");
    }
    if why_not_plain(&view).is_some() {
        return;
    }
    let header_bytes = match view.version() {
        IpVersion::V4 => 20,
        IpVersion::V6 => 40,
    };
    assert!(view.ttl() > 1 && view.payload_offset() >= header_bytes && verify_header(&view));
    let ttl = view.ttl();
    assert_eq!(decrement_ttl(&mut packet), Ok(ttl - 1));
    let view = IpView::parse(&packet).expect("a packet still");
    assert!(verify_header(&view) && view.ttl() == ttl - 1);
}
