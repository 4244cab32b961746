// SPDX-License-Identifier: Apache-2.0
//! Intercepted connections of an HTTP module: what is its own, and what goes to the server as it is.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_patience::grown;
use netserv_wire::container::frames::ServerLoad;
use netserv_worker_base::storage::cache::{CacheHandle, CacheSource};
use netserv_worker_base::wakeup::Wakeup;
use netserv_worker_server::accepted::Accepted;
use netserv_worker_server::engine::ServerEngine;
use netserv_worker_server::http::service::HttpService;
use netserv_worker_server::http::site::{HttpSite, Version};
use netserv_worker_server::limits::{HEAD_TIME_MAX, SILENT_TIME_MAX};
use netserv_worker_server::module::{Module, Profile, Shared};
use netserv_worker_server::{blocks, component, route, tls};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;
use tokio_rustls::rustls;

use super::http::read_response;
use super::slow::Server;
use super::{LONG, body, free_port, status};

const VERSION: &[u8] = b"GET /version HTTP/1.1\r\nhost: site.test\r\n\r\n";

#[test]
fn requests_are_the_modules_however_they_come() {
    let (server, site) = (listener(), Site::start(&[]));
    let at = site.before(server.local_addr().unwrap());
    let mut client = connect(at);
    // Two at once, and the third byte by byte.
    client.write_all(&VERSION.repeat(2)).unwrap();
    for byte in VERSION {
        client.write_all(&[*byte]).unwrap();
    }
    let mut seen = String::new();
    while seen.matches("intercepted").count() < 3 {
        seen.push_str(&said(&mut client));
    }
    assert!(idle(&server), "the server was not asked for");
    // Whoever is silent for a while may be one that waits for the server's greeting; and then has a request after all.
    let mut slow = connect(at);
    std::thread::sleep(3 * SILENT_TIME_MAX);
    slow.write_all(b"GET /ver").unwrap();
    std::thread::sleep(SILENT_TIME_MAX);
    slow.write_all(&VERSION[8..]).unwrap();
    assert_eq!(body(&read_response(&mut slow)), "intercepted");
    // As HTTP/1.1 says, an empty line before it is nothing.
    let mut odd = connect(at);
    odd.write_all(b"\r\n").unwrap();
    odd.write_all(VERSION).unwrap();
    assert_eq!(body(&read_response(&mut odd)), "intercepted");
}

#[test]
fn what_is_no_http_goes_to_the_server_as_it_is() {
    let (server, site) = (listener(), Site::start(&[]));
    let at = site.before(server.local_addr().unwrap());
    for bytes in [
        &b"\x00\x01\x02garbage"[..],
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
        b"EHLO client.example\r\n",
        b"GET key\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1 and more\r\n\r\n",
        b"\x16\x03\x01\x00\x04\x09\x00\x00\x00",
    ] {
        let mut client = connect(at);
        client.write_all(bytes).unwrap();
        let mut arrived = accept(&server);
        let mut got = vec![0; bytes.len()];
        arrived.read_exact(&mut got).unwrap();
        assert_eq!(got, bytes);
        // Half-closed, the other direction goes on.
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(arrived.read(&mut [0]).unwrap(), 0);
        arrived.write_all(b"a late answer").unwrap();
        assert_eq!(said(&mut client), "a late answer");
        drop(arrived);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    // Large amounts both ways, and a reset.
    let mut client = connect(at);
    client.write_all(b"\x00").unwrap();
    let mut arrived = accept(&server);
    let sender = client.try_clone().unwrap();
    let sends = std::thread::spawn(move || (&sender).write_all(&vec![7; 4 << 20]).unwrap());
    let mut got = vec![0; 1 + (4 << 20)];
    arrived.read_exact(&mut got).unwrap();
    sends.join().unwrap();
    rustix::net::sockopt::set_socket_linger(&arrived, Some(Duration::ZERO)).unwrap();
    drop(arrived);
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    // A beginning of a request that is none after all.
    let mut client = connect(at);
    client.write_all(b"GET /a").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut arrived = accept(&server);
    let mut all = Vec::new();
    arrived.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"GET /a");
}

#[test]
fn a_server_that_speaks_first_is_heard() {
    let (server, site) = (listener(), Site::start(&[]));
    let at = site.before(server.local_addr().unwrap());
    let begun = Instant::now();
    let mut client = connect(at);
    let mut arrived = accept(&server);
    arrived.write_all(b"220 mail.example ESMTP\r\n").unwrap();
    assert_eq!(said(&mut client), "220 mail.example ESMTP\r\n");
    assert!(
        begun.elapsed() >= SILENT_TIME_MAX && begun.elapsed() < grown(Duration::from_secs(3)),
        "{:?}",
        begun.elapsed()
    );
    // What follows is not looked at, though it looks like a request.
    client.write_all(VERSION).unwrap();
    let mut got = vec![0; VERSION.len()];
    arrived.read_exact(&mut got).unwrap();
    assert_eq!(got, VERSION);
    // One that hangs up is followed.
    let mut client = connect(at);
    drop(accept(&server));
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    // Where there is none, the client is told.
    let gone = listener().local_addr().unwrap();
    let mut client = connect(site.before(gone));
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn what_upgrades_goes_to_the_server() {
    let (server, site) = (listener(), Site::start(&[]));
    let at = site.before(server.local_addr().unwrap());
    let upgrade = b"GET /chat HTTP/1.1\r\nHost: site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    // As the first request of a connection, byte for byte.
    for bytes in [&upgrade[..], b"CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\n\r\n"] {
        let mut client = connect(at);
        client.write_all(bytes).unwrap();
        let mut arrived = accept(&server);
        let mut got = vec![0; bytes.len()];
        arrived.read_exact(&mut got).unwrap();
        assert_eq!(got, bytes);
        arrived.write_all(b"HTTP/1.1 101 Any\r\n\r\n\x81\x02hi").unwrap();
        assert_eq!(said(&mut client).as_bytes().last(), Some(&b'i'));
    }
    // After another request, and what the module says of it.
    for (agrees, answer) in [
        (true, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
        (false, "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno"),
    ] {
        let mut client = connect(at);
        client.write_all(VERSION).unwrap();
        assert_eq!(body(&read_response(&mut client)), "intercepted");
        client.write_all(upgrade).unwrap();
        let mut arrived = accept(&server);
        let head = head(&mut arrived).to_ascii_lowercase();
        assert!(head.contains("get /chat http/1.1") && head.contains("upgrade: websocket"), "{head}");
        arrived.write_all(answer.as_bytes()).unwrap();
        if agrees {
            assert!(self::head(&mut client).contains(" 101 "));
            arrived.write_all(b"from the server").unwrap();
            assert_eq!(said(&mut client), "from the server");
            client.write_all(b"from the client").unwrap();
            assert_eq!(said(&mut arrived), "from the client");
        } else {
            assert_eq!(status(&self::head(&mut client)), 403);
            let mut no = [0; 2];
            client.read_exact(&mut no).unwrap();
            assert_eq!(&no, b"no");
            client.write_all(VERSION).unwrap();
            assert_eq!(body(&read_response(&mut client)), "intercepted");
        }
    }
}

/// Goal: the server of an intercepted connection never takes what was cut off for the whole. Method: an instance that traps in mid-body.
#[test]
fn a_body_that_is_cut_off_does_not_look_whole_to_the_server() {
    let (server, site) = (listener(), Site::start(&[]));
    let mut client = connect(site.before(server.local_addr().unwrap()));
    client.write_all(b"GET /upload?trap&http://site.test/ HTTP/1.1\r\nhost: site.test\r\n\r\n").unwrap();
    let mut arrived = accept(&server);
    let mut all = Vec::new();
    // It is reset, or ends.
    let _ = arrived.read_to_end(&mut all);
    let all = String::from_utf8(all).unwrap();
    assert!(all.ends_with("some of it\r\n"), "{all}");
    assert_eq!(status(&head(&mut client)), 500);
}

/// Goal: what a client says by TLS goes on by TLS, to the server that it is for, or not at all. Method: clients whose servers have a
/// certificate that is trusted, another one, and none.
#[test]
fn what_upgrades_by_tls_goes_to_the_server_by_tls() {
    let site = Site::with("certificates/localhost.pem", &["localhost"]);
    let upgrade = "GET /chat HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    let connect_to = "CONNECT other.test:443 HTTP/1.1\r\nhost: other.test:443\r\n\r\n";
    let trusted = site.switches("certificates/localhost.pem");
    for request in [upgrade, connect_to] {
        let mut client = by_tls(site.before(trusted), "localhost");
        client.write_all(VERSION).unwrap();
        assert_eq!(body(&read_response(&mut client)), "intercepted");
        client.write_all(request.as_bytes()).unwrap();
        assert_eq!(status(&head(&mut client)), if request == upgrade { 101 } else { 200 });
        client.write_all(b"there and back").unwrap();
        assert_eq!(said(&mut client), "there and back");
    }
    let mut client = by_tls(site.before(site.switches("tls.pem")), "localhost");
    client.write_all(upgrade.as_bytes()).unwrap();
    assert_eq!(status(&head(&mut client)), 502);
    let plain = listener();
    let mut client = by_tls(site.before(plain.local_addr().unwrap()), "localhost");
    client.write_all(upgrade.as_bytes()).unwrap();
    let (mut arrived, mut first) = (accept(&plain), [0]);
    arrived.read_exact(&mut first).unwrap();
    assert_eq!(first, [0x16], "a handshake record of TLS");
    drop(arrived);
    assert_eq!(status(&head(&mut client)), 502);
}

/// Goal: an answer to an upgrade that the server does not agree to comes whole, however long it takes. Method: longer than a connection may be
/// idle.
#[test]
fn an_upgrade_that_is_refused_is_answered_to_the_end() {
    let (server, site) = (listener(), Site::start(&[]));
    let mut client = connect(site.before(server.local_addr().unwrap()));
    client.write_all(VERSION).unwrap();
    assert_eq!(body(&read_response(&mut client)), "intercepted");
    let upgrade = b"GET /a HTTP/1.1\r\nhost: site.test\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    client.write_all(upgrade).unwrap();
    let mut arrived = accept(&server);
    head(&mut arrived);
    arrived.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nn").unwrap();
    assert_eq!(status(&head(&mut client)), 403);
    std::thread::sleep(HEAD_TIME_MAX + Duration::from_secs(2));
    arrived.write_all(b"o").unwrap();
    let mut no = [0; 2];
    client.read_exact(&mut no).unwrap();
    assert_eq!(&no, b"no");
    client.write_all(VERSION).unwrap();
    assert_eq!(body(&read_response(&mut client)), "intercepted");
}

/// A real client and a real server of WebSocket: `curl` and Python's own modules.
#[test]
fn a_websocket_of_curl_and_python_works() {
    let python = WebSockets::start();
    let site = Site::start(&[]);
    let text = WebSockets::ask(site.before(python.address));
    assert!(text.contains("101 Switching") && text.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{text}");
    assert!(text.contains("hello"), "{text}");
}

#[test]
fn lines_for_one_connection_only_go_no_further() {
    let (server, site) = (listener(), Site::start(&[]));
    let mut client = connect(site.before(server.local_addr().unwrap()));
    client
        .write_all(b"GET /head HTTP/1.1\r\nhost: site.test\r\nconnection: x-hop, close\r\nx-hop: 1\r\nx-end: 2\r\n\r\n")
        .unwrap();
    let answer = read_response(&mut client);
    assert!(answer.contains("x-end") && !answer.contains("x-hop"), "{answer}");
    // And of what the server answers.
    let mut client = connect(site.before(server.local_addr().unwrap()));
    client.write_all(b"GET /fetch?http://site.test/a HTTP/1.1\r\nhost: site.test\r\n\r\n").unwrap();
    let mut arrived = accept(&server);
    head(&mut arrived);
    arrived.write_all(b"HTTP/1.1 200 OK\r\nconnection: x-hop\r\nx-hop: 1\r\ncontent-length: 4\r\n\r\nbody").unwrap();
    let answer = read_response(&mut client);
    assert!(answer.contains("body") && !answer.contains("x-hop"), "{answer}");
}

/// Goal: requests of one client connection go to the server by one connection. Method: nginx says by which each came.
#[test]
fn requests_of_a_connection_go_to_nginx_by_one() {
    let nginx = Nginx::start();
    let site = Site::start(&[]);
    let at = site.before(nginx.address);
    for kept in [true, false] {
        let mut client = connect(at);
        let mut connections = Vec::new();
        for round in 0..5 {
            if !kept {
                client = connect(at);
            }
            let path = if round % 2 == 0 { "connection" } else { "chunks" };
            let request = format!("GET /fetch?http://site.test/{path} HTTP/1.1\r\nhost: site.test\r\n\r\n");
            client.write_all(request.as_bytes()).unwrap();
            let answer = body(&read_response(&mut client));
            assert!(answer.starts_with("200 "), "{answer}");
            connections.push(answer.split_whitespace().last().unwrap().to_owned());
        }
        connections.sort();
        connections.dedup();
        assert_eq!(connections.len(), if kept { 1 } else { 5 }, "{connections:?}");
    }
    // One that the server has closed meanwhile is made anew.
    let mut client = connect(at);
    for path in ["connection", "last", "connection", "connection"] {
        let request = format!("GET /fetch?http://site.test/{path} HTTP/1.1\r\nhost: site.test\r\n\r\n");
        client.write_all(request.as_bytes()).unwrap();
        let answer = body(&read_response(&mut client));
        assert!(answer.starts_with("200 "), "{path}: {answer}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_kept_connection_that_ends_as_it_is_used_costs_no_request() {
    let (server, site) = (listener(), Site::start(&[]));
    let mut client = connect(site.before(server.local_addr().unwrap()));
    let ask = |client: &mut TcpStream| {
        client.write_all(b"GET /fetch?http://site.test/a HTTP/1.1\r\nhost: site.test\r\n\r\n").unwrap();
    };
    ask(&mut client);
    let mut first = accept(&server);
    head(&mut first);
    first.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none").unwrap();
    assert!(body(&read_response(&mut client)).contains("one"));
    ask(&mut client);
    // It hears the request and ends without an answer, as servers do whose time is over.
    head(&mut first);
    drop(first);
    let mut second = accept(&server);
    head(&mut second);
    second.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntwo").unwrap();
    assert!(body(&read_response(&mut client)).contains("two"));
}

/// Goal: a connection to the server that was made for one name is not used for another, for which its certificate was not looked at.
#[test]
fn a_kept_connection_is_for_one_name() {
    let (server, site) = (listener(), Site::start(&[]));
    let mut client = connect(site.before(server.local_addr().unwrap()));
    let ask = |client: &mut TcpStream, name: &str| {
        write!(client, "GET /fetch?http://{name}/a HTTP/1.1\r\nhost: {name}\r\n\r\n").unwrap();
    };
    ask(&mut client, "site.test");
    let mut first = accept(&server);
    head(&mut first);
    first.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none").unwrap();
    assert!(body(&read_response(&mut client)).contains("one"));
    ask(&mut client, "other.test");
    assert_eq!(first.read(&mut [0]).unwrap(), 0, "the other name's request came here");
    head(&mut accept(&server));
}

/// Goal: only names of the module's own are opened. Method: OpenSSL is the server, and asks for names.
#[test]
fn tls_for_own_names_is_opened_and_all_other_goes_on() {
    let server = free_port();
    let certificate = pem("certificates/localhost.pem");
    let mut openssl = Command::new("openssl");
    openssl.args(["s_server", "-quiet", "-www", "-accept", &server.to_string(), "-cert"]);
    openssl.arg(&certificate).arg("-key").arg(&certificate).stdout(Stdio::null()).stderr(Stdio::null());
    let _openssl = Peer(openssl.spawn().unwrap());
    let address = SocketAddr::from(([127, 0, 0, 1], server));
    wait_for(address);
    let site = Site::start(&["Module.test"]);
    let at = site.before(address);
    let ask = |name: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-ign_eof", "-connect", &at.to_string()]).args(name);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut client = command.spawn().unwrap();
        let request = b"GET /version HTTP/1.1\r\nhost: module.test\r\nconnection: close\r\n\r\n";
        client.stdin.take().unwrap().write_all(request).unwrap();
        let output = client.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for name in ["module.test", "MODULE.TEST"] {
        let own = ask(&["-servername", name]);
        assert!(own.contains("intercepted"), "{own}");
    }
    for name in [&["-servername", "localhost"][..], &["-servername", "other.module.test"], &["-noservername"]] {
        let other = ask(name);
        assert!(!other.contains("intercepted") && other.contains("s_server"), "{other}");
    }
    // A ClientHello in pieces, and what a module without names of its own gets.
    let (tls, plain) = (hello("module.test"), Site::start(&[]));
    let mut client = connect(at);
    for byte in &tls {
        client.write_all(&[*byte]).unwrap();
    }
    assert_eq!(certificate_shown(&mut client), "module.test");
    for (at, name) in [(at, "localhost"), (plain.before(address), "module.test")] {
        let mut client = connect(at);
        let tls = hello(name);
        for piece in tls.chunks(100) {
            client.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(certificate_shown(&mut client), "localhost", "{name}");
    }
}

#[test]
fn a_module_knows_between_whom_a_request_is() {
    let site = Site::start(&["site.test"]);
    let server: SocketAddr = "192.0.2.1:443".parse().unwrap();
    let at = site.before(server);
    let mut client = connect(at);
    let own = client.local_addr().unwrap().port();
    let ask = b"GET /flow HTTP/1.1\r\nhost: site.test\r\n\r\n";
    // Each request of a connection.
    for _ in 0..2 {
        client.write_all(ask).unwrap();
        let said = format!("127.0.0.1 {own} -> 192.0.2.1 443 intercepted tls=false");
        assert_eq!(body(&read_response(&mut client)), said);
    }
}

/// Bytes of a cache that is large enough.
const CACHE_BYTES: u64 = 64 << 20;

/// A module with `server-tests` that takes over connections, in this process.
pub struct Site {
    runtime: Runtime,
    site: Arc<HttpSite>,
}

impl Site {
    fn start(tls_names: &[&str]) -> Site {
        Site::with("tls.pem", tls_names)
    }

    /// Starts one with a certificate of those beside these tests.
    fn with(certificate: &str, tls_names: &[&str]) -> Site {
        Site::of(super::component("server_tests"), ModuleLimits::default(), certificate, tls_names)
    }

    /// Starts one of `modules/apps/http-compressor`.
    pub fn compressing(limits: ModuleLimits) -> Site {
        Site::of(super::component("http_compressor"), limits, "tls.pem", &[])
    }

    /// Starts one of a module that caches.
    pub fn caching(component: &str) -> Site {
        let limits = ModuleLimits { requests: 512, ..ModuleLimits::default() };
        Site::of(super::component(component), limits, "tls.pem", &[])
    }

    fn of(component: PathBuf, limits: ModuleLimits, certificate: &str, tls_names: &[&str]) -> Site {
        route::trust(pem("certificates/authority.pem"));
        let engine = Arc::new(ServerEngine::new().unwrap());
        let wasm = std::fs::read(component).unwrap();
        let component = component::compile(&engine, &wasm, &blocks::all()).unwrap();
        let profile = Profile {
            slot: ModuleSlot(0),
            name: "example.org/tests@1.0.0".parse().unwrap(),
            properties: BTreeMap::from([("version".to_owned(), "intercepted".to_owned())]),
            limits,
            blocks: blocks::all(),
            network: ServerLoad::default(),
        };
        let cache = Arc::new(CacheHandle::new(&CacheSource::in_memory(CACHE_BYTES), &profile.name.name));
        let shared = Shared { cache, ..Shared::default() };
        let module = Arc::new(Module::new(profile, shared, Arc::new(Wakeup::new().unwrap())));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let service = Arc::new(runtime.block_on(HttpService::start(&engine, component, &module)).unwrap());
        let tls = std::fs::File::open(pem(certificate)).map(|file| tls::acceptor(file).unwrap()).unwrap();
        let tls_names = Arc::new(tls_names.iter().map(|name| name.to_ascii_lowercase()).collect());
        let site = Arc::new(HttpSite::new(Version { service, tls: Some(tls), tls_names }));
        Site { runtime, site }
    }

    /// Returns where a server is that makes connections by TLS another protocol when it is asked to, in which it says what it hears.
    fn switches(&self, certificate: &str) -> SocketAddr {
        let (listener, acceptor) = (listener(), tls::acceptor(std::fs::File::open(pem(certificate)).unwrap()).unwrap());
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        self.runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let agrees: &[u8] = match head.starts_with(b"CONNECT ") {
                    true => b"HTTP/1.1 200 OK\r\n\r\n",
                    false => b"HTTP/1.1 101 Any\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
                };
                stream.write_all(agrees).await.unwrap();
                let (mut from, mut to) = tokio::io::split(stream);
                tokio::spawn(async move { tokio::io::copy(&mut from, &mut to).await });
            }
        });
        address
    }

    /// Returns where connections to `server` are taken over.
    pub fn before(&self, server: SocketAddr) -> SocketAddr {
        let listener = listener();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let site = Arc::clone(&self.site);
        self.runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, client)) = listener.accept().await {
                site.accept(Accepted { stream, client, server, origin: Some(Arc::new(Server(server))) });
            }
        });
        address
    }
}

/// A process that ends with this.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of WebSocket, of Python's own modules, that says hello and ends.
pub struct WebSockets {
    pub address: SocketAddr,
    _process: Peer,
}

impl WebSockets {
    pub fn start() -> WebSockets {
        let script = "import socket, hashlib, base64\n\
            s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)\n\
            while True:\n\
            \x20   c, _ = s.accept(); f = c.makefile('rwb'); key = b''\n\
            \x20   for line in f:\n\
            \x20       if line.lower().startswith(b'sec-websocket-key:'): key = line.split(b':')[1].strip()\n\
            \x20       if line == b'\\r\\n': break\n\
            \x20   good = base64.b64encode(hashlib.sha1(key + b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest())\n\
            \x20   f.write(b'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n'\n\
            \x20     b'Sec-WebSocket-Accept: ' + good + b'\\r\\n\\r\\n\\x81\\x05hello\\x88\\x00'); f.flush(); f.close(); c.close()\n";
        let mut python = Command::new("python3");
        let mut python = Peer(python.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap());
        let mut port = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(python.0.stdout.take().unwrap()), &mut port).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port.trim().parse().unwrap()));
        WebSockets { address, _process: python }
    }

    /// Has curl ask for it at an address. Returns all that comes.
    pub fn ask(at: SocketAddr) -> String {
        let curl = Command::new("curl")
            .args(["-sSi", "--no-buffer", "--max-time", "20", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket"])
            .args(["-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "-H", "Sec-WebSocket-Version: 13"])
            .arg(format!("http://{at}/chat"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&curl.stdout);
        text.into_owned()
    }
}

pub struct Nginx {
    pub address: SocketAddr,
    _process: Peer,
    _folder: tempfile::TempDir,
}

impl Nginx {
    pub fn start() -> Nginx {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let at = folder.path().display().to_string();
        let config = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;\n\
             events {{ }}\n\
             http {{ access_log off; server {{ listen 127.0.0.1:{port};\n\
             location /connection {{ return 200 '$connection'; }}\n\
             location /kept {{ add_header cache-control max-age=600; return 200 '$connection'; }}\n\
             location /chunks {{ gzip off; ssi on; root {at}; default_type text/html; }}\n\
             location /last {{ keepalive_timeout 0; return 200 '$connection'; }} }} }}\n"
        );
        std::fs::write(folder.path().join("nginx.conf"), config).unwrap();
        std::fs::write(folder.path().join("chunks"), "<!--# echo var=\"connection\" -->").unwrap();
        let mut command = Command::new("/usr/sbin/nginx");
        command.args(["-e", &format!("{at}/error.log"), "-c", &format!("{at}/nginx.conf")]);
        let process = Peer(command.stderr(Stdio::null()).spawn().unwrap());
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        wait_for(address);
        Nginx { address, _process: process, _folder: folder }
    }
}

fn wait_for(address: SocketAddr) {
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < LONG, "nobody listens at {address}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/server").join(name)
}

/// Returns a real ClientHello that asks for a name by TLS 1.2, whose answer shows the certificate in clear.
fn hello(name: &str) -> Vec<u8> {
    let builder = rustls::ClientConfig::builder_with_provider(tls::provider());
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS12]).unwrap();
    let config = builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

/// Returns whose certificate comes.
fn certificate_shown(client: &mut TcpStream) -> &'static str {
    let mut all = Vec::new();
    loop {
        let mut buffer = vec![0; 4096];
        let length = client.read(&mut buffer).unwrap();
        assert!(length > 0, "it ended after {} bytes", all.len());
        all.extend_from_slice(&buffer[..length]);
        for name in ["module.test", "localhost"] {
            if all.windows(name.len()).any(|window| window == name.as_bytes()) {
                return name;
            }
        }
    }
}

pub fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

pub fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// Connects by TLS to a server of that name.
fn by_tls(at: SocketAddr, name: &str) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let config = tls::client(Some(&pem("certificates/authority.pem"))).unwrap();
    let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
    rustls::StreamOwned::new(rustls::ClientConnection::new(Arc::new(config), name).unwrap(), connect(at))
}

pub fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(false).unwrap();
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

fn idle(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// Returns what comes next.
pub fn said(stream: &mut impl io::Read) -> String {
    let mut buffer = vec![0; 65_536];
    let length = stream.read(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

/// Returns a head that comes, with the empty line.
pub fn head(stream: &mut impl io::Read) -> String {
    let (mut all, mut byte) = (Vec::new(), [0]);
    while !all.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        all.push(byte[0]);
    }
    String::from_utf8_lossy(&all).into_owned()
}
