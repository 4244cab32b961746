// SPDX-License-Identifier: Apache-2.0
//! Servers of this machine, by HTTP and by HTTPS, that answer well, badly and not at all.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use netserv_patience::grown;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};
use ureq::tls::Certificate;

use super::*;

mod servers;

const TIME: Duration = Duration::from_millis(700);
/// How long one that answers may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);
const AUTHORITY: &[u8] = include_bytes!("../../../tests/certificates/authority.pem");
const ADDRESS: &[u8] = include_bytes!("../../../tests/certificates/address.pem");
const ELSEWHERE: &[u8] = include_bytes!("../../../tests/certificates/elsewhere.pem");
const EXPIRED: &[u8] = include_bytes!("../../../tests/certificates/expired.pem");

/// A server and how many asked it.
struct Server {
    at: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Server {
    /// Starts one that gives each client an answer and holds the connection for a while.
    fn start(host: &str, certificate: Option<&'static [u8]>, answer: &str, then: Duration) -> Server {
        let answer = answer.to_owned();
        Server::with(host, move |stream| {
            let talk = |stream: &mut dyn ReadWrite| {
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(answer.as_bytes());
                let _ = stream.flush();
                std::thread::sleep(then);
            };
            match certificate {
                None => talk(&mut { stream }),
                Some(pem) => {
                    let session = ServerConnection::new(Arc::new(credentials(pem))).unwrap();
                    let mut stream = StreamOwned::new(session, stream);
                    talk(&mut stream);
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                }
            }
        })
    }

    fn with(host: &str, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let (at, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let (count, serve) = (Arc::clone(&asked), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                let serve = Arc::clone(&serve);
                std::thread::spawn(move || serve(stream.unwrap()));
            }
        });
        Server { at, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

trait ReadWrite: std::io::Read + Write {}
impl<T: std::io::Read + Write> ReadWrite for T {}

fn credentials(pem: &[u8]) -> ServerConfig {
    let chain = CertificateDer::pem_slice_iter(pem).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(pem).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    builder.with_no_client_auth().with_single_cert(chain, key).unwrap()
}

/// A port that nobody listens at.
fn closed(host: &str) -> SocketAddr {
    TcpListener::bind((host, 0)).unwrap().local_addr().unwrap()
}

fn ask(plain: SocketAddr, tls: SocketAddr, how: AddressTls) -> Result<Digest, Refusal> {
    ask_within(LONG, plain, tls, how)
}

fn ask_within(time: Duration, plain: SocketAddr, tls: SocketAddr, how: AddressTls) -> Result<Digest, Refusal> {
    let hosts = Some(vec!["127.0.0.1".to_owned(), "[::1]".to_owned()]);
    let sources = Sources { hosts, own_addresses: true, ..Sources::default() };
    let authorities = RootCerts::new_with_certs(&[Certificate::from_pem(AUTHORITY).unwrap()]);
    let asker = AddressAsker::with(&sources, &IsOwn::default(), authorities);
    let asker = AddressAsker { time, ports: [plain.port(), tls.port()], ..asker };
    let begun = Instant::now();
    let said = asker.ask(plain.ip(), &"k-a".parse().unwrap(), how);
    assert!(begun.elapsed() < grown(time + Duration::from_secs(2)), "{:?}", begun.elapsed());
    said
}

fn digest() -> String {
    format!("sha256:{}", "ab".repeat(32))
}

fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 301 Moved Permanently\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

/// What is no answer, and what is said of it.
fn bad_answers() -> Vec<(String, &'static str)> {
    vec![
        (answer("hello"), "no digest"),
        (answer(""), "no digest"),
        (answer(&"a".repeat(1_000_000)), "more than 256 bytes"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\na".to_owned(), "more than 256 bytes"),
        (format!("HTTP/1.1 200 OK\r\n\r\n{}", "a".repeat(1_000_000)), "more than 256 bytes"),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(), "404"),
        (redirect("/y"), "redirects are not followed"),
        (redirect("http://192.0.2.1/y"), "redirects are not followed"),
        ("nonsense\r\n\r\n".to_owned(), "127.0.0.1"),
    ]
}

fn assert_fails(said: Result<Digest, Refusal>, detail: &str) {
    let refusal = said.unwrap_err();
    assert!(refusal.kind == RefusalKind::FetchFailed && refusal.detail.contains(detail), "{detail}: {refusal:?}");
}

#[test]
fn only_a_digest_is_an_answer() {
    let nobody = closed("127.0.0.1");
    let plain =
        |answer: &str| ask(Server::start("127.0.0.1", None, answer, Duration::ZERO).at, nobody, AddressTls::Allow);
    assert_eq!(plain(&answer(&format!("{}\n", digest()))), Ok(Digest([0xab; 32])));
    for (bad, detail) in bad_answers() {
        assert_fails(plain(&bad), detail);
    }
    for begun in ["HTTP/1.1 200 OK\r\ncontent-length: 71\r\n\r\nsha", ""] {
        let silent = Server::start("127.0.0.1", None, begun, LONG).at;
        assert_fails(ask_within(TIME, silent, nobody, AddressTls::Allow), "not done within 0.7 s");
    }
}

/// Goal: an address that speaks HTTPS only is asked by that, in both versions of IP, whatever certificate it has; where the operator
/// wants one, it is asked by that alone and has to have one for the address.
#[test]
fn an_address_that_speaks_tls_only_is_asked_by_it() {
    for host in ["127.0.0.1", "::1"] {
        for (certificate, holds) in [(ADDRESS, true), (ELSEWHERE, false), (EXPIRED, false)] {
            let tls = Server::start(host, Some(certificate), &answer(&digest()), Duration::ZERO);
            let leads = Server::start(host, None, &redirect("https://site.example/elsewhere"), Duration::ZERO);
            for plain in [closed(host), leads.at] {
                assert_eq!(ask(plain, tls.at, AddressTls::Allow), Ok(Digest([0xab; 32])));
                let asked = leads.asked();
                let said = ask(plain, tls.at, AddressTls::Require);
                match holds {
                    true => assert_eq!(said, Ok(Digest([0xab; 32]))),
                    false => assert_fails(said, "certificate"),
                }
                assert_eq!(leads.asked(), asked, "not by HTTP");
            }
        }
    }
}

#[test]
fn an_address_is_asked_by_tls_only_if_it_shows_that_it_wants_that() {
    let tls = Server::start("127.0.0.1", Some(ADDRESS), &answer(&digest()), Duration::ZERO);
    for (bad, detail) in bad_answers() {
        let plain = Server::start("127.0.0.1", None, &bad, Duration::ZERO);
        assert_fails(ask(plain.at, tls.at, AddressTls::Allow), detail);
    }
    let stalls = Server::start("127.0.0.1", None, "", LONG);
    assert_fails(ask_within(TIME, stalls.at, tls.at, AddressTls::Allow), "not done within");
    assert_eq!(tls.asked(), 0);
    // Its own address counts, not the one that it names: nobody else is asked.
    let other = Server::start("127.0.0.1", Some(ADDRESS), &answer(&digest()), Duration::ZERO);
    let leads = Server::start("127.0.0.1", None, &redirect(&format!("HTTPS://{}/x", other.at)), Duration::ZERO);
    assert_fails(ask(leads.at, closed("127.0.0.1"), AddressTls::Allow), "leads to HTTPS; https://127.0.0.1:");
    assert_eq!(other.asked(), 0);
}

/// Goal: what comes by TLS is within the same bounds.
#[test]
fn bad_answers_by_tls_are_none_either() {
    let nobody = closed("127.0.0.1");
    for (how, why) in [(AddressTls::Allow, "is refused; https://"), (AddressTls::Require, "https://127.0.0.1:")] {
        let by_tls =
            |answer: &str| ask(nobody, Server::start("127.0.0.1", Some(ADDRESS), answer, Duration::ZERO).at, how);
        for (bad, detail) in bad_answers() {
            assert_fails(by_tls(&bad), detail);
        }
        assert_fails(by_tls(&redirect("https://192.0.2.1/y")), "redirects are not followed");
        let begun = "HTTP/1.1 200 OK\r\ncontent-length: 71\r\n\r\nsha";
        let silent = Server::start("127.0.0.1", Some(ADDRESS), begun, LONG);
        assert_fails(ask_within(TIME, nobody, silent.at, how), "not done within");
        assert_fails(ask(nobody, closed("127.0.0.1"), how), why);
        // Those who never end the handshake: silent, a byte at a time, and without TLS.
        let silent = Server::with("127.0.0.1", |_stream| std::thread::sleep(LONG));
        assert_fails(ask_within(TIME, nobody, silent.at, how), "not done within");
        let slow = Server::with("127.0.0.1", |mut stream| {
            // The head of a handshake record of 16 KiB, which never comes.
            let _ = stream.write_all(&[0x16, 3, 3, 0x40, 0]);
            while stream.write_all(&[2]).is_ok() {
                std::thread::sleep(TIME / 20);
            }
        });
        assert_fails(ask_within(TIME, nobody, slow.at, how), "not done within");
        let plain = Server::start("127.0.0.1", None, &answer(&digest()), Duration::ZERO);
        assert_fails(ask(nobody, plain.at, how), "https://127.0.0.1:");
    }
}

#[test]
fn no_address_of_the_nodes_own_is_asked() {
    let asker = AddressAsker::new(&IsOwn::new(|address| address == IpAddr::from([192, 0, 2, 1])));
    let user = "k-a".parse().unwrap();
    for own in ["192.0.2.1", "127.0.0.1", "::1", "169.254.169.254", "::ffff:192.0.2.1"] {
        for how in AddressTls::ALL {
            let refusal = asker.ask(own.parse().unwrap(), &user, how).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::BadUrl, "{refusal:?}");
        }
    }
    assert_eq!(url_of("2001:db8::1".parse().unwrap(), &user), "http://[2001:db8::1]/.well-known/netserv/k-a");
    let https = url_at(("https", 443), "192.0.2.7".parse().unwrap(), &user);
    assert_eq!(https, "https://192.0.2.7/.well-known/netserv/k-a");
}
