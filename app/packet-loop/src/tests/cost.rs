// SPDX-License-Identifier: Apache-2.0
//! What the loop takes for a packet, over a driver that does nothing, in nanoseconds: for people who change it.
//!
//! `cargo test --release -p netservd cost -- --ignored --nocapture`. The machine is to be quiet; workers are not counted.

use std::os::fd::BorrowedFd;

use netserv_plane::{Counters, FilterTable, Final};

use super::*;

/// Packets of each case.
const PACKETS: usize = 640_000;

#[test]
#[ignore = "for people: times are noise"]
fn a_packet() {
    for (containers, filters) in [(1, 1), (1, 10_000), (10, 10), (100, 100), (500, 500), (500, 10_000)] {
        let mut times: Vec<f64> = (0..5).map(|_| time(containers, filters)).collect();
        times.sort_by(f64::total_cmp);
        let [least, .., most] = times[..] else { unreachable!() };
        println!("{containers} containers, {filters} filters: {:.0} ns ({least:.0} .. {most:.0})", times[2]);
    }
}

/// Returns the nanoseconds of the loop for a packet that goes through a container. Packets come in full batches, for one
/// container after the other, and are answered in the order of their containers.
fn time(containers: usize, filters: usize) -> f64 {
    let destination = |number: usize| format!("10.{}.{}.2", number / 200, number % 200);
    let packets = (0..containers).map(|number| udp("192.0.2.1:9", &format!("{}:5060", destination(number)), b"x"));
    let (driver, plane) = (Null { packets: packets.collect(), next: 0, finished: 0 }, Dummy::new().1);
    let mut rig = Rig::over(Box::new(driver), plane);
    let names: Vec<&'static str> = (0..containers).map(|number| &*format!("user{number}").leak()).collect();
    for name in &names {
        rig.container(name, &[]);
        rig.load(name, 0, true);
    }
    for number in 0..filters {
        let filter = format!("udp dst {} port 5060", destination(number));
        rig.change_filters(vec![(number as u64, names[number % containers], 0, &filter, FailureMode::Open)], vec![]);
    }
    let mut spent = Duration::ZERO;
    for turn in 0..PACKETS / limits::BATCH_PACKETS_MAX {
        let begun = Instant::now();
        rig.packets.turn(&mut rig.batch).unwrap();
        spent += begun.elapsed();
        if turn % 4 == 3 {
            for name in &names {
                let worker = rig.workers.get_mut(name).unwrap();
                while let Some(arrival) = worker.end().pop().unwrap() {
                    worker.end().answer(arrival, Answer::Pass, None).unwrap();
                }
                worker.wake();
            }
        }
    }
    let counts = counts(&rig.counters.totals());
    assert!(!counts.contains("unseen") && !counts.contains("unmatched"), "{counts}");
    spent.as_secs_f64() * 1e9 / PACKETS as f64
}

/// Has always a full batch.
struct Null {
    packets: Vec<Vec<u8>>,
    next: usize,
    finished: u64,
}

impl Driver for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn filters(&self) -> Arc<dyn FilterTable> {
        Arc::new(Dummy::new().1)
    }

    fn receive(&mut self, batch: &mut Batch, _: Option<Duration>) -> Result<usize, DriverError> {
        batch.clear();
        while batch.push(PacketId(self.next as u64), LAN, &self.packets[self.next % self.packets.len()]) {
            self.next += 1;
        }
        Ok(batch.len())
    }

    fn finish(&mut self, _: PacketId, verdict: Final<'_>) {
        self.finished += u64::from(std::hint::black_box(verdict) == Final::Pass);
    }

    fn inject(&mut self, _: &[u8]) -> Result<(), DriverError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DriverError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}
