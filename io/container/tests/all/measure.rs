// SPDX-License-Identifier: Apache-2.0
//! Figures, not checks: `cargo test -p netserv-container --test measure -- --ignored --nocapture`.

use std::fs;
use std::time::{Duration, Instant};

use crate::common::{Guest, LIMITS, Node, can_run};

#[test]
#[ignore = "prints figures for docs/figures.md, and wants a quiet machine"]
fn start_time_and_memory() {
    if !can_run("start_time_and_memory") {
        return;
    }
    let node = Node::start();
    for (how, pause) in [("one at a time", Duration::from_millis(50)), ("back to back", Duration::ZERO)] {
        let (mut started, mut ready) = (vec![], vec![]);
        for _ in 0..100 {
            std::thread::sleep(pause);
            let begin = Instant::now();
            let mut guest = node.launch(&LIMITS);
            started.push(begin.elapsed());
            guest.ready();
            ready.push(begin.elapsed());
        }
        print(&format!("{how}: launch() returns after"), &mut started);
        print(&format!("{how}: the worker is ready after"), &mut ready);
    }

    const HELD: u64 = 200;
    let before = available_kib();
    let begin = Instant::now();
    let mut guests: Vec<Guest> = (0..HELD).map(|_| node.launch(&LIMITS)).collect();
    guests.iter_mut().for_each(Guest::ready);
    let took = begin.elapsed();
    let each = before.saturating_sub(available_kib()) / HELD;
    let pss: Vec<u64> = guests.iter().map(|guest| pss_kib(guest.process.pid())).collect();
    eprintln!("{HELD} containers: started in {took:?}, {each} KiB of the machine's memory each");
    eprintln!("proportional set size of one: {} KiB", pss.iter().sum::<u64>() / HELD);
    let begin = Instant::now();
    drop(guests);
    drop(node);
    eprintln!("{HELD} containers ended in {:?}", begin.elapsed());
}

fn print(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |permille: usize| times[(times.len() - 1) * permille / 1000];
    eprintln!("{what}: median {:?}, 95 % {:?}, worst {:?}", at(500), at(950), at(1000));
}

fn available_kib() -> u64 {
    number(&fs::read_to_string("/proc/meminfo").unwrap(), "MemAvailable:")
}

fn pss_kib(pid: i32) -> u64 {
    number(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap(), "Pss:")
}

fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
