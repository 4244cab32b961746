// SPDX-License-Identifier: Apache-2.0
//! A Kamailio that wants digest authentication, behind sip-edge: it alone judges who may register.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::Driver;
use netserv_lab::netns::is_root;
use netserv_lab::provider::SipProvider;
use netserv_lab::topology::Kind;
use netserv_lab::voip::bracketed;
use netserv_skips::skipped;

over_one_driver! {
    afxdp: [digest_is_the_servers_and_strangers_get_its_401]
    nfqueue: []
}

const WAIT: Duration = Duration::from_secs(5);

/// Goal: a phone registers with its password through the edge, which answers nothing of it, with or without credentials; who shows another's
/// credentials gets Kamailio's 401. A phone that Kamailio knows by its address has its refreshes answered at the edge, and a stranger
/// who sends the same gets Kamailio's 401 all the same. Over UDP and TCP, IPv4 and IPv6.
fn digest_is_the_servers_and_strangers_get_its_401(driver: Driver) {
    let test = "digest_is_the_servers_and_strangers_get_its_401";
    if !is_root() {
        return skipped(test, "not root, so no namespaces");
    }
    if !["/usr/sbin/kamailio", "/usr/bin/openssl"].iter().all(|program| Path::new(program).exists()) {
        return skipped(test, "needs kamailio and openssl");
    }
    let mut provider = SipProvider::up(Some(driver.name()), Kind::Router).unwrap();
    let (v4, v6) = (provider.lab.v4("receiver"), provider.lab.v6("receiver"));
    provider.start_server_with(&["DIGEST=1", &format!("PHONE4=\"{v4}\""), &format!("PHONE6=\"{v6}\"")]).unwrap();
    provider.install_edge(&[]).unwrap();
    for (number, (v6, tcp)) in [(false, false), (true, false), (false, true), (true, true)].into_iter().enumerate() {
        let way = format!("IPv6: {v6}, TCP: {tcp}");
        let mut phone = Client::open(&provider, "receiver", v6, tcp);
        let mut stranger = Client::open(&provider, "caller", v6, tcp);
        let absorbed = || ["n1", "n2"].map(|node| provider.counter(node, "register").unwrap()).iter().sum::<u64>();
        let before = absorbed();

        let closed = |cseq, more: &str| register("closed", number, cseq, "5062", more);
        let challenge = phone.ask(&closed(1, ""));
        assert_eq!(challenge.of(), "401 of Kamailio", "{way}");
        for (cseq, count) in [(2, 1), (3, 2)] {
            let told = phone.ask(&closed(cseq, &authorization(&challenge, count)));
            assert_eq!(told.of(), "200 of Kamailio", "{way}: {count}");
        }
        assert_eq!(phone.ask(&closed(4, "")).of(), "401 of Kamailio", "{way}: without credentials");
        let shown = authorization(&challenge, 2);
        assert_eq!(stranger.ask(&closed(5, &shown)).of(), "401 of Kamailio", "{way}: another's credentials");
        assert_eq!(phone.ask(&closed(6, &shown)).of(), "401 of Kamailio", "{way}: a second time");
        assert_eq!(stranger.ask(&closed(5, "")).of(), "401 of Kamailio", "{way}: a stranger");
        let other = closed(6, "").replace("Call-ID: ", "Call-ID: other").replace(":5062>", ":5063>");
        assert_eq!(phone.ask(&other).of(), "401 of Kamailio", "{way}: another Call-ID and Contact");
        let notify = format!("Event: keep-alive\r\n{}", authorization(&challenge, 3));
        let notify = closed(7, &notify).replace("REGISTER", "NOTIFY");
        assert_eq!(phone.ask(&notify).of(), "200 of Kamailio", "{way}: a NOTIFY with credentials");
        let ping = closed(7, &authorization(&challenge, 3)).replace("REGISTER", "OPTIONS");
        assert_eq!(phone.ask(&ping).of(), "200 of Kamailio", "{way}: a ping with credentials");
        assert_eq!(absorbed(), before, "{way}: none of it is the edge's");

        let open = |cseq, more: &str| register("open", number, cseq, "5062", more);
        assert_eq!(phone.ask(&open(1, "")).of(), "200 of Kamailio", "{way}");
        assert_eq!(phone.ask(&open(2, "")).of(), "200 of the edge", "{way}: a refresh");
        assert_eq!(stranger.ask(&open(3, "")).of(), "401 of Kamailio", "{way}: a stranger");
        assert_eq!(phone.ask(&open(4, "")).of(), "200 of the edge", "{way}: the stranger changed nothing");
        let call = open(5, "").replace("Call-ID: ", "Call-ID: other");
        assert_eq!(phone.ask(&call).of(), "200 of Kamailio", "{way}: another Call-ID");
        assert_eq!(phone.ask(&open(6, &authorization(&challenge, 4))).of(), "200 of Kamailio", "{way}: credentials");
        assert_eq!(phone.ask(&open(7, "")).of(), "200 of Kamailio", "{way}: after them");
        assert_eq!(phone.ask(&open(8, "")).of(), "200 of the edge", "{way}: a refresh again");
        let contact = register("open", number, 9, "5063", "");
        assert_eq!(phone.ask(&contact).of(), "200 of Kamailio", "{way}: another Contact");
        assert_eq!(absorbed(), before + 3, "{way}");
    }
}

/// Who asks, from one address and port.
pub struct Client {
    server: SocketAddr,
    local: SocketAddr,
    socket: Socket,
}

enum Socket {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Client {
    pub fn open(provider: &SipProvider, machine: &str, v6: bool, tcp: bool) -> Client {
        let server = provider.server(v6);
        let own = if v6 { IpAddr::from(provider.lab.v6(machine)) } else { provider.lab.v4(machine).into() };
        let open = move || {
            if tcp {
                Socket::Tcp(TcpStream::connect_timeout(&server, WAIT).unwrap())
            } else {
                let socket = UdpSocket::bind((own, 0)).unwrap();
                socket.connect(server).unwrap();
                Socket::Udp(socket)
            }
        };
        let socket = provider.lab.within(machine, open).unwrap();
        let local = match &socket {
            Socket::Udp(socket) => socket.set_read_timeout(Some(WAIT)).and_then(|()| socket.local_addr()),
            Socket::Tcp(socket) => socket.set_read_timeout(Some(WAIT)).and_then(|()| socket.local_addr()),
        };
        Client { server, local: local.unwrap(), socket }
    }

    pub fn ask(&mut self, request: &str) -> Answer {
        self.asked(request).unwrap()
    }

    /// Asks, and returns nothing if nobody answers in time.
    pub fn asked(&mut self, request: &str) -> Option<Answer> {
        let transport = if matches!(self.socket, Socket::Udp(_)) { "UDP" } else { "TCP" };
        let text = request
            .replace("SERVER", &bracketed(self.server.ip()))
            .replace("TRANSPORT", transport)
            .replace("LOCAL", &self.local.to_string());
        let mut room = [0; 4096];
        let mut length = 0;
        match &mut self.socket {
            Socket::Udp(socket) => {
                socket.send(text.as_bytes()).unwrap();
                length = socket.recv(&mut room).ok()?;
            }
            Socket::Tcp(socket) => {
                socket.write_all(text.as_bytes()).unwrap();
                // Nothing that is answered here has a body.
                while !room[..length].ends_with(b"\r\n\r\n") {
                    let read = socket.read(&mut room[length..]).ok()?;
                    assert!(read > 0, "closed after {length} bytes");
                    length += read;
                }
            }
        }
        Some(Answer(String::from_utf8(room[..length].to_vec()).unwrap()))
    }
}

/// What came back.
pub struct Answer(pub String);

impl Answer {
    /// Returns its status, and whose it is.
    pub fn of(&self) -> String {
        let status = self.0.split(' ').nth(1).unwrap_or_default();
        let is_kamailios = self.0.contains("\r\nServer: kamailio");
        format!("{status} of {}", if is_kamailios { "Kamailio" } else { "the edge" })
    }

    /// Returns a parameter of the challenge.
    fn challenge(&self, name: &str) -> &str {
        let (_, rest) = self.0.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name}: {}", self.0));
        rest.split('"').next().unwrap()
    }
}

pub fn register(user: &str, number: usize, cseq: u32, port: &str, more: &str) -> String {
    format!(
        "REGISTER sip:SERVER SIP/2.0\r\nVia: SIP/2.0/TRANSPORT LOCAL;branch=z9hG4bK{user}{number}x{cseq};rport\r\n\
         From: <sip:{user}@example.org>;tag={user}{number}\r\nTo: <sip:{user}@example.org>\r\n\
         Call-ID: {user}{number}\r\nCSeq: {cseq} REGISTER\r\nContact: <sip:{user}@198.51.100.9:{port}>\r\nExpires: 600\r\n\
         Max-Forwards: 70\r\nUser-Agent: a phone\r\nAllow: INVITE, ACK, BYE, CANCEL, OPTIONS, NOTIFY, MESSAGE\r\n{more}Content-Length: 0\r\n\r\n"
    )
}

/// Returns the header that answers a challenge (RFC 2617 §3.2.2, RFC 3261 §22.4), as the count-th request with its nonce.
fn authorization(challenge: &Answer, count: u32) -> String {
    let (realm, nonce, uri) = (challenge.challenge("realm"), challenge.challenge("nonce"), "sip:example.org");
    let (user, count) = (md5(&format!("closed:{realm}:secret")), format!("{count:08x}"));
    let response = md5(&format!("{user}:{nonce}:{count}:c0ffee:auth:{}", md5(&format!("REGISTER:{uri}"))));
    format!(
        "Authorization: Digest username=\"closed\", realm=\"{realm}\", nonce=\"{nonce}\", uri=\"{uri}\", \
         response=\"{response}\", algorithm=MD5, qop=auth, nc={count}, cnonce=\"c0ffee\"\r\n"
    )
}

fn md5(text: &str) -> String {
    let mut command = Command::new("openssl");
    command.args(["dgst", "-md5", "-r"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    said.split_whitespace().next().unwrap().to_owned()
}
