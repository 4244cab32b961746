// SPDX-License-Identifier: Apache-2.0
//! What tests of signaling share: sockets, and waiting for what comes.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use netserv_plane::InterfaceId;
use netserv_signal::{Intercepted, Interceptor, Received, SignalConfig, SignalSocket};

use super::Chain;

pub fn socket(chain: &Chain, k: usize) -> SignalSocket {
    let _entered = chain.enter(k);
    SignalSocket::open(SignalConfig { port: 270, mark: 0x4e65_7453 }).unwrap()
}

pub fn intercept(interceptor: &mut Interceptor) -> Intercepted {
    let mut messages = Vec::new();
    wait_until(|| interceptor.receive(&mut messages).unwrap() > 0);
    assert_eq!(messages.len(), 1);
    messages.remove(0)
}

pub fn next(socket: &SignalSocket) -> Received {
    let mut received = None;
    wait_until(|| {
        received = socket.receive().unwrap();
        received.is_some()
    });
    received.unwrap()
}

pub fn check_datagram(socket: &SignalSocket, from: IpAddr, to: IpAddr, expected_ttl: u8, message: &[u8]) {
    let Received::Datagram { interface, local, source, destination, ttl, payload } = next(socket) else {
        panic!("an error came in place of a datagram");
    };
    assert_ne!(interface, InterfaceId(0));
    assert_eq!((local, destination, source), (to, to, SocketAddr::new(from, 270)));
    assert_eq!((ttl, payload.as_slice()), (expected_ttl, message));
}

pub fn wait_until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing came");
        std::thread::sleep(Duration::from_micros(200));
    }
}
