// SPDX-License-Identifier: Apache-2.0
//! A server module in a container with all its walls: the worker itself, and a component of `modules`, both as a build
//! leaves them.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Guest, Node, PROBE, can_run, user};
use netserv_container::limits::BuildLimits;
use netserv_container::network::{ContainerNetwork, NetworkSpec};
use netserv_container::{LaunchSpec, LauncherConfig};
use netserv_model::Flavour;
use netserv_model::container_link::container_link;
use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::policy::ContainerLimits;
use netserv_patience::grown;
use netserv_skips::skipped;
use netserv_wire::container::frames::{FromWorker, PartKind, ServerLoad, ToWorker};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// Goal: whatever the runtime of server modules asks of the kernel is permitted, and no more memory is used than a node
/// can give away. Method: one module answers over the container's own link.
#[test]
fn an_http_module_answers_from_its_container() {
    let test = "an_http_module_answers_from_its_container";
    let (worker, component) = (real_worker(), component());
    if !can_run(test) {
        return;
    }
    if !worker.exists() || !component.exists() {
        skipped(test, &format!("needs {} and {}", worker.display(), component.display()));
        return;
    }
    let node = Node::start_with(|config| LauncherConfig { worker: worker.clone(), ..config });
    let code = node.state_dir().join("hello.code");
    node.launcher.compile(&component, &code, &BuildLimits::CODE).unwrap();
    let network = Network::new();
    let limits = ContainerLimits { memory_bytes: 64 << 20, cpu_permille: 2000, pids: 32, disk_bytes: 1 << 20 };
    let spec = LaunchSpec { network: Some(&network.inside), ..LaunchSpec::new(user(), Flavour::Wasm, &limits) };
    let mut guest = node.launch_as(&spec).unwrap();
    guest.ready();
    let before = own_kib(&guest);
    let begun = Instant::now();
    load(&guest, &code);
    let loaded = begun.elapsed();
    let idle = own_kib(&guest) - before;
    for _ in 0..3 {
        let answer = network.ask();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("Hello"), "{answer}");
    }
    let used = own_kib(&guest) - before;
    eprintln!("loaded in {loaded:?}; {idle} KiB more when idle, {used} KiB after some requests");
    assert!(loaded < grown(Duration::from_secs(1)), "{loaded:?}");
    assert!(idle * 1024 <= 4_000_000, "{idle} KiB");
    assert!(used < 16 * 1024, "{used} KiB");
    guest.control.send(&ToWorker::Shutdown, &[]).unwrap();
    let exit = guest.process.wait(Duration::from_secs(60)).unwrap();
    assert_eq!(exit.cause, netserv_container::ExitCause::Code(0));
}

fn load(guest: &Guest, code: &Path) {
    let server = ServerLoad {
        listen: vec!["tcp port 80".parse().unwrap()],
        addresses: vec![ADDRESS.parse().unwrap()],
        ..ServerLoad::default()
    };
    let load = ToWorker::Load {
        slot: ModuleSlot(0),
        module: "example.org/hello@1.0.0".parse().unwrap(),
        properties: Default::default(),
        limits: ModuleLimits::default(),
        state_schema: 1,
        parts: vec![PartKind::Server],
        server: Some(server),
        blocks: ["http".to_owned()].into(),
        parallel: false,
    };
    guest.control.send(&load, &[File::open(code).unwrap().as_fd()]).unwrap();
    assert_eq!(guest.receive(), Some(FromWorker::Loaded { slot: ModuleSlot(0) }));
}

const ADDRESS: &str = "10.72.9.1";
const CLIENT: &str = "10.72.8.1";

fn run(command: &str) {
    let mut words = command.split(' ');
    assert!(Command::new(words.next().unwrap()).args(words).status().unwrap().success(), "{command}");
}

/// Returns the memory that is the worker's alone.
fn own_kib(guest: &Guest) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", guest.process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn real_worker() -> PathBuf {
    Path::new(PROBE).with_file_name("netserv-worker")
}

fn component() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules/target/wasm32-wasip2/release/hello_http.wasm")
}

/// A container's network on a node that is a namespace by itself.
struct Network {
    inside: ContainerNetwork,
    node: File,
}

impl Network {
    fn new() -> Network {
        let make = || {
            #[allow(deprecated, reason = "the new form is unsafe for the sake of another flag")]
            rustix::thread::unshare(UnshareFlags::NEWNET).unwrap();
            run("ip link set lo up");
            run(&format!("ip address add {CLIENT}/32 dev lo"));
            let addresses = vec![ADDRESS.parse().unwrap()];
            let listen = vec!["tcp port 80".parse().unwrap()];
            let spec = NetworkSpec {
                name: container_link("t", 2),
                addresses,
                listen,
                connect: vec![],
                rate: Default::default(),
            };
            Network {
                inside: ContainerNetwork::create(&spec).unwrap(),
                node: File::open("/proc/thread-self/ns/net").unwrap(),
            }
        };
        std::thread::spawn(make).join().unwrap()
    }

    /// Asks for `/` from the node.
    fn ask(&self) -> String {
        let node = self.node.try_clone().unwrap();
        let ask = move || {
            move_into_link_name_space(node.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            let flags = rustix::net::SocketFlags::CLOEXEC;
            let (family, kind) = (rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM);
            let socket = rustix::net::socket_with(family, kind, flags, None).unwrap();
            let at = |address: &str, port| SocketAddr::new(address.parse().unwrap(), port);
            rustix::net::bind(&socket, &at(CLIENT, 0)).unwrap();
            rustix::net::connect(&socket, &at(ADDRESS, 80)).unwrap();
            let mut stream = TcpStream::from(socket);
            stream.write_all(b"GET / HTTP/1.1\r\nhost: hello.test\r\nconnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        std::thread::spawn(ask).join().unwrap()
    }
}
