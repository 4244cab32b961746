// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::limits::{ANSWER_HEAD_BYTES_MAX, DENIED_MS_MAX, WATCHED_BYTES_MAX, WATCHED_MAX, WATCHED_MS_MAX};

const OTHER: &str = "198.51.100.9:80";

impl Bench {
    fn connect_other(&mut self, id: Connection) -> Decision {
        self.reflector.connect(&mut self.node, self.now_ms, id, Some(OTHER.parse().unwrap()))
    }

    /// A client of a server that is watched asks, and gets a begin of an answer.
    fn watched(&mut self, id: Connection, answer: &[u8]) -> Action {
        assert_eq!(self.connect_other(id), Decision::Accept);
        assert!(matches!(self.client(id, b"GET / HTTP/1.1\r\n\r\n"), Action::Pass));
        self.server(id, answer)
    }
}

/// Goal: servers whose answers never end take no more memory together than they may; the clients beyond go on without the module.
#[test]
fn answers_of_watched_servers_are_kept_as_far_as_there_is_room() {
    let mut bench = Bench::new();
    let answer = vec![b'a'; ANSWER_HEAD_BYTES_MAX - 1];
    let most = WATCHED_BYTES_MAX / answer.len();
    for id in 0..WATCHED_MAX as u64 {
        let goes_on = matches!(bench.watched(id, &answer), Action::Splice);
        assert_eq!(goes_on, id >= most as u64, "{id}");
    }
    assert!(bench.reflector.watched_bytes() <= WATCHED_BYTES_MAX);
    // More than a head may have comes at once.
    assert!(matches!(bench.server(0, &vec![b'a'; 256 << 10]), Action::Splice));
    assert!(bench.reflector.watched_bytes() <= WATCHED_BYTES_MAX);
}

#[test]
fn only_so_many_are_watched_at_a_time() {
    let mut bench = Bench::new();
    assert!((0..WATCHED_MAX as u64).all(|id| bench.connect_other(id) == Decision::Accept));
    assert_eq!(bench.connect_other(5000), Decision::Splice);
    bench.closed(7);
    assert_eq!(bench.connect_other(5001), Decision::Accept);
    assert_eq!(bench.connect(5002), Decision::Serve, "it has nothing to do with servers that are known");
}

/// Goal: a connection of which nothing comes to be known is watched no more after a while, and goes on without the module.
#[test]
fn nobody_is_watched_for_ever() {
    let mut bench = Bench::new();
    bench.watched(1, b"HTTP/1.1 200 OK\r\n");
    bench.wait(WATCHED_MS_MAX);
    assert!(!bench.reflector.is_idle() && bench.reflector.watched_bytes() > 0);
    bench.wait(100);
    assert!(bench.reflector.is_idle() && !bench.node.closed.contains(&1));
    assert!(matches!(bench.server(1, b"Content-Type: audio/mpeg\r\n\r\n"), Action::Splice));
    assert!(bench.node.learned.is_empty());
    bench.reflector.end(&mut bench.node, 0, 1);
    bench.closed(1);
}

/// Goal: a server to which the module may not connect goes on as without it, be it named, learned or met for the first time, and is learned
/// by nobody; once the module may, it is served.
#[test]
fn who_may_not_be_connected_to_is_left_alone() {
    let mut bench = Bench::new();
    let (named, other): (SocketAddr, SocketAddr) = (SERVER.parse().unwrap(), OTHER.parse().unwrap());
    bench.node.denied = [named, other].into();
    assert_eq!(bench.connect(1), Decision::Splice);
    assert!(matches!(bench.watched(2, HEAD), Action::Splice));
    assert!(bench.node.learned.is_empty());
    assert_eq!(bench.connect_other(3), Decision::Splice);
    bench.node.learned.insert(other);
    assert_eq!(bench.connect_other(4), Decision::Splice);
    bench.node.denied.clear();
    assert_eq!(bench.connect(5), Decision::Splice, "it is not asked each time");
    bench.now_ms += DENIED_MS_MAX + 1;
    assert_eq!((bench.connect(6), bench.connect_other(7)), (Decision::Serve, Decision::Serve));
    assert!(bench.node.opened.is_empty());
}

/// Goal: where the module may not connect any more, one client is told, and those after it go on as without the module.
#[test]
fn who_may_not_be_connected_to_any_more_is_left_alone() {
    let mut bench = Bench::new();
    bench.connect(1);
    bench.node.denied.insert(SERVER.parse().unwrap());
    bench.client(1, b"GET /live HTTP/1.1\r\n\r\n");
    assert!(bench.node.to_client(1).starts_with(b"HTTP/1.0 502 "));
    assert_eq!(bench.connect(2), Decision::Splice);
}

/// Goal: no more is known of servers than may be.
#[test]
fn it_is_forgotten_what_can_be_reached() {
    let mut bench = Bench::new();
    for port in 1..=u16::try_from(2 * SERVERS_MAX).unwrap() {
        let server = SocketAddr::new([198, 51, 100, 20].into(), port);
        bench.node.learned.insert(server);
        assert_eq!(bench.reflector.connect(&mut bench.node, 0, port.into(), Some(server)), Decision::Serve);
        assert!(bench.reflector.reachable.len() <= SERVERS_MAX as usize);
    }
}
