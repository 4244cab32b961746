// SPDX-License-Identifier: Apache-2.0
//! One connection of a module that handles them as events: its bytes from side to side.
//!
//! A side is read only while nothing waits to be sent to the other, so that senders feel how fast the receivers are.
//! Nothing that calls the module is ever given up half-way.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::service::TcpService;
use super::table::{Connection, Sides, Stage};
use super::wit::control::Error;
use super::wit::{Action, Address, Decision, Flow, Side};
use crate::accepted::Accepted;
use crate::limits;
use crate::module::Transport;
use crate::relay::{self, reset};

/// Lets the module of a service open connections.
pub fn bind(service: &Arc<TcpService>) {
    let weak = Arc::downgrade(service);
    let opener = move |remote: &Address| weak.upgrade().map_or(Err(Error::Quota), |service| open(&service, remote));
    service.connections.bind(Box::new(opener));
}

/// Takes a connection for a module, unless that has as many as it may have.
pub fn accept(service: &Arc<TcpService>, accepted: Accepted) {
    let sides = if accepted.origin.is_some() { Sides::Both } else { Sides::Client };
    let Some((id, connection)) = service.enter(sides) else {
        return reset(&accepted.stream);
    };
    let service = Arc::clone(service);
    tokio::spawn(async move {
        serve(&service, id, &connection, accepted).await;
        service.depart(id, &connection);
    });
}

/// Opens a connection of a module's own, whose number is returned at once.
///
/// # Errors
/// The module may not connect there, or has as many connections as it may have.
fn open(service: &Arc<TcpService>, remote: &Address) -> Result<u64, Error> {
    let ip: IpAddr = remote.ip.parse().map_err(|_| Error::Invalid)?;
    if remote.port == 0 {
        return Err(Error::Invalid);
    }
    let remote = SocketAddr::new(ip, remote.port);
    if !service.module().may_connect(Transport::Tcp, remote) {
        return Err(Error::NotPermitted);
    }
    let (id, connection) = service.enter(Sides::Server).ok_or(Error::Quota)?;
    let service = Arc::clone(service);
    tokio::spawn(async move {
        let connecting = timeout(limits::EGRESS_CONNECT_TIME_MAX, TcpStream::connect(remote));
        let connected = tokio::select! {
            connected = connecting => connected.ok().and_then(Result::ok),
            () = connection.reached(Stage::Closing) => None,
        };
        if let Some(stream) = connected
            && service.opened(&connection, id).await.is_some()
        {
            exchange(&service, id, &connection, (Side::Server, &Arc::new(stream)), None).await;
        }
        service.closed(&connection, id).await;
        service.depart(id, &connection);
    });
    Ok(id)
}

/// Serves a connection to its end.
async fn serve(service: &Arc<TcpService>, id: u64, connection: &Arc<Connection>, accepted: Accepted) {
    let Accepted { stream: client, client: from, server: to, origin } = accepted;
    let flow = Flow { client: address(from), server: address(to), intercepted: origin.is_some() };
    let origin = match service.connect(connection, id, flow).await {
        Some(Decision::Accept) => origin,
        Some(Decision::Serve) => {
            connection.serve();
            // The module may have gone, and there is nobody else to go on with.
            if connection.stage() == Stage::Spliced {
                connection.advance(Stage::Closing);
            }
            None
        }
        Some(Decision::Splice) if origin.is_some() => {
            connection.advance(Stage::Spliced);
            origin
        }
        // The module went, and its connections go on.
        None if connection.stage() == Stage::Spliced => origin,
        // Without another side there is nobody to hand it on to.
        Some(Decision::Splice | Decision::Refuse) | None => {
            reset(&client);
            return;
        }
    };
    let opened = match origin {
        Some(origin) => timeout(limits::EGRESS_CONNECT_TIME_MAX, origin.connect()).await.map(|opened| opened.map(Some)),
        None => Ok(Ok(None)),
    };
    match opened {
        Ok(Ok(server)) => {
            let (client, server) = (Arc::new(client), server.map(Arc::new));
            exchange(service, id, connection, (Side::Client, &client), server.as_ref()).await;
        }
        Ok(Err(_)) | Err(_) => {
            service.owner(connection).module().counts.failed();
            reset(&client);
        }
    }
    service.closed(connection, id).await;
}

/// Has bytes go from side to side, or to and from the module if there is one side only.
async fn exchange(
    service: &Arc<TcpService>,
    id: u64,
    connection: &Connection,
    first: (Side, &Arc<TcpStream>),
    server: Option<&Arc<TcpStream>>,
) {
    prepare(connection, first);
    let (side, stream) = (first.0, first.1.as_ref());
    let ends = match server {
        Some(server) => {
            prepare(connection, (Side::Server, server));
            let server = (Side::Server, server.as_ref());
            let (a, b, c, d) = tokio::join!(
                read(service, id, connection, (side, stream)),
                read(service, id, connection, server),
                write(service, id, connection, (side, stream)),
                write(service, id, connection, server),
            );
            [a, b, c, d]
        }
        None => {
            let (a, b, ()) = tokio::join!(
                read(service, id, connection, (side, stream)),
                write(service, id, connection, (side, stream)),
                end_if_idle(connection, service.times.idle),
            );
            [a, b, Ok(()), Ok(())]
        }
    };
    if connection.stage() == Stage::Aborted || ends.iter().any(Result::is_err) {
        std::iter::once(first.1).chain(server).for_each(|stream| reset(stream));
    }
}

/// Closes a connection on which nothing comes or goes: a client that is there and does nothing keeps its place from
/// others.
async fn end_if_idle(connection: &Connection, time: Duration) {
    loop {
        let until = connection.moved() + time;
        if until <= Instant::now() {
            return connection.advance(Stage::Closing);
        }
        if timeout_at(until, connection.reached(Stage::Closing)).await.is_ok() {
            return;
        }
    }
}

fn prepare(connection: &Connection, (side, stream): (Side, &Arc<TcpStream>)) {
    connection.queue(side).attach(stream);
    relay::prepare(stream);
}

/// Hands what one side sends to the module and on, until it sends no more.
async fn read(
    service: &Arc<TcpService>,
    id: u64,
    connection: &Connection,
    (source, stream): (Side, &TcpStream),
) -> io::Result<()> {
    let outcome = receive(service, id, connection, (source, stream)).await;
    match outcome {
        Ok(true) => {
            if connection.stage() < Stage::Spliced && service.end(connection, id, source).await.is_none() {
                connection.abandon();
            }
            match connection.other(source) {
                Some(other) => connection.queue(other).shut(),
                None => linger(connection, source).await,
            }
        }
        Ok(false) => {}
        Err(_) => connection.advance(Stage::Aborted),
    }
    outcome.map(drop)
}

/// Lets a module finish what it sends to the only side there is, when that sends no more.
async fn linger(connection: &Connection, side: Side) {
    let own = connection.queue(side);
    let mut quiet = Duration::ZERO;
    while connection.stage() < Stage::Closing && !own.is_shut() && quiet < limits::TCP_HALF_CLOSED_TIME_MAX {
        sleep(LOOK_TIME).await;
        quiet = if own.is_empty() { quiet + LOOK_TIME } else { Duration::ZERO };
    }
    connection.advance(Stage::Closing);
}

const LOOK_TIME: Duration = Duration::from_millis(250);

/// Returns whether the side ended by itself.
async fn receive(
    service: &Arc<TcpService>,
    id: u64,
    connection: &Connection,
    (source, stream): (Side, &TcpStream),
) -> io::Result<bool> {
    let onward = connection.other(source).map(|other| connection.queue(other));
    // What a module sends to the only side there is holds up what it is shown.
    let queue = onward.unwrap_or(connection.queue(source));
    let mut wanted = limits::TCP_CHUNK_BYTES_FIRST;
    loop {
        connection.unpaused(source).await;
        while !queue.has_room() {
            tokio::select! {
                () = connection.reached(Stage::Closing) => return Ok(false),
                () = queue.room.notified() => {}
            }
        }
        let most = wanted.min(service.connections.pool().chunk_bytes());
        let mut buffer = service.buffers.take(most);
        let length = match stream.try_read_buf(&mut bytes::BufMut::limit(&mut buffer, most)) {
            Ok(0) => return Ok(true),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                service.buffers.give(buffer);
                tokio::select! {
                    biased;
                    () = connection.reached(Stage::Closing) => return Ok(false),
                    ready = stream.readable() => ready?,
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        service.owner(connection).module().counts.bytes_in(length);
        connection.touch();
        if let (Some(bytes), Some(onward)) = (shown(service, id, connection, source, buffer).await, onward) {
            let sent = onward.send_on(bytes, &service.buffers)?;
            service.owner(connection).module().counts.bytes_out(sent);
        }
        if connection.stage() >= Stage::Closing {
            return Ok(false);
        }
        if !queue.is_empty() {
            wanted = (wanted / 2).max(limits::TCP_CHUNK_BYTES_FIRST);
        } else if length == most {
            wanted = (wanted * 2).min(limits::TCP_CHUNK_BYTES_MAX);
        }
    }
}

/// Shows bytes to the module, and returns those that go on to the other side, if there is one.
pub(crate) async fn shown(
    service: &Arc<TcpService>,
    id: u64,
    connection: &Connection,
    source: Side,
    bytes: Vec<u8>,
) -> Option<Vec<u8>> {
    let action = if connection.stage() == Stage::Spliced {
        Some(Action::Pass)
    } else {
        service.data(connection, id, source, &bytes).await
    };
    match action {
        Some(Action::Pass) => return Some(bytes),
        Some(Action::Replace(others)) if others.len() <= limits::TCP_SEND_BYTES_MAX => {
            service.buffers.give(bytes);
            return Some(others);
        }
        Some(Action::Splice) => {
            connection.advance(if connection.other(source).is_some() { Stage::Spliced } else { Stage::Closing });
            return Some(bytes);
        }
        Some(Action::Close) => connection.advance(Stage::Closing),
        Some(Action::Replace(_)) => {
            service.owner(connection).module().counts.failed();
            connection.advance(Stage::Aborted);
        }
        None if connection.stage() == Stage::Spliced => return Some(bytes),
        None => connection.advance(Stage::Aborted),
    }
    None
}

/// Sends a side what waits for it, until no more comes.
async fn write(
    service: &Arc<TcpService>,
    id: u64,
    connection: &Connection,
    (side, stream): (Side, &TcpStream),
) -> io::Result<()> {
    let sent = send(service, id, connection, (side, stream)).await;
    if sent.is_err() {
        connection.advance(Stage::Aborted);
    }
    sent
}

async fn send(
    service: &Arc<TcpService>,
    id: u64,
    connection: &Connection,
    (side, stream): (Side, &TcpStream),
) -> io::Result<()> {
    let queue = connection.queue(side);
    loop {
        if connection.stage() == Stage::Aborted {
            return Ok(());
        }
        let write = |bytes: &[u8]| {
            let written = stream.try_write(bytes)?;
            service.owner(connection).module().counts.bytes_out(written);
            connection.touch();
            Ok(written)
        };
        if !queue.write(write)? {
            tokio::select! {
                biased;
                () = connection.reached(Stage::Aborted) => {}
                ready = stream.writable() => ready?,
                () = closed_for(connection, service.times.closing) => connection.advance(Stage::Aborted),
            }
        } else if queue.is_shut() {
            // If the other end is gone, there is nobody to tell.
            let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
            return Ok(());
        } else if queue.take_wanted() {
            service.room(connection, id, side).await;
        } else if queue.is_wanted() {
            // The module's other connections have what it waits for, and do not say when they give it back.
            let _ = timeout(limits::TCP_ROOM_LOOK_TIME, queue.more.notified()).await;
        } else {
            queue.more.notified().await;
        }
    }
}

/// Waits until a connection has been closing for a while.
async fn closed_for(connection: &Connection, time: Duration) {
    connection.reached(Stage::Closing).await;
    sleep(time).await;
}

pub(crate) fn address(of: SocketAddr) -> Address {
    Address { ip: of.ip().to_canonical().to_string(), port: of.port() }
}
