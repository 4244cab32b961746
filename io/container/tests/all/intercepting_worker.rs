// SPDX-License-Identifier: Apache-2.0
//! A module that takes over TCP connections, in a container with all its walls: the worker itself and the sample
//! `byte-count`, both as a build leaves them. The test is the node.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::{Guest, Node, PROBE, can_run, user};
use crate::triple::{ENDS, LONG, Lab, accept, at, filters, is_idle, pass};
use netserv_container::limits::BuildLimits;
use netserv_container::network::{ContainerNetwork, Intercept, ListenerPorts};
use netserv_container::{ControlChannel, LaunchSpec, LauncherConfig, Process};
use netserv_model::Flavour;
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::policy::ContainerLimits;
use netserv_model::request::ServerCounts;
use netserv_patience::grown;
use netserv_skips::skipped;
use netserv_wire::container::frames::{FromWorker, PartKind, ServerLoad, ToWorker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What a user's container has unless the operator says otherwise.
const LIMITS: ContainerLimits =
    ContainerLimits { memory_bytes: 96 << 20, cpu_permille: 2000, pids: 64, disk_bytes: 16 << 20 };

#[test]
fn bytes_go_both_ways_and_ends_are_handed_on() {
    let Some(module) = Module::start("bytes_go_both_ways_and_ends_are_handed_on", "tcp port 7000") else { return };
    for (client, server) in ENDS {
        let listener = module.lab.server(|| TcpListener::bind(at(server, 7000)).unwrap());
        let mut stream = module.lab.client(|| TcpStream::connect_timeout(&at(server, 7000), LONG)).unwrap();
        let mut arrived = accept(&listener);
        assert_eq!(arrived.peer_addr().unwrap().ip(), client.parse::<IpAddr>().unwrap(), "the server sees the client");
        assert_eq!(stream.peer_addr().unwrap(), at(server, 7000));
        pass(&mut stream, &mut arrived, &[1; 3_000_000]);
        pass(&mut arrived, &mut stream, &[2; 3_000_000]);
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(arrived.read(&mut [0; 8]).unwrap(), 0, "the server hears that no more comes");
        pass(&mut arrived, &mut stream, b"a late answer");
        drop(arrived);
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
        // Who is reset is reset on the other side, too.
        let stream = module.lab.client(|| TcpStream::connect_timeout(&at(server, 7000), LONG)).unwrap();
        let mut arrived = accept(&listener);
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        drop(stream);
        arrived.set_read_timeout(Some(LONG)).unwrap();
        assert_eq!(arrived.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        // Where nobody listens, the client is told.
        drop(listener);
        let refused = module.lab.client(|| TcpStream::connect_timeout(&at(server, 7000), LONG));
        let ended = refused.and_then(|mut stream| stream.read(&mut [0; 8]));
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    let counts = module.counts();
    assert_eq!((counts.connections, counts.refused), (6, 0), "{counts:?}");
    assert!(counts.bytes_in > 12_000_000 && counts.bytes_in == counts.bytes_out, "{counts:?}");
}

/// Goal: a receiver that does not read holds up its own sender, and nobody else.
#[test]
fn a_slow_receiver_holds_up_its_sender_only() {
    let Some(module) = Module::start("a_slow_receiver_holds_up_its_sender_only", "tcp port 7000") else { return };
    let (_, server) = ENDS[0];
    let listener = module.lab.server(|| TcpListener::bind(at(server, 7000)).unwrap());
    let connect = || module.lab.client(|| TcpStream::connect_timeout(&at(server, 7000), LONG)).unwrap();
    let mut stuck = Vec::new();
    for _ in 0..20 {
        let mut stream = connect();
        let arrived = accept(&listener);
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut sent = 0;
        while let Ok(length) = stream.write(&[3; 65_536]) {
            sent += length;
            assert!(sent < 100 << 20, "nobody reads, and all is taken");
        }
        stuck.push((stream, arrived, sent));
    }
    let mut stream = connect();
    let mut arrived = accept(&listener);
    pass(&mut stream, &mut arrived, &[4; 5_000_000]);
    // And what was taken arrives.
    for (stream, mut arrived, sent) in stuck {
        stream.shutdown(Shutdown::Write).unwrap();
        arrived.set_read_timeout(Some(LONG)).unwrap();
        let (mut received, mut buffer) = (0, vec![0; 1 << 20]);
        loop {
            match arrived.read(&mut buffer).unwrap() {
                0 => break,
                length => received += length,
            }
        }
        assert_eq!(received, sent);
    }
}

/// Goal: 5,000 connections at a time through one container of the usual limits, none of which fails, also when the module is
/// upgraded under them.
#[test]
fn five_thousand_connections_at_a_time() {
    let Some(module) = Module::start("five_thousand_connections_at_a_time", "tcp port 7000") else { return };
    let (_, server) = ENDS[0];
    let listener = module.lab.server(|| TcpListener::bind(at(server, 7000)).unwrap());
    rustix::net::listen(&listener, 8192).unwrap();
    let begun = Instant::now();
    let accepting =
        std::thread::spawn(move || -> Vec<TcpStream> { (0..CONNECTIONS).map(|_| accept(&listener)).collect() });
    let mut clients: Vec<TcpStream> = module.lab.client(|| {
        let connect = || TcpStream::connect_timeout(&at(server, 7000), LONG).unwrap();
        std::iter::repeat_with(connect).take(CONNECTIONS).collect()
    });
    let mut servers = accepting.join().unwrap();
    let opened = begun.elapsed();
    // Whose is whose is known by what they say.
    for (number, client) in clients.iter_mut().enumerate() {
        client.write_all(&u32::try_from(number).unwrap().to_be_bytes()).unwrap();
    }
    let mut seen = BTreeSet::new();
    let mut order = Vec::new();
    for stream in &mut servers {
        let mut number = [0; 4];
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.read_exact(&mut number).unwrap();
        assert!(seen.insert(number));
        order.push(usize::try_from(u32::from_be_bytes(number)).unwrap());
        stream.write_all(&number).unwrap();
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let mut answer = [0; 4];
        client.set_read_timeout(Some(LONG)).unwrap();
        client.read_exact(&mut answer).unwrap();
        assert_eq!(u32::from_be_bytes(answer), u32::try_from(number).unwrap());
    }
    let counts = module.counts();
    eprintln!("{CONNECTIONS} opened in {opened:?}, all said something in {:?}; {}", begun.elapsed(), module.memory());
    assert_eq!((counts.connections, counts.refused, counts.failed), (CONNECTIONS as u64, 0, 0));

    let begun = Instant::now();
    module.upgrade();
    // Longer than a version may take to end with connections that nobody took from it.
    std::thread::sleep(Duration::from_secs(6));
    let slept = begun.elapsed();
    for (stream, number) in servers.iter_mut().zip(order) {
        pass(&mut clients[number], stream, b"with the next version");
        pass(stream, &mut clients[number], b"and back");
    }
    eprintln!("all go on {:?} after the upgrade, {:?} of which passed first", begun.elapsed(), slept);
    assert_eq!(module.counts().connections, 0, "the next version took no connection anew");
}

const CONNECTIONS: usize = 5000;
const NAME: &str = "byte-count";

/// Goal: connections of a module that goes are not cut, in either direction and also when they are half closed; new ones pass;
/// and the node hears when none is left.
#[test]
fn connections_go_on_without_the_module_until_they_end() {
    let test = "connections_go_on_without_the_module_until_they_end";
    let Some(module) = Module::start(test, "tcp port 7000") else { return };
    for round in 0..2 {
        let mut pairs = Vec::new();
        let mut listeners = Vec::new();
        for (_, server) in ENDS {
            let listener = module.lab.server(|| TcpListener::bind(at(server, 7000)).unwrap());
            for _ in 0..100 {
                let client = module.lab.client(|| TcpStream::connect_timeout(&at(server, 7000), LONG).unwrap());
                pairs.push((client, accept(&listener)));
            }
            listeners.push((server, listener));
        }
        pairs.iter_mut().for_each(|(client, server)| pass(client, server, b"with the module"));
        if round == 0 {
            module.drain();
        } else {
            module.control.send(&ToWorker::Unload { slot: ModuleSlot(1) }, &[]).unwrap();
        }
        for (server, listener) in &listeners {
            let mut client = module.lab.client(|| TcpStream::connect_timeout(&at(server, 7000), LONG).unwrap());
            if round == 0 {
                pass(&mut client, &mut accept(listener), b"past the module");
            }
        }
        if round == 1 {
            // Without a drain they are cut, which shows that the drain is what kept them.
            std::thread::sleep(Duration::from_secs(6));
            let cut = |(client, _): &mut (TcpStream, TcpStream)| matches!(client.read(&mut [0; 1]), Ok(0) | Err(_));
            pairs.iter().for_each(|(client, _)| client.set_read_timeout(Some(LONG)).unwrap());
            assert!(pairs.iter_mut().all(cut));
            return;
        }
        let taken = module.counts().connections;
        assert_eq!(taken, 200, "the module takes none that opened later");
        std::thread::sleep(Duration::from_secs(6));
        for (client, server) in &mut pairs {
            pass(client, server, b"without the module");
            pass(server, client, b"and back");
        }
        assert!(!module.drained.load(Ordering::Relaxed), "connections are left");
        for (client, server) in &mut pairs {
            client.shutdown(Shutdown::Write).unwrap();
            pass(server, client, b"half closed");
        }
        drop(pairs);
        let until = Instant::now() + LONG;
        while !module.drained.load(Ordering::Relaxed) {
            assert!(Instant::now() < until, "the node is not told that no connection is left");
            std::thread::sleep(Duration::from_millis(5));
        }
        module.control.send(&ToWorker::Unload { slot: ModuleSlot(0) }, &[]).unwrap();
        module.upgrade();
    }
}

/// Goal: a connection goes through each module that takes it, once, and none is left out when one is loaded again, as after a
/// failure.
#[test]
fn every_module_that_takes_a_connection_has_it() {
    let Some(module) = Module::start("every_module_that_takes_a_connection_has_it", "tcp port 7000") else { return };
    module.load((ModuleSlot(1), "second"));
    module.load((ModuleSlot(2), "third"));
    let (_, server) = ENDS[0];
    let listener = module.lab.server(|| TcpListener::bind(at(server, 7000)).unwrap());
    let exchange = || {
        let mut client = module.lab.client(|| TcpStream::connect_timeout(&at(server, 7000), LONG).unwrap());
        let mut arrived = accept(&listener);
        pass(&mut client, &mut arrived, b"through all of them");
        pass(&mut arrived, &mut client, b"and back");
    };
    let counted = || -> Vec<u64> { module.all_counts().iter().map(|(_, counts)| counts.connections).collect() };
    exchange();
    assert_eq!(counted(), [1, 1, 1]);
    // The kernel goes on leading to the first, which is the last one that was loaded.
    let ports = module.load((ModuleSlot(0), NAME));
    lead(&module.lab, &module.network, &module.filter, ports);
    exchange();
    assert_eq!(counted(), [1, 2, 2]);
    module.control.send(&ToWorker::Unload { slot: ModuleSlot(1) }, &[]).unwrap();
    exchange();
    assert_eq!(counted(), [2, 3]);
}

/// Goal: what is unloaded while it drains ends at once.
#[test]
fn a_drain_is_cut_by_the_unload() {
    let Some(module) = Module::start("a_drain_is_cut_by_the_unload", "tcp port 7000") else { return };
    let (_, server) = ENDS[0];
    let listener = module.lab.server(|| TcpListener::bind(at(server, 7000)).unwrap());
    let mut client = module.lab.client(|| TcpStream::connect_timeout(&at(server, 7000), LONG).unwrap());
    let mut arrived = accept(&listener);
    pass(&mut client, &mut arrived, b"with the module");
    module.drain();
    pass(&mut client, &mut arrived, b"without it");
    module.control.send(&ToWorker::Unload { slot: ModuleSlot(0) }, &[]).unwrap();
    let begun = Instant::now();
    for stream in [&mut client, &mut arrived] {
        stream.set_read_timeout(Some(LONG)).unwrap();
        assert_ne!(stream.read(&mut [0; 8]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock), "it ends");
    }
    assert!(begun.elapsed() < grown(Duration::from_secs(2)), "{:?}", begun.elapsed());
}

#[test]
fn when_the_worker_dies_its_connections_end_and_new_ones_pass() {
    let test = "when_the_worker_dies_its_connections_end_and_new_ones_pass";
    let Some(module) = Module::start(test, "tcp port 7000") else { return };
    for (_, server) in ENDS {
        let listener = module.lab.server(|| TcpListener::bind(at(server, 7000)).unwrap());
        let connect = || module.lab.client(|| TcpStream::connect_timeout(&at(server, 7000), LONG));
        let mut during = connect().unwrap();
        let mut arrived = accept(&listener);
        if server == ENDS[0].1 {
            pass(&mut during, &mut arrived, b"taken over");
            module.process.kill();
            for stream in [&mut during, &mut arrived] {
                stream.set_read_timeout(Some(LONG)).unwrap();
                assert_ne!(
                    stream.read(&mut [0; 8]).map_err(|error| error.kind()),
                    Err(ErrorKind::WouldBlock),
                    "it ends"
                );
            }
        }
        // Those that open while a process ends, or its network goes, may share its fate.
        let untouched = || -> std::io::Result<()> {
            connect()?.write_all(b"untouched")?;
            if is_idle(&listener) {
                return Err(ErrorKind::TimedOut.into());
            }
            let mut received = [0; 9];
            let mut arrived = accept(&listener);
            arrived.set_read_timeout(Some(LONG))?;
            arrived.read_exact(&mut received)?;
            assert_eq!(&received, b"untouched");
            Ok(())
        };
        let until = Instant::now() + LONG;
        while let Err(error) = untouched() {
            assert!(Instant::now() < until, "new connections do not pass: {error}");
        }
    }
}

/// Goal: the share of the kernel's own goodput that one flow keeps. To be run alone, on a quiet machine.
#[test]
#[ignore = "it measures"]
fn goodput_of_one_flow() {
    let Some(module) = Module::start("goodput_of_one_flow", "tcp port 5201") else { return };
    let (_, server) = ENDS[0];
    let nsenter = |name: &str| {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{name}"));
        command
    };
    let serve = |port: &str| {
        nsenter(&module.lab.server)
            .args(["iperf3", "-s", "-p", port])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut servers = [serve("5201"), serve("5202")];
    let measure = |port: &str| -> f64 {
        let run = || {
            nsenter(&module.lab.client).args(["iperf3", "-J", "-t", "3", "-c", server, "-p", port]).output().unwrap()
        };
        let until = Instant::now() + LONG;
        loop {
            let text = String::from_utf8(run().stdout).unwrap();
            if let Some(found) =
                serde_json::from_str::<serde_json::Value>(&text).unwrap()["end"]["sum_received"]["bits_per_second"]
                    .as_f64()
            {
                return found / 1e9;
            }
            assert!(Instant::now() < until, "{text}");
        }
    };
    let mut shares = Vec::new();
    for _ in 0..5 {
        let (forwarded, intercepted) = (measure("5202"), measure("5201"));
        eprintln!(
            "forwarded {forwarded:.2} Gbit/s, intercepted {intercepted:.2} Gbit/s: {:.2}",
            intercepted / forwarded
        );
        shares.push(intercepted / forwarded);
    }
    shares.sort_by(f64::total_cmp);
    eprintln!("median {:.2}, {:.2} to {:.2}; {:?}", shares[2], shares[0], shares[4], module.counts());
    for server in &mut servers {
        server.kill().unwrap();
        server.wait().unwrap();
    }
    assert!(shares[2] >= 0.7);
}

/// What modules counted, and whether that is all.
type Counts = (Vec<(ModuleSlot, ServerCounts)>, bool);

/// The module at work between client and server.
struct Module {
    lab: Lab,
    process: Process,
    control: Arc<ControlChannel>,
    network: Arc<ContainerNetwork>,
    code: PathBuf,
    filter: String,
    loaded: Arc<AtomicBool>,
    drained: Arc<AtomicBool>,
    counts: Arc<Mutex<Counts>>,
    ended: Arc<AtomicBool>,
    answering: Option<JoinHandle<()>>,
    _node: Node,
}

impl Module {
    fn start(test: &str, filter: &str) -> Option<Module> {
        let (worker, component) = (real_worker(), component());
        if !can_run(test) {
            return None;
        }
        if !worker.exists() || !component.exists() {
            skipped(test, &format!("needs {} and {}", worker.display(), component.display()));
            return None;
        }
        // The launcher belongs to the machine, the network to the router.
        let node = Node::start_with(|config| LauncherConfig { worker: worker.clone(), ..config });
        let code = node.state_dir().join("module.code");
        node.launcher.compile(&component, &code, &BuildLimits::CODE).unwrap();
        let lab = Lab::start(test)?;
        let network = lab.container(1, &["10.72.9.1", "fd72:9::1"]);
        let spec = LaunchSpec { network: Some(&network), ..LaunchSpec::new(user(), Flavour::Wasm, &LIMITS) };
        let mut guest = node.launch_as(&spec).unwrap();
        guest.ready();
        let ports = load(&guest.control, (ModuleSlot(0), NAME), &code, &network, filter);
        assert_eq!(guest.receive(), Some(FromWorker::Loaded { slot: ModuleSlot(0) }));
        lead(&lab, &network, filter, ports);
        let Guest { control, process, .. } = guest;
        let (control, network, filter) = (Arc::new(control), Arc::new(network), filter.to_owned());
        let (counts, ended, loaded) = (Arc::default(), Arc::default(), Arc::default());
        let drained = Arc::default();
        let told = Told {
            counts: Arc::clone(&counts),
            ended: Arc::clone(&ended),
            loaded: Arc::clone(&loaded),
            drained: Arc::clone(&drained),
        };
        let node_side = (Arc::clone(&control), Arc::clone(&network));
        let answering = Some(std::thread::spawn(move || answer(&node_side.0, &node_side.1, &told)));
        Some(Module {
            lab,
            process,
            control,
            network,
            code,
            filter,
            loaded,
            drained,
            counts,
            ended,
            answering,
            _node: node,
        })
    }

    /// Has another version take the module's place, as a node does.
    fn upgrade(&self) {
        let ports = self.load((ModuleSlot(1), NAME));
        lead(&self.lab, &self.network, &self.filter, ports);
        self.control.send(&ToWorker::Unload { slot: ModuleSlot(0) }, &[]).unwrap();
    }

    fn load(&self, what: (ModuleSlot, &str)) -> ListenerPorts {
        self.loaded.store(false, Ordering::Relaxed);
        let ports = load(&self.control, what, &self.code, &self.network, &self.filter);
        let until = Instant::now() + LONG;
        while !self.loaded.load(Ordering::Relaxed) {
            assert!(Instant::now() < until, "{what:?} is loaded");
            std::thread::sleep(Duration::from_millis(1));
        }
        ports
    }

    /// Has the module go and its connections go on, as a node does.
    fn drain(&self) {
        let intercept = filters(&[&self.filter]);
        let rules: Vec<Intercept> =
            intercept.iter().map(|filter| Intercept { filter: filter.clone(), ports: None, refuse: false }).collect();
        self.network.intercept(&rules).unwrap();
        self.control.send(&ToWorker::Drain { slot: ModuleSlot(0), finish: false }, &[]).unwrap();
    }

    /// Returns what the only module counted, which is over for what has ended.
    fn counts(&self) -> ServerCounts {
        let all = self.all_counts();
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].1
    }

    /// Returns what each module counted.
    fn all_counts(&self) -> Vec<(ModuleSlot, ServerCounts)> {
        *self.counts.lock().unwrap() = (Vec::new(), false);
        self.control.send(&ToWorker::Stats, &[]).unwrap();
        let until = Instant::now() + LONG;
        loop {
            if let (all, true) = &*self.counts.lock().unwrap() {
                return all.clone();
            }
            assert!(Instant::now() < until, "the worker does not tell");
            std::thread::yield_now();
        }
    }

    fn memory(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.pid())).unwrap();
        status
            .lines()
            .filter(|line| line.starts_with("VmRSS") || line.starts_with("RssAnon"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(answering) = self.answering.take() {
            let _ = answering.join();
        }
    }
}

/// What the worker says.
struct Told {
    counts: Arc<Mutex<Counts>>,
    ended: Arc<AtomicBool>,
    loaded: Arc<AtomicBool>,
    drained: Arc<AtomicBool>,
}

/// Sends a module to the worker, with listening sockets. Returns their ports.
fn load(
    control: &ControlChannel,
    (slot, name): (ModuleSlot, &str),
    code: &Path,
    network: &ContainerNetwork,
    filter: &str,
) -> ListenerPorts {
    let listeners = network.listeners().unwrap();
    let intercept = filters(&[filter]);
    let server = ServerLoad { intercept: intercept.clone(), addresses: network.addresses(), ..ServerLoad::default() };
    let load = ToWorker::Load {
        slot,
        module: format!("example.org/{name}@1.0.0").parse().unwrap(),
        properties: Default::default(),
        limits: ModuleLimits::default(),
        state_schema: 1,
        parts: vec![PartKind::Server, PartKind::ListenerV4, PartKind::ListenerV6],
        server: Some(server),
        blocks: ["tcp", "metrics", "counters"].map(str::to_owned).into(),
        parallel: false,
    };
    let (v4, v6) = (listeners.v4.as_ref().unwrap(), listeners.v6.as_ref().unwrap());
    control.send(&load, &[File::open(code).unwrap().as_fd(), v4.as_fd(), v6.as_fd()]).unwrap();
    listeners.ports
}

/// Leads connections to the listening sockets.
fn lead(lab: &Lab, network: &ContainerNetwork, filter: &str, ports: ListenerPorts) {
    let intercept = filters(&[filter]);
    let rules: Vec<Intercept> = intercept
        .iter()
        .map(|filter| Intercept { filter: filter.clone(), ports: Some(ports), refuse: false })
        .collect();
    network.intercept(&rules).unwrap();
    lab.host.set(network, &intercept).unwrap();
}

/// Does what a node does for a worker.
fn answer(control: &ControlChannel, network: &ContainerNetwork, told: &Told) {
    let soon = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    while !told.ended.load(Ordering::Relaxed) {
        let _ = poll(&mut [PollFd::new(control, PollFlags::IN)], Some(&soon));
        loop {
            match control.receive() {
                Ok(Some(FromWorker::Sockets { count, v6 })) => {
                    let sockets = network.transparent_sockets(v6, count.try_into().unwrap()).unwrap();
                    let borrowed: Vec<BorrowedFd<'_>> = sockets.iter().map(|socket| socket.as_fd()).collect();
                    control.send(&ToWorker::Sockets { v6 }, &borrowed).unwrap();
                }
                Ok(Some(FromWorker::Stats { slot, server, .. })) => {
                    told.counts.lock().unwrap().0.extend(server.map(|counts| (slot, counts)));
                }
                Ok(Some(FromWorker::StatsDone { .. })) => told.counts.lock().unwrap().1 = true,
                Ok(Some(FromWorker::Log { text, .. })) => eprintln!("the worker: {text}"),
                Ok(Some(FromWorker::Loaded { .. })) => told.loaded.store(true, Ordering::Relaxed),
                Ok(Some(FromWorker::Drained { .. })) => told.drained.store(true, Ordering::Relaxed),
                Ok(Some(FromWorker::Failed { refusal, .. })) => eprintln!("the module failed: {refusal}"),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// To measure, `NETSERV_WORKER` names one that was built for speed.
fn real_worker() -> PathBuf {
    std::env::var_os("NETSERV_WORKER").map_or_else(|| Path::new(PROBE).with_file_name("netserv-worker"), PathBuf::from)
}

fn component() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules/target/wasm32-wasip2/release/byte_count.wasm")
}
