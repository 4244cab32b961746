// SPDX-License-Identifier: Apache-2.0
//! Programs with datagrams in batches. `modules/samples/udp-echo` sends them back.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use netserv_model::RefusalKind;
use netserv_worker_server::limits::{UDP_BATCH_MAX, UDP_PAYLOAD_BYTES_MAX};

use super::{LONG, Spec, Worker, compiled};

/// `udp-echo` at a free port of an address.
fn echo(ip: &str) -> Spec {
    let mut spec = Spec::of(compiled("udp-echo"));
    spec.protocol = "udp";
    let address = format!("{ip}:{}", spec.port());
    spec.property("address", &address)
}

fn client(ip: &str, spec: &Spec) -> UdpSocket {
    let client = UdpSocket::bind(format!("{ip}:0")).unwrap();
    client.connect(format!("{ip}:{}", spec.port())).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client
}

#[test]
fn datagrams_come_back_over_ipv4_and_ipv6_whatever_their_length() {
    for (at, from) in [("127.0.0.1", "127.0.0.1"), ("[::]", "[::1]"), ("[::]", "127.0.0.1")] {
        let spec = echo(at);
        let mut worker = Worker::with(&spec);
        worker.wait_for_line("listening on");
        let client = client(from, &spec);
        let mut buffer = vec![0; 65_536];
        for length in [0, 1, 1500, 9000, UDP_PAYLOAD_BYTES_MAX] {
            let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            client.send(&bytes).unwrap();
            let length = client.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], bytes);
        }
        // Of two clients, each gets its own, in order, however many come at once.
        let other = self::client(from, &spec);
        for number in 0..3 * u32::try_from(UDP_BATCH_MAX).unwrap() {
            client.send(&number.to_be_bytes()).unwrap();
            other.send(&(!number).to_be_bytes()).unwrap();
        }
        for number in 0..3 * u32::try_from(UDP_BATCH_MAX).unwrap() {
            assert_eq!((client.recv(&mut buffer).unwrap(), &buffer[..4]), (4, &number.to_be_bytes()[..]));
            assert_eq!((other.recv(&mut buffer).unwrap(), &buffer[..4]), (4, &(!number).to_be_bytes()[..]));
        }
        // What went is counted when it has gone.
        let begun = Instant::now();
        while worker.counts().bytes_out < worker.counts().bytes_in {
            assert!(begun.elapsed() < LONG, "{:?}", worker.counts());
        }
        assert!(worker.counts().bytes_in > 65_507 + 9000 + 1500, "{:?}", worker.counts());
    }
}

#[test]
fn a_port_that_is_not_permitted_or_taken_is_refused() {
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let elsewhere = echo("127.0.0.1").property("address", &other.local_addr().unwrap().to_string());
    let (kind, detail) = Worker::start().refused(&elsewhere);
    assert_eq!(kind, RefusalKind::Trapped);
    assert!(detail.contains("not-permitted"), "{detail}");
    let taken = echo("127.0.0.1");
    let _socket = UdpSocket::bind(("127.0.0.1", taken.port())).unwrap();
    // It gets so far as to be the version that has the port.
    let mut worker = Worker::with(&taken);
    let (kind, detail) = worker.failed(taken.slot);
    assert_eq!(kind, RefusalKind::Trapped);
    assert!(detail.contains("taken"), "{detail}");
}

/// Goal: a program of the next version takes the port after the one before it has left, and few datagrams are lost meanwhile.
#[test]
fn an_upgrade_hands_the_port_over() {
    let spec = echo("127.0.0.1");
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening on");
    let client = client("127.0.0.1", &spec);
    client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let answers = |number: u8| {
        let mut buffer = [0; 16];
        client.send(&[number]).is_ok() && client.recv(&mut buffer).is_ok_and(|length| buffer[..length] == [number])
    };
    let wait_for_answer = |number: u8| {
        let begun = Instant::now();
        while !answers(number) {
            assert!(begun.elapsed() < LONG, "no version answers {number}");
        }
    };
    wait_for_answer(1);
    worker.load(&spec.clone().with(|spec| spec.slot = 1));
    wait_for_answer(2);
}

/// Goal: at least 5,000 datagrams come back for each second of the worker's processor time in a debug build; what does is printed.
/// See docs/blocks.md for what an optimised one does.
#[test]
fn many_datagrams_come_back() {
    let spec = echo("127.0.0.1");
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening on");
    let client = client("127.0.0.1", &spec);
    let (begun, before, mut back) = (Instant::now(), worker.processor_time(), 0_u32);
    let mut buffer = [0; 64];
    while begun.elapsed() < Duration::from_secs(1) {
        let numbers: BTreeSet<u8> = (0..64).collect();
        numbers.iter().for_each(|number| drop(client.send(&[*number; 64])));
        for _ in &numbers {
            assert!(client.recv(&mut buffer).is_ok(), "one is lost after {back}");
            back += 1;
        }
    }
    let rate = f64::from(back) / (worker.processor_time() - before).as_secs_f64();
    println!("{rate:.0} datagrams of 64 bytes came back for a second of the worker's processor time");
    assert!(rate >= 5000.0, "{rate:.0}");
}

/// Goal: the component sends 200,000 datagrams of 64 bytes back for each second of processor time that its worker has, beside a
/// native program that does the same with one call for each. `./dev servers` runs it.
#[test]
#[ignore = "a measurement; `./dev servers` runs it"]
fn two_hundred_thousand_datagrams_come_back_for_a_second_of_processor_time() {
    let spec = echo("127.0.0.1");
    let mut worker = Worker::with(&spec);
    worker.wait_for_line("listening on");
    let native = UdpSocket::bind("127.0.0.1:0").unwrap();
    let native_port = native.local_addr().unwrap().port();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        loop {
            let (length, from) = native.recv_from(&mut buffer).unwrap();
            if length == 1 {
                break;
            }
            native.send_to(&buffer[..length], from).unwrap();
        }
        tell.send(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)).unwrap();
    });
    let (mut ours, mut theirs) = (0, 0);
    let before = worker.processor_time();
    for _ in 0..5 {
        ours += exchanged(spec.port());
        theirs += exchanged(native_port);
    }
    let used = (worker.processor_time() - before).as_secs_f64();
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[0], ("127.0.0.1", native_port)).unwrap();
    let native = told.recv().unwrap();
    let native = Duration::new(native.tv_sec.try_into().unwrap(), native.tv_nsec.try_into().unwrap()).as_secs_f64();
    let [ours, theirs] = [f64::from(ours) / used, f64::from(theirs) / native];
    println!("{ours:.0} datagrams for a second of the worker's processor time, {theirs:.0} of a native program's");
    assert!(ours >= 200_000.0, "{ours:.0}, native {theirs:.0}");
}

/// Returns how many datagrams came back in a second, with as many under way as a batch has.
fn exchanged(port: u16) -> u32 {
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    let (begun, mut back, mut buffer) = (Instant::now(), 0, [0; 64]);
    for _ in 0..2 * UDP_BATCH_MAX {
        client.send(&[7; 64]).unwrap();
    }
    while begun.elapsed() < Duration::from_secs(1) {
        client.recv(&mut buffer).unwrap();
        client.send(&buffer).unwrap();
        back += 1;
    }
    for _ in 0..2 * UDP_BATCH_MAX {
        client.recv(&mut buffer).unwrap();
    }
    back
}
