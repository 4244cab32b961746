// SPDX-License-Identifier: Apache-2.0
//! An ordinary program: it listens on TCP port 7, sends each line back, and knows nothing of NetServ.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

fn main() -> std::io::Result<()> {
    // A socket of WASI is for one version of IP.
    let listener = TcpListener::bind("0.0.0.0:7").or_else(|_| TcpListener::bind("[::]:7"))?;
    println!("listening on {}", listener.local_addr()?);
    for connection in listener.incoming() {
        if let Err(error) = echo(connection?) {
            eprintln!("a connection ended: {error}");
        }
    }
    Ok(())
}

fn echo(mut connection: TcpStream) -> std::io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        let length = connection.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        connection.write_all(&bytes[..length])?;
    }
}
