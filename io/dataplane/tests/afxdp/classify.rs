// SPDX-License-Identifier: Apache-2.0
//! The XDP program on single frames: the real program in the kernel, run without traffic.

use netserv_plane::Driver;
use netserv_wire::ip::build;

use crate::common::Chain;
use crate::{ROUTER, open};

#[test]
fn frames_for_others_are_left_alone() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let driver = open("others", &["ip"]);
    let (device, station) = device(&chain);
    let packet = build::udp("10.0.0.1:1".parse().unwrap(), "10.0.1.2:1".parse().unwrap(), 64, b"abc").unwrap();
    let frame = |to: [u8; 6], head: &[u8]| [&to[..], &[2; 6], head, &packet].concat();
    let check = |frame: &[u8], expected: bool| assert_eq!(driver.classify(frame, device).unwrap(), expected);
    check(&frame(station, &[8, 0]), true);
    check(&frame([0xff; 6], &[8, 0]), false);
    check(&frame([2; 6], &[8, 0]), false);
    check(&frame(station, &[8, 6]), false);
    check(&frame(station, &[0x81, 0, 0, 0, 8, 0]), true);
    check(&frame(station, &[0x81, 0, 0, 5, 8, 0]), false);
    check(&frame(station, &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 5, 8, 0]), false);
    let long = build::udp("10.0.0.1:1".parse().unwrap(), "10.0.1.2:1".parse().unwrap(), 64, &[0; 1800]).unwrap();
    check(&[&station[..], &[2; 6], &[8, 0], &long].concat(), false);
    assert_eq!(driver.counters().unseen, 1);
}

/// Returns the router's device on the sender's side, and its station.
pub(crate) fn device(chain: &Chain) -> (u32, [u8; 6]) {
    let text = chain.run(ROUTER, &["ip", "-o", "link", "show", "left"]);
    let index = text.split(':').next().unwrap().parse().unwrap();
    let station = text.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap();
    let octets: Vec<u8> = station.split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect();
    (index, octets.try_into().unwrap())
}
