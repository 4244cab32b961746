// SPDX-License-Identifier: Apache-2.0
//! `modules/samples/port-forward`, which opens connections and holds up who sends too fast.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use netserv_model::effect::ModuleSlot;
use netserv_wire::container::frames::ToWorker;

use super::{LONG, Spec, Worker, compiled, connect, free_port};

/// More than the node and the kernel hold for one side.
const BYTES: usize = 16 << 20;

fn forward(backend: SocketAddr) -> Spec {
    let spec = Spec::of(compiled("port_forward")).property("backend", &backend.to_string());
    spec.with(|spec| spec.connect = vec![format!("tcp dst {} port {}", backend.ip(), backend.port())])
}

/// Has a thread serve one connection.
fn backend(at: &str, serve: impl FnOnce(TcpStream) + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(at).unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        serve(stream);
    });
    (address, thread)
}

fn pattern() -> Vec<u8> {
    (0..BYTES).map(|at| u8::try_from(at * 7 / 3 % 251).unwrap()).collect()
}

#[test]
fn all_bytes_arrive_at_an_end_that_reads_late() {
    for at in ["127.0.0.1:0", "[::1]:0"] {
        let (address, thread) = backend(at, |mut server| {
            std::thread::sleep(Duration::from_millis(300));
            let mut all = Vec::new();
            server.read_to_end(&mut all).unwrap();
            assert!(all == pattern(), "{} bytes came", all.len());
            server.write_all(&all).unwrap();
        });
        let spec = forward(address);
        let _worker = Worker::with(&spec);
        let mut client = connect(spec.port());
        client.write_all(&pattern()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        let mut all = Vec::new();
        client.read_to_end(&mut all).unwrap();
        assert!(all == pattern(), "{} bytes came back", all.len());
        thread.join().unwrap();
    }
}

/// Goal: who sends to an end that does not read has to wait, and others are served meanwhile.
#[test]
fn one_that_does_not_read_holds_up_its_own_connection_only() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let spec = forward(listener.local_addr().unwrap());
    let _worker = Worker::with(&spec);
    let mut stuck = connect(spec.port());
    let (_reads_nothing, _) = listener.accept().unwrap();
    stuck.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = 0;
    while let Ok(length) = stuck.write(&[0; 65_536]) {
        sent += length;
        assert!(sent < 8 * BYTES, "nobody was held up");
    }
    let mut client = connect(spec.port());
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(b"ping").unwrap();
    let mut four = [0; 4];
    server.read_exact(&mut four).unwrap();
    server.write_all(b"pong").unwrap();
    client.read_exact(&mut four).unwrap();
    assert_eq!(&four, b"pong");
    // One end that goes takes the other along.
    drop(server);
    assert_eq!(client.read(&mut four).unwrap(), 0);
}

#[test]
fn a_backend_that_is_not_there_or_not_permitted_ends_the_connection() {
    let nobody: SocketAddr = format!("127.0.0.1:{}", free_port()).parse().unwrap();
    for spec in [forward(nobody), forward(nobody).with(|spec| spec.connect = Vec::new())] {
        let _worker = Worker::with(&spec);
        let mut client = connect(spec.port());
        let mut rest = Vec::new();
        // It is closed or reset.
        assert!(client.read_to_end(&mut rest).map_or(true, |length| length == 0));
    }
}

/// Goal: no connection is cut while the module is upgraded, twice, and no byte is lost or comes twice. Method: clients send and
/// read back all the time; one has ended already, and waits for the rest.
#[test]
fn connections_go_on_with_the_next_version() {
    const CLIENTS: usize = 200;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut server, _)) = listener.accept() {
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length @ 1..) = server.read(&mut buffer) {
                    if server.write_all(&buffer[..length]).is_err() {
                        return;
                    }
                }
                // The rest comes when the upgrades are over.
                std::thread::sleep(Duration::from_secs(1));
                let _ = server.write_all(b"the rest");
            });
        }
    });
    let spec = forward(address);
    let mut worker = Worker::with(&spec);
    let mut clients: Vec<TcpStream> = (0..CLIENTS).map(|_| connect(spec.port())).collect();
    let mut ended = connect(spec.port());
    ended.write_all(b"all of it, ").unwrap();
    ended.shutdown(Shutdown::Write).unwrap();
    let mut round = |number: u8| {
        let bytes = [number; 100];
        clients.iter_mut().for_each(|client| client.write_all(&bytes).unwrap());
        for client in &mut clients {
            let mut back = [0; 100];
            client.read_exact(&mut back).unwrap();
            assert_eq!(back, bytes);
        }
    };
    round(1);
    for (number, (old, new)) in [(0, 1), (1, 2)].into_iter().enumerate() {
        worker.load(&spec.clone().with(|spec| spec.slot = new));
        round(10 + u8::try_from(number).unwrap());
        worker.send(&ToWorker::Unload { slot: ModuleSlot(old) }, None);
        round(20 + u8::try_from(number).unwrap());
    }
    let mut rest = String::new();
    ended.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "all of it, the rest");
    // Longer than a version without connections may take to end.
    std::thread::sleep(netserv_worker_server::limits::STOP_TIME_MAX + Duration::from_millis(500));
    round(30);
}
