// SPDX-License-Identifier: Apache-2.0
//! A program with sockets of its own: it tries what the property `try` says, waits for `wait-ms`, then echoes what comes
//! to port `port`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

fn main() {
    for attempt in property("try").split_whitespace() {
        println!("{attempt}: {}", try_it(attempt));
    }
    match property("end").as_str() {
        "" => {}
        "trap" => std::process::abort(),
        "panic" => panic!("no key for {}", property("whom")),
        status => std::process::exit(status.parse().unwrap_or(99)),
    }
    std::thread::sleep(Duration::from_millis(property("wait-ms").parse().unwrap_or(0)));
    let listener =
        TcpListener::bind(("0.0.0.0", property("port").parse().unwrap_or(0))).expect("the port is published");
    println!("listening");
    for connection in listener.incoming() {
        let mut connection = connection.expect("a connection");
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = connection.read(&mut bytes) {
            if connection.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
    }
}

fn property(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// `bind=ADDRESS`, `connect=ADDRESS`, `udp=ADDRESS`, `file=PATH`, `grow=BYTES` or `sleep=MS`.
fn try_it(attempt: &str) -> String {
    let (what, whom) = attempt.split_once('=').unwrap_or((attempt, ""));
    let outcome = match what {
        "bind" => TcpListener::bind(whom).map(drop),
        "connect" => TcpStream::connect(whom).map(drop),
        "udp" => UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"x", whom)).map(drop),
        "file" => std::fs::read(whom).map(drop),
        "grow" => grow(whom.parse().unwrap_or(0)),
        "sleep" => {
            std::thread::sleep(Duration::from_millis(whom.parse().unwrap_or(0)));
            Ok(())
        }
        _ => return "unknown".to_owned(),
    };
    outcome.map_or_else(|error| format!("{:?}", error.kind()), |()| "done".to_owned())
}

fn grow(bytes: usize) -> std::io::Result<()> {
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| std::io::ErrorKind::OutOfMemory.into())
}
