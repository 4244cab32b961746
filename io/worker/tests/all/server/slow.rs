// SPDX-License-Identifier: Apache-2.0
//! Clients of TCP modules that take their time, and a module that is told of no memory.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_model::RefusalKind;
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_wire::container::frames::{FromWorker, ServerLoad};
use netserv_worker_base::wakeup::Wakeup;
use netserv_worker_server::accepted::Accepted;
use netserv_worker_server::engine::ServerEngine;
use netserv_worker_server::limits::DENIED_TIME_MAX;
use netserv_worker_server::module::{Module, Profile, Shared};
use netserv_worker_server::origin::Origin;
use netserv_worker_server::tcp::connection;
use netserv_worker_server::tcp::service::{TcpService, Times};
use netserv_worker_server::{blocks, component};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use tokio::runtime::Runtime;

use super::{LONG, Spec, Worker, compiled, connect};

const SHORT: Duration = Duration::from_secs(1);

#[test]
fn who_takes_nothing_more_of_a_closed_connection_is_reset() {
    let service = Service::start(Times { closing: SHORT, ..Times::default() });
    let mut client = service.connect(None);
    client.write_all(b"flood and close").unwrap();
    let begun = Instant::now();
    let mut reset = [PollFd::new(&client, PollFlags::empty())];
    let patience = Timespec { tv_sec: LONG.as_secs().try_into().unwrap(), tv_nsec: 0 };
    assert_eq!(poll(&mut reset, Some(&patience)), Ok(1), "it keeps its place");
    assert!(reset[0].revents().contains(PollFlags::ERR) && begun.elapsed() >= SHORT);
    service.wait_until_it_has_none();
}

#[test]
fn who_takes_it_slowly_gets_all_of_a_closed_connection() {
    let service = Service::start(Times { closing: SHORT, ..Times::default() });
    let mut client = service.connect(None);
    client.write_all(b"flood and close").unwrap();
    let begun = Instant::now();
    let (mut taken, mut buffer) = (0, vec![0; 128 * 1024]);
    loop {
        match client.read(&mut buffer).unwrap() {
            0 => break,
            length => taken += length,
        }
        // Slower than the bound as a whole, and never without anything for so long.
        std::thread::sleep(SHORT / 20);
    }
    assert_eq!(taken, 1 << 20);
    assert!(begun.elapsed() > SHORT, "it was no slow client");
}

#[test]
fn a_connection_to_a_port_on_which_nothing_happens_is_closed() {
    let service = Service::start(Times { idle: SHORT, ..Times::default() });
    let begun = Instant::now();
    let mut silent = service.connect(None);
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    assert!(begun.elapsed() >= SHORT);
    // What is said now and then holds it open.
    let mut talking = service.connect(None);
    let begun = Instant::now();
    while begun.elapsed() < 2 * SHORT {
        ask(&mut talking, b"hello");
        std::thread::sleep(SHORT / 20);
    }
    assert_eq!(talking.read(&mut [0]).unwrap(), 0, "and no longer");
    service.wait_until_it_has_none();
}

#[test]
fn a_connection_taken_over_may_be_silent() {
    let service = Service::start(Times { idle: SHORT, ..Times::default() });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = service.connect(Some(Arc::new(Server(listener.local_addr().unwrap()))));
    let (mut server, _) = listener.accept().unwrap();
    client.set_read_timeout(Some(2 * SHORT)).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    server.write_all(b"late").unwrap();
    let mut late = [0; 4];
    client.read_exact(&mut late).unwrap();
    assert_eq!(&late, b"late");
}

/// Goal: a failure is not put down to memory that the module did not get in an earlier event.
#[test]
fn memory_that_was_refused_explains_no_later_trap() {
    let spec = Spec::of(compiled("tcp_tests"));
    let mut worker = Worker::with(&spec);
    let mut client = connect(spec.port());
    assert_eq!(ask(&mut client, b"grow"), *b"small");
    client.write_all(b"trap").unwrap();
    let (kind, detail) = worker.failed(0);
    assert_eq!(kind, RefusalKind::Trapped, "{detail}");
}

/// The same for a program, which is one long call.
#[test]
fn memory_that_was_refused_a_program_explains_no_later_trap() {
    for (pause_ms, expected) in [(0, RefusalKind::MemoryLimit), (DENIED_TIME_MAX.as_millis(), RefusalKind::Trapped)] {
        let try_all = format!("grow=1073741824 sleep={pause_ms}");
        let mut worker = Worker::start();
        worker.send_load(&Spec::program().property("try", &try_all).property("end", "trap"));
        let mut answer = worker.answer();
        if matches!(answer, FromWorker::Loaded { .. }) {
            answer = worker.answer();
        }
        let FromWorker::Failed { refusal, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(refusal.kind, expected, "{pause_ms} ms: {}", refusal.detail);
        worker.wait_for_line("grow=1073741824: OutOfMemory");
    }
}

fn ask<const N: usize>(stream: &mut TcpStream, bytes: &[u8; N]) -> Vec<u8> {
    stream.write_all(bytes).unwrap();
    let mut answer = vec![0; 5];
    stream.read_exact(&mut answer).unwrap();
    answer
}

/// A module that handles connections, in this process.
pub struct Service {
    pub runtime: Runtime,
    pub service: Arc<TcpService>,
}

impl Service {
    /// Starts `tcp-tests` with room for two connections.
    fn start(times: Times) -> Service {
        Service::of("tcp_tests", times, 2, &[], &[])
    }

    /// Starts a module of `modules/`.
    pub fn of(name: &str, times: Times, connections: u32, properties: &[(&str, &str)], connect: &[&str]) -> Service {
        let engine = Arc::new(ServerEngine::new().unwrap());
        let wasm = std::fs::read(super::component(name)).unwrap();
        let component = component::compile(&engine, &wasm, &blocks::all()).unwrap();
        let profile = Profile {
            slot: ModuleSlot(0),
            name: "example.org/tests@1.0.0".parse().unwrap(),
            properties: properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            limits: ModuleLimits { connections, ..ModuleLimits::default() },
            blocks: blocks::all(),
            network: ServerLoad {
                connect: connect.iter().map(|filter| filter.parse().unwrap()).collect(),
                ..ServerLoad::default()
            },
        };
        let module = Arc::new(Module::new(profile, Shared::default(), Arc::new(Wakeup::new().unwrap())));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let started = TcpService::start(&engine, component, &module, times, |refusal| panic!("{refusal}"));
        let service = runtime.block_on(started).unwrap();
        connection::bind(&service);
        Service { runtime, service }
    }

    /// Opens a connection whose ends hold little.
    pub fn connect(&self, origin: Option<Arc<dyn Origin>>) -> TcpStream {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sockopt::set_socket_recv_buffer_size(&listener, 16 * 1024).unwrap();
        sockopt::set_socket_send_buffer_size(&listener, 16 * 1024).unwrap();
        let server = listener.local_addr().unwrap();
        let client = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None);
        let client = client.unwrap();
        sockopt::set_socket_recv_buffer_size(&client, 16 * 1024).unwrap();
        rustix::net::connect(&client, &server).unwrap();
        let (stream, from) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        let _inside = self.runtime.enter();
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        connection::accept(&self.service, Accepted { stream, client: from, server, origin });
        let client = TcpStream::from(client);
        client.set_read_timeout(Some(LONG)).unwrap();
        client
    }

    /// Waits until there is room for as many connections as there may be.
    fn wait_until_it_has_none(&self) {
        let begun = Instant::now();
        loop {
            let mut clients = [self.connect(None), self.connect(None)];
            let answered = |client: &mut TcpStream| {
                client.write_all(b"hello").and_then(|()| client.read_exact(&mut [0; 5])).is_ok()
            };
            if clients.iter_mut().all(answered) {
                return;
            }
            assert!(begun.elapsed() < LONG, "a place is not given back");
            // Reset, they give back their own at once.
            clients.iter().for_each(|client| sockopt::set_socket_linger(client, Some(Duration::ZERO)).unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Where a connection went that was taken over.
pub struct Server(pub SocketAddr);

impl Origin for Server {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<tokio::net::TcpStream>> + Send>> {
        Box::pin(tokio::net::TcpStream::connect(self.0))
    }
}
