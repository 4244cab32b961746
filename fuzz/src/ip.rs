// SPDX-License-Identifier: Apache-2.0
//! IP packets.

use netserv_wire::ip::checksum::{TransportChecksum, fill, verify_header, verify_transport};
use netserv_wire::ip::{IpView, addresses, build, decrement_ttl, set_ttl};

/// Looks into a packet and changes it in every way there is.
///
/// # Panics
/// If a view reaches beyond the packet, or checksums that were filled in are wrong.
pub fn ip_view(data: &[u8]) {
    let mut changed = data.to_vec();
    let _ = set_ttl(&mut changed, 7);
    let _ = decrement_ttl(&mut changed);
    let replaced = build::replace_udp_payload(data, b"other");
    let Ok(view) = IpView::parse(data) else {
        assert!(fill(&mut data.to_vec()).is_err() && replaced.is_err());
        return;
    };
    assert_eq!(addresses(data), Some((view.source(), view.destination())));
    assert_eq!(view.bytes(), &data[..view.bytes().len()]);
    assert_eq!(view.payload(), &view.bytes()[view.payload_offset()..]);
    let flow = view.flow();
    let _ = (view.router_alert(), verify_header(&view));
    if let (Some(datagram), Ok(replaced)) = (view.udp(), &replaced) {
        let other = IpView::parse(replaced).expect("a replaced payload leaves a packet");
        assert_eq!((Some(datagram.source_port), other.flow()), (flow.source_port, flow));
        assert_eq!(other.udp().map(|datagram| datagram.payload), Some(&b"other"[..]));
    }
    let expected = match verify_transport(&view) {
        TransportChecksum::Absent => TransportChecksum::Absent,
        TransportChecksum::Good | TransportChecksum::Bad => TransportChecksum::Good,
    };
    let mut filled = data.to_vec();
    fill(&mut filled).expect("it is a packet");
    let view = IpView::parse(&filled).expect("checksums change no length");
    assert_eq!((verify_header(&view), verify_transport(&view)), (true, expected));
}
