// SPDX-License-Identifier: Apache-2.0
//! Connections that go on without a module: bytes from side to side as they come.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::module::Counts;
use crate::limits;

/// Has two connections be one until both ends have said that no more comes, or one is reset, as the other is then.
/// `begun` came from the client already.
pub async fn relay(counts: &Counts, client: TcpStream, server: TcpStream, begun: &[u8]) {
    prepare(&client);
    prepare(&server);
    let (mut client, mut server) = (client, server);
    let ended = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let up = pass(counts, from_client, to_server, begun);
        let down = pass(counts, from_server, to_client, &[]);
        tokio::try_join!(up, down)
    };
    if ended.is_err() {
        reset(&client);
        reset(&server);
    }
}

/// Closes a connection so that its other end learns that it is none.
pub fn reset(stream: &TcpStream) {
    // Without it, it is closed as any other.
    let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Sets the options of each TCP connection of a module: no delay, and a vanished end is found within 90 s.
pub fn prepare(stream: &TcpStream) {
    // Without these options it works too: later, or for longer than its other end lives.
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, limits::TCP_KEEP_IDLE);
    let _ = sockopt::set_tcp_keepintvl(stream, limits::TCP_KEEP_INTERVAL);
    let _ = sockopt::set_tcp_keepcnt(stream, limits::TCP_KEEP_QUESTIONS);
}

async fn pass(
    counts: &Counts,
    from: tokio::net::tcp::ReadHalf<'_>,
    mut to: tokio::net::tcp::WriteHalf<'_>,
    begun: &[u8],
) -> io::Result<()> {
    to.write_all(begun).await?;
    counts.bytes_out(begun.len());
    loop {
        // A connection on which nothing comes has no buffer.
        from.readable().await?;
        let mut buffer = Vec::with_capacity(limits::RELAY_BYTES);
        match from.try_read_buf(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                counts.bytes_in(length);
                to.write_all(&buffer).await?;
                counts.bytes_out(length);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    // If the other end is gone, there is nobody to tell.
    let _ = to.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: an end that vanished is found within 90 s, whatever the kernel's own settings are.
    #[tokio::test]
    async fn a_vanished_end_is_found_within_90_seconds() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        prepare(&stream);
        let time = sockopt::tcp_keepidle(&stream).unwrap()
            + sockopt::tcp_keepintvl(&stream).unwrap() * sockopt::tcp_keepcnt(&stream).unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap() && time <= Duration::from_secs(90), "{time:?}");
    }
}
