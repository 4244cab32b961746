// SPDX-License-Identifier: Apache-2.0
//! What the program costs for one packet; to be run alone: `cargo test --release -p netserv-dataplane --test afxdp cost
//! -- --ignored --nocapture`.

use netserv_model::Filter;
use netserv_model::effect::FilterId;
use netserv_plane::{Change, Driver};
use netserv_wire::ip::build;

use crate::classify::device;
use crate::common::Chain;
use crate::{ROUTER, open};

const RUNS: u32 = 1_000_000;
const ROUNDS: usize = 5;

/// Ten filters, each with a mask of its own.
const SHAPES: [&str; 10] = [
    "udp dst 10.0.1.2 port 5060",
    "tcp port 80",
    "udp dst 10.0.2.0/24",
    "udp src 10.3.0.0/16 port 53",
    "icmp dst 10.0.2.0/24",
    "ip src 10.7.1.0/24 dst 10.8.0.0/16",
    "udp dst fd00:0:0:2::/64 port 5060",
    "tcp src fd00:0:0:9::/64",
    "udp dst 10.9.1.0/30 sport 7",
    "ip dst 10.44.0.0/17",
];

#[test]
#[ignore = "measures, and shows the result"]
fn nanoseconds_of_the_program() {
    let Some(chain) = Chain::new(3) else { return };
    let _entered = chain.enter(ROUTER);
    let (device, station) = device(&chain);
    let udp = |port: u16| {
        let to = std::net::SocketAddr::new("10.0.1.2".parse().unwrap(), port);
        let packet = build::udp("10.0.0.1:4000".parse().unwrap(), to, 64, &[0; 22]).unwrap();
        [&station[..], &[2; 6], &[8, 0], &packet].concat()
    };
    let (wanted, unwanted, other) = (udp(5060), udp(5061), [&[0xff; 6][..], &[2; 6], &[8, 6], &[0; 46]].concat());
    let many: Vec<String> =
        (0..10_000_u32).map(|n| format!("udp dst 172.16.{}.{} port {}", n >> 8, n & 255, 1024 + n)).collect();
    let many: Vec<&str> =
        std::iter::once("udp dst 10.0.1.2 port 5060").chain(many.iter().map(String::as_str)).collect();
    for (name, filters) in [("1 filter", &SHAPES[..1]), ("10 shapes", &SHAPES), ("10,001 filters", &many)] {
        let start = std::time::Instant::now();
        let driver = open("cost", &[]);
        println!("opened in {:?}, most of it by the verifier", start.elapsed());
        let filters: Vec<Filter> = filters.iter().map(|text| text.parse().unwrap()).collect();
        let changes: Vec<Change<'_>> =
            (0..).zip(&filters).map(|(id, filter)| Change::Install(FilterId(id), filter)).collect();
        let start = std::time::Instant::now();
        driver.filters().change(&changes).unwrap();
        let installed = start.elapsed();
        for (what, frame) in [("no IP", &other), ("unwanted", &unwanted), ("wanted", &wanted)] {
            let mut times: Vec<_> = (0..ROUNDS).map(|_| driver.time(frame, device, RUNS).unwrap().as_nanos()).collect();
            times.sort_unstable();
            println!("{name}, {what}: {times:?} ns; {} tuples, installed in {installed:?}", driver.tuples());
        }
    }
}
