// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::table::{Counts, Entry};

const NOW: Now = Now { ms: 0, s: 0 };

fn desk() -> Desk {
    let read = |name: &str| (name == "control").then(|| "198.51.100.7 2001:db8::7".to_owned());
    Desk::new(Settings::read(read).unwrap(), vec!["192.0.2.1".parse().unwrap()], |_| 0)
}

fn server() -> SocketAddr {
    "198.51.100.7:40000".parse().unwrap()
}

fn at(ms: u64) -> Now {
    Now { ms, ..NOW }
}

fn offer(id: &str) -> Vec<u8> {
    let sdp = "v=0\r\no=- 1 1 IN IP4 10.0.0.9\r\ns=-\r\nc=IN IP4 10.0.0.9\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n";
    let sdp = sdp.replace('\r', "\\r").replace('\n', "\\n");
    format!("{id} {{\"command\":\"offer\",\"call-id\":\"{id}\",\"from-tag\":\"a\",\"sdp\":\"{sdp}\"}}").into_bytes()
}

fn outputs(desk: &mut Desk) -> Vec<Output> {
    std::iter::from_fn(|| desk.poll_output()).collect()
}

fn replies(outputs: Vec<Output>) -> Vec<Reply> {
    let reply = |output| match output {
        Output::Reply(reply) => Some(reply),
        Output::Tell(_) | Output::Keep(..) => None,
    };
    outputs.into_iter().filter_map(reply).collect()
}

#[test]
fn an_answer_waits_until_the_ports_are_there() {
    let mut desk = desk();
    desk.handle_datagram(3, server(), &offer("1"), NOW);
    let told = outputs(&mut desk);
    let [Output::Keep(entry, Some(_)), Output::Tell(set), Output::Tell(confirm)] = &told[..] else {
        panic!("{told:?}")
    };
    assert_eq!(entry, b"call/00000000");
    let Some(Order::Set(entries)) = Order::parse(set) else { panic!("{set:?}") };
    assert_eq!((entries.len(), Order::parse(confirm)), (4, Some(Order::Confirm(1))));
    desk.handle_news(&News::Confirmed(0).emit(), NOW);
    assert_eq!(outputs(&mut desk), []);
    desk.handle_news(&News::Confirmed(1).emit(), NOW);
    let replied = replies(outputs(&mut desk));
    assert!(replied.len() == 1 && replied[0].socket == 3 && replied[0].bytes.starts_with(b"1 {\"result\":\"ok\""));

    // Without the packet part it goes all the same.
    desk.handle_datagram(3, server(), &offer("2"), NOW);
    assert_eq!((replies(outputs(&mut desk)), desk.poll_timeout(NOW)), (Vec::new(), APPLIED_MS));
    desk.handle_timeout(at(APPLIED_MS - 1));
    assert_eq!(outputs(&mut desk), []);
    desk.handle_timeout(at(APPLIED_MS));
    assert_eq!((replies(outputs(&mut desk)).len(), desk.poll_timeout(NOW)), (1, EXPIRY_EACH_MS));
}

#[test]
fn a_request_that_comes_again_gets_the_same_answer() {
    let mut desk = desk();
    let ping = b"c d7:command4:pinge";
    let mapped = SocketAddr::new("::ffff:198.51.100.7".parse().unwrap(), 40000);
    desk.handle_datagram(0, mapped, ping, NOW);
    desk.handle_datagram(0, server(), &offer("1"), NOW);
    desk.handle_news(&News::Confirmed(1).emit(), NOW);
    let first = replies(outputs(&mut desk));
    for _ in 0..3 {
        desk.handle_datagram(0, server(), &offer("1"), at(9999));
        assert_eq!(replies(outputs(&mut desk)), first[1..]);
    }
    assert_eq!((first[0].bytes.clone(), first[0].to), (b"c d6:result4:ponge".to_vec(), mapped));
    assert_eq!(desk.counted(), Counted { calls: 1, requests: 2, ..Counted::default() });
}

#[test]
fn strangers_get_no_answer() {
    let mut desk = desk();
    for stranger in ["198.51.100.8:40000", "[2001:db8::8]:40000", "[::ffff:198.51.100.8]:1"] {
        desk.handle_datagram(0, stranger.parse().unwrap(), &offer("1"), NOW);
    }
    desk.handle_datagram(0, server(), b"nocookie", NOW);
    assert_eq!(outputs(&mut desk), []);
    assert_eq!(desk.counted(), Counted { refused: 3, damaged: 1, ..Counted::default() });
    desk.handle_datagram(0, "[2001:db8::7]:1".parse().unwrap(), b"1 d3:xyz", NOW);
    assert_eq!(replies(outputs(&mut desk))[0].bytes[..20], b"1 d12:error-reason35"[..]);
    assert_eq!(desk.counted().failed, 1);
}

#[test]
fn answers_that_wait_are_bounded() {
    let mut desk = desk();
    desk.handle_datagram(0, server(), &offer("1"), NOW);
    for number in 0..WAITING_MAX {
        let again = String::from_utf8(offer("1")).unwrap();
        desk.handle_datagram(0, server(), format!("x{number}{}", &again[1..]).as_bytes(), NOW);
    }
    assert_eq!((desk.waiting.len(), replies(outputs(&mut desk)).len()), (WAITING_MAX, 1));
}

#[test]
fn a_packet_part_that_begins_is_told_all() {
    let mut desk = desk();
    desk.handle_datagram(0, server(), &offer("1"), NOW);
    desk.handle_datagram(0, server(), &offer("2"), NOW);
    outputs(&mut desk);
    desk.handle_news(&News::Begins.emit(), NOW);
    let told = outputs(&mut desk);
    let sets = told
        .iter()
        .filter(|one| matches!(one, Output::Tell(order) if matches!(Order::parse(order), Some(Order::Set(_)))));
    assert_eq!(sets.count(), 2);
    desk.handle_news(&News::Counted(vec![(30000, Counts { packets: 1, ..Counts::default() })]).emit(), NOW);
    desk.handle_news(b"what?", NOW);
}

#[test]
fn calls_are_kept_until_they_end() {
    let mut desk = desk();
    desk.handle_datagram(0, server(), &offer("1"), NOW);
    let Some(Output::Keep(entry, Some(value))) = desk.poll_output() else { panic!("it is kept") };
    let mut next = self::desk();
    next.restore(&entry, &value, NOW);
    next.restore(b"other", b"", NOW);
    next.restore(b"call/00000009", b"", NOW);
    next.begin();
    let told = outputs(&mut next);
    assert_eq!(told[0], Output::Keep(b"call/00000009".to_vec(), None));
    let Some(Order::Set(entries)) = (match &told[3] {
        Output::Tell(order) => Order::parse(order),
        Output::Reply(_) | Output::Keep(..) => None,
    }) else {
        panic!("{told:?}")
    };
    assert_eq!(entries.iter().map(|entry: &Entry| entry.port).collect::<Vec<_>>(), [30000, 30001, 30002, 30003]);
    next.handle_timeout(at(180_000));
    assert_eq!(outputs(&mut next)[0], Output::Keep(entry, None));
    assert_eq!(next.counted().expired, 1);
}
