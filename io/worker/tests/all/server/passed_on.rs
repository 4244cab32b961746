// SPDX-License-Identifier: Apache-2.0
//! What the node cannot read on intercepted connections, of servers and of clients: it goes on as it came, as if there was no node. The
//! module is `http-compressor`.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use netserv_model::manifest::ModuleLimits;
use netserv_worker_server::limits::{HEAD_BYTES_MAX, HEADERS_MAX, SERVER_HEADERS_MAX};

use super::compressed::head_of;
use super::intercepted::{Nginx, Site, accept, connect, head, listener};
use super::{serve_each, status};

const PAGE: &[u8] = b"GET /page HTTP/1.1\r\nhost: site.test\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\npage";

const UPLOAD: &[u8] = b"POST /page HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
const CHUNKS: &[u8] =
    b"POST /page HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5;a\r\nhello\r\n0\r\nb: c\r\n\r\n";
const UPGRADE: &[u8] = b"GET /chat HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";

/// How a client asks for what is odd.
const ASKS: [&str; 4] = [
    "GET /odd HTTP/1.1\r\nhost: site.test\r\n\r\n",
    "POST /odd HTTP/1.1\r\nhost: site.test\r\ncontent-length: 5\r\n\r\nhello",
    "POST /odd HTTP/1.1\r\nhost: site.test\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "POST /odd HTTP/1.1\r\nhost: site.test\r\ncontent-length: 0\r\n\r\n",
];

/// Goal: an answer that cannot be understood comes to the client byte by byte. Method: a server that says it and closes, first on a new
/// connection and then on the one by which a page came that is understood, to requests with a body and without.
#[test]
fn an_answer_that_is_not_understood_comes_as_it_is() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\nbody", "a: b\r\n".repeat(SERVER_HEADERS_MAX + 1));
    let long = format!("HTTP/1.1 200 OK\r\nset-cookie: {}\r\n\r\nbody", "x".repeat(HEAD_BYTES_MAX));
    let site = Site::compressing(ModuleLimits::default());
    for answer in [
        "ICY 200 OK\r\nicy-name: radio\r\n\r\nmusic",
        "<html>a page of HTTP/0.9</html>\n",
        "x",
        "HTTP/1.1 2000 OK\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nbody!",
        "HTTP/1.1 103 Early Hints\r\n\r\nICY 200 OK\r\n\r\nmusic",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n4\r\ngzip\r\n0\r\n\r\n",
        &many,
        &long,
    ] {
        let said = answer.to_owned();
        let port = serve_each(move |mut stream| {
            let mut asked = head_of(&mut stream);
            while asked.starts_with("GET /page ") {
                let _ = stream.write_all(ANSWER);
                asked = head_of(&mut stream);
            }
            // A body that was not read would have the connection reset.
            let chunked = asked.contains("chunked");
            let body = if chunked { 15 } else { 5 * usize::from(asked.contains("content-length: 5")) };
            let _ = stream.read_exact(&mut vec![0; body]);
            let _ = stream.write_all(said.as_bytes());
        });
        for (ask, after_another) in ASKS.iter().flat_map(|ask| [(ask, false), (ask, true)]) {
            let mut client = connect(site.before(SocketAddr::from(([127, 0, 0, 1], port))));
            if after_another {
                client.write_all(PAGE).unwrap();
                assert!(head(&mut client).starts_with("HTTP/1.1 200 "));
                client.read_exact(&mut [0; 4]).unwrap();
            }
            client.write_all(ask.as_bytes()).unwrap();
            let mut got = Vec::new();
            client.read_to_end(&mut got).unwrap();
            assert_eq!(String::from_utf8_lossy(&got), answer, "{ask} {after_another}");
        }
    }
}

/// Goal: a request that the node cannot read comes to the server byte by byte, and its answer to the client, on a new connection as behind
/// requests of which the node has read all, bodies included.
#[test]
fn a_request_that_cannot_be_read_goes_to_its_server() {
    let (server, site) = (listener(), Site::compressing(ModuleLimits::default()));
    let at = site.before(server.local_addr().unwrap());
    let many = format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX));
    let long = format!("GET / HTTP/1.1\r\nhost: a\r\ncookie: {}\r\n\r\n", "x".repeat(HEAD_BYTES_MAX));
    for request in [
        "GET /?ids=[\"a\",\"b\"] HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /<x> HTTP/1.1\r\nhost: a\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: a\r\nname : value\r\n\r\n",
        "GET / HTTP/1.1\r\nhost:\r\n\r\n",
        &many,
        &long,
    ] {
        for before in [&[][..], &[PAGE], &[UPLOAD], &[CHUNKS], &[PAGE, UPGRADE]] {
            let mut client = connect(at);
            let mut arrived = None;
            for asked in before {
                client.write_all(asked).unwrap();
                // What asks for another protocol has a connection of its own.
                let mut server = arrived.take().filter(|_| *asked != UPGRADE).unwrap_or_else(|| accept(&server));
                let body = if head(&mut server).contains("chunked") { 15 } else { 5 * usize::from(*asked == UPLOAD) };
                server.read_exact(&mut vec![0; body]).unwrap();
                server.write_all(ANSWER).unwrap();
                assert!(head(&mut client).starts_with("HTTP/1.1 200 "));
                client.read_exact(&mut [0; 4]).unwrap();
                arrived = Some(server);
            }
            let (mut sends, bytes) = (client.try_clone().unwrap(), request.as_bytes().to_vec());
            let sent = thread::spawn(move || sends.write_all(&bytes).unwrap());
            let mut arrived = accept(&server);
            let mut got = vec![0; request.len()];
            arrived.read_exact(&mut got).unwrap();
            sent.join().unwrap();
            assert_eq!(String::from_utf8_lossy(&got), request);
            arrived.write_all(b"HTTP/1.1 299 Any\r\n\r\nas it is").unwrap();
            arrived.shutdown(Shutdown::Both).unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            assert_eq!(answer, "HTTP/1.1 299 Any\r\n\r\nas it is");
        }
    }
}

/// Goal: a request has the status through the node that nginx itself gives it. Method: the same bytes to nginx, and to nginx behind the node.
#[test]
fn requests_fare_as_at_nginx_itself() {
    let nginx = Nginx::start();
    let site = Site::compressing(ModuleLimits::default());
    let at = site.before(nginx.address);
    let many = |lines: usize| format!("GET /connection HTTP/1.1\r\nHost: a\r\n{}", "x-a: b\r\n".repeat(lines));
    let long = |bytes: usize| format!("GET /connection HTTP/1.1\r\nHost: a\r\nCookie: {}\r\n", "x".repeat(bytes));
    let ask = |at: SocketAddr, request: &str| {
        let mut client = connect(at);
        client.write_all(format!("{request}\r\n").as_bytes()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        status(&answer.replacen("HTTP/1.0", "HTTP/1.1", 1))
    };
    for request in [
        "GET /connection HTTP/1.1\r\nHost: a\r\n",
        "GET /connection HTTP/1.0\r\n",
        "GET /connection HTTP/1.0\r\nConnection: keep-alive\r\n",
        "HEAD /connection HTTP/1.1\r\nHost: a\r\n",
        "GET /connection?ids=[\"a\",\"b\"] HTTP/1.1\r\nHost: a\r\n",
        "GET /connection?a=<b>&c=`d`|{e}^\\ HTTP/1.1\r\nHost: a\r\n",
        "GET /<x> HTTP/1.1\r\nHost: a\r\n",
        "GET /%zz HTTP/1.1\r\nHost: a\r\n",
        "GET /connection?\u{e4} HTTP/1.1\r\nHost: a\r\n",
        "GET http://a/connection HTTP/1.1\r\nHost: a\r\n",
        "GET /connection HTTP/1.1\r\n",
        "GET /connection HTTP/1.1\r\nHost:\r\n",
        "GET /connection HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
        "GET /connection HTTP/1.1\r\nHost: a b\r\n",
        "GET /connection HTTP/1.1\r\nHost: a\r\nX-Odd : b\r\n",
        "GET /connection HTTP/1.1\r\nHost: a\r\nno colon\r\n",
        "GET /connection HTTP/1.1\r\nHost: a\r\nx: b\r\n c\r\n",
        "GET /connection HTTP/1.2\r\nHost: a\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n",
        "BREW /connection HTTP/1.1\r\nHost: a\r\n",
        "POST /connection HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n",
        "POST /connection HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n",
        "POST /connection HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET /connection\r\n",
        &many(99),
        &many(100),
        &many(300),
        &long(8000),
        &long(20_000),
        &long(70_000),
    ] {
        let (itself, behind) = (ask(nginx.address, request), ask(at, request));
        assert_eq!(behind, itself, "{}", &request[..request.len().min(200)]);
    }
}

/// RFC 9112 §9.3: an answer of HTTP/1.0 that ends with its connection says so.
#[test]
fn an_old_client_is_told_that_its_connection_ends() {
    let (server, site) = (listener(), Site::compressing(ModuleLimits::default()));
    let mut client = connect(site.before(server.local_addr().unwrap()));
    let request = b"GET /a HTTP/1.0\r\nHost: h\r\nAccept-Encoding: gzip\r\nConnection: keep-alive\r\n\r\n";
    client.write_all(request).unwrap();
    let mut arrived: TcpStream = accept(&server);
    head(&mut arrived);
    let text = "text ".repeat(1000);
    write!(arrived, "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{text}", text.len())
        .unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    assert!(answer.contains("content-encoding: gzip") && !answer.contains("content-length"), "{answer}");
    assert!(answer.contains("connection: close") && !answer.contains("keep-alive"), "{answer}");
}

/// Goal: a client that asks whether its body is wanted hears the server's word, and the node's only if the server says none (RFC 9110 §10.1.1).
#[test]
fn whether_a_body_is_wanted_is_the_servers_to_say() {
    let (server, site) = (listener(), Site::compressing(ModuleLimits::default()));
    let at = site.before(server.local_addr().unwrap());
    let ask = b"PUT /a HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";
    for (says, hears) in [
        (Some("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"), " 401 "),
        (Some("HTTP/1.1 100 Continue\r\n\r\n"), " 100 "),
        (None, " 100 "),
    ] {
        let mut client = connect(at);
        client.write_all(ask).unwrap();
        let mut arrived = accept(&server);
        assert!(head(&mut arrived).to_ascii_lowercase().contains("expect: 100-continue"));
        let begun = Instant::now();
        if let Some(says) = says {
            thread::sleep(Duration::from_millis(200));
            arrived.write_all(says.as_bytes()).unwrap();
        }
        let heard = head(&mut client);
        assert!(heard.contains(hears), "{says:?}: {heard}");
        assert!(begun.elapsed() > Duration::from_millis(150), "it is the node's own word");
        if hears == " 100 " {
            client.write_all(b"hello").unwrap();
            let mut body = [0; 5];
            arrived.read_exact(&mut body).unwrap();
            arrived.write_all(ANSWER).unwrap();
            assert!(head(&mut client).contains(" 200 "));
        }
    }
}

/// Goal: of two requests that come at once, the second is answered, too, if nobody understands the first answer.
#[test]
fn a_request_behind_one_whose_answer_is_passed_is_answered() {
    let port = serve_each(|mut stream| {
        while head_of(&mut stream).starts_with("GET /odd ") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n");
        }
        let _ = stream.write_all(ANSWER);
    });
    let site = Site::compressing(ModuleLimits::default());
    let mut client = connect(site.before(SocketAddr::from(([127, 0, 0, 1], port))));
    client.write_all(&[b"GET /odd HTTP/1.1\r\nhost: site.test\r\n\r\n", PAGE].concat()).unwrap();
    let mut got = String::new();
    client.read_to_string(&mut got).unwrap();
    assert!(got.contains("gzip, chunked") && got.ends_with("page"), "{got}");
}
