// SPDX-License-Identifier: Apache-2.0
//! Connections that go on without a module: bytes from side to side as they come.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::{Instant, sleep};

use super::module::Counts;
use crate::{limits, sys};

/// Has two connections be one until both ends have said that no more comes, or one is reset, as the other is then: behind all that the reset
/// one had said. `begun` came from the client already.
pub async fn relay(counts: &Counts, client: TcpStream, server: TcpStream, begun: &[u8]) {
    prepare(&client);
    prepare(&server);
    let (mut client, mut server) = (client, server);
    let (client_is_gone, server_is_gone) = (AtomicBool::new(false), AtomicBool::new(false));
    let ended = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let up = pass(counts, (from_client, &client_is_gone), (to_server, &server_is_gone), begun);
        let down = pass(counts, (from_server, &server_is_gone), (to_client, &client_is_gone), &[]);
        tokio::try_join!(up, down)
    };
    if ended.is_err() {
        for (stream, is_gone) in [(client, client_is_gone), (server, server_is_gone)] {
            if !is_gone.into_inner() {
                sent(&stream).await;
            }
            reset(&stream);
        }
    }
}

/// Waits until the kernel has sent what it was given: a reset takes the rest away.
async fn sent(stream: &TcpStream) {
    if sys::limit_unsent(stream, 1).is_err() {
        return;
    }
    let has_unsent = || {
        let mut polled = [PollFd::new(stream, PollFlags::OUT)];
        poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready == 0)
    };
    let until = Instant::now() + limits::TCP_CLOSING_TIME_MAX;
    let mut pause = SENT_LOOK_TIME_MIN;
    while has_unsent() && Instant::now() < until {
        sleep(pause).await;
        pause = (2 * pause).min(SENT_LOOK_TIME_MAX);
    }
}

/// How soon to look whether all was sent, and how often at least: clients that take nothing are many at a time.
const SENT_LOOK_TIME_MIN: Duration = Duration::from_millis(10);
const SENT_LOOK_TIME_MAX: Duration = Duration::from_millis(500);

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

/// Sends what comes from one end to the other, each with whether it is known to be gone.
///
/// If the end that is sent to is gone, it may have said something before. That is for the other way, which ends then.
async fn pass(
    counts: &Counts,
    (from, from_is_gone): (ReadHalf<'_>, &AtomicBool),
    (mut to, to_is_gone): (WriteHalf<'_>, &AtomicBool),
    begun: &[u8],
) -> io::Result<()> {
    if to.write_all(begun).await.is_err() {
        to_is_gone.store(true, Ordering::Relaxed);
        return Ok(());
    }
    counts.bytes_out(begun.len());
    loop {
        // A connection on which nothing comes has no buffer.
        let is_readable = from.readable().await;
        let mut buffer = Vec::with_capacity(limits::RELAY_BYTES);
        match is_readable.and_then(|()| from.try_read_buf(&mut buffer)) {
            Ok(0) if from_is_gone.load(Ordering::Relaxed) => return Err(io::ErrorKind::ConnectionReset.into()),
            Ok(0) => break,
            Ok(length) => {
                counts.bytes_in(length);
                if to.write_all(&buffer).await.is_err() {
                    to_is_gone.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                counts.bytes_out(length);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                from_is_gone.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
    }
    // If the other end is gone, there is nobody to tell.
    let _ = to.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

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
    /// Goal: what a server said before it reset its connection reaches the client, which is reset behind that. Method: the client sends without
    /// end, and the server answers and closes without reading.
    #[tokio::test]
    async fn what_was_said_before_a_reset_arrives() {
        let said = [&[7; 20_000][..], b"end"].concat();
        for _ in 0..20 {
            let (client, near) = pair().await;
            let (server, far) = pair().await;
            let relayed = tokio::spawn(async move { relay(&Counts::default(), near, far, &[]).await });
            let (mut from, mut to) = client.into_split();
            let sending = tokio::spawn(async move { while to.write_all(&[1; 10_000]).await.is_ok() {} });
            let (expected, mut server) = (said.clone(), server);
            let answering = tokio::spawn(async move {
                server.readable().await.unwrap();
                server.write_all(&expected).await.unwrap();
            });
            let mut came = Vec::new();
            let ended = from.read_to_end(&mut came).await;
            assert!(came == said, "{} of {} bytes, {ended:?}", came.len(), said.len());
            answering.await.unwrap();
            sending.await.unwrap();
            relayed.await.unwrap();
        }
    }

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (one, other) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        (one.unwrap(), other.unwrap().0)
    }
}
