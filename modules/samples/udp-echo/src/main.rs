// SPDX-License-Identifier: Apache-2.0
//! Sends datagrams back to where they came from, as many at a time as have come.

#[cfg(target_os = "wasi")]
fn main() {
    use netserv_server_sdk::udp::Socket;

    let address = std::env::var("address").ok().and_then(|address| address.parse().ok());
    let address = address.expect("the property `address` is an address with a port");
    let socket = Socket::bind(address).unwrap_or_else(|error| panic!("no socket at {address}: {error:?}"));
    println!("listening on {}", socket.local());
    loop {
        let batch = socket.receive();
        if let Err(error) = socket.send(&batch) {
            eprintln!("{} datagrams were not sent back: {error:?}", batch.len());
        }
    }
}

#[cfg(not(target_os = "wasi"))]
fn main() {}
